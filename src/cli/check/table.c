#include "cli/check/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <stagger/text.h>

#include "cli/say.h"
#include "config/from.h"
#include "config/lane_policy.h"
#include "config/shard.h"
#include "core/writer.h"
#include "kafka/topic.h"

enum { COLUMNS = 6, CELL = 32 };

typedef char cell[CELL];

static const char *const heads[COLUMNS] = {"target", "policy", "in flight",
                                           "rate",   "order",  "shed after"};

static void print_time(char *text, size_t size, stg_ns time)
{
    stg_writer w = stg_writer_on(text, size);

    if (time == STG_NEVER)
        stg_write_text(&w, "none");
    else
        stg_write_duration(&w, time);
}

/* The name of a policy, or its first word. */
static void print_policy(cell text, const stg_settings *s,
                         const stg_target_settings *t)
{
    const char *policy = t->policy_text;

    if (policy == NULL)
        policy = stg_lane_policy_preset(s->target_count);
    snprintf(text, CELL, "%.*s%s", (int)strcspn(policy, " "), policy,
             strchr(policy, ' ') != NULL ? " ..." : "");
}

static void fill(cell row[COLUMNS], const stg_settings *s,
                 const stg_target_settings *t)
{
    static const char *const orders[] = {"none", "key", "strict"};
    stg_writer w = stg_writer_on(row[3], CELL);

    snprintf(row[0], CELL, "%s", t->name);
    if (strlen(t->name) >= CELL)
        memcpy(row[0] + CELL - 4, "...", 4);
    print_policy(row[1], s, t);
    snprintf(row[2], CELL, "%" PRIu32, t->in_flight_max);
    if (t->policy->rate > 0) {
        stg_write_thousandths(&w, t->policy->rate);
        stg_write_text(&w, "/s");
    } else {
        stg_write_text(&w, "-");
    }
    snprintf(row[4], CELL, "%s", orders[t->order]);
    print_time(row[5], CELL, t->shed_after);
}

/* Without what may be a secret in it. */
static void print_url(const stg_target_settings *t, FILE *to)
{
    size_t size = strcspn(t->url, "?");

    stg_say(to, "  %.*s%s%s%s%s\n", (int)size, t->url,
            t->url[size] != '\0' ? "?..." : "", t->is_paused ? "  paused" : "",
            t->match_count > 0 ? "  filtered" : "",
            t->start == STG_TARGET_START_EARLIEST ? "  start earliest" : "");
}

static void measure(const stg_settings *s, size_t widths[COLUMNS])
{
    cell row[COLUMNS];

    for (int i = 0; i < COLUMNS; i++)
        widths[i] = strlen(heads[i]);
    for (size_t t = 0; t < s->target_count; t++) {
        fill(row, s, &s->targets[t]);
        for (int i = 0; i < COLUMNS; i++)
            if (strlen(row[i]) > widths[i])
                widths[i] = strlen(row[i]);
    }
}

static void print_targets(const stg_settings *s, FILE *to)
{
    size_t widths[COLUMNS];
    cell row[COLUMNS];

    measure(s, widths);
    for (int i = 0; i < COLUMNS; i++)
        fprintf(to, "%s%-*s", i > 0 ? "  " : "", (int)widths[i], heads[i]);
    fputs("  url\n", to);
    for (size_t t = 0; t < s->target_count; t++) {
        fill(row, s, &s->targets[t]);
        for (int i = 0; i < COLUMNS; i++)
            fprintf(to, "%s%-*s", i > 0 ? "  " : "", (int)widths[i], row[i]);
        print_url(&s->targets[t], to);
    }
}

static void print_kafka(const stg_settings *s, FILE *to)
{
    char group[STG_SHARD_GROUP_MAX];

    fputs("reads    from Kafka,", to);
    for (size_t i = 0; i < s->kafka.topics.count; i++)
        stg_say(to, "%s %s%s", i > 0 ? "," : "", s->kafka.topics.at[i],
                stg_topic_is_pattern(s->kafka.topics.at[i])
                    ? " (a pattern: all topics that it matches)"
                    : "");
    stg_say(to, ", as a member of the group %s\n", stg_shard_group(s, group));
}

static void print_ways(const stg_settings *s, FILE *to)
{
    char kept[CELL];

    print_time(kept, sizeof kept, s->store.retention);
    if (s->source == STG_SOURCE_STDIN)
        fputs("reads    standard input, a line a message\n", to);
    if (s->source == STG_SOURCE_KAFKA)
        print_kafka(s, to);
    if (s->listen.address != NULL)
        stg_say(to, "listens  on %s%s, %s\n",
                s->listen.certificate_file != NULL ? "https://" : "",
                s->listen.address,
                s->listen.token_file != NULL ? "with tokens"
                                             : "without tokens");
    if (stg_from_is_postgres(s->store.path))
        stg_say(to, "keeps    %s, for %s\n", s->store.path, kept);
    else
        stg_say(to, "keeps    %s, up to %" PRIu64 " MiB, for %s\n",
                s->store.path, s->store.quota >> 20, kept);
    if (s->alerts.sink_count > 0)
        fprintf(to, "tells    %zu sink%s\n", s->alerts.sink_count,
                s->alerts.sink_count > 1 ? "s" : "");
}

static bool has_same_policy(const void *settings, size_t a, size_t b)
{
    const stg_settings *s = settings;

    return s->targets[a].policy == s->targets[b].policy;
}

static void print_policies(const stg_settings *s, FILE *to)
{
    char text[STG_POLICY_TEXT_MAX], words[STG_JITTER_WORDS_MAX];

    for (size_t i = 0; i < s->target_count; i++) {
        const stg_policy *p = s->targets[i].policy;
        size_t count = stg_count_same(i, s->target_count, has_same_policy, s);

        if (count == 0 || stg_policy_print(p, text) != STG_OK)
            continue;
        stg_say_policy(to, s->targets[i].name, text, count);
        if (stg_say_jitter(p, words) != NULL)
            fprintf(to, "  waits: %s\n", words);
    }
}

void stg_check_summary(const stg_settings *s, FILE *to)
{
    print_ways(s, to);
    fprintf(to, "sends    to %zu target%s:\n\n", s->target_count,
            s->target_count > 1 ? "s" : "");
    print_targets(s, to);
    print_policies(s, to);
}
