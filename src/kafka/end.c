/* The end of an instance of librdkafka, in a time that is bounded.
 *
 * Where a topic was deleted, the thread of its broker may never end (2.0.2),
 * and rd_kafka_destroy() waits for it for ever. So another thread waits, and if
 * it takes too long it is left alone: what it still has is little, and the hub
 * is about to end, or has another instance already. */
#include <pthread.h>
#include <stdlib.h>

#include "kafka/internal.h"

enum { PATIENCE_S = 3 };

typedef struct ending {
    rd_kafka_t *rk;
    uv_mutex_t lock;
    uv_cond_t ended;
    bool is_over; /* it was destroyed */
    bool is_left; /* nobody waits any more */
} ending;

static void free_ending(ending *e)
{
    uv_cond_destroy(&e->ended);
    uv_mutex_destroy(&e->lock);
    free(e);
}

static void *destroy(void *arg)
{
    ending *e = arg;
    bool is_left;

    rd_kafka_destroy_flags(e->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    uv_mutex_lock(&e->lock);
    e->is_over = true;
    is_left = e->is_left;
    uv_cond_signal(&e->ended);
    uv_mutex_unlock(&e->lock);
    if (is_left)
        free_ending(e);
    return NULL;
}

/* False: it is left to the thread. */
static bool await(ending *e)
{
    stg_ns until = stg_kafka_now() + PATIENCE_S * STG_S;
    bool is_over;

    uv_mutex_lock(&e->lock);
    while (!e->is_over && stg_kafka_now() < until)
        (void)uv_cond_timedwait(&e->ended, &e->lock, 100 * STG_MS);
    is_over = e->is_over;
    e->is_left = !is_over;
    uv_mutex_unlock(&e->lock);
    return is_over;
}

/* librdkafka may wait for a broker that does not answer. It is destroyed by a thread
 * of its own, which is left to itself where it takes too long. */
void stg_kafka_destroy(rd_kafka_t *rk)
{
    ending *e = stg_kafka_memory(1, sizeof *e);
    pthread_t thread;

    e->rk = rk;
    if (uv_mutex_init(&e->lock) != 0 || uv_cond_init(&e->ended) != 0)
        abort();
    if (pthread_create(&thread, NULL, destroy, e) != 0) {
        rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        free_ending(e);
        return;
    }
    if (await(e)) {
        (void)pthread_join(thread, NULL);
        free_ending(e);
    } else {
        (void)pthread_detach(thread);
    }
}
