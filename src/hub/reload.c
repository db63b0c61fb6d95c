/* A reload, in three steps: plan (load and check the file, make new targets and
 * endpoints, prepare the parts that all targets share), begin new lanes, change
 * over.
 *
 * The first two can fail, and then the hub runs on with the old settings;
 * lanes that were begun by then stay, and send nothing. The change-over only
 * assigns pointers and cannot fail. It runs in a deadline of the loop, never
 * inside the call that asked for it, and `done` waits until the beginnings of
 * new lanes are durable. */
#include "hub/reload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "config/load.h"

/* What becomes of a target of the new settings. */
typedef struct renewal {
    stg_target *target;
    const stg_target_settings *next;
    stg_added added;        /* of a call's: next is of these */
    stg_endpoint *endpoint; /* a new one; NULL: its own stays */
    stg_oauth_token *token; /* the one from then on, perhaps its own; or NULL */
    char *url;
    bool is_new; /* flow has no lane of it */
} renewal;

/* All that is needed to change over, made before anything is changed. */
typedef struct plan {
    stg_hub *hub;
    stg_settings *next;
    stg_target **by_name; /* those there are, sorted */
    stg_target **all;     /* those there will be, those of the settings first */
    size_t all_count;
    renewal *renewals; /* of the new settings' targets, then of those that calls
                          have added */
    size_t room;       /* of them */
    size_t count;      /* of them that are planned */
    size_t added, changed, same;
    stg_reload_parts parts;
    stg_diagnostics diagnostics;
} plan;

/* -- what is to be done ---------------------------------------------------- */

static int order_by_name(const void *a, const void *b)
{
    stg_target *const *left = a, *const *right = b;

    return strcmp((*left)->name, (*right)->name);
}

static int order_name(const void *name, const void *target)
{
    stg_target *const *t = target;

    return strcmp(name, (*t)->name);
}

/* Searches the sorted copy: with many targets a linear search for each would
 * be quadratic. */
static stg_target *find(const plan *p, const char *name)
{
    size_t count = p->hub->targets.count;
    stg_target **found =
        bsearch(name, p->by_name, count, sizeof(stg_target *), order_name);

    return found != NULL ? *found : NULL;
}

/* A target that only the store knew counts as added: for the operator its name
 * is new in the file. */
static void count_target(plan *p, const renewal *r)
{
    const stg_target_settings *old = r->target->settings;

    if (old == NULL)
        p->added++;
    else if (r->endpoint == NULL && stg_settings_same_target(old, r->next))
        p->same++;
    else
        p->changed++;
}

/* False: it cannot be; a diagnostic says why. */
static bool plan_target(plan *p, renewal *r)
{
    stg_hub *h = p->hub;
    const char *name = r->next->name;
    stg_error err;

    r->target = find(p, name);
    if (stg_target_is_added(r->target) && r->added.settings == NULL) {
        stg_complain(
            &p->diagnostics, r->next->place,
            "target %s: a call has added it; expected another name, or "
            "that it is removed first: stagger targets remove %s",
            name, name);
        return false;
    }
    if (r->target == NULL && stg_target_changes_have(p->hub, name)) {
        stg_complain(&p->diagnostics, r->next->place,
                     "target %s: a call adds it now; reload again to see",
                     name);
        return false;
    }
    if (r->target != NULL && stg_target_control_forgets(h, r->target->lane)) {
        stg_complain(
            &p->diagnostics, r->next->place,
            "target %s: it is being forgotten; reload again when it is", name);
        return false;
    }
    if (r->target == NULL) {
        r->target = stg_target_new(name, stg_target_url_shown(r->next));
        r->is_new = true;
    }
    r->url = strdup(stg_target_url_shown(r->next));
    if (r->target == NULL || r->url == NULL) {
        p->diagnostics.is_memory_short = true;
        return false;
    }
    if (!stg_target_keeps_endpoint(r->target, r->next) &&
        stg_target_endpoint(&r->endpoint, h->client, r->next, &err) != STG_OK) {
        stg_complain(&p->diagnostics, r->next->place, "target %s: %s", name,
                     err.text);
        return false;
    }
    if (stg_oauth_take(h, r->next->common->token, &r->token, &err) != STG_OK) {
        stg_complain(&p->diagnostics, r->next->place, "target %s: %s", name,
                     err.text);
        return false;
    }
    count_target(p, r);
    return true;
}

