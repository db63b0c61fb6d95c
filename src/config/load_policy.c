/* Policies, by name and by text. */
#include <stdlib.h>
#include <string.h>

#include <stagger/text.h>

#include "base/suggest.h"
#include "config/lane_policy.h"
#include "config/loading.h"
#include "core/text_print.h"

static bool is_preset(const char *name)
{
    const stg_preset *p;

    for (size_t i = 0; (p = stg_preset_at(i)) != NULL; i++)
        if (strcmp(p->name, name) == 0)
            return true;
    return false;
}

/* "policy:1:24: cap=100ms ..." without what the place says already. */
static const char *words_of(const stg_error *err)
{
    const char *at =
        strncmp(err->text, "policy:", 7) == 0 ? strchr(err->text, ' ') : NULL;

    return at != NULL ? at + 1 : err->text;
}

/* Where in the file the byte number column of a text is. */
static stg_file_place place_in(const stg_yaml_node *n, uint32_t column)
{
    uint32_t characters = 0;

    if (!n->is_verbatim || column == 0)
        return n->place;
    for (uint32_t i = 0; i + 1 < column && n->text[i] != '\0'; i++)
        characters += ((unsigned char)n->text[i] & 0xc0) != 0x80;
    return (stg_file_place){n->place.line, n->text_column + characters};
}

static void check_text(stg_loading *l, const char *path, const stg_yaml_node *n)
{
    stg_policy policy;
    stg_error err;

    if (stg_lane_policy_read(&policy, n->text, l->target_total, 0, 0, &err) !=
        STG_OK)
        stg_complain(l->c, place_in(n, err.column), "`%s`: %s", path,
                     words_of(&err));
}

/* -- a policy that is named ------------------------------------------------ */

/* No text begins with such a word; so it can only be a name that is unknown. */
static bool is_word(const char *text)
{
    return strpbrk(text, " \t\n=:,") == NULL;
}

static void refuse_name(stg_loading *l, const stg_yaml_node *n)
{
    const stg_settings *s = l->s;
    stg_suggestion found = stg_suggestion_begin(n->text, strlen(n->text));
    const stg_preset *preset;
    const char *near;

    for (size_t i = 0; i < s->policy_count; i++)
        stg_suggestion_try(&found, s->policies[i].name);
    for (size_t i = 0; (preset = stg_preset_at(i)) != NULL; i++)
        stg_suggestion_try(&found, preset->name);
    near = found.name;
    stg_complain(l->c, n->place,
                 "`policy`: there is no policy `%.60s`; wanted a name of "
                 "`policies`, a preset, or a policy's text%s%s%s",
                 n->text, near ? "; did you mean " : "", near ? near : "",
                 near ? "?" : "");
}

static bool is_growth(const char *text)
{
    return stg_growth_is_word(text, strlen(text));
}

void stg_load_check_policy(stg_loading *l, const stg_yaml_node *n)
{
    size_t number;

    if (stg_text_table_find(&l->policies, n->text, &number))
        return;
    if (is_word(n->text) && !is_preset(n->text) && !is_growth(n->text))
        refuse_name(l, n);
    else
        check_text(l, "policy", n);
}

/* -- those of the settings ------------------------------------------------- */

static bool is_policy_name(stg_loading *l, const stg_yaml_node *key)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t size = strlen(key->text);

    if (size == 0 || size > 64 || strspn(key->text, letters) != size)
        stg_complain(l->c, key->place,
                     "`policies`: `%.60s` is no name of a policy; wanted 1 to "
                     "64 of A-Z a-z 0-9 . _ -",
                     key->text);
    else if (is_preset(key->text) || is_growth(key->text))
        stg_complain(l->c, key->place,
                     "`policies`: `%.60s` is a word of policies already; "
                     "wanted another name",
                     key->text);
    else
        return true;
    return false;
}

static void load_policy(stg_loading *l, const stg_yaml_node *key,
                        const stg_yaml_node *n, stg_policy_setting *all)
{
    stg_policy_setting *p = &all[l->s->policy_count];

    if (!is_policy_name(l, key))
        return;
    *p = (stg_policy_setting){.name = stg_load_keep_text(l, key->text),
                              .place = n->place};
    // A name that is bad is known all the same: it is complained of here.
    if (p->name != NULL &&
        !stg_text_table_add(&l->policies, p->name, l->s->policy_count, NULL))
        l->c->is_memory_short = true;
    if (n->kind != STG_NODE_TEXT || stg_node_is_null(n) || *n->text == '\0') {
        stg_complain(
            l->c, n->place,
            "`policies`: no text for `%.60s`; wanted a preset and what "
            "it changes, or a policy's text",
            key->text);
        return;
    }
    check_text(l, key->text, n);
    p->text = stg_load_keep_text(l, n->text);
    if (p->name != NULL && p->text != NULL)
        l->s->policy_count++;
}

void stg_load_policies(stg_loading *l, const stg_yaml_node *n)
{
    stg_policy_setting *all;

    if (n->kind != STG_NODE_MAP) {
        stg_load_refuse_kind(l, stg_setting_find(STG_IN_HUB, "policies", 8), n);
        return;
    }
    all = stg_load_keep(l, (n->count / 2 + 1) * sizeof *all);
    if (all == NULL)
        return;
    l->s->policies = all;
    for (size_t i = 0; i < n->count; i += 2)
        load_policy(l, n->at[i], n->at[i + 1], all);
}
