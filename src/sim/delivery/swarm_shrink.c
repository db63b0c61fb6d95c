#include <string.h>

#include "sim/delivery/swarm.h"

/* Makes a script that fails small, by trial: first without half of its steps, a
 * quarter, and so on down to one (delta debugging, Zeller and Hildebrandt, 2002);
 * then with smaller numbers. The world's own line stays. */

typedef struct shrinking {
    stg_script *best, *tried;
    const stg_memory *memory;
    stg_swarm_run *run;
    const char *invariant;
    uint32_t runs_left;
} shrinking;

/* Whether `tried` fails as well; then it is the best so far. */
static bool fails(shrinking *s)
{
    if (s->runs_left == 0)
        return false;
    s->runs_left--;
    if (!stg_swarm_play(s->tried, s->memory, s->run) || !s->run->has_failed ||
        strcmp(s->run->failure.invariant, s->invariant) != 0)
        return false;
    *s->best = *s->tried;
    return true;
}

static void take_out(const stg_script *from, size_t at, size_t count,
                     stg_script *to)
{
    memcpy(to->steps, from->steps, at * sizeof *to->steps);
    memcpy(to->steps + at, from->steps + at + count,
           (from->count - at - count) * sizeof *to->steps);
    to->count = from->count - count;
}

/* What comes behind the failure was not reached. */
static void cut_end(shrinking *s)
{
    if (s->run->step + 1 < s->best->count)
        s->best->count = s->run->step + 1;
}

/* From the end: later steps need the earlier ones, and not the reverse. */
static bool drop_steps(shrinking *s)
{
    bool is_smaller = false;

    for (size_t size = s->best->count / 2; size > 0; size /= 2)
        for (size_t at, end = s->best->count; end > 1; end = at) {
            at = end > size + 1 ? end - size : 1;
            take_out(s->best, at, end - at, s->tried);
            is_smaller |= fails(s);
        }
    return is_smaller;
}

static bool try_number(shrinking *s, size_t i, size_t number, uint64_t value)
{
    *s->tried = *s->best;
    s->tried->steps[i].at[number] = value;
    return fails(s);
}

static bool lower_numbers(shrinking *s)
{
    bool is_smaller = false;

    for (size_t i = 0; i < s->best->count; i++)
        for (size_t n = 0; n < STG_STEP_NUMBERS; n++) {
            uint64_t *value = &s->best->steps[i].at[n];

            if (*value == 0 || (i == 0 && n == STG_WORLD_SEED))
                continue;
            if (try_number(s, i, n, 0)) {
                is_smaller = true;
                continue;
            }
            while (*value > 1 && try_number(s, i, n, *value / 2))
                is_smaller = true;
        }
    return is_smaller;
}

void stg_swarm_shrink(stg_script *script, const stg_memory *memory,
                      stg_swarm_run *run, uint32_t runs_max)
{
    shrinking s = {.best = script,
                   .memory = memory,
                   .run = run,
                   .invariant = run->failure.invariant,
                   .runs_left = runs_max};

    s.tried = memory->allocate(memory->ctx, sizeof *s.tried);
    if (s.tried == NULL)
        return;
    cut_end(&s);
    while (drop_steps(&s) || lower_numbers(&s))
        ;
    (void)stg_swarm_play(script, memory, run);
    memory->release(memory->ctx, s.tried);
}
