/* overload_words.h - what overloads came to, in words. Pure. */
#ifndef STAGGER_SIM_OVERLOAD_WORDS_H
#define STAGGER_SIM_OVERLOAD_WORDS_H

#include "chart/text_buffer.h"
#include "sim/overload_summary.h"

/* One of several that stand side by side. */
typedef struct stg_overload_case {
    const char *name;                    /* borrowed, as is: */
    const stg_overload_summary *summary; /* of one run at least */
} stg_overload_case;

/* "at once", "after 3.8 s", "in 7 of 10, after 12 s", "not within 60 s", "was
 * not well before", "was cut", "" without a trigger. */
void stg_overload_say_recovery(const stg_overload_summary *s,
                               stg_text_buffer *buffer);

/* The finding: which recover and which do not; of those that were cut, just
 * that; nothing of one run. */
void stg_overload_say_finding(const stg_overload_case *cases, size_t count,
                              stg_text_buffer *buffer);

/* What was simulated, as far as it is the same in all: service, load, trigger.
 * */
void stg_overload_say_setting(const stg_overload_case *cases, size_t count,
                              stg_text_buffer *buffer);

/* The cases that have the least and the most of a figure. */
typedef struct stg_overload_ends {
    const stg_overload_case *least, *most;
    bool is_single; /* there is one case */
    bool is_apart;  /* by more than chance makes: two standard errors */
} stg_overload_ends;

/* False: no case has the figure, and least and most are NULL. */
bool stg_overload_rank(const stg_overload_case *cases, size_t count,
                       stg_figure figure, stg_overload_ends *ends);

/* " with A"; where chance alone tells them apart " in each case"; nothing of a
 * single one. */
void stg_overload_put_end(const stg_overload_ends *ends,
                          const stg_overload_case *end,
                          stg_text_buffer *buffer);

/* "12.5 %": the operations that succeed. */
void stg_overload_put_success(const stg_overload_case *c,
                              stg_text_buffer *buffer);

/* Says that there was no more than one run of a case, from which nothing
 * follows. False: there were more, and nothing is said. */
bool stg_overload_say_once(const stg_overload_case *cases, size_t count,
                           stg_text_buffer *buffer);

#endif
