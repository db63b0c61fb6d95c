/* history.h - what a target did in the last hour, and its last attempts.
 *
 * In memory, of a fixed size, and gone with the process. A target that had an
 * attempt has a history of 6.4 KB: 360 buckets of ten seconds in 16 bytes each,
 * and what its counters said last. They are read once in ten seconds, some
 * targets a turn of the loop, so that a delivery costs nothing more. Nothing is
 * read, and the loop is not woken, while nothing happens.
 *
 * Its last ten attempts are noted as they end: 640 bytes, and 256 more for each
 * that had an answer with a body, or that failed without one. All on the loop's thread. */
#ifndef STAGGER_HUB_HISTORY_H
#define STAGGER_HUB_HISTORY_H

#include "flow/flow.h"
#include "host/deadlines.h"
#include "hub/target.h"

enum { STG_HISTORY_BUCKETS = 360, STG_HISTORY_CAUSES = 2 };

#define STG_HISTORY_STEP (10 * STG_S)

/* Counts stop at their end. */
typedef struct stg_history_bucket {
    uint32_t delivered;                  /* messages */
    uint32_t failed;                     /* attempts */
    uint8_t p50, p99;                    /* for stg_latency_end() */
    uint8_t causes[STG_HISTORY_CAUSES];  /* the most frequent of the failures */
    uint16_t counts[STG_HISTORY_CAUSES]; /* 0: there is no such cause */
} stg_history_bucket;

typedef struct stg_history stg_history;

/* Reads the counters of all targets into their histories. Zeroed before. */
typedef struct stg_recorder {
    struct stg_hub *hub;
    stg_deadline due;
    uint64_t bucket; /* that this round fills */
    size_t at;       /* the next target of the round */
    bool is_busy;    /* one of this round has done something */
} stg_recorder;

void stg_recorder_open(stg_recorder *r, struct stg_hub *hub);
void stg_recorder_close(stg_recorder *r);

/* Something has happened: there will be something to read. Cheap. */
void stg_recorder_note(stg_recorder *r, stg_ns now);

/* The last bucket that is complete for all targets. Buckets have numbers by the
 * loop's clock: number n ends at (n + 1) * STG_HISTORY_STEP. */
uint64_t stg_recorder_last(const stg_recorder *r, stg_ns now);

/* The bucket of this number; zeroes where nothing happened, or nothing is known
 * any more. */
stg_history_bucket stg_history_at(const stg_target *t, uint64_t number);

/* What a number in `causes` means to this target. Returns the cause's name in
 * text. */
const char *stg_history_cause(const stg_target *t, uint8_t cause,
                              char text[STG_CAUSE_MAX], stg_category *category);

/* -- the last attempts ------------------------------------------------------- */

enum { STG_RECENT_MAX = 10, STG_RECENT_ANSWER_MAX = 256 };

typedef struct stg_recent_attempt {
    stg_ns at, took; /* when it ended, by the loop's clock */
    uint64_t position, number;
    uint32_t partition;
    uint16_t status; /* of HTTP; 0: there was no answer */
    uint16_t size;   /* of the answer */
    bool is_detail;  /* there was none: `answer` says in words what failed */
    stg_fault fault;
    stg_code_kind code_kind;
    uint32_t code;
    char *answer; /* the beginning of its body; NULL: never had one */
} stg_recent_attempt;

typedef struct stg_recent stg_recent;
struct stg_attempt_end;

/* An attempt has ended. Without memory it is not noted. */
void stg_recent_add(stg_target *t, const struct stg_attempt_end *e,
                    const stg_end *how, stg_ns now);

/* The last but i, from 0. NULL: there are no more. r may be NULL. */
const stg_recent_attempt *stg_recent_at(const stg_recent *r, size_t i);

void stg_recent_free(stg_recent *r);

#endif
