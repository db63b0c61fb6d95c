/* Maps of settings: sections of the file, the defaults of targets, and the
 * lists of targets, of receivers and of inbound webhooks.
 *
 * Each of these has a table of places, one for each setting, so
 * that what is wrong between two settings is told where they were written.
 * Targets are loaded last: they begin as copies of the defaults. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/kinds/kinds.h"
#include "config/loading.h"

enum { PATH_MAX_SIZE = 128 };

static const stg_file_place nowhere = {0, 0};

/* The same struct and the same table of places: a section is only a prefix. */
static void load_section(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n, void *base)
{
    char prefix[PATH_MAX_SIZE];

    if (n->kind != STG_NODE_MAP) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    snprintf(prefix, sizeof prefix, "%s.", s->path);
    stg_load_map(l, s->in, prefix, n, base, l->places);
}

const stg_kind stg_kind_section = {
    .expected = "a map of settings",
    .load = load_section,
    .schema = stg_schema_section,
};

/* Into the settings' own target, which all others are copied from. */
static void load_defaults(stg_loading *l, const stg_setting *s,
                          const stg_yaml_node *n, void *base)
{
    (void)base;
    if (n->kind == STG_NODE_MAP)
        stg_load_map(l, STG_IN_TARGET, "", n, &l->s->defaults, l->defaults);
    else
        stg_load_refuse_kind(l, s, n);
}

static json_t *schema_of_defaults(const stg_setting *s)
{
    (void)s;
    return stg_schema_reference("defaults");
}

const stg_kind stg_kind_defaults = {
    .expected = "a map of settings, as of a target",
    .load = load_defaults,
    .schema = schema_of_defaults,
    .turn = 1,
};

/* -- targets, receivers and inbound webhooks ------------------------------- */

/* What is equal to l->own: of the defaults or of another target, else a copy. Of many
 * that differ only the newest are looked at, so that thousands of them are not
 * compared with each other. NULL: there is no memory. */
static stg_target_common *share(stg_loading *l)
{
    stg_target_common *defaults = l->s->defaults.common, *kept;

    if (stg_settings_same_common(defaults, &l->own))
        return defaults;
    for (size_t i = 0; i < STG_SHARED_LOOKED_AT && l->shared[i] != NULL; i++)
        if (stg_settings_same_common(l->shared[i], &l->own))
            return l->shared[i];
    kept = stg_settings_keep_common(l->s, &l->own);
    if (kept != NULL)
        l->shared[l->shared_count++ % STG_SHARED_LOOKED_AT] = kept;
    return kept;
}

/* Reads into what is this target's own, which is then looked for among those of
 * others. */
static void load_target_map(stg_loading *l, const stg_yaml_node *n,
                            stg_target_settings *t, stg_file_place *places)
{
    l->own = *t->common;
    t->common = &l->own;
    stg_load_map(l, STG_IN_TARGET, "", n, t, places);
    t->common = share(l);
    if (t->common != NULL)
        return;
    t->common = l->s->defaults.common;
    stg_complain(l->c, nowhere, "out of memory");
}

/* The place of a target is its name, if it has one: that is what is searched
 * for. */
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
    load_target_map(l, n, t, places);
    if (places[name].line > 0)
        t->place = places[name];
}

/* What is no map is complained of, and leaves no gap in the targets. None at all
 * are for a hub whose targets are added by calls. */
static void load_targets(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n, void *base)
{
    (void)base;
    if (n->kind != STG_NODE_LIST) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    l->targets = calloc(n->count + 1, sizeof(stg_file_place *));
    if (l->targets == NULL) {
        stg_complain(l->c, nowhere, "out of memory");
        return;
    }
    for (size_t i = 0; i < n->count; i++)
        if (n->at[i]->kind == STG_NODE_MAP)
            load_target(l, n->at[i]);
        else
            stg_load_refuse_kind(l, s, n->at[i]);
}

/* Starts as a webhook, whose defaults are those of all types. */
static void load_receiver(stg_loading *l, stg_alert_receiver_options *receiver,
                          const stg_yaml_node *n)
{
    stg_file_place *places = stg_load_add_places(l);

    if (places == NULL)
        return;
    *receiver = stg_alert_receiver_options_default(STG_RECEIVER_WEBHOOK);
    places[0] = n->place; // of no setting of a receiver
    stg_load_map(l, STG_IN_RECEIVER, "", n, receiver, places);
    l->receivers[l->receiver_count++] = places;
}

