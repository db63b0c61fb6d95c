#include "config/lane_policy.h"

#include <string.h>

#include <stagger/text.h>

#include "core/writer.h"

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
