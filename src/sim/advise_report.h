/* advise_report.h - advice in words: each sentence is a claim that the runs
 * support. Pure. */
#ifndef STAGGER_SIM_ADVISE_REPORT_H
#define STAGGER_SIM_ADVISE_REPORT_H

#include "sim/advise.h"

/* A finalist. */
typedef struct stg_advice_case {
    const char *name; /* borrowed */
    bool retries;
    bool is_plain;                     /* there for comparison */
    const stg_advice_verdict *verdict; /* of all scenarios */
    stg_estimate gain; /* how much less the first case lost than this one */
} stg_advice_case;

/* Where recovery ends, at a load: in thousandths of the outage that was asked, the
 * longest that was tried where every run recovers, and the shortest where one does
 * not. */
typedef struct stg_cliff {
    uint32_t load;  /* thousandths of what was asked; 0: not looked for */
    uint32_t holds; /* 0: none */
    uint32_t fails; /* 0: none */
} stg_cliff;

enum { STG_CLIFFS = 2 };

typedef struct stg_advice_report {
    const stg_question *question;
    const stg_advice_case *cases; /* the advised one first, then by rank */
    size_t count;
    size_t tried; /* candidates, at least */
    stg_cliff cliffs[STG_CLIFFS];
} stg_advice_report;

/* Lines, of the recovery, the loss, the cost, and the other candidates. */
void stg_advice_say(const stg_advice_report *r, stg_text_buffer *p);

/* The question, in a line. */
void stg_advice_say_question(const stg_question *q, stg_text_buffer *p);

/* "12 s", "at once"; "not always" below 0. Returns text. */
enum { STG_ADVICE_AFTER_MAX = 40 };
const char *stg_advice_say_after(double ms, char text[STG_ADVICE_AFTER_MAX]);

#endif
