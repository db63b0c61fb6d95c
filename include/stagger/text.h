/* text.h - a policy as a line of text, the same in code, settings and on the
 * command line:
 *
 *     exponential base=200ms cap=30s jitter=full attempts=5 deadline=2m
 *
 * The grammar is in docs/retry.md. Printing and parsing are inverse: the text
 * of a valid policy parses to an equal policy. Pure; no allocation. */
#ifndef STAGGER_TEXT_H
#define STAGGER_TEXT_H

#include <stddef.h>

#include <stagger/policy.h>

STG_DECLS_BEGIN

#define STG_POLICY_TEXT_MAX 1024 /* the terminator included */

/* Reads text into *policy. Returns STG_OK, or STG_INVALID with the place, what
 * was found and what was expected in err ("policy:1:24: ..."), and leaves
 * *policy as it was. NULL is invalid. */
STG_API stg_status stg_policy_parse(stg_policy *policy, const char *text,
                                    stg_error *err);

/* Writes the canonical text of p, which has passed stg_policy_check(); presets
 * are written out. Returns STG_OK, or STG_INVALID for one that has not. */
STG_API stg_status stg_policy_print(const stg_policy *p,
                                    char text[STG_POLICY_TEXT_MAX]);

/* A preset is a name for a text. */
typedef struct stg_preset {
    const char *name;
    const char *text;
    const char *use; /* a sentence: what it is for */
} stg_preset;

/* The preset number i from 0, or NULL after the last. Static. */
STG_API const stg_preset *stg_preset_at(size_t i);

STG_DECLS_END

#endif
