/* Runs the swarm (sim/delivery/swarm.h): seeds over the cores, or one script.
 * Totals are whole numbers, added up in any order, and of failures the lowest
 * seed is shown: so nothing depends on the threads. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/sim/delivery.h"
#include "cli/sim/sim.h"
#include "sim/delivery/swarm.h"
#include "sim/parallel.h"

enum { SHRINK_RUNS = 20000, FAILED = 1, FAILURES_MAX = 8 };

/* -- what a run said ------------------------------------------------------- */

static void print_failure(const stg_swarm_run *run)
{
    const stg_world_failure *f = &run->failure;
    uint64_t first =
        run->lines > STG_SWARM_LINES ? run->lines - STG_SWARM_LINES : 0;

    printf("%s does not hold: %s\n", f->invariant, f->text);
    printf("  at %" PRIu64 " ms", f->at / STG_MS);
    if (f->lane != UINT32_MAX)
        printf(", lane %" PRIu32, f->lane);
    if (f->partition != UINT32_MAX)
        printf(", partition %" PRIu32, f->partition);
    if (f->position != UINT64_MAX)
        printf(", position %" PRIu64, f->position);
    printf("\n\nthe last %" PRIu64 " events:\n", run->lines - first);
    for (uint64_t i = first; i < run->lines; i++)
        printf("  %s\n", run->last[i % STG_SWARM_LINES]);
    printf("\n");
}

static void print_script(FILE *to, const stg_script *s)
{
    char text[STG_STEP_TEXT_MAX], policy[STG_DRAWN_POLICY_MAX];

    for (size_t i = 0; i < s->count; i++) {
        const stg_step *e = &s->steps[i];

        fputs(stg_step_print(e, text), to);
        if (e->kind == STG_STEP_LANE || e->kind == STG_STEP_JOIN)
            fprintf(to, " # %s",
                    stg_script_policy(e->at[STG_LANE_POLICY], policy));
        fputc('\n', to);
    }
}

/* -- making it small ------------------------------------------------------- */

static int fail_file(const stg_swarm_ask *ask, const char *path)
{
    stg_options_complain(ask->who, "%s: %s", path, strerror(errno));
    return STG_EXIT_USAGE;
}

static int shrink(const stg_swarm_ask *ask, stg_script *s, stg_swarm_run *run)
{
    stg_memory memory = stg_sim_memory();
    FILE *to = fopen(ask->shrink, "we");

    if (to == NULL)
        return fail_file(ask, ask->shrink);
    stg_swarm_shrink(s, &memory, run, SHRINK_RUNS);
    fprintf(to, "# %s: %s\n", run->failure.invariant, run->failure.text);
    print_script(to, s);
    if (fclose(to) != 0)
        return fail_file(ask, ask->shrink);
    printf("made small: %zu steps\n\n", s->count);
    print_failure(run);
    printf("again: %s --events %s\n", ask->who, ask->shrink);
    return FAILED;
}

/* -- seeds ----------------------------------------------------------------- */

typedef struct workplace {
    stg_script script;
    stg_swarm_run run;
} workplace;

typedef struct swarm {
    const stg_swarm_ask *ask;
    stg_swarm_bounds bounds;
    stg_memory memory;
    unsigned threads;
    workplace *places; /* by thread */
    const atomic_bool *is_stopped;
    stg_ns begun_at;
    pthread_mutex_t lock;
    stg_sim_progress progress;
    /* Behind the lock. */
    uint64_t worlds, failures, hash;
    stg_ns lasted;
    stg_world_totals sum;
    uint64_t failed[FAILURES_MAX]; /* the first seeds that failed: which ones */
    bool has_no_memory;
} swarm;

static stg_ns look_at_clock(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (stg_ns)t.tv_sec * STG_S + (stg_ns)t.tv_nsec;
}

/* Behind the last seed come those from 0 on. */
static uint32_t seed_of(const swarm *s, uint64_t number)
{
    return (uint32_t)(s->ask->run.seed + number);
}

