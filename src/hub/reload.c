/* A reload, in four steps: plan (load and check the file, make everything that
 * can fail for targets and for the parts that all targets share), begin the lanes
 * of new targets, change over, free what was there before.
 *
 * The first two can fail, and then nothing has changed: the lanes begin in one
 * transaction, which is the last step that can fail. The change-over assigns
 * pointers, and there is no way back. It runs in a deadline of the loop, never
 * inside the call that asked for it, and `done` waits until the beginnings of
 * new lanes are durable. */
#include "hub/reload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "config/load.h"

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

/* Begins the lanes of new targets. False: nothing has changed. */
static bool reload_begin(stg_reload_plan *p)
{
    stg_error err;

    if (stg_reload_lanes_begin(p->lanes, p->count, p->hub, &err) == STG_OK)
        return true;
    stg_complain(&p->diagnostics, (stg_file_place){0}, "%s", err.text);
    return false;
}

/* Changes one target over. The plan's endpoint and url become the target's,
 * and are set to NULL in the plan, which frees what is left. */
static void reload_renew(stg_reload_plan *p, size_t i)
{
    stg_renewal *r = &p->renewals[i];
    stg_hub *h = p->hub;
    stg_target *t = r->target;
    stg_added old = t->added;
    stg_lane_options l;

    if (r->added.settings != NULL) {
        t->added = r->added;
        r->added = old; // goes with the plan, behind the lane's change
    }
    if (r->is_new)
        stg_reload_lane_place(&p->lanes[i], h);
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
static void change_over(stg_reload_plan *p)
{
    stg_hub *h = p->hub;
    stg_targets *t = &h->targets;
    stg_settings *old = h->settings;
    stg_reloaded *r = &h->reload.result;
    size_t count = 0;

    *r = (stg_reloaded){.detail = "",
                        .added = p->added,
                        .changed = p->changed,
                        .same = p->same};
    stg_reload_parts_use(&p->parts, h);
    for (size_t i = 0; i < p->count; i++) {
        reload_renew(p, i);
        p->all[count++] = p->renewals[i].target;
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
        p->all[count++] = t->all[i];
    }
    free(t->all);
    t->all = p->all;
    t->count = count;
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
static void keep_diagnostics(stg_reload_plan *p)
{
    stg_reload *r = &p->hub->reload;

    stg_diagnostics_sort(&p->diagnostics);
    r->diagnostics = p->diagnostics;
    p->diagnostics = (stg_diagnostics){.all = NULL};
    r->result.diagnostics = &r->diagnostics;
    r->result.file = p->hub->settings->file;
}

/* Wrong settings, or want of memory; `detail` has a line for each mistake. */
static void refuse(stg_reload_plan *p)
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
static void renew_parts(stg_reload_plan *p)
{
    stg_hub *h = p->hub;

    if (!stg_reload_plan_parts(p, h->settings)) {
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
    stg_reload_plan p = {.hub = h};

    if (stg_hub_is_stopping(h)) {
        refuse_at_end(h);
        return;
    }
    if (h->settings->file == NULL) {
        renew_parts(&p);
    } else if (stg_reload_plan_make(&p) && reload_begin(&p)) {
        change_over(&p);
        keep_diagnostics(&p);
        stg_shell_note(h);
        tell_if_begun(h);
    } else {
        refuse(&p);
    }
    stg_reload_plan_drop(&p);
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
