/* wasm.h - the simulator as a page in a browser calls it: plain functions on
 * one handle, which WebAssembly exports by their names (web/CMakeLists.txt).
 *
 *     w = stg_wasm_new(memory)
 *     stg_wasm_begin(w, clients, repetitions, seed, "optimistic", "10ms")
 *     stg_wasm_add(w, "full", "exponential jitter=full")     for each policy
 *     stg_wasm_repeat(w, 0)                      as often as there is time for
 *     stg_wasm_sums(w, 0), stg_wasm_charts(w, 760)
 *
 * Texts are UTF-8 and terminated. Those that go in are borrowed; the page has
 * them in memory from stg_wasm_take(). Those that come out are the handle's,
 * until the next call that answers with one. An answer that is a list has lines
 * of a key, a blank and a value; "error " and words is an answer, too, and
 * where there is a column it is between them: "error 13 policy:1:13: ...".
 *
 * Nothing here knows of WebAssembly, so tests call it as the page does. A
 * handle belongs to one thread. */
#ifndef STAGGER_SIM_WASM_H
#define STAGGER_SIM_WASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

enum {
    STG_WASM_POLICIES_MAX = 8,
    STG_WASM_CLIENTS_MAX = 100000,
    STG_WASM_REPETITIONS_MAX = 1000,
    STG_WASM_STORMS_MAX = 5,
};

typedef struct stg_wasm stg_wasm;

/* NULL if there is no memory, which is kept. */
stg_wasm *stg_wasm_new(const stg_memory *memory);
void stg_wasm_free(stg_wasm *w);

/* Room for a text of the page's, or NULL; and given back. */
char *stg_wasm_take(stg_wasm *w, size_t size);
void stg_wasm_drop(stg_wasm *w, char *text);

/* -- what a text means: for fields and sliders */

/* The preset number i from 0: name, text, use. "" after the last. */
const char *stg_wasm_preset(stg_wasm *w, uint32_t i);

/* A policy's parts: growth, jitter, percent, factor (thousandths), base and cap
 * (ns; cap 0: none), attempts (0: no limit), windows (of the first waits, ns,
 * with blanks between them), text (canonical). */
const char *stg_wasm_policy(stg_wasm *w, const char *text);

/* A resource's canonical text, or a distribution's: text. */
const char *stg_wasm_resource(stg_wasm *w, const char *text);
const char *stg_wasm_distribution(stg_wasm *w, const char *text);

/* What a policy will do, as `stagger plan` says it. Lines:
 *
 *     wait RETRY WINDOW LEAST MEAN MOST LEAST MEAN MOST PAST
 *     KEY NUMBER              attempts, requests, time, deadline, arrivals, more
 *     retried NAMES, given-up NAMES            _ for a blank in a name
 *     warning CODE \t TEXT \t FIX
 *
 * A wait's first three are its own, the others of all waits so far, times in ns;
 * PAST is 1 for one that the deadline does not allow. Arrivals are thousandths of
 * clients in 100 ms of retry 1; more is 1 where there are more waits. 0 of the
 * others is no limit. Or an error, as above. */
const char *stg_wasm_plan(stg_wasm *w, const char *text, uint32_t clients);

/* -- a run of contention */

/* Forgets the last run and its policies, and says what the next is about.
 * Answers "", or an error. */
const char *stg_wasm_begin(stg_wasm *w, uint32_t clients, uint32_t repetitions,
                           uint64_t seed, const char *resource,
                           const char *network);

/* One more policy, under a name to show. Answers "", or an error. */
const char *stg_wasm_add(stg_wasm *w, const char *name, const char *text);

/* The next repetition of policy number i from 0. Returns false if there was no
 * memory for it, or no repetition is left. */
bool stg_wasm_repeat(stg_wasm *w, uint32_t i);

/* What the repetitions of policy i have come to, in the order of
 * stg_wasm_sum. The handle's, until the next call; NULL if there is no such
 * policy, or no memory. */
