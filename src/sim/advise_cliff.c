/* Where the advised policy's recovery ends: how long an outage or a stall may be,
 * with the load that was asked and with a tenth more. Each step tries one length,
 * by as many runs as a finalist has; the span between what holds and what fails
 * is halved until it is a tenth. */
#include <string.h>

#include "sim/advise_rounds.h"

/* Thousandths of what was asked: where the search begins and ends. */
enum { BEGIN = 4000, LEAST = 500, MOST = 16000, KINDS = 2 };

/* The length to try next; 0: nothing is left to try. */
static uint32_t next_of(const stg_cliff *c)
{
    uint32_t middle;

    if (c->holds == 0 && c->fails == 0)
        return BEGIN;
    if (c->fails == 0)
        return c->holds < MOST ? MOST : 0;
    if (c->holds == 0)
        return c->fails > LEAST ? LEAST : 0;
    middle = (c->holds + c->fails) / 200 * 100;
    if (c->fails * 10 <= c->holds * 11 || middle <= c->holds)
        return 0;
    return middle;
}

static bool holds(const stg_trial *trials)
{
    for (size_t i = 0; i < KINDS; i++) {
        const stg_overload_summary *s = &trials[i].summary;

        if (s->recovered < s->runs || s->healthy < s->runs)
            return false;
    }
    return true;
}

/* A step of one load. *is_over: there was nothing left to try. */
static stg_status step(stg_advice *a, stg_cliff *c, bool *is_over,
                       stg_error *err)
{
    static const stg_trigger_kind kinds[KINDS] = {STG_TRIGGER_OUTAGE,
                                                  STG_TRIGGER_STALL};
    stg_trial trials[KINDS];
    stg_trials t = {.all = trials, .count = KINDS, .reps = a->reps};
    uint32_t next = next_of(c);
    stg_status status;

    *is_over = next == 0;
    if (next == 0)
        return STG_OK;
    memset(trials, 0, sizeof trials);
    for (size_t i = 0; i < KINDS; i++)
        stg_advice_make_trial(a, (stg_scenario){kinds[i], next, c->load},
                              &a->finalists[0], &trials[i]);
    status = stg_advice_run(a, &t, err);
    if (status == STG_OK && !t.is_partial)
        *(holds(trials) ? &c->holds : &c->fails) = next;
    a->is_partial |= t.is_partial;
    stg_trials_close(&t);
    return status;
}

stg_status stg_advice_find_cliffs(stg_advice *a, stg_error *err)
{
    static const uint32_t loads[STG_CLIFFS] = {1000, 1100};
    stg_status status = STG_OK;

    if (a->finalists[0].verdict.unwell > 0)
        return STG_OK; // it is not the trouble that it does not survive
    for (size_t i = 0; i < STG_CLIFFS; i++) {
        bool is_over = false;

        a->cliffs[i] = (stg_cliff){.load = loads[i]};
        while (status == STG_OK && !is_over && !a->is_partial)
            status = step(a, &a->cliffs[i], &is_over, err);
    }
    return status;
}
