#include "cli/sim/stop.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

// A handler has nothing else to hang it on.
static atomic_bool is_stopped;

static void stop(int number)
{
    (void)number;
    atomic_store(&is_stopped, true);
}

static void watch(int number)
{
    struct sigaction old, action = {.sa_handler = stop};

    action.sa_flags = (int)SA_RESETHAND | SA_RESTART;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        (void)sigaction(number, &action, NULL);
}

const atomic_bool *stg_sim_stop_watch(void)
{
    watch(SIGINT);
    watch(SIGTERM);
    return &is_stopped;
}
