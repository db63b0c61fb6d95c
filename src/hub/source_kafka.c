/* Partitions of Kafka that come and go. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/targets.h"
#include "hub/hub_internal.h"

/* Long enough for a consumer to hear that it has lost what it was fenced of. */
static const stg_ns AGAIN = 2 * STG_S;

/* In flight at a revocation: see docs/kafka.md. */
static const stg_ns DRAIN = 2 * STG_S;

/* -- places ---------------------------------------------------------------- */

bool stg_source_is_same(const stg_source_place *p, const char *topic,
                        uint32_t partition)
{
    return p->partition == partition && strcmp(p->topic, topic) == 0;
}

stg_source_place *stg_source_find(const stg_source *s,
                                  const stg_kafka_place *place)
{
    for (stg_link *at = stg_list_first(&s->places); at != NULL;
         at = stg_list_next(&s->places, at)) {
        stg_source_place *p = STG_HOLDER(at, stg_source_place, link);

        if (p->assignment == place->assignment &&
            stg_source_is_same(p, place->topic, place->partition))
            return p;
    }
    return NULL;
}

static bool is_flows(const stg_source_place *p)
{
    return p->state == STG_SOURCE_GIVEN || p->state == STG_SOURCE_GOING;
}

stg_source_place *stg_source_find_number(const stg_source *s, uint32_t number)
{
    for (stg_link *at = stg_list_first(&s->places); at != NULL;
         at = stg_list_next(&s->places, at)) {
        stg_source_place *p = STG_HOLDER(at, stg_source_place, link);

        if (p->number == number && is_flows(p))
            return p;
    }
    return NULL;
}

/* The older assignment of the same partition, which flow still ends. */
static bool is_still_going(const stg_source *s, const stg_source_place *place)
{
    for (stg_link *at = stg_list_first(&s->places); at != NULL;
         at = stg_list_next(&s->places, at)) {
        const stg_source_place *p = STG_HOLDER(at, stg_source_place, link);

        if (p != place && is_flows(p) &&
            stg_source_is_same(p, place->topic, place->partition))
            return true;
    }
    return false;
}

static void tell(const stg_source_place *p, stg_log_level level,
                 const char *event, const char *detail)
{
    STG_LOG(p->source->hub->log, level, event,
            stg_field_text("topic", p->topic),
            stg_field_number("partition", p->partition),
            stg_field_text("detail", detail));
}

static void free_place(stg_source_place *p)
{
    stg_deadline_clear(&p->source->hub->deadlines, &p->again);
    stg_list_remove(&p->link);
    free(p->topic);
    free(p);
}

/* Its memory stays while the store owes an answer, and until reap(). */
static void drop(stg_source_place *p)
{
    stg_source *s = p->source;

    stg_deadline_clear(&s->hub->deadlines, &p->again);
    p->is_gone = true;
    stg_list_remove(&p->link);
    stg_list_push(p->is_asking ? &s->asking : &s->gone, &p->link);
}

static void drop_list(stg_list *list)
{
    stg_link *at;

    while ((at = stg_list_shift(list)) != NULL)
        free_place(STG_HOLDER(at, stg_source_place, link));
}

/* Those that are done with. */
static void reap(stg_source *s)
{
    drop_list(&s->gone);
}

void stg_source_take_back(stg_source *s)
{
    for (stg_link *at = stg_list_first(&s->places); at != NULL;
         at = stg_list_next(&s->places, at)) {
        stg_source_place *p = STG_HOLDER(at, stg_source_place, link);

        if (p->is_asking)
            stg_store_take_back(s->hub->store, p);
    }
}

void stg_source_drop_places(stg_source *s)
{
    if (s->places.ends.next == NULL)
        return; // it was never opened
    drop_list(&s->places);
    drop_list(&s->asking);
    drop_list(&s->gone);
}

/* By topic and partition, the older assignment first. */
static void put_in_order(stg_source *s, stg_source_place *p)
{
    stg_link *at = stg_list_last(&s->places);

    for (; at != NULL; at = stg_list_prev(&s->places, at)) {
        const stg_source_place *q = STG_HOLDER(at, stg_source_place, link);
        int order = strcmp(q->topic, p->topic);

        if (order < 0 || (order == 0 && q->partition <= p->partition))
            break;
    }
    stg_list_insert(at != NULL ? at : &s->places.ends, &p->link);
}

