/* Facts as the hub has them: dead letters of a change, and a lag that is compared
 * with its limits. */
#include "alerts/engine.h"

bool stg_alert_engine_stored(stg_alert_engine *e, const stg_change *c,
                             stg_ns now)
{
    if (c->kind == STG_CHANGE_DEAD && c->failure != NULL)
        stg_alert_engine_dead(e, c->lane,
                              stg_alert_cause_of(&c->failure->outcome), 1, now);
    else if (c->kind == STG_CHANGE_RANGE && !c->is_cancelled)
        stg_alert_engine_dead(e, c->lane, stg_alert_cause_of_shed(c), c->added,
                              now);
    else
        return false;
    return true;
}

/* Without a limit lag_messages is 0. */
void stg_alert_engine_lag(stg_alert_engine *e, const stg_alert_options *o,
                          uint32_t lane, uint64_t messages, stg_ns age,
                          stg_ns now)
{
    stg_alert_detail d = {.number = messages, .time = age};
    uint64_t most = o->lag_messages > 0 ? o->lag_messages : UINT64_MAX;

    if (messages >= most || age >= o->lag_time)
        stg_alert_engine_raise(e, STG_ALERT_LAG, lane, &d, now);
    else if (messages <= most / 2 && age <= o->lag_time / 2)
        stg_alert_engine_clear(e, STG_ALERT_LAG, lane, now);
}
