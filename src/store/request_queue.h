/* request_queue.h - where the loop and the threads of a store meet.
 *
 * One lock over lists of jobs and a few numbers; it is never held over a call
 * of SQLite or of the user. */
#ifndef STAGGER_STORE_REQUEST_QUEUE_H
#define STAGGER_STORE_REQUEST_QUEUE_H

#include "store/job.h"

typedef struct stg_request_queue {
    uv_mutex_t lock;
    uv_cond_t writer_wake, reader_wake, letters_wake, query_wake;
    uv_async_t answered; /* the loop's */

    /* for the writer */
    stg_list writes; /* requests that write */
    stg_list appends, lanes, pings;
    stg_job *group;
    uint64_t commit;          /* all below is settled */
    uint64_t letters_version; /* copied to the file of dead letters */

    void **backs; /* of claims that were taken back before they were answered */
    size_t back_count, back_room;

    /* for the reader */
    stg_list reads;    /* and fetches */
    uint64_t next;     /* every position below is durable */
    bool is_replaying; /* a fetch is not answered before a replay is */

    /* for the query thread */
    stg_list looks; /* requests that look */

    /* for the letters */
    uint64_t dead_groups; /* groups with dead letters so far */
    char *claimed; /* partitions whose letters are ours: "{1,7}"; NULL: all */

    /* for the loop */
    stg_list answers;

    bool is_hurried; /* it is to end soon */
    bool is_closing; /* asked to end */
    bool is_written; /* and the writer has nothing left to write */
    /* the threads beside the writer, which ends last */
    bool has_reader, has_letters, has_query_thread;
    bool is_broken;
    stg_error broken;
    stg_store_view view;
} stg_request_queue;

/* False: no memory, or no file descriptor for the loop's handle. */
bool stg_request_queue_init(stg_request_queue *in, uv_loop_t *loop,
                            uv_async_cb answered);

/* When the loop's handle is closed. What is still in it is freed. */
void stg_request_queue_free(stg_request_queue *in);

/* To the loop, in this order. By any thread; the lock is not held. */
void stg_request_queue_answer(stg_request_queue *in, stg_job *job);
void stg_request_queue_answer_all(stg_request_queue *in, stg_list *jobs);

/* The partitions that are claimed now; given. */
void stg_request_queue_set_claimed(stg_request_queue *in, char *claimed);

/* Whose claim is answered next is to know that it is taken back: see
 * stg_store_take_back(). False: no memory. The lock is not held. */
bool stg_request_queue_take_back(stg_request_queue *in, void *ctx);
void stg_request_queue_forget_back(stg_request_queue *in, const void *ctx);

/* The lock is held. */
bool stg_request_queue_is_taken_back(const stg_request_queue *in,
                                     const void *ctx);

/* By the writer, in whose hands it is not even a job; the lock is held. */
void stg_request_queue_answer_pings(stg_request_queue *in);

/* It is over: the first to say so is heard. The writer answers what was asked
 * of it, and tells the loop. By any thread; the lock is not held. */
void stg_request_queue_break(stg_request_queue *in, const stg_error *why);

/* To the loop: something is wrong, and it goes on; format NULL: not any more.
 * By any thread; the lock is not held. */
__attribute__((format(printf, 3, 4))) void
stg_request_queue_tell(stg_request_queue *in, stg_store_trouble what,
                       const char *format, ...);

bool stg_request_queue_is_broken(stg_request_queue *in);

#endif
