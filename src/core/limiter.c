#include <stagger/limiter.h>

#include "core/gcra.h"
#include "core/writer.h"

stg_status stg_limiter_init(stg_limiter *l, uint32_t rate, uint32_t burst,
                            stg_error *err)
{
    if (l == NULL)
        return stg_refuse(err, "limiter is NULL");
    if (rate > 1000000000)
        return stg_refuse_number(err, "rate", rate,
                                 "0 (no limit) to 1000000000 thousandths");
    if (rate == 0 && burst != 0)
        return stg_refuse_number(err, "burst", burst, "0 with no rate");
    if (burst > 1000000)
        return stg_refuse_number(err, "burst", burst, "0 to 1000000");
    if (rate != 0 && burst == 0)
        burst = (uint32_t)stg_ns_max(rate / 10000, 1);
    *l = (stg_limiter){.rate = rate, .burst = burst};
    return STG_OK;
}

bool stg_limiter_take(stg_limiter *l, stg_ns now, stg_ns *due_at)
{
    stg_ns from_at = now;
    bool is_taken = l == NULL || l->rate == 0 ||
                    stg_gcra_reserve(&l->level, l->rate, l->burst, now,
                                     stg_ns_add(now, 1), &from_at);

    if (due_at != NULL)
        *due_at = from_at;
    return is_taken;
}

stg_ns stg_limiter_reserve(stg_limiter *l, stg_ns now, stg_ns until_at)
{
    stg_ns from_at = now;

    if (l == NULL || l->rate == 0)
        return now < until_at ? now : STG_NEVER;
    return stg_gcra_reserve(&l->level, l->rate, l->burst, now, until_at,
                            &from_at)
               ? from_at
               : STG_NEVER;
}

void stg_limiter_give_back(stg_limiter *l, stg_ns from_at, stg_ns now)
{
    if (l != NULL && l->rate != 0)
        stg_gcra_give_back(&l->level, l->rate, l->burst, from_at, now);
}
