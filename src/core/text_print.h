/* text_print.h - the canonical text of a policy. Private. */
#ifndef STAGGER_CORE_TEXT_PRINT_H
#define STAGGER_CORE_TEXT_PRINT_H

#include <stagger/policy.h>

/* Writes the text, cut to size, and returns its whole length. */
size_t stg_policy_write(const stg_policy *p, char *text, size_t size);

#endif
