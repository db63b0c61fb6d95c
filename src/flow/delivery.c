#include "flow/delivery.h"

#include <string.h>

#include "flow/state.h"

stg_delivery *stg_delivery_new(stg_lane *lane, stg_flow *f, stg_message *m)
{
    stg_delivery *d = stg_pool_take(&f->deliveries);

    if (d == NULL)
        d = stg_flow_allocate(f, sizeof *d);
    if (d == NULL)
        return NULL;
    *d = (stg_delivery){
        .lane = lane,
        .message = m,
        .progress = stg_progress_begin(lane->o.policy),
        .failure.detail = "",
    };
    return d;
}

static void forget_texts(stg_flow *f, stg_delivery *d)
{
    f->held -= d->texts_size;
    stg_flow_release(f, d->texts);
    d->texts = NULL;
    d->texts_size = 0;
    d->failure.detail = "";
    d->failure.answer = NULL;
    d->failure.answer_size = 0;
}

void stg_delivery_free(stg_flow *f, stg_delivery *d)
{
    stg_list_remove(&d->link);
    stg_list_remove(&d->busy);
    stg_list_remove(&d->change);
    forget_texts(f, d);
    stg_flow_drop(f, d->message);
    if (!stg_pool_give(&f->deliveries, d))
        stg_flow_release(f, d);
}

/* Copies the words. Without memory for them the failure keeps its numbers. */
void stg_delivery_note(stg_flow *f, stg_delivery *d, const stg_failure *why)
{
    size_t detail = why->detail == NULL ? 0 : strlen(why->detail);
    size_t size = detail + 1 + why->answer_size;
    char *texts = NULL;

    forget_texts(f, d);
    d->failure = *why;
    d->failure.detail = "";
    d->failure.answer = NULL;
    d->failure.answer_size = 0;
    d->has_failure = true;
    if (size > 1 && f->held + size <= f->o.memory_max)
        texts = stg_flow_allocate(f, size);
    if (texts == NULL)
        return;
    d->texts = texts;
    d->texts_size = size;
    f->held += size;
    if (detail > 0)
        memcpy(texts, why->detail, detail);
    texts[detail] = '\0';
    d->failure.detail = texts;
    if (why->answer_size == 0)
        return;
    memcpy(texts + detail + 1, why->answer, why->answer_size);
    d->failure.answer = texts + detail + 1;
    d->failure.answer_size = why->answer_size;
}

stg_mark stg_delivery_mark(const stg_delivery *d)
{
    return (stg_mark){.due_at = d->due_wall,
                      .position = d->message->position,
                      .partition = d->message->partition,
                      .replay = d->replay};
}

void stg_delivery_attach(stg_delivery *d, void *attempt)
{
    d->attempt = attempt;
}
