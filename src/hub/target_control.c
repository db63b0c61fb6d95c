/* Pause, resume and forget of one target, called by the API of this hub or of
 * another one on the same store.
 *
 * A pause acts on flow at once, and `done` waits until the store has it. A
 * target is paused if the settings or a call say so; a call cannot undo the
 * settings' pause.
 *
 * To forget means that flow cancels what waits, step by step, and reports
 * STG_ACTION_REMOVED in the end. Until then the target is there, its number
 * too, and a reload that has its name again is refused. */
#include "hub/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "base/suggest.h"
#include "hub/hub_internal.h"

struct stg_forgetting {
    stg_forgetting *next;
    uint32_t lane;
    stg_forgotten_fn *done;
    void *ctx;
};

stg_status stg_hub_find_target(const stg_hub *h, const char *name, size_t *i)
{
    const stg_target *t = stg_targets_named(&h->targets, name);

    if (t == NULL)
        return STG_NOT_FOUND;
    // From the end, for one that was added just now is there.
    for (*i = h->targets.count - 1; h->targets.all[*i] != t;)
        --*i;
    return STG_OK;
}

stg_status stg_hub_refuse_name(const stg_hub *h, const char *name,
                               stg_error *err)
{
    stg_suggestion near = stg_suggestion_begin(name, strlen(name));

    for (size_t i = 0; i < h->targets.count; i++)
        stg_suggestion_try(&near, h->targets.all[i]->name);
    return stg_hub_refuse(
        err, STG_NOT_FOUND, "there is no target of this name%s%s%s",
        near.name != NULL ? ", did you mean " : "",
        near.name != NULL ? near.name : "", near.name != NULL ? "?" : "");
}

/* NULL: there is none, or it is too late; *status says which. */
static stg_target *find(const stg_hub *h, const char *name, stg_status *status,
                        stg_error *err)
{
    size_t i;

    *status = STG_OK;
    if (!stg_hub_is_stopping(h) && stg_hub_find_target(h, name, &i) == STG_OK)
        return h->targets.all[i];
    *status = stg_hub_is_stopping(h)
                  ? stg_hub_refuse(err, STG_IO, "the hub is stopping")
                  : stg_hub_refuse_name(h, name, err);
    return NULL;
}

/* A change of the hub's settings, which are a file or only options. Returns
 * STG_INVALID. */
static stg_status refuse_settings(const stg_hub *h, const char *why,
                                  const char *change, stg_error *err)
{
    return stg_hub_refuse(err, STG_INVALID, "%s; %s and %s", why, change,
                          h->settings->file != NULL
                              ? "reload"
                              : "start the hub again (it has no settings file "
                                "to reload)");
}

/* -- pause ------------------------------------------------------------------- */

static stg_status check_resume(const stg_hub *h, const stg_target *t,
                               stg_error *err)
{
    if (t->settings == NULL)
        return refuse_settings(h, "the settings have this target no more",
                               "put it back", err);
    if (t->settings->is_paused)
        return refuse_settings(h, "the settings pause this target",
                               "change them", err);
    return STG_OK;
}

static void set_pause(stg_hub *h, stg_target *t, stg_pause pause)
{
    if (t->settings != NULL) // without them it is paused anyway
        stg_flow_pause(h->flow, t->lane,
                       pause != STG_PAUSE_NONE || t->settings->is_paused,
                       stg_deadlines_now());
    t->pause = pause;
    stg_disable_paused(h, t);
    stg_shell_note(h);
}

void stg_target_control_pause(stg_hub *h, stg_target *t, stg_pause pause,
                              stg_target_control_fn *done, void *ctx)
{
    set_pause(h, t, pause);
    stg_store_pause(h->store, t->lane, pause, done, ctx);
}

/* The store remembers it, so that it holds for all hubs and after a restart. */
stg_status stg_hub_pause(stg_hub *h, const char *name, bool is_paused,
                         stg_target_control_fn *done, void *ctx, stg_error *err)
{
    stg_status status;
    stg_target *t = find(h, name, &status, err);

    if (t == NULL)
        return status;
    if (!is_paused)
        status = check_resume(h, t, err);
    if (status == STG_OK)
        stg_target_control_pause(
            h, t, is_paused ? STG_PAUSE_CALL : STG_PAUSE_NONE, done, ctx);
    return status;
}

/* -- probe ------------------------------------------------------------------- */

/* Where nothing waits that could be the probe, a dead letter may be (recovery.c). */
stg_status stg_hub_probe(stg_hub *h, const char *name, stg_probe_fn *done,
                         void *ctx, stg_error *err)
{
    stg_status status;
    stg_target *t = find(h, name, &status, err);
    stg_ns now = stg_deadlines_now();
    stg_lane_view v;

    if (t == NULL)
        return status;
    if (stg_flow_probe(h->flow, t->lane, now)) {
        stg_shell_note(h);
        done(ctx, STG_OK);
        return STG_OK;
    }
    if (stg_flow_view_lane(h->flow, t->lane, &v, now) != STG_OK ||
        (v.state != STG_LANE_CIRCUIT_OPEN && v.state != STG_LANE_SHEDDING))
        return stg_hub_refuse(err, STG_INVALID,
                              "its circuit is not open, or it is paused: there "
                              "is nothing to probe");
    if (stg_oauth_is_gated(t))
        return stg_hub_refuse(err, STG_INVALID,
                              "there is no access token to probe it with: "
                              "`stagger status` says why");
    stg_recovery_probe(h, t, done, ctx);
    return STG_OK;
}

