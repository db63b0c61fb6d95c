/* server.h - the server's side of HTTP/1.1: a listener, and connections that
 * carry one request at a time.
 *
 *     request.c    the bytes of requests           (pure)
 *     response.c   the heads of answers            (pure)
 *     server.c     the listener, and how many connections there may be
 *     inbound.c    a connection: bytes in, phases, time
 *     inbound_answer.c  its answers, whole or as a stream
 *     secure.c     the same bytes through TLS, and its certificates
 *     origin.c     where connections come from
 *
 * A user of it holds a stg_httpd and gives hooks; what it knows of a connection
 * stands behind a stg_inbound that it begins with. A request is answered once,
 * within a hook or later, and the next one is read after its answer is out.
 *
 * Limits. A head has header_timeout to come. A body may be slow for body_grace
 * and then has to come with body_rate, and be whole by request_timeout. An
 * answer must be taken by idle_timeout. At a limit of connections, in all or of
 * one origin, the oldest one without a finished head makes room, then the one
 * that is idle for longest; one that is busy is never cut for another. Where all
 * are busy, STG_SHORT_MAX more get one answer each and are closed, so that one
 * who asks for the health has it at once: they have a second for their request,
 * and another one to take the answer. While more wait, one who has his answer
 * makes room, or else one whose body is not whole, with 503: so nobody holds
 * these places who does not wait for the server.
 *
 * An answer may be a stream, which goes on until its user ends it or the other
 * end closes. Nothing but that cuts it, and a reader that leaves too much unread.
 *
 * Without a file for a connection nothing spins: idle connections of the hub go
 * first, of either side; then a file in reserve lets one be answered and closed;
 * then the listener rests for 100 ms.
 *
 * TLS. A handshake is a part of the first head: it has the same time, and makes
 * room for others as a head does. Certificates are changed by a call, and when
 * their files are others: those who are connected keep what they have.
 *
 * All on the loop's thread. */
#ifndef STAGGER_HTTP_SERVER_H
#define STAGGER_HTTP_SERVER_H

#include <netinet/in.h>
#include <uv.h>

#include "base/hash.h"
#include "base/list.h"
#include "host/deadlines.h"
#include "host/files.h"
#include "host/log.h"
#include "http/request.h"
#include "http/tls.h"

/* -- the head of an answer ------------------------------------------------------
 *
 * No socket and no clock: the time comes as text. */

enum {
    STG_RESPONSE_MORE_MAX = 256, /* of stg_response.more */
    STG_RESPONSE_HEAD_MAX = 768,
    STG_DATE_MAX = 32,
};

/* How the other end finds the end of the body. */
typedef enum stg_response_body {
    STG_RESPONSE_SIZED,   /* Content-Length */
    STG_RESPONSE_CHUNKED, /* Transfer-Encoding: chunked */
    STG_RESPONSE_TO_END,  /* the end of the connection */
} stg_response_body;

typedef struct stg_response {
    int status;
    const char *type; /* Content-Type; NULL: none */
    const char *more; /* further lines, "Name: value\r\n" each; NULL: none */
    stg_response_body body;
    size_t size;  /* of a sized body */
    bool is_last; /* Connection: close */
    bool is_kept; /* Connection: keep-alive, which HTTP/1.0 has to be told */
} stg_response;

/* The words of a status: "Not Found"; "Error" for one that is not used here. */
const char *stg_response_reason(int status);

/* Writes the head, with its empty line, and returns its size. */
size_t stg_response_print(const stg_response *r, const char *date,
                          char head[STG_RESPONSE_HEAD_MAX]);

/* Seconds since 1970 as "Sun, 06 Nov 1994 08:49:37 GMT". Source: RFC 9110,
 * section 5.6.7. */
void stg_response_print_date(int64_t wall_s, char date[STG_DATE_MAX]);

/* -- the server ------------------------------------------------------------------ */

/* -- origins ----------------------------------------------------------------- */

/* Clients, and what each of them has of the server: I32.
 *
 * A client is an address, IPv4 or an IPv6 /64, which one customer of a provider
 * has whole; or whoever has shown who it is, wherever it connects from. Private
 * to the server and its users. */

enum { STG_ORIGIN_SLOTS = 1024 }; /* a power of two */

