/* sink.h - what the parts of `stagger sink` share: its settings and its state.
 *
 * The server is the hub's (http/server.h), with no limits of time or number.
 *
 *   replies     what a receipt is answered with
 *   seen        how often each delivery came
 *   verify      whether it was signed
 *   tally       the counts, and what is shown of them
 *   log         a line of JSON a receipt
 *   connection  what is done with a request
 *   server      where it listens, and how long */
#ifndef STAGGER_CLI_SINK_SINK_H
#define STAGGER_CLI_SINK_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <stagger/ns.h>
#include <stagger/rng.h>
#include <stagger/status.h>

#include "base/text.h"
#include "cli/sink/seen.h"
#include "core/reader.h"
#include "host/process.h"
#include "http/server.h"
#include "http/verify.h"
#include "ingress/address.h"
#include "store/parcel.h"

/* -- answers ---------------------------------------------------------------- */

typedef enum sink_deed {
    SINK_ANSWER,
    SINK_RESET, /* the connection, with the request read */
    SINK_HANG,  /* no answer, ever */
} sink_deed;

enum {
    SINK_REPLIES_MAX = 64,
    SINK_ANSWER_MAX = 256,
    SINK_AFTER_MAX = 64,
    SINK_ANSWERED_MAX = 16
};

typedef struct sink_answer {
    char text[SINK_ANSWER_MAX]; /* not terminated */
    size_t size;
} sink_answer;

typedef struct sink_reply {
    sink_deed deed;
    int status;          /* 200 to 599; 0 without an answer */
    uint32_t upto;       /* the sum of times, or of weights, up to this one */
    sink_answer kept;    /* precomputed: the connection goes on */
    sink_answer closing; /* or ends behind it */
} sink_reply;

typedef enum sink_after {
    SINK_AFTER_NONE,
    SINK_AFTER_TEXT, /* as it is */
    SINK_AFTER_DATE, /* seconds from now, as a date */
} sink_after;

typedef struct sink_replies {
    sink_reply list[SINK_REPLIES_MAX];
    size_t count;
    bool is_random;
    sink_after after;
    char after_text[SINK_AFTER_MAX];
    uint32_t after_s;
    int64_t made_at; /* the second for which the dates were written */
} sink_replies;

/* Reads 503x2,reset,200 (is_random: 200:95,503:5). Returns NULL, or what is
 * wrong, for people. */
const char *stg_sink_replies_read(sink_replies *r, const char *text,
                                  bool is_random);

/* Reads --retry-after: 3, date:3, or a text that is sent as it is. */
const char *stg_sink_replies_after(sink_replies *r, const char *text);

/* Writes the answers; after the options, before the first is asked for. */
void stg_sink_replies_make(sink_replies *r);

/* For attempt number `attempt` (from 1) of a delivery. */
const sink_reply *stg_sink_replies_choose(sink_replies *r, uint64_t attempt,
                                          stg_rng *rng);

/* The bytes to send; lent until the next call. */
const sink_answer *stg_sink_replies_answer(sink_replies *r,
                                           const sink_reply *reply,
                                           bool is_closing);

/* "200", "reset" or "hang"; lent until the next call. */
const char *stg_sink_reply_name(const sink_reply *reply,
                                char text[SINK_ANSWERED_MAX]);

/* -- counts ----------------------------------------------------------------- */

enum { SINK_STATUS_MAX = 600 };

typedef struct sink_tally {
    uint64_t receipts;
    uint64_t by_status[SINK_STATUS_MAX];
    uint64_t resets, hangs;
    uint64_t unnamed;    /* receipts with neither id nor key */
    uint64_t duplicates; /* of what was answered 2xx before */
    uint64_t broken;     /* requests that were no HTTP, or broke off */
    uint64_t bytes;      /* of bodies */
    uint64_t shown;      /* receipts at shown_at */
    stg_ns shown_at;
    bool is_line_open; /* the live line stands on the terminal */
} sink_tally;

