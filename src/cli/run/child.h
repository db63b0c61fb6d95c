/* child.h - one run of a command: started, watched, and ended in time.
 *
 * The signals that end, stop or steer a command are blocked in this process and
 * read in turn; while a command runs they are passed on to its process group,
 * unless they come from there (child_group.h). When the command is stopped from
 * the terminal, this process stops, too, as the shell that started it expects,
 * and what continues one of them continues both. */
#ifndef STAGGER_CLI_RUN_CHILD_H
#define STAGGER_CLI_RUN_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include <stagger/ns.h>

#include "cli/run/child_group.h"

typedef struct child {
    stg_ns kill_after; /* from TERM to KILL */
    sigset_t watched;
    sigset_t before; /* the mask that commands are started with */
    int stopped_by;  /* the signal that told us to end; 0: none has */
    pid_t pid;       /* 0: no command is running */
    int report;      /* a pipe: why it was not executed */
    child_group group;
    stg_ns suspend_at; /* when we stop at the latest; STG_NEVER: we do not */
} child;

typedef struct child_end {
    int code; /* exit code; 128 + n for signal n; 126, 127: not started */
    bool is_timeout;
    int error; /* why it was not started: an errno, else 0 */
} child_end;

/* Blocks the signals from now on. kill_after: above 0, up to 365 d. */
void stg_child_init(child *c, stg_ns kill_after);

/* Runs argv (NULL at its end) with this process's environment and files, until
 * it ends. At until_at, of stg_env_system()'s clock, its process group is told
 * to end (TERM); who is left in it kill_after later is killed, and it is not
 * waited for longer than that somebody is. */
child_end stg_child_run(child *c, char **argv, stg_ns until_at);

/* Sleeps until until_at. Returns false, and sets stopped_by, if a signal told
 * us to end. */
bool stg_child_sleep(child *c, stg_ns until_at);

#endif
