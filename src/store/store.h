/* store.h - what must survive: the embedded queue and all that flow stores, in
 * one SQLite file; or what flow stores of another log, in PostgreSQL, where
 * several hubs share it. The calls are the same; those of the queue are of a
 * file only.
 *
 * One writer thread commits whatever came during its last commit
 * (synchronous=FULL); one reader thread answers reads and fetches. Calls are
 * made on the loop's thread, do not block, and answer by a callback on it, in
 * the order of the calls of their kind (others pass a read that waits). What a
 * call points to is kept until its callback; what a callback is given is lent
 * for its time.
 *
 * Messages of the queue and groups of flow are never in one transaction. An
 * error of SQLite but busy and full, and the want of memory, is the end:
 * appends are answered, then options.broken is called, once, and nothing else
 * after it; the process is to end, and a restart recovers. */
#ifndef STAGGER_STORE_STORE_H
#define STAGGER_STORE_STORE_H

#include <uv.h>

#include <stagger/ns.h>

#include "base/histogram.h"
#include "flow/flow.h"
#include "flow/group.h"
#include "store/fingerprint.h"
#include "store/parcel.h"
#include "store/shortage.h"

/* -- dead letters that are kept ------------------------------------------ */

/* What a store keeps of dead letters (I30).
 *
 * Those that ended (replayed, dropped, expired, cancelled) go after a day. The
 * others stay until one of these is reached, and then a bulk row of their target
 * and cause counts them. */

typedef struct stg_dead_options {
    stg_ns keep;  /* 1 m to 365 d; STG_NEVER: for ever */
    uint64_t max; /* rows, from 1; UINT64_MAX: any number */
    /* Percent of the quota of a file, 1 to 30. Where the store is refusing,
     * nothing is evicted for room. */
    uint32_t share;
} stg_dead_options;

typedef struct stg_store stg_store;

/* What does not end the hub, and is tried again. */
typedef enum stg_store_trouble {
    STG_STORE_LETTERS,   /* the file of dead letters cannot be written */
    STG_STORE_BUSY,      /* another process writes to the store, and does not
                          end: nothing can be stored */
    STG_STORE_AWAY,      /* the server of PostgreSQL does not answer, or refuses
                          what is stored: it is tried again */
    STG_STORE_DEAD_HALF, /* dead letters have half of what they may, */
    STG_STORE_DEAD_NEARLY, /* and nine tenths: then the oldest are evicted */
    STG_STORE_UNCOPIED, /* and those went, too, that the copy of the dead letters
                           has not got: there is no more room */
    STG_STORE_LETTERS_CUT, /* letters were copied without their body, or not at
                              all: told once, and has no end */
    STG_STORE_HELD, /* a read of another process holds back the write-ahead log,
                        which grows */
    STG_STORE_SHORT, /* something that the store needs is short: see stg_shortage;
                        told once a second at most */
    STG_STORE_TROUBLES
} stg_store_trouble;

/* Why a lane stands still, beside the settings: as it is stored. */
typedef enum stg_pause {
    STG_PAUSE_NONE,
    STG_PAUSE_CALL,     /* a person has called it */
    STG_PAUSE_DISABLED, /* the hub has: it only failed for `disable-after` */
} stg_pause;

typedef struct stg_letter stg_letter;         /* dead_letters.h */
typedef struct stg_target_row stg_target_row; /* target_rows.h */

/* What became of letters that a sink was given. */
typedef struct stg_letter_report {
    size_t written; /* from the first one on: they are durable there */
    size_t cut;     /* of them, those that went without their body */
    size_t
        left_out;  /* of them, those that are not there: refused in any form */
    stg_error why; /* with one of these: the first letter, in words */
} stg_letter_report;

/* Where dead letters are copied to, beside a file: see kafka/letters.h. Calls
 * are made on a thread of the store's, one at a time. */
typedef struct stg_letter_sink {
    /* Returns when all of them are durable there; else with words, and those
     * behind report->written come again. */
    stg_status (*write)(void *ctx, const stg_letter *letters, size_t count,
                        stg_letter_report *report, stg_error *err);
    /* By the loop: it is to end soon, a write that waits gives up. NULL: it
     * does by itself. */
    void (*end_soon)(void *ctx);
    void *ctx;
} stg_letter_sink;

