/* child_group.h - the process group of a command, and the terminal.
 *
 * A command has a group of its own, so that what it has started can be ended
 * with it. Its leader is a small process of ours, the relay: the command leads
 * nothing, as it would not without us (setsid() fails for a leader), and the
 * group keeps its number while the command runs.
 *
 * A group that is not the terminal's foreground group cannot read from it. So
 * the command's group is made the foreground group where ours is, and the relay
 * sends on to our group what Ctrl-C, Ctrl-\, Ctrl-Z and a hangup then send to that
 * one alone: us, other commands of a pipeline, the script around us. In a pipeline,
 * where another command may need the terminal, it is only handed over when the
 * command asks for it: when it is stopped by SIGTTIN or SIGTTOU. */
#ifndef STAGGER_CLI_RUN_CHILD_GROUP_H
#define STAGGER_CLI_RUN_CHILD_GROUP_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

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

#endif