static bool is_over(const swarm *s)
{
    return atomic_load(s->is_stopped) ||
           (s->ask->most > 0 && look_at_clock() - s->begun_at >= s->ask->most);
}

/* Keeps the lowest, in their order. */
static void note_failure(swarm *s, uint64_t number)
{
    uint64_t at = s->failures++;

    if (at >= FAILURES_MAX) {
        at = FAILURES_MAX - 1;
        if (number > s->failed[at])
            return;
    }
    for (; at > 0 && s->failed[at - 1] > number; at--)
        s->failed[at] = s->failed[at - 1];
    s->failed[at] = number;
}

static void add_sum(swarm *s, uint64_t number, const stg_swarm_run *run)
{
    s->worlds++;
    s->hash += run->hash;
    s->lasted += run->lasted;
    s->sum.messages += run->sum.messages;
    s->sum.events += run->sum.events;
    s->sum.actions += run->sum.actions;
    s->sum.starts += run->sum.starts;
    s->sum.delivered += run->sum.delivered;
    s->sum.dead += run->sum.dead;
    s->sum.crashes += run->sum.crashes;
    s->sum.lanes += run->sum.lanes;
    if (run->has_failed)
        note_failure(s, number);
}

static void run_seed(void *ctx, size_t number, unsigned worker)
{
    swarm *s = ctx;
    workplace *at = &s->places[worker];
    bool is_done;

    if (is_over(s))
        return;
    stg_swarm_draw(&at->script, seed_of(s, number), &s->bounds);
    is_done = stg_swarm_play(&at->script, &s->memory, &at->run);
    (void)pthread_mutex_lock(&s->lock);
    if (is_done)
        add_sum(s, number, &at->run);
    else
        s->has_no_memory = true;
    (void)pthread_mutex_unlock(&s->lock);
    stg_sim_progress_add(&s->progress, 1);
}

static void print_sum(const swarm *s)
{
    double seconds = (double)(look_at_clock() - s->begun_at) / STG_S;

    printf("%" PRIu64 " worlds from seed %" PRIu32 ": %" PRIu64
           " failed, in %.1f s\n",
           s->worlds, s->ask->run.seed, s->failures, seconds);
    printf("  %" PRIu64 " messages to %" PRIu32 " targets: %" PRIu64
           " attempts, %" PRIu64 " deliveries, %zu dead letters\n",
           s->sum.messages, s->sum.lanes, s->sum.starts, s->sum.delivered,
           s->sum.dead);
    printf("  %" PRIu64 " events and %" PRIu64
           " actions (%.0f/s by each of %u thread%s), %" PRIu32
           " crashes and losses, %.1f days of virtual time\n",
           s->sum.events, s->sum.actions,
           (double)(s->sum.events + s->sum.actions) / seconds / s->threads,
           s->threads, s->threads == 1 ? "" : "s", s->sum.crashes,
           (double)s->lasted / (double)STG_DAY);
    printf("  trace %016" PRIx64 "\n", s->hash);
}

static int show_failure(swarm *s)
{
    const stg_swarm_ask *ask = s->ask;
    workplace *at = &s->places[0];
    uint32_t seed = seed_of(s, s->failed[0]);

    printf("  seeds that failed:");
    for (uint64_t i = 0; i < s->failures && i < FAILURES_MAX; i++)
        printf(" %" PRIu32, seed_of(s, s->failed[i]));
    printf("%s\n", s->failures > FAILURES_MAX ? " ..." : "");
    stg_swarm_draw(&at->script, seed, &s->bounds);
    if (!stg_swarm_play(&at->script, &s->memory, &at->run))
        return STG_EXIT_USAGE;
    printf("\nseed %" PRIu32 ": ", seed);
    print_failure(&at->run);
    printf("again: %s --swarm 1 --seed %" PRIu32 "\n", ask->who, seed);
    return ask->shrink != NULL ? shrink(ask, &at->script, &at->run) : FAILED;
}

