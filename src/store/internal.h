/* internal.h - a store, as its own files see it.
 *
 *   lifecycle   opening, closing, threads
 *   requests    the queue to the threads, and what comes back to the loop
 *   store       what is known on the loop, and lanes
 *   appends, group   the calls of the same name, done by the writer
 *   reader      reads and fetches
 *   snapshot, message_status, replay_job   asked by operators: dead_letters.h */
#ifndef STAGGER_STORE_INTERNAL_H
#define STAGGER_STORE_INTERNAL_H

#include "host/lines.h"
#include "store/lanes.h"
#include "store/partitions.h"
#include "store/query.h"
#include "store/reader.h"
#include "store/store_file.h"
#include "store/target_rows.h"
#include "store/writer.h"

/* -- letters ----------------------------------------------------------------- */

/* The copy of the dead letters in a file, a line of JSON each.
 *
 * A thread with a connection of its own reads the table in the order of its
 * changes, behind a durable cursor: each row is written at least once, as it is
 * at that moment, and again when its state changes, always with its id; a bulk
 * row that grows, once a minute at most. The file is synced before the cursor
 * moves, and the cursor moves only while the path leads to that file; it is never
 * rotated or removed by us. A file that cannot be written is tried again every
 * second, and told once. Where there is a sink, they go to it instead.
 *
 * In a store that others use, too, each hub copies those of the partitions that
 * it has claimed, and notes at each row which version of it was copied. */

typedef struct stg_letters {
    stg_request_queue *in;
    const stg_store_options *o;
    const char *url; /* of PostgreSQL; NULL: a file */
    stg_db *db;
    stg_read_retry again;
    stg_stmt *read, *mark;
    stg_found found;          /* what was read last */
    uint64_t *ids, *versions; /* of what was read last */
    size_t count;
    char *claimed; /* partitions */
    uv_thread_t thread;
    uint64_t version; /* written, and synced */
    uint64_t seen;    /* groups with dead letters that were looked at */
    stg_lines lines;  /* appends to the file; o owns the path */
    stg_error why;    /* of what failed last */
    bool is_troubled; /* and it was told */
} stg_letters;

/* Opens what copies dead letters: the file, unless there is a sink, and a
 * connection of its own. l is zeroed but for in, o and url. Returns STG_INVALID or
 * STG_IO with words; it is to be freed in any case. */
stg_status stg_letters_open(stg_letters *l, stg_error *err);
void stg_letters_free(stg_letters *l);

/* The thread. */
void stg_letters_run(void *letters);

/* The flags are facts that hold with each other: how it was opened, and what the loop has
 * been told. How far its end is says in.stage. */
struct stg_store {
    stg_store_options o; /* its texts are ours */
    char *url;           /* of PostgreSQL, with the password; NULL: a file */
    stg_db *lane_db;     /* of the loop, for numbers of lanes; NULL: none yet */
    stg_store_lock lock;
    bool is_new, is_discarded; /* made by us; closing removes it */
    uint64_t next, first;
    stg_epochs epochs;
    uint64_t notes; /* of pauses and targets that were written by us */
    stg_target_mark targets_seen; /* of those of calls, by peer_sync */
    uint64_t replays_told; /* groups of replays whose end the loop has heard */
    uint64_t group_number; /* of the last group, which may come again, */
    uint64_t group_told;   /* and what was told when it first came */
    stg_lanes lanes;
    stg_partitions partitions;
    stg_request_queue in;
    stg_store_writer writer;
    stg_store_reader reader;
    stg_letters letters;
    stg_query_thread query_thread;
    bool is_over;           /* broken, and told: nothing else is */
    bool is_away;           /* the server; the writer waits for it */
    stg_list readings;      /* replays for which another log reads */
    stg_list rewinding;     /* rewinds under way here */
    bool is_rewind_watched; /* it is looked at which are to be */
    void (*closed)(void *ctx);
    void *closed_ctx;
};

/* Of the loop's handle: calls back all that was answered, also what comes
 * meanwhile; then says that the store is broken, if the writer did, or ends a store
 * that is being closed. */
void stg_store_deliver(uv_async_t *async);

/* All threads have ended: joins them, and closes the handle. */
void stg_store_end(stg_store *s);

/* "{1,7}", the partitions that are claimed. Of malloc(); NULL: no memory. */
char *stg_store_claimed(const stg_store *s);

/* store/postgres/remote_replay.c: after a pause looks for dead letters in our
 * partitions that another hub was asked to replay, replays them, and begins
 * again. */
void stg_remote_replay_watch(stg_store *s, uint64_t pause);

/* store/postgres/peer_sync.c: the same for what other hubs do with targets. */
void stg_others_watch(stg_store *s);

/* Of malloc(); NULL: no memory. */
char *stg_store_copy(const char *text);

/* Breaks the store, for want of memory for a call. */
void stg_store_lack_memory(stg_store *s);

/* Zeroed memory for a request; NULL: there is none, and the store breaks. */
void *stg_store_new_request(stg_store *s, size_t size);

stg_status stg_store_refuse_memory(const stg_store *s, stg_error *err);

#endif
