/* The targets of a hub: one for each of the settings, in their order, those that
 * calls have added, then
 * those that only the store knows; and the table from lane to target.
 *
 * Owns names, urls and endpoints. A lane number is never given to another
 * name, so the table has NULL where a target was forgotten. All on the loop's
 * thread. */
#include "hub/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "config/targets.h"
#include "http/url.h"
#include "hub/history.h"

static stg_status fail(stg_error *err, stg_status status, const char *what,
                       const char *words)
{
    return stg_hub_refuse(err, status, "%.120s%.250s", what, words);
}

static stg_status fail_memory(stg_error *err)
{
    return fail(err, STG_IO, "", "there is no memory for the targets");
}

/* -- latency --------------------------------------------------------------- */

enum { LEAST = 14 /* 2^14 ns: 16 us */, STEPS = 4 };

/* Four steps of equal length from a power of two to the next. */
static uint32_t bucket_of(stg_ns took)
{
    uint32_t octave, bucket;

    if (took >> LEAST == 0)
        return 0;
    octave = 63 - (uint32_t)__builtin_clzll(took);
    bucket =
        (octave - LEAST) * STEPS + (uint32_t)(took >> (octave - 2)) % STEPS;
    return bucket < STG_LATENCY_BUCKETS ? bucket : STG_LATENCY_BUCKETS - 1;
}

/* The longest time that a bucket has: quantiles say at most this. */
stg_ns stg_latency_end(uint32_t place)
{
    uint32_t bucket = place > 0 ? place - 1 : 0;
    stg_ns octave = (stg_ns)1 << (LEAST + bucket / STEPS);

    return place == 0 ? 0 : octave + octave / STEPS * (bucket % STEPS + 1);
}

void stg_latency_add(stg_latency *l, stg_ns took)
{
    uint32_t *count = &l->counts[bucket_of(took)];

    *count += *count < UINT32_MAX;
}

/* The bucket below whose end the wanted share lies; rounded up, so that one of one is
 * found. */
uint32_t stg_latency_find(const stg_latency *l, uint32_t permille)
{
    uint64_t all = 0, below = 0, needed;

    for (uint32_t i = 0; l != NULL && i < STG_LATENCY_BUCKETS; i++)
        all += l->counts[i];
    needed = (all * permille + 999) / 1000;
    if (all == 0)
        return 0;
    for (uint32_t i = 0; i < STG_LATENCY_BUCKETS; i++) {
        below += l->counts[i];
        if (below >= needed && below > 0)
            return i + 1;
    }
    return STG_LATENCY_BUCKETS;
}

stg_ns stg_latency_quantile(const stg_latency *l, uint32_t permille)
{
    return stg_latency_end(stg_latency_find(l, permille));
}

/* -- states ---------------------------------------------------------------- */

unsigned stg_target_state(const stg_target *t, stg_lane_state lane)
{
    return t->settings == NULL && lane != STG_LANE_REMOVING
               ? (unsigned)STG_TARGET_ORPHANED
               : (unsigned)lane;
}

unsigned stg_target_note_state(stg_target *t, stg_lane_state lane, stg_ns now)
{
    unsigned state = stg_target_state(t, lane);

    if (state != t->state)
        t->state_since = now;
    t->state = state;
    return state;
}

/* last: NULL, where there is no target. */
const char *stg_target_cause(const stg_outcome *last, char text[STG_CAUSE_MAX])
{
    return last == NULL || last->fault == STG_FAULT_NONE
               ? NULL
               : stg_outcome_cause(last, text);
}

/* -- targets --------------------------------------------------------------- */

void stg_added_free(stg_added *a)
{
    stg_target_settings_free(a->settings);
    free(a->text);
    *a = (stg_added){.version = a->version};
}

void stg_target_free(stg_target *t)
{
    stg_oauth_use(t, NULL);
    stg_added_free(&t->added);
    stg_batcher_free(t->batcher);
    free(t->name);
    free(t->url);
    free(t->latency);
    free(t->history);
    stg_recent_free(t->recent);
    free(t->meter.counters);
    free(t->topics_known);
    free(t);
}

stg_target *stg_target_new(const char *name, const char *url)
{
    stg_target *t = calloc(1, sizeof *t);

    if (t == NULL)
        return NULL;
    t->name = strdup(name);
    t->url = strdup(url);
    if (t->name != NULL && t->url != NULL)
        return t;
    stg_target_free(t);
    return NULL;
}

/* Also where it is there already. False: no memory. */
static bool add_name(stg_targets *t, const stg_target *target)
{
    return stg_text_table_add(&t->names, target->name,
                              (size_t)(uintptr_t)target, NULL);
}

/* NULL: no memory. The list grows even if the target could not be made, which
 * does no harm. */