typedef struct stg_store_options {
    const char *path;  /* of the file; made if missing, with mode 0600. Or a
                             URL, postgres://... or postgresql://...: its
                             password is in no text of the store's */
    uint32_t shard_of; /* targets are spread over so many shards, 1 to 1024;
                             the same for all who share the store at a time */
    uint32_t shard;    /* and this is one of them: 0 to shard_of - 1 */
    uint64_t quota;    /* bytes of the file, 16 MiB to 2^44; intake stops at
                             80 %, the rest is for rows and cursors */
    stg_ns retention;  /* of messages behind: 1 m to 365 d */
    stg_ns keep;      /* of messages that every lane has settled, for as long as
                          half of the quota has room: 0 to 365 d */
    bool is_refusing; /* the log keeps what any lane waits for, whatever its
                             age and room: at 80 % of the quota intake stops.
                             Else see `retaining` */
    stg_ns keys_kept; /* of idempotency keys, 24 h */
    uint64_t keys_max; /* 1000000 */
    stg_dead_options dead;
    struct {
        stg_ns keep;     /* 0: none is; 1 m to 365 d */
        uint64_t quota;  /* bytes that they may fill, about; of a file an eighth
                           of its quota at most */
    } receipts;          /* see receipts.h */
    const char *letters; /* --dead-letters file:PATH, the PATH; NULL: none */
    stg_letter_sink sink; /* instead of a file; write is NULL: none */
    void (*broken)(void *ctx, const stg_error *why);
    /* The log will be trimmed up to position for age or room, whoever still
     * waits below it: see stg_flow_retain(). */
    void (*retaining)(void *ctx, uint64_t position);
    /* Once, until it is over; then again, with NULL. */
    void (*troubled)(void *ctx, stg_store_trouble what, const stg_error *why);
    /* A replay (see dead_letters.h), or a rewind (is_again, see rewinds.h), has
     * parked so many rows of a lane: see stg_flow_replayed(). No fetch that could
     * show them is answered before. */
    void (*replayed)(void *ctx, uint32_t lane, uint32_t partition,
                     uint64_t count, bool is_again);
    /* How many rows a replay may park of the lane now; 0: it waits. NULL: any
     * number. */
    uint64_t (*room)(void *ctx, uint32_t lane);
    /* Whether the settings have the lane's target: if not, its letters stay
     * dead, for nothing would be sent. NULL: they do. */
    bool (*knows)(void *ctx, uint32_t lane);
    /* Whether the target is paused: a replay waits in its lane. NULL: none. */
    bool (*is_paused)(void *ctx, uint32_t lane);
    /* Whether the lane's target wants a message of a bulk row; NULL: all. And
     * whether it has to see the body for that, which else may be empty; NULL: it
     * has not. */
    bool (*wants)(void *ctx, uint32_t lane, const stg_parcel *message);
    bool (*wants_body)(void *ctx, uint32_t lane);
    /* The lane's order, for what a rewind parks. NULL: there is none. */
    stg_order (*order)(void *ctx, uint32_t lane);
    /* Where the lane reads on in a partition that it reads here: a rewind of it
     * ends there. 0: it does not. NULL: where the store has its cursor. */
    uint64_t (*next)(void *ctx, uint32_t lane, uint32_t partition);
    /* A rewind has come to its end in a partition; messages: that it has sent.
     * NULL: nobody wants to know. */
    void (*rewound)(void *ctx, uint32_t lane, uint32_t partition,
                    uint64_t messages);
    /* Another hub that shares the store has paused the lane, or ended that; known
     * within some seconds. NULL: nobody wants to know. */
    void (*paused)(void *ctx, uint32_t lane, stg_pause pause);
    /* The same: it has forgotten the lane. Returns whether nothing of it is
     * here any more; else it is told again. */
    bool (*forgotten)(void *ctx, uint32_t lane);
    /* Another hub that shares the store has added, changed or removed targets by
     * calls: all rows that there are now, known within some seconds. NULL:
     * nobody wants to know. */
    void (*targets)(void *ctx, const stg_target_row *rows, size_t count);
    /* Reads forward in the log of a partition that is not the queue's, for the
     * bodies of bulk rows and for rewinds, count_max records at most: answers by done, on the
     * loop, as stg_store_read() does. What is below next and was not given is
     * not there any more; UINT64_MAX: nor is what comes behind. next == from: it
     * could not be read now, and those bulk rows stay dead; as all do where
     * this is NULL. Not after the store has closed. */
    void (*read)(void *ctx, uint32_t number, uint64_t from, size_t bytes_max,
                 size_t count_max,
                 void (*done)(void *done_ctx, const stg_record *records,
                              size_t count, uint64_t next),
                 void *done_ctx);
    void *ctx;
} stg_store_options;

