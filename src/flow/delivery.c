#include <assert.h>
#include <string.h>

#include "flow/state.h"

/* Deliveries: their memory and the texts of their last failure; the ring in
 * which a lane has what it took above its base; and the notes of why breakers
 * opened, which outlive the deliveries that failed. */

/* -- a delivery ------------------------------------------------------------ */

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

/* `held` is lowered by what stg_delivery_note() had added for these texts. */
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

/* -- a note ---------------------------------------------------------------- */

enum { DETAIL_MAX = 300, ANSWER_MAX = 1024 };

stg_note *stg_note_hold(stg_note *note)
{
    note->refs++;
    return note;
}

void stg_note_drop(stg_flow *f, stg_note *note)
{
    if (note != NULL && --note->refs == 0)
        stg_flow_release(f, note);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The same failure in the sense of a note: words and answers may differ. */
static bool is_same(const stg_outcome *a, const stg_outcome *b)
{
    return a->fault == b->fault && a->code_kind == b->code_kind &&
           a->code == b->code;
}

/* Another fault since then is not what opened it. */
static bool is_news(const stg_lane *l, const stg_outcome *o)
{
    return l->note == NULL || l->note->opening != l->openings ||
           is_same(&l->note->failure.outcome, o);
}

/* In one piece of memory with its texts, cut to what a row may have of them. */
static stg_note *make(stg_flow *f, const stg_end *end)
{
    size_t detail = end->detail == NULL ? 0 : strlen(end->detail);
    size_t answer = least(end->answer_size, ANSWER_MAX);
    stg_note *n;

    detail = least(detail, DETAIL_MAX);
    n = stg_flow_allocate(f, sizeof *n + detail + 1 + answer);
    if (n == NULL)
        return NULL;
    if (detail > 0)
        memcpy(n->texts, end->detail, detail);
    n->texts[detail] = '\0';
    if (answer > 0)
        memcpy(n->texts + detail + 1, end->answer, answer);
    *n = (stg_note){.refs = 1,
                    .failure = {.outcome = end->outcome,
                                .why = STG_WHY_CIRCUIT_OPEN,
                                .detail = n->texts,
                                .answer = n->texts + detail + 1,
                                .answer_size = answer}};
    return n;
}

/* Keeps the latest failure of the kind that opened the breaker. Without memory
 * for it the one before stays. */
void stg_note_failure(stg_flow *f, stg_lane *l, const stg_end *end,
                      stg_ns attempt_at)
{
    stg_note *n;

    if (!is_news(l, &end->outcome) || (n = make(f, end)) == NULL)
        return;
    n->opening = l->openings;
    n->failure.first_attempt_at = stg_flow_wall(f, l->opened_at);
    n->failure.last_attempt_at = stg_flow_wall(f, attempt_at);
    stg_note_drop(f, l->note);
    l->note = n;
}

/* -- a ring ---------------------------------------------------------------- */

enum { SMALLEST = 8 };

/* A capacity is a power of two: a slot's number keeps its meaning when the ring
 * grows, for it is masked. */
bool stg_ring_reserve(stg_ring *r, const stg_memory *memory)
{
    uint32_t capacity = r->capacity == 0 ? SMALLEST : 2 * r->capacity;
    stg_slot *slots;

    if (r->count < r->capacity)
        return true;
    slots = memory->allocate(memory->ctx, capacity * sizeof *slots);
    if (slots == NULL)
        return false;
    for (uint32_t i = 0; i < r->count; i++)
        slots[(r->first + i) & (capacity - 1)] = *stg_ring_at(r, r->first + i);
    if (r->slots != NULL)
        memory->release(memory->ctx, r->slots);
    r->slots = slots;
    r->capacity = capacity;
    return true;
}

uint32_t stg_ring_push(stg_ring *r, uint64_t position, stg_delivery *d)
{
    uint32_t slot = r->first + r->count;

    assert(r->count < r->capacity);
    assert(r->count == 0 || stg_ring_at(r, slot - 1)->position < position);
    *stg_ring_at(r, slot) = (stg_slot){position, d};
    r->count++;
    return slot;
}

/* The first slot of the ring is always one that is not settled. Those settled
 * above it stay until it is settled, too. */
void stg_ring_settle(stg_ring *r, uint32_t slot, const stg_memory *memory)
{
    stg_ring_at(r, slot)->delivery = NULL;
    r->settled++;
    while (r->count > 0 && stg_ring_at(r, r->first)->delivery == NULL) {
        r->first++;
        r->count--;
        r->settled--;
    }
    // A small one stays: most lanes come and go by one or two.
    if (r->count == 0 && r->capacity > SMALLEST)
        stg_ring_free(r, memory);
}

void stg_ring_free(stg_ring *r, const stg_memory *memory)
{
    if (r->slots != NULL)
        memory->release(memory->ctx, r->slots);
    *r = (stg_ring){.slots = NULL};
}
