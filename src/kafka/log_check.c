/* Whether a partition's log is still the one that its cursors were made on
 * (I31): a topic that was deleted and made again has the same name, and may
 * have more records than a cursor says. Its fingerprint tells: the store has
 * it, the catch-up reader compares it with the topic. Asked before each claim,
 * and of a partition that is read when a broker did not know its topic for a
 * while.
 *
 * The trap: a log without any fingerprint cannot be told from another. So the
 * first mark is stored at once, later ones are gathered. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kafka/assignment.h"

static const stg_ns RETRY = 2 * STG_S; /* after no answer */
static const stg_ns SAVE = 5 * STG_S;  /* marks are gathered so long */

/* -- what the store knows -------------------------------------------------- */

static const stg_known_log *find_known(const stg_known_log *all, size_t count,
                                       const stg_kafka_assignment *p)
{
    for (size_t i = 0; i < count; i++)
        if (stg_kafka_assignment_is_of(p, all[i].topic, all[i].partition))
            return &all[i];
    return NULL;
}

static void compare(stg_kafka_assignment *p)
{
    stg_kafka_compare(p->source->kafka, &p->tp, &p->print);
}

/* A log without a fingerprint is not compared: there is nothing to compare. */
static void take_known(stg_kafka_assignment *p, const stg_known_log *known)
{
    p->print = (stg_fingerprint){.begin = 0};
    if (known != NULL) {
        p->print = known->print;
        p->known = known->number;
    }
    if (known == NULL || !stg_fingerprint_is_known(&p->print)) {
        p->state = STG_ASSIGNMENT_CHECKED;
        return;
    }
    p->state = STG_ASSIGNMENT_COMPARING;
    compare(p);
}

static void have_looked(void *ctx, const stg_known_log *all, size_t count)
{
    stg_kafka_source *s = ctx;
    stg_kafka_assignment *p = NULL;

    s->is_looking_up = false;
    if (s->kafka == NULL)
        return;
    while ((p = stg_kafka_assignment_next(s, p)) != NULL)
        if (p->state == STG_ASSIGNMENT_LOOKED_UP)
            take_known(p, find_known(all, count, p));
    stg_kafka_source_check_all(s);
}

/* One question for all that wait; who comes later waits for the next. */
void stg_kafka_source_check_all(stg_kafka_source *s)
{
    const stg_source_host *h = stg_kafka_source_host(s);
    stg_kafka_assignment *p = NULL;

    stg_kafka_source_claim_checked(s);
    if (s->is_looking_up || s->kafka == NULL || h->is_ending(h->ctx))
        return;
    while ((p = stg_kafka_assignment_next(s, p)) != NULL)
        if (p->state == STG_ASSIGNMENT_UNCHECKED) {
            p->state = STG_ASSIGNMENT_LOOKED_UP;
            s->is_looking_up = true;
        }
    if (!s->is_looking_up)
        return;
    stg_store_known_logs(h->store, s->base.ops->name, have_looked, s);
}

void stg_kafka_assignment_check(stg_kafka_assignment *p)
{
    // That it is another one is known of one that has a predecessor.
    p->state = p->previous == STG_NO_PARTITION ? STG_ASSIGNMENT_UNCHECKED
                                               : STG_ASSIGNMENT_CHECKED;
}

/* -- what the topic says --------------------------------------------------- */

static void report_unsure(stg_kafka_assignment *p, const char *why)
{
    const stg_source_host *h = stg_kafka_source_host(p->source);
    char text[256];

    snprintf(
        text, sizeof text,
        "%.120s/%u may be another topic than the one that was read: %s; it "
        "is read on from where it was",
        p->tp.topic, (unsigned)p->tp.partition, why);
    STG_LOG(h->log, STG_LOG_WARN, "topic-uncertain",
            stg_field_text("topic", p->tp.topic),
            stg_field_number("partition", p->tp.partition),
            stg_field_text("detail", text));
    h->alert(h->ctx, text);
}

static void compare_again(stg_deadline *d)
{
    stg_kafka_assignment *p = STG_HEAP_HOLDER(d, stg_kafka_assignment, retry);

    if (p->source->kafka != NULL)
        compare(p);
}

