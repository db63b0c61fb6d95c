/* A test message through receivers made for it alone, which share the world of
 * the real ones except for policy, log and callbacks.
 *
 * The real receivers cannot be used: they may wait for a retry, and what they
 * send is merged. The trial begins and ends in a turn of the loop of its own,
 * since `done` may free what the receivers stand on, and must not run inside
 * one of them.
 *
 * under_way counts the receivers that were made and are not idle yet. */

#include <stdlib.h>
#include <string.h>

#include <stagger/text.h>

#include "alerts/alerts.h"
#include "host/wall.h"

/* One receiver of it. */
typedef struct
try {
    stg_alert_receiver *receiver; /* NULL: it could not be made, or has ended */
    stg_alert_result result;
}
try;

struct stg_alert_trial {
    stg_alert_world world;
    stg_deadline turn; /* in which it begins, and then ends */
    stg_digest digest;
    bool has_begun;
    stg_alert_trial_fn *done;
    void *ctx;
    size_t count, under_way;
    try tries[];
};

const char *stg_receiver_type_name(stg_receiver_type type)
{
    static const char *const names[] = {[STG_RECEIVER_SLACK] = "slack",
                                        [STG_RECEIVER_MAIL] = "mail",
                                        [STG_RECEIVER_WEBHOOK] = "webhook",
                                        [STG_RECEIVER_TEAMS] = "teams",
                                        [STG_RECEIVER_PAGERDUTY] = "pagerduty",
                                        [STG_RECEIVER_OPSGENIE] = "opsgenie",
                                        [STG_RECEIVER_TEMPLATE] = "template"};

    return names[type];
}

static void free_trial(stg_alert_trial *t)
{
    for (size_t i = 0; i < t->count; i++) {
        stg_alert_receiver_free(t->tries[i].receiver);
        free(t->tries[i].result.name);
        free(t->tries[i].result.detail);
    }
    free(t);
}

/* results are lent to done; a NULL list with a count of 0 means that there was
 * no memory. */
static void end(stg_alert_trial *t)
{
    stg_alert_result *results = calloc(t->count + 1, sizeof *results);

    for (size_t i = 0; results != NULL && i < t->count; i++)
        results[i] = t->tries[i].result;
    stg_deadline_clear(t->world.deadlines, &t->turn);
    // Whoever hears of it may end what the receivers stand on.
    for (size_t i = 0; i < t->count; i++) {
        stg_alert_receiver_free(t->tries[i].receiver);
        t->tries[i].receiver = NULL;
    }
    t->done(t->ctx, results, results != NULL ? t->count : 0);
    free(results);
    free_trial(t);
}

/* Not from within what a receiver says. */
static void end_soon(stg_alert_trial *t)
{
    stg_deadline_set(t->world.deadlines, &t->turn, stg_deadlines_now());
}

static void turn(stg_deadline *d)
{
    stg_alert_trial *t = STG_HEAP_HOLDER(d, stg_alert_trial, turn);

    if (!t->has_begun) {
        t->has_begun = true;
        t->under_way++; // this turn itself
        for (size_t i = 0; i < t->count; i++)
            if (t->tries[i].receiver != NULL)
                stg_alert_receiver_push(t->tries[i].receiver, &t->digest);
        t->under_way--;
    }
    if (t->under_way == 0)
        end(t);
}

static try *try_of(stg_alert_trial *t, const stg_alert_receiver *s)
{
    size_t i = 0;

    while (t->tries[i].receiver != s)
        i++;
    return &t->tries[i];
}

static void receiver_ended(void *ctx, stg_alert_receiver *s, bool is_sent,
                           const char *detail)
{
    stg_alert_trial *t = ctx;
    try *found = try_of(t, s);

    // A second time: an event that was opened is closed again.
    free(found->result.detail);
    found->result.is_sent = is_sent;
    found->result.detail = strdup(detail);
}

static void receiver_is_idle(void *ctx, stg_alert_receiver *s)
{
    stg_alert_trial *t = ctx;

    (void)s;
    if (--t->under_way == 0)
        end_soon(t);
}

/* A receiver that cannot be made (a secret cannot be read) is a result, not an
 * error. False: no memory. */
static bool add(stg_alert_trial *t, const stg_alert_receiver_options *o)
{
    try *new = &t->tries[t->count++];
    stg_error why;

    *new = (try){.result = {.type = o->type, .name = strdup(o->name)}};
    if (new->result.name == NULL)
        return false;
    if (stg_alert_receiver_new(&new->receiver, &t->world, o, &why) == STG_OK) {
        t->under_way++;
        return true;
    }
    new->receiver = NULL;
    new->result.detail = strdup(why.text);
    return new->result.detail != NULL;
}

static bool is_chosen(const stg_alert_trial_options *o, size_t i)
{
    return o->receiver == NULL ||
           strcmp(o->alerts->receivers[i].name, o->receiver) == 0;
}

static size_t count_of(const stg_alert_trial_options *o)
{
    size_t count = 0;

    for (size_t i = 0; i < o->alerts->receiver_count; i++)
        count += is_chosen(o, i);
    return count;
}

/* One attempt, nothing put off and nothing logged: what is wrong is the answer.
 * is_strict: a mail that one recipient did not get counts as failed. */
static void set_world(stg_alert_trial *t, const stg_alert_world *w)
{
    t->world = *w;
    (void)stg_policy_parse(&t->world.policy, "none", NULL);
    t->world.interval = 0;
    t->world.is_strict = true;
    t->world.log = NULL;
    t->world.ended = receiver_ended;
    t->world.idle = receiver_is_idle;
    t->world.ctx = t;
}

static void make_digest(stg_alert_trial *t, const stg_alert_options *o)
{
    stg_digest_make_test(&t->digest, stg_wall_now());
    stg_alerts_hub_name(o, t->digest.hub);
}

/* Receivers that cannot be made have a result as well: what is wrong with them. */
stg_status stg_alert_trial_start(stg_alert_trial **trial,
                                 const stg_alert_trial_options *o,
                                 stg_alert_trial_fn *done, void *ctx)
{
    size_t count = count_of(o);
    stg_alert_trial *t;

    if (count == 0)
        return STG_NOT_FOUND;
    t = calloc(1, sizeof *t + count * sizeof(try));
    if (t == NULL)
        return STG_IO;
    set_world(t, o->world);
    make_digest(t, o->alerts);
    t->done = done;
    t->ctx = ctx;
    t->turn.passed = turn;
    for (size_t i = 0; i < o->alerts->receiver_count; i++)
        if (is_chosen(o, i) && !add(t, &o->alerts->receivers[i])) {
            free_trial(t);
            return STG_IO;
        }
    end_soon(t);
    *trial = t;
    return STG_OK;
}

/* Nothing was pushed, so no receiver says that it is idle: the turn ends it. */
static void end_unbegun(stg_alert_trial *t)
{
    t->has_begun = true;
    t->under_way = 0;
    for (size_t i = 0; i < t->count; i++)
        if (t->tries[i].receiver != NULL)
            t->tries[i].result.detail = strdup("cancelled");
}

void stg_alert_trial_cancel(stg_alert_trial *trial)
{
    if (!trial->has_begun) {
        end_unbegun(trial);
        return;
    }
    for (size_t i = 0; i < trial->count; i++)
        if (trial->tries[i].receiver != NULL &&
            !stg_alert_receiver_is_idle(trial->tries[i].receiver))
            stg_alert_receiver_cancel(trial->tries[i].receiver);
}
