/* job.h - what is asked of the store's threads, and what comes back.
 *
 * A job is one call: it goes from the loop to a thread and, filled in, by the
 * answers back to the loop, which calls back and frees it. A notice goes only
 * the second way. */
#ifndef STAGGER_STORE_JOB_H
#define STAGGER_STORE_JOB_H

#include "base/list.h"
#include "store/queue.h"
#include "store/request.h"
#include "store/rows.h"
#include "store/store.h"

typedef enum stg_job_kind {
    STG_JOB_APPEND,
    STG_JOB_GROUP,
    STG_JOB_READ,
    STG_JOB_FETCH,
    STG_JOB_PING,
    STG_JOB_LANE, /* not answered */
    STG_JOB_REQUEST,
    STG_JOB_RETAINING, /* these four: notices */
    STG_JOB_TROUBLE,
    STG_JOB_BROKEN,
    STG_JOB_ENDED, /* a thread */
} stg_job_kind;

typedef struct stg_job {
    stg_link link;
    stg_job_kind kind;
    void *ctx;
    union {
        struct {
            const stg_append *messages;
            size_t count;
            stg_append_fn *done;
            stg_appended how;
            size_t at;
            uint64_t cost; /* what it fills of the file */
        } append;
        struct {
            const stg_group *group;
            stg_group_fn *done;
            stg_stored how;
            uint64_t told;    /* groups of replays that it knows of */
            uint32_t *fenced; /* partitions that others have; given */
            size_t fenced_count;
        } group;
        struct {
            uint64_t from;
            size_t bytes_max;
            bool waits;
            stg_read_fn *done;
            uint64_t seen; /* what waits: nothing was found below */
            stg_chunk found;
        } read;
        struct {
            uint32_t lane;
            uint32_t rows_max;
            bool is_replay;
            stg_mark after;
            char *claimed; /* "{1,7}": of these partitions only; given; NULL: of
                              all */
            stg_fetch_fn *done;
            stg_fetched found;
        } fetch;
        struct {
            uint32_t number;
            char *name, *url; /* given */
        } lane;
        void (*ponged)(void *ctx); /* PING */
        stg_store_request *request;
        uint64_t position; /* RETAINING */
        struct {
            stg_store_trouble what;
            stg_error *error; /* given; NULL: it is over */
        } trouble;
        stg_error *error; /* BROKEN; given */
    };
    stg_append_answer answers[]; /* of APPEND */
} stg_job;

/* With room for answers. NULL: no memory. */
stg_job *stg_job_new(stg_job_kind kind, void *ctx, size_t answers);
void stg_job_free(stg_job *job);
void stg_jobs_free(stg_list *jobs);

/* All of `from` behind what is in `to`. */
void stg_jobs_move(stg_list *to, stg_list *from);

#endif
