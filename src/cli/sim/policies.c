#include "cli/sim/policies.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"

/* The text behind NAME=, or NULL: there is no name before it. A name that is a
 * setting's (jitter=full) is one where the whole is no text. */
static const char *find_text(const char *word)
{
    size_t length = strcspn(word, "= \t,:");

    if (length == 0 || length >= STG_SIM_NAME_MAX || word[length] != '=')
        return NULL;
    return word + length + 1;
}

/* Whether the word was taken for a policy up to its mistake: it begins with one
 * of its words, and what is before the "=" is no name. */
static bool is_policy(const stg_error *err)
{
    return err->column > 1 || strstr(err->text, "as the first word") == NULL;
}

static bool has_name(const stg_sim_policies *p, const char *name)
{
    for (size_t i = 0; i < p->count; i++)
        if (strcmp(p->at[i].name, name) == 0)
            return true;
    return false;
}

static int complain(const char *who, const char *word, const stg_error *err)
{
    stg_options_complain(who, "--policy: %s", err->text);
    if (word[0] != '\0' && err->line > 0)
        stg_options_point(word, err->column);
    return STG_EXIT_USAGE;
}

int stg_sim_policies_add(stg_sim_policies *p, const char *who, const char *word)
{
    stg_sim_policy *added = &p->at[p->count];
    const char *text = find_text(word);
    stg_error err, err_behind;

    if (p->count == STG_SIM_POLICIES_MAX) {
        stg_options_complain(who, "--policy: more than %d",
                             STG_SIM_POLICIES_MAX);
        return STG_EXIT_USAGE;
    }
    if (stg_policy_parse(&added->policy, word, &err) == STG_OK) {
        snprintf(added->name, sizeof added->name, "%s", word);
    } else if (text == NULL) {
        return complain(who, word, &err);
    } else if (stg_policy_parse(&added->policy, text, &err_behind) == STG_OK) {
        snprintf(added->name, sizeof added->name, "%.*s",
                 (int)(text - word - 1), word);
    } else {
        return is_policy(&err) ? complain(who, word, &err)
                               : complain(who, text, &err_behind);
    }
    (void)stg_policy_print(&added->policy, added->text);
    if (has_name(p, added->name)) {
        stg_options_complain(
            who, "--policy: two are called %s; write NAME=TEXT", added->name);
        return STG_EXIT_USAGE;
    }
    p->count++;
    return 0;
}
