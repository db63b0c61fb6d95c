/* text_print.h - the canonical text of a policy. Private. */
#ifndef STAGGER_CORE_TEXT_PRINT_H
#define STAGGER_CORE_TEXT_PRINT_H

#include <stagger/policy.h>

/* Writes the text, cut to size, and returns its whole length. */
size_t stg_policy_write(const stg_policy *p, char *text, size_t size);

/* "exponential"; a list's is "list=", which goes on. NULL behind the last. */
const char *stg_growth_name(unsigned growth);

/* Whether a text of this length is the name of a growth, list= but begun. */
bool stg_growth_is_word(const char *text, size_t length);

/* What stands behind "retry-after=". */
const char *stg_retry_after_name(stg_retry_after how);

/* What stands behind "jitter=". */
struct stg_writer;
void stg_jitter_write(struct stg_writer *w, const stg_backoff *b);

#endif
