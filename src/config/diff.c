#include "config/diff.h"

#include <stdio.h>
#include <string.h>

#include "config/internal.h"
#include "config/load.h"
#include "config/values.h"

/* -- values ---------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static const void *pointer_at(const void *base, size_t at)
{
    const void *pointer;

    memcpy(&pointer, (const char *)base + at, sizeof pointer);
    return pointer;
}

static size_t count_at(const void *base, size_t at)
{
    size_t count;

    memcpy(&count, (const char *)base + at, sizeof count);
    return count;
}

static bool same_texts(const char *const *a, const char *const *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!same_text(a[i], b[i]))
            return false;
    return true;
}

static bool same_match(const stg_match_setting *a, const stg_match_setting *b,
                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!same_text(a[i].header, b[i].header) ||
            a[i].values.count != b[i].values.count ||
            !same_texts(a[i].values.at, b[i].values.at, a[i].values.count))
            return false;
    return true;
}

/* Structs of so many texts and nothing else. */
_Static_assert(sizeof(stg_header_setting) == 3 * sizeof(char *), "three texts");
_Static_assert(sizeof(stg_property_setting) == 3 * sizeof(char *), "the same");
_Static_assert(sizeof(stg_letters_settings) == 2 * sizeof(char *), "two texts");
_Static_assert(sizeof(stg_tag_setting) == 2 * sizeof(char *), "two texts");

static bool same_list(const stg_setting *s, const void *a, const void *b,
                      size_t count)
{
    const void *x = pointer_at(a, s->at), *y = pointer_at(b, s->at);

    switch (s->kind) {
    case STG_KIND_TEXTS:
    case STG_KIND_RULES:
    case STG_KIND_BROKERS:
    case STG_KIND_TOPICS:
        return same_texts(x, y, count);
    case STG_KIND_CIDRS:
        return count == 0 || memcmp(x, y, count * sizeof(stg_cidr)) == 0;
    case STG_KIND_HEADERS:
    case STG_KIND_PROPERTIES:
        return same_texts(x, y, 3 * count);
    case STG_KIND_MATCH:
        return same_match(x, y, count);
    case STG_KIND_TAGS:
        return same_texts(x, y, 2 * count);
    default: // targets and sinks are compared by who knows them
        return true;
    }
}

static bool is_text(const stg_setting *s)
{
    switch (s->kind) {
    case STG_KIND_TEXT:
    case STG_KIND_FILE:
    case STG_KIND_NAME:
    case STG_KIND_URL:
    case STG_KIND_METHOD:
    case STG_KIND_ADDRESS:
    case STG_KIND_STORE:
    case STG_KIND_POLICY:
        return true;
    default:
        return false;
    }
}

/* Field by field: there may be anything between them. */
static bool same_threshold(const void *a, const void *b)
{
    const stg_alert_threshold *x = a, *y = b;

    return x->failures == y->failures && x->window == y->window;
}

bool stg_setting_equal(const stg_setting *s, const void *a, const void *b)
{
    if (s->kind == STG_KIND_SECTION || s->kind == STG_KIND_DEFAULTS)
        return true;
    if (s->count_at > 0)
        return count_at(a, s->count_at) == count_at(b, s->count_at) &&
               same_list(s, a, b, count_at(a, s->count_at));
    if (is_text(s))
        return same_text(pointer_at(a, s->at), pointer_at(b, s->at));
    if (s->kind == STG_KIND_LETTERS)
        return same_text(pointer_at(a, s->at), pointer_at(b, s->at)) &&
               same_text(pointer_at(a, s->at + sizeof(char *)),
                         pointer_at(b, s->at + sizeof(char *)));
    if (s->kind == STG_KIND_THRESHOLD)
        return same_threshold((const char *)a + s->at, (const char *)b + s->at);
    return memcmp((const char *)a + s->at, (const char *)b + s->at, s->size) ==
           0;
}

/* -- targets --------------------------------------------------------------- */

bool stg_settings_same_target(const stg_target_settings *a,
                              const stg_target_settings *b)
{
    const stg_setting *s;

    if (a->files_stamp != b->files_stamp)
        return false;
    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++)
        if (s->in == STG_IN_TARGET && !stg_setting_equal(s, a, b))
            return false;
    return stg_policy_equal(a->policy, b->policy);
}

const stg_target_settings *stg_settings_target(const stg_settings *s,
                                               const char *name)
{
    for (size_t i = 0; i < s->target_count; i++)
        if (same_text(s->targets[i].name, name))
            return &s->targets[i];
    return NULL;
}

/* -- options of the command ------------------------------------------------ */

static void *base_of(stg_settings *s, const stg_setting *setting)
{
    return setting->in == STG_IN_HUB ? (void *)s : (void *)&s->defaults;
}

static bool refuse(stg_error *err, const char *words)
{
    if (err != NULL) {
        *err = (stg_error){.line = 0};
        snprintf(err->text, sizeof err->text, "%s", words);
    }
    return false;
}

/* Most are so short that what is wanted says it all. */
static bool refuse_value(stg_error *err, const stg_setting *s,
                         const stg_value_flaw *flaw)
{
    bool has_hint = flaw->hint[0] != '\0';
    bool says_what = s->kind == STG_KIND_SOURCE || s->kind == STG_KIND_STORE;

    if (err == NULL)
        return false;
    *err = (stg_error){.line = 0};
    snprintf(err->text, sizeof err->text, "%.110s%swanted %.170s%s%.70s%s",
             says_what ? flaw->what : "", says_what ? "; " : "", flaw->wanted,
             has_hint ? "; did you mean " : "", flaw->hint,
             has_hint ? "?" : "");
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

bool stg_settings_override(stg_settings *s, const stg_setting *setting,
                           const char *text, stg_error *err)
{
    const char *kept = stg_settings_keep_text(s, text, strlen(text));
    stg_value_flaw flaw;

    if (kept == NULL)
        return refuse(err, "there is no memory for it");
    if (!stg_value_read(setting, kept, base_of(s, setting), &flaw))
        return refuse_value(err, setting, &flaw);
    return note(s, setting, kept) || refuse(err, "there is no memory for it");
}

/* -- reload ---------------------------------------------------------------- */

static void take_overrides(const stg_settings *old, stg_settings *next,
                           stg_diagnostics *c)
{
    stg_error err;

    for (const stg_settings_override_note *n = old->inside->overrides;
         n != NULL; n = n->next)
        if (!stg_settings_override(next, n->setting, n->text, &err))
            stg_complain(c, (stg_file_place){0, 0}, "%s", err.text);
}

void stg_settings_check_reload(const stg_settings *old, stg_settings *next,
                               stg_diagnostics *c)
{
    const stg_setting *s;

    take_overrides(old, next, c);
    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++) {
        stg_file_place place;

        if (s->in != STG_IN_HUB || !s->is_fixed ||
            stg_setting_equal(s, old, next))
            continue;
        // A line that is gone is as good as one that has changed.
        place = stg_settings_place(next, s->path);
        stg_complain(c, place,
                     "`%s` has changed%s, and only a restart can do that; "
                     "wanted it as it was, or a restart",
                     s->path, place.line == 0 ? ": it is gone" : "");
    }
    stg_diagnostics_sort(c);
}