const double *stg_wasm_sums(stg_wasm *w, uint32_t i);

/* Each mean is followed by its standard error. Times are milliseconds. */
typedef enum stg_wasm_sum {
    STG_WASM_REPETITIONS,
    STG_WASM_CALLS,
    STG_WASM_CALLS_SE,
    STG_WASM_WASTED,
    STG_WASM_WASTED_SE,
    STG_WASM_COMPLETION,
    STG_WASM_COMPLETION_SE,
    STG_WASM_PEAK, /* calls in any 100 ms */
    STG_WASM_PEAK_SE,
    STG_WASM_SUCCESSES,
    STG_WASM_SUCCESSES_SE,
    STG_WASM_GIVEN_UP,
    STG_WASM_GIVEN_UP_SE,
    STG_WASM_P50, /* of when clients succeeded */
    STG_WASM_P95,
    STG_WASM_MOST,
    STG_WASM_SUMS,
} stg_wasm_sum;

/* -- a run of overloads */

/* Forgets the last run, and says how many runs the next storms have. Answers "",
 * or an error. */
const char *stg_wasm_storm_begin(stg_wasm *w, uint32_t runs, uint64_t seed);

/* Adds a storm. `settings` has a line "name=value" for each one that differs
 * from the command's default. Answers "", or an error. */
const char *stg_wasm_storm_add(stg_wasm *w, const char *name,
                               const char *policy, const char *settings);

/* The next run of storm number i from 0. Returns false if there was no memory
 * for it, or no run is left. */
bool stg_wasm_storm_run(stg_wasm *w, uint32_t i);

/* The first run of storm i, bin by bin: so many rows of STG_WASM_BIN_FIELDS
 * numbers, in the order of stg_wasm_bin_field. NULL: there is none yet. */
uint32_t stg_wasm_storm_bins(const stg_wasm *w, uint32_t i);
const double *stg_wasm_storm_series(const stg_wasm *w, uint32_t i);

typedef enum stg_wasm_bin_field {
    STG_WASM_BIN_BEGUN, /* operations */
    STG_WASM_BIN_SENT,  /* requests */
    STG_WASM_BIN_RETRIED,
    STG_WASM_BIN_SUCCEEDED, /* operations */
    STG_WASM_BIN_GIVEN_UP,
    STG_WASM_BIN_REFUSED, /* requests, for want of a place */
    STG_WASM_BIN_TIMEOUTS,
    STG_WASM_BIN_FOR_NOBODY, /* served when their clients had gone */
    STG_WASM_BIN_QUEUE,      /* mean length */
    STG_WASM_BIN_BUSY,       /* mean of workers at work */
    STG_WASM_BIN_FIELDS,
} stg_wasm_bin_field;

/* What the runs of storm i have come to: runs, those that recovered, those that
 * were well before, whether one was cut, the width of a bin (ms); and means, -1
 * where there is none: recovery (ms), goodput before, in and after the trouble,
 * requests for each operation, share of operations that succeed, most requests a
 * second. NULL before the first run. */
enum { STG_WASM_STORM_SUMS = 12 };
const double *stg_wasm_storm_sums(stg_wasm *w, uint32_t i);

/* -- charts, of either */

/* What there is so far, in charts, 280 to 2000 pixels wide. Each is a line of
 * title, a line that says how to read it, the <svg> element, and a form feed.
 * "" for no chart, or no memory. is_alone: the elements are files of their own,
 * with title, note and style. */
const char *stg_wasm_charts(stg_wasm *w, int width, bool is_alone);

/* The same numbers as the command writes to a file: CSV. */
const char *stg_wasm_csv(stg_wasm *w);

/* What a page's style needs for them. */
const char *stg_wasm_style(stg_wasm *w);

/* The path of the shape that goes with a colour, about (8, 8). */
const char *stg_wasm_marker(stg_wasm *w, uint32_t colour);

#endif
