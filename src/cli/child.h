/* child.h - one run of a command: started, watched, and ended in time.
 *
 * The signals that end or steer a command are blocked in this process and read
 * in turn; while a command runs they are passed on to it, unless the terminal
 * has sent them to both already. */
#ifndef STAGGER_CLI_CHILD_H
#define STAGGER_CLI_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include <stagger/ns.h>

typedef struct child {
    sigset_t watched;
    sigset_t before; /* the mask that commands are started with */
    int stopped_by;  /* the signal that told us to stop; 0: none has */
} child;

typedef struct child_end {
    int code; /* exit code; 128 + n for signal n; 126, 127: not started */
    bool is_timeout;
    int error; /* why it was not started: an errno, else 0 */
} child_end;

/* Blocks the signals from now on. */
void stg_child_init(child *c);

/* Runs argv (NULL at its end) with this process's environment and files, until
 * it ends; at until_at, of stg_env_system()'s clock, it is told to end (TERM),
 * and killed 5 s later. */
child_end stg_child_run(child *c, char **argv, stg_ns until_at);

/* Sleeps until until_at. Returns false, and sets stopped_by, if a signal told
 * us to stop. */
bool stg_child_sleep(child *c, stg_ns until_at);

#endif
