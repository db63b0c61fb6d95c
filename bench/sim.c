/* sim.c - how fast the simulator is.
 *
 * usage: sim [STAGGER]
 *
 * Calls of contention a second on one core, through stg_retry_step() as programs
 * run it, and bytes a client; events of overload a second, and those of hubs whose
 * every step is judged, under a plain load and in random worlds; repetitions on one
 * core and on all; and with the command, the whole experiment that it repeats
 * when it is given no options. What is compared is measured in turn, for a
 * machine is not as fast in one minute as in the next. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <stagger/text.h>

#include "sim/contention.h"
#include "sim/delivery/swarm.h"
#include "sim/overload.h"
#include "sim/parallel.h"

/* -- memory that is counted */

enum { HEAD = 64, HUGE = 1 << 21 };

static size_t held, most_held;

static void *allocate(void *ctx, size_t size)
{
    size_t whole = (HEAD + size + HUGE - 1) / HUGE * HUGE;
    size_t *head;

    (void)ctx;
    if (size < HUGE) {
        head = malloc(HEAD + size);
    } else {
        head = aligned_alloc(HUGE, whole);
        if (head != NULL)
            (void)madvise(head, whole, MADV_HUGEPAGE);
    }
    if (head == NULL)
        return NULL;
    *head = size;
    held += size;
    if (held > most_held)
        most_held = held;
    return (char *)head + HEAD;
}

static void release(void *ctx, void *bytes)
{
    size_t *head = (size_t *)(void *)((char *)bytes - HEAD);

    (void)ctx;
    held -= *head;
    free(head);
}

/* That of any thread. */
static void *take(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size);
}

static void give_back(void *ctx, void *bytes)
{
    (void)ctx;
    free(bytes);
}

/* -- one core */

static const char text[] =
    "exponential base=10ms cap=2s jitter=full "
    "attempts=unlimited deadline=none";

