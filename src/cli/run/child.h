/* child.h - one run of a command: started, watched, and ended in time.
 *
 * The signals that end, stop or steer a command are blocked in this process and
 * read in turn; while a command runs they are passed on to its process group,
 * unless they come from there (child_process.c). When the command is stopped from
 * the terminal, this process stops, too, as the shell that started it expects,
 * and what continues one of them continues both. */
#ifndef STAGGER_CLI_RUN_CHILD_H
#define STAGGER_CLI_RUN_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include <stagger/ns.h>

/* -- execution -------------------------------------------------------------- */

/* Looks for argv[0] along PATH, unless it has a slash, and executes it, as
 * execvp() does. A script without a "#!" line is run by /bin/sh; execvp() of
 * musl refuses it, and that of glibc hands programs of another machine to the
 * shell, too. argv ends with NULL. Returns only on failure: an errno. */
int stg_child_exec(char **argv);

/* -- process groups --------------------------------------------------------- */

typedef struct child_group {
    pid_t id;            /* and the pid of the relay */
    bool wants_terminal; /* has read it, or is to have it from the start */
    bool has_terminal;
} child_group;

/* Begins a group with nobody in it but the relay, and hands the terminal over
 * where that is right. watched: the signals that are not ignored, and SIGCHLD;
 * all of them are blocked. Returns 0 or an errno. */
int stg_child_group_begin(child_group *g, const sigset_t *watched);

/* Makes it the foreground group, if ours is. Returns whether it is one now. */
bool stg_child_group_give_terminal(child_group *g);

/* Makes ours the foreground group again, if we gave it away. */
void stg_child_group_take_terminal(child_group *g);

/* Sends a signal to all in it. */
void stg_child_group_signal(const child_group *g, int signal);

/* Ends the relay, when it has sent on what it has, and takes the terminal back;
 * others in the group live on. */
void stg_child_group_end(child_group *g);

/* Whether all in it have ended; after stg_child_group_end(). */
bool stg_child_group_is_empty(const child_group *g);

/* -- an attempt ------------------------------------------------------------- */

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
