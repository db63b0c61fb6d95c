/* lane_policy.h - what the hub's lanes do about faults.
 *
 * Pure. The hub's default is `broadcast` below 50 targets and `broadcast-wide`
 * from 50 on, whose waits are spread. Unless the text says otherwise a lane's
 * retries have a budget, ratio:0.2+10/s, and wait for it when it is empty. */
#ifndef STAGGER_CONFIG_LANE_POLICY_H
#define STAGGER_CONFIG_LANE_POLICY_H

#include <stagger/policy.h>

/* The preset of a target that has no policy: static. */
const char *stg_lane_policy_preset(size_t targets);

/* The effective policy, which lanes have and everybody prints: of a text, or of
 * the default for NULL, with the timeout that the target's settings have for an
 * attempt, and their rate in thousandths a second; 0: they have none. Returns
 * STG_INVALID with the place and what was wanted; err->column counts from 1. */
stg_status stg_lane_policy_read(stg_policy *policy, const char *text,
                                size_t targets, stg_ns attempt_timeout,
                                uint32_t rate, stg_error *err);

#endif
