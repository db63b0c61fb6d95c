/* text_print.h - the canonical text of a policy. Private. */
#ifndef STAGGER_CORE_TEXT_PRINT_H
#define STAGGER_CORE_TEXT_PRINT_H

#include <stagger/policy.h>

/* Writes the text, cut to size, and returns its whole length. */
size_t stg_policy_write(const stg_policy *p, char *text, size_t size);

/* What stands behind "retry-after=". */
const char *stg_retry_after_name(stg_retry_after how);

/* What stands behind "jitter=". */
struct stg_writer;
void stg_jitter_write(struct stg_writer *w, const stg_backoff *b);

#endif
