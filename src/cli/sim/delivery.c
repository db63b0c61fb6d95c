/* stagger sim delivery: flow, as the hub runs it, in virtual time. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/sim/delivery.h"
#include "cli/sim/sim.h"

static const char who[] = "stagger sim delivery";

enum {
    SWARM = 1,
    FOR,
    EVENTS,
    SHRINK,
    SCRIPT,
    TRACE,
    RATE,
    SIZE,
    LATENCY,
    FAULT,
    DOWN
};

static const stg_option options[] = {
    {NULL, "What a hub would do, with its settings or a scenario:", 0, NULL},
    {"--rate N", "messages a second, 0.001 to 100000 (10)", RATE, NULL},
    {"--for TIME",
     "how long they come (until 5m after the last fault, 10m at least)", FOR,
     NULL},
    {"--size BYTES", "of a message, 12 to 1048576 (1024)", SIZE, NULL},
    {"--latency TIME", "of a target that is well (20ms)", LATENCY, NULL},
    {"--down TARGET=TIME", "a target refuses connections for so long, after 1m",
     DOWN, NULL},
    {"--fault 'TARGET ANSWER [from=TIME] [for=TIME] [took=TIME] [share=PERCENT]'",
     "a target (*: each) answers so: 503, 429+60, hang, refused, timeout, reset, "
     "dns ...",
     FAULT, NULL},
    STG_SIM_OPTIONS("a row for each target"),
    {NULL, "Random worlds:", 0, NULL},
    {"--swarm N", "random worlds of the hub's own code, so many seeds", SWARM,
     NULL},
    {"--events FILE", "run this event script instead (-: stdin)", EVENTS, NULL},
    {"--shrink FILE", "make what fails small, and write it as an event script",
     SHRINK, NULL},
    {"--script", "print the event script of --seed, and run nothing", SCRIPT,
     NULL},
    {"--trace", "print all events of --seed, or of --events", TRACE, NULL},
    {.flag = NULL}};

const stg_usage stg_sim_delivery_usage = {
    .head =
        "usage: stagger sim delivery FILE [OPTION...]\n"
        "       stagger sim delivery --swarm N [--seed S] [OPTION...]\n"
        "       stagger sim delivery --events FILE [OPTION...]\n"
        "\n"
        "Runs the code that decides about all deliveries of a hub in virtual time.\n"
        "\n"
        "With FILE, the settings of a hub: what it would do with a load while targets\n"
        "fail. What each target gets, and when; how much waits; dead letters; what\n"
        "alerts would tell. A scenario says the same in a file: its keys are settings\n"
        "(the path of a hub's settings), rate, for, size, latency and faults, a list.\n"
        "\n"
        "With --swarm, all that may go wrong at once: targets, store, partitions, clock,\n"
        "memory, crashes, reloads. Each seed draws its settings and faults. Judges it by\n"
        "what targets saw, and says how much it has looked at.\n"
        "\n",
    .options = options,
    .tail =
        "\n"
        "  stagger sim delivery stagger.yaml --rate 100 --down leaf3=10m\n"
        "  stagger sim delivery stagger.yaml --fault '* 503 from=2m for=5m share=30%'\n"
        "  stagger sim delivery scenario.yaml --html course.html\n"
        "  stagger sim delivery --swarm 1000000 --for 1h --seed 5000\n"
        "  stagger sim delivery --swarm 1 --seed 4711 --shrink small.events\n"
        "\n"
        "Exit code: 0; 1 if an invariant does not hold; 2 for bad options; 130 when it\n"
        "was interrupted.\n",
    .arguments_max = 1,
};

typedef struct asked {
    stg_swarm_ask swarm;
    stg_world_scenario_ask scenario;
    stg_sim_run run;
    stg_ns most;           /* --for */
    const char *of_a_file; /* the last option that needs FILE; NULL: none */
    const char *of_random_ones; /* and the last that does not go with it */
} asked;

static int read_time(const char *option, stg_ns *ns)
{
    if (stg_options_read_duration(optarg, ns) && *ns > 0)
        return 0;
    stg_options_complain(who, "%s=%s: expected a time, such as 60s", option,
                         optarg);
    return STG_EXIT_USAGE;
}

static int read_rate(uint32_t *rate)
{
    if (stg_world_scenario_read_rate(optarg, rate))
        return 0;
    return stg_options_refuse(
        who, "--rate=%s: expected 0.001 to 100000, messages a second", optarg);
}