static stg_source_place *add(stg_source *s, const stg_kafka_given *g)
{
    stg_source_place *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    *p = (stg_source_place){.source = s,
                            .topic = strdup(g->place.topic),
                            .partition = g->place.partition,
                            .assignment = g->place.assignment,
                            .begin = g->begin,
                            .end = g->end,
                            .has_committed = g->has_committed,
                            .committed = g->committed,
                            .number = STG_NO_PARTITION,
                            .known = STG_NO_PARTITION,
                            .previous = STG_NO_PARTITION};
    if (p->topic == NULL) {
        free(p);
        return NULL;
    }
    put_in_order(s, p);
    return p;
}

/* -- claimed and given ----------------------------------------------------- */

static void claim_again(stg_deadline *d)
{
    stg_source_place *p = STG_HEAP_HOLDER(d, stg_source_place, again);

    stg_source_check_place(p);
    stg_source_check_all(p->source);
}

static void claim_later(stg_source_place *p)
{
    p->state = STG_SOURCE_WAITING;
    p->again.passed = claim_again;
    stg_deadline_set(&p->source->hub->deadlines, &p->again,
                     stg_ns_add(stg_deadlines_now(), AGAIN));
}

static stg_status give(stg_source_place *p, const stg_claimed *c,
                       stg_error *err)
{
    stg_assignment g = {.partition = c->number,
                        .generation = c->generation,
                        .begin = p->begin,
                        .floor = c->floor,
                        .is_merged = true,
                        .cursors = c->cursors,
                        .cursor_count = c->count};

    return stg_flow_assign(p->source->hub->flow, &g, stg_deadlines_now(), err);
}

/* Where it is read, and under which tag: flow's number and its assignment. */
static void begin(stg_source_place *p)
{
    stg_hub *h = p->source->hub;
    stg_kafka_place place = stg_source_place_of(p);
    stg_partition_view v;

    if (stg_flow_view_partition(h->flow, p->number, &v) != STG_OK)
        return;
    stg_kafka_begin(p->source->kafka, &place, v.next,
                    stg_source_tag(v.assignment, p->number));
    p->source->counts.taken++;
    STG_LOG(h->log, STG_LOG_INFO, "partition-taken",
            stg_field_text("topic", p->topic),
            stg_field_number("partition", p->partition),
            stg_field_number("position", v.next),
            stg_field_number("lag", stg_ns_sub(p->end, v.next)));
}

/* Its cursors are of another log. */
static void note_reset(stg_source_place *p)
{
    char text[256];

    p->print = (stg_fingerprint){.begin = 0};
    p->is_marked = false;
    p->source->counts.renewed++;
    snprintf(text, sizeof text,
             "%s: the topic was made again, or cut off. It is read from its "
             "start, and ids of messages have another epoch",
             p->why_other != NULL ? p->why_other
                                  : "it ends below what was read of it");
    tell(p, STG_LOG_WARN, "partition-recreated", text);
    if (p->why_other == NULL)
        return;
    stg_watch_store(&p->source->hub->watch, STG_TROUBLE_LOG, text,
                    stg_deadlines_now());
}

/* The store has cursors, and the group nothing. */
static void tell_no_offset(const stg_source_place *p, const stg_claimed *c)
{
    uint64_t furthest = 0;

    for (size_t i = 0; i < c->count; i++)
        furthest = stg_ns_max(furthest, c->cursors[i].base);
    if (furthest <= p->begin)
        return;
    tell(p, STG_LOG_WARN, "offset-missing",
         "the group has no committed offset of it any more (the topic or the "
         "group was deleted, the offset has expired, or it is another group): "
         "the cursors of the store count");
}

static void take(stg_source_place *p, const stg_claimed *c)
{
    stg_hub *h = p->source->hub;
    stg_error err = {.line = 0};
    stg_status status;

    bool is_first = p->number == STG_NO_PARTITION;

    p->number = c->number;
    p->previous = STG_NO_PARTITION;
    if (c->was_reset)
        note_reset(p);
    else if (is_first && !p->has_committed)
        tell_no_offset(p, c);
    p->why_other = NULL;
    status = give(p, c, &err);
    if (status == STG_OK) {
        p->state = STG_SOURCE_GIVEN;
        stg_source_give_rows(p, c);
        begin(p);
    } else if (!h->is_stopping) {
        stg_source_unclaim(p->source, c);
        tell(p, STG_LOG_ERROR, "partition-refused", err.text);
        claim_later(p);
    }
    stg_shell_note(h);
}

