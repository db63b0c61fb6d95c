#include "config/shard.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/parcel.h"

/* The finalizer of splitmix64: every bit of x counts in every bit of it. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

uint32_t stg_shard_of(const char *name, uint32_t of)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hash = stg_parcel_hash((stg_span){name, strlen(name)}), best = 0;
    uint32_t shard = 1;

    for (uint32_t i = 1; i <= of; i++) {
        uint64_t weight = mix(mix(hash) + golden * i);

        if (weight > best) {
            best = weight;
            shard = i;
        }
    }
    return shard;
}

bool stg_shard_has(const stg_shard_settings *s, const char *name)
{
    return s->mode != STG_SHARD_TARGETS ||
           stg_shard_of(name, s->count) == s->index;
}

const char *stg_shard_group(const stg_settings *s,
                            char text[STG_SHARD_GROUP_MAX])
{
    if (s->shard.mode == STG_SHARD_TARGETS)
        snprintf(text, STG_SHARD_GROUP_MAX, "%s.%" PRIu32 "-of-%" PRIu32,
                 s->kafka.group, s->shard.index, s->shard.count);
    else
        snprintf(text, STG_SHARD_GROUP_MAX, "%s", s->kafka.group);
    return text;
}
