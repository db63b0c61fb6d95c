/* The last hour of targets, and their last attempts.
 *
 * The hub keeps the hour in buckets of ten seconds (hub/history.h); here they are
 * written as lists of JSON, the oldest first, all of one length, so that a page
 * can draw them without a look at times. */
#include <string.h>

#include "admin/internal.h"
#include "store/parcel.h"

enum {
    SHORT = 60,     /* buckets of the series of many targets */
    CAUSES_MAX = 16 /* that a target's history names */
};

/* -- of one target ----------------------------------------------------------- */

/* The causes that the hour's buckets name, the most frequent first. */
typedef struct causes {
    size_t count;
    struct {
        uint8_t cause;
        uint64_t sum;
    } all[CAUSES_MAX];
} causes;

/* Kept in order of their sums while they are added, the largest first. */
static void add_cause(causes *c, uint8_t cause, uint32_t count)
{
    size_t i = 0;

    while (i < c->count && c->all[i].cause != cause)
        i++;
    if (count == 0 || i == CAUSES_MAX)
        return;
    if (i == c->count) {
        c->all[i].cause = cause;
        c->all[i].sum = 0;
        c->count++;
    }
    c->all[i].sum += count;
    for (; i > 0 && c->all[i].sum > c->all[i - 1].sum; i--) {
        uint8_t other = c->all[i - 1].cause;
        uint64_t sum = c->all[i - 1].sum;

        c->all[i - 1] = c->all[i];
        c->all[i].cause = other;
        c->all[i].sum = sum;
    }
}

static uint32_t count_in(const stg_history_bucket *b, uint8_t cause)
{
    uint32_t count = 0;

    for (size_t i = 0; i < STG_HISTORY_CAUSES; i++)
        if (b->counts[i] > 0 && b->causes[i] == cause)
            count += b->counts[i];
    return count;
}

static json_t *print_cause(const stg_target *t, uint8_t cause, uint64_t first)
{
    json_t *counts = json_array();
    char text[STG_CAUSE_MAX];
    stg_category category;
    const char *name = stg_history_cause(t, cause, text, &category);

    for (uint64_t i = 0; i < STG_HISTORY_BUCKETS; i++) {
        stg_history_bucket b = stg_history_at(t, first + i);

        json_array_append_new(counts, json_integer(count_in(&b, cause)));
    }
    return json_pack("{s:s,s:s,s:o}", "cause", name, "category",
                     stg_category_name(category), "failed", counts);
}

/* Columns, not rows: pages draw them by column, and the text is shorter. */
static json_t *print_history(const stg_target *t, uint64_t last)
{
    uint64_t first = last - STG_HISTORY_BUCKETS + 1;
    json_t *delivered = json_array(), *failed = json_array(),
           *p50 = json_array(), *p99 = json_array(), *list = json_array();
    causes found = {.count = 0};

    for (uint64_t i = 0; i < STG_HISTORY_BUCKETS; i++) {
        stg_history_bucket b = stg_history_at(t, first + i);

        json_array_append_new(delivered, json_integer(b.delivered));
        json_array_append_new(failed, json_integer(b.failed));
        json_array_append_new(p50,
                              stg_json_milliseconds(stg_latency_end(b.p50)));
        json_array_append_new(p99,
                              stg_json_milliseconds(stg_latency_end(b.p99)));
        for (size_t k = 0; k < STG_HISTORY_CAUSES; k++)
            add_cause(&found, b.causes[k], b.counts[k]);
    }
    for (size_t i = 0; i < found.count; i++)
        json_array_append_new(list, print_cause(t, found.all[i].cause, first));
    return json_pack(
        "{s:s,s:i,s:o,s:o,s:o,s:o,s:o,s:o}", "name", t->name, "bucket_s",
        (int)(STG_HISTORY_STEP / STG_S), "until",
        stg_json_time(stg_admin_wall_of((last + 1) * STG_HISTORY_STEP)),
        "delivered", delivered, "failed", failed, "p50_ms", p50, "p99_ms", p99,
        "causes", list);
}

