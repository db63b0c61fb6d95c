/* causes.h - how often which cause: a short list, however many causes come.
 *
 * Pure, plain data: zeroed it is empty. The list keeps the first STG_ALERT_CAUSES_MAX
 * different causes and counts the others together. */
#ifndef STAGGER_ALERTS_CAUSES_H
#define STAGGER_ALERTS_CAUSES_H

#include <stagger/outcome.h>

#include "flow/group.h"

enum { STG_ALERT_CAUSES_MAX = 6 };

/* What makes two failures one cause. */
typedef struct stg_alert_cause {
    uint16_t fault;     /* stg_fault */
    uint16_t code_kind; /* stg_code_kind */
    uint32_t code;
} stg_alert_cause;

typedef struct stg_alert_causes {
    struct {
        stg_alert_cause cause;
        uint64_t count; /* 0: there are no more */
    } list[STG_ALERT_CAUSES_MAX];
    uint64_t others;
} stg_alert_causes;

stg_alert_cause stg_alert_cause_of(const stg_outcome *o);

/* Of what was never tried, in a bulk row. */
stg_alert_cause stg_alert_cause_of_shed(const stg_change *c);

/* "HTTP_503". Returns text. */
const char *stg_alert_cause_text(stg_alert_cause c, char text[STG_CAUSE_MAX]);

void stg_alert_causes_add(stg_alert_causes *c, stg_alert_cause cause,
                          uint64_t count);

/* So many less, of the most frequent first. */
void stg_alert_causes_take(stg_alert_causes *c, uint64_t count);

/* All of b out of a; what a does not have, as stg_alert_causes_take(). */
void stg_alert_causes_remove(stg_alert_causes *a, const stg_alert_causes *b);

/* All of b into a. */
void stg_alert_causes_merge(stg_alert_causes *a, const stg_alert_causes *b);

/* The most frequent first. */
void stg_alert_causes_sort(stg_alert_causes *c);

#endif
