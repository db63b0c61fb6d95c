/* sweep.h - ranges of values, and --sweep KEY=VALUES, as overload and contention
 * take them. Private to cli/sim. */
#ifndef STAGGER_CLI_SIM_SWEEP_H
#define STAGGER_CLI_SIM_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

#include <stagger/policy.h>

/* -- ranges -------------------------------------------------------------- */

/* Values in a row, as --sweep, --edge and --map take them: 100..900/100,
 * 21s..60s, 10%..90%/10%. */

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

/* -- sweeps -------------------------------------------------------------- */

enum {
    STG_SWEEPS_MAX = 4,
    STG_SWEEP_VALUES_MAX = 32,
    STG_SWEEP_TEXT_MAX = 512
};

typedef struct stg_sweep {
    char text[STG_SWEEP_TEXT_MAX]; /* what was given, cut into pieces */
    char made[STG_SWEEP_VALUES_MAX][STG_RANGE_TEXT_MAX]; /* of ranges */
    const char *key;
    const char *values[STG_SWEEP_VALUES_MAX];
    size_t count;
} stg_sweep;

/* All of a command: they are combined, and the last one changes fastest. */
typedef struct stg_sweeps {
    size_t count;
    stg_sweep at[STG_SWEEPS_MAX];
} stg_sweeps;

/* Adds KEY=VALUE,VALUE,... (or with ; between values that have a comma), where a
 * value may be a range with a step: 100..900/100.
 * Returns 0, or complains in the name of who and returns an exit code. */
int stg_sweeps_add(stg_sweeps *s, const char *who, const char *text);

/* How many combinations there are: 1 at least. */
size_t stg_sweeps_combinations(const stg_sweeps *s);

/* The value of sweep number k in combination number i. */
const char *stg_sweeps_value(const stg_sweeps *s, size_t k, size_t i);

/* Adds "KEY=VALUE" of each sweep to a name of `size` bytes, for combination number
 * i. */
void stg_sweeps_name(const stg_sweeps *s, size_t i, char *name, size_t size);

/* -- settings that are swept --------------------------------------------- */

/* The policy's text with one setting changed. Returns STG_OK, or STG_INVALID
 * with words in err. */
stg_status stg_sweep_set_policy(stg_policy *policy, const char *key,
                                const char *value, stg_error *err);

/* Whether a word of a text is "key=..."; of a policy's also the kind of its
 * backoff, which `backoff` stands for. */
bool stg_sweep_is_word(const char *word, const char *key);

/* Whether a policy has such a setting, or it is `backoff`. */
bool stg_sweep_is_of_policy(const char *key);

/* Complains that neither model nor policy has the setting, and of what may be
 * meant; model_at: the model's, ended by NULL. Returns an exit code. */
int stg_sweep_refuse_key(const char *key, const char *who, const char *option,
                         const char *(*model_at)(size_t));

#endif
