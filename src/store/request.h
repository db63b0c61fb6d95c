/* request.h - the one way to ask the threads of a store: a request, and the
 * queue where the loop and the threads meet.
 *
 * A request is the first field of a struct of its own. The loop gives it to the
 * queue; a thread does what it asks; it comes back to the loop, which calls
 * tell(), once, and then free(). What a thread has to say without being asked (a
 * notice) goes the second half of that way. If the store breaks, or closes
 * before a thread came to it, only free() is called.
 *
 *     loop --> queue --> writer   appends, a group, writes, lanes
 *                    --> reader   reads and fetches
 *                    --> query    looks
 *     loop <-- queue <-- answers of all of them, in the order they were given
 *
 * One lock over the lists and a few numbers; it is never held over a call of
 * SQLite, of libpq, or of the user. */
#ifndef STAGGER_STORE_REQUEST_H
#define STAGGER_STORE_REQUEST_H

#include "base/list.h"
#include "store/sql.h"
#include "store/store.h"

typedef struct stg_store_request stg_store_request;
typedef struct stg_store_writer stg_store_writer;
typedef struct stg_store_reader stg_store_reader;
typedef struct stg_request_queue stg_request_queue;

struct stg_store_request {
    stg_link link;
    /* One of these three; they return SQLite's code. look: on the query thread,
     * in no transaction. write: on the writer's thread, in a transaction of its
     * own. read: on the reader's thread; SQLITE_DONE: nothing is there yet, and
     * it waits on. */
    int (*look)(stg_store_request *e, stg_db *db);
    int (*write)(stg_store_request *e, stg_store_writer *w);
    int (*read)(stg_store_request *e, stg_store_reader *r);
    /* Of a read that waits: whether there may be something; NULL: always. The
     * lock is held. */
    bool (*is_ready)(stg_store_request *e, const stg_request_queue *in);
    void (*tell)(stg_store_request *e); /* on the loop */
    void (*free)(stg_store_request *e);
    stg_store *s;  /* set before tell() */
    uint64_t at;   /* looks: not before, by uv_hrtime() */
    bool is_paced; /* writes: after it no request runs for four times as long as
                      it took, so that appends and groups go on */
    bool is_full;  /* writes: it did not fit, and nothing was written */
};

/* Looks and writes; e is given away. */
void stg_store_request_send(stg_store *s, stg_store_request *e);

/* Frees all of a list. */
void stg_store_requests_free(stg_list *requests);

/* -- requests whose type a thread must know -------------------------------- */

typedef struct stg_append_request {
    stg_store_request request;
    const stg_append *messages;
    size_t count;
    stg_append_fn *done;
    void *ctx;
    stg_appended how;
    size_t at;
    uint64_t cost; /* what it fills of the file */
    stg_append_answer answers[];
} stg_append_request;

typedef struct stg_group_request {
    stg_store_request request;
    const stg_group *group;
    stg_group_fn *done;
    void *ctx;
    stg_stored how;
    uint64_t told;    /* replays up to this one were known to flow */
    uint32_t *fenced; /* partitions that others have */
    size_t fenced_count;
} stg_group_request;

/* A lane to be written with the next transaction; nobody waits for it. */
typedef struct stg_lane_request {
    stg_store_request request;
    uint32_t number;
    const char *name; /* the store's, which never changes */
    char url[];
} stg_lane_request;

/* -- the queue ------------------------------------------------------------- */

/* How far the end is; it only rises. */
typedef enum stg_queue_stage {
    STG_QUEUE_OPEN,
    STG_QUEUE_ENDING,  /* the store is to close soon */
    STG_QUEUE_CLOSING, /* the threads end when they have done what was asked */
    STG_QUEUE_WRITTEN, /* and the writer has nothing left to write */
} stg_queue_stage;

struct stg_request_queue {
    uv_mutex_t lock;
    uv_cond_t writer_wake, reader_wake, letters_wake, query_wake;
    uv_async_t answered; /* the loop's */
    stg_queue_stage stage;
    /* that have not ended; the writer ends last, so that what others have to
     * store at their end is stored */
    uint32_t threads;
    /* for the writer */
    stg_list writes; /* requests that write */
    stg_list appends, lanes, pings;
    stg_group_request *group;
    uint64_t commit;          /* all below is settled */
    uint64_t letters_version; /* copied to the file of dead letters */
    void **backs; /* of claims that were taken back before they were answered */
    size_t back_count, back_room;
    /* for the reader */
    stg_list reads;    /* and fetches */
    uint64_t next;     /* every position below is durable */
    bool is_replaying; /* a fetch is not answered before a replay is */
    /* for the query thread */
    stg_list looks;
    /* for the letters */
    uint64_t dead_groups; /* groups with dead letters so far */
    char *claimed; /* partitions whose letters are ours: "{1,7}"; NULL: all */
    /* for the loop */
    stg_list answers;
    bool is_broken;
    bool is_answered; /* broken, and the writer has answered what it had */
    stg_error broken;
    stg_store_view view;
};

/* False: no memory, or no file descriptor for the loop's handle. */
bool stg_request_queue_init(stg_request_queue *in, uv_loop_t *loop,
                            uv_async_cb answered);

/* When the loop's handle is closed. What is still in it is freed. */
void stg_request_queue_free(stg_request_queue *in);

/* To the loop, in this order. By any thread; the lock is not held. */
void stg_request_queue_answer(stg_request_queue *in, stg_store_request *e);
void stg_request_queue_answer_all(stg_request_queue *in, stg_list *requests);

/* A thread but the writer's has nothing more to do with the store: its last
 * call. */
void stg_request_queue_leave(stg_request_queue *in);

/* The partitions that are claimed now; given. */
void stg_request_queue_set_claimed(stg_request_queue *in, char *claimed);

/* Whose claim is answered next is to know that it is taken back: see
 * stg_store_take_back(). False: no memory. The lock is not held. */
bool stg_request_queue_take_back(stg_request_queue *in, void *ctx);
void stg_request_queue_forget_back(stg_request_queue *in, const void *ctx);
/* The lock is held. */
bool stg_request_queue_is_taken_back(const stg_request_queue *in,
                                     const void *ctx);

/* Pings are answered by the writer's thread whatever it waits for; the lock is
 * held. */
void stg_request_queue_answer_pings(stg_request_queue *in);

/* The store is broken: the first to say so is heard. The writer answers what
 * was asked of it, and tells the loop. By any thread; the lock is not held. */
void stg_request_queue_break(stg_request_queue *in, const stg_error *why);

/* To the loop: something is wrong, and it goes on; format NULL: not any more.
 * By any thread; the lock is not held. */
__attribute__((format(printf, 3, 4))) void
stg_request_queue_tell(stg_request_queue *in, stg_store_trouble what,
                       const char *format, ...);

bool stg_request_queue_is_broken(stg_request_queue *in);

#endif
