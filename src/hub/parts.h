/* parts.h - the parts that a hub has once each: its attempts, its intake, its
 * source, and the watch for its alerts. Private to the hub.
 *
 * All on the loop's thread. Each is zeroed before it is opened; hub.c says in
 * which order they are opened and closed.
 *
 * A part that keeps a text or a list of the settings has it of hub.fixed, which
 * stays to the end of the hub, or copies it. Three keep what a reload exchanges,
 * and are given the next one before the old one is freed: targets (their
 * settings, and flow's lanes their policies and filters), the intake (webhooks),
 * and the watch (receivers of alerts). */
#ifndef STAGGER_HUB_PARTS_H
#define STAGGER_HUB_PARTS_H

#include <uv.h>

#include <stagger/rng.h>

#include "alerts/alerts.h"
#include "base/list.h"
#include "base/memory.h"
#include "config/targets.h"
#include "host/lines.h"
#include "http/sign.h"
#include "http/trace.h"
#include "hub/hub.h"
#include "hub/target.h"
#include "ingress/ingress.h"
#include "kafka/kafka.h"
#include "sources/source.h"
#include "store/parcel.h"
#include "store/receipts.h"

/* -- signatures ---------------------------------------------------------- */

/* Signatures that take long, made on libuv's threads.
 *
 * Those that were asked for in a turn of the loop go to the threads together, in
 * batches, so that the loop pays for a batch and not for each. */

typedef struct stg_signing stg_signing;

/* The lines of a signature, lent for the call; at is NULL: there was no memory. */
typedef void stg_signed_fn(void *ctx, stg_span lines);

typedef struct stg_signings {
    uv_loop_t *loop;
    stg_list asked; /* in this turn */
    size_t count;   /* of them */
    size_t threads; /* of libuv */
} stg_signings;

void stg_signings_init(stg_signings *all, uv_loop_t *loop);

/* Asks for one. Body and type of the request are kept until `done`, which is called
 * once, in a later turn, and cannot be taken back; the rest is copied. The signer is
 * held. False: there is no memory. */
bool stg_signings_ask(stg_signings *all, stg_signer *s,
                      const stg_sign_request *r, stg_signed_fn *done,
                      void *ctx);

/* Sends those of this turn to the threads. */
void stg_signings_flush(stg_signings *all);

/* -- attempts ---------------------------------------------------------------- */

/* One delivery on its way: a request made of a message, and what
 * came of it told to flow.
 *
 * A request carries
 *
 *     Idempotency-Key, Stagger-Message   the message's id, over all attempts
 *     Stagger-Attempt                    from 1
 *     Stagger-Attempts-Max               left out where there is no limit
 *     Stagger-Key                        the ordering key, if it has one
 *     Stagger-Hops                       hubs that it came through, this one too
 *     Content-Type                       as it was published, if it was
 *     traceparent                        with a parent id of the attempt's own:
 *                                        see trace.h
 *
 * and the headers that the intake has kept of the message. A batch has
 *
 *     Idempotency-Key    the batch's id, see batch.h
 *     Stagger-Batch      how many messages it has
 *     Stagger-Messages   their ids, "ID, ID", as long as these have 4 KiB
 *     Stagger-Hops       the most of any of them
 *     Content-Type       of its format */

typedef struct stg_attempt stg_attempt;

typedef struct stg_attempts {
    stg_hub *hub;
    stg_pool free;
    stg_list under_way; /* those that are a request each */
    stg_list batches;   /* of the others */
    stg_signings signings;
    stg_trace_mode trace;
    uint64_t share; /* of the traces that begin here: see stg_trace_put() */
    stg_rng rng;    /* of parent ids */
    uint64_t epoch; /* epoch of messages that the queue accepts */
    char prefix[STG_ID_TEXT_MAX]; /* epoch, hyphen */
    size_t prefix_size;
    char headers[2048]; /* of the request that is being made, if they fit */
} stg_attempts;

void stg_attempts_init(stg_attempts *a, stg_hub *hub, uint64_t epoch,
                       stg_trace_mode trace);

/* STG_ACTION_START: answered by stg_flow_ended(), at once if there is no
 * memory. */
void stg_attempt_start(stg_attempts *all, const stg_action *action);

