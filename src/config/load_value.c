/* One value after another: texts, sections, targets, sinks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/from.h"
#include "config/loading.h"

enum { PATH_MAX_SIZE = 128 };

static const stg_file_place nowhere = {0, 0};

/* -- values ---------------------------------------------------------------- */

const char *stg_load_kind(const stg_yaml_node *n)
{
    return n->kind == STG_NODE_MAP ? "a map"
           : n->kind == STG_NODE_LIST
               ? n->count > 0 ? "a list" : "an empty list"
               : "a text";
}

void stg_load_refuse_kind(stg_loading *l, const stg_setting *s,
                          const stg_yaml_node *n)
{
    char wanted[STG_EXPECTED_MAX];

    stg_setting_expected(s, wanted);
    if (stg_node_is_null(n))
        stg_complain(l->c, n->place, "`%s`: nothing; wanted %s%s", s->path,
                     wanted, s->is_needed ? "" : ", or no such key at all");
    else
        stg_complain(l->c, n->place, "`%s`: %s; wanted %s", s->path,
                     stg_load_kind(n), wanted);
}

/* Numbers and truth are not texts: "64" is one in JSON, too. */
static bool is_quoted_number(const stg_setting *s, const stg_yaml_node *n)
{
    return !n->is_plain &&
           (s->kind == STG_KIND_COUNT || s->kind == STG_KIND_FLAG ||
            s->kind == STG_KIND_FLAG_NOT);
}

static void refuse_value(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n, const stg_value_flaw *flaw)
{
    bool has_hint = flaw->hint[0] != '\0';

    stg_complain(l->c, n->place, "`%s`: %s; wanted %s%s%s%s", s->path,
                 flaw->what, flaw->wanted, has_hint ? "; did you mean " : "",
                 flaw->hint, has_hint ? "?" : "");
}

static const char *keep_value(stg_loading *l, const stg_setting *s,
                              const char *text)
{
    bool is_path = s->kind == STG_KIND_FILE ||
                   (s->kind == STG_KIND_STORE && !stg_from_is_postgres(text));

    if (is_path && *text != '\0')
        return stg_load_keep_path(l, text);
    return stg_load_keep_text(l, text);
}

static void fix_letters(stg_loading *l, const stg_setting *s, void *base)
{
    stg_letters_settings letters;

    if (s->kind != STG_KIND_LETTERS)
        return;
    memcpy(&letters, (char *)base + s->at, sizeof letters);
    if (letters.path != NULL)
        letters.path = stg_load_keep_path(l, letters.path);
    memcpy((char *)base + s->at, &letters, sizeof letters);
}

static bool read_scalar(const stg_setting *s, const stg_yaml_node *n,
                        const char *text, void *base, stg_value_flaw *flaw)
{
    if (is_quoted_number(s, n)) {
        *flaw = (stg_value_flaw){.what = "a text in quotes"};
        snprintf(flaw->hint, sizeof flaw->hint, "%.60s", n->text);
    } else if (s->kind == STG_KIND_STORE && stg_from_has_password(text)) {
        *flaw = (stg_value_flaw){.what =
                                     "it has a password: put that into a "
                                     "file of libpq's, and name that by "
                                     "?passfile=FILE"};
    } else {
        return stg_value_read(s, text, base, flaw);
    }
    stg_setting_expected(s, flaw->wanted);
    return false;
}

static void load_scalar(stg_loading *l, const stg_setting *s,
                        const stg_yaml_node *n, void *base)
{
    stg_value_flaw flaw;
    const char *text;

    if (n->kind != STG_NODE_TEXT || stg_node_is_null(n)) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    text = keep_value(l, s, n->text);
    if (text == NULL)
        return;
    if (!read_scalar(s, n, text, base, &flaw)) {
        refuse_value(l, s, n, &flaw);
    } else {
        fix_letters(l, s, base);
        if (s->kind == STG_KIND_POLICY)
            stg_load_check_policy(l, n);
        if (s->is_secret)
            stg_load_check_secret(l, n->place, s->path, text);
    }
}

static void load_section(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n, void *base,
                         stg_file_place *places)
{
    char prefix[PATH_MAX_SIZE];

    if (n->kind != STG_NODE_MAP) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    snprintf(prefix, sizeof prefix, "%s.", s->path);
    stg_load_map(l, s->in, prefix, n, base, places);
}

