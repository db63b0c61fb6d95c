/* The metrics of the source: the facts that it states, as it names them, and its
 * partitions, under names that begin with its own. The queue has neither: its
 * numbers are the store's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/snapshot.h"

enum { NUMBER_TEXT = 12, NAME_TEXT = 80 };

void stg_snapshot_free_source(stg_snapshot *p)
{
    stg_snapshot_source *s = &p->source;

    for (size_t i = 0; i < s->count; i++)
        free((void *)(uintptr_t)s->partitions[i].topic);
    free(s->partitions);
    free(s->lags);
    *s = (stg_snapshot_source){.partitions = NULL};
}

static void put_partition(stg_exposition *page, const char *target,
                          const stg_source_view *v, uint64_t value)
{
    char number[NUMBER_TEXT];
    stg_label labels[] = {
        {"topic", v->topic}, {"partition", number}, {"target", target}};

    if (v->topic == NULL)
        return; // out of memory when the topic was copied
    snprintf(number, sizeof number, "%u", (unsigned)v->partition);
    stg_page_sample(page, "", labels, target != NULL ? 3 : 2, value);
}

/* A gauge whose name begins with the source's. The page keeps the text until the
 * next family. */
static void begin_family(const stg_snapshot_source *s, stg_exposition *page,
                         char text[NAME_TEXT], const char *name,
                         const char *help)
{
    snprintf(text, NAME_TEXT, "stagger_%s_%s", s->name, name);
    stg_page_family(page, text, "gauge", help);
}

static uint64_t next_of(const stg_source_view *v)
{
    return v->next;
}

static uint64_t end_of(const stg_source_view *v)
{
    return v->end;
}

static uint64_t committed_of(const stg_source_view *v)
{
    return v->committed;
}

static void print_partitions(const stg_snapshot_source *s, stg_exposition *page)
{
    static const struct {
        const char *name, *help;
        uint64_t (*of)(const stg_source_view *v);
    } families[] = {
        {"end_position", "The position that the partition's next record gets.",
         end_of},
        {"next_position", "Where the partition is read on.", next_of},
        {"committed_position",
         "Everything below it is settled for every target.", committed_of},
    };
    char name[NAME_TEXT];

    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        begin_family(s, page, name, families[f].name, families[f].help);
        for (size_t i = 0; i < s->count; i++)
            put_partition(page, NULL, &s->partitions[i],
                          families[f].of(&s->partitions[i]));
    }
}

static void print_lags(const stg_snapshot *p, stg_exposition *page)
{
    const stg_snapshot_source *s = &p->source;
    char name[NAME_TEXT];

    if (s->lags == NULL)
        return;
    begin_family(s, page, name, "lag_messages",
                 "Positions of a partition that a lane has not taken yet; "
                 "some may be gaps.");
    for (size_t row = 0; row < stg_snapshot_own_rows(p); row++)
        for (size_t i = 0; i < s->count; i++)
            put_partition(page, p->rows[row].name, &s->partitions[i],
                          s->lags[row * s->count + i]);
}

/* Those of one name are one family. */
static void print_facts(const stg_snapshot_source *s, stg_exposition *page)
{
    const char *family = "";

    for (size_t i = 0; i < s->fact_count; i++) {
        const stg_source_fact *f = &s->facts[i];
        stg_label label = {"result", f->result};

        if (strcmp(f->name, family) != 0)
            stg_page_family(page, f->name, f->is_counter ? "counter" : "gauge",
                            f->help);
        family = f->name;
        stg_page_sample(page, "", &label, f->result != NULL, f->value);
    }
}

void stg_snapshot_print_source(const stg_snapshot *p, stg_exposition *page)
{
    print_facts(&p->source, page);
    if (p->source.partitions == NULL)
        return;
    print_partitions(&p->source, page);
    print_lags(p, page);
}
