/* Partitions that come and go: what the group assigns is claimed in the store
 * and assigned to flow, what it wants back is ended by flow and let go.
 *
 * The rule: nobody reads a partition, or stores anything of it, without a
 * claim, whose generation in the store is higher than any before. So a claim
 * must never come behind that of the next owner: who is revoked takes back what
 * was not answered yet, before the consumer lets the partition go. An
 * assignment that ends while the store owes an answer keeps its memory until
 * then.
 *
 * With a claim come the numbers of earlier epochs (the topic was made again)
 * that still have rows: flow has them for their rows only, and they go where
 * the partition goes. */
#include <stdio.h>
#include <stdlib.h>

#include "kafka/assignment.h"

/* Long enough for a consumer to hear that it has lost what it was fenced of. */
static const stg_ns RETRY = 2 * STG_S;

/* In flight at a revocation: see docs/kafka.md. */
static const stg_ns DRAIN = 2 * STG_S;

static void log_event(const stg_kafka_assignment *p, stg_log_level level,
                      const char *event, const char *detail)
{
    STG_LOG(p->source->base.host->log, level, event,
            stg_field_text("topic", p->tp.topic),
            stg_field_number("partition", p->tp.partition),
            stg_field_text("detail", detail));
}

/* -- rows of earlier epochs ------------------------------------------------ */

/* Which of those before it the number is; before_count: none. */
static size_t find_before(const stg_kafka_assignment *p, uint32_t number)
{
    size_t i = 0;

    while (i < p->before_count && p->before[i] != number)
        i++;
    return i;
}

static void assign_before(stg_kafka_assignment *p, const stg_claimed *c)
{
    const stg_source_host *h = stg_kafka_source_host(p->source);

    p->before_count = 0;
    for (size_t i = 0; i < c->before_count; i++) {
        const stg_claimed_before *b = &c->before[i];
        stg_assignment rows = {.partition = b->number,
                               .generation = b->generation,
                               .is_merged = true,
                               .is_rows_only = true,
                               .cursors = b->cursors,
                               .cursor_count = b->count};

        // Without memory, or while it stops: the next claim has them, too.
        if (stg_flow_assign(h->flow, &rows, stg_deadlines_now(), NULL) ==
            STG_OK)
            p->before[p->before_count++] = b->number;
        else
            stg_store_unclaim(h->store, b->number);
    }
}

/* Others have the partition, or will: its rows in the store are theirs from
 * there on, and what is under way is not stored. */
static void lose_before(stg_kafka_assignment *p)
{
    for (size_t i = 0; i < p->before_count; i++)
        stg_flow_lose(p->source->base.host->flow, p->before[i], false,
                      stg_deadlines_now());
}

/* Flow has released such a number: whose it was; NULL: it is none. */
static stg_kafka_assignment *end_before(stg_kafka_source *s, uint32_t number)
{
    stg_kafka_assignment *p = NULL;

    while ((p = stg_kafka_assignment_next(s, p)) != NULL) {
        size_t i = find_before(p, number);

        if (i == p->before_count)
            continue;
        p->before[i] = p->before[--p->before_count];
        return p;
    }
    return NULL;
}

/* What was claimed, and flow does not get. */
static void unclaim(stg_kafka_source *s, const stg_claimed *c)
{
    stg_store *store = s->base.host->store;

    stg_store_unclaim(store, c->number);
    for (size_t i = 0; i < c->before_count; i++)
        stg_store_unclaim(store, c->before[i].number);
}

/* -- claimed, and flow's --------------------------------------------------- */

static void claim_again(stg_deadline *d)
{
    stg_kafka_assignment *p = STG_HEAP_HOLDER(d, stg_kafka_assignment, retry);

    stg_kafka_assignment_check(p);
    stg_kafka_source_check_all(p->source);
}

/* The state is WAITING with a timer. Without one WAITING means that flow has
 * not released the assignment before it: find_next() tells the two apart by
 * it. */
static void claim_later(stg_kafka_assignment *p)
{
    p->state = STG_ASSIGNMENT_WAITING;
    p->retry.passed = claim_again;
    stg_deadline_set(p->source->base.host->deadlines, &p->retry,
                     stg_ns_add(stg_deadlines_now(), RETRY));
}

static stg_status assign(stg_kafka_assignment *p, const stg_claimed *c,
                         stg_error *err)
{
    stg_assignment a = {.partition = c->number,
                        .generation = c->generation,
                        .begin = p->begin,
                        .floor = c->floor,
                        .is_merged = true,
                        .cursors = c->cursors,
                        .cursor_count = c->count};

    return stg_flow_assign(p->source->base.host->flow, &a, stg_deadlines_now(),
                           err);
}

