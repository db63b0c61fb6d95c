/* Troubles by kind and topic, in a table of a fixed size: the errors of one are counted
 * while it lasts, and it is over when it has been silent for STG_KAFKA_CALM. */
#include "kafka/assignment.h"

#include <stdio.h>
#include <string.h>

/* The one that is the same; else a free one, or that which is silent
 * longest. */
static stg_kafka_trouble *find(stg_kafka_troubles *t, int kind,
                               const char *topic)
{
    stg_kafka_trouble *best = &t->all[0];

    for (size_t i = 0; i < STG_KAFKA_TROUBLES; i++) {
        stg_kafka_trouble *one = &t->all[i];

        if (one->count > 0 && one->kind == kind &&
            strcmp(one->topic, topic) == 0)
            return one;
        if (best->count > 0 &&
            (one->count == 0 || one->last_at < best->last_at))
            best = one;
    }
    best->count = 0;
    return best;
}

/* A trouble that gave way to another one is never told to be over. */
bool stg_kafka_troubles_note(stg_kafka_troubles *t, int kind, const char *topic,
                             const char *text, stg_ns now)
{
    stg_kafka_trouble *one = find(t, kind, topic != NULL ? topic : "");
    bool is_new = one->count == 0;

    if (is_new) {
        *one = (stg_kafka_trouble){
            .kind = kind, .began_at = now, .told_at = now, .told = 1};
        snprintf(one->topic, sizeof one->topic, "%s",
                 topic != NULL ? topic : "");
    }
    snprintf(one->text, sizeof one->text, "%s", text);
    one->last_at = now;
    one->count++;
    return is_new;
}

/* When it is to be looked at next. */
static stg_ns due_at(const stg_kafka_trouble *one)
{
    stg_ns calm_at = stg_ns_add(one->last_at, STG_KAFKA_CALM),
           remind_at = stg_ns_add(one->told_at, STG_KAFKA_REMIND);

    return one->count > one->told && remind_at < calm_at ? remind_at : calm_at;
}

stg_ns stg_kafka_troubles_tick(stg_kafka_troubles *t, stg_ns now,
                               stg_kafka_trouble_fn *each, void *ctx)
{
    stg_ns next = STG_NEVER;

    for (size_t i = 0; i < STG_KAFKA_TROUBLES; i++) {
        stg_kafka_trouble *one = &t->all[i];

        if (one->count == 0)
            continue;
        if (now >= due_at(one)) {
            bool is_over = now >= stg_ns_add(one->last_at, STG_KAFKA_CALM);

            each(ctx, one, is_over);
            one->told_at = now;
            one->told = one->count;
            if (is_over)
                one->count = 0;
        }
        if (one->count > 0 && due_at(one) < next)
            next = due_at(one);
    }
    return next;
}
