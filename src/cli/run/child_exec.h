/* child_exec.h - executes a command in place of this process. */
#ifndef STAGGER_CLI_RUN_CHILD_EXEC_H
#define STAGGER_CLI_RUN_CHILD_EXEC_H

/* Looks for argv[0] along PATH, unless it has a slash, and executes it, as
 * execvp() does. A script without a "#!" line is run by /bin/sh; execvp() of
 * musl refuses it, and that of glibc hands programs of another machine to the
 * shell, too. argv ends with NULL. Returns only on failure: an errno. */
int stg_child_exec(char **argv);

#endif
