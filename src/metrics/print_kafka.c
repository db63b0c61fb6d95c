/* The metrics of topics of Kafka. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/snapshot.h"

enum { NUMBER_TEXT = 12 };

void stg_snapshot_free_kafka(stg_snapshot *p)
{
    stg_snapshot_kafka *k = &p->kafka;

    for (size_t i = 0; i < k->count; i++)
        free(k->places[i].topic);
    free(k->places);
    free(k->lags);
    *k = (stg_snapshot_kafka){.places = NULL};
}

/* -- printing it ----------------------------------------------------------- */

static void put_place(stg_exposition *page, const char *target,
                      const stg_snapshot_place *place, uint64_t value)
{
    char number[NUMBER_TEXT];
    stg_label labels[] = {
        {"topic", place->topic}, {"partition", number}, {"target", target}};

    if (place->topic == NULL)
        return; // there was no memory
    snprintf(number, sizeof number, "%u", (unsigned)place->partition);
    stg_page_sample(page, "", labels, target != NULL ? 3 : 2, value);
}

static uint64_t next_of(const stg_snapshot_place *place)
{
    return place->next;
}

static uint64_t end_of(const stg_snapshot_place *place)
{
    return place->end;
}

static uint64_t committed_of(const stg_snapshot_place *place)
{
    return place->committed;
}

static void print_places(const stg_snapshot_kafka *k, stg_exposition *page)
{
    static const struct {
        const char *name, *help;
        uint64_t (*of)(const stg_snapshot_place *place);
    } families[] = {
        {"stagger_kafka_end_position",
         "The position that the partition's next record gets.", end_of},
        {"stagger_kafka_next_position", "Where the partition is read on.",
         next_of},
        {"stagger_kafka_committed_position",
         "Everything below it is settled for every target.", committed_of},
    };

    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        stg_page_family(page, families[f].name, "gauge", families[f].help);
        for (size_t i = 0; i < k->count; i++)
            put_place(page, NULL, &k->places[i], families[f].of(&k->places[i]));
    }
}

static void print_lags(const stg_snapshot *p, stg_exposition *page)
{
    const stg_snapshot_kafka *k = &p->kafka;

    if (k->lags == NULL)
        return;
    stg_page_family(page, "stagger_kafka_lag_messages", "gauge",
                    "Positions of a partition that a lane has not taken yet; "
                    "some may be gaps.");
    for (size_t row = 0; row < stg_snapshot_own_rows(p); row++)
        for (size_t i = 0; i < k->count; i++)
            put_place(page, p->rows[row].name, &k->places[i],
                      k->lags[row * k->count + i]);
}

static void put_result(stg_exposition *page, const char *result, uint64_t value)
{
    stg_label label = {"result", result};

    stg_page_sample(page, "", &label, 1, value);
}

static void print_counts(const stg_snapshot_kafka *k, stg_exposition *page)
{
    const struct {
        const char *name, *type, *help;
        uint64_t value;
    } families[] = {
        {"stagger_kafka_up", "gauge", "1 when a broker answers.",
         !k->counts.is_away},
        {"stagger_kafka_partitions", "gauge", "Partitions that are read.",
         k->count},
        {"stagger_kafka_messages_total", "counter",
         "Messages that were read ahead of all lanes.", k->partitions.messages},
        {"stagger_kafka_rebalances_total", "counter",
         "Partitions given, taken back and lost, as often as it was said.",
         k->counts.rebalances},
        {"stagger_kafka_partitions_taken_total", "counter",
         "Partitions whose reading has begun.", k->partitions.taken},
        {"stagger_kafka_fenced_total", "counter",
         "Partitions that another hub had taken in the store.",
         k->partitions.fenced},
        {"stagger_kafka_renewed_total", "counter",
         "Partitions of topics that were made again, or cut off.",
         k->partitions.renewed},
        {"stagger_kafka_partitions_added_total", "counter",
         "Partitions that topics have got.", k->partitions.added},
        {"stagger_kafka_topics_missing", "gauge", "Topics that are not there.",
         k->topics_missing},
        {"stagger_kafka_expired_total", "counter",
         "Positions that the topics had lost before they were read, at most.",
         k->partitions.expired},
        {"stagger_kafka_too_large_total", "counter",
         "Messages that were larger than a message may be.",
         k->counts.too_large},
        {"stagger_kafka_headers_lost_total", "counter",
         "Headers of records that should go on and could not be sent.",
         k->counts.headers_lost},
        {"stagger_kafka_skipped_total", "counter",
         "Records without a value that are no messages.", k->counts.skipped},
    };

    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        stg_page_family(page, families[i].name, families[i].type,
                        families[i].help);
        stg_page_sample(page, "", NULL, 0, families[i].value);
    }
    stg_page_family(page, "stagger_kafka_commits_total", "counter",
                    "Commits of offsets, by their result.");
    put_result(page, "ok",
               stg_ns_sub(k->counts.commits, k->counts.commit_failures));
    put_result(page, "failed", k->counts.commit_failures);
}

static void print_letters(const stg_snapshot_kafka *k, stg_exposition *page)
{
    if (!k->has_letters)
        return;
    stg_page_family(page, "stagger_kafka_letters_total", "counter",
                    "Dead letters for their topic: copied whole, cut (without "
                    "their body), or left out.");
    put_result(page, "whole", stg_ns_sub(k->letters.written, k->letters.cut));
    put_result(page, "cut", k->letters.cut);
    put_result(page, "left-out", k->letters.left_out);
}

void stg_snapshot_print_kafka(const stg_snapshot *p, stg_exposition *page)
{
    if (!p->kafka.is_there)
        return;
    print_counts(&p->kafka, page);
    print_letters(&p->kafka, page);
    print_places(&p->kafka, page);
    print_lags(p, page);
}
