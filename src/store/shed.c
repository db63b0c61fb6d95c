#include "store/shed.h"

stg_shed_how stg_shed_how_of(const stg_change *c)
{
    if (c->is_cancelled)
        return STG_SHED_HOW_CANCELLED;
    if (c->is_expired)
        return STG_SHED_HOW_EXPIRED;
    return c->reason == STG_SHED_OPEN ? STG_SHED_HOW_SHED
                                      : STG_SHED_HOW_RETENTION;
}

const char *stg_shed_how_name(stg_shed_how how)
{
    static const char *const names[STG_SHED_HOWS] = {
        [STG_SHED_HOW_SHED] = "shed",
        [STG_SHED_HOW_RETENTION] = "retention",
        [STG_SHED_HOW_EXPIRED] = "expired",
        [STG_SHED_HOW_CANCELLED] = "cancelled"};

    return names[how];
}

stg_shed_cause stg_shed_cause_of(const stg_change *c)
{
    if (c->is_cancelled)
        return STG_SHED_CAUSE_CANCELLED;
    if (c->is_expired)
        return STG_SHED_CAUSE_EXPIRED;
    return c->reason == STG_SHED_PAUSED ? STG_SHED_CAUSE_PAUSED
           : c->reason == STG_SHED_SLOW ? STG_SHED_CAUSE_SLOW
                                        : STG_SHED_CAUSE_SHED;
}

const char *stg_shed_cause_name(stg_shed_cause cause)
{
    static const char *const names[STG_SHED_CAUSES] = {
        [STG_SHED_CAUSE_SHED] = "SHED",
        [STG_SHED_CAUSE_PAUSED] = "PAUSED",
        [STG_SHED_CAUSE_SLOW] = "SLOW",
        [STG_SHED_CAUSE_EXPIRED] = "EXPIRED",
        [STG_SHED_CAUSE_CANCELLED] = "CANCELLED"};

    return names[cause];
}