/* Whether a path is a URL of PostgreSQL. */
bool stg_store_is_url(const char *path);

stg_store_options stg_store_options_default(const char *path);

/* Opens the file, or makes it, and takes it for this process alone. Blocks.
 * Returns STG_IO or STG_INVALID with words that say what and what to do: no
 * directory, read-only, full, locked by another hub, of another version, no
 * database, corrupt. Threads start. */
stg_status stg_store_open(stg_store **store, uv_loop_t *loop,
                          const stg_store_options *o, stg_error *err);

/* It is to end soon: where another process writes to the file and does not end,
 * it is waited for for 10 s more, and then the store is broken. */
void stg_store_end_soon(stg_store *s);

/* Ends the threads after what was asked before; then done is called. */
void stg_store_close(stg_store *s, void (*done)(void *ctx), void *ctx);

/* Nothing was put into it: if its file was made when it was opened, closing
 * removes it. */
void stg_store_discard(stg_store *s);

/* A sign of life: done is called when the writer's thread has come around, also
 * while it waits for another process that writes. Not after the store broke. */
void stg_store_ping(stg_store *s, void (*done)(void *ctx), void *ctx);

/* For people and metrics; as of the last commit. */
typedef struct stg_store_view {
    uint64_t used, quota; /* bytes of the file, without what is free in it, and
                               of the write-ahead log */
    uint64_t wal;         /* bytes of the write-ahead log alone */
    uint64_t message_bytes; /* what messages fill of it, about */
    uint64_t letter_bytes;  /* and rows of dead letters; of a file */
    stg_shortage shortage;  /* the last one that was told */
    uint64_t first, next;   /* positions */
    uint64_t keys;          /* idempotency keys */
    stg_histogram commits;  /* transactions, from their begin until durable */
    stg_histogram checkpoints; /* of the write-ahead log */
} stg_store_view;

void stg_store_look(stg_store *s, stg_store_view *view);

/* -- at the start; these block --------------------------------------------- */

/* Its file, or what may be shown of its URL; the store's own. */
const char *stg_store_name(const stg_store *s);

/* Nanoseconds since 1970 as all who use the store have them: by the wall clock;
 * with PostgreSQL by the server's, so that hubs whose clocks differ read each
 * other's rows aright. What is stored has such times. Not after it was closed.
 * */
stg_ns stg_store_now(const stg_store *s);

/* 64 random bits, drawn at each opening: the first half of the ids of messages
 * that are appended from then on. A message keeps the epoch of its time. */
uint64_t stg_store_epoch(const stg_store *s);

/* Returns the epoch of a message's time. At any time. */
uint64_t stg_store_epoch_at(const stg_store *s, uint64_t position);

/* The messages of the log from position on: its own positions have no gaps. At
 * any time, as of the last answer. */
uint64_t stg_store_count_from(const stg_store *s, uint64_t position);

/* The first position that the queue has; where it is empty, the next one. */
uint64_t stg_store_first(const stg_store *s);

/* The number of a target's lane by its name, new if there is none. The number
 * of another name is never given again, nor that of a name that was forgotten
 * (STG_CHANGE_FORGET). url is noted for the dead letters, without the values of
 * its query: see http/url.h. At any time; it is durable before, or with, the
 * first row that names it. */