static void wait_for_answer(stg_kafka_assignment *p)
{
    p->retry.passed = compare_again;
    stg_deadline_set(p->source->base.host->deadlines, &p->retry,
                     stg_ns_add(stg_deadlines_now(), RETRY));
}

/* Before its claim: another log gets another number. */
static void check_new(stg_kafka_assignment *p, const stg_kafka_compared *c)
{
    if (c->how == STG_KAFKA_OTHER) {
        p->previous = p->known;
        p->why_other = c->why;
    }
    p->is_unsure = c->how == STG_KAFKA_UNSURE;
    p->state = STG_ASSIGNMENT_CHECKED;
}

/* It is read, or was until a moment ago. */
/* UNSURE is read on: an alert has been raised, and to read a log again from its
 * begin would send all of it a second time. */
static void check_read(stg_kafka_assignment *p, const stg_kafka_compared *c)
{
    if (c->how == STG_KAFKA_OTHER)
        stg_kafka_renew(p->source->kafka, &p->tp);
    else
        stg_kafka_resume(p->source->kafka, &p->tp);
}

static void take_answer(stg_kafka_source *s, const stg_kafka_compared *c)
{
    stg_kafka_assignment *p = stg_kafka_assignment_find(s, &c->tp);
    bool is_read = p != NULL && p->state == STG_ASSIGNMENT_READING;

    if (p == NULL || (!is_read && p->state != STG_ASSIGNMENT_COMPARING))
        return;
    if (c->how == STG_KAFKA_NO_ANSWER) {
        wait_for_answer(p);
        return;
    }
    if (c->how == STG_KAFKA_UNSURE)
        report_unsure(p, c->why);
    if (is_read)
        check_read(p, c);
    else
        check_new(p, c);
}

void stg_kafka_source_compared(void *source, const stg_kafka_compared *all,
                               size_t count)
{
    for (size_t i = 0; i < count; i++)
        take_answer(source, &all[i]);
    stg_kafka_source_claim_checked(source);
}

void stg_kafka_source_suspect(stg_kafka_source *s,
                              const stg_topic_partition *tp)
{
    stg_kafka_assignment *p = stg_kafka_assignment_find(s, tp);

    if (p == NULL || p->state != STG_ASSIGNMENT_READING)
        return;
    if (stg_fingerprint_is_known(&p->print))
        compare(p);
    else
        stg_kafka_resume(s->kafka, tp);
}

/* -- what is noted --------------------------------------------------------- */

/* Before a revocation, at the end, and by the timer: the next owner compares
 * with what is in the store. Without memory the marks wait for the next
 * time. */
void stg_kafka_source_save_prints(stg_kafka_source *s)
{
    size_t count = 0, room = 0;
    stg_known_log *all;
    stg_kafka_assignment *p;

    stg_deadline_clear(s->base.host->deadlines, &s->save);
    for (p = stg_kafka_assignment_next(s, NULL); p != NULL;
         p = stg_kafka_assignment_next(s, p))
        room += p->is_marked;
    if (room == 0 || (all = calloc(room, sizeof *all)) == NULL)
        return;
    for (p = stg_kafka_assignment_next(s, NULL); p != NULL;
         p = stg_kafka_assignment_next(s, p)) {
        if (!p->is_marked)
            continue;
        p->is_marked = false;
        all[count++] = (stg_known_log){.number = p->number, .print = p->print};
    }
    stg_store_put_fingerprints(s->base.host->store, all, count);
    free(all);
}

static void save(stg_deadline *d)
{
    stg_kafka_source_save_prints(STG_HEAP_HOLDER(d, stg_kafka_source, save));
}

void stg_kafka_assignment_mark(stg_kafka_assignment *p,
                               const stg_log_mark *mark)
{
    stg_kafka_source *s = p->source;
    bool is_first = !stg_fingerprint_is_known(&p->print);

    if (p->state != STG_ASSIGNMENT_READING)
        return;
    stg_fingerprint_add(&p->print, mark, p->begin);
    p->is_marked = true;
    if (is_first) {
        stg_kafka_source_save_prints(s);
    } else if (stg_deadline_at(&s->save) == STG_NEVER) {
        s->save.passed = save;
        stg_deadline_set(s->base.host->deadlines, &s->save,
                         stg_ns_add(stg_deadlines_now(), SAVE));
    }
}
