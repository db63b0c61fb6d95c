/* What is counted of a target: attempts, decisions, ends, by cause.
 *
 * Causes need bounded memory, whatever codes a target answers: a count for each
 * fault, and STG_STATUSES places for codes of HTTP, taken by the first that
 * come. A code that finds no place is counted under its fault. */
#include "metrics/snapshot.h"

/* -- causes ---------------------------------------------------------------- */

static bool is_status(const stg_outcome *o)
{
    return o->code_kind == STG_CODE_STATUS && o->fault != STG_FAULT_NONE;
}

/* False: all places are taken by others. */
static bool add_status(stg_causes *c, stg_fault fault, uint32_t status,
                       uint64_t count)
{
    for (int i = 0; i < STG_STATUSES; i++) {
        if (c->statuses[i].status == 0) {
            c->statuses[i].fault = fault;
            c->statuses[i].status = status;
        }
        if (c->statuses[i].status == status && c->statuses[i].fault == fault) {
            c->statuses[i].count += count;
            return true;
        }
    }
    return false;
}

void stg_causes_add(stg_causes *c, const stg_outcome *o, uint64_t count)
{
    stg_fault fault =
        (unsigned)o->fault < STG_FAULT_COUNT ? o->fault : STG_FAULT_ERROR;

    if (!is_status(o) || !add_status(c, fault, o->code, count))
        c->faults[fault] += count;
}

/* May leave out codes, never counts: they go to the fault. */
void stg_causes_merge(stg_causes *c, const stg_causes *other)
{
    for (int i = 0; i < STG_FAULT_COUNT; i++)
        c->faults[i] += other->faults[i];
    for (int i = 0; i < STG_STATUSES && other->statuses[i].status != 0; i++)
        if (!add_status(c, other->statuses[i].fault, other->statuses[i].status,
                        other->statuses[i].count))
            c->faults[other->statuses[i].fault] += other->statuses[i].count;
}

/* Faults by their numbers; statuses in the order in which they first came. */
void stg_causes_each(const stg_causes *c, stg_cause_fn *each, void *ctx)
{
    for (unsigned i = 0; i < STG_FAULT_COUNT; i++)
        if (c->faults[i] > 0)
            each(ctx, stg_fault_about((stg_fault)i)->cause,
                 stg_fault_about((stg_fault)i)->category, c->faults[i]);
    for (int i = 0; i < STG_STATUSES && c->statuses[i].status != 0; i++) {
        stg_outcome o = {.fault = c->statuses[i].fault,
                         .code_kind = STG_CODE_STATUS,
                         .code = c->statuses[i].status};
        char cause[STG_CAUSE_MAX];

        each(ctx, stg_outcome_cause(&o, cause),
             stg_fault_about(o.fault)->category, c->statuses[i].count);
    }
}

uint64_t stg_causes_sum(const stg_causes *c)
{
    uint64_t sum = 0;

    for (int i = 0; i < STG_FAULT_COUNT; i++)
        sum += c->faults[i];
    for (int i = 0; i < STG_STATUSES; i++)
        sum += c->statuses[i].count;
    return sum;
}

/* -- all of a target ------------------------------------------------------- */

/* Reasons index an array. */
static stg_why why_of(stg_why why)
{
    return (unsigned)why < STG_WHY_COUNT ? why : STG_WHY_INVALID;
}

void stg_counters_attempt(stg_counters *c, const stg_outcome *o, stg_ns took)
{
    stg_causes_add(&c->ended, o, 1);
    stg_histogram_add(&c->took, took);
}

/* delivered, put back and parked count when they are decided; dead when it is
 * durable, by stg_counters_dead(). */
void stg_counters_decision(stg_counters *c, const stg_decision *d,
                           bool is_put_back)
{
    if (d->next == STG_DONE)
        c->delivered++;
    else if (is_put_back)
        c->put_back++;
    else if (d->next == STG_WAIT)
        c->parked[why_of(d->why)]++;
}

void stg_counters_dead(stg_counters *c, const stg_failure *failure)
{
    static const stg_outcome none = {.fault = STG_FAULT_NONE};

    stg_causes_add(&c->letters, failure != NULL ? &failure->outcome : &none, 1);
    c->dead[failure != NULL ? why_of(failure->why) : STG_WHY_INVALID]++;
}

/* A bulk row may grow: change->added is what this change adds to it. */
void stg_counters_shed(stg_counters *c, const stg_change *change)
{
    c->shed[stg_shed_how_of(change)] += change->added;
    if (change->failure != NULL)
        stg_causes_add(&c->letters, &change->failure->outcome, change->added);
    else
        c->shed_causes[stg_shed_cause_of(change)] += change->added;
}

/* A reload may have given the target another endpoint, which counts from 0. */
void stg_counters_note(stg_counters *c, uint64_t budget_refused,
                       uint64_t connects)
{
    bool is_new = connects < c->connects_seen;

    c->budget_refused = budget_refused;
    c->connects += connects - (is_new ? 0 : c->connects_seen);
    c->connects_seen = connects;
}

void stg_counters_merge(stg_counters *c, const stg_counters *other)
{
    c->started += other->started;
    c->retries += other->retries;
    stg_causes_merge(&c->ended, &other->ended);
    stg_histogram_merge(&c->took, &other->took);
    stg_histogram_merge(&c->latency, &other->latency);
    c->delivered += other->delivered;
    c->put_back += other->put_back;
    for (int i = 0; i < STG_SHED_HOWS; i++)
        c->shed[i] += other->shed[i];
    for (int i = 0; i < STG_SHED_CAUSES; i++)
        c->shed_causes[i] += other->shed_causes[i];
    c->replayed += other->replayed;
    c->openings += other->openings;
    c->budget_refused += other->budget_refused;
    c->connects += other->connects;
    for (int i = 0; i < STG_WHY_COUNT; i++) {
        c->parked[i] += other->parked[i];
        c->dead[i] += other->dead[i];
    }
    stg_causes_merge(&c->letters, &other->letters);
}
