#include "cli/child.h"

#include <errno.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <stagger/env.h>

extern char **environ;

static const int stopping[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int steering[] = {SIGUSR1, SIGUSR2};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const stg_ns grace = 5 * STG_S;

static bool is_stopping(int signal)
{
    for (size_t i = 0; i < COUNT(stopping); i++)
        if (stopping[i] == signal)
            return true;
    return false;
}

/* What our parent ignores (nohup) stays ignored, here and in the command. */
static void watch(child *c, int signal)
{
    struct sigaction action;

    if (sigaction(signal, NULL, &action) == 0 && action.sa_handler != SIG_IGN)
        sigaddset(&c->watched, signal);
}

void stg_child_init(child *c)
{
    c->stopped_by = 0;
    sigemptyset(&c->watched);
    for (size_t i = 0; i < COUNT(stopping); i++)
        watch(c, stopping[i]);
    for (size_t i = 0; i < COUNT(steering); i++)
        watch(c, steering[i]);
    signal(SIGCHLD, SIG_DFL); // ignored, it would eat exit codes
    sigaddset(&c->watched, SIGCHLD);
    sigprocmask(SIG_BLOCK, &c->watched, &c->before);
}

static stg_ns clock_now(void)
{
    return stg_env_system()->now(NULL);
}

/* The next watched signal, or 0 when until_at has come. */
static int next_signal(const child *c, stg_ns until_at, siginfo_t *info)
{
    for (;;) {
        stg_ns left = stg_ns_sub(until_at, clock_now());
        struct timespec rest = {.tv_sec = (time_t)(left / STG_S),
                                .tv_nsec = (long)(left % STG_S)};
        int signal = until_at == STG_NEVER
                         ? sigwaitinfo(&c->watched, info)
                         : sigtimedwait(&c->watched, info, &rest);

        if (signal > 0)
            return signal;
        if (errno == EAGAIN && clock_now() >= until_at)
            return 0;
    }
}

bool stg_child_sleep(child *c, stg_ns until_at)
{
    siginfo_t info;
    int signal;

    while ((signal = next_signal(c, until_at, &info)) != 0)
        if (is_stopping(signal)) {
            c->stopped_by = signal;
            return false;
        }
    return true;
}

static int start(const child *c, char **argv, pid_t *pid)
{
    posix_spawnattr_t attributes;
    int error;

    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setsigmask(&attributes, &c->before);
    error = posix_spawnp(pid, argv[0], NULL, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    return error;
}

/* Ctrl-C and Ctrl-\ signal the terminal's whole foreground group: a command
 * that is in it, with us, has the signal already. */
static bool has_it_already(pid_t pid, int signal, const siginfo_t *info)
{
    bool is_from_terminal = info->si_code > 0;

    return is_from_terminal && (signal == SIGINT || signal == SIGQUIT) &&
           getpgid(pid) == getpgrp();
}

static void pass_on(child *c, pid_t pid, int signal, const siginfo_t *info)
{
    if (is_stopping(signal))
        c->stopped_by = signal;
    if (!has_it_already(pid, signal, info))
        kill(pid, signal);
}

static bool has_ended(pid_t pid, int *code)
{
    int status;

    if (waitpid(pid, &status, WNOHANG) != pid)
        return false;
    *code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return true;
}

child_end stg_child_run(child *c, char **argv, stg_ns until_at)
{
    enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };
    child_end end = {0};
    siginfo_t info;
    pid_t pid;

    end.error = start(c, argv, &pid);
    if (end.error != 0) {
        end.code = end.error == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
        return end;
    }
    while (!has_ended(pid, &end.code)) {
        int signal = next_signal(c, until_at, &info);

        if (signal == 0) {
            kill(pid, end.is_timeout ? SIGKILL : SIGTERM);
            until_at = end.is_timeout ? STG_NEVER : clock_now() + grace;
            end.is_timeout = true;
        } else if (signal != SIGCHLD) {
            pass_on(c, pid, signal, &info);
        }
    }
    return end;
}