/* A target that a call has added is as its text says beside the new settings. */
static bool plan_added(plan *p, const stg_target *t)
{
    renewal *r = &p->renewals[p->count];
    stg_error err;

    if (stg_target_added_load(&r->added, p->next, t->added.text,
                              t->added.version, &err) != STG_OK) {
        stg_complain(&p->diagnostics, (stg_file_place){0, 0},
                     "target %s, which a call has added: %.300s", t->name,
                     err.text);
        return false;
    }
    r->next = r->added.settings;
    return plan_target(p, r);
}

/* Old and new targets are compared by name, those of the new settings first and then
 * those of calls. All are looked at also after a flaw, so that each is told. */
static bool plan_targets(plan *p)
{
    const stg_targets *t = &p->hub->targets;
    bool is_good = true;

    memcpy(p->by_name, t->all, t->count * sizeof(stg_target *));
    qsort(p->by_name, t->count, sizeof(stg_target *), order_by_name);
    for (; p->count < p->next->target_count; p->count++) {
        renewal *r = &p->renewals[p->count];

        r->next = &p->next->targets[p->count];
        is_good = plan_target(p, r) && is_good;
    }
    for (size_t i = 0; i < t->known; i++)
        if (stg_target_is_added(t->all[i])) {
            is_good = plan_added(p, t->all[i]) && is_good;
            p->count++;
        }
    return is_good;
}

/* Room for all that is there and all that comes, so that nothing is wanting
 * while it is changed. */
static bool make_room(plan *p)
{
    size_t most = p->hub->targets.count + p->next->target_count;

    p->room = most;
    p->by_name = calloc(most, sizeof(stg_target *));
    p->all = calloc(most, sizeof(stg_target *));
    p->renewals = calloc(p->room, sizeof *p->renewals);
    p->diagnostics.is_memory_short =
        p->by_name == NULL || p->all == NULL || p->renewals == NULL;
    return !p->diagnostics.is_memory_short;
}

static bool reload_plan_parts(plan *p, const stg_settings *s)
{
    stg_error err;

    if (stg_reload_parts_prepare(&p->parts, p->hub, s, &err) == STG_OK)
        return true;
    stg_complain(&p->diagnostics, (stg_file_place){0}, "%s", err.text);
    return false;
}

static bool make_plan(plan *p)
{
    const stg_settings *old = p->hub->settings;

    if (stg_settings_load(old->file, &p->next, &p->diagnostics) != STG_OK)
        return false;
    stg_settings_take_overrides(old, p->next, &p->diagnostics);
    stg_settings_check_reload(p->hub->fixed, p->next, &p->diagnostics);
    stg_settings_use_fixed(p->next, p->hub->fixed);
    return p->diagnostics.mistakes == 0 && make_room(p) && plan_targets(p) &&
           reload_plan_parts(p, p->next);
}

/* What was made and is not used. */
static void drop_plan(plan *p)
{
    for (size_t i = 0; p->renewals != NULL && i < p->room; i++) {
        if (p->renewals[i].endpoint != NULL)
            stg_endpoint_retire(p->renewals[i].endpoint);
        stg_oauth_drop(p->renewals[i].token);
        free(p->renewals[i].url);
        stg_added_free(&p->renewals[i].added);
        if (p->renewals[i].is_new && p->renewals[i].target != NULL)
            stg_target_free(p->renewals[i].target);
    }
    free(p->by_name);
    free(p->all);
    free(p->renewals);
    stg_reload_parts_drop(&p->parts);
    stg_settings_free(p->next);
    stg_diagnostics_free(&p->diagnostics);
}

/* -- carrying it out ------------------------------------------------------- */

void stg_reload_leave(const stg_hub *h, stg_target *t)
{
    stg_lane_options l = stg_hub_lane(h, t);

    l.policy = &h->policy;
    l.accepts = NULL; // it takes nothing while it is paused
    l.is_paused = true;
    (void)stg_flow_change_lane(h->flow, t->lane, &l, stg_deadlines_now(), NULL);
    if (t->endpoint != NULL)
        stg_endpoint_retire(t->endpoint);
    t->endpoint = NULL;
    stg_oauth_use(t, NULL);
    t->settings = NULL;
    t->version++;
    stg_hub_filter(h, t);
    stg_tell_unknown(h, t);
}

/* Gives the target its lane, or its lane's row in the store the next URL. */
static stg_status begin_lane(plan *p, size_t i, stg_error *err)
{
    const renewal *r = &p->renewals[i];
    const stg_target_settings *next = r->next;
    uint32_t lane;

    if (!r->is_new)
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the plan is good
        return stg_store_lane(p->hub->store, next->name,
                              stg_target_url_shown(next), &lane, err);
    r->target->settings = next;
    return stg_hub_begin_lane(p->hub, r->target, err);
}

