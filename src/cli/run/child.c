/* One attempt: a command in a process group of its own, until it ends.
 *
 * It must feel like the command alone in its terminal. Signals that we get are
 * passed on; Ctrl-Z stops the command first and then us; fg continues both. On a
 * timeout the group gets SIGTERM, and SIGKILL what is left of it later. Signals
 * are blocked and taken one by one by sigtimedwait(), so that none is lost
 * between a check and a wait. */
#include "cli/run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <stagger/env.h>

static const int stopping[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
static const int steering[] = {SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* An editor puts the terminal in order before it stops. A program in vfork()
 * does not stop, nor does one that ignores SIGTSTP. */
static const stg_ns time_to_stop = 200 * STG_MS;

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

void stg_child_init(child *c, stg_ns kill_after)
{
    *c = (child){.kill_after = kill_after, .suspend_at = STG_NEVER};
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

/* Sends our group a signal that stops it, and stops. Returns, when we go on,
 * whether we were stopped: a group that no shell looks after cannot be. */
static bool stop(int signal)
{
    sigset_t stops, continues, before;

    sigemptyset(&stops);
    sigaddset(&stops, signal);
    sigemptyset(&continues);
    sigaddset(&continues, SIGCONT);
    kill(0, signal);
    sigprocmask(SIG_UNBLOCK, &stops, &before); // here
    sigprocmask(SIG_SETMASK, &before, NULL);
    return sigtimedwait(&continues, NULL, &(struct timespec){0}) == SIGCONT;
}

/* The command goes on, with the terminal if it had it. */
static void resume(child *c)
{
    c->suspend_at = STG_NEVER;
    if (c->group.wants_terminal)
        (void)stg_child_group_give_terminal(&c->group);
    stg_child_group_signal(&c->group, SIGCONT);
}

static void suspend(child *c, int signal)
{
    bool wants_terminal = signal != SIGTSTP;

    stg_child_group_take_terminal(&c->group);
    // A background group that nobody can bring to the foreground reads nothing:
    // the system ends it so when it loses its shell.
    if (!stop(signal) && wants_terminal && sigismember(&c->watched, SIGHUP))
        stg_child_group_signal(&c->group, SIGHUP);
    resume(c);
}

/* The command was stopped: for want of the terminal, which it gets if it is
 * ours; from the terminal; or by somebody else, who will continue it. */
static void follow_stop(child *c, int signal)
{
    bool wants_terminal = signal == SIGTTIN || signal == SIGTTOU;

    if (wants_terminal && stg_child_group_give_terminal(&c->group))
        stg_child_group_signal(&c->group, SIGCONT);
    else if (wants_terminal)
        suspend(c, signal);
    else if (c->group.has_terminal || c->suspend_at != STG_NEVER)
        suspend(c, SIGTSTP);
}

/* The command may have left its group (setsid). */
static void tell(const child *c, int signal, bool is_group_told)
{
    if (!is_group_told)
        stg_child_group_signal(&c->group, signal);
    if (c->pid != 0 && getpgid(c->pid) != c->group.id)
        kill(c->pid, signal);
}

static void pass_on(child *c, int signal, const siginfo_t *info)
{
    bool is_from_relay = info->si_pid == c->group.id;

    if (is_stopping(signal))
        c->stopped_by = signal;
    if (signal == SIGTSTP)
        c->suspend_at = clock_now() + time_to_stop;
    if (signal == SIGCONT && c->pid != 0)
        resume(c);
    else if (signal != SIGCHLD)
        tell(c, signal, is_from_relay);
}

bool stg_child_sleep(child *c, stg_ns until_at)
{
    siginfo_t info;
    int signal;

    while ((signal = next_signal(c, until_at, &info)) != 0) {
        if (is_stopping(signal)) {
            c->stopped_by = signal;
            return false;
        }
        if (signal == SIGTSTP)
            (void)stop(signal);
    }
    return true;
}

/* In the new process; an error goes to report. */
static _Noreturn void become(const child *c, char **argv, int report)
{
    int error;

    setpgid(0, c->group.id);
    sigprocmask(SIG_SETMASK, &c->before, NULL);
    error = stg_child_exec(argv);
    while (write(report, &error, sizeof error) < 0 && errno == EINTR)
        continue;
    _exit(EXIT_FAILURE);
}

/* Returns 0 or an errno. That the command is not executed is seen at its end:
 * Ctrl-Z may stop it before, and must find us listening. */
static int fork_command(child *c, char **argv)
{
    int report[2], error = 0;

    if (pipe(report) != 0)
        return errno;
    fcntl(report[0], F_SETFD, FD_CLOEXEC);
    fcntl(report[1], F_SETFD, FD_CLOEXEC);
    c->pid = fork();
    if (c->pid == 0)
        become(c, argv, report[1]);
    if (c->pid < 0)
        error = errno;
    close(report[1]);
    c->report = report[0];
    if (error != 0)
        close(c->report);
    return error;
}

/* The group exists before the command does, so that no signal can miss it. */
static int start(child *c, char **argv)
{
    int error = stg_child_group_begin(&c->group, &c->watched);

    if (error != 0)
        return error;
    c->suspend_at = STG_NEVER;
    error = fork_command(c, argv);
    if (error != 0)
        stg_child_group_end(&c->group);
    return error;
}

static bool has_ended(child *c, int *code)
{
    int status;

    while (waitpid(c->pid, &status, WNOHANG | WUNTRACED) == c->pid) {
        if (WIFSTOPPED(status)) {
            follow_stop(c, WSTOPSIG(status));
            continue;
        }
        *code =
            WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        return true;
    }
    return false;
}

/* After the end of the command. Returns why it was not executed, or 0. */
static int leave(child *c)
{
    int error = 0;

    while (read(c->report, &error, sizeof error) < 0 && errno == EINTR)
        continue;
    close(c->report);
    c->pid = 0;
    c->suspend_at = STG_NEVER;
    stg_child_group_end(&c->group);
    return error;
}

/* The relay may have told us of Ctrl-C later than the command's end did. Called
 * when nobody is left to pass a signal on to. */
static void note_late_signals(child *c)
{
    const struct timespec none = {0};
    sigset_t signals;
    int signal;

    sigemptyset(&signals);
    for (size_t i = 0; i < COUNT(stopping); i++)
        if (sigismember(&c->watched, stopping[i]))
            sigaddset(&signals, stopping[i]);
    while ((signal = sigtimedwait(&signals, NULL, &none)) > 0)
        c->stopped_by = signal;
}

/* Waits until the processes that a command left in its group have ended, and
 * kills them at kill_at: after a timeout they get as much time as the command.
 * They are not our children, so that no signal tells us of their end. */
static void end_rest(child *c, stg_ns kill_at)
{
    static const stg_ns look_every = 10 * STG_MS;
    siginfo_t info;

    while (!stg_child_group_is_empty(&c->group)) {
        stg_ns now = clock_now();
        int signal;

        if (now >= kill_at) {
            stg_child_group_signal(&c->group, SIGKILL);
            return;
        }
        signal = next_signal(c, stg_ns_min(kill_at, now + look_every), &info);
        if (signal == SIGTSTP)
            (void)stop(signal);
        else if (signal != 0)
            pass_on(c, signal, &info);
    }
}

/* Returns when to kill. What is stopped ends only when it goes on. */
static stg_ns end(const child *c)
{
    tell(c, SIGTERM, false);
    tell(c, SIGCONT, false);
    return stg_ns_add(clock_now(), c->kill_after);
}

/* To the end of the command. Returns when what it left is killed; STG_NEVER:
 * it is, or is left alone. */
static stg_ns watch_over(child *c, stg_ns until_at, child_end *result)
{
    siginfo_t info;

    while (!has_ended(c, &result->code)) {
        int signal = next_signal(c, stg_ns_min(until_at, c->suspend_at), &info);

        if (signal != 0) {
            pass_on(c, signal, &info);
        } else if (clock_now() >= c->suspend_at) {
            suspend(c, SIGTSTP);
        } else if (!result->is_timeout) {
            until_at = end(c);
            result->is_timeout = true;
        } else {
            tell(c, SIGKILL, false);
            until_at = STG_NEVER;
        }
    }
    return result->is_timeout ? until_at : STG_NEVER;
}

/* A command that ended in time may leave processes in its group: they are left
 * alone. Those of one that ran out of time are ended with it. */
child_end stg_child_run(child *c, char **argv, stg_ns until_at)
{
    enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };
    child_end result = {.error = start(c, argv)};
    stg_ns kill_at;

    if (result.error == 0) {
        kill_at = watch_over(c, until_at, &result);
        result.error = leave(c);
        if (kill_at != STG_NEVER)
            end_rest(c, kill_at);
        note_late_signals(c);
    }
    if (result.error != 0)
        result.code = result.error == ENOENT ? NOT_FOUND : NOT_EXECUTABLE;
    return result;
}
