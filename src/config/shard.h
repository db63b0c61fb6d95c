/* shard.h - which hub of several has a target.
 *
 * Rendezvous hashing: each (target, shard) has a weight, and the shard with the
 * highest one has the target. All hubs find the same without talking, and with
 * one shard more only the share of the new one moves.
 *
 * Source: Thaler and Ravishankar, "Using Name-Based Mappings to Increase Hit
 * Rates", IEEE/ACM Transactions on Networking 6(1), 1998. */
#ifndef STAGGER_CONFIG_SHARD_H
#define STAGGER_CONFIG_SHARD_H

#include "config/settings.h"

/* The shard of a target's name, 1 to `of`. */
uint32_t stg_shard_of(const char *name, uint32_t of);

/* Whether this hub has the target. */
bool stg_shard_has(const stg_shard_settings *s, const char *name);

/* The consumer group of this hub: group, or with shards by targets
 * "group.ME-of-OF", since each shard reads every partition. */
enum { STG_SHARD_GROUP_MAX = 256 };
const char *stg_shard_group(const stg_settings *s,
                            char text[STG_SHARD_GROUP_MAX]);

#endif
