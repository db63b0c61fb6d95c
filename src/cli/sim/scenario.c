/* stagger sim delivery FILE: the settings of a hub, and what it would do with a load
 * while targets fail; or a scenario in YAML, which names the settings and says the
 * rest. Alerts are those of the hub's own engine, with the settings' thresholds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alerts/digest.h"
#include "alerts/text.h"
#include "cli/options.h"
#include "cli/sim/delivery.h"
#include "cli/sim/sim.h"
#include "config/load.h"
#include "config/yaml.h"

/* -- a scenario's file ------------------------------------------------------- */

typedef struct reading {
    stg_world_scenario_ask *ask;
    stg_diagnostics *c;
    const stg_yaml_node *settings; /* where they are; NULL: not said */
} reading;

static bool is_text(reading *r, const stg_yaml_node *n, const char *key,
                    const char *expected)
{
    if (n->kind == STG_NODE_TEXT)
        return true;
    stg_complain(r->c, n->place, "%s: expected %s", key, expected);
    return false;
}

/* An option goes before the file. */
static void read_number(reading *r, const stg_yaml_node *n, const char *key,
                        uint32_t least, uint32_t most, uint32_t *number)
{
    uint32_t found;

    if (!is_text(r, n, key, "a number"))
        return;
    if (!stg_options_read_int(n->text, least, most, &found))
        stg_complain(r->c, n->place, "%s: expected %u to %u", key, least, most);
    else if (*number == 0)
        *number = found;
}

static void read_rate(reading *r, const stg_yaml_node *n)
{
    uint32_t rate;

    if (!is_text(r, n, "rate", "a number"))
        return;
    if (!stg_world_scenario_read_rate(n->text, &rate))
        stg_complain(r->c, n->place, "rate: expected 0.001 to 100000");
    else if (r->ask->rate == 0)
        r->ask->rate = rate;
}

static void read_duration(reading *r, const stg_yaml_node *n, const char *key,
                          stg_ns *time)
{
    stg_ns found;

    if (!is_text(r, n, key, "a time, such as 30m"))
        return;
    if (!stg_options_read_duration(n->text, &found) || found == 0)
        stg_complain(r->c, n->place, "%s: expected a time, such as 30m", key);
    else if (*time == 0)
        *time = found;
}

static void read_fault(reading *r, const stg_yaml_node *n)
{
    stg_world_scenario_ask *ask = r->ask;
    stg_error err;

    if (!is_text(r, n, "faults", "a text, such as `leaf3 503 from=5m for=10m`"))
        return;
    if (ask->fault_count == STG_WORLD_SCENARIO_FAULTS_MAX)
        stg_complain(r->c, n->place, "faults: expected %d at most",
                     (int)STG_WORLD_SCENARIO_FAULTS_MAX);
    else if (stg_world_scenario_read_fault(
                 n->text, &ask->faults[ask->fault_count], &err) != STG_OK)
        stg_complain(r->c, n->place, "%s", err.text);
    else
        ask->fault_count++;
}

static void read_faults(reading *r, const stg_yaml_node *n)
{
    if (n->kind != STG_NODE_LIST)
        stg_complain(r->c, n->place, "faults: expected a list");
    for (size_t i = 0; n->kind == STG_NODE_LIST && i < n->count; i++)
        read_fault(r, n->at[i]);
}

static void read_key(reading *r, const stg_yaml_node *key,
                     const stg_yaml_node *n)
{
    static const char *const names[] = {"settings", "rate",   "for", "size",
                                        "latency",  "faults", NULL};
    stg_world_scenario_ask *ask = r->ask;
    char suggestion[STG_SUGGESTION_MAX], shown[STG_KEY_SHOWN_MAX];

    if (strcmp(key->text, "settings") == 0)
        r->settings = is_text(r, n, "settings", "a path") ? n : NULL;
    else if (strcmp(key->text, "rate") == 0)
        read_rate(r, n);
    else if (strcmp(key->text, "size") == 0)
        read_number(r, n, "size", STG_WORLD_SIZE_MIN,
                    STG_WORLD_SCENARIO_SIZE_MAX, &ask->size);
    else if (strcmp(key->text, "for") == 0)
        read_duration(r, n, "for", &ask->load);
    else if (strcmp(key->text, "latency") == 0)
        read_duration(r, n, "latency", &ask->latency);
    else if (strcmp(key->text, "faults") == 0)
        read_faults(r, n);
    else
        stg_complain(r->c, key->place,
                     "%s: there is no such key of a scenario%s",
                     stg_yaml_key_shown(key->text, shown),
                     stg_options_suggest(suggestion, key->text, names));
}