stg_status stg_store_lane(stg_store *s, const char *name, const char *url,
                          uint32_t *lane, stg_error *err);

/* A lane that begins, or whose URL may be another one. */
typedef struct stg_lane_begin {
    const char *name, *url; /* the caller's, for the call */
    uint32_t number;        /* set by the call */
} stg_lane_begin;

/* Called when all numbers are known, and nothing is written yet. Any other status
 * than STG_OK, with words, and nothing will be. */
typedef stg_status stg_lane_ready_fn(void *ctx, stg_error *err);

/* The same of many lanes, whose names differ: all in one transaction, or none. It
 * may fail behind ready(), too, which may be NULL. */
stg_status stg_store_begin_lanes(stg_store *s, stg_lane_begin *lanes,
                                 size_t count, stg_lane_ready_fn *ready,
                                 void *ctx, stg_error *err);

/* Whether the store has a lane of that name, as far as is known here. */
bool stg_store_has_lane(const stg_store *s, const char *name);

/* What stg_store_pause() has noted of the lane. */
stg_pause stg_store_paused(const stg_store *s, uint32_t lane);

/* Notes that the lane is paused, or is not any more: a restart finds it. With
 * STG_PAUSE_NONE it has not failed yet, either: see stg_lane_note. done: when it is
 * durable; or is_full, and nothing was noted. At any time. */
typedef void stg_noted_fn(void *ctx, bool is_full);
void stg_store_pause(stg_store *s, uint32_t lane, stg_pause pause,
                     stg_noted_fn *done, void *ctx);

/* Every lane that the store knows, and every cursor. */
typedef void stg_store_lane_fn(void *ctx, uint32_t lane, const char *name,
                               const char *url);
typedef void stg_store_cursor_fn(void *ctx, const stg_cursor *c);
stg_status stg_store_lanes(stg_store *s, stg_store_lane_fn *each, void *ctx,
                           stg_error *err);
stg_status stg_store_cursors(stg_store *s, stg_store_cursor_fn *each, void *ctx,
                             stg_error *err);

/* -- partitions of a log that is not the queue ----------------------------- */

/* The store gives a number below 65536 to each (log, topic, partition, epoch),
 * and never to another: rows and cursors have it. 0 is the queue. */
#define STG_NO_PARTITION UINT32_MAX
#define STG_NO_POSITION UINT64_MAX

typedef struct stg_claim_ask {
    const char
        *log; /* the source's name, ops->name: of all clusters, so a store
                        is of one */
    const char *topic;
    uint32_t partition; /* of the topic */
    uint64_t begin;     /* the oldest position that it has */
    uint64_t end; /* the next that it will give; STG_NO_POSITION: unknown */
    uint64_t committed; /* the position that the group has committed;
                           STG_NO_POSITION: none */
    uint32_t previous;  /* a number that is over, as the topic was deleted and
                           made again; STG_NO_PARTITION: none that we know of */
    bool is_unsure;     /* its fingerprint does not tell whether it is the same
                           log: a cursor above `end` does */
    void *ctx;          /* of its answer, and by which it is taken back */
} stg_claim_ask;

#define STG_CLAIMED_BEFORE_MAX 16

/* Rows of an epoch that is over: it has parked rows, or dead letters that
 * another hub was asked to send again, and is claimed, too; each to be
 * unclaimed by itself. */
typedef struct stg_claimed_before {
    uint32_t number;
    uint64_t epoch, generation;
    const stg_cursor *cursors;
    size_t count;
} stg_claimed_before;

typedef struct stg_claimed {
    stg_status status; /* STG_INVALID: it has no number left; STG_IO: it did not
                          fit; STG_NOT_FOUND: it was taken back. Then only words
                          is there */
    const char *words;
    uint32_t number;
    uint64_t epoch;            /* 0: the first of its topic */
    uint64_t generation;       /* higher than whoever had it before */
    uint64_t floor;            /* lanes begin there at least: what the group has
                            committed of this epoch; 0 with PostgreSQL where
                            there are cursors, and if it has nothing */
    const stg_cursor *cursors; /* of every lane that is known in it */
    size_t count;
    bool was_reset; /* a new epoch: `previous` says so, or a cursor was above
                       `end` where no fingerprint tells. It has no cursors */
    const stg_claimed_before *before; /* PostgreSQL only: with a file,
                                         stg_store_partitions() has them */
    size_t before_count;
} stg_claimed;

