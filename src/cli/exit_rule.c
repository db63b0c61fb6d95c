#include "cli/exit_rule.h"

bool stg_exit_rule_stands(const stg_policy *p)
{
    for (uint32_t i = 0; i < p->rule_count; i++) {
        const stg_rule *r = &p->rules[i];

        if (r->link == STG_LINK_ANY ||
            (r->link == STG_LINK_NAME && r->value == STG_FAULT_EXIT))
            return true;
    }
    return false;
}

bool stg_exit_rule_add(stg_policy *p)
{
    if (stg_exit_rule_stands(p))
        return true;
    if (p->rule_count == STG_RULES_MAX)
        return false;
    p->rules[p->rule_count++] = (stg_rule){.link = STG_LINK_NAME,
                                           .value = STG_FAULT_EXIT,
                                           .retries_max = STG_ALWAYS};
    return true;
}