static stg_target *add(stg_targets *t, const char *name, const char *url)
{
    stg_target **all = realloc(t->all, (t->count + 1) * sizeof(stg_target *));
    stg_target *target = stg_target_new(name, url);

    if (all != NULL)
        t->all = all;
    if (target == NULL || all == NULL || !add_name(t, target)) {
        if (target != NULL)
            stg_target_free(target);
        return NULL;
    }
    t->all[t->count++] = target;
    t->changes++;
    return target;
}

char *stg_target_join_headers(const stg_header_setting *headers, size_t count)
{
    size_t size = 1;
    char *lines, *at;

    for (size_t i = 0; i < count; i++)
        size += strlen(headers[i].name) + strlen(headers[i].value) + 4;
    at = lines = calloc(1, size);
    for (size_t i = 0; lines != NULL && i < count; i++)
        at += snprintf(at, size - (size_t)(at - lines), "%s: %s\r\n",
                       headers[i].name, headers[i].value);
    return lines;
}

/* Those that are the same for each message. */
static char *join_headers(const stg_target_settings *s)
{
    stg_header_setting *fixed = calloc(s->header_count + 1, sizeof *fixed);
    size_t count = 0;
    char *lines;

    if (fixed == NULL)
        return NULL;
    for (size_t i = 0; i < s->header_count; i++)
        if (!stg_header_is_template(&s->headers[i]))
            fixed[count++] = s->headers[i];
    lines = stg_target_join_headers(fixed, count);
    free(fixed);
    return lines;
}

static stg_endpoint_options endpoint_options(const stg_target_settings *s,
                                             const char *headers)
{
    const stg_target_common *c = s->common;
    stg_endpoint_options e = stg_endpoint_options_default(s->url);

    e.method = c->method;
    e.headers = headers;
    e.is_open_path = s->is_templated;
    e.ca_file = c->ca_file;
    e.certificate_file = c->certificate_file;
    e.key_file = c->key_file;
    e.server_name = c->server_name;
    e.proxy = c->proxy;
    e.source = c->source;
    e.is_unverified = c->is_unverified;
    e.resolve_timeout = c->resolve_timeout;
    e.connect_timeout = c->connect_timeout;
    e.tls_timeout = c->tls_timeout;
    e.write_timeout = c->write_timeout;
    e.first_byte_timeout = c->first_byte_timeout;
    e.idle_max = c->idle_max;
    e.age_max = c->age_max;
    e.idle_count_max = c->idle_count_max;
    e.answer_max = c->answer_max;
    // Results are read whole; see stg_batch_results().
    e.excerpt_max = c->batch.has_results ? c->answer_max : c->excerpt_max;
    return e;
}

stg_status stg_target_endpoint(stg_endpoint **endpoint, stg_client *client,
                               const stg_target_settings *s, stg_error *err)
{
    char *headers = join_headers(s);
    stg_endpoint_options e = endpoint_options(s, headers);
    stg_status status;

    if (headers == NULL)
        return fail_memory(err);
    status = stg_endpoint_new(endpoint, client, &e, err);
    free(headers);
    return status;
}

/* An endpoint that stays keeps its open connections over a reload. */
bool stg_target_keeps_endpoint(const stg_target *t,
                               const stg_target_settings *s)
{
    char *headers = join_headers(s);
    stg_endpoint_options e = endpoint_options(s, headers);
    bool keeps = headers != NULL && t->endpoint != NULL &&
                 stg_endpoint_matches(t->endpoint, &e);

    free(headers);
    return keeps;
}

static stg_status add_known(stg_targets *t, stg_client *client,
                            const stg_target_settings *s, stg_error *err)
{
    stg_target *target = add(t, s->name, stg_target_url_shown(s));

    if (target == NULL)
        return fail_memory(err);
    target->settings = s;
    return stg_target_endpoint(&target->endpoint, client, s, err);
}

stg_status stg_targets_open(stg_targets *t, stg_client *client,
                            const stg_settings *s, stg_error *err)
{
    for (size_t i = 0; i < s->target_count; i++) {
        char what[STG_TARGET_NAME_MAX + 32];
        stg_error why;
        stg_status status = add_known(t, client, &s->targets[i], &why);

        if (status == STG_OK)
            continue;
        // Not by its URL, which may have a password in it.
        snprintf(what, sizeof what, "target %zu (%s): ", i + 1,
                 s->targets[i].name);
        return fail(err, status, what, why.text);
    }
    t->known = t->count;
    return STG_OK;
}

/* -- lanes ----------------------------------------------------------------- */

