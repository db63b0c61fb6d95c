/* The plan of a reload: the file is loaded and checked, and everything that can
 * fail is made for its targets and for those of calls. Nothing of the hub is
 * changed, so a plan that is dropped leaves no trace. */
#include "hub/reload.h"

#include <stdlib.h>
#include <string.h>

#include "config/load.h"

static int reload_plan_order(const void *a, const void *b)
{
    stg_target *const *left = a, *const *right = b;

    return strcmp((*left)->name, (*right)->name);
}

static int reload_plan_compare(const void *name, const void *target)
{
    stg_target *const *t = target;

    return strcmp(name, (*t)->name);
}

/* Searches the sorted copy: with many targets a linear search for each would
 * be quadratic. */
static stg_target *reload_plan_find(const stg_reload_plan *p, const char *name)
{
    size_t count = p->hub->targets.count;
    stg_target **found = bsearch(name, p->by_name, count, sizeof(stg_target *),
                                 reload_plan_compare);

    return found != NULL ? *found : NULL;
}

/* A target that only the store knew counts as added: for the operator its name
 * is new in the file. */
static void reload_plan_count(stg_reload_plan *p, const stg_renewal *r)
{
    const stg_target_settings *old = r->target->settings;

    if (old == NULL)
        p->added++;
    else if (r->endpoint == NULL && stg_settings_same_target(old, r->next))
        p->same++;
    else
        p->changed++;
}

static bool reload_plan_refuse(stg_reload_plan *p, const stg_renewal *r,
                               const char *why)
{
    stg_complain(&p->diagnostics, r->next->place, "target %s: %.300s",
                 r->next->name, why);
    return false;
}

/* Whether the settings may have a target of this name now. */
static bool reload_plan_may(stg_reload_plan *p, const stg_renewal *r)
{
    const char *name = r->next->name;

    if (stg_target_is_added(r->target) && r->added.settings == NULL) {
        stg_complain(
            &p->diagnostics, r->next->place,
            "target %s: a call has added it; expected another name, or "
            "that it is removed first: stagger targets remove %s",
            name, name);
        return false;
    }
    if (r->target == NULL && stg_target_changes_have(p->hub, name))
        return reload_plan_refuse(p, r,
                                  "a call adds it now; reload again to see");
    if (r->target != NULL &&
        stg_target_control_forgets(p->hub, r->target->lane))
        return reload_plan_refuse(
            p, r, "it is being forgotten; reload again when it is");
    return true;
}

/* Makes the target, if it is new, and the text of its URL. */
static bool reload_plan_texts(stg_reload_plan *p, stg_renewal *r)
{
    const char *url = stg_target_url_shown(r->next);

    if (r->target == NULL) {
        r->target = stg_target_new(r->next->name, url);
        r->is_new = true;
    }
    r->url = strdup(url);
    if (r->target != NULL && r->url != NULL)
        return true;
    p->diagnostics.is_memory_short = true;
    return false;
}

/* Makes what its requests need: an endpoint, unless the one that is there does it,
 * and a token. */
static bool reload_plan_requests(stg_reload_plan *p, stg_renewal *r)
{
    stg_hub *h = p->hub;
    stg_status status = STG_OK;
    stg_error err;

    if (!stg_target_keeps_endpoint(r->target, r->next))
        status = stg_target_endpoint(&r->endpoint, h->client, r->next, &err);
    if (status == STG_OK)
        status = stg_oauth_take(h, r->next->common->token, &r->token, &err);
    return status == STG_OK || reload_plan_refuse(p, r, err.text);
}

/* Makes flow's lane of a new target; the options of others are checked, so that
 * their change cannot fail. */
static bool reload_plan_lane(stg_reload_plan *p, const stg_renewal *r,
                             stg_reload_lane *lane)
{
    stg_lane_options o = stg_settings_lane(r->next);
    stg_error err;
    stg_status status;

    *lane = (stg_reload_lane){.target = r->target, .url = r->url};
    if (!r->is_new) {
        status = stg_lane_options_check(&o, &err);
    } else {
        r->target->settings = r->next;
        status = stg_reload_lane_make(lane, p->hub, &err);
    }
    return status == STG_OK || reload_plan_refuse(p, r, err.text);
}

