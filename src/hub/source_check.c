/* Whether a partition's log is still the one that its cursors were made on
 * (I31): a topic that was deleted and made again has the same name, and may have
 * more records than a cursor says. Asked before each claim, and of a partition
 * that is read when a broker did not know its topic for a while. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/hub_internal.h"

static const stg_ns AGAIN = 2 * STG_S; /* after no answer */
static const stg_ns SAVE = 5 * STG_S;  /* marks are gathered so long */

static stg_source_place *next_place(const stg_source *s, stg_link *at)
{
    stg_link *next =
        at == NULL ? stg_list_first(&s->places) : stg_list_next(&s->places, at);

    return next == NULL ? NULL : STG_HOLDER(next, stg_source_place, link);
}

/* -- what the store knows -------------------------------------------------- */

static const stg_known_log *find_known(const stg_known_log *all, size_t count,
                                       const stg_source_place *p)
{
    for (size_t i = 0; i < count; i++)
        if (stg_source_is_same(p, all[i].topic, all[i].partition))
            return &all[i];
    return NULL;
}

static void compare(stg_source_place *p)
{
    stg_kafka_place place = stg_source_place_of(p);

    stg_kafka_compare(p->source->kafka, &place, &p->print);
}

static void judge_known(stg_source_place *p, const stg_known_log *known)
{
    p->print = (stg_fingerprint){.begin = 0};
    if (known != NULL) {
        p->print = known->print;
        p->known = known->number;
    }
    if (known != NULL && stg_fingerprint_is_known(&p->print))
        compare(p);
    else
        p->state = STG_SOURCE_CHECKED;
}

static void have_looked(void *ctx, const stg_known_log *all, size_t count)
{
    stg_source *s = ctx;
    stg_source_place *p, *next;

    s->is_looking = false;
    if (s->hub->is_closing || s->kafka == NULL)
        return;
    for (p = next_place(s, NULL); p != NULL; p = next) {
        next = next_place(s, &p->link);
        if (p->state != STG_SOURCE_CHECKING || !p->is_looked_up)
            continue;
        p->is_looked_up = false;
        judge_known(p, find_known(all, count, p));
    }
    stg_source_check_all(s);
}

/* One question for all that wait; who comes later waits for the next. */
void stg_source_check_all(stg_source *s)
{
    stg_source_place *p;
    bool is_wanted = false;

    stg_source_claim_checked(s);
    if (s->is_looking || s->hub->is_closing || s->hub->is_broken ||
        s->kafka == NULL)
        return;
    for (p = next_place(s, NULL); p != NULL; p = next_place(s, &p->link))
        if (p->state == STG_SOURCE_CHECKING && p->is_new_check) {
            p->is_new_check = false;
            p->is_looked_up = is_wanted = true;
        }
    if (!is_wanted)
        return;
    s->is_looking = true;
    stg_store_known_logs(s->hub->store, STG_SOURCE_LOG, have_looked, s);
}

void stg_source_check_place(stg_source_place *p)
{
    // That it is another one is known of one that has a predecessor.
    p->is_new_check = p->previous == STG_NO_PARTITION;
    p->state = p->is_new_check ? STG_SOURCE_CHECKING : STG_SOURCE_CHECKED;
}

/* -- what the topic says --------------------------------------------------- */

static void tell_unsure(stg_source_place *p, const char *why)
{
    stg_hub *h = p->source->hub;
    char text[256];

    snprintf(
        text, sizeof text,
        "%.120s/%u may be another topic than the one that was read: %s; it "
        "is read on from where it was",
        p->topic, (unsigned)p->partition, why);
    STG_LOG(h->log, STG_LOG_WARN, "topic-uncertain",
            stg_field_text("topic", p->topic),
            stg_field_number("partition", p->partition),
            stg_field_text("detail", text));
    stg_watch_store(&h->watch, STG_TROUBLE_LOG, text, stg_deadlines_now());
}