/* Where it is read, and under which tag: flow's number and its assignment. */
static void begin(stg_kafka_assignment *p)
{
    const stg_source_host *h = stg_kafka_source_host(p->source);
    stg_partition_view v;

    if (stg_flow_view_partition(h->flow, p->number, &v) != STG_OK)
        return;
    stg_kafka_begin(p->source->kafka, &p->tp, v.next,
                    stg_kafka_source_tag(v.assignment, p->number));
    p->source->counts.taken++;
    STG_LOG(h->log, STG_LOG_INFO, "partition-taken",
            stg_field_text("topic", p->tp.topic),
            stg_field_number("partition", p->tp.partition),
            stg_field_number("position", v.next),
            stg_field_number("lag", stg_ns_sub(p->end, v.next)));
}

/* Its cursors are of another log. */
static void note_reset(stg_kafka_assignment *p)
{
    const stg_source_host *h = stg_kafka_source_host(p->source);
    char text[256];

    p->print = (stg_fingerprint){.begin = 0};
    p->is_marked = false;
    p->source->counts.renewed++;
    snprintf(text, sizeof text,
             "%s: the topic was made again, or cut off. It is read from its "
             "start, and ids of messages have another epoch",
             p->why_other != NULL ? p->why_other
                                  : "it ends below what was read of it");
    log_event(p, STG_LOG_WARN, "partition-recreated", text);
    if (p->why_other != NULL)
        h->alert(h->ctx, text);
}

/* The store has cursors, and the group nothing. */
static void report_no_offset(const stg_kafka_assignment *p,
                             const stg_claimed *c)
{
    uint64_t furthest = 0;

    for (size_t i = 0; i < c->count; i++)
        furthest = stg_ns_max(furthest, c->cursors[i].base);
    if (furthest > p->begin)
        log_event(
            p, STG_LOG_WARN, "offset-missing",
            "the group has no committed offset of it any more (the topic or "
            "the group was deleted, the offset has expired, or it is another "
            "group): the cursors of the store count");
}

static void take(stg_kafka_assignment *p, const stg_claimed *c)
{
    const stg_source_host *h = stg_kafka_source_host(p->source);
    bool is_first = p->number == STG_NO_PARTITION;
    stg_error err = {.line = 0};

    p->number = c->number;
    p->previous = STG_NO_PARTITION;
    if (c->was_reset)
        note_reset(p);
    else if (is_first && p->committed == STG_NO_POSITION)
        report_no_offset(p, c);
    p->why_other = NULL;
    if (assign(p, c, &err) == STG_OK) {
        p->state = STG_ASSIGNMENT_READING;
        assign_before(p, c);
        begin(p);
    } else if (!h->is_ending(h->ctx)) {
        unclaim(p->source, c);
        log_event(p, STG_LOG_ERROR, "partition-refused", err.text);
        claim_later(p);
    } else {
        p->state =
            STG_ASSIGNMENT_WAITING; // flow stops, and so does the process
    }
    stg_kafka_source_wake(p->source);
}

/* The store's answer, on the loop's thread. One for an assignment that has
 * ended meanwhile only frees it, and gives the claim back. */
static void claimed(void *ctx, const stg_claimed *c)
{
    stg_kafka_assignment *p = ctx;
    bool is_closed = p->source->kafka == NULL;

    if (p->state == STG_ASSIGNMENT_DROPPED || is_closed) {
        if (c->status == STG_OK && !is_closed)
            unclaim(p->source, c);
        stg_kafka_assignment_free(p);
        return;
    }
    if (c->status == STG_OK) {
        take(p, c);
        return;
    }
    log_event(p, STG_LOG_ERROR, "partition-refused", c->words);
    if (c->status == STG_INVALID)
        p->state = STG_ASSIGNMENT_REFUSED;
    else
        claim_later(p);
}

static stg_claim_ask ask_for(stg_kafka_assignment *p)
{
    p->state = STG_ASSIGNMENT_CLAIMING;
    return (stg_claim_ask){.log = p->source->base.ops->name,
                           .topic = p->tp.topic,
                           .partition = p->tp.partition,
                           .begin = p->begin,
                           .end = p->end,
                           .committed = p->committed,
                           .previous = p->previous,
                           .is_unsure = p->is_unsure,
                           .ctx = p};
}