/* Behind the starts of a turn: those whose signatures take long are signed. */
static inline void stg_attempts_flush(stg_attempts *all)
{
    if (all->signings.count > 0)
        stg_signings_flush(&all->signings);
}

/* STG_ACTION_CANCEL. */
void stg_attempt_cancel(stg_attempt *a);

/* Ends all, unasked: flow is not told any more. */
void stg_attempts_drop(stg_attempts *all);

/* Whether nothing is under way, nor a request of what was dropped. */
bool stg_attempts_are_over(const stg_attempts *all);

/* Frees what is free; nothing is under way. */
void stg_attempts_close(stg_attempts *all);

/* What the hub logs of an attempt. */
typedef struct stg_attempt_end {
    const stg_target *target;
    uint32_t partition;
    uint64_t position, number, number_max;
    stg_ns took;
    int status;
    const char *detail;
    const stg_verdict *verdict;
    const stg_trace *trace;
} stg_attempt_end;

/* -- receipts ---------------------------------------------------------------- */

/* A copy of receipts in a file, or in a topic: receipt_copy.c. */
typedef struct stg_receipt_copy {
    stg_hub *hub;
    const stg_letters_settings
        *to;                    /* hub.fixed has it; NULL: there is no copy */
    stg_text gathered, writing; /* lines */
    size_t gathered_count, writing_count;
    stg_append *records; /* of a topic: what is being written */
    stg_lines lines; /* appends to a file; the pool uses it while is_writing */
    char *store;     /* path of the store, owned; NULL: a database */
    uv_work_t work;
    size_t failed; /* lines of the last batch */
    int error;     /* its errno; of a topic: 0 */
    bool is_writing, is_troubled;
    uint64_t copied, dropped;
    void (*closed)(void *ctx);
    void *closed_ctx;
} stg_receipt_copy;

bool stg_receipt_copy_is_wanted(const stg_letters_settings *to);

/* to is kept, and belongs to hub.fixed; where none is wanted nothing is opened. Returns an error with words
 * if its file cannot be appended to; else it is a part that the hub waits for
 * (handles). */
stg_status stg_receipt_copy_open(stg_receipt_copy *c, stg_hub *hub,
                                 const stg_letters_settings *to,
                                 stg_error *err);
void stg_receipt_copy_take(stg_receipt_copy *c, const stg_receipt *rows,
                           size_t count);
/* closed: when all is written; not called where there is no copy. */
void stg_receipt_copy_close(stg_receipt_copy *c, void (*closed)(void *ctx),
                            void *ctx);

/* Receipts on their way to the store, to a file or to both. Zeroed before they are
 * opened. */
typedef struct stg_hub_receipts {
    stg_hub *hub;
    bool is_on;
    bool is_out;    /* the store has a batch, and has not answered */
    bool is_kept;   /* by the store */
    uint64_t share; /* of messages: those whose hash is not above */
    stg_receipt *rows;
    size_t count, room;
    stg_deadline due;
    uint64_t stored, dropped;
    stg_receipt_copy copy;
} stg_hub_receipts;

/* The fixed settings of the hub are there. Returns an error with words if the copy
 * cannot be written. */
stg_status stg_hub_receipts_open(stg_hub_receipts *r, stg_hub *hub,
                                 stg_error *err);

/* An attempt has ended, and receipts are on. */
void stg_hub_receipts_add(stg_hub_receipts *r, const stg_attempt_end *e,
                          const stg_outcome *outcome);

/* Whether the message's attempts get receipts. */
bool stg_hub_receipts_has(const stg_hub *h, uint32_t partition,
                          uint64_t position);

/* Gives the store what is left; the store is open. closed: when the copy is
 * written; not called where there is none. */
void stg_hub_receipts_close(stg_hub_receipts *r, void (*closed)(void *ctx),
                            void *ctx);

/* -- spans ------------------------------------------------------------------- */

/* Why spans were not exported. */
typedef enum stg_spans_drop {
    STG_SPANS_FULL,    /* as many waited as may */
    STG_SPANS_REFUSED, /* the collector does not want them */
    STG_SPANS_UNSENT,  /* it was not reached in time, or before the stop */
    STG_SPANS_DROPS
} stg_spans_drop;

enum { STG_SPANS_QUEUE = 2048 };

/* Spans of attempts on their way to a collector: `traces` of the settings. Zeroed
 * before it is opened. */
