/* source.h - a log that flow reads: what each kind of source must do.
 *
 * A source is a table of functions and a struct of its own that begins with a
 * stg_source. The embedded queue is one (sources/queue.c), topics of Kafka are
 * another (kafka/source.c), a file of lines is the smallest example of one with
 * partitions that come and go (tests/sources/lines_source.c). The hub, its
 * metrics, its status and its alerts know a source by this header alone.
 *
 * The life of a source:
 *
 *     made        by its own function; the hub fills in `host`
 *     restore     the store is open and flow is there: before flow starts
 *     open        flow runs. What the source finds is claimed in the store
 *                 (stg_store_claim), assigned to flow (stg_flow_assign) and read
 *                 from where flow says (stg_flow_view_partition)
 *     read, catch_up, commit, release, fenced
 *                 flow's actions, as they come; see flow/flow.h
 *     close       no answer and no event goes to flow or the store after it
 *     free        the store is closed, too
 *
 * What a source promises:
 *
 *   - A read is answered by stg_flow_messages(), and a merged one
 *     (STG_ANY_PARTITION) by one call for each partition and then
 *     stg_flow_read_end(), once there is something. A catch-up read is
 *     always answered, if need be by stg_flow_unread().
 *   - Reads that may be outstanding at once: of main reads one for each partition
 *     that is assigned by itself, and one merged one for all others together; one
 *     catch-up read, of all partitions; and any number of rereads, which the
 *     source does one after the other. Main and catch-up read go on side by side.
 *   - Positions may have gaps (markers of transactions, a compacted log): `next`
 *     of an answer says up to where all was read, and lag() counts the gaps.
 *   - Positions of a partition only grow, and the same position is the same
 *     message for ever. Where a log begins anew under its old name, its number
 *     in the store is another one (stg_claim_ask.previous).
 *   - What was committed need not be kept. What was not is read again after a
 *     restart: flow's cursors say from where.
 *   - A partition that goes to another process is revoked in flow first
 *     (stg_flow_revoke, stg_flow_lose) and let go of when flow has released it.
 *
 * Threads: every function is called on the loop's thread and does not block. A
 * source that has threads brings their news back to the loop by itself; no other
 * thread touches host, flow or store. What a call is given is lent for its time.
 * Calls are made a batch, never a message. */
#ifndef STAGGER_SOURCES_SOURCE_H
#define STAGGER_SOURCES_SOURCE_H

#include "flow/flow.h"
#include "host/deadlines.h"
#include "host/log.h"
#include "store/store.h"

typedef struct stg_source stg_source;

/* What a source needs of who runs it. The hub owns it; it stays until the source
 * is freed. */
typedef struct stg_source_host {
    uv_loop_t *loop;
    stg_deadlines *deadlines;
    stg_log *log;     /* may be NULL */
    stg_store *store; /* from restore() on */
    stg_flow *flow;   /* from restore() on */
    /* The store is this process's alone: rows of a partition stay in flow when
     * the partition goes. Else they go with it, and each claim ends by
     * stg_store_unclaim(). */
    bool keeps_rows;

    /* Nothing new is to be claimed: the process stops, or the store is broken. */
    bool (*is_ending)(void *ctx);
    /* Flow was told something: it is to be asked for its actions. */
    void (*wake)(void *ctx);
    /* For the operators: the log cannot be read, or what was read is in doubt;
     * NULL: it can again. */
    void (*alert)(void *ctx, const char *why);
    void *ctx;
} stg_source_host;

/* A partition that is read. topic is lent until the loop goes on. */
typedef struct stg_source_view {
    const char *topic;
    uint32_t partition; /* of the topic */
    uint32_t number;    /* that the store gave it: flow's partition */
    uint64_t begin;     /* the oldest position that the log has, */
    uint64_t end;       /* and the next that it will give; as is known */
    uint64_t next;      /* where it is read on */
    uint64_t committed; /* all below it is settled for good: 0 at first */
} stg_source_view;

/* A number for the metrics. Those of one name follow each other, and differ by
 * their result. Texts are static. */
typedef struct stg_source_fact {
    const char *name;   /* name of the metric: "stagger_kafka_up" */
    const char *help;   /* a sentence */
    const char *result; /* the value of its label `result`; NULL: none */
    bool is_counter; /* only grows, and its name ends in _total; else a gauge */
    uint64_t value;
} stg_source_fact;

enum { STG_SOURCE_FACTS_MAX = 32 };

typedef void stg_copied_fn(void *ctx, size_t copied);

