/* targets.h - what follows from the settings of a target: its name, which of
 * several hubs has it, which messages it gets, and what its lane does about
 * faults. Pure. */
#ifndef STAGGER_CONFIG_TARGETS_H
#define STAGGER_CONFIG_TARGETS_H

#include <stdbool.h>

#include <stagger/policy.h>

#include "config/settings.h"
#include "flow/flow.h"
#include "store/parcel.h"

/* -- names ------------------------------------------------------------------ */

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

/* Deliveries that may be under way: as many as its requests in flight have, 10000
 * at most. */
uint32_t stg_target_in_flight_max(const stg_target_settings *t);

/* -- shards ----------------------------------------------------------------- */

/* The shard of a target's name, 1 to `of`. */
uint32_t stg_shard_of(const char *name, uint32_t of);

/* Whether this hub has the target. */
bool stg_shard_has(const stg_shard_settings *s, const char *name);

/* The consumer group of this hub: group, or with shards by targets
 * "group.ME-of-OF", since each shard reads every partition. */
enum { STG_SHARD_GROUP_MAX = 256 };
const char *stg_shard_group(const stg_settings *s,
                            char text[STG_SHARD_GROUP_MAX]);

/* -- filters ---------------------------------------------------------------- */

/* For stg_lane_options.accepts; ctx: the stg_target_settings, with a match.
 * Every header that it names must be there with one of its values; a header that
 * is there twice may have it in either. The body must match its pattern, and is
 * parsed for this one target. A message that is none is accepted: its delivery says
 * what is wrong with it. One that is too large (true_size) has no body to ask about:
 * its headers decide. */
bool stg_match_accepts(void *ctx, const stg_message *m);

/* The same of a parcel that is unpacked; and of its headers alone. */
bool stg_match_wants(const stg_target_settings *t, const stg_parcel *p);
bool stg_match_wants_headers(const stg_target_settings *t, const stg_parcel *p);

/* What it wants of the body, and of one that is a CloudEvent in structured mode, in
 * the place of headers ce-*; NULL: any will do. */
stg_pattern *stg_match_body(const stg_target_settings *t);
stg_pattern *stg_match_event(const stg_target_settings *t);

/* Why it does not get the message, in a line: "header X-Event: \"paid\" is not
 * \"sent\"". Nothing is added where it does. body: as stg_pattern_parse() has it. */
void stg_match_explain(const stg_target_settings *t, const stg_parcel *p,
                       const json_t *body, stg_text *why);

/* -- policies --------------------------------------------------------------- */

/* The preset of a target that has no policy: static. */
const char *stg_lane_policy_preset(size_t targets);

/* The effective policy, which lanes have and everybody prints: of a text, or of
 * the default for NULL, with the timeout that the target's settings have for an
 * attempt, and their rate in thousandths a second; 0: they have none. Returns
 * STG_INVALID with the place and what was expected; err->column counts from 1. */
stg_status stg_lane_policy_read(stg_policy *policy, const char *text,
                                size_t targets, stg_ns attempt_timeout,
                                uint32_t rate, stg_error *err);

#endif
