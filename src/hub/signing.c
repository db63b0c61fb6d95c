/* Signatures on libuv's threads. A signing is a piece of memory with all that a
 * thread needs: the id, and room for the lines; the body and the signer are kept by
 * who asked. A batch is one piece of work for a thread. */
#include "hub/signing.h"

#include <stdlib.h>
#include <string.h>

/* Of a batch, so that it takes a millisecond at most; and batches, so that all of
 * libuv's threads have one. */
enum { BATCH_MAX = 16, THREADS = 4 };

struct stg_signing {
    stg_link link;
    stg_signer *signer;
    stg_span id, body;
    uint64_t seconds;
    stg_signed_fn *done;
    void *ctx;
    char *lines, *end; /* end NULL: there was no memory */
    char text[];       /* the id, and the lines */
};

typedef struct batch {
    uv_work_t work;
    size_t count;
    stg_signing *all[BATCH_MAX];
} batch;

void stg_signings_init(stg_signings *all, uv_loop_t *loop)
{
    all->loop = loop;
    all->count = 0;
    stg_list_init(&all->asked);
}

bool stg_signings_ask(stg_signings *all, stg_signer *s, stg_span id,
                      uint64_t seconds, stg_span body, stg_signed_fn *done,
                      void *ctx)
{
    stg_signing *one =
        malloc(sizeof *one + id.size + stg_signer_room(s, id.size));

    if (one == NULL)
        return false;
    *one = (stg_signing){.signer = stg_signer_hold(s),
                         .id = {one->text, id.size},
                         .body = body,
                         .seconds = seconds,
                         .done = done,
                         .ctx = ctx,
                         .lines = one->text + id.size};
    memcpy(one->text, id.at, id.size);
    stg_list_push(&all->asked, &one->link);
    all->count++;
    return true;
}

/* On a thread. */
static void make(stg_signing *one)
{
    one->end = stg_signer_put_aside(one->signer, one->lines, one->id,
                                    one->seconds, one->body);
}

static void tell(stg_signing *one)
{
    stg_span lines = {NULL, 0};

    if (one->end != NULL)
        lines = (stg_span){one->lines, (size_t)(one->end - one->lines)};
    one->done(one->ctx, lines);
    stg_signer_free(one->signer);
    free(one);
}

static void work(uv_work_t *w)
{
    batch *b = w->data;

    for (size_t i = 0; i < b->count; i++)
        make(b->all[i]);
}

static void finish(uv_work_t *w, int status)
{
    batch *b = w->data;

    (void)status; // nobody cancels it
    for (size_t i = 0; i < b->count; i++)
        tell(b->all[i]);
    free(b);
}

static stg_signing *take(stg_signings *all)
{
    stg_link *first = stg_list_first(&all->asked);

    stg_list_remove(first);
    all->count--;
    return STG_HOLDER(first, stg_signing, link);
}

/* Without memory for a batch its first one goes without a signature: who asked
 * has no memory either. Told in this turn, which is no trouble: nobody is in the
 * middle of asking. */
static void hand_over(stg_signings *all, size_t size)
{
    batch *b = malloc(sizeof *b);

    if (b == NULL) {
        stg_signing *one = take(all);

        one->end = NULL;
        tell(one);
        return;
    }
    for (b->count = 0; b->count < size && all->count > 0; b->count++)
        b->all[b->count] = take(all);
    b->work.data = b;
    (void)uv_queue_work(all->loop, &b->work, work, finish); // it cannot fail
}

void stg_signings_flush(stg_signings *all)
{
    size_t size = (all->count + THREADS - 1) / THREADS;

    if (size > BATCH_MAX)
        size = BATCH_MAX;
    while (all->count > 0)
        hand_over(all, size);
}