/* Takes partitions, all of them in one transaction: makes their numbers where
 * there are none, raises their generations, so that nobody who had them before
 * writes any more, and reads their cursors. Again at any time, also by who has
 * them already. asks are copied, and answered one by one. */
typedef void stg_claimed_fn(void *ctx, const stg_claimed *claimed);
void stg_store_claim(stg_store *s, const stg_claim_ask *asks, size_t count,
                     stg_claimed_fn *done);

/* The group has taken a partition away whose claim is not answered yet, by the
 * ctx of its ask. If its generation is not raised yet it will not be: then the
 * answer is STG_NOT_FOUND. Else the next owner's will be higher: he claims it
 * behind us, if he has heard of it after this call. */
void stg_store_take_back(stg_store *s, void *ctx);

/* It is no longer ours: from now on no fetch has rows of it. (A file's rows are
 * ours whoever reads the partition: there it changes nothing.) */
void stg_store_unclaim(stg_store *s, uint32_t number);

/* -- fingerprints ---------------------------------------------------------- */

/* What is known of the newest number of a partition. */
typedef struct stg_known_log {
    const char *topic;
    uint32_t partition, number;
    stg_fingerprint print; /* see stg_fingerprint_is_known() */
} stg_known_log;

/* Asks for all partitions of a log that the store knows, by topic and
 * partition. log is copied; what done() is given is lent. */
typedef void stg_known_logs_fn(void *ctx, const stg_known_log *all,
                               size_t count);
void stg_store_known_logs(stg_store *s, const char *log,
                          stg_known_logs_fn *done, void *ctx);

/* Stores fingerprints, by number alone. Copied. Where it does not fit, those of
 * before stay, and prove as much. */
void stg_store_put_fingerprints(stg_store *s, const stg_known_log *all,
                                size_t count);

typedef struct stg_store_partition {
    uint32_t number;
    const char *log, *topic;
    uint32_t partition;
    uint64_t epoch;
    uint64_t generation; /* with a file: of what it has of rows, at the start */
} stg_store_partition;

/* Every number that the store has given, as it is known here: what others have
 * given since it was opened is known when it is claimed. At any time. */
typedef void stg_store_partition_fn(void *ctx, const stg_store_partition *p);
void stg_store_partitions(const stg_store *s, stg_store_partition_fn *each,
                          void *ctx);

/* False: no such number. The texts are the store's. */
bool stg_store_partition_of(const stg_store *s, uint32_t number,
                            stg_store_partition *p);

#define STG_MESSAGE_ID_MAX 320

/* "<epoch>-<position>" of the queue; else "TOPIC.PARTITION.OFFSET", with
 * ".EPOCH" behind it if that is not 0: the same over attempts, crashes, hubs
 * and replays. At any time. Returns text. */
const char *stg_store_id(const stg_store *s, uint32_t number, uint64_t position,
                         char text[STG_MESSAGE_ID_MAX]);

/* The same of a record that may not have been read yet, by its topic and
 * partition in a log: as of the newest number that they have, or as it will be
 * once they get one. */
const char *stg_store_record_id(const stg_store *s, const char *log,
                                const char *topic, uint32_t partition,
                                uint64_t position,
                                char text[STG_MESSAGE_ID_MAX]);

/* False: it is no id, or none of this store. */
bool stg_store_find_id(const stg_store *s, const char *id, uint32_t *number,
                       uint64_t *position);

/* -- the queue ------------------------------------------------------------- */

typedef struct stg_append {
    stg_parcel parcel;
    stg_span idempotency_key; /* empty: none */
    bool is_same_by_key; /* the same key is the same message, whatever it has */
} stg_append;