/* The lanes that were begun stay, like those that only the store knows. */
static void give_up_lanes(plan *p, size_t begun)
{
    stg_targets *t = &p->hub->targets;

    memcpy(p->all, t->all, t->count * sizeof(stg_target *));
    for (size_t i = 0; i <= begun; i++) {
        renewal *r = &p->renewals[i];

        if (!r->is_new || stg_targets_at(t, r->target->lane) != r->target)
            continue;
        r->is_new = false; // it is the hub's
        stg_reload_leave(p->hub, r->target);
        p->all[t->count++] = r->target;
    }
    free(t->all);
    t->all = p->all;
    t->changes++;
    p->all = NULL;
}

/* The last that can fail, for want of memory only. */
static bool begin_lanes(plan *p)
{
    stg_error err;

    for (size_t i = 0; i < p->count; i++) {
        stg_status status = begin_lane(p, i, &err);

        if (status == STG_OK)
            continue;
        stg_complain(&p->diagnostics, p->renewals[i].next->place, "%s",
                     err.text);
        give_up_lanes(p, i);
        return false;
    }
    return true;
}

/* Changes one target over. The plan's endpoint and url become the target's,
 * and are set to NULL in the plan, which frees what is left. */
static void renew(plan *p, renewal *r)
{
    stg_hub *h = p->hub;
    stg_target *t = r->target;
    stg_added old = t->added;
    stg_lane_options l;

    if (r->added.settings != NULL) {
        t->added = r->added;
        r->added = old; // goes with the plan, behind the lane's change
    }
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): it was planned
    t->settings = r->next;
    t->version++;
    free(t->url);
    t->url = r->url;
    r->url = NULL;
    if (r->endpoint != NULL) {
        if (t->endpoint != NULL)
            stg_endpoint_retire(t->endpoint);
        t->endpoint = r->endpoint;
        r->endpoint = NULL;
    }
    stg_oauth_use(t, r->token);
    r->token = NULL;
    l = stg_hub_lane(h, t);
    // Settings that were checked are taken.
    if (!r->is_new)
        (void)stg_flow_change_lane(h->flow, t->lane, &l, stg_deadlines_now(),
                                   NULL);
    t->is_beginning = r->is_new;
    h->reload.starting += r->is_new;
    r->is_new = false; // it is the hub's
}

/* Whether the target's settings lie in the array of s: a comparison of
 * pointers, for each set of settings has one array. */
static bool is_of(const stg_settings *s, const stg_target *t)
{
    return t->settings >= s->targets &&
           t->settings < s->targets + s->target_count;
}

/* Nothing here can fail. */
static void change_over(plan *p)
{
    stg_hub *h = p->hub;
    stg_targets *t = &h->targets;
    stg_settings *old = h->settings;
    stg_reloaded *r = &h->reload.result;

    *r = (stg_reloaded){.detail = "",
                        .added = p->added,
                        .changed = p->changed,
                        .same = p->same};
    stg_reload_parts_use(&p->parts, h);
    for (size_t i = 0; i < p->count; i++) {
        renew(p, &p->renewals[i]);
        p->all[p->all_count++] = p->renewals[i].target;
    }
    for (size_t i = 0; i < t->count; i++) {
        if (is_of(p->next, t->all[i]) || stg_target_is_added(t->all[i]))
            continue;
        if (is_of(old, t->all[i])) {
            stg_reload_leave(h, t->all[i]);
            if (r->gone++ < STG_GONE_NAMED_MAX)
                memcpy(r->gone_names[r->gone - 1], t->all[i]->name,
                       strlen(t->all[i]->name) + 1);
        }
        p->all[p->all_count++] = t->all[i];
    }
    free(t->all);
    t->all = p->all;
    t->count = p->all_count;
    t->known = p->count;
    t->changes++;
    h->settings = p->next;
    stg_log_set_least(h->log, h->settings->log.least);
    p->all = NULL;
    p->next = old; // goes with the plan
}

/* -- what became of it ----------------------------------------------------- */

/* All that was wrong, a line each. NULL: no memory. */
static char *join_mistakes(const stg_diagnostics *c, const char *file)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    if (to == NULL)
        return NULL;
    for (size_t i = 0; i < c->count; i++)
        if (!c->all[i].is_warning) {
            stg_diagnostic_print(&c->all[i], file, to);
            fputc('\n', to);
        }
    if (fclose(to) == 0)
        return text;
    free(text);
    return NULL;
}

/* Reports the result, once per reload; frees what the result has lent. */
static void tell(stg_hub *h)
{
    stg_reload *r = &h->reload;

    r->is_under_way = false;
    stg_tell_reloaded(h, &r->result);
    stg_notify_ready(&h->notify);
    if (r->done != NULL)
        r->done(r->ctx, &r->result);
    free(r->detail);
    r->detail = NULL;
    stg_diagnostics_free(&r->diagnostics);
}

