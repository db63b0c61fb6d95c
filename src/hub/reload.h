/* reload.h - the steps of a reload, for its files. Private to the hub.
 *
 *     reload_parts.c   what all targets share: egress, intake, alerts, flow
 *     reload.c         the targets, and the whole
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

#endif