static void claimed(void *ctx, const stg_claimed *c)
{
    stg_source_place *p = ctx;
    stg_hub *h = p->source->hub;

    p->is_asking = false;
    if (p->is_gone || h->is_closing) {
        if (c->status == STG_OK && p->is_gone && !h->is_closing)
            stg_source_unclaim(p->source, c);
        free_place(p);
        return;
    }
    if (c->status == STG_OK) {
        take(p, c);
        return;
    }
    tell(p, STG_LOG_ERROR, "partition-refused", c->words);
    if (c->status == STG_INVALID)
        p->state = STG_SOURCE_REFUSED;
    else
        claim_later(p);
}

static stg_claim_ask ask_for(stg_source_place *p)
{
    p->state = STG_SOURCE_CLAIMING;
    p->is_asking = true;
    return (stg_claim_ask){.log = STG_SOURCE_LOG,
                           .topic = p->topic,
                           .partition = p->partition,
                           .begin = p->begin,
                           .end = p->end,
                           .committed = p->has_committed ? p->committed
                                                         : STG_NO_POSITION,
                           .previous = p->previous,
                           .is_unsure = p->is_unsure,
                           .ctx = p};
}

static bool may_claim(const stg_source *s)
{
    return !s->hub->is_closing && !s->hub->is_broken;
}

/* Those that were judged, in one transaction. */
void stg_source_claim_checked(stg_source *s)
{
    stg_claim_ask *asks;
    size_t count = 0;

    for (stg_link *at = stg_list_first(&s->places); at != NULL;
         at = stg_list_next(&s->places, at))
        count +=
            STG_HOLDER(at, stg_source_place, link)->state == STG_SOURCE_CHECKED;
    if (count == 0 || !may_claim(s))
        return;
    asks = calloc(count, sizeof *asks);
    if (asks == NULL)
        return; // the next one that is judged asks for all
    count = 0;
    for (stg_link *at = stg_list_first(&s->places); at != NULL;
         at = stg_list_next(&s->places, at)) {
        stg_source_place *p = STG_HOLDER(at, stg_source_place, link);

        if (p->state == STG_SOURCE_CHECKED)
            asks[count++] = ask_for(p);
    }
    stg_store_claim(s->hub->store, asks, count, claimed);
    free(asks);
}

/* -- what the group says --------------------------------------------------- */

/* A number that is over has waited for the one that replaces it. */
static void take_over(stg_source *s, stg_source_place *next)
{
    for (stg_link *at = stg_list_first(&s->places); at != NULL;
         at = stg_list_next(&s->places, at)) {
        stg_source_place *p = STG_HOLDER(at, stg_source_place, link);

        if (p->state == STG_SOURCE_OVER &&
            stg_source_is_same(p, next->topic, next->partition)) {
            next->previous = p->number;
            drop(p);
            return;
        }
    }
}

static void refuse_given(stg_source *s, const stg_kafka_given *g)
{
    STG_LOG(s->hub->log, STG_LOG_ERROR, "partition-refused",
            stg_field_text("topic", g->place.topic),
            stg_field_number("partition", g->place.partition),
            stg_field_text("detail", "there is no memory for it"));
}

void stg_source_assigned(void *source, const stg_kafka_given *given,
                         size_t count)
{
    stg_source *s = source;

    reap(s);
    for (size_t i = 0; i < count; i++) {
        stg_source_place *p = add(s, &given[i]);

        if (p == NULL) {
            refuse_given(s, &given[i]);
            continue;
        }
        take_over(s, p);
        p->state = STG_SOURCE_WAITING; // for STG_ACTION_REVOKED
        if (!is_still_going(s, p))
            stg_source_check_place(p);
    }
    stg_source_check_all(s);
}

static void let_go(stg_source_place *p)
{
    stg_kafka_place place = stg_source_place_of(p);

    stg_kafka_let_go(p->source->kafka, &place);
}

/* That it goes was said, and flow does not have it. The next owner hears of it
 * when it is let go, and then our claim must not come behind his. */
static void forget(stg_source_place *p, bool is_lost)
{
    if (p->is_asking)
        stg_store_take_back(p->source->hub->store, p);
    if (!is_lost)
        let_go(p);
    drop(p);
}

