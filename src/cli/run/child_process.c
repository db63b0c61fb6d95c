/* The process of an attempt: executed as execvp() would, but with errors that
 * come back to us, and in a process group of its own, so that signals reach
 * whatever it has started. */
#include "cli/run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* -- execution -------------------------------------------------------------- */

/* Whether the first line has no byte 0: the test by which shells tell a script
 * from a program of another machine. */
static bool is_script(const char *file)
{
    char line[256];
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof line);
    const char *end;

    if (fd >= 0)
        close(fd);
    if (length <= 0)
        return length == 0;
    end = memchr(line, '\n', (size_t)length);
    return memchr(line, '\0', (size_t)(end == NULL ? length : end - line)) ==
           NULL;
}

/* Returns an errno. */
static int run_by_shell(char *file, char **argv)
{
    char shell[] = "/bin/sh";
    char **words;
    size_t count = 0;
    int error;

    while (argv[count] != NULL)
        count++;
    words = calloc(count + 2, sizeof *words);
    if (words == NULL)
        return ENOMEM;
    words[0] = shell;
    words[1] = file;
    // From the second word to the NULL.
    memcpy(words + 2, argv + 1, count * sizeof *words);
    execv(shell, words);
    error = errno;
    free(words);
    return error;
}

/* Returns an errno. */
static int execute(char *file, char **argv)
{
    int error;

    execv(file, argv);
    error = errno;
    if (error == ENOEXEC && is_script(file))
        return run_by_shell(file, argv);
    return error;
}

int stg_child_exec(char **argv)
{
    const char *path = getenv("PATH"), *end;
    char file[PATH_MAX];
    bool is_denied = false;
    int error, length;

    if (argv[0][0] == '\0' || strchr(argv[0], '/') != NULL)
        return execute(argv[0], argv);
    for (path = path == NULL ? "/bin:/usr/bin" : path;; path = end + 1) {
        end = path + strcspn(path, ":");
        // An empty element is the working directory.
        length = snprintf(file, sizeof file, "%.*s/%s",
                          end == path ? 1 : (int)(end - path),
                          end == path ? "." : path, argv[0]);
        error = length < (int)sizeof file ? execute(file, argv) : ENOENT;
        is_denied = is_denied || error == EACCES;
        if (error != ENOENT && error != ENOTDIR && error != EACCES)
            return error;
        if (*end == '\0')
            return is_denied ? EACCES : ENOENT;
    }
}

/* -- process groups --------------------------------------------------------- */

#ifdef __linux__
#include <sys/prctl.h>
#endif

/* From us to the relay: send on what you have, and end. It is blocked from the
 * start, and the relay has no children of its own. */
enum { LAST = SIGCHLD };

/* Sends on what others than `us` send to the group: the terminal, or the relay
 * of a `stagger run` that is our command. */
static _Noreturn void relay(const sigset_t *signals, pid_t us, pid_t our_group)
{
    const struct timespec none = {0};
    bool is_last = false;
    int signal = 0;
    sigset_t all;
    siginfo_t info;
    // Groups 0 (in another namespace) and 1 (a container's first process) are
    // not signalled: kill(0) means the caller's group, kill(-1) every process.
    pid_t to = our_group > 1 ? -our_group : us;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    while (getppid() == us && (signal > 0 || !is_last)) {
        signal = is_last ? sigtimedwait(signals, &info, &none)
                         : sigwaitinfo(signals, &info);
        if (signal > 0 && info.si_pid == us)
            is_last = is_last || signal == LAST;
        else if (signal > 0 && signal != LAST)
            kill(to, signal);
    }
    _exit(0);
}

static bool is_empty(pid_t group)
{
    return kill(-group, 0) != 0 && errno == ESRCH;
}

/* Makes `to` the foreground group if `from` is, or one that has died. Returns
 * whether it is one now. */
static bool move_terminal(pid_t from, pid_t to)
{
    int terminal = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    sigset_t output, before;
    pid_t now;

    if (terminal < 0)
        return false;
    // A background group is stopped for this unless it blocks SIGTTOU.
    sigemptyset(&output);
    sigaddset(&output, SIGTTOU);
    sigprocmask(SIG_BLOCK, &output, &before);
    now = tcgetpgrp(terminal);
    if (now > 1 && to > 0 && (now == from || is_empty(now)) &&
        tcsetpgrp(terminal, to) == 0)
        now = to;
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(terminal);
    return now == to;
}

static bool is_pipe(int file)
{
    struct stat about;

    return fstat(file, &about) == 0 &&
           (S_ISFIFO(about.st_mode) || S_ISSOCK(about.st_mode));
}

int stg_child_group_begin(child_group *g, const sigset_t *watched)
{
    static const int terminals[] = {SIGINT, SIGQUIT, SIGHUP, SIGTSTP};
    pid_t us = getpid(), our_group = getpgrp();
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, LAST);
    for (size_t i = 0; i < sizeof terminals / sizeof *terminals; i++)
        if (sigismember(watched, terminals[i]))
            sigaddset(&signals, terminals[i]);
    g->id = fork();
    if (g->id < 0)
        return errno;
    if (g->id == 0)
        relay(&signals, us, our_group);
    setpgid(g->id, g->id);
    if (tcgetpgrp(STDIN_FILENO) == our_group && !is_pipe(STDOUT_FILENO))
        g->wants_terminal = true;
    g->has_terminal = false;
    if (g->wants_terminal)
        (void)stg_child_group_give_terminal(g);
    return 0;
}

bool stg_child_group_give_terminal(child_group *g)
{
    g->wants_terminal = true;
    g->has_terminal = move_terminal(getpgrp(), g->id);
    return g->has_terminal;
}

void stg_child_group_take_terminal(child_group *g)
{
    if (g->has_terminal)
        (void)move_terminal(g->id, getpgrp());
    g->has_terminal = false;
}

void stg_child_group_signal(const child_group *g, int signal)
{
    kill(-g->id, signal);
}

void stg_child_group_end(child_group *g)
{
    stg_child_group_take_terminal(g);
    kill(g->id, LAST);
    kill(g->id, SIGCONT); // somebody may have stopped all of the group
    waitpid(g->id, NULL, 0);
}

bool stg_child_group_is_empty(const child_group *g)
{
    // As the first process of a container we are the one that has to reap
    // orphans.
    while (waitpid(-g->id, NULL, WNOHANG) > 0)
        continue;
    return is_empty(g->id);
}
