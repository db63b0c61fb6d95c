/* --sweep of contention: each combination of the values makes a policy of the
 * study, with a model of its own. A key is a setting of the resource, network,
 * start or resource, or else a setting of a policy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/sim/contention.h"

enum { CHANGED_MAX = STG_RESOURCE_TEXT_MAX + STG_SWEEP_TEXT_MAX };

/* The settings that a resource of the kind has. The first one names the kind where
 * it stands before the others. */
static bool is_of_resource(const stg_resource *r, const char *key)
{
    static const char *const settings[][4] = {
        [STG_RESOURCE_OPTIMISTIC] = {NULL},
        [STG_RESOURCE_LOCK] = {"hold", NULL},
        [STG_RESOURCE_RATE] = {"rate", "retry-after", NULL},
        [STG_RESOURCE_WORKERS] = {"workers", "service", "queue", NULL},
        [STG_RESOURCE_ROUND] = {"round", NULL},
    };

    for (size_t i = 0; settings[r->kind][i] != NULL; i++)
        if (strcmp(settings[r->kind][i], key) == 0)
            return true;
    return strcmp(key, "fault") == 0;
}

/* By way of the text, in which the kind comes first. */
static stg_status set_resource(stg_resource *r, const char *key,
                               const char *value, stg_error *err)
{
    char text[STG_RESOURCE_TEXT_MAX], changed[CHANGED_MAX], *rest = NULL;
    size_t length = 0;
    bool is_set = false;

    (void)stg_resource_print(r, text);
    for (char *word = strtok_r(text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest)) {
        bool is_it = stg_sweep_is_word(word, key);

        length += (size_t)snprintf(changed + length, sizeof changed - length,
                                   "%s%s%s%s", length > 0 ? " " : "",
                                   is_it ? key : word, is_it ? "=" : "",
                                   is_it ? value : "");
        is_set |= is_it;
    }
    if (!is_set)
        snprintf(changed + length, sizeof changed - length, " %s=%s", key,
                 value);
    return stg_resource_parse(r, changed, err);
}

/* All that can be swept, but a policy's. */
static const char *model_at(size_t i)
{
    static const char *const names[] = {
        "resource", "network", "start", "hold",  "rate", "retry-after",
        "workers",  "service", "queue", "round", "fault"};

    return i < sizeof names / sizeof *names ? names[i] : NULL;
}

/* A setting of another resource. */
static int refuse(const stg_resource *r, const char *key, const char *who)
{
    char text[STG_RESOURCE_TEXT_MAX];
    const char *name;

    for (size_t i = 0; (name = model_at(i)) != NULL; i++)
        if (strcmp(name, key) == 0) {
            stg_options_complain(who, "--sweep=%s: not of the resource %s", key,
                                 stg_resource_print(r, text));
            return STG_EXIT_USAGE;
        }
    return stg_sweep_refuse_key(key, who, "--sweep", model_at);
}

static stg_status set_start(stg_ns *start, const char *value, stg_error *err)
{
    if (stg_options_read_duration(value, start))
        return STG_OK;
    snprintf(err->text, sizeof err->text, "expected a time, up to 365d");
    return STG_INVALID;
}

static stg_status set_policy(stg_sim_policy *p, const char *key,
                             const char *value, stg_error *err)
{
    stg_status status = stg_sweep_set_policy(&p->policy, key, value, err);

    if (status == STG_OK)
        status = stg_contention_check_policy(&p->policy, err);
    if (status == STG_OK)
        (void)stg_policy_print(&p->policy, p->text);
    return status;
}

static int set(stg_sim_policy *p, stg_study_model *m, const char *key,
               const char *value, const char *who)
{
    stg_error err;
    stg_status status;

    if (strcmp(key, "clients") == 0) {
        stg_options_complain(who, "--sweep=clients: say --clients LIST");
        return STG_EXIT_USAGE;
    }
    if (strcmp(key, "resource") == 0)
        status = stg_resource_parse(&m->resource, value, &err);
    else if (strcmp(key, "network") == 0)
        status = stg_distribution_parse(&m->network, value, &err);
    else if (strcmp(key, "start") == 0)
        status = set_start(&m->start_spread, value, &err);
    else if (is_of_resource(&m->resource, key))
        status = set_resource(&m->resource, key, value, &err);
    else if (stg_sweep_is_of_policy(key))
        status = set_policy(p, key, value, &err);
    else
        return refuse(&m->resource, key, who);
    if (status == STG_OK)
        return 0;
    stg_options_complain(who, "--sweep=%.60s=%.60s: %s", key, value, err.text);
    return STG_EXIT_USAGE;
}

/* Makes the policy and its model what combination number i says. */
static int vary(stg_sim_policy *p, stg_study_model *m, const stg_sweeps *sweeps,
                size_t i, bool has_name, const char *who)
{
    for (size_t k = sweeps->count; k-- > 0;) {
        int code =
            set(p, m, sweeps->at[k].key, stg_sweeps_value(sweeps, k, i), who);

        if (code != 0)
            return code;
    }
    if (!has_name)
        p->name[0] = '\0';
    stg_sweeps_name(sweeps, i, p->name, sizeof p->name);
    return 0;
}

static int sweep(stg_study_options *s, const stg_sim_policies *given,
                 const stg_sweeps *sweeps, const char *who)
{
    size_t combinations = stg_sweeps_combinations(sweeps);
    int code = 0;

    if (combinations * given->count > STG_SIM_POLICIES_MAX) {
        stg_options_complain(who, "%zu combinations: expected at most %d",
                             combinations * given->count, STG_SIM_POLICIES_MAX);
        return STG_EXIT_USAGE;
    }
    s->policies.count = combinations * given->count;
    for (size_t i = 0; i < s->policies.count && code == 0; i++) {
        s->policies.at[i] = given->at[i / combinations];
        code = vary(&s->policies.at[i], &s->models[i], sweeps, i % combinations,
                    given->count > 1, who);
    }
    return code;
}

int stg_contention_sweep(stg_study_options *s, const stg_sweeps *sweeps,
                         const char *who)
{
    stg_sim_policies *given = malloc(sizeof *given);
    int code;

    if (given == NULL) {
        stg_options_complain(who, "out of memory");
        return STG_EXIT_USAGE;
    }
    *given = s->policies;
    for (size_t i = 0; i < STG_SIM_POLICIES_MAX; i++)
        s->models[i] = (stg_study_model){.resource = s->each.resource,
                                         .network = s->each.network,
                                         .start_spread = s->each.start_spread};
    code = sweeps->count == 0 ? 0 : sweep(s, given, sweeps, who);
    free(given);
    return code;
}