void stg_source_revoked(void *source, const stg_kafka_place *places,
                        size_t count)
{
    stg_source *s = source;

    stg_source_save_prints(s);
    for (size_t i = 0; i < count; i++) {
        stg_source_place *p = stg_source_find(s, &places[i]);

        if (p == NULL)
            continue;
        if (p->state != STG_SOURCE_GIVEN && p->state != STG_SOURCE_GOING) {
            forget(p, false);
            continue;
        }
        tell(p, STG_LOG_INFO, "partition-revoked",
             "another member of the group gets it");
        p->is_held = true;
        if (p->state == STG_SOURCE_GIVEN) {
            stg_flow_revoke(s->hub->flow, p->number, s->keeps_rows, DRAIN,
                            stg_deadlines_now());
            stg_source_lose_rows(p);
        }
        p->is_fenced = false;
        p->state = STG_SOURCE_GOING;
    }
    stg_shell_note(s->hub);
}

void stg_source_lost(void *source, const stg_kafka_place *places, size_t count)
{
    stg_source *s = source;

    for (size_t i = 0; i < count; i++) {
        stg_source_place *p = stg_source_find(s, &places[i]);

        if (p == NULL)
            continue;
        if (!is_flows(p)) {
            forget(p, true);
            continue;
        }
        tell(p, STG_LOG_WARN, "partition-lost",
             "the group gives it to another member, or has not heard of this "
             "one in time: nothing more of it is stored or committed");
        p->is_held = p->is_fenced = false;
        p->state = STG_SOURCE_GOING;
        stg_flow_lose(s->hub->flow, p->number, s->keeps_rows,
                      stg_deadlines_now());
        stg_source_lose_rows(p);
    }
    stg_shell_note(s->hub);
}

/* -- what the store and flow say ------------------------------------------- */

void stg_source_fenced(stg_source *s, const uint32_t *partitions, size_t count)
{
    stg_ns now = stg_deadlines_now();

    for (size_t i = 0; i < count; i++) {
        stg_source_place *p = stg_source_find_number(s, partitions[i]);

        stg_flow_fenced(s->hub->flow, partitions[i], now);
        s->counts.fenced++;
        if (p == NULL)
            continue; // rows of an epoch that is over
        tell(p, STG_LOG_WARN, "partition-fenced",
             "another hub has taken it in the store");
        p->is_fenced = p->state == STG_SOURCE_GIVEN;
        p->state = STG_SOURCE_GOING;
        stg_source_lose_rows(p);
    }
}

/* Who has waited for the older assignment of the same partition, or NULL. */
static stg_source_place *find_next(stg_source *s, const stg_source_place *last)
{
    for (stg_link *at = stg_list_first(&s->places); at != NULL;
         at = stg_list_next(&s->places, at)) {
        stg_source_place *p = STG_HOLDER(at, stg_source_place, link);

        if (p->state == STG_SOURCE_WAITING &&
            stg_source_is_same(p, last->topic, last->partition) &&
            stg_deadline_at(&p->again) == STG_NEVER)
            return p;
    }
    return NULL;
}

/* Flow has nothing of the place any more. */
static void end_going(stg_source_place *p)
{
    stg_source *s = p->source;
    stg_source_place *next;

    p->is_taken = false;
    if (p->is_fenced) {
        p->is_fenced = false;
        claim_later(p);
        return;
    }
    if (p->is_held)
        let_go(p);
    p->state = STG_SOURCE_OVER;
    next = find_next(s, p);
    if (next != NULL) {
        next->previous = p->is_over ? p->number : STG_NO_PARTITION;
        stg_source_check_place(next);
        stg_source_check_all(s);
    }
    // One that was renewed is known until its successor is claimed.
    if (next != NULL || !p->is_over)
        drop(p);
}

void stg_source_taken(stg_source *s, uint32_t partition)
{
    stg_source_place *p = stg_source_end_rows(s, partition);

    if (p == NULL) {
        p = stg_source_find_number(s, partition);
        if (p == NULL || p->state != STG_SOURCE_GOING)
            return;
        p->is_taken = true;
    }
    if (!s->keeps_rows)
        stg_store_unclaim(s->hub->store, partition);
    if (p->is_taken && p->before_count == 0)
        end_going(p);
}
