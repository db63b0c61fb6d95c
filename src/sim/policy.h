/* policy.h - what no model simulates: a policy that asks for it is refused. */
#ifndef STAGGER_SIM_POLICY_H
#define STAGGER_SIM_POLICY_H

#include "core/writer.h"

#include <stagger/policy.h>

/* Returns STG_OK, or STG_INVALID with a text in err. */
static inline stg_status stg_sim_policy_check(const stg_policy *p,
                                              stg_error *err)
{
    return p->hedge.max == 0
               ? STG_OK
               : stg_refuse(err,
                            "hedge= is not simulated: an operation has one "
                            "attempt at a time here; say hedge=none");
}

#endif