/* The result has them until it was told. */
static void keep_diagnostics(plan *p)
{
    stg_reload *r = &p->hub->reload;

    stg_diagnostics_sort(&p->diagnostics);
    r->diagnostics = p->diagnostics;
    p->diagnostics = (stg_diagnostics){.all = NULL};
    r->result.diagnostics = &r->diagnostics;
    r->result.file = p->hub->settings->file;
}

/* Wrong settings, or want of memory; `detail` has a line for each mistake. */
static void refuse(plan *p)
{
    stg_reload *r = &p->hub->reload;
    bool is_short = p->diagnostics.is_memory_short;

    r->result = (stg_reloaded){.status = is_short ? STG_IO : STG_INVALID,
                               .detail = "there is no memory for it"};
    keep_diagnostics(p);
    r->detail = join_mistakes(&r->diagnostics, r->result.file);
    if (r->detail != NULL)
        r->result.detail = r->detail;
    tell(p->hub);
}

/* What it would change is about to go, and its alerts are on their way out. */
static void refuse_at_end(stg_hub *h)
{
    h->reload.result =
        (stg_reloaded){.status = STG_IO, .detail = "the hub was stopped"};
    tell(h);
}

/* Once new lanes have a place of their own. */
static void tell_if_begun(stg_hub *h)
{
    if (h->reload.is_under_way && h->reload.starting == 0)
        tell(h);
}

/* The options of a hub without a settings file stay as they are, and the files that
 * they name, of tokens and certificates, are read again. */
static void renew_parts(plan *p)
{
    stg_hub *h = p->hub;

    if (!reload_plan_parts(p, h->settings)) {
        refuse(p);
        return;
    }
    stg_reload_parts_use(&p->parts, h);
    h->reload.result = (stg_reloaded){.detail = "", .same = h->targets.known};
    tell(h);
}

/* The turn of the loop in which a reload happens. */
static void carry_out(stg_deadline *d)
{
    stg_hub *h = STG_HEAP_HOLDER(d, stg_hub, reload.turn);
    plan p = {.hub = h};

    if (stg_hub_is_stopping(h)) {
        refuse_at_end(h);
        return;
    }
    if (h->settings->file == NULL) {
        renew_parts(&p);
    } else if (make_plan(&p) && begin_lanes(&p)) {
        change_over(&p);
        keep_diagnostics(&p);
        stg_shell_note(h);
        tell_if_begun(h);
    } else {
        refuse(&p);
    }
    drop_plan(&p);
}

void stg_reload_lane_begun(stg_hub *h, uint32_t lane)
{
    stg_target *t = stg_targets_at(&h->targets, lane);

    if (t != NULL)
        stg_target_change_begun(t);
    if (t == NULL || !t->is_beginning) // it came with the hub
        return;
    t->is_beginning = false;
    h->reload.starting--;
    tell_if_begun(h);
}

void stg_reload_close(stg_hub *h)
{
    stg_deadline_clear(&h->deadlines, &h->reload.turn);
    if (h->reload.is_under_way)
        refuse_at_end(h);
}

static void note_reload(void *ctx, const stg_reloaded *r)
{
    const stg_hub *h = ctx;

    if (h->calls_part != NULL)
        h->calls->note(h->calls_part, "reload", "SIGHUP", r->status == STG_OK,
                       r->detail);
}

void stg_hub_reload_by_signal(stg_hub *h)
{
    stg_reloaded result = {.status = STG_INVALID};
    stg_error err;

    if (stg_hub_reload(h, note_reload, h, &err) == STG_OK)
        return;
    result.detail = err.text;
    stg_tell_reloaded(h, &result);
    note_reload(h, &result);
}

/* Carried out in the next turn, so that whoever calls has its answer first. */
stg_status stg_hub_reload(stg_hub *h, stg_reload_fn *done, void *ctx,
                          stg_error *err)
{
    const char *why = stg_hub_is_stopping(h) ? "the hub is stopping"
                      : h->reload.is_under_way
                          ? "another reload is under way; ask again"
                          : NULL;

    if (why != NULL)
        return stg_hub_refuse(err, STG_INVALID, "%s", why);
    stg_notify_reloading(&h->notify);
    h->reload.is_under_way = true;
    h->reload.done = done;
    h->reload.ctx = ctx;
    h->reload.turn.passed = carry_out;
    stg_deadline_set(&h->deadlines, &h->reload.turn, stg_deadlines_now());
    return STG_OK;
}
