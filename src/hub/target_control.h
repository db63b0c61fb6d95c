/* target_control.h - what people do to a hub while it runs: pause, resume,
 * probe, forget.
 *
 * On the loop's thread; names are those of targets. A call that is refused
 * returns at once, with words; else done is called, once, when it is durable
 * (is_full: the store is, and the call holds until a restart only), or when the
 * hub ends first. */
#ifndef STAGGER_HUB_TARGET_CONTROL_H
#define STAGGER_HUB_TARGET_CONTROL_H

#include "hub/hub.h"

typedef void stg_target_control_fn(void *ctx, bool is_full);

/* The number of the target for stg_hub_look_target(). STG_NOT_FOUND: there is
 * none of that name. */
stg_status stg_hub_find_target(const stg_hub *h, const char *name, size_t *i);

/* No attempt starts from the return of this call on; or again. Returns
 * STG_NOT_FOUND, or STG_INVALID where the settings forbid it: a target that
 * they pause, or that they have no more, cannot be resumed by a call. */
stg_status stg_hub_pause(stg_hub *h, const char *name, bool is_paused,
                         stg_target_control_fn *done, void *ctx,
                         stg_error *err);

/* The next probe of a target whose circuit is open starts at once. STG_INVALID:
 * its circuit is not open, or it is paused. Nothing is stored. */
stg_status stg_hub_probe(stg_hub *h, const char *name, stg_error *err);

/* False: the hub stops first. What was cancelled until then stays so, and the
 * next hub has the target again, to be forgotten anew. */
typedef void stg_forgotten_fn(void *ctx, bool is_forgotten);

/* Ends the lane of a target that the settings have no more: what waits for it
 * is cancelled, and its name is new again. Returns STG_NOT_FOUND; STG_INVALID
 * for a target of the settings, and for one that is being forgotten. */
stg_status stg_hub_forget(stg_hub *h, const char *name, stg_forgotten_fn *done,
                          void *ctx, stg_error *err);

#endif