/* -- forget ------------------------------------------------------------------ */

bool stg_target_control_forgets(const stg_hub *h, uint32_t lane)
{
    for (const stg_forgetting *f = h->forgetting; f != NULL; f = f->next)
        if (f->lane == lane)
            return true;
    return false;
}

static stg_status check_forget(const stg_hub *h, const stg_target *t,
                               stg_error *err)
{
    if (stg_target_is_added(t))
        return stg_hub_refuse(err, STG_INVALID,
                              "a call has added this target; remove it "
                              "instead: stagger targets remove");
    if (t->settings != NULL)
        return refuse_settings(h, "the settings have this target",
                               "first take it out", err);
    if (stg_target_control_forgets(h, t->lane))
        return stg_hub_refuse(err, STG_INVALID, "it is being forgotten");
    return STG_OK;
}

stg_status stg_hub_check_forget(const stg_hub *h, const char *name,
                                stg_lane_view *v, stg_error *err)
{
    stg_status status;
    const stg_target *t = find(h, name, &status, err);

    if (t == NULL)
        return status;
    status = check_forget(h, t, err);
    if (status == STG_OK)
        (void)stg_hub_look_lane(h, t->lane, v, stg_deadlines_now());
    return status;
}

stg_status stg_hub_forget(stg_hub *h, const char *name, stg_forgotten_fn *done,
                          void *ctx, stg_error *err)
{
    stg_forgetting *f;
    stg_status status;
    const stg_target *t = find(h, name, &status, err);

    if (t == NULL)
        return status;
    status = check_forget(h, t, err);
    if (status != STG_OK)
        return status;
    f = malloc(sizeof *f);
    if (f == NULL)
        return stg_hub_refuse(err, STG_IO, "there is no memory");
    *f = (stg_forgetting){h->forgetting, t->lane, done, ctx};
    h->forgetting = f;
    stg_flow_remove(h->flow, t->lane, stg_deadlines_now());
    stg_shell_note(h);
    return STG_OK;
}

/* -- by other hubs --------------------------------------------------------- */

static void tell(const stg_hub *h, const stg_target *t, const char *what)
{
    STG_LOG(h->log, STG_LOG_INFO, "target-changed",
            stg_field_text("target", t->name), stg_field_text("what", what));
}

void stg_target_control_paused(void *hub, uint32_t lane, stg_pause pause)
{
    stg_hub *h = hub;
    stg_target *t = stg_targets_at(&h->targets, lane);

    if (t == NULL || h->flow == NULL)
        return;
    set_pause(h, t, pause);
    tell(h, t,
         pause == STG_PAUSE_NONE   ? "resumed"
         : pause == STG_PAUSE_CALL ? "paused"
                                   : "disabled");
}

static void ignore(void *ctx, bool is_forgotten)
{
    (void)ctx;
    (void)is_forgotten;
}

/* Who has called it forgets what is in that hub's partitions. Settings that have
 * the target still keep it, until they are read anew. */
bool stg_target_control_forgotten(void *hub, uint32_t lane)
{
    stg_hub *h = hub;
    const stg_target *t = stg_targets_at(&h->targets, lane);
    stg_error err;

    if (t == NULL)
        return true;
    if (h->flow == NULL || t->settings != NULL ||
        stg_target_control_forgets(h, lane))
        return false;
    if (stg_hub_forget(h, t->name, ignore, NULL, &err) == STG_OK)
        tell(h, t, "forgotten");
    return false;
}

/* -- the end ----------------------------------------------------------------- */

/* The end of a forget, or of a lane that another hub forgot. The target is
 * freed here: nothing may keep a pointer to it. */
void stg_target_control_removed(stg_hub *h, uint32_t lane)
{
    stg_target *t = stg_targets_at(&h->targets, lane);
    stg_forgetting **at = &h->forgetting, *f;

    if (t != NULL) {
        stg_metrics_forget(&h->metrics, &t->meter);
        stg_targets_remove(&h->targets, t);
    }
    while (*at != NULL && (*at)->lane != lane)
        at = &(*at)->next;
    f = *at;
    if (f == NULL)
        return;
    *at = f->next;
    f->done(f->ctx, true);
    free(f);
}

void stg_target_control_close(stg_hub *h)
{
    while (h->forgetting != NULL) {
        stg_forgetting *f = h->forgetting;

        h->forgetting = f->next;
        f->done(f->ctx, false);
        free(f);
    }
}