static int finish(swarm *s)
{
    int code = 0;

    if (s->has_no_memory) {
        stg_options_complain(s->ask->who, "no memory");
        return STG_EXIT_USAGE;
    }
    print_sum(s);
    if (s->failures > 0)
        code = show_failure(s);
    else if (atomic_load(s->is_stopped))
        code = STG_EXIT_INTERRUPTED;
    return stg_options_finish(s->ask->who, code);
}

int stg_swarm_seeds(const stg_swarm_ask *ask)
{
    unsigned threads =
        ask->run.threads > 0 ? ask->run.threads : stg_parallel_cores();
    swarm s = {.ask = ask,
               .bounds = stg_swarm_bounds_default(),
               .memory = stg_sim_memory(),
               .threads = threads,
               .places = calloc(threads, sizeof *s.places),
               .is_stopped = stg_sim_stop_watch(),
               .begun_at = look_at_clock()};
    int code;

    if (s.places == NULL) {
        stg_options_complain(ask->who, "no memory");
        return STG_EXIT_USAGE;
    }
    (void)pthread_mutex_init(&s.lock, NULL);
    stg_sim_progress_begin(&s.progress, ask->count);
    stg_parallel_run(ask->count, threads, run_seed, &s);
    stg_sim_progress_end(&s.progress);
    code = finish(&s);
    (void)pthread_mutex_destroy(&s.lock);
    free(s.places);
    return code;
}

/* -- one script ------------------------------------------------------------ */

enum { FILE_MAX = 1 << 20 };

static int read_script(const stg_swarm_ask *ask, stg_script *s)
{
    bool is_stdin = strcmp(ask->events, "-") == 0;
    FILE *from = is_stdin ? stdin : fopen(ask->events, "re");
    char *text = malloc(FILE_MAX);
    stg_error err = {.text = "no memory"};
    stg_status status = STG_IO;

    if (from == NULL) {
        free(text);
        return fail_file(ask, ask->events);
    }
    if (text != NULL)
        status = stg_script_read(s, text, fread(text, 1, FILE_MAX, from), &err);
    if (!is_stdin)
        fclose(from);
    free(text);
    if (status == STG_OK &&
        (s->count == 0 || s->steps[0].kind != STG_STEP_WORLD)) {
        status = STG_INVALID;
        err = (stg_error){.line = 1, .text = "expected the line `world` first"};
    }
    if (status != STG_OK)
        stg_options_complain(ask->who, "%s:%" PRIu32 ": %s", ask->events,
                             err.line, err.text);
    return status == STG_OK ? 0 : STG_EXIT_USAGE;
}

static void print_line(void *ctx, const char *line)
{
    (void)ctx;
    puts(line);
}

static int run_script(const stg_swarm_ask *ask, workplace *at)
{
    stg_memory memory = stg_sim_memory();

    at->run.line = ask->is_trace ? print_line : NULL;
    if (!stg_swarm_play(&at->script, &memory, &at->run)) {
        stg_options_complain(ask->who, "no memory");
        return STG_EXIT_USAGE;
    }
    at->run.line = NULL;
    if (!ask->is_trace || at->run.has_failed)
        printf("%zu steps, %" PRIu64 " attempts, %" PRIu64
               " events, trace %016" PRIx64 "\n",
               at->script.count, at->run.sum.starts, at->run.sum.events,
               at->run.hash);
    if (!at->run.has_failed)
        return 0;
    print_failure(&at->run);
    return ask->shrink != NULL ? shrink(ask, &at->script, &at->run) : FAILED;
}

int stg_swarm_script(const stg_swarm_ask *ask)
{
    workplace *at = calloc(1, sizeof *at);
    stg_swarm_bounds bounds = stg_swarm_bounds_default();
    int code = 0;

    if (at == NULL) {
        stg_options_complain(ask->who, "no memory");
        return STG_EXIT_USAGE;
    }
    if (ask->events != NULL)
        code = read_script(ask, &at->script);
    else
        stg_swarm_draw(&at->script, ask->run.seed, &bounds);
    if (code == 0 && ask->is_script)
        print_script(stdout, &at->script);
    else if (code == 0)
        code = run_script(ask, at);
    free(at);
    return stg_options_finish(ask->who, code);
}
