/* Policies by name and by text, and budgets, which are written as in a policy.
 *
 * A policy's text is not checked when it is read, but by check(): in a file a word
 * alone may be a name of `policies`, which the file may have further below, and
 * the place of a mistake inside of the text is told in lines and columns. */
#include <stdlib.h>
#include <string.h>

#include <stagger/text.h>

#include "base/suggest.h"
#include "config/kinds/kinds.h"
#include "config/loading.h"
#include "config/targets.h"
#include "core/text_internal.h"

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

/* Timeout and rate are left out (0): they are the target's, and
 * validate_target.c reads the text again with them. */
static void check_text(stg_loading *l, const char *path, const stg_yaml_node *n)
{
    stg_policy policy;
    stg_error err;

    if (stg_lane_policy_read(&policy, n->text, l->target_total, 0, 0, &err) ==
        STG_OK)
        return;
    if (n->written != NULL) // whose words are not repeated
        stg_complain(l->c, n->place,
                     "`%s`: `%.60s` is no policy, with what the environment "
                     "has; expected a name of `policies`, a preset, or a "
                     "policy's text",
                     path, n->written);
    else
        stg_complain(l->c, place_in(n, err.column), "`%s`: %s", path,
                     words_of(&err));
}

/* -- a policy that is named ------------------------------------------------ */

/* No text begins with such a word; so it can only be a name that is unknown. */
static bool is_word(const char *text)
{
    return strpbrk(text, " \t\n=:,") == NULL;
}

/* Suggests from the names of the file and the presets together. */
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
    near = n->written == NULL ? found.name : NULL;
    stg_complain(l->c, n->place,
                 "`policy`: there is no policy `%.60s`; expected a name of "
                 "`policies`, a preset, or a policy's text%s%s%s",
                 n->text, near ? "; did you mean " : "", near ? near : "",
                 near ? "?" : "");
}

static bool is_growth(const char *text)
{
    return stg_growth_is_word(text, strlen(text));
}

static void check_policy(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n, void *base)
{
    size_t number;

    (void)s, (void)base;
    if (stg_text_table_find(&l->policies, n->text, &number))
        return;
    if (is_word(n->text) && !is_preset(n->text) && !is_growth(n->text))
        refuse_name(l, n);
    else
        check_text(l, "policy", n);
}

/* Only as a word by itself can be a name; what it says is read later, when all
 * names are known. */
static bool read_policy(const stg_setting *s, const char *text, void *base,
                        stg_value_flaw *flaw)
{
    if (*text == '\0')
        return stg_kind_refuse_by(flaw, "it is empty");
    stg_kind_put_text(s, base, text);
    return true;
}

const stg_kind stg_kind_policy = {
    .expected = "a name of `policies`, a preset, or a policy's text",
    .read = read_policy,
    .check = check_policy,
    .texts = 1,
};

/* -- those of the settings ------------------------------------------------- */

/* A name that is a preset or a growth would change what a text means
 * elsewhere. */
static bool is_policy_name(stg_loading *l, const stg_yaml_node *key)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t size = strlen(key->text);

    if (size == 0 || size > 64 || strspn(key->text, letters) != size)
        stg_complain(
            l->c, key->place,
            "`policies`: `%.60s` is not a valid name of a policy; expected 1 to "
            "64 of A-Z a-z 0-9 . _ -",
            key->text);
    else if (is_preset(key->text) || is_growth(key->text))
        stg_complain(l->c, key->place,
                     "`policies`: `%.60s` is a word of policies already; "
                     "expected another name",
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
            "`policies`: no text for `%.60s`; expected a preset and what "
            "it changes, or a policy's text",
            key->text);
        return;
    }
    check_text(l, key->text, n);
    p->text = stg_load_keep_text(l, n->text);
    if (p->name != NULL && p->text != NULL)
        l->s->policy_count++;
}

/* Room for all is taken at once, so that no policy moves while others are
 * read. */
static void load_policies(stg_loading *l, const stg_setting *s,
                          const stg_yaml_node *n, void *base)
{
    stg_policy_setting *all;

    (void)base;
    if (n->kind != STG_NODE_MAP) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    all = stg_load_keep(l, (n->count / 2 + 1) * sizeof *all);
    if (all == NULL)
        return;
    l->s->policies = all;
    for (size_t i = 0; i < n->count; i += 2)
        load_policy(l, n->at[i], n->at[i + 1], all);
}

static json_t *schema_of_policies(const stg_setting *s)
{
    (void)s;
    return stg_schema_map(stg_schema_text(NULL));
}

const stg_kind stg_kind_policies = {
    .expected = "a map of policies: `name: text`",
    .load = load_policies,
    .schema = schema_of_policies,
};

/* -- budgets --------------------------------------------------------------- */

/* As `budget=` of a policy. */
static bool read_budget(const stg_setting *s, const char *text, void *base,
                        stg_value_flaw *flaw)
{
    char policy[128] = "broadcast budget=";
    size_t size = strlen(policy);
    stg_policy read;
    stg_error err;

    if (strlen(text) >= sizeof policy - size || strpbrk(text, " \t\n") != NULL)
        return stg_kind_refuse(flaw, text, "is not a budget");
    memcpy(policy + size, text, strlen(text) + 1);
    if (stg_policy_parse(&read, policy, &err) != STG_OK) {
        stg_kind_suggest_beginning(text, stg_budget_words, flaw);
        return stg_kind_refuse(flaw, text, "is not a budget");
    }
    memcpy((char *)base + s->at, &read.budget, sizeof read.budget);
    return true;
}

const stg_kind stg_kind_budget = {
    .expected =
        "none, CAPACITY:RATE/s, ratio:SHARE+RATE/s, aws, "
        "share:PERCENT%+FLOOR, aws:CAPACITY:COST:TIMEOUT:THROTTLE or "
        "grpc:TOKENS:RATIO",
    .read = read_budget,
};