static bool has_key(const stg_yaml_node *top, const char *name)
{
    for (size_t i = 0; top->kind == STG_NODE_MAP && i < top->count; i += 2)
        if (strcmp(top->at[i]->text, name) == 0)
            return true;
    return false;
}

/* Settings have targets. */
static bool is_scenario(const stg_yaml_node *top)
{
    return has_key(top, "settings") ||
           (!has_key(top, "targets") &&
            (has_key(top, "faults") || has_key(top, "rate")));
}

/* Of a path in the scenario, which is relative to it; to be freed. */
static char *beside(const char *file, const char *path)
{
    const char *slash = strrchr(file, '/');
    size_t folder =
        slash == NULL || *path == '/' ? 0 : (size_t)(slash - file) + 1;
    char *joined = malloc(folder + strlen(path) + 1);

    if (joined != NULL)
        sprintf(joined, "%.*s%s", (int)folder, file, path);
    return joined;
}

/* *settings: the file of the hub's settings, to be freed: this one itself, unless
 * it is a scenario. */
static int read_scenario(stg_world_scenario_ask *ask, char **settings)
{
    stg_diagnostics c = {.all = NULL};
    reading r = {.ask = ask, .c = &c};
    stg_yaml *yaml = NULL;
    const stg_yaml_node *top = stg_yaml_load(&yaml, ask->file, &c);
    int code = 0;

    if (top != NULL && is_scenario(top)) {
        for (size_t i = 0; i < top->count; i += 2)
            read_key(&r, top->at[i], top->at[i + 1]);
        if (r.settings != NULL)
            *settings = beside(ask->file, r.settings->text);
        else if (c.mistakes == 0)
            stg_complain(&c, top->place,
                         "expected `settings`, the path of a hub's settings");
    } else if (top != NULL) {
        *settings = beside("", ask->file);
    }
    if (c.mistakes > 0 || *settings == NULL) {
        stg_diagnostics_sort(&c);
        stg_diagnostics_print(&c, ask->file, stderr);
        code = STG_EXIT_USAGE;
    }
    stg_diagnostics_free(&c);
    stg_yaml_free(yaml);
    return code;
}

/* -- alerts ------------------------------------------------------------------ */

typedef struct watching {
    const stg_world_scenario *s;
    stg_world_scenario_found *found;
    const stg_alert_options *o;
    stg_alert_engine *engine;
    stg_sim_progress progress;
    const atomic_bool *is_stopped;
    stg_ns began_at;
} watching;

static void on_stored(void *ctx, const stg_group *group, stg_ns now)
{
    watching *w = ctx;

    for (size_t i = 0; i < group->change_count; i++)
        stg_alert_engine_stored(w->engine, &group->changes[i], now);
}

/* The fault that the target has now is what opened it. */
static stg_alert_detail find_cause(const watching *w, uint32_t lane, stg_ns now)
{
    stg_alert_detail d = {.has_cause = false};
    stg_ns since = stg_ns_sub(now, w->began_at);

    for (size_t i = 0; i < w->s->fault_count && !d.has_cause; i++) {
        const stg_world_scenario_fault *f = &w->s->faults[i];

        if (!stg_world_scenario_holds(w->s, f, lane, since))
            continue;
        d.has_cause = true;
        d.cause = stg_alert_cause_of(&f->what.outcome);
    }
    return d;
}

static void on_told(void *ctx, const stg_action *a, stg_ns now)
{
    watching *w = ctx;
    stg_alert_detail d;

    if (a->tell.what == STG_TELL_OPENED) {
        d = find_cause(w, a->lane, now);
        stg_alert_engine_raise(w->engine, STG_ALERT_BREAKER, a->lane, &d, now);
    } else if (a->tell.what == STG_TELL_CLOSED) {
        stg_alert_engine_clear(w->engine, STG_ALERT_BREAKER, a->lane, now);
    }
}