/* An empty list is allowed and means that no alert is sent. */
static void load_receivers(stg_loading *l, const stg_setting *s,
                           const stg_yaml_node *n, void *base)
{
    stg_alert_receiver_options *receivers;

    (void)base;
    if (n->kind != STG_NODE_LIST) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    if (n->count > STG_ALERT_RECEIVERS_MAX) {
        stg_complain(l->c, n->place, "`%s`: %zu of them; expected %d at most",
                     s->path, n->count, STG_ALERT_RECEIVERS_MAX);
        return;
    }
    receivers = stg_load_keep(l, (n->count + 1) * sizeof *receivers);
    l->receivers = calloc(n->count + 1, sizeof(stg_file_place *));
    if (receivers == NULL || l->receivers == NULL)
        return;
    for (size_t i = 0; i < n->count; i++)
        if (n->at[i]->kind == STG_NODE_MAP)
            load_receiver(l, &receivers[l->receiver_count], n->at[i]);
        else
            stg_load_refuse_kind(l, s, n->at[i]);
    l->s->alerts.receivers = receivers;
    l->s->alerts.receiver_count = l->receiver_count;
}

static void load_inbound(stg_loading *l, stg_inbound_settings *inbound,
                         const stg_yaml_node *n)
{
    stg_file_place *places = stg_load_add_places(l);

    if (places == NULL)
        return;
    inbound->hook.tolerance = STG_VERIFY_WINDOW * STG_S;
    places[0] = n->place; // of no setting of it
    stg_load_map(l, STG_IN_INBOUND, "", n, inbound, places);
    l->inbounds[l->inbound_count++] = places;
}

static void load_inbounds(stg_loading *l, const stg_setting *s,
                          const stg_yaml_node *n, void *base)
{
    stg_inbound_settings *all;

    (void)base;
    if (n->kind != STG_NODE_LIST) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    if (n->count > STG_WEBHOOKS_MAX) {
        stg_complain(l->c, n->place, "`%s`: %zu of them; expected %d at most",
                     s->path, n->count, STG_WEBHOOKS_MAX);
        return;
    }
    all = stg_load_keep(l, (n->count + 1) * sizeof *all);
    l->inbounds = calloc(n->count + 1, sizeof(stg_file_place *));
    if (all == NULL || l->inbounds == NULL)
        return;
    for (size_t i = 0; i < n->count; i++)
        if (n->at[i]->kind == STG_NODE_MAP)
            load_inbound(l, &all[l->inbound_count], n->at[i]);
        else
            stg_load_refuse_kind(l, s, n->at[i]);
    l->s->inbound = all;
    l->s->inbound_count = l->inbound_count;
}

/* -- their kinds ----------------------------------------------------------- */

static json_t *schema_of_targets(const stg_setting *s)
{
    (void)s;
    return stg_schema_array(stg_schema_reference("target"));
}

static json_t *schema_of_receivers(const stg_setting *s)
{
    (void)s;
    return json_pack("{ss so si}", "type", "array", "items",
                     stg_schema_reference("receiver"), "maxItems",
                     STG_ALERT_RECEIVERS_MAX);
}

/* Compared by who knows them: by name, one by one. */
const stg_kind stg_kind_targets = {
    .expected = "a list of targets: `- {name: NAME, url: URL}`",
    .load = load_targets,
    .schema = schema_of_targets,
    .turn = 2,
};

const stg_kind stg_kind_receivers = {
    .expected = "a list of receivers: `- {name: NAME, type: TYPE}`",
    .load = load_receivers,
    .schema = schema_of_receivers,
};

static json_t *schema_of_inbounds(const stg_setting *s)
{
    (void)s;
    return json_pack("{ss so si}", "type", "array", "items",
                     stg_schema_reference("inbound"), "maxItems",
                     STG_WEBHOOKS_MAX);
}

const stg_kind stg_kind_inbounds = {
    .expected =
        "a list of webhooks: `- {name: NAME, scheme: SCHEME, secrets: "
        "SECRETS}`",
    .load = load_inbounds,
    .schema = schema_of_inbounds,
};
