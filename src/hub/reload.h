/* reload.h - the steps of a reload, for its files. Private to the hub.
 *
 *     reload_parts.c   what all targets share: egress, intake, alerts, flow
 *     reload_lanes.c   lanes of new targets, and URLs of the others in the store
 *     reload_plan.c    the targets
 *     reload.c         the whole: asked for, carried out, told
 *
 * Each part is prepared, which may fail and changes nothing, and then either put
 * in use, which cannot fail, or dropped; all in one turn of the loop. */
#ifndef STAGGER_HUB_RELOAD_H
#define STAGGER_HUB_RELOAD_H

#include "hub/hub_internal.h"

/* Parts that all targets share, of other settings, and not in use yet. */
typedef struct stg_reload_parts {
    stg_egress_rule *egress; /* one user of it */
    stg_ingress_next *ingress;
    stg_alerts_next *alerts;
    stg_flow_options flow;
    stg_resolver resolver;
} stg_reload_parts;

/* Reads and checks all of it; p is zeroed before. The settings are the hub's from
 * the use on: intake and alerts keep what they point to. Returns an error with
 * words, and p is still to be dropped. */
stg_status stg_reload_parts_prepare(stg_reload_parts *p, stg_hub *h,
                                    const stg_settings *s, stg_error *err);
void stg_reload_parts_use(stg_reload_parts *p, stg_hub *h);

/* Frees what is not in use. */
void stg_reload_parts_drop(stg_reload_parts *p);

/* A target as its lane in the store is to be. */
typedef struct stg_reload_lane {
    stg_target *target; /* with its next settings, where it is new */
    const char *url;    /* next one, as it is shown */
    stg_lane *made;     /* flow's lane of a new target; NULL: it has one */
} stg_reload_lane;

/* Makes what flow needs for the lane of a new target, which is in no table of the
 * hub. To be dropped, or placed. */
stg_status stg_reload_lane_make(stg_reload_lane *l, stg_hub *h, stg_error *err);
void stg_reload_lane_drop(stg_reload_lane *l, stg_hub *h);

/* Begins all lanes in one transaction of the store: the last step that can fail,
 * and then nothing has changed. On STG_OK each new target is in the hub's table of
 * lanes, and stg_reload_lane_place() is called for it in the same turn. */
stg_status stg_reload_lanes_begin(stg_reload_lane *lanes, size_t count,
                                  stg_hub *h, stg_error *err);
void stg_reload_lane_place(stg_reload_lane *l, stg_hub *h);

/* A target of the new settings, and what was made for it. */
typedef struct stg_renewal {
    stg_target *target;
    const stg_target_settings *next;
    stg_added added;        /* settings of a call, which `next` is of */
    stg_endpoint *endpoint; /* a new one; NULL: its own stays */
    stg_oauth_token *token; /* the one from then on, perhaps its own; or NULL */
    char *url;
    bool is_new; /* flow has no lane of it */
} stg_renewal;

/* All that is needed to change over, made before anything is changed. */
typedef struct stg_reload_plan {
    stg_hub *hub;
    stg_settings *next;
    stg_target **by_name;   /* the hub's, sorted */
    stg_target **all;       /* the hub's next ones, given to it */
    stg_renewal *renewals;  /* the settings' targets, then those of calls */
    stg_reload_lane *lanes; /* number: room, one for each renewal */
    size_t room;            /* items of each list */
    size_t count;           /* renewals that are planned */
    size_t added, changed, same;
    stg_reload_parts parts;
    stg_diagnostics diagnostics;
} stg_reload_plan;

/* Loads the file of the hub's settings and prepares all of it; false: a diagnostic
 * says why. Only the beginning of lanes has not been tried then. */
bool stg_reload_plan_make(stg_reload_plan *p);

/* Prepares the parts alone, of these settings. */
bool stg_reload_plan_parts(stg_reload_plan *p, const stg_settings *s);

/* Frees what was made and is not in use. */
void stg_reload_plan_drop(stg_reload_plan *p);

#endif
