/* A run as a page drives it: a repetition at a time, of one policy after the
 * other, so that it can draw what there is so far.
 *
 * A page must have all policies repeat once before any of them repeats twice.
 * Only then is it known how wide slices of time have to be (settle_slices());
 * in another order they stay at 10 ms. Joined slices have right errors only
 * while each series has a single run. */
#include "sim/wasm.h"

#include <string.h>

#include "sim/statistics.h"
#include "sim/wasm_internal.h"

enum {
    SLICE_MS = 10,
    SLICES = 60000, /* ten minutes; calls after them are not in the chart */
    SHOWN = 600,    /* slices of a chart, or half as many more */
};

stg_wasm *stg_wasm_new(const stg_memory *memory)
{
    stg_wasm *w = memory->allocate(memory->ctx, sizeof *w);

    if (w == NULL)
        return NULL;
    memset(w, 0, sizeof *w);
    w->memory = *memory;
    w->buffer = stg_text_buffer_on(&w->memory);
    w->options = stg_contention_options_default();
    w->options.until_at = 365 * STG_DAY; // as the command has them
    w->options.calls_max = 1000000000;
    return w;
}

static void release(stg_wasm *w, void *bytes)
{
    if (bytes != NULL)
        w->memory.release(w->memory.ctx, bytes);
}

static void close_side(stg_wasm *w, stg_wasm_side *side)
{
    if (side->contention != NULL)
        stg_contention_free(side->contention);
    stg_contention_totals_close(&side->totals);
    release(w, side->runs);
}

void stg_wasm_forget(stg_wasm *w)
{
    stg_wasm_storms_forget(w);
    while (w->count > 0)
        close_side(w, &w->sides[--w->count]);
}

void stg_wasm_free(stg_wasm *w)
{
    stg_memory memory = w->memory;

    stg_wasm_forget(w);
    stg_text_buffer_free(&w->buffer);
    memory.release(memory.ctx, w);
}

char *stg_wasm_take(stg_wasm *w, size_t size)
{
    return w->memory.allocate(w->memory.ctx, size);
}

void stg_wasm_drop(stg_wasm *w, char *text)
{
    release(w, text);
}

/* -- what it is about */

static stg_status read_options(stg_wasm *w, uint32_t clients,
                               uint32_t repetitions, const char *resource,
                               const char *network, stg_error *err)
{
    stg_status status;

    if (clients < 1 || clients > STG_WASM_CLIENTS_MAX)
        return stg_refuse_number(err, "clients", clients, "1 to 100000");
    if (repetitions < 1 || repetitions > STG_WASM_REPETITIONS_MAX)
        return stg_refuse_number(err, "reps", repetitions, "1 to 1000");
    status = stg_resource_parse(&w->options.resource, resource, err);
    if (status == STG_OK)
        status = stg_distribution_parse(&w->options.network, network, err);
    return status;
}

const char *stg_wasm_begin(stg_wasm *w, uint32_t clients, uint32_t repetitions,
                           uint64_t seed, const char *resource,
                           const char *network)
{
    stg_error err = {0};

    stg_wasm_forget(w);
    w->repetitions = 0;
    if (read_options(w, clients, repetitions, resource, network, &err) !=
        STG_OK)
        return stg_wasm_refuse(w, &err);
    w->options.clients = clients;
    w->options.seed = seed;
    w->repetitions = repetitions;
    (void)stg_wasm_answer(w);
    return w->answer;
}

static stg_status make_side(stg_wasm *w, stg_wasm_side *side, const char *name,
                            const char *text, stg_error *err)
{
    stg_contention_options options = w->options;
    stg_writer label = stg_writer_on(side->name, sizeof side->name);
    stg_status status = stg_policy_parse(&side->policy, text, err);

    if (status != STG_OK)
        return status;
    stg_write_text(&label, name);
    options.policy = &side->policy;
    side->runs =
        w->memory.allocate(w->memory.ctx, w->repetitions * sizeof *side->runs);
    if (side->runs == NULL) {
        (void)stg_refuse(err, "there is no memory for so many repetitions");
        return STG_IO;
    }
    return stg_contention_new(&side->contention, &w->memory, &options, err);
}

/* The place is counted only when it is whole; a refused policy leaves it
 * free. */
const char *stg_wasm_add(stg_wasm *w, const char *name, const char *text)
{
    stg_wasm_side *side = &w->sides[w->count];
    stg_error err = {0};

    if (w->repetitions == 0 || w->count == STG_WASM_POLICIES_MAX) {
        (void)stg_refuse_number(&err, "policies", w->count + 1,
                                "1 to 8, after a beginning");
        return stg_wasm_refuse(w, &err);
    }
    memset(side, 0, sizeof *side);
    stg_contention_totals_init(&side->totals, SLICE_MS * STG_MS, SLICES,
                               &w->memory);
    if (make_side(w, side, name, text, &err) != STG_OK) {
        close_side(w, side);
        return stg_wasm_refuse(w, &err);
    }
    w->count++;
    (void)stg_wasm_answer(w);
    return w->answer;
}

/* How many slices make one, so that a chart has room for them: 1, 2, 5, 10,
 * 20 ... */
static size_t find_join(size_t slices)
{
    static const size_t steps[] = {1, 2, 5};

    for (size_t decade = 1;; decade *= 10)
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
            if (slices <= SHOWN * steps[i] * decade)
                return steps[i] * decade;
}

/* The middle one of the times that the policies take, in slices. */
static size_t find_middle(const stg_wasm *w)
{
    size_t used[STG_WASM_POLICIES_MAX] = {0};

    for (uint32_t i = 0; i < w->count; i++) {
        uint32_t at = i;

        for (; at > 0 && used[at - 1] > w->sides[i].totals.calls.used; at--)
            used[at] = used[at - 1];
        used[at] = w->sides[i].totals.calls.used;
    }
    return used[w->count / 2];
}

/* When all policies have had one repetition it is known how long a run is, and
 * all get slices of one width. */
static void settle_slices(stg_wasm *w)
{
    size_t join;

    for (uint32_t i = 0; i < w->count; i++)
        if (w->sides[i].count != 1)
            return;
    join = find_join(find_middle(w));
    for (uint32_t i = 0; i < w->count; i++)
        stg_sim_series_join(&w->sides[i].totals.calls, join);
}

bool stg_wasm_repeat(stg_wasm *w, uint32_t i)
{
    stg_wasm_side *side = &w->sides[i];

    if (i >= w->count || side->count == w->repetitions)
        return false;
    if (!stg_contention_repeat(side->contention, side->count,
                               &side->runs[side->count], &side->totals))
        return false;
    side->count++;
    settle_slices(w);
    return true;
}
