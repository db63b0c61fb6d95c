#include "flow/limit.h"

void stg_limit_start(stg_limit *l, uint32_t max, stg_ns now)
{
    *l = (stg_limit){
        .value = 1, .max = max, .threshold = max, .lowered_at = now};
}

void stg_limit_succeed(stg_limit *l, bool is_used)
{
    if (!is_used || l->value >= l->max)
        return;
    if (l->value >= l->threshold && ++l->credit < l->value)
        return;
    l->credit = 0;
    l->value++;
}

void stg_limit_fail(stg_limit *l, stg_ns attempt_at, stg_ns now)
{
    if (attempt_at < l->lowered_at)
        return;
    l->lowered_at = now;
    l->credit = 0;
    l->value = l->value > 1 ? l->value / 2 : 1;
    l->threshold = l->value;
}
