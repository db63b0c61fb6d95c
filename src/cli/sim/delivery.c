/* stagger sim delivery: flow, as the hub runs it, in virtual time. */
#include <getopt.h>

#include "cli/options.h"
#include "cli/sim/delivery.h"
#include "cli/sim/sim.h"

static const char who[] = "stagger sim delivery";

enum { SWARM = 1, FOR, EVENTS, SHRINK, SCRIPT, TRACE };

static const stg_option options[] = {
    {"--swarm N", "random worlds of the hub's own code, so many seeds", SWARM,
     NULL},
    {"--seed S", "the first seed, 0 to 4294967295 (1)", STG_SIM_SEED, NULL},
    {"--for TIME", "begin no world after so much time", FOR, NULL},
    {"--threads N",
     "how many worlds at once (as many as there are cores); the output does "
     "not depend on it",
     STG_SIM_THREADS, NULL},
    {"--events FILE", "run this event script instead (-: stdin)", EVENTS, NULL},
    {"--shrink FILE", "make what fails small, and write it as an event script",
     SHRINK, NULL},
    {"--script", "print the event script of --seed, and run nothing", SCRIPT,
     NULL},
    {"--trace", "print all events of --seed, or of --events", TRACE, NULL},
    {.flag = NULL}};

const stg_usage stg_sim_delivery_usage = {
    .head =
        "usage: stagger sim delivery --swarm N [--seed S] [OPTION...]\n"
        "       stagger sim delivery --events FILE [OPTION...]\n"
        "\n"
        "Runs the code that decides about all deliveries of a hub in virtual time,\n"
        "with all that may go wrong at once: targets, store, partitions, clock, memory,\n"
        "crashes, reloads. Each seed draws its settings and faults. Judges it by what\n"
        "targets saw, and says how much it has looked at.\n"
        "\n",
    .options = options,
    .tail =
        "\n"
        "  stagger sim delivery --swarm 1000\n"
        "  stagger sim delivery --swarm 1000000 --for 1h --seed 5000\n"
        "  stagger sim delivery --swarm 1 --seed 4711 --shrink small.events\n"
        "\n"
        "Exit code: 0; 1 if an invariant does not hold; 2 for bad options; 130 when it\n"
        "was interrupted.\n",
};

static int read_time(stg_ns *ns)
{
    if (stg_options_read_duration(optarg, ns) && *ns > 0)
        return 0;
    stg_options_complain(who, "--for=%s: expected a time, such as 60s", optarg);
    return STG_EXIT_USAGE;
}

static int read_option(void *ctx, int option)
{
    stg_swarm_ask *ask = ctx;

    switch (option) {
    case SWARM:
        return stg_sim_number(who, "--swarm", 1, 100000000, &ask->count);
    case FOR:
        return read_time(&ask->most);
    case EVENTS:
        ask->events = optarg;
        return 0;
    case SHRINK:
        ask->shrink = optarg;
        return 0;
    case SCRIPT:
        ask->is_script = true;
        return 0;
    case TRACE:
        ask->is_trace = true;
        return 0;
    default:
        return stg_sim_option(&(stg_sim_output){.is_json = false}, &ask->run,
                              who, option);
    }
}

int stg_sim_delivery(int argc, char **argv)
{
    stg_swarm_ask ask = {.who = who, .run = {.seed = 1}};
    stg_arguments left;
    int code = stg_options_read(&stg_sim_delivery_usage, argc, argv,
                                read_option, &ask, &left);

    if (code != 0)
        return code;
    if (ask.events != NULL && ask.count > 0)
        return stg_options_refuse(who, "--swarm and --events: expected one");
    if (ask.events != NULL || ask.is_script || ask.is_trace)
        return stg_swarm_script(&ask);
    if (ask.count == 0)
        return stg_options_refuse(who, "expected --swarm N or --events FILE");
    return stg_swarm_seeds(&ask);
}
