/* match.h - which messages a target wants: the filter of a lane. */
#ifndef STAGGER_CONFIG_MATCH_H
#define STAGGER_CONFIG_MATCH_H

#include "config/settings.h"
#include "store/parcel.h"

/* For stg_lane_options.accepts; ctx: the stg_target_settings, with a match.
 * Every header that it names must be there with one of its values; a header that
 * is there twice may have it in either. A message that is none is accepted: its
 * delivery says what is wrong with it. */
bool stg_match_accepts(void *ctx, const stg_message *m);

/* The same of a parcel that is unpacked. */
bool stg_match_wants(const stg_target_settings *t, const stg_parcel *p);

#endif