/* NULL: there is none, and the request is answered. */
static const stg_target *find(const stg_admin *a, stg_ask *ask)
{
    size_t i;

    if (stg_hub_find_target(a->hub, stg_ask_word(ask, 0), &i) == STG_OK)
        return a->hub->targets.all[i];
    stg_admin_refuse_name(a, ask, stg_ask_word(ask, 0));
    return NULL;
}

void stg_admin_target_history(void *admin, stg_ask *ask)
{
    const stg_admin *a = admin;
    const stg_target *t = find(a, ask);

    if (t != NULL)
        stg_ask_answer_json(
            ask, 200,
            print_history(
                t, stg_recorder_last(&a->hub->recorder, stg_deadlines_now())));
}

/* -- of many ----------------------------------------------------------------- */

/* NULL: it did nothing in that time, or there is no memory. */
static json_t *print_short(const stg_target *t, uint64_t last)
{
    json_t *delivered, *failed;
    bool is_idle = true;

    for (uint64_t i = 0; i < SHORT && is_idle; i++) {
        stg_history_bucket b = stg_history_at(t, last - i);

        is_idle = b.delivered == 0 && b.failed == 0;
    }
    if (is_idle)
        return NULL;
    delivered = json_array();
    failed = json_array();
    for (uint64_t i = 0; i < SHORT; i++) {
        stg_history_bucket b = stg_history_at(t, last + 1 - SHORT + i);

        json_array_append_new(delivered, json_integer(b.delivered));
        json_array_append_new(failed, json_integer(b.failed));
    }
    return json_pack("{s:s,s:o,s:o}", "name", t->name, "delivered", delivered,
                     "failed", failed);
}

/* A page is of so many targets, of which the idle ones are left out. */
void stg_admin_history(void *admin, stg_ask *ask)
{
    const stg_admin *a = admin;
    const stg_targets *all = &a->hub->targets;
    uint64_t last = stg_recorder_last(&a->hub->recorder, stg_deadlines_now());
    json_t *list;
    size_t at, end;
    uint32_t limit;

    if (!stg_admin_target_page(a, ask, &at, &limit))
        return;
    list = json_array();
    for (end = at + limit; at < end && at < all->count; at++)
        json_array_append_new(list, print_short(all->all[at], last));
    stg_ask_answer_json(
        ask, 200,
        json_pack(
            "{s:i,s:o,s:o,s:s?}", "bucket_s", (int)(STG_HISTORY_STEP / STG_S),
            "until",
            stg_json_time(stg_admin_wall_of((last + 1) * STG_HISTORY_STEP)),
            "targets", list, "next",
            at < all->count ? all->all[at - 1]->name : NULL));
}

/* -- the last attempts ------------------------------------------------------- */

/* r->text is the body of an answer, or why there was none. */
static json_t *print_attempt(const stg_hub *h, const stg_recent_attempt *r)
{
    stg_outcome o = {
        .fault = r->fault, .code_kind = r->code_kind, .code = r->code};
    char id[STG_MESSAGE_ID_MAX];
    json_t *json = stg_admin_print_attempt(stg_admin_wall_of(r->at), r->took,
                                           r->number, &o, r->status);

    json_object_set_new(
        json, "message_id",
        json_string(stg_store_id(h->store, r->partition, r->position, id)));
    stg_json_add_bytes(json, "answer",
                       (stg_span){r->answer, r->is_detail ? 0 : r->size});
    json_object_set_new(json, "detail",
                        r->is_detail && r->size > 0
                            ? stg_json_span(r->answer, r->size)
                            : json_null());
    return json;
}

void stg_admin_attempts(void *admin, stg_ask *ask)
{
    const stg_admin *a = admin;
    const stg_target *t = find(a, ask);
    const stg_recent_attempt *r;
    json_t *list;

    if (t == NULL)
        return;
    list = json_array();
    for (size_t i = 0; (r = stg_recent_at(t->recent, i)) != NULL; i++)
        json_array_append_new(list, print_attempt(a->hub, r));
    stg_ask_answer_json(
        ask, 200, json_pack("{s:s,s:o}", "name", t->name, "attempts", list));
}