static void on_looked(void *ctx, uint32_t lane, uint64_t waiting, stg_ns oldest,
                      stg_ns now)
{
    watching *w = ctx;

    stg_alert_engine_lag(w->engine, w->o, lane, waiting, oldest, now);
}

static bool wants(void *ctx, stg_alert alert, uint32_t lane)
{
    const watching *w = ctx;

    (void)lane;
    return (w->o->alerts & STG_ALERT_BIT(alert)) != 0;
}

static void describe(void *ctx, uint32_t lane, stg_alert_target *target)
{
    const watching *w = ctx;

    *target = (stg_alert_target){
        .name = lane < w->s->target_count ? w->s->targets[lane].name : NULL};
}

static void keep_alert(watching *w, const stg_digest_item *item, stg_ns now)
{
    stg_world_scenario_found *f = w->found;
    char words[STG_ALERT_WORDS_MAX];
    stg_world_scenario_alert *alert;

    if (f->alert_count == STG_WORLD_SCENARIO_ALERTS_MAX) {
        f->alerts_cut++;
        return;
    }
    alert = &f->alerts[f->alert_count++];
    alert->at = stg_ns_sub(now, w->began_at);
    stg_alert_headline(item, words);
    snprintf(alert->target, sizeof alert->target, "%s", item->target);
    snprintf(alert->text, sizeof alert->text, "%s", words);
}

static void tell(watching *w, stg_ns now)
{
    stg_digest_source source = {.wants = wants,
                                .describe = describe,
                                .ctx = w,
                                .now = now,
                                .utc = now,
                                .is_part = true};
    stg_digest d;

    if (!stg_alert_engine_gather(w->engine, false, now))
        return;
    while (stg_digest_make(&d, w->engine, &source)) {
        for (size_t i = 0; i < d.item_count; i++)
            keep_alert(w, &d.items[i], now);
        source.from += d.item_count;
    }
    stg_alert_engine_hear(w->engine, source.reader, wants, w);
    stg_alert_engine_settle(w->engine, now);
}

/* Alerts that wait for their interval when all messages have their ends. */
static void tell_rest(watching *w, stg_ns ended_at)
{
    stg_ns last_at = stg_ns_add(ended_at, STG_HOUR);
    stg_ns at = stg_alert_engine_wake_at(w->engine);

    for (; at <= last_at; at = stg_alert_engine_wake_at(w->engine)) {
        at = stg_ns_max(at, ended_at);
        tell(w, at);
        ended_at = stg_ns_add(at, 1);
    }
}

static bool on_passed(void *ctx, stg_ns now)
{
    watching *w = ctx;

    if (stg_alert_engine_wake_at(w->engine) <= now)
        tell(w, now);
    stg_sim_progress_add(&w->progress, 1);
    return !atomic_load(w->is_stopped);
}

/* -- a run ------------------------------------------------------------------- */

/* All that is not said: ten messages a second of 1 KB, until five minutes after
 * the last fault, and ten minutes at least. */
static void complete(stg_world_scenario_ask *ask)
{
    stg_ns last = 5 * STG_MIN;

    for (size_t i = 0; i < ask->fault_count; i++)
        last = stg_ns_max(last, ask->faults[i].until == STG_NEVER
                                    ? ask->faults[i].from + 10 * STG_MIN
                                    : ask->faults[i].until);
    if (ask->rate == 0)
        ask->rate = 10 * 1000;
    if (ask->size == 0)
        ask->size = 1024;
    if (ask->load == 0)
        ask->load = last + 5 * STG_MIN;
    if (ask->latency == 0)
        ask->latency = 20 * STG_MS;
}