typedef struct stg_spans {
    stg_hub *hub;
    bool is_on;
    bool is_troubled; /* the last request failed, and that was told */
    uint64_t share;   /* of traces: those whose lower half is not above */
    stg_endpoint *endpoint;
    stg_policy policy;
    stg_retry retry;              /* of the batch under way */
    char *head;                   /* of each request: the resource */
    stg_text waiting;             /* spans, each with a comma behind it */
    size_t ends[STG_SPANS_QUEUE]; /* of each of them */
    size_t count;
    stg_text body;  /* the batch under way */
    size_t sending; /* its spans; 0: there is none */
    stg_exchange *exchange;
    stg_deadline due; /* the next attempt of a batch, or the next batch */
    uint64_t exported, dropped[STG_SPANS_DROPS];
    void (*closed)(void *ctx); /* NULL: it goes on */
    void *closed_ctx;
    stg_ns close_at; /* the end of what may still be sent */
} stg_spans;

/* The share of traces of which the attempts are exported, for stg_trace_put(). */
uint64_t stg_spans_share(const stg_settings *o);

/* The client of the hub is there. Returns an error with words for settings that no
 * endpoint can have. */
stg_status stg_spans_open(stg_spans *s, stg_hub *hub, stg_error *err);

/* An attempt has ended, and is_on. */
void stg_spans_add(stg_spans *s, const stg_attempt_end *e,
                   const stg_outcome *outcome);

/* Sends what waits, in the drain time at most, and calls closed, perhaps from
 * within; the client is still open. */
void stg_spans_close(stg_spans *s, void (*closed)(void *ctx), void *ctx);

/* -- the intake -------------------------------------------------------------- */

/* The hub's ingress, connected to its store.
 *
 * Zeroed before it is opened. */

typedef struct stg_intake {
    stg_hub *hub;
    stg_ingress *ingress;  /* NULL: not open */
    bool is_stopping;      /* was told to stop and has not */
    stg_deadline draining; /* the end of what may still be acknowledged */
    uint64_t accepted;     /* messages, of what is closed */
    char address[120];     /* of the ingress; "": none */
    uint16_t port;
} stg_intake;

/* The largest body of a message. */
size_t stg_intake_message_max(uint64_t memory_max);

/* The hub's store is open. Adds one to *parts if the intake is to be closed. */
stg_status stg_intake_open(stg_intake *in, stg_hub *hub, const stg_settings *o,
                           unsigned *parts, stg_error *err);

/* Makes what TLS needs of the settings, and drops it. STG_INVALID: a file cannot be
 * used, with words. */
stg_status stg_intake_check(const stg_settings *o, stg_error *err);

/* Reads what of these settings can change while it is open: stg_ingress_use() puts
 * that in use. Their webhooks are kept then. Returns what stg_ingress_prepare()
 * does. */
stg_status stg_intake_prepare(stg_intake *in, const stg_settings *o,
                              stg_ingress_next **next, stg_error *err);

/* No message is taken from here on. stg_hub_finish() is called when all were
 * answered. */
void stg_intake_stop(stg_intake *in);

/* Closes it, stopped or not; closed is called if it was open. */
void stg_intake_close(stg_intake *in, void (*closed)(void *ctx), void *ctx);

/* Why the hub takes no messages now; NULL: it does. For status. */
const char *stg_intake_missing(const stg_hub *h);

/* Messages taken so far. */
uint64_t stg_intake_accepted(const stg_intake *in);

/* -- the source -------------------------------------------------------------- */

/* Opens the source that the settings name, and gives it what it needs
 * of the hub. Flow's actions go to it by its table: see sources/source.h.
 *
 * All on the loop's thread. */

/* What the hub has for its source. Zeroed before it is made. */
typedef struct stg_hub_source {
    stg_source_host host;
    bool is_open;
    stg_deadline retention; /* of what waits for targets that are gone */

    /* -- texts that a Kafka source keeps, beside those of hub.fixed */
    char *brokers;                  /* "host:port,host:port" */
    stg_kafka_property *properties; /* an array; texts are hub.fixed's */
    char group[STG_SHARD_GROUP_MAX];
} stg_hub_source;

/* Before the store is opened, which is to know who reads bodies again and who
 * writes copies of dead letters. Makes what the settings name, unless the hub was
 * given one. Returns what the source's own function does. */
