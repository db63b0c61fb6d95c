/* send.h - the parts of `stagger send`, from the input to the receipt.
 *
 *   input.c      the file, or standard input, whole or line by line
 *   batch.c      lines as the batch that the hub takes, each with its key
 *   post.c       one request, retried until it is answered
 *   endpoint.c   where it goes, and with which headers
 *   publisher.c  a message, or batch after batch, and what came of them
 *   progress.c   the line on the terminal
 *
 * An idempotency key is made of the run's id and the number of the line, so it is
 * the same whenever the line is sent again, by a retry or by another run with the
 * same --id. All in one thread, on the loop of the publisher. */
#ifndef STAGGER_CLI_SEND_SEND_H
#define STAGGER_CLI_SEND_SEND_H

#include <stdbool.h>
#include <stdint.h>

#include <stagger/ns.h>
#include <stagger/policy.h>
#include <stagger/status.h>
#include <stagger/uv.h>

#include "base/span.h"
#include "base/text.h"
#include "cli/remote.h"
#include "http/client.h"
#include "store/store.h"

enum { SEND_ID_MAX = 200, SEND_HEADERS_MAX = 64, SEND_IN_FLIGHT_MAX = 64 };

typedef enum send_form {
    SEND_WHOLE,  /* the input is one message */
    SEND_LINES,  /* each line is one */
    SEND_NDJSON, /* each line is one as the hub's batches have them */
} send_form;

typedef struct send_header {
    stg_span name, value;
} send_header;

typedef struct send_options {
    send_form form;
    const char *file;  /* NULL: standard input */
    const char *topic; /* NULL: the hub's only one, or its queue */
    const char *key, *type;
    const char *not_before, *expires; /* as the hub reads them */
    stg_remote_options remote; /* its URL: the paths of the API stand behind */
    char id[SEND_ID_MAX + 1]; /* the key, or with lines the beginning of keys */
    bool has_own_id;          /* it was given */
    bool has_no_id;           /* there are no keys, and id is "" */
    send_header headers[SEND_HEADERS_MAX];
    size_t header_count;
    uint32_t in_flight;
    stg_policy policy;
} send_options;

/* -- the input ------------------------------------------------------------- */

/* A file or standard input, through a buffer that grows to the longest line. */

/* The longest line, and the largest message; the hub has a limit of its own. */
enum { SEND_INPUT_MAX = 256 * 1024 * 1024 };

typedef struct send_input {
    int file;
    bool is_regular; /* a read does not wait for anybody */
    bool has_ended;
    uint64_t total; /* bytes, of a regular file */
    uint64_t lines; /* given out, empty ones too */
    char *bytes;
    size_t at, size, room; /* what is read and not given out is [at, size) */
    size_t given;          /* where the last line began */
    size_t searched;       /* and up to here without an end of line */
} send_input;

/* path NULL: standard input. Returns 0 or errno. */
int stg_send_input_open(send_input *in, const char *path);
void stg_send_input_close(send_input *in);

/* Whether a read would not wait. */
bool stg_send_input_is_ready(const send_input *in);

/* One read: 0 or errno. At the end of the input has_ended is set; EFBIG is for
 * a line above SEND_INPUT_MAX. */
int stg_send_input_fill(send_input *in);

/* The next line without its end, "\n" or "\r\n"; false if there is none yet.
 * Lent until the next fill. */
bool stg_send_input_line(send_input *in, stg_span *line);

/* The last line that was given out comes again. */
void stg_send_input_return(send_input *in);

/* All that is read. */
stg_span stg_send_input_whole(const send_input *in);

/* -- a batch --------------------------------------------------------------- */

/* Lines as NDJSON. */

enum { SEND_BATCH_LINES = 500, SEND_BATCH_BYTES = 1024 * 1024 };

typedef struct send_batch {
    stg_text text;
    size_t count;
    uint64_t lines[SEND_BATCH_LINES]; /* where each came from, from 1 */
    uint64_t bytes;                   /* of the input */
} send_batch;

/* What all messages of --lines have, made once: the fields "key",
 * "content_type", "not_before", "expires" and "headers", each behind a comma. False: no memory. */
bool stg_send_batch_fields(char **fields, const send_options *o);

typedef enum send_added {
    SEND_ADDED,
    SEND_ADD_FULL,    /* not now: the batch goes out first */
    SEND_ADD_REFUSED, /* the line is not a message; *why has words */
    SEND_ADD_FAILED,  /* out of memory */
} send_added;