static int add_fault(stg_world_scenario_ask *ask, const char *option,
                     const char *text)
{
    stg_error err;

    if (ask->fault_count == STG_WORLD_SCENARIO_FAULTS_MAX) {
        stg_options_complain(who, "%s: expected %d at most", option,
                             (int)STG_WORLD_SCENARIO_FAULTS_MAX);
        return STG_EXIT_USAGE;
    }
    if (stg_world_scenario_read_fault(text, &ask->faults[ask->fault_count],
                                      &err) != STG_OK) {
        stg_options_complain(who, "%s='%s': %s", option, text, err.text);
        return STG_EXIT_USAGE;
    }
    ask->fault_count++;
    return 0;
}

/* "leaf3=10m" is the fault `leaf3 refused for=10m`. */
static int add_down(stg_world_scenario_ask *ask)
{
    char text[2 * STG_WORLD_SCENARIO_NAME_MAX + 32];
    const char *equals = strrchr(optarg, '=');

    if (equals == NULL || equals == optarg || equals[1] == '\0' ||
        snprintf(text, sizeof text, "%.*s refused for=%s",
                 (int)(equals - optarg), optarg,
                 equals + 1) >= (int)sizeof text)
        return stg_options_refuse(
            who, "--down=%s: expected TARGET=TIME, such as leaf3=10m", optarg);
    return add_fault(ask, "--down", text);
}

static int read_option(void *ctx, int option)
{
    asked *a = ctx;

    switch (option) {
    case RATE:
        a->of_a_file = "--rate";
        return read_rate(&a->scenario.rate);
    case SIZE:
        a->of_a_file = "--size";
        return stg_sim_number(who, "--size", STG_WORLD_SIZE_MIN,
                              STG_WORLD_SCENARIO_SIZE_MAX, &a->scenario.size);
    case LATENCY:
        a->of_a_file = "--latency";
        return read_time("--latency", &a->scenario.latency);
    case DOWN:
        a->of_a_file = "--down";
        return add_down(&a->scenario);
    case FAULT:
        a->of_a_file = "--fault";
        return add_fault(&a->scenario, "--fault", optarg);
    case FOR:
        return read_time("--for", &a->most);
    case SWARM:
        a->of_random_ones = "--swarm";
        return stg_sim_number(who, "--swarm", 1, 100000000, &a->swarm.count);
    case EVENTS:
        a->of_random_ones = "--events";
        a->swarm.events = optarg;
        return 0;
    case SHRINK:
        a->of_random_ones = "--shrink";
        a->swarm.shrink = optarg;
        return 0;
    case SCRIPT:
        a->of_random_ones = "--script";
        a->swarm.is_script = true;
        return 0;
    case TRACE:
        a->of_random_ones = "--trace";
        a->swarm.is_trace = true;
        return 0;
    default:
        if (option != STG_SIM_SEED && option != STG_SIM_THREADS)
            a->of_a_file = "--json, --csv, --html and --svg";
        return stg_sim_option(&a->scenario.output, &a->run, who, option);
    }
}

static int answer_file(asked *a, const char *file)
{
    stg_world_scenario_ask *ask = &a->scenario;

    if (a->of_random_ones != NULL)
        return stg_options_refuse(who, "%s does not go with %s",
                                  a->of_random_ones, file);
    ask->who = who;
    ask->file = file;
    ask->run = a->run;
    ask->load = a->most;
    return stg_world_scenario_file(ask);
}

static int answer_random(asked *a)
{
    stg_swarm_ask *ask = &a->swarm;

    if (a->of_a_file != NULL)
        return stg_options_refuse(
            who, "%s: expected the settings of a hub, or a scenario",
            a->of_a_file);
    ask->who = who;
    ask->run = a->run;
    ask->most = a->most;
    if (ask->events != NULL && ask->count > 0)
        return stg_options_refuse(who, "--swarm and --events: expected one");
    if (ask->events != NULL || ask->is_script || ask->is_trace)
        return stg_swarm_script(ask);
    if (ask->count == 0)
        return stg_options_refuse(
            who, "expected the settings of a hub, --swarm N or --events FILE");
    return stg_swarm_seeds(ask);
}

int stg_sim_delivery(int argc, char **argv)
{
    asked *a = calloc(1, sizeof *a);
    stg_arguments left;
    int code;

    if (a == NULL)
        return stg_options_refuse(who, "out of memory");
    a->run.seed = 1;
    a->scenario.argc = argc;
    a->scenario.argv = argv;
    code = stg_options_read(&stg_sim_delivery_usage, argc, argv, read_option, a,
                            &left);
    if (code == 0)
        code = left.count > 0 ? answer_file(a, left.at[0]) : answer_random(a);
    free(a);
    return code;
}

#ifndef STAGGER_HUB
int stg_world_scenario_file(stg_world_scenario_ask *ask)
{
    return stg_options_refuse(ask->who, "%s: this build is without the hub",
                              ask->file);
}
#endif
