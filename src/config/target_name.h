/* target_name.h - how targets and their states are called. */
#ifndef STAGGER_CONFIG_TARGET_NAME_H
#define STAGGER_CONFIG_TARGET_NAME_H

#include <stdbool.h>

#include "config/settings.h"
#include "flow/flow.h"

/* A name for a URL: host-port, and 8 hex digits of the hash of path and query
 * where there are some. A name of its own for each URL, whatever other targets
 * there are: it finds the lane again. Returns STG_INVALID for no URL. */
stg_status stg_target_name(const char *url, char name[STG_TARGET_NAME_MAX],
                           stg_error *err);

/* 1 to 64 of A-Z a-z 0-9 . _ -, but not . and .. */
bool stg_target_is_name(const char *name);

/* The states of a target that are shown: those of its lane, and orphaned, of a
 * target that the settings do not have any more. */
enum { STG_TARGET_ORPHANED = STG_LANE_REMOVING + 1, STG_TARGET_STATES };
const char *stg_target_state_name(unsigned state);

#endif