/* -- targets and sinks ----------------------------------------------------- */

static void load_target(stg_loading *l, const stg_yaml_node *n)
{
    size_t number = l->s->target_count;
    stg_target_settings *t = stg_settings_add_target(l->s);
    stg_file_place *places = t != NULL ? stg_load_add_places(l) : NULL;
    size_t name = stg_load_number(STG_IN_TARGET, "name");

    if (places == NULL) {
        l->s->target_count = number;
        return;
    }
    l->targets[number] = places;
    t->place = n->place;
    stg_load_map(l, STG_IN_TARGET, "", n, t, places);
    if (places[name].line > 0)
        t->place = places[name];
}

static void refuse_parts(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n)
{
    if (n->kind == STG_NODE_LIST && n->count == 0)
        stg_complain(l->c, n->place, "`%s`: an empty list; wanted one at least",
                     s->path);
    else
        stg_load_refuse_kind(l, s, n);
}

static void load_targets(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n)
{
    if (n->kind != STG_NODE_LIST || n->count == 0) {
        refuse_parts(l, s, n);
        return;
    }
    l->targets = calloc(n->count, sizeof(stg_file_place *));
    if (l->targets == NULL) {
        stg_complain(l->c, nowhere, "there is no memory for the settings");
        return;
    }
    for (size_t i = 0; i < n->count; i++)
        if (n->at[i]->kind == STG_NODE_MAP)
            load_target(l, n->at[i]);
        else
            stg_load_refuse_kind(l, s, n->at[i]);
}

static void load_sink(stg_loading *l, stg_alert_sink_options *sink,
                      const stg_yaml_node *n)
{
    stg_file_place *places = stg_load_add_places(l);

    if (places == NULL)
        return;
    *sink = stg_alert_sink_options_default(STG_ALERT_WEBHOOK);
    places[0] = n->place; // of no setting of a sink
    stg_load_map(l, STG_IN_SINK, "", n, sink, places);
    l->sinks[l->sink_count++] = places;
}

static void load_sinks(stg_loading *l, const stg_setting *s,
                       const stg_yaml_node *n)
{
    stg_alert_sink_options *sinks;

    if (n->kind != STG_NODE_LIST) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    if (n->count > STG_ALERT_SINKS_MAX) {
        stg_complain(l->c, n->place, "`%s`: %zu of them; wanted %d at most",
                     s->path, n->count, STG_ALERT_SINKS_MAX);
        return;
    }
    sinks = stg_load_keep(l, (n->count + 1) * sizeof *sinks);
    l->sinks = calloc(n->count + 1, sizeof(stg_file_place *));
    if (sinks == NULL || l->sinks == NULL)
        return;
    for (size_t i = 0; i < n->count; i++)
        if (n->at[i]->kind == STG_NODE_MAP)
            load_sink(l, &sinks[l->sink_count], n->at[i]);
        else
            stg_load_refuse_kind(l, s, n->at[i]);
    l->s->alerts.sinks = sinks;
    l->s->alerts.sink_count = l->sink_count;
}

/* -- any of them ----------------------------------------------------------- */

static void load_defaults(stg_loading *l, const stg_setting *s,
                          const stg_yaml_node *n)
{
    if (n->kind == STG_NODE_MAP)
        stg_load_map(l, STG_IN_TARGET, "", n, &l->s->defaults, l->defaults);
    else
        stg_load_refuse_kind(l, s, n);
}

void stg_load_value(stg_loading *l, const stg_setting *s,
                    const stg_yaml_node *n, void *base, stg_file_place *places)
{
    places[stg_setting_number(s)] = n->place;
    switch (s->kind) {
    case STG_KIND_SECTION:
        load_section(l, s, n, base, places);
        break;
    case STG_KIND_POLICIES:
        stg_load_policies(l, n);
        break;
    case STG_KIND_DEFAULTS:
        load_defaults(l, s, n);
        break;
    case STG_KIND_TARGETS:
        load_targets(l, s, n);
        break;
    case STG_KIND_SINKS:
        load_sinks(l, s, n);
        break;
    default:
        if (stg_setting_is_scalar(s))
            load_scalar(l, s, n, base);
        else
            stg_load_list(l, s, n, base);
    }
}
