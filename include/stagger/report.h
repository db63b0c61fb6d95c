/* report.h - how an operation went, in numbers and in a sentence. */
#ifndef STAGGER_REPORT_H
#define STAGGER_REPORT_H

#include <stagger/event.h>

STG_DECLS_BEGIN

typedef struct stg_report {
    stg_next next;     /* STG_DONE, STG_GIVE_UP; else it has not ended */
    stg_why why;       /* of STG_GIVE_UP */
    uint32_t attempts; /* used, first try included; one that an open breaker
                          refused is used, too */
    uint32_t hedges;   /* made beside them (hedge.h) */
    stg_ns waited;     /* sum of the waits between them */
    stg_ns took;       /* from the start to the end; 0 for a success at once of
                          an attempt that was made at the start, for which no
                          clock is read twice. With no deadline,
                          attempt timeout, peer, hook or env it starts at the
                          end of the first attempt: no clock is read before */
    stg_outcome last;  /* the last failure; STG_FAULT_NONE if there was none */
    const char *flaw;  /* of STG_WHY_INVALID: what is wrong; else NULL */
    bool fell_back;    /* of STG_GIVE_UP: the fallback has answered */
} stg_report;

#define STG_REPORT_TEXT_MAX 192

/* "gave up after 5 attempts in 3.1 s: refused (attempts)",
 * "done after 3 attempts in 1.2 s", "done after 1 attempt and 1 hedge in
 * 120 ms"; with "; the fallback answered" behind it,
 * where it did. Returns text, always terminated. */
STG_API const char *stg_report_text(const stg_report *r,
                                    char text[STG_REPORT_TEXT_MAX]);

STG_DECLS_END

#endif