typedef struct stg_origin {
    stg_link link;
    unsigned char prefix[16]; /* IPv4 as ::ffff:a.b.c.d; 0xff...: of a key */
    uint32_t uses;            /* of whoever holds it */
    uint32_t connections;
    stg_list heading, idle; /* of stg_inbound.origin_queue, the longest first */
    uint32_t waiting;       /* a user's: messages, */
    size_t pending;         /* and bytes */
} stg_origin;

typedef struct stg_origins {
    stg_list slots[STG_ORIGIN_SLOTS];
    stg_hash_seed seed;
} stg_origins;

void stg_origins_init(stg_origins *all);

/* The one of an address, which is NULL or of another family for a socket of this
 * machine; held once more. NULL: no memory. */
stg_origin *stg_origin_hold(stg_origins *all, const struct sockaddr *from);
void stg_origin_release(stg_origin *o);

/* The same of one that has shown who it is: by a pointer, which is never read. */
stg_origin *stg_origin_hold_key(stg_origins *all, const void *key);

/* The address for people. Returns text. */
const char *stg_origin_print(const stg_origin *o, char text[INET6_ADDRSTRLEN]);

typedef struct stg_httpd stg_httpd;
typedef struct stg_inbound stg_inbound;
typedef struct stg_secure stg_secure; /* of a connection: see secure.c */

/* All but room, closed and calm are called for each request, in this order:
 * head, body any number of times, whole, ended; or refused, ended, at any
 * place. Parts of the request are lent until the hook returns; where the body
 * was not there at once, until `ended`. */
typedef struct stg_httpd_hooks {
    size_t size; /* of what begins with a stg_inbound; it is zeroed */
    /* The head is read. An answer before `whole` ends the connection. */
    void (*head)(stg_inbound *c);
    /* Where the next bytes of the body may be read to; len 0: anywhere. */
    uv_buf_t (*room)(stg_inbound *c);
    void (*body)(stg_inbound *c, stg_span piece);
    void (*whole)(stg_inbound *c);
    /* It is to be answered with this, and its connection closes. */
    void (*refused)(stg_inbound *c, int status, const char *why);
    /* Its answer is out, or never will be. */
    void (*ended)(stg_inbound *c);
    /* It closes, in this phase; may be NULL. */
    void (*closed)(stg_inbound *c);
    /* No request waits for its answer any more; may be NULL. */
    void (*calm)(stg_httpd *s);
} stg_httpd_hooks;

typedef struct stg_httpd_options {
    uint32_t connections_max, address_connections_max;
    size_t header_max;
    stg_ns header_timeout, idle_timeout, request_timeout;
    stg_ns body_grace;
    uint32_t body_rate; /* bytes a second */
    stg_files *files;   /* kept; NULL: the server's own */
    stg_log *log;       /* kept; NULL: none */
    // Its certificate; certificate_file NULL: connections are plain.
    stg_tls_options tls;
} stg_httpd_options;

enum {
    STG_INBOUND_READ = 16 * 1024,        /* of heads, at a time */
    STG_INBOUND_BODY_READ = 64 * 1024,   /* of bodies */
    STG_INBOUND_UNSENT_MAX = 256 * 1024, /* of a stream */
    STG_SHORT_MAX = 8, /* connections that are only answered, for want of
                          places or files */
};

struct stg_httpd {
    uv_loop_t *loop;
    const stg_httpd_hooks *hooks;
    void *ctx; /* for hooks */
    stg_httpd_options options;
    stg_deadlines deadlines;
    stg_list connections;
    stg_list heading, idle; /* those in these phases, the longest first */
    stg_list passing;       /* shorts whose body comes, or that linger */
    stg_origins origins;
    uint32_t count; /* connections */
    uint32_t busy;  /* connections that wait for an answer, or send it */
    uint32_t shorts;
    uint64_t cut; /* that were too slow */
    uint64_t handshakes_failed;
    stg_list contexts;
    stg_tls_context *tls; /* for new connections, or NULL: they are plain */
    stg_ns tls_looked_at; /* when its files were looked at */
    char *records;        /* what came in, of the connection that is read */
    uv_poll_t listener;
    int fd;
    int reserve;      /* a file for when there is none; -1: in use */
    bool is_resting;  /* the listener */
    bool is_stopping; /* each answer is its connection's last */
    bool is_closing;
    stg_deadline rest;
    stg_files own_files;
    stg_files *files;
    unsigned handles; /* that are open, or closing */
    void (*closed)(void *ctx);
    void *closed_ctx;
    int64_t date_s;
    char date[STG_DATE_MAX];
    char read[STG_INBOUND_BODY_READ];
};

