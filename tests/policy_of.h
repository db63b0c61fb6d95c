/* policy_of.h - the policy of a text that is right; of another one, the failure
 * says what is wrong. */
#ifndef TESTS_POLICY_OF_H
#define TESTS_POLICY_OF_H

#include <stagger/text.h>

#include "tests/harness.h"

static inline stg_policy policy_of(const char *text)
{
    stg_policy policy;
    stg_error err;

    if (stg_policy_parse(&policy, text, &err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", err.text);
    return policy;
}

#endif
