/* verdicts.h - what many patterns say of each message. A body is parsed once, and
 * all patterns are matched then, while it is there; what remains of it is a bit for
 * each pattern.
 *
 * Lanes go through the window one by one, each many messages far, so that a parsed
 * body would have to be kept for as many messages as there are in the window. The
 * bits of 1,000 patterns are 125 bytes a message; of the newest some thousand
 * messages they are kept (STG_VERDICTS_MEMORY). What a lane asks of an older message,
 * as one that catches up does, is parsed for this pattern alone.
 *
 * Equal patterns are one. Not of several threads. */
#ifndef STAGGER_FILTER_VERDICTS_H
#define STAGGER_FILTER_VERDICTS_H

#include "filter/pattern.h"

enum { STG_VERDICTS_MEMORY = 4 << 20 }; /* bytes of all bits */

typedef struct stg_verdicts stg_verdicts;

/* NULL: no memory. Costs little before the first pattern is added. */
stg_verdicts *stg_verdicts_new(void);
void stg_verdicts_free(stg_verdicts *v); /* NULL is none */

/* The number of the pattern from now on, from 1; 0: no memory. It has a user more,
 * and is kept. A new one makes what is known of messages forgotten. */
uint32_t stg_verdicts_add(stg_verdicts *v, stg_pattern *p);

/* It has a user less; 0 is none. */
void stg_verdicts_remove(stg_verdicts *v, uint32_t number);

/* A message by its place, which is another for each. */
typedef struct stg_asked {
    uint32_t partition;
    uint64_t position;
    stg_span body;
} stg_asked;

/* Whether it matches the pattern of that number. */
bool stg_verdicts_ask(stg_verdicts *v, uint32_t number, const stg_asked *m);

/* Messages whose bodies were looked at, and those of them that are not JSON: each
 * once. */
typedef struct stg_verdicts_view {
    uint64_t json, not_json;
} stg_verdicts_view;

stg_verdicts_view stg_verdicts_look(const stg_verdicts *v); /* NULL: nothing */

#endif