static void ask_again(stg_deadline *d)
{
    stg_source_place *p = STG_HEAP_HOLDER(d, stg_source_place, again);

    if (p->source->kafka != NULL)
        compare(p);
}

static void wait_for_answer(stg_source_place *p)
{
    p->again.passed = ask_again;
    stg_deadline_set(&p->source->hub->deadlines, &p->again,
                     stg_ns_add(stg_deadlines_now(), AGAIN));
}

/* Before its claim. */
static void judge_new(stg_source_place *p, const stg_kafka_compared *c)
{
    if (c->how == STG_KAFKA_OTHER) {
        p->previous = p->known;
        p->why_other = c->why;
    }
    p->is_unsure = c->how == STG_KAFKA_UNSURE;
    p->state = STG_SOURCE_CHECKED;
}

/* It is read, or was until a moment ago. */
static void judge_given(stg_source_place *p, const stg_kafka_compared *c)
{
    stg_kafka_place place = stg_source_place_of(p);

    if (c->how == STG_KAFKA_OTHER)
        stg_kafka_renew(p->source->kafka, &place);
    else
        stg_kafka_resume(p->source->kafka, &place);
}

static void take_answer(stg_source *s, const stg_kafka_compared *c)
{
    stg_source_place *p = stg_source_find(s, &c->place);
    bool is_given = p != NULL && p->state == STG_SOURCE_GIVEN;

    if (p == NULL || (!is_given && p->state != STG_SOURCE_CHECKING))
        return;
    if (c->how == STG_KAFKA_NO_ANSWER) {
        wait_for_answer(p);
        return;
    }
    if (c->how == STG_KAFKA_UNSURE)
        tell_unsure(p, c->why);
    if (is_given)
        judge_given(p, c);
    else
        judge_new(p, c);
}

void stg_source_compared(void *source, const stg_kafka_compared *all,
                         size_t count)
{
    for (size_t i = 0; i < count; i++)
        take_answer(source, &all[i]);
    stg_source_claim_checked(source);
}

void stg_source_suspect(stg_source *s, const stg_kafka_place *place)
{
    stg_source_place *p = stg_source_find(s, place);

    if (p == NULL || p->state != STG_SOURCE_GIVEN)
        return;
    if (stg_fingerprint_is_known(&p->print))
        compare(p);
    else
        stg_kafka_resume(s->kafka, place);
}

/* -- what is noted --------------------------------------------------------- */

void stg_source_save_prints(stg_source *s)
{
    size_t count = 0, room = 0;
    stg_known_log *all;
    stg_source_place *p;

    stg_deadline_clear(&s->hub->deadlines, &s->save);
    for (p = next_place(s, NULL); p != NULL; p = next_place(s, &p->link))
        room += p->is_marked;
    if (room == 0 || (all = calloc(room, sizeof *all)) == NULL)
        return;
    for (p = next_place(s, NULL); p != NULL; p = next_place(s, &p->link)) {
        if (!p->is_marked)
            continue;
        p->is_marked = false;
        all[count++] = (stg_known_log){.number = p->number, .print = p->print};
    }
    stg_store_put_fingerprints(s->hub->store, all, count);
    free(all);
}

static void save(stg_deadline *d)
{
    stg_source_save_prints(STG_HEAP_HOLDER(d, stg_source, save));
}

/* The first one is stored at once: a log without any cannot be told from
 * another. */
void stg_source_mark(stg_source_place *p, const stg_log_mark *mark)
{
    stg_source *s = p->source;
    bool is_first = !stg_fingerprint_is_known(&p->print);

    if (p->state != STG_SOURCE_GIVEN)
        return;
    stg_fingerprint_add(&p->print, mark, p->begin);
    p->is_marked = true;
    if (is_first) {
        stg_source_save_prints(s);
    } else if (stg_deadline_at(&s->save) == STG_NEVER) {
        s->save.passed = save;
        stg_deadline_set(&s->hub->deadlines, &s->save,
                         stg_ns_add(stg_deadlines_now(), SAVE));
    }
}