/* Adds line number `number`. An empty line is nothing, and added. */
send_added stg_send_batch_add(send_batch *b, const send_options *o,
                              const char *fields, stg_span line,
                              uint64_t number, const char **why);

/* Empties it, and keeps its memory. */
void stg_send_batch_clear(send_batch *b);
void stg_send_batch_free(send_batch *b);

/* -- the line on the terminal ---------------------------------------------- */

/* How many messages are accepted, how fast, and how long it will take. */

typedef struct send_progress {
    stg_ns begun_at, shown_at;
    uint64_t total;    /* bytes; 0: unknown */
    uint64_t bytes;    /* of what was accepted */
    uint64_t messages; /* accepted */
    char trouble[40];  /* the cause of the last wait; "" after a success */
    bool is_shown;     /* a terminal is there */
    bool is_line_open;
} send_progress;

void stg_send_progress_begin(send_progress *p, uint64_t total, stg_ns now);

/* Writes the line over the last one. */
void stg_send_progress_show(send_progress *p, stg_ns now);

/* Ends the line, if there is one. */
void stg_send_progress_finish(send_progress *p);

/* -- where it goes --------------------------------------------------------- */

/* The hub's URL with the path of the API, and the token. Returns STG_INVALID or
 * STG_IO with words. */
stg_status stg_send_endpoint_open(stg_endpoint **endpoint, stg_client *c,
                                  const send_options *o, stg_error *err);

/* The headers of a message that is sent whole: "Name: value\r\n" each. The
 * caller frees them. False: no memory. */
bool stg_send_headers_make(char **headers, const send_options *o);

/* -- a request ------------------------------------------------------------- */

/* A message or a batch, retried by the policy until the hub has answered for
 * good. */

enum { SEND_ID_TEXT = STG_MESSAGE_ID_MAX, SEND_DETAIL_MAX = 512 };

/* State that all posts of a run share; kept by each post. */
typedef struct send_line {
    uv_loop_t *loop;
    stg_endpoint *endpoint;
    const stg_policy *policy;
    stg_peer *peer;
    const stg_hook *hook;
    bool has_keys; /* messages have keys: an unknown outcome is retried */
} send_line;

typedef struct send_post send_post;

/* The end; the post may be used again. */
typedef void send_post_fn(send_post *p);

struct send_post {
    void *ctx;              /* the caller's */
    send_batch batch;       /* the caller's, where the body is one */
    stg_span headers, body; /* kept by the caller until the end */
    size_t messages;        /* how many ids the answer is to have */
    /* The result, at the end: */
    stg_report report;            /* how the operation went */
    bool is_accepted;             /* the hub has all messages */
    int status;                   /* the last answer's; 0: there was none */
    char detail[SEND_DETAIL_MAX]; /* words of the hub or the system, or "" */
    size_t line; /* line of the batch that detail is about, from 1; 0: none */
    char first[SEND_ID_TEXT], last[SEND_ID_TEXT]; /* ids of these messages */
    /* The rest is private. */
    stg_uv op;
    const send_line *to;
    send_post_fn *done;
    stg_exchange *exchange; /* of the attempt under way */
    uint32_t attempt;
    uint32_t exchanges; /* exchanges under way, abandoned ones included */
    bool has_ended;
};

/* Begins. done is called from the loop. Returns STG_INVALID, and calls nothing,
 * for a policy that cannot be used; p->report then has the reason. */
stg_status stg_send_post_start(send_post *p, const send_line *to,
                               send_post_fn *done);

/* Ends it soon; nothing for a post that is not under way, or all zeros. */
void stg_send_post_cancel(send_post *p);

/* -- the whole ------------------------------------------------------------- */

/* Carries `stagger send` out: blocks in a loop of its own. What failed is told on
 * stderr as it fails. */

typedef struct send_result {
    uint64_t messages;                            /* accepted */
    char first[SEND_ID_TEXT], last[SEND_ID_TEXT]; /* of the first and the last
                                                     line of them */
    bool has_failed;
    int refused;    /* the status that refused it for good; 0: none, and
                       nobody knows what the hub has */
    int stopped_by; /* a signal, or 0 */
} send_result;

/* Publishes all of the input, which is open. Returns STG_INVALID or STG_IO, and
 * has sent nothing, for a URL, a header or a token file that cannot be used. */
stg_status stg_send_publish(const send_options *o, send_input *in,
                            send_result *result, stg_error *err);

#endif
