/* --sweep KEY=VALUES: every combination of the values, as trials. A key is an
 * option of the model, or else a setting of a policy, which replaces the one in
 * each policy's text. */
#include "cli/sim/overload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/suggest.h"
#include "cli/options.h"
#include "core/text_internal.h"
#include "sim/overload.h"

enum { TRIALS_MAX = 32 };

static bool add_value(stg_sweep *sweep, const char *value)
{
    if (sweep->count == STG_SWEEP_VALUES_MAX)
        return false;
    sweep->values[sweep->count++] = value;
    return true;
}

/* A value, or those of a range. False: there are too many. */
static bool add_values(stg_sweep *sweep, const char *text)
{
    stg_range r;
    bool has_room = true;

    if (!stg_range_read(&r, text) || r.step == 0)
        return add_value(sweep, text);
    for (uint64_t value = r.from; value <= r.to && has_room; value += r.step)
        has_room = sweep->count < STG_SWEEP_VALUES_MAX &&
                   add_value(sweep, stg_range_print(&r, value,
                                                    sweep->made[sweep->count]));
    return has_room;
}

/* Semicolons are for values that have commas themselves, such as lists of
 * waits. */
static int read_sweep(stg_sweep *sweep, const char *who, const char *text)
{
    const char *between = strchr(text, ';') != NULL ? ";" : ",";
    char *at, *rest = NULL;

    *sweep = (stg_sweep){.key = sweep->text};
    if (strlen(text) >= sizeof sweep->text || strchr(text, '=') == NULL) {
        stg_options_complain(
            who, "--sweep=%.60s: expected a setting and values, as %s", text,
            "budget=none,ratio:0.1");
        return STG_EXIT_USAGE;
    }
    memcpy(sweep->text, text, strlen(text) + 1);
    at = strchr(sweep->text, '=');
    *at++ = '\0';
    for (at = strtok_r(at, between, &rest); at != NULL;
         at = strtok_r(NULL, between, &rest))
        if (!add_values(sweep, at))
            break;
    if (at == NULL && sweep->count > 0)
        return 0;
    stg_options_complain(who, "--sweep=%.60s: expected 1 to %d values", text,
                         STG_SWEEP_VALUES_MAX);
    return STG_EXIT_USAGE;
}

int stg_sweeps_add(stg_sweeps *s, const char *who, const char *text)
{
    if (s->count == STG_SWEEPS_MAX) {
        stg_options_complain(who, "--sweep: more than %d", STG_SWEEPS_MAX);
        return STG_EXIT_USAGE;
    }
    return read_sweep(&s->at[s->count++], who, text);
}

/* -- combinations ---------------------------------------------------------- */

/* Of the sweeps from number `first` on. */
static size_t combine_from(const stg_sweeps *s, size_t first)
{
    size_t count = 1;

    for (size_t k = first; k < s->count; k++)
        count *= s->at[k].count;
    return count;
}

size_t stg_sweeps_combinations(const stg_sweeps *s)
{
    return combine_from(s, 0);
}

const char *stg_sweeps_value(const stg_sweeps *s, size_t k, size_t i)
{
    return s->at[k].values[i / combine_from(s, k + 1) % s->at[k].count];
}

void stg_sweeps_name(const stg_sweeps *s, size_t i, char *name, size_t size)
{
    for (size_t k = 0; k < s->count; k++) {
        size_t length = strlen(name);

        snprintf(name + length, size - length, "%s%s=%s", length > 0 ? " " : "",
                 s->at[k].key, stg_sweeps_value(s, k, i));
    }
}

/* -- a policy's setting ---------------------------------------------------- */

bool stg_sweep_is_word(const char *word, const char *key)
{
    size_t length = strlen(key);

    if (strcmp(key, "backoff") == 0)
        return stg_growth_is_word(word, strlen(word));
    return strncmp(word, key, length) == 0 && word[length] == '=';
}

/* By way of the text: whatever a policy can say can be swept, also what is
 * new. */
stg_status stg_sweep_set_policy(stg_policy *policy, const char *key,
                                const char *value, stg_error *err)
{
    char text[STG_POLICY_TEXT_MAX], changed[2 * STG_POLICY_TEXT_MAX];
    char *rest = NULL;
    size_t length = 0;

    (void)stg_policy_print(policy, text);
    for (char *word = strtok_r(text, " ", &rest); word != NULL;
         word = strtok_r(NULL, " ", &rest))
        if (!stg_sweep_is_word(word, key))
            length += (size_t)snprintf(changed + length,
                                       sizeof changed - length, "%s ", word);
    if (strcmp(key, "backoff") == 0)
        snprintf(changed + length, sizeof changed - length, "%.*s",
                 STG_SWEEP_TEXT_MAX, value);
    else
        snprintf(changed + length, sizeof changed - length, "%.*s=%.*s", 64,
                 key, STG_SWEEP_TEXT_MAX, value);
    return stg_policy_parse(policy, changed, err);
}

/* The parser knows the settings of policies, and lists them. */
bool stg_sweep_is_of_policy(const char *key)
{
    const char *known;

    for (size_t i = 0; (known = stg_parser_key_at(i)) != NULL; i++)
        if (stg_sweep_is_word(known, key))
            return true;
    return strcmp(key, "backoff") == 0;
}