static double seconds(clockid_t clock)
{
    struct timespec t;

    (void)clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

typedef struct speed {
    double calls_a_second, bytes_a_client;
} speed;

/* About so many calls, over repetitions as short as there are. */
static speed measure(uint32_t clients, uint64_t calls, stg_sim_queue_kind queue)
{
    stg_memory memory = {allocate, release, NULL};
    stg_contention_options o = stg_contention_options_default();
    stg_contention_run run;
    stg_policy policy;
    stg_contention *c;
    uint64_t done = 0;
    double begun;

    if (stg_policy_parse(&policy, text, NULL) != STG_OK)
        return (speed){0};
    o.clients = clients;
    o.policy = &policy;
    o.calls_max = calls;
    o.queue = queue;
    most_held = 0;
    if (stg_contention_new(&c, &memory, &o, NULL) != STG_OK)
        return (speed){0};
    begun = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (uint64_t i = 0; done < calls; i++) {
        if (!stg_contention_repeat(c, i, &run, NULL))
            return (speed){0};
        done += run.calls;
    }
    begun = seconds(CLOCK_PROCESS_CPUTIME_ID) - begun;
    stg_contention_free(c);
    return (speed){(double)done / begun, (double)most_held / clients};
}

/* -- some rounds: the median, and the best, since what else the machine does only
 * makes it slower */

enum { ROUNDS = 7, PAIRS = 5 };

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

typedef struct row {
    const char *queue;
    stg_sim_queue_kind kind;
    uint32_t clients;
    uint64_t calls;
    double goal; /* 0: none */
    double rounds[ROUNDS];
    double bytes_a_client;
} row;

static void show_row(row *r)
{
    double middle = median(r->rounds, ROUNDS);

    printf("%9u  %-7s %8.1f %8.1f", r->clients, r->queue, middle,
           r->rounds[ROUNDS - 1]);
    if (r->goal > 0)
        printf(" %8.1f", r->goal);
    else
        printf("        -");
    printf("  %6.1f%s\n", r->bytes_a_client,
           middle < r->goal ? "  below the goal" : "");
}

static void show_one_core(void)
{
    row rows[] = {
        {"", STG_SIM_QUEUE_AUTO, 100, 2000000, 12, {0}, 0},
        {"", STG_SIM_QUEUE_AUTO, 1000, 2000000, 12, {0}, 0},
        {"", STG_SIM_QUEUE_AUTO, 10000, 4000000, 12, {0}, 0},
        {"", STG_SIM_QUEUE_AUTO, 1000000, 8000000, 7, {0}, 0},
        {"heap", STG_SIM_QUEUE_HEAP, 10000, 2000000, 0, {0}, 0},
    };
    enum { ROWS = sizeof rows / sizeof *rows };

    for (size_t i = 0; i < ROUNDS; i++)
        for (size_t k = 0; k < ROWS; k++) {
            row *r = &rows[k];
            speed s = measure(r->clients, r->calls, r->kind);

            r->rounds[i] = s.calls_a_second / 1e6;
            r->bytes_a_client = s.bytes_a_client;
        }
    printf(
        "contention, optimistic, %s\n\n"
        "  clients  queue   M calls/s     best     goal  bytes a client\n",
        text);
    for (size_t k = 0; k < ROWS; k++)
        show_row(&rows[k]);
}

static void show_overload(void)
{
    stg_overload_options o = stg_overload_default();
    stg_memory memory = {take, give_back, NULL};
    double rounds[ROUNDS], middle;

    for (uint64_t i = 0; i < ROUNDS; i++) {
        double begun = seconds(CLOCK_PROCESS_CPUTIME_ID);
        stg_overload_result r;
        uint64_t events = 0;

        for (uint64_t k = 0; k < 8; k++) {
            if (stg_overload_run(&o, 1, 8 * i + k, NULL, &memory, &r) != STG_OK)
                return;
            events += r.events;
            stg_overload_free(&r, &memory);
        }
        rounds[i] =
            (double)events / 1e6 / (seconds(CLOCK_PROCESS_CPUTIME_ID) - begun);
    }
    middle = median(rounds, ROUNDS);
    printf("\noverload, as it is without options: %.1f M events/s, best %.1f\n",
           middle, rounds[ROUNDS - 1]);
}

/* -- hubs that are judged: an event is what comes to flow, and an action what it
 * wants done */

typedef struct worked {
    uint64_t events, actions;
} worked;

/* Of a hub with ten targets that answer within 20 ms, and 2,000 messages a second
 * for a minute. All of flow is checked as often as in random worlds. */
static bool play_load(uint64_t seed, worked *sum)
{
    enum { TARGETS = 10, A_TURN = 40, TURNS = 3000, CHECKS = 20 };
    const stg_world_hooks hooks = {.memory = {take, give_back, NULL}};
    stg_world_totals totals;
    stg_world *w;
    bool is_good;

    if (stg_world_new(&w, &hooks, seed) != STG_OK)
        return false;
    stg_world_set_checks(w, CHECKS);
    for (uint32_t i = 0; i < TARGETS; i++) {
        stg_lane_options *o = stg_world_add_lane(
            w, "exponential base=1s cap=1m jitter=full attempts=8");

        if (o == NULL)
            return false;
        o->in_flight_max = 64;
        stg_world_set_answer(w, i, stg_answered(200), 20 * STG_MS);
    }
    stg_world_start(w);
    for (uint64_t i = 1; i <= TURNS; i++) {
        stg_world_publish(w, 0, A_TURN);
        stg_world_run(w, i * 20 * STG_MS);
    }
    stg_world_run(w, STG_NEVER);
    stg_world_check_ends(w);
    totals = stg_world_sum(w);
    sum->events += totals.events;
    sum->actions += totals.actions;
    is_good = stg_world_failed(w) == NULL &&
              totals.delivered == (uint64_t)TARGETS * A_TURN * TURNS;
    stg_world_free(w);
    return is_good;
}

/* Of forty random worlds. */
static bool play_random(uint64_t seed, worked *sum)
{
    enum { WORLDS = 40 };
    stg_memory memory = {take, give_back, NULL};
    stg_swarm_bounds most = stg_swarm_bounds_default();
    static stg_swarm_run run;
    static stg_script script;

    for (uint64_t i = 0; i < WORLDS; i++) {
        stg_swarm_draw(&script, seed * WORLDS + i, &most);
        if (!stg_swarm_play(&script, &memory, &run) || run.has_failed)
            return false;
        sum->events += run.sum.events;
        sum->actions += run.sum.actions;
    }
    return true;
}

static void show_judged(const char *what,
                        bool (*play)(uint64_t seed, worked *sum))
{
    double events[ROUNDS], actions[ROUNDS], middle;

    for (uint64_t i = 0; i < ROUNDS; i++) {
        double took = seconds(CLOCK_PROCESS_CPUTIME_ID);
        worked sum = {.events = 0};

        if (!play(i + 1, &sum)) {
            fprintf(stderr, "bench/sim: %s failed\n", what);
            return;
        }
        took = seconds(CLOCK_PROCESS_CPUTIME_ID) - took;
        events[i] = (double)sum.events / 1e6 / took;
        actions[i] = (double)sum.actions / 1e6 / took;
    }
    middle = median(events, ROUNDS);
    printf("%s: %.2f M events/s, best %.2f; %.2f M actions/s\n", what, middle,
           events[ROUNDS - 1], median(actions, ROUNDS));
}

/* -- all cores */

/* What is done on one core and on all, in turn. */
typedef struct pairs {
    double one[PAIRS], all[PAIRS], ratio[PAIRS];
} pairs;

static void show_pairs(const char *what, unsigned cores, pairs *p)
{
    printf("%s: %.2f s on one core, %.2f s on %u: %.2f times as fast\n", what,
           median(p->one, PAIRS), median(p->all, PAIRS), cores,
           median(p->ratio, PAIRS));
}

enum { REPETITIONS = 640 };

static void repeat(void *ctx, size_t number, unsigned worker)
{
    const stg_contention_options *o = ctx;
    stg_memory memory = {take, give_back, NULL};
    stg_contention_run run;
    stg_contention *c;

    (void)worker;
    if (stg_contention_new(&c, &memory, o, NULL) != STG_OK)
        return;
    (void)stg_contention_repeat(c, number, &run, NULL);
    stg_contention_free(c);
}

static double time_repetitions(stg_contention_options *o, unsigned threads)
{
    double begun = seconds(CLOCK_MONOTONIC);

    stg_parallel_run(REPETITIONS, threads, repeat, o);
    return seconds(CLOCK_MONOTONIC) - begun;
}

static void show_cores(unsigned cores)
{
    stg_contention_options o = stg_contention_options_default();
    stg_policy policy;
    pairs p;
    char what[40];

    if (stg_policy_parse(&policy, text, NULL) != STG_OK)
        return;
    o.clients = 1000;
    o.policy = &policy;
    for (size_t i = 0; i < PAIRS; i++) {
        p.one[i] = time_repetitions(&o, 1);
        p.all[i] = time_repetitions(&o, cores);
        p.ratio[i] = p.one[i] / p.all[i];
    }
    (void)snprintf(what, sizeof what, "%d repetitions", REPETITIONS);
    show_pairs(what, cores, &p);
}

/* -- the experiment, by the command */

/* How long it takes with so many threads; 0: it did not succeed. Adds the
 * processor's time to *cpu. */
static double time_command(const char *stagger, unsigned threads, double *cpu)
{
    double begun = seconds(CLOCK_MONOTONIC);
    char number[12];
    struct rusage used;
    int status;
    pid_t child;

    (void)snprintf(number, sizeof number, "%u", threads);
    (void)fflush(stdout);
    child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        (void)dup2(null, 1);
        (void)execl(stagger, stagger, "sim", "contention", "--threads", number,
                    (char *)NULL);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child || status != 0)
        return 0;
    *cpu = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
    return seconds(CLOCK_MONOTONIC) - begun;
}

static void show_experiment(const char *stagger, unsigned cores)
{
    double cpus[PAIRS], cpu;
    pairs p;

    for (size_t i = 0; i < PAIRS; i++) {
        p.one[i] = time_command(stagger, 1, &cpus[i]);
        p.all[i] = time_command(stagger, cores, &cpu);
        if (p.one[i] <= 0 || p.all[i] <= 0) {
            fprintf(stderr, "bench/sim: %s sim contention failed\n", stagger);
            return;
        }
        p.ratio[i] = p.one[i] / p.all[i];
    }
    show_pairs(
        "stagger sim contention, 5 policies, 10 to 190 clients, 100 "
        "repetitions",
        cores, &p);
    printf("  %.2f s of the processor's time; the goal is 1.3 s\n",
           median(cpus, PAIRS));
}

int main(int argc, char **argv)
{
    unsigned cores = stg_parallel_cores();

    show_one_core();
    show_overload();
    show_judged("a hub with ten targets, judged", play_load);
    show_judged("random worlds of hubs, judged", play_random);
    show_cores(cores);
    if (argc > 1)
        show_experiment(argv[1], cores);
    return 0;
}
