/* fault_row.h - stg_fault_about(), for those who ask in every decision.
 * Private. */
#ifndef STAGGER_CORE_FAULT_ROW_H
#define STAGGER_CORE_FAULT_ROW_H

#include <stagger/fault.h>

extern const stg_fault_info stg_faults[STG_FAULT_COUNT];

static inline const stg_fault_info *stg_fault_row(stg_fault fault)
{
    return &stg_faults[(unsigned)fault < STG_FAULT_COUNT ? fault
                                                         : STG_FAULT_ERROR];
}

static inline stg_category stg_fault_category(stg_fault fault)
{
    return stg_fault_row(fault)->category;
}

#endif