/* The table. A function that is marked so may be NULL. */
typedef struct stg_source_ops {
    /* One word of a-z. The metrics of partitions begin with stagger_NAME_, the
     * status shows them under it, the store keeps claims under it. */
    const char *name;
    /* Where messages are to be published, a sentence for who posts them to the
     * hub; where there is no `publish`. */
    const char *elsewhere;
    /* The log is the store's own: the store trims it by store.retention. Else the
     * hub sheds what waits that long for a target which is not in the settings any
     * more, so that such a target does not hold back `commit` for ever; and it has
     * idempotency keys only in a store that other hubs have, too. */
    bool is_trimmed;

    /* Assigns to flow what is the source's from the start, before flow's cursors
     * are restored: only where host.keeps_rows. Elsewhere it is assigned behind
     * `open`, by claims. NULL: only the queue's old rows are assigned. */
    stg_status (*restore)(stg_source *s, stg_error *err);

    /* Begins to read. Returns an error with words that say what and what to do;
     * then close is not called. NULL: nothing is to be opened, nor closed. */
    stg_status (*open)(stg_source *s, stg_error *err);

    /* Appends messages that were posted to the hub: as stg_store_append(), and
     * also before `open` and behind `close`, when it answers STG_APPEND_AWAY.
     * topic: the one that was asked for, NULL: none was; lent for the call, the
     * messages until done. They are not flow's before they are read. NULL: nothing
     * can be posted, and `elsewhere` says where. */
    void (*publish)(stg_source *s, const char *topic,
                    const stg_append *messages, size_t count,
                    stg_append_fn *done, void *done_ctx);

    /* Writes records to a topic of the same cluster that is not read, for other
     * programs; topic and records stay until done, which says how many of them are
     * there. It may come from within, and comes in any case before the source is
     * closed. NULL: there is no such thing. */
    void (*copy)(stg_source *s, const char *topic, const stg_append *records,
                 size_t count, stg_copied_fn *done, void *done_ctx);

    /* The hub stops, and its `drain` is over: what is published and not
     * acknowledged is answered soon. NULL: it is in any case. */
    void (*give_up)(stg_source *s);

    /* STG_ACTION_READ: of the main reader, and of the catch-up reader. */
    void (*read)(stg_source *s, const stg_action *a);
    void (*catch_up)(stg_source *s, const stg_action *a);

    /* STG_ACTION_COMMIT, STG_ACTION_REVOKED. release may be NULL where nothing
     * is ever revoked. */
    void (*commit)(stg_source *s, uint32_t number, uint64_t position);
    void (*release)(stg_source *s, uint32_t number);

    /* The store refused what was written of these partitions: another process
     * has claimed them. stg_flow_fenced() is due for each; then the hub tells
     * flow that nothing was stored. NULL: of a log that is claimed by nobody. */
    void (*fenced)(stg_source *s, const uint32_t *numbers, size_t count);

    /* Reads again what bulk rows are made of: as stg_store_options.read. NULL:
     * the store has it. */
    void (*reread)(stg_source *s, uint32_t number, uint64_t from,
                   size_t bytes_max, size_t count_max, stg_read_fn *done,
                   void *done_ctx);

    /* Whether a topic is one that a target's settings name so; NULL: the two
     * texts are equal. */
    bool (*matches)(const char *setting, const char *topic);

    /* The partition number i from 0 of those that are read, by topic and
     * partition. False: there are no more. NULL: the log has no partitions to
     * show. */
    bool (*look)(const stg_source *s, size_t i, stg_source_view *v);

    /* Messages that a lane has not read yet: at most, for a log may have gaps. */
    uint64_t (*lag)(const stg_source *s, uint32_t lane,
                    const stg_lane_view *view);

    /* Fills in facts for the metrics; returns how many. NULL: none. */
    size_t (*facts)(const stg_source *s,
                    stg_source_fact facts[STG_SOURCE_FACTS_MAX]);

    /* Stops reading; what was committed is told to the log. closed is called
     * once, later or from within. */
    void (*close)(stg_source *s, void (*closed)(void *ctx), void *ctx);

    /* Frees it. It was never opened, or is closed. */
    void (*free)(stg_source *s);
} stg_source_ops;

/* What each source begins with. */
struct stg_source {
    const stg_source_ops *ops;
    const stg_source_host *host; /* lent, since the hub has made it; its store
                                     and flow from restore() on */
    stg_letter_sink letters; /* copies of dead letters; write NULL: elsewhere */
    uint64_t messages;       /* that were read ahead of all lanes */
    uint32_t brokers; /* servers of the log: the hub leaves file descriptors for
                         its connections to so many */
    bool is_away;     /* the log cannot be reached now */
};

/* The embedded queue. STG_IO: no memory. */
stg_status stg_source_new_queue(stg_source **source, stg_error *err);

#endif