/* Grows by half, so that many new lanes do not copy the table each time. */
bool stg_targets_put(stg_targets *t, stg_target *target, uint32_t lane)
{
    target->lane = lane;
    if (lane >= t->lanes) {
        size_t lanes = (size_t)lane + 1 + t->lanes / 2;
        stg_target **grown = realloc(t->by_lane, lanes * sizeof(stg_target *));

        if (grown == NULL)
            return false;
        for (size_t i = t->lanes; i < lanes; i++)
            grown[i] = NULL;
        t->by_lane = grown;
        t->lanes = lanes;
    }
    if (!add_name(t, target))
        return false;
    t->by_lane[lane] = target;
    return true;
}

void stg_targets_unput(stg_targets *t, stg_target *target)
{
    stg_text_table_remove(&t->names, target->name);
    t->by_lane[target->lane] = NULL;
}

typedef struct search {
    stg_targets *targets;
    const stg_store *store;
    const stg_shard_settings *shard;
    bool has_failed; /* no memory */
} search;

/* What another shard has is not this hub's, though the store knows it. */
static void add_stored(void *ctx, uint32_t lane, const char *name,
                       const char *url)
{
    search *s = ctx;
    stg_target *target;

    if (s->has_failed || stg_targets_at(s->targets, lane) != NULL ||
        !stg_shard_has(s->shard, name))
        return;
    target = add(s->targets, name, url);
    s->has_failed =
        target == NULL || !stg_targets_put(s->targets, target, lane);
    if (s->has_failed)
        return;
    target->pause = stg_store_paused(s->store, lane);
    target->is_known = true;
}

/* Targets of the settings first, which get a lane if they have none; then lanes of
 * the store whose targets are in no settings. */
stg_status stg_targets_find_lanes(stg_targets *t, stg_store *store,
                                  const stg_shard_settings *shard,
                                  stg_error *err)
{
    search s = {.targets = t, .store = store, .shard = shard};
    stg_status status = STG_OK;
    uint32_t lane = 0;

    for (size_t i = 0; i < t->known; i++) {
        t->all[i]->is_known = stg_store_has_lane(store, t->all[i]->name);
        status =
            stg_store_lane(store, t->all[i]->name, t->all[i]->url, &lane, err);
        if (status != STG_OK)
            return status;
        if (!stg_targets_put(t, t->all[i], lane))
            return fail_memory(err);
        t->all[i]->pause = stg_store_paused(store, lane);
    }
    status = stg_store_lanes(store, add_stored, &s, err);
    return status == STG_OK && s.has_failed ? fail_memory(err) : status;
}

/* Behind those with settings, ahead of those that only the store knows. */
bool stg_targets_insert(stg_targets *t, stg_target *target)
{
    stg_target **all = realloc(t->all, (t->count + 1) * sizeof(stg_target *));

    if (all != NULL)
        t->all = all;
    if (all == NULL || !add_name(t, target))
        return false;
    memmove(&all[t->known + 1], &all[t->known],
            (t->count - t->known) * sizeof(stg_target *));
    all[t->known++] = target;
    t->count++;
    t->changes++;
    return true;
}

/* The order of the others stays, as pages and metrics show it. */
void stg_targets_move(stg_targets *t, stg_target *target, bool has_settings)
{
    size_t at = 0, to = has_settings ? t->known : t->count - 1;

    while (t->all[at] != target)
        at++;
    if (has_settings == (at < t->known))
        return;
    if (at < to)
        memmove(&t->all[at], &t->all[at + 1], (to - at) * sizeof(stg_target *));
    else
        memmove(&t->all[to + 1], &t->all[to], (at - to) * sizeof(stg_target *));
    t->all[to] = target;
    t->known += has_settings ? 1 : (size_t)-1;
    t->changes++;
}

stg_target *stg_targets_named(const stg_targets *t, const char *name)
{
    size_t number;

    if (!stg_text_table_find(&t->names, name, &number))
        return NULL;
    return (stg_target *)(uintptr_t)number;
}

void stg_targets_remove(stg_targets *t, stg_target *target)
{
    size_t i = t->known;

    while (i < t->count && t->all[i] != target)
        i++;
    if (i == t->count)
        return;
    memmove(&t->all[i], &t->all[i + 1],
            (t->count - i - 1) * sizeof(stg_target *));
    t->count--;
    t->changes++;
    stg_targets_unput(t, target);
    stg_target_free(target);
}

void stg_targets_close(stg_targets *t)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->all[i]->endpoint != NULL)
            stg_endpoint_free(t->all[i]->endpoint);
        t->all[i]->endpoint = NULL;
        stg_oauth_use(t->all[i], NULL);
    }
}

void stg_targets_free(stg_targets *t)
{
    for (size_t i = 0; i < t->count; i++)
        stg_target_free(t->all[i]);
    free(t->all);
    free(t->by_lane);
    stg_text_table_free(&t->names);
}
