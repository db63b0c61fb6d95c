/* range.h - values in a row, as --sweep, --edge and --map take them: 100..900/100,
 * 21s..60s, 10%..90%/10%. Private to cli/sim. */
#ifndef STAGGER_CLI_SIM_RANGE_H
#define STAGGER_CLI_SIM_RANGE_H

#include <stdbool.h>
#include <stdint.h>

enum { STG_RANGE_UNIT_MAX = 8, STG_RANGE_TEXT_MAX = 40 };

typedef struct stg_range {
    bool is_time;                  /* in ns; else in thousandths */
    char unit[STG_RANGE_UNIT_MAX]; /* behind a number: "%", "/s", or nothing */
    uint64_t from, to, step;       /* from < to; step 0: none was given */
} stg_range;

/* FROM..TO or FROM..TO/STEP. False: it is none. */
bool stg_range_read(stg_range *r, const char *text);

/* A value of it, as it is given to an option. Returns text. */
const char *stg_range_print(const stg_range *r, uint64_t value,
                            char text[STG_RANGE_TEXT_MAX]);

/* A step of 1, 2 or 5 and zeros: the largest that is no more than the range's
 * length divided by `parts`, but of whole numbers a whole one; 1 at least. */
uint64_t stg_range_divide(const stg_range *r, uint64_t parts);

#endif
