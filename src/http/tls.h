/* tls.h - TLS without a socket: records in and out by memory. Private to the
 * client and the server.
 *
 * TLS 1.2 and later by OpenSSL. A context is shared by all who want the same of
 * it; a session is of one connection. Bytes that came in are lent for one run
 * of calls; bytes to go out are appended to a buffer that its user empties. */
#ifndef STAGGER_HTTP_TLS_H
#define STAGGER_HTTP_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include <stagger/status.h>

#include "base/list.h"

typedef struct stg_tls_context stg_tls_context;
typedef struct stg_tls stg_tls;

/* The settings that give the files, as errors name them; static. */
typedef struct stg_tls_names {
    const char *certificate, *key, *ca;
} stg_tls_names;

typedef struct stg_tls_options {
    const stg_tls_names *names; /* NULL: those of a target */
    const char *ca_file; /* NULL: the system's; of a server: no client is asked
                            for a certificate */
    const char *certificate_file, *key_file;
    bool is_unverified; /* of a server: a client may have no certificate, but
                           one that it has is checked */
    bool is_server;
} stg_tls_options;

/* Returns the names of the files in error messages. */
const stg_tls_names *stg_tls_names_of(const stg_tls_options *o);

/* One that is in the list already, or a new one in it. STG_INVALID: a file that
 * cannot be read or used, named in words. */
stg_status stg_tls_context_take(stg_tls_context **context, stg_list *contexts,
                                const stg_tls_options *o, stg_error *err);
void stg_tls_context_release(stg_tls_context *context);

/* Whether it was made with these options, and of the files as they are. */
bool stg_tls_context_matches(const stg_tls_context *context,
                             const stg_tls_options *o);

/* What it was made of; lent. */
stg_tls_options stg_tls_context_options(const stg_tls_context *context);

/* Whether a file that it was made of is another one by now. */
bool stg_tls_context_is_stale(const stg_tls_context *context);

/* Until when its own certificate is valid, in seconds since 1970; 0: there is
 * none. */
int64_t stg_tls_own_until(const stg_tls_context *context);

/* name: for SNI and the check; is_address: it is one of IP. Of a server's context
 * name is NULL. NULL: no memory. */
stg_tls *stg_tls_new(stg_tls_context *context, const char *name,
                     bool is_address);
void stg_tls_free(stg_tls *t);

/* The same of the other side's, after the handshake. */
int64_t stg_tls_peer_until(const stg_tls *t);

typedef enum stg_tls_result {
    STG_TLS_DONE,   /* the handshake is over, or bytes came or went */
    STG_TLS_WANTS,  /* more from the other side, or room in the buffer */
    STG_TLS_CLOSED, /* the other side said that it ends */
    STG_TLS_FAILED, /* see stg_tls_why() */
} stg_tls_result;

/* What came; lent until all is taken. */
void stg_tls_feed(stg_tls *t, const char *bytes, size_t size);

/* What is to go out: `size` bytes of it, and then none. */
const char *stg_tls_out(stg_tls *t, size_t *size);
void stg_tls_sent(stg_tls *t);

/* Sends it (wire.c). Returns an error of libuv, or 0. What is not taken at once
 * is copied, for the buffer is shared by all sessions of the context: `written`
 * is called when that has gone, and frees request->data. */
int stg_tls_flush(stg_tls *t, uv_stream_t *stream, uv_write_cb written);

stg_tls_result stg_tls_shake_hands(stg_tls *t);
stg_tls_result stg_tls_read(stg_tls *t, char *bytes, size_t room, size_t *size);
stg_tls_result stg_tls_write(stg_tls *t, const char *bytes, size_t size,
                             size_t *taken);

/* Says to the other side that nothing more comes. */
void stg_tls_end(stg_tls *t);

/* All that came was read: nothing of a record is left in it. */
bool stg_tls_is_quiet(const stg_tls *t);

/* It has nothing to do for now: gives back what it can of its memory, 16 to 32
 * KiB. Allowed at any time. */
void stg_tls_rest(stg_tls *t);

/* Why it failed, for people, with the check's own words; and the alert that the
 * other side sent, or -1. */
void stg_tls_why(const stg_tls *t, char *text, size_t size, int *alert);

#endif