/* fd listens, or is -1 for stg_httpd_adopt() alone; given. STG_INVALID: a
 * certificate that cannot be used; STG_IO: the system refuses it. Whatever it
 * returns, it is closed with stg_httpd_close(). */
stg_status stg_httpd_open(stg_httpd *s, uv_loop_t *loop, int fd,
                          const stg_httpd_hooks *hooks, void *ctx,
                          const stg_httpd_options *o, stg_error *err);

/* Connections from now on have this certificate, read anew, or are plain. With
 * STG_INVALID, which says why, all is as it was. */
stg_status stg_httpd_change_tls(stg_httpd *s, const stg_tls_options *o,
                                stg_error *err);

/* The same in two steps. The first one reads the files and changes nothing; *tls,
 * NULL for plain connections, is for the second, or to be released before the
 * server is closed. */
stg_status stg_httpd_prepare_tls(stg_httpd *s, const stg_tls_options *o,
                                 stg_tls_context **tls, stg_error *err);
void stg_httpd_use_tls(stg_httpd *s, stg_tls_context *tls);

/* Other limits of connections from now on. Where there are more than connections_max
 * now, idle ones are closed; the others go on. */
void stg_httpd_limit(stg_httpd *s, uint32_t connections_max,
                     uint32_t address_connections_max);

/* Until when the certificate is valid, in seconds since 1970; 0: there is
 * none. */
int64_t stg_httpd_certificate_until(const stg_httpd *s);

/* Each answer from now on is the last of its connection. */
void stg_httpd_stop(stg_httpd *s);

/* Closes the listener and all connections; closed is called when s may go. */
void stg_httpd_close(stg_httpd *s, void (*closed)(void *ctx), void *ctx);

/* Takes a connected stream socket, as if it had been accepted. False: it is
 * closed. */
bool stg_httpd_adopt(stg_httpd *s, int fd, const struct sockaddr *from);

/* Nothing is zeroed for the body's sake, so this costs little: about 700 bytes,
 * and what the user adds. */
typedef enum stg_inbound_phase {
    STG_INBOUND_IDLE, /* between two requests */
    STG_INBOUND_HEAD, /* in a head, or before the first one */
    STG_INBOUND_BODY,
    STG_INBOUND_WAIT,   /* for its answer */
    STG_INBOUND_ANSWER, /* which goes out */
    STG_INBOUND_STREAM, /* and goes on, until its user ends it */
    STG_INBOUND_LINGER, /* until the other end has read it */
    STG_INBOUND_HUNG,   /* no answer comes, ever: until the other end closes */
    STG_INBOUND_CLOSED,
} stg_inbound_phase;

/* The place that a connection has among the server's. */
typedef enum stg_inbound_place {
    STG_PLACE_OWN,
    STG_PLACE_SHORT,   /* there was no place or file: one answer, no more */
    STG_PLACE_RESERVE, /* the same, on the file that the server has in reserve */
} stg_inbound_place;

struct stg_inbound {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
    } as;
    stg_httpd *server;
    stg_origin *origin; /* address that the connection comes from */
    stg_origin *client; /* the share that it counts in: origin's, or a key's */
    stg_link link;      /* in server.connections */
    stg_link queue, origin_queue; /* heading or idle; queue: or passing */
    stg_deadline deadline;        /* set lazily: see due_at */
    stg_ns due_at, phase_at;
    uint64_t body_size; /* bytes of it that came */
    stg_request request;
    stg_secure *secure; /* NULL: it is plain */
    char *rest;         /* bytes of the requests behind this one */
    size_t rest_size;
    stg_inbound_phase phase;
    bool is_last;    /* closes behind the answer */
    bool is_ended;   /* the other end has sent its last byte */
    bool is_stopped; /* nothing is read */
    bool is_feeding;
    stg_inbound_place place;
};

