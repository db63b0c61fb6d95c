/* Receipts of attempts on their way to the store, and to a copy: gathered for a second, or until
 * there are BATCH, one batch at a time. What comes while the store takes none is
 * kept up to MOST, then dropped and counted: no delivery waits for a receipt. */
#include <stdlib.h>

#include "host/wall.h"
#include "hub/hub_internal.h"

enum { BATCH = 4096, MOST = 65536 };

static const stg_ns pause = STG_S;

/* Whether a message has receipts is the same for all targets and all hubs: it is
 * drawn from its place in the log. Source of the mixing: SplitMix64. */
static bool is_in_share(const stg_hub_receipts *r, uint32_t partition,
                        uint64_t position)
{
    uint64_t x = position + (partition + 1) * UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (x ^ (x >> 31)) <= r->share;
}

bool stg_hub_receipts_has(const stg_hub *h, uint32_t partition,
                          uint64_t position)
{
    return h->receipts.is_kept &&
           is_in_share(&h->receipts, partition, position);
}

static void send_batch(stg_hub_receipts *r);

static void stored(void *ctx, size_t count, bool is_stored)
{
    stg_hub_receipts *r = ctx;

    r->is_out = false;
    if (is_stored)
        r->stored += count;
    else
        r->dropped += count;
    if (r->count >= BATCH)
        send_batch(r);
}

/* The rows are given: to the copy first, which reads them, then to the store, which
 * frees them. */
static void send_batch(stg_hub_receipts *r)
{
    stg_receipt *rows = r->rows;
    size_t count = r->count;

    stg_deadline_clear(&r->hub->deadlines, &r->due);
    r->rows = NULL;
    r->count = r->room = 0;
    if (r->copy.to != NULL)
        stg_receipt_copy_take(&r->copy, rows, count);
    if (!r->is_kept) {
        free(rows);
        return;
    }
    r->is_out = true;
    stg_store_write_receipts(r->hub->store, rows, count, stored, r);
}

static void batch_due(stg_deadline *d)
{
    stg_hub_receipts *r = STG_HEAP_HOLDER(d, stg_hub_receipts, due);

    // Else stored() has enough for the next one, or this comes again.
    if (r->count > 0 && !r->is_out)
        send_batch(r);
    else if (r->count > 0)
        stg_deadline_set(&r->hub->deadlines, d,
                         stg_ns_add(stg_deadlines_now(), pause));
}

static stg_receipt *reserve(stg_hub_receipts *r)
{
    size_t room = r->room == 0 ? 64 : 2 * r->room;
    stg_receipt *rows;

    if (r->count < r->room)
        return &r->rows[r->count++];
    rows = r->count == MOST ? NULL : realloc(r->rows, room * sizeof *rows);
    if (rows == NULL)
        return NULL;
    r->rows = rows;
    r->room = room;
    return &r->rows[r->count++];
}

/* Receipts go out when there are enough of them, or after a pause; while a batch is
 * out they wait, and beyond the room they are dropped and counted. */
void stg_hub_receipts_add(stg_hub_receipts *r, const stg_attempt_end *e,
                          const stg_outcome *outcome)
{
    bool is_good = outcome->fault == STG_FAULT_NONE;
    stg_receipt *to;

    if (!is_in_share(r, e->partition, e->position))
        return;
    to = reserve(r);
    if (to == NULL) {
        r->dropped++;
        return;
    }
    *to = (stg_receipt){.position = e->position,
                        .partition = e->partition,
                        .lane = e->target->lane,
                        .number = e->number,
                        .at = stg_wall_now(),
                        .took = e->took,
                        .fault = outcome->fault,
                        .code_kind =
                            is_good ? STG_CODE_STATUS : outcome->code_kind,
                        .code = is_good ? (uint32_t)e->status : outcome->code};
    if (r->count >= BATCH && !r->is_out)
        send_batch(r);
    else if (stg_deadline_at(&r->due) == STG_NEVER)
        stg_deadline_set(&r->hub->deadlines, &r->due,
                         stg_ns_add(stg_deadlines_now(), pause));
}

stg_status stg_hub_receipts_open(stg_hub_receipts *r, stg_hub *hub,
                                 stg_error *err)
{
    const stg_receipt_settings *o = &hub->fixed->receipts;

    r->hub = hub;
    r->is_kept = o->keep != STG_NEVER;
    r->is_on = r->is_kept || stg_receipt_copy_is_wanted(&o->copy);
    r->share = o->share >= 100 ? UINT64_MAX : UINT64_MAX / 100 * o->share;
    r->due.passed = batch_due;
    return stg_receipt_copy_open(&r->copy, hub, &o->copy, err);
}

void stg_hub_receipts_close(stg_hub_receipts *r, void (*closed)(void *ctx),
                            void *ctx)
{
    if (r->hub == NULL)
        return;
    stg_deadline_clear(&r->hub->deadlines, &r->due);
    if (r->count > 0 && r->hub->store != NULL)
        send_batch(r);
    r->is_on = r->is_kept = false;
    free(r->rows);
    r->rows = NULL;
    r->count = r->room = 0;
    stg_receipt_copy_close(&r->copy, closed, ctx);
}
