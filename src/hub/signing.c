/* Signatures on libuv's threads. A signing is a piece of memory with all that a
 * thread needs: id, method and URL, and room for the lines; the body is kept by who asked,
 * and the signer is held. A batch is one piece of work for a thread. */
#include "hub/parts.h"

#include <stdlib.h>
#include <string.h>

#include "host/process.h"

/* Of a batch, so that it takes a millisecond at most by Ed25519 (and by RSA ten). */
enum { BATCH_MAX = 16 };

struct stg_signing {
    stg_link link;
    stg_signer *signer;
    stg_sign_request request;
    stg_signed_fn *done;
    void *ctx;
    char *lines, *end; /* end NULL: there was no memory */
    char text[];       /* method and URL, the id, and the lines */
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
    all->threads = stg_process_pool();
    stg_list_init(&all->asked);
}

/* With its terminator. */
static char *copy(char *to, const char *text)
{
    size_t size = strlen(text) + 1;

    memcpy(to, text, size);
    return to + size;
}

/* The request's texts are copied into one piece behind it: what they came from may go
 * before the thread has signed. The body stays, as flow keeps it. */
bool stg_signings_ask(stg_signings *all, stg_signer *s,
                      const stg_sign_request *r, stg_signed_fn *done, void *ctx)
{
    size_t words = strlen(r->method) + strlen(r->url) + 2;
    stg_signing *one = malloc(sizeof *one + words + r->id.size +
                              stg_signer_room(s, r->id.size));
    char *url;

    if (one == NULL)
        return false;
    *one = (stg_signing){.signer = stg_signer_hold(s),
                         .request = *r,
                         .done = done,
                         .ctx = ctx,
                         .lines = one->text + words + r->id.size};
    url = copy(one->text, r->method);
    one->request.method = one->text;
    one->request.url = url;
    one->request.id.at = copy(url, r->url);
    memcpy(one->text + words, r->id.at, r->id.size);
    stg_list_push(&all->asked, &one->link);
    all->count++;
    return true;
}

/* On a thread. */
static void make(stg_signing *one)
{
    one->end = stg_signer_put_aside(one->signer, one->lines, &one->request);
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

/* Each thread has a batch, if there are so many. */
void stg_signings_flush(stg_signings *all)
{
    size_t size = (all->count + all->threads - 1) / all->threads;

    if (size > BATCH_MAX)
        size = BATCH_MAX;
    while (all->count > 0)
        hand_over(all, size);
}