/* False: it cannot be; a diagnostic says why. */
static bool reload_plan_target(stg_reload_plan *p, stg_renewal *r)
{
    r->target = reload_plan_find(p, r->next->name);
    if (!reload_plan_may(p, r) || !reload_plan_texts(p, r) ||
        !reload_plan_requests(p, r))
        return false;
    reload_plan_count(p, r);
    return reload_plan_lane(p, r, &p->lanes[p->count]);
}

/* A target that a call has added is as its text says beside the new settings. */
static bool reload_plan_added(stg_reload_plan *p, const stg_target *t)
{
    stg_renewal *r = &p->renewals[p->count];
    stg_error err;

    if (stg_target_added_load(&r->added, p->next, t->added.text,
                              t->added.version, &err) != STG_OK) {
        stg_complain(&p->diagnostics, (stg_file_place){0, 0},
                     "target %s, which a call has added: %.300s", t->name,
                     err.text);
        return false;
    }
    r->next = r->added.settings;
    return reload_plan_target(p, r);
}

/* Old and new targets are compared by name, those of the new settings first and then
 * those of calls. All are looked at also after a flaw, so that each is told. */
static bool reload_plan_targets(stg_reload_plan *p)
{
    const stg_targets *t = &p->hub->targets;
    bool is_good = true;

    if (t->count > 0) {
        memcpy(p->by_name, t->all, t->count * sizeof(stg_target *));
        qsort(p->by_name, t->count, sizeof(stg_target *), reload_plan_order);
    }
    for (; p->count < p->next->target_count; p->count++) {
        stg_renewal *r = &p->renewals[p->count];

        r->next = &p->next->targets[p->count];
        is_good = reload_plan_target(p, r) && is_good;
    }
    for (size_t i = 0; i < t->known; i++)
        if (stg_target_is_added(t->all[i])) {
            is_good = reload_plan_added(p, t->all[i]) && is_good;
            p->count++;
        }
    return is_good;
}

/* Room for all that is there and all that comes, so that nothing is wanting
 * while it is changed. */
static bool reload_plan_room(stg_reload_plan *p)
{
    size_t most = p->hub->targets.count + p->next->target_count;

    p->room = most;
    p->by_name = calloc(most, sizeof(stg_target *));
    p->all = calloc(most, sizeof(stg_target *));
    p->renewals = calloc(p->room, sizeof *p->renewals);
    p->lanes = calloc(p->room, sizeof *p->lanes);
    p->diagnostics.is_memory_short = p->by_name == NULL || p->all == NULL ||
                                     p->renewals == NULL || p->lanes == NULL;
    return !p->diagnostics.is_memory_short;
}

bool stg_reload_plan_parts(stg_reload_plan *p, const stg_settings *s)
{
    stg_error err;

    if (stg_reload_parts_prepare(&p->parts, p->hub, s, &err) == STG_OK)
        return true;
    stg_complain(&p->diagnostics, (stg_file_place){0}, "%s", err.text);
    return false;
}

bool stg_reload_plan_make(stg_reload_plan *p)
{
    stg_hub *h = p->hub;

    if (stg_settings_load_over(h->settings->file, h->settings, &p->next,
                               &p->diagnostics) != STG_OK)
        return false;
    stg_settings_check_reload(h->fixed, p->next, &p->diagnostics);
    stg_target_keys_check(h, p->next, &p->diagnostics);
    stg_settings_use_fixed(p->next, h->fixed);
    return p->diagnostics.mistakes == 0 && reload_plan_room(p) &&
           reload_plan_targets(p) && stg_reload_plan_parts(p, p->next);
}

static void reload_plan_drop_renewal(stg_renewal *r)
{
    if (r->endpoint != NULL)
        stg_endpoint_retire(r->endpoint);
    stg_oauth_drop(r->token);
    free(r->url);
    stg_added_free(&r->added);
    if (r->is_new && r->target != NULL)
        stg_target_free(r->target);
}

void stg_reload_plan_drop(stg_reload_plan *p)
{
    for (size_t i = 0; p->lanes != NULL && i < p->room; i++)
        stg_reload_lane_drop(&p->lanes[i], p->hub);
    for (size_t i = 0; p->renewals != NULL && i < p->room; i++)
        reload_plan_drop_renewal(&p->renewals[i]);
    free(p->by_name);
    free(p->all);
    free(p->renewals);
    free(p->lanes);
    stg_reload_parts_drop(&p->parts);
    stg_settings_free(p->next);
    stg_diagnostics_free(&p->diagnostics);
}