/* It gets one answer, and is closed. */
static inline bool stg_inbound_is_short(const stg_inbound *c)
{
    return c->place != STG_PLACE_OWN;
}

/* Answers the request. status, type and more are the user's; body is of malloc()
 * if it is given, else lent. */
void stg_inbound_answer(stg_inbound *c, int status, const char *type,
                        const char *more, const char *body, size_t size,
                        bool is_given);

/* Answers with text as it is, head and all; is_last is what it says. */
void stg_inbound_send(stg_inbound *c, const char *text, size_t size,
                      bool is_last);

/* Begins an answer that goes on: in chunks, or for HTTP/1.0 up to the end of the
 * connection. One of HEAD ends at once. */
void stg_inbound_begin_stream(stg_inbound *c, int status, const char *type,
                              const char *more);

/* The next bytes of a stream, one at least; and its end. A reader who has left
 * STG_INBOUND_UNSENT_MAX of it is cut. */
void stg_inbound_send_piece(stg_inbound *c, const char *bytes, size_t size);
void stg_inbound_end_stream(stg_inbound *c);

/* Bytes that wait until the other end reads. */
size_t stg_inbound_unsent(const stg_inbound *c);

/* Never answers: what comes is thrown away, until the other end closes. */
void stg_inbound_hang(stg_inbound *c);

/* Its client has shown who it is, within `head`: it counts there. False: that
 * one has its share of connections, and none of them is idle. */
bool stg_inbound_identify(stg_inbound *c, const void *key);

/* Ends it at once, without an answer. */
void stg_inbound_close(stg_inbound *c);

/* -- for server.c ----------------------------------------------------------- */

/* Begins to read. False: it is closed. */
bool stg_inbound_open(stg_inbound *c);

/* One that is passing makes room for another: where its body was not whole, it
 * is answered with 503, and may linger; where it lingers, it is closed. */
void stg_inbound_make_room(stg_inbound *c);

/* Whether a client has no room for one more connection: then none of its own is
 * closed for it. */
bool stg_httpd_is_full_of(stg_httpd *s, const stg_origin *client);

/* Its file is closed; and so is its handle. */
void stg_httpd_left(stg_httpd *s, const stg_inbound *c);
void stg_httpd_release(stg_httpd *s);

/* -- inbound.c, for inbound_answer.c --------------------------------------- */

void stg_inbound_enter(stg_inbound *c, stg_inbound_phase phase);

/* Its other end is too slow: it is told so where it can be, and closed. */
void stg_inbound_cut(stg_inbound *c);

/* -- inbound.c, for secure.c ------------------------------------------------ */

/* Where the next bytes of requests are read to; and so many are there, or an
 * error of libuv is. */
uv_buf_t stg_inbound_lend(stg_inbound *c);
void stg_inbound_take(stg_inbound *c, ssize_t size, const uv_buf_t *buf);

/* Answers what was no request, and ends it. */
void stg_inbound_refuse(stg_inbound *c, int status, const char *why);

/* The answer is with the system. */
void stg_inbound_sent(stg_inbound *c);

/* -- secure.c, for server.c and inbound.c ----------------------------------- */

/* Where the server's certificate is another one by now, takes that. */
void stg_secure_refresh(stg_httpd *s);

/* The connection is one of TLS from its first byte on. False: no memory. */
bool stg_secure_open(stg_inbound *c);
void stg_secure_free(stg_secure *s); /* NULL is none */

/* Begins to read. Returns an error of libuv, or 0. */
int stg_secure_read(stg_inbound *c);

/* Sends an answer. Returns 1: it is with the system; 0: stg_inbound_sent() or the
 * end will follow, and body, if it is given, is freed by then; an error of libuv
 * otherwise. */
int stg_secure_answer(stg_inbound *c, const uv_buf_t parts[2], bool is_given);

/* Sends bytes at once. Returns an error of libuv, or 0. */
int stg_secure_write(stg_inbound *c, const char *bytes, size_t size);

/* Whether the handshake is over. If it will never be, `why` is noted. */
bool stg_secure_is_up(const stg_inbound *c);
void stg_secure_note(stg_inbound *c, const char *why);

/* The other end is told that nothing more comes. */
void stg_secure_end(stg_inbound *c);

#endif