/* A setting of the model, or of a policy. Those of a policy end in '='. */
int stg_sweep_refuse_key(const char *key, const char *who, const char *option,
                         const char *(*model_at)(size_t))
{
    char word[STG_SWEEP_TEXT_MAX + 1];
    stg_suggestion s = stg_suggestion_begin(key, strlen(key));
    stg_suggestion of_policy;
    const char *known;

    stg_suggestion_try(&s, "backoff");
    for (size_t i = 0; (known = model_at(i)) != NULL; i++)
        stg_suggestion_try(&s, known);
    snprintf(word, sizeof word, "%s=", key);
    of_policy = stg_suggestion_begin(word, strlen(word));
    of_policy.slips_max = s.slips_max;
    for (size_t i = 0; (known = stg_parser_key_at(i)) != NULL; i++)
        stg_suggestion_try(&of_policy, known);
    known = of_policy.name != NULL ? of_policy.name : s.name;
    if (known == NULL)
        stg_options_complain(who,
                             "%s=%s: no option of the model, and no "
                             "setting of a policy; see %s --help and stagger "
                             "plan --help",
                             option, key, who);
    else
        stg_options_complain(who,
                             "%s=%s: no option of the model, and no "
                             "setting of a policy, did you mean %.*s?",
                             option, key, (int)strcspn(known, "="), known);
    return STG_EXIT_USAGE;
}

static const char *model_at(size_t i)
{
    const stg_overload_setting *about = stg_overload_setting_at(i);

    return about != NULL ? about->name : NULL;
}

/* The model goes first: `queue` and the like are its own, and no setting of a
 * policy is called so. */
int stg_sweep_set(stg_overload_options *o, const char *key, const char *value,
                  const char *who, const char *option)
{
    stg_error err;
    stg_status status = stg_overload_set(o, key, value, &err);

    if (status == STG_NOT_FOUND && !stg_sweep_is_of_policy(key))
        return stg_sweep_refuse_key(key, who, option, model_at);
    if (status == STG_NOT_FOUND)
        status = stg_sweep_set_policy(&o->policy, key, value, &err);
    if (status == STG_OK)
        return 0;
    stg_options_complain(who, "%s=%s=%s: %s", option, key, value, err.text);
    return STG_EXIT_USAGE;
}

/* What goes on behind the trouble stays as long as it was. */
static void move_end(stg_overload_options *o, stg_ns until_at)
{
    stg_ns rest = stg_ns_sub(o->end_at, until_at);
    stg_ns end_at = stg_ns_add(o->trigger.until_at, rest);

    o->end_at = (end_at + STG_S - 1) / STG_S * STG_S;
}

int stg_trial_vary(stg_trial *trial, const char *key, const char *value,
                   const char *who, const char *option)
{
    stg_ns until_at = trial->options.trigger.until_at;
    int code = stg_sweep_set(&trial->options, key, value, who, option);

    if (code == 0 && trial->options.trigger.until_at != until_at)
        move_end(&trial->options, until_at);
    return code;
}

int stg_trial_settle(stg_trial *trial, const char *who, const char *option)
{
    stg_error err;

    trial->options.bin = 0;
    stg_overload_settle(&trial->options);
    if (stg_overload_check(&trial->options, &err) == STG_OK)
        return 0;
    stg_options_complain(who, "%s: %s", option, err.text);
    return STG_EXIT_USAGE;
}

/* -- trials ---------------------------------------------------------------- */

/* A trial is named by what differs: its policy where there are several, and its
 * values. Settled after the values are set, since what is left open depends on
 * them. */
static int make(stg_trial *trial, const stg_sim_policies *policies,
                size_t number, const stg_sweeps *sweeps, const char *who)
{
    size_t combinations = stg_sweeps_combinations(sweeps);
    const stg_sim_policy *p = &policies->at[number / combinations];
    size_t i = number % combinations;
    stg_error err;
    int code = 0;

    trial->options.policy = p->policy;
    if (policies->count > 1 || sweeps->count == 0)
        snprintf(trial->name, sizeof trial->name, "%s", p->name);
    for (size_t k = sweeps->count; k-- > 0 && code == 0;)
        code = stg_sweep_set(&trial->options, sweeps->at[k].key,
                             stg_sweeps_value(sweeps, k, i), who, "--sweep");
    if (code != 0)
        return code;
    stg_sweeps_name(sweeps, i, trial->name, sizeof trial->name);
    stg_overload_settle(&trial->options);
    if (stg_overload_check(&trial->options, &err) == STG_OK)
        return 0;
    stg_options_complain(who, "%s", err.text);
    return STG_EXIT_USAGE;
}

/* Trials of one policy stand together. The caller frees *trials in either
 * case. */
int stg_sweeps_combine(const stg_sweeps *sweeps,
                       const stg_sim_policies *policies,
                       const stg_overload_options *options, const char *who,
                       stg_trial **trials, size_t *count)
{
    int code = 0;

    *count = stg_sweeps_combinations(sweeps) * policies->count;
    if (*count > TRIALS_MAX) {
        stg_options_complain(who, "%zu combinations: expected at most %d",
                             *count, TRIALS_MAX);
        return STG_EXIT_USAGE;
    }
    *trials = calloc(*count, sizeof **trials);
    if (*trials == NULL) {
        stg_options_complain(who, "out of memory");
        return STG_EXIT_USAGE;
    }
    for (size_t i = 0; i < *count && code == 0; i++) {
        (*trials)[i].options = *options;
        code = make(&(*trials)[i], policies, i, sweeps, who);
    }
    return code;
}