void stg_sink_tally_add(sink_tally *t, const sink_reply *reply);

/* Writes the live line over the last one; to a terminal. */
void stg_sink_tally_show(sink_tally *t, stg_ns now);

/* Ends the live line, if there is one. */
void stg_sink_tally_finish(sink_tally *t);

/* Prints the summary. messages: how many different ones came. */
void stg_sink_tally_sum(sink_tally *t, uint64_t messages, FILE *file);

/* -- the log ---------------------------------------------------------------- */

enum { SINK_TEXT_MAX = 256, SINK_LOG_MAX = 65536 };

typedef struct sink_receipt {
    stg_span method, path, id, key; /* of size 0: none */
    uint64_t attempt;
    const char *answered; /* "200", "reset", "hang" */
    uint64_t size;
    const unsigned char *sha256; /* 32 bytes */
} sink_receipt;

typedef struct sink_log {
    int file; /* -1: there is no log */
    char lines[SINK_LOG_MAX];
    size_t size;
    int error; /* errno of the write that failed */
} sink_log;

/* Returns 0 or errno. path NULL: no log. */
int stg_sink_log_open(sink_log *l, const char *path);
void stg_sink_log_close(sink_log *l);

static inline bool stg_sink_log_is_open(const sink_log *l)
{
    return l->file >= 0;
}

void stg_sink_log_add(sink_log *l, const sink_receipt *r);

/* Writes what was gathered. After an error it is thrown away: see error. */
void stg_sink_log_flush(sink_log *l);

/* -- a sink ----------------------------------------------------------------- */

typedef struct sink_options {
    const char *listen; /* [ADDRESS:]PORT */
    stg_ns delay_min, delay_max;
    const char *tls_cert, *tls_key; /* both, or NULL: plain HTTP */
    uint64_t count; /* receipts before the end; UINT64_MAX: none */
    const char *log;
    bool is_closing; /* the connection, after each answer */
    bool is_quiet;
} sink_options;

enum { SINK_HEADER_MAX = 1024 * 1024, SINK_VERIFIERS_MAX = 8 };

typedef struct sink {
    sink_options *o;
    sink_replies replies;
    stg_verifier *verifiers[SINK_VERIFIERS_MAX];
    size_t verifier_count; /* 0: nothing is verified */
    sink_seen seen;
    sink_tally tally;
    sink_log log;
    stg_rng rng;
    uv_loop_t loop;
    uv_timer_t timer; /* of the live line */
    stg_signals signals;
    stg_listen_address address;
    stg_files files;
    stg_httpd http;
} sink;

/* Whether the receipts that were asked for are here. */
static inline bool stg_sink_is_done(const sink *s)
{
    return s->tally.receipts >= s->o->count;
}

/* -- signatures ------------------------------------------------------------- */

/* One more secret: the text itself, or what is in the file of that name. Returns
 * STG_INVALID or STG_IO with words. */
stg_status stg_sink_verify_with(sink *s, const char *text, stg_error *err);

/* False: why says why. */
bool stg_sink_verify(const sink *s, const stg_request *r, const stg_text *body,
                     stg_error *why);
void stg_sink_verify_close(sink *s);

/* -- connections ------------------------------------------------------------ */

/* Of sink.http, whose ctx is the sink. */
extern const stg_httpd_hooks stg_sink_hooks;

/* -- the server ------------------------------------------------------------- */

/* Listens where the options say, and says so on stdout; SIGINT and SIGTERM are
 * the loop's from now on. Returns STG_INVALID or STG_IO with words. */
stg_status stg_sink_server_open(sink *s, stg_error *err);

/* Serves until a signal comes, the receipts are counted, or the log cannot be
 * written (STG_IO). */
stg_status stg_sink_server_run(sink *s, stg_error *err);

void stg_sink_server_close(sink *s);

#endif
