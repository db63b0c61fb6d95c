/* overload_words.h - what overloads came to, in words. Pure. */
#ifndef STAGGER_SIM_OVERLOAD_WORDS_H
#define STAGGER_SIM_OVERLOAD_WORDS_H

#include "sim/overload_summary.h"
#include "sim/paper.h"

/* One of several that stand side by side. */
typedef struct stg_overload_case {
    const char *name;                    /* borrowed, as is: */
    const stg_overload_summary *summary; /* of one run at least */
} stg_overload_case;

/* "at once", "after 3.8 s", "in 7 of 10, after 12 s", "never", "was not well
 * before", "" without a trigger. */
void stg_overload_say_recovery(const stg_overload_summary *s, stg_paper *paper);

/* The finding: which recover and which do not. */
void stg_overload_say_finding(const stg_overload_case *cases, size_t count,
                              stg_paper *paper);

/* What was simulated, as far as it is the same in all: service, load, trigger. */
void stg_overload_say_setting(const stg_overload_case *cases, size_t count,
                              stg_paper *paper);

#endif
