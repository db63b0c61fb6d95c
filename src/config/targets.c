/* What follows from a target's settings alone: its name, which of several hubs
 * sends to it, and its policy (match.c: which messages it gets). Pure, so that
 * every hub of a group and every command finds the same. */
#include "config/targets.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <stagger/text.h>

#include "core/writer.h"
#include "http/url.h"
#include "store/parcel.h"

/* -- names ------------------------------------------------------------------ */

static bool is_name_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

/* Hosts are the same in capitals. */
static char to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

bool stg_target_is_name(const char *name)
{
    size_t size = strlen(name);

    for (size_t i = 0; i < size; i++)
        if (!is_name_letter(name[i]))
            return false;
    // In a path of the API these two are the folder, and the one above it.
    return size > 0 && size < STG_TARGET_NAME_MAX && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

uint32_t stg_target_in_flight_max(const stg_target_settings *t)
{
    enum { DELIVERIES_MAX = 10000 };
    uint64_t all = (uint64_t)t->common->in_flight_max * t->common->batch.max;

    return all < DELIVERIES_MAX ? (uint32_t)all : DELIVERIES_MAX;
}

/* FNV-1a, folded. */
static uint32_t hash_of(stg_span text)
{
    uint64_t hash = stg_parcel_hash(text);

    return (uint32_t)(hash ^ hash >> 32);
}

/* HOST-PORT, and a hash of the path if there is one; of the whole URL where the
 * text is too long. The name keys the target's lane in the store, so that this
 * must not change between versions. */
stg_status stg_target_name(const char *url, char name[STG_TARGET_NAME_MAX],
                           stg_error *err)
{
    stg_span whole = {url, strlen(url)};
    char text[STG_URL_MAX + 32], hash[10] = "";
    bool has_path;
    stg_url u;

    if (stg_url_parse(&u, url, err) != STG_OK)
        return STG_INVALID;
    has_path = u.path.size > 0 && !(u.path.size == 1 && u.path.at[0] == '/');
    snprintf(text, sizeof text, "%.*s-%u", (int)u.host.size, u.host.at,
             (unsigned)u.port);
    for (char *at = text; *at != '\0'; at++)
        *at = is_name_letter(*at) ? to_lower(*at) : '-';
    // Two URLs that differ behind the cut must not share a name.
    if (strlen(text) > STG_TARGET_NAME_MAX - sizeof hash)
        snprintf(hash, sizeof hash, "-%08x", (unsigned)hash_of(whole));
    else if (has_path)
        snprintf(hash, sizeof hash, "-%08x", (unsigned)hash_of(u.path));
    snprintf(name, STG_TARGET_NAME_MAX, "%.*s%s",
             (int)(STG_TARGET_NAME_MAX - sizeof hash), text, hash);
    return STG_OK;
}

const char *stg_target_state_name(unsigned state)
{
    return state == STG_TARGET_ORPHANED
               ? "orphaned"
               : stg_lane_state_name((stg_lane_state)state);
}

/* -- shards ----------------------------------------------------------------- */

/* The finalizer of splitmix64: every bit of x counts in every bit of it. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Rendezvous hashing: every shard has a weight for the name, and the greatest
 * wins. With one shard more only about one name in `of` moves, and all of those
 * to the new shard. */
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

/* -- policies --------------------------------------------------------------- */

enum { WIDE_TARGETS = 50 };

/* Whether a word of the text is this setting. */
static bool says(const char *text, const char *setting)
{
    size_t size = strlen(setting);

    for (const char *at = strstr(text, setting); at != NULL;
         at = strstr(at + size, setting))
        if (at == text || at[-1] == ' ')
            return true;
    return false;
}

/* For what is a program's, and not a target's. No preset has it. */
static stg_status refuse_setting(stg_error *err, const char *text,
                                 const char *setting, const char *why)
{
    stg_status status = stg_refuse(err, why);

    if (err != NULL) {
        err->line = 1;
        err->column = (uint32_t)(strstr(text, setting) - text) + 1;
    }
    return status;
}

const char *stg_lane_policy_preset(size_t targets)
{
    return targets < WIDE_TARGETS ? "broadcast" : "broadcast-wide";
}

/* The policy as a lane has it: no text means the preset for that many targets;
 * a budget where the text names none; the target's own timeout and rate. What
 * only programs can use is refused at its place in the text. */
stg_status stg_lane_policy_read(stg_policy *policy, const char *text,
                                size_t targets, stg_ns attempt_timeout,
                                uint32_t rate, stg_error *err)
{
    stg_policy read;
    stg_status status;

    if (text == NULL)
        text = stg_lane_policy_preset(targets);
    status = stg_policy_parse(&read, text, err);
    if (status != STG_OK)
        return status;
    if (read.bulkhead.max != 0)
        return refuse_setting(err, text, "bulkhead=",
                              "bulkhead= is for programs: a target of a hub "
                              "has `in-flight`");
    if (read.throttle.kind != STG_THROTTLE_NONE)
        return refuse_setting(err, text, "throttle=",
                              "throttle= is for programs: a target of a hub "
                              "has a breaker, a budget and a rate");
    if (read.hedge.max != 0)
        return refuse_setting(err, text, "hedge=",
                              "hedge= is for programs: a delivery of a hub is "
                              "one request at a time");
    if (read.breaks_retries_only)
        return refuse_setting(err, text, "breaker-scope=",
                              "breaker-scope=retries is for programs: the "
                              "breaker of a target holds back all of it");
    // A preset may have a budget of its own.
    if (read.budget.kind == STG_BUDGET_NONE && !says(text, "budget=")) {
        read.budget = (stg_budget_options){
            .kind = STG_BUDGET_RATIO, .ratio = 200, .rate = 10000};
        if (!says(text, "budget-empty="))
            read.budget_waits = true;
    }
    if (attempt_timeout > 0)
        read.attempt_timeout = attempt_timeout;
    if (rate > 0)
        read.rate = rate;
    *policy = read;
    return STG_OK;
}