typedef enum stg_appended {
    STG_APPENDED,        /* durable; or it was already there, same key */
    STG_APPEND_CONFLICT, /* the key came with another body before */
    STG_APPEND_FULL,     /* the quota */
    STG_APPEND_UNKNOWN,  /* the store broke: it may be there, or not */

    /* Of a source that is another log (sources/source.h). Of several messages
     * those before and behind the one at fault may be there. */
    STG_APPEND_KEYED,          /* it has a key, and none is kept for the log */
    STG_APPEND_NO_TOPIC,       /* the log has no such topic, */
    STG_APPEND_WHICH_TOPIC,    /* or several, and none was said */
    STG_APPEND_TOO_LARGE,      /* the log takes none of that size, */
    STG_APPEND_REFUSED,        /* or not this message, whenever it is sent */
    STG_APPEND_BUSY,           /* too many are on their way */
    STG_APPEND_AWAY,           /* the log has not taken it: it is not there */
    STG_APPEND_UNACKNOWLEDGED, /* it may be there, or not */
} stg_appended;

/* answers[i] for messages[i]: its position, and whether it is an old one. */
typedef struct stg_append_answer {
    uint64_t position;
    bool is_repeat;
    uint64_t epoch; /* of its id, if it is an old one; 0: that of now */
    const char *id; /* of another log: its id. NULL: epoch and position are */
} stg_append_answer;

/* Appends all of the messages or none, in one transaction (with others). The
 * callback comes when it is durable. On a conflict or a full queue nothing of
 * the call was appended; `at` is the message at fault. */
typedef void stg_append_fn(void *ctx, stg_appended how,
                           const stg_append_answer *answers, size_t at);
void stg_store_append(stg_store *s, const stg_append *messages, size_t count,
                      stg_append_fn *done, void *ctx);

/* Reads forward from a position: as many bytes of messages, but one message at
 * least; `bytes` of a record is a packed parcel. A read that waits is answered
 * when there is something (or never). next: see stg_flow_messages(). */
typedef void stg_read_fn(void *ctx, const stg_record *records, size_t count,
                         uint64_t next);
void stg_store_read(stg_store *s, uint64_t from, size_t bytes_max, bool waits,
                    stg_read_fn *done, void *ctx);

/* Everything below position is settled for good: to be trimmed in time, but for
 * what bulk rows still need. */
void stg_store_commit(stg_store *s, uint64_t position);

/* -- flow's rows ----------------------------------------------------------- */

/* Writes a group in one transaction. One at a time. fenced: of
 * STG_STORED_FENCED, the partitions that others have; else none. */
typedef void stg_group_fn(void *ctx, stg_stored how, const uint32_t *fenced,
                          size_t count);
void stg_store_group(stg_store *s, const stg_group *g, stg_group_fn *done,
                     void *ctx);

/* The lane's parked rows above the mark, in its order: those of replays, or the
 * others. */
typedef void stg_fetch_fn(void *ctx, uint32_t lane, bool is_replay,
                          const stg_parked_row *rows, size_t count,
                          bool is_all);
void stg_store_fetch(stg_store *s, uint32_t lane, bool is_replay,
                     const stg_mark *after, uint32_t rows_max,
                     stg_fetch_fn *done, void *ctx);

/* -- lanes that only fail ------------------------------------------------ */

/* Since when a lane only fails, for `disable-after`: over restarts, and
 * of all hubs that share the store.
 *
 * Each hub says of a lane, every ten seconds at most, whether an attempt has succeeded
 * since it said so last, or whether all have failed. A success of any hub ends
 * it; the next failure begins anew, with the time of what was said. */

typedef struct stg_lane_note {
    uint32_t lane;
    bool has_succeeded;
    stg_ns failing_since; /* the answer: since 1970; 0: it does not only fail */
    stg_ns now; /* by the same clock, which is the server's if there is
                             one */
} stg_lane_note;

/* Notes them, in one transaction. notes: of malloc(), given. done: when they are
 * durable, with the answers, which are lent; not called where the store is full or
 * breaks. */
typedef void stg_lane_notes_fn(void *ctx, const stg_lane_note *notes,
                               size_t count);
void stg_store_note_lanes(stg_store *s, stg_lane_note *notes, size_t count,
                          stg_lane_notes_fn *done, void *ctx);

#endif