stg_status stg_hub_source_make(stg_hub *h, const stg_settings *o,
                               stg_store_options *store, stg_error *err);

/* Makes the options of a source, and reaches nothing. STG_INVALID: the source does
 * not take them, with words. The texts that it keeps are in h. */
stg_status stg_hub_source_check(stg_hub *h, const stg_settings *o,
                                stg_error *err);

/* Before flow's cursors are restored: assigns what is the source's from the start,
 * and the rows that a file has of partitions which are not this hub's now. */
stg_status stg_hub_source_restore(stg_hub *h, stg_error *err);

/* Begins to read; *parts counts what is to be closed. */
stg_status stg_hub_source_open(stg_hub *h, unsigned *parts, stg_error *err);

/* closed is called once for what stg_hub_source_open() has counted. */
void stg_hub_source_close(stg_hub *h, void (*closed)(void *ctx), void *ctx);

/* The store is closed. */
void stg_hub_source_free(stg_hub *h);

/* Whether the messages of this partition are of one of the topics; all of them
 * where there are none. */
bool stg_hub_source_is_of(const stg_hub *h, uint32_t partition,
                          const stg_texts *topics);

/* -- the watch --------------------------------------------------------------- */

/* The hub's facts for its alerts.
 *
 * What happens is said as it happens: a group is durable, flow tells, the store
 * is in trouble, a target answers 410. What grows slowly is looked at, some
 * targets a turn, every STG_WATCH_PAUSE while anything happens or anything
 * waits: lag, what the log keeps for a lane, certificates. An idle hub is not
 * woken. All on the loop's thread. */

#define STG_WATCH_PAUSE (5 * STG_S)

typedef struct stg_watch {
    stg_hub *hub;
    stg_alerts *alerts; /* NULL: there are none */
    stg_deadline look;  /* the next targets */
    size_t at;          /* the next one of them */
    bool is_busy;       /* one of this round has something that waits */
    bool is_direct;     /* a target of this round is tried without a proxy */
    bool is_renewing;   /* the first round since targets or settings changed */
    stg_ns looked_at;   /* when the round began */
    const void *settings; /* the hub's when it began: compared, never read */
    uint64_t changes;     /* targets' changes, then */
} stg_watch;

/* Opens the alerts; the client, the targets and flow are there. Returns what
 * stg_alerts_open() does. Zeroed before; to be closed in any case. */
stg_status stg_watch_open(stg_watch *w, stg_hub *hub,
                          const stg_alert_options *o, stg_error *err);

/* closed is called when receivers have had their time, perhaps from within. */
void stg_watch_close(stg_watch *w, void (*closed)(void *ctx), void *ctx);

/* Something has happened: there may be something to look at. Cheap. */
void stg_watch_note(stg_watch *w, stg_ns now);

/* A target has other settings by a call: receivers may want other alerts of it. */
void stg_watch_renew(stg_watch *w);

/* -- facts ----------------------------------------------------------------- */

/* A group is durable: its dead letters count. */
void stg_watch_stored(stg_watch *w, const stg_group *g, stg_ns now);

/* STG_ACTION_TELL. */
void stg_watch_tell(stg_watch *w, const stg_action *a, stg_ns now);

/* The store is in trouble, or is not any more (why is NULL). */
void stg_watch_store(stg_watch *w, stg_alert_trouble what, const char *why,
                     stg_ns now);

/* The target answered 410; and now it took a message again. */
void stg_watch_gone(stg_watch *w, stg_target *t, stg_ns now);
void stg_watch_back(stg_watch *w, stg_target *t, stg_ns now);

/* A call, or `disable-after`, has paused the target or has let it go on. */
void stg_watch_paused(stg_watch *w, const stg_target *t, stg_ns now);

/* Nothing can be sent to it, for no token can be got (why); or not any more (why is
 * NULL). */
void stg_watch_token(stg_watch *w, const stg_target *t, const char *why,
                     stg_ns now);

/* It was disabled just now, by this hub: its owner is told, if it has one. */
void stg_watch_tell_owner(stg_watch *w, const stg_target *t, stg_ns now);

/* The lane's target is about to be freed. */
void stg_watch_forget(stg_watch *w, uint32_t lane, stg_ns now);

#endif