void stg_kafka_source_claim_checked(stg_kafka_source *s)
{
    const stg_source_host *h = stg_kafka_source_host(s);
    stg_kafka_assignment *p = NULL;
    stg_claim_ask *asks;
    size_t count = 0;

    while ((p = stg_kafka_assignment_next(s, p)) != NULL)
        count += p->state == STG_ASSIGNMENT_CHECKED;
    if (count == 0 || s->kafka == NULL || h->is_ending(h->ctx))
        return;
    asks = calloc(count, sizeof *asks);
    if (asks == NULL)
        return; // the next one that is checked asks for all
    count = 0;
    while ((p = stg_kafka_assignment_next(s, p)) != NULL)
        if (p->state == STG_ASSIGNMENT_CHECKED)
            asks[count++] = ask_for(p);
    stg_store_claim(h->store, asks, count, claimed);
    free(asks);
}

void stg_kafka_source_cancel_claims(stg_kafka_source *s)
{
    stg_kafka_assignment *p = NULL;

    while ((p = stg_kafka_assignment_next(s, p)) != NULL)
        if (p->state == STG_ASSIGNMENT_CLAIMING)
            stg_store_take_back(s->base.host->store, p);
}

/* -- what the group says --------------------------------------------------- */

/* Whether flow still ends the assignment before this one. */
static bool has_older(const stg_kafka_source *s, const stg_kafka_assignment *of)
{
    const stg_kafka_assignment *p = NULL;

    while ((p = stg_kafka_assignment_next(s, p)) != NULL)
        if (stg_kafka_assignment_is_twin(p, of) &&
            stg_kafka_assignment_is_flows(p))
            return true;
    return false;
}

/* Links a recreated partition to its predecessor's number, which was kept for
 * it. */
static void link_predecessor(stg_kafka_source *s, stg_kafka_assignment *next)
{
    stg_kafka_assignment *p = NULL;

    while ((p = stg_kafka_assignment_next(s, p)) != NULL)
        if (p->state == STG_ASSIGNMENT_RECREATED &&
            stg_kafka_assignment_is_twin(p, next)) {
            next->previous = p->number;
            stg_kafka_assignment_drop(p);
            return;
        }
}

static void refuse_assigned(const stg_kafka_source *s,
                            const stg_kafka_assigned *a)
{
    STG_LOG(s->base.host->log, STG_LOG_ERROR, "partition-refused",
            stg_field_text("topic", a->tp.topic),
            stg_field_number("partition", a->tp.partition),
            stg_field_text("detail", "there is no memory for it"));
}

void stg_kafka_source_assigned(void *source, const stg_kafka_assigned *assigned,
                               size_t count)
{
    stg_kafka_source *s = source;

    stg_kafka_assignments_free_dropped(s);
    for (size_t i = 0; i < count; i++) {
        stg_kafka_assignment *p = stg_kafka_assignment_add(s, &assigned[i]);

        if (p == NULL) {
            refuse_assigned(s, &assigned[i]);
            continue;
        }
        link_predecessor(s, p);
        p->state = STG_ASSIGNMENT_WAITING; // for STG_ACTION_REVOKED
        if (!has_older(s, p))
            stg_kafka_assignment_check(p);
    }
    stg_kafka_source_check_all(s);
}

/* It ends before flow had it. The next owner hears of it when it is let go, and
 * by then our claim must have been taken back. */
static void abandon(stg_kafka_assignment *p, bool is_lost)
{
    if (p->state == STG_ASSIGNMENT_CLAIMING)
        stg_store_take_back(p->source->base.host->store, p);
    if (!is_lost)
        stg_kafka_let_go(p->source->kafka, &p->tp);
    stg_kafka_assignment_drop(p);
}

/* Flow ends it, and then this follows. One that is ending already stays so. */
static void end(stg_kafka_assignment *p, stg_assignment_end then)
{
    if (p->state == STG_ASSIGNMENT_READING)
        p->state = STG_ASSIGNMENT_REVOKING;
    p->then = then;
    lose_before(p);
}

/* Begins its end in flow; it is let go of when flow has released it. One that is
 * ending already (lost or fenced) is only let go of at its end. */
static void give_back(stg_kafka_assignment *p)
{
    const stg_source_host *h = stg_kafka_source_host(p->source);

    log_event(p, STG_LOG_INFO, "partition-revoked",
              "another member of the group gets it");
    if (p->state != STG_ASSIGNMENT_READING) {
        p->then = STG_ASSIGNMENT_LET_GO;
        return;
    }
    stg_flow_revoke(h->flow, p->number, h->keeps_rows, DRAIN,
                    stg_deadlines_now());
    end(p, STG_ASSIGNMENT_LET_GO);
}

