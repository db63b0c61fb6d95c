/* How settings differ: whether a target is the same, and which values the
 * command's options replace.
 *
 * Settings are compared row by row of the table, so that a new setting is
 * compared without a change here; but for what a file holds, which stamp_of() in
 * files.c lists. Options of the command are noted in the
 * settings and applied again to each file that is read later: they win over the
 * file as long as the process lives. */
#include <stdio.h>
#include <string.h>

#include "config/kinds/kinds.h"
#include "config/load.h"
#include "config/loading.h"

/* -- targets --------------------------------------------------------------- */

/* Those rows of a target that are common, or the others: in structs of that kind. */
static bool has_same_rows(bool is_common, const void *a, const void *b)
{
    const stg_setting *s;

    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++)
        if (s->in == STG_IN_TARGET && s->is_common == is_common &&
            !stg_setting_equal(s, a, b))
            return false;
    return true;
}

bool stg_settings_same_common(const stg_target_common *a,
                              const stg_target_common *b)
{
    return has_same_rows(true, a, b);
}

/* The policy is compared as it is compiled: its text may be the same, and mean
 * another policy when `policies` or the number of targets has changed. */
bool stg_settings_same_target(const stg_target_settings *a,
                              const stg_target_settings *b)
{
    return a->common->files_stamp == b->common->files_stamp &&
           has_same_rows(false, a, b) &&
           stg_settings_same_common(a->common, b->common) &&
           stg_policy_equal(a->common->policy, b->common->policy);
}

const stg_target_settings *stg_settings_target(const stg_settings *s,
                                               const char *name)
{
    for (size_t i = 0; i < s->target_count; i++)
        if (strcmp(s->targets[i].name, name) == 0)
            return &s->targets[i];
    return NULL;
}

/* -- options of the command ------------------------------------------------ */

static void *base_of(stg_settings *s, const stg_setting *setting)
{
    return setting->in == STG_IN_HUB ? (void *)s
                                     : stg_setting_base(setting, &s->defaults);
}

static bool refuse(stg_error *err, const char *words)
{
    if (err != NULL) {
        *err = (stg_error){.line = 0};
        snprintf(err->text, sizeof err->text, "%s", words);
    }
    return false;
}

/* Most are so short that what is expected says it all. */
static bool refuse_value(stg_error *err, const stg_setting *s,
                         const stg_value_flaw *flaw)
{
    bool has_suggestion = flaw->suggestion[0] != '\0';
    bool says_what = s->kind == &stg_kind_source || s->kind == &stg_kind_store;

    if (err == NULL)
        return false;
    *err = (stg_error){.line = 0};
    snprintf(err->text, sizeof err->text, "%.100s%sexpected %.170s%s%.70s%s",
             says_what ? flaw->what : "", says_what ? "; " : "", flaw->expected,
             has_suggestion ? "; did you mean " : "", flaw->suggestion,
             has_suggestion ? "?" : "");
    return false;
}

static bool note(stg_settings *s, const stg_setting *setting, const char *text)
{
    stg_settings_override_note *n = stg_settings_keep(s, sizeof *n);
    stg_settings_override_note **at = &s->inside->overrides;

    if (n == NULL)
        return false;
    *n = (stg_settings_override_note){.setting = setting, .text = text};
    while (*at != NULL)
        at = &(*at)->next;
    *at = n;
    return true;
}

/* Judged like a line of the file. err has what was expected, for the option's
 * name is with the caller. */
bool stg_settings_override(stg_settings *s, const stg_setting *setting,
                           const char *text, stg_error *err)
{
    const char *kept = stg_settings_keep_text(s, text, strlen(text));
    stg_value_flaw flaw;

    if (kept == NULL)
        return refuse(err, "out of memory");
    if (!stg_value_read(setting, kept, base_of(s, setting), &flaw))
        return refuse_value(err, setting, &flaw);
    return note(s, setting, kept) || refuse(err, "out of memory");
}

void stg_settings_take_overrides(const stg_settings *options, stg_settings *to,
                                 stg_diagnostics *c)
{
    stg_error err;

    for (const stg_settings_override_note *n = options->inside->overrides;
         n != NULL; n = n->next)
        if (!stg_settings_override(to, n->setting, n->text, &err))
            stg_complain(c, (stg_file_place){0, 0}, "%s", err.text);
}
