/* sink.h - real peers that fail on purpose: `stagger sink`, and a server that
 * sends what it is given, byte by byte. One of each at a time. */
#ifndef TESTS_ADAPTERS_SINK_H
#define TESTS_ADAPTERS_SINK_H

/* Starts `stagger sink` with these options, as "--reply 503x2,200"; ends the one
 * before. Returns its URL. */
const char *sink_start(const char *options);

/* Ends it. Returns the requests it has read, a line each: method, path, what it
 * answered, the size of the body, and a letter for each different key:
 *
 *     POST / 503 5 a
 *     POST / 200 5 a
 *     GET / reset 0 - */
const char *sink_stop(void);

/* Starts a server that answers one request a connection with each of count
 * answers, in order, and then closes it. Returns its URL. */
const char *canned_start(const char *const *answers, unsigned count);

/* Waits for the last of them. Returns the first lines of the requests. */
const char *canned_stop(void);

/* The URL of a socket that listens, takes connections, and says nothing. */
const char *silent_start(const char *scheme);

/* The URL of a port that nobody listens at. */
const char *nobody(void);

#endif