void stg_kafka_source_revoked(void *source, const stg_topic_partition *tps,
                              size_t count)
{
    stg_kafka_source *s = source;

    stg_kafka_source_save_prints(s);
    for (size_t i = 0; i < count; i++) {
        stg_kafka_assignment *p = stg_kafka_assignment_find(s, &tps[i]);

        if (p != NULL && stg_kafka_assignment_is_flows(p))
            give_back(p);
        else if (p != NULL)
            abandon(p, false);
    }
    stg_kafka_source_wake(s);
}

static void lose(stg_kafka_assignment *p)
{
    const stg_source_host *h = stg_kafka_source_host(p->source);

    log_event(p, STG_LOG_WARN, "partition-lost",
              "the group gives it to another member, or has not heard of this "
              "one in time: nothing more of it is stored or committed");
    stg_flow_lose(h->flow, p->number, h->keeps_rows, stg_deadlines_now());
    end(p, STG_ASSIGNMENT_DROP);
}

void stg_kafka_source_lost(void *source, const stg_topic_partition *tps,
                           size_t count)
{
    stg_kafka_source *s = source;

    for (size_t i = 0; i < count; i++) {
        stg_kafka_assignment *p = stg_kafka_assignment_find(s, &tps[i]);

        if (p != NULL && stg_kafka_assignment_is_flows(p))
            lose(p);
        else if (p != NULL)
            abandon(p, true);
    }
    stg_kafka_source_wake(s);
}

/* -- what the store and flow say ------------------------------------------- */

void stg_kafka_source_fenced(stg_source *source, const uint32_t *numbers,
                             size_t count)
{
    stg_kafka_source *s = (stg_kafka_source *)source;

    for (size_t i = 0; i < count; i++) {
        stg_kafka_assignment *p =
            stg_kafka_assignment_find_number(s, numbers[i]);

        stg_flow_fenced(source->host->flow, numbers[i], stg_deadlines_now());
        s->counts.fenced++;
        if (p == NULL)
            continue; // rows of an earlier epoch
        log_event(p, STG_LOG_WARN, "partition-fenced",
                  "another hub has taken it in the store");
        // It is still ours for the group, unless it was ending already.
        end(p, p->state == STG_ASSIGNMENT_READING ? STG_ASSIGNMENT_CLAIM
                                                  : p->then);
    }
}

/* Who has waited for the assignment before it, or NULL. */
static stg_kafka_assignment *find_next(const stg_kafka_source *s,
                                       const stg_kafka_assignment *last)
{
    stg_kafka_assignment *p = NULL;

    while ((p = stg_kafka_assignment_next(s, p)) != NULL)
        if (p->state == STG_ASSIGNMENT_WAITING &&
            stg_kafka_assignment_is_twin(p, last) &&
            stg_deadline_at(&p->retry) == STG_NEVER)
            break;
    return p;
}

/* Flow has nothing of it any more. */
static void finish(stg_kafka_assignment *p)
{
    stg_kafka_source *s = p->source;
    stg_kafka_assignment *next;

    if (p->then == STG_ASSIGNMENT_CLAIM) {
        claim_later(p);
        return;
    }
    if (p->then == STG_ASSIGNMENT_LET_GO)
        stg_kafka_let_go(s->kafka, &p->tp);
    p->state = STG_ASSIGNMENT_RECREATED;
    next = find_next(s, p);
    if (next != NULL) {
        next->previous = p->is_recreated ? p->number : STG_NO_PARTITION;
        stg_kafka_assignment_check(next);
        stg_kafka_source_check_all(s);
    }
    // One that was recreated is known until its successor is claimed.
    if (next != NULL || !p->is_recreated)
        stg_kafka_assignment_drop(p);
}

void stg_kafka_source_release(stg_source *source, uint32_t number)
{
    stg_kafka_source *s = (stg_kafka_source *)source;
    stg_kafka_assignment *p = end_before(s, number);

    if (p == NULL) {
        p = stg_kafka_assignment_find_number(s, number);
        if (p == NULL || p->state != STG_ASSIGNMENT_REVOKING)
            return;
        p->state = STG_ASSIGNMENT_REVOKED;
    }
    if (!source->host->keeps_rows)
        stg_store_unclaim(source->host->store, number);
    if (p->state == STG_ASSIGNMENT_REVOKED && p->before_count == 0)
        finish(p);
}