static int run(stg_world_scenario_ask *ask, const stg_world_scenario *s,
               const stg_alert_options *o, stg_world_scenario_found *found)
{
    watching w = {.s = s,
                  .found = found,
                  .o = o,
                  .engine = stg_alert_engine_new(o),
                  .is_stopped = stg_sim_stop_watch(),
                  .began_at = STG_S};
    const stg_world_scenario_hooks hooks = {.memory = stg_sim_memory(),
                                            .told = on_told,
                                            .stored = on_stored,
                                            .looked = on_looked,
                                            .passed = on_passed,
                                            .ctx = &w};
    const stg_world_failure *failure = &found->result.failure;
    stg_error err = {.text = ""};
    stg_status status = STG_IO;
    int code = STG_EXIT_USAGE;
    const stg_ns seconds = s->load / STG_S;

    stg_sim_progress_begin(&w.progress, (double)seconds);
    if (w.engine != NULL)
        status = stg_world_scenario_run(s, &hooks, &found->result, &err);
    stg_sim_progress_end(&w.progress);
    if (status == STG_OK && !found->result.is_interrupted)
        tell_rest(&w, stg_ns_add(w.began_at, found->result.lasted));
    stg_alert_engine_free(w.engine);
    if (status != STG_OK)
        stg_options_complain(ask->who, "%s",
                             err.text[0] != '\0' ? err.text : "out of memory");
    else if (failure->invariant != NULL)
        stg_options_complain(
            ask->who, "an invariant does not hold, which is a bug: %s, %s",
            failure->invariant, failure->text);
    else
        code = stg_world_scenario_show(ask, found);
    stg_world_scenario_free(&found->result, &hooks.memory);
    return code;
}

/* A fault of a target that the settings do not have. */
static int check_names(const stg_world_scenario_ask *ask, const char *file,
                       const stg_settings *s)
{
    const char **names = calloc(s->target_count + 1, sizeof *names);
    char suggestion[STG_SUGGESTION_MAX];
    int code = 0;

    for (size_t t = 0; names != NULL && t < s->target_count; t++)
        names[t] = s->targets[t].name;
    for (size_t i = 0; names != NULL && i < ask->fault_count; i++) {
        const char *target = ask->faults[i].target;
        bool is_known = strcmp(target, "*") == 0;

        for (size_t t = 0; t < s->target_count; t++)
            is_known |= strcmp(names[t], target) == 0;
        if (is_known)
            continue;
        code = stg_options_refuse(
            ask->who, "a fault is of %s: %s has no such target%s", target, file,
            stg_options_suggest(suggestion, target, names));
    }
    free(names);
    return code;
}

static int run_settings(stg_world_scenario_ask *ask, const stg_settings *s)
{
    stg_world_scenario_target *targets =
        calloc(s->target_count + 1, sizeof *targets);
    stg_world_scenario_found *found = calloc(1, sizeof *found);
    stg_world_scenario scenario = {.flow = stg_settings_flow(s),
                                   .targets = targets,
                                   .target_count = s->target_count,
                                   .faults = ask->faults,
                                   .fault_count = ask->fault_count,
                                   .rate = ask->rate,
                                   .load = ask->load,
                                   .size = ask->size,
                                   .latency = ask->latency,
                                   .retention = s->store.retention,
                                   .seed = ask->run.seed};
    int code = STG_EXIT_USAGE;

    if (targets == NULL || found == NULL) {
        stg_options_complain(ask->who, "out of memory");
    } else if (ask->size > s->memory_max / 32) {
        stg_options_complain(ask->who,
                             "--size=%u: expected %u at most, a 32nd of the "
                             "settings' memory",
                             ask->size, (unsigned)(s->memory_max / 32));
    } else {
        for (size_t i = 0; i < s->target_count; i++) {
            const stg_target_settings *t = &s->targets[i];

            targets[i] =
                (stg_world_scenario_target){t->name, stg_settings_lane(t)};
            found->has_filters |= t->match_count > 0;
        }
        found->scenario = &scenario;
        found->has_receiver = s->alerts.receiver_count > 0;
        code = run(ask, &scenario, &s->alerts, found);
    }
    free(found);
    free(targets);
    return code;
}

int stg_world_scenario_file(stg_world_scenario_ask *ask)
{
    stg_diagnostics c = {.all = NULL};
    stg_settings *s = NULL;
    char *file = NULL;
    int code = read_scenario(ask, &file);

    if (code == 0)
        code = stg_sim_output_check(&ask->output, ask->who);
    complete(ask);
    if (code == 0 && stg_settings_load(file, &s, &c) != STG_OK) {
        stg_diagnostics_print(&c, file, stderr);
        code = STG_EXIT_USAGE;
    }
    if (code == 0)
        code = check_names(ask, file, s);
    if (code == 0)
        code = run_settings(ask, s);
    stg_diagnostics_free(&c);
    stg_settings_free(s);
    free(file);
    return code;
}
