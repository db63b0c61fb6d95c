/* The one place where our tests sleep for real: a wait of a day is ended by
 * somebody else, so that a test takes as long as a thread to wake up. */
#include <stagger/cancel.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/time.h>

#include <stagger/call.h>
#include <stagger/loop.h>

#include "tests/adapters/story.h"
#include "tests/harness.h"

static const char endless[] = "fixed base=1d jitter=none deadline=none";
static const stg_ns patience = 20 * STG_S; // for a busy machine

static stg_ns now(void)
{
    return stg_env_system()->now(NULL);
}

/* An operation in a thread that fails, and then waits for a day. */
typedef struct sleeper {
    stg_cancel *cancel;
    sem_t is_about_to_sleep;
    pthread_t thread;
    stg_report report;
    stg_ns woken_at;
} sleeper;

static void on_event(void *ctx, const stg_event *event)
{
    if (event->decision.next == STG_WAIT)
        sem_post(ctx);
}

static void *run_sleeper(void *arg)
{
    sleeper *s = arg;
    stg_policy policy = policy_of(endless);
    stg_hook hook = {.on = on_event, .ctx = &s->is_about_to_sleep};
    stg_loop r;

    stg_loop_begin(&r, &policy,
                   &(stg_with){.cancel = s->cancel, .hook = &hook});
    while (stg_loop_again(&r))
        stg_loop_report(&r, stg_failed(STG_FAULT_REFUSED));
    s->woken_at = now();
    s->report = stg_loop_result(&r);
    return NULL;
}

static void start_sleeper(sleeper *s, stg_cancel *cancel)
{
    *s = (sleeper){.cancel = cancel};
    CHECK(sem_init(&s->is_about_to_sleep, 0, 0) == 0);
    CHECK(pthread_create(&s->thread, NULL, run_sleeper, s) == 0);
}

static void await_sleep(sleeper *s)
{
    while (sem_wait(&s->is_about_to_sleep) != 0)
        CHECK(errno == EINTR);
}

static void check_woken(sleeper *s, stg_ns cancelled_at)
{
    CHECK(pthread_join(s->thread, NULL) == 0);
    CHECK(sem_destroy(&s->is_about_to_sleep) == 0);
    CHECK(s->woken_at >= cancelled_at);
    CHECK(s->woken_at - cancelled_at < patience);
    CHECK_INT(s->report.next, STG_GIVE_UP);
    CHECK_INT(s->report.why, STG_WHY_CANCELLED);
    CHECK_INT(s->report.attempts, 1);
    CHECK_INT(s->report.last.fault, STG_FAULT_REFUSED);
    CHECK(s->report.took < patience + STG_MIN);
}

TEST(cancel, is_not_set_when_it_is_zeroed)
{
    stg_cancel cancel = {0};

    CHECK(!stg_cancel_is_set(&cancel));
    stg_cancel_set(&cancel);
    CHECK(stg_cancel_is_set(&cancel));
    stg_cancel_set(&cancel);
    CHECK(stg_cancel_is_set(&cancel));
}

TEST(cancel, keeps_errno)
{
    stg_cancel cancel = {0};

    errno = EDOM;
    stg_cancel_set(&cancel);
    CHECK_INT(errno, EDOM);
    stg_cancel_set(&cancel);
    CHECK_INT(errno, EDOM);
}

/* At once, when the sleeper may not have lain down yet, and after a while. */
TEST(cancel, wakes_a_sleep_in_another_thread)
{
    for (int i = 0; i < 40; i++) {
        stg_cancel cancel = {0};
        stg_ns cancelled_at;
        sleeper s;

        start_sleeper(&s, &cancel);
        await_sleep(&s);
        if (i % 4 == 3)
            stg_env_system()->sleep(NULL, now() + 5 * STG_MS, NULL);
        cancelled_at = now();
        stg_cancel_set(&cancel);
        check_woken(&s, cancelled_at);
    }
}

TEST(cancel, wakes_all_who_share_it_and_nobody_else)
{
    enum { SLEEPERS = 8 };
    stg_cancel cancel = {0}, other_cancel = {0};
    sleeper s[SLEEPERS], other;
    stg_ns cancelled_at;

    start_sleeper(&other, &other_cancel);
    for (int i = 0; i < SLEEPERS; i++)
        start_sleeper(&s[i], &cancel);
    for (int i = 0; i < SLEEPERS; i++)
        await_sleep(&s[i]);
    await_sleep(&other);
    stg_env_system()->sleep(NULL, now() + 5 * STG_MS, NULL);
    cancelled_at = now();
    stg_cancel_set(&cancel);
    for (int i = 0; i < SLEEPERS; i++)
        check_woken(&s[i], cancelled_at);

    CHECK(!stg_cancel_is_set(&other_cancel));
    cancelled_at = now();
    stg_cancel_set(&other_cancel);
    check_woken(&other, cancelled_at);
}

TEST(cancel, ends_what_begins_after_it)
{
    stg_cancel cancel = {0};
    sleeper s;

    stg_cancel_set(&cancel);
    start_sleeper(&s, &cancel);
    CHECK(pthread_join(s.thread, NULL) == 0);
    CHECK_INT(s.report.why, STG_WHY_CANCELLED);
    CHECK_INT(s.report.attempts, 0);
    sem_destroy(&s.is_about_to_sleep);
}

static stg_outcome cancel_all(void *ctx)
{
    stg_cancel_set(ctx);
    return stg_failed(STG_FAULT_REFUSED);
}

TEST(cancel, ends_a_call_from_within)
{
    stg_policy policy = policy_of(endless);
    stg_cancel cancel = {0};
    stg_report r;

    CHECK(!stg_call(&policy, &(stg_with){.cancel = &cancel}, cancel_all,
                    &cancel, &r));
    CHECK_INT(r.why, STG_WHY_CANCELLED);
    CHECK_INT(r.attempts, 1);
}

/* -- signals */

static stg_cancel interrupted;
static volatile sig_atomic_t signals;

static void on_signal(int number)
{
    (void)number;
    signals++;
    stg_cancel_set(&interrupted);
}

static void count_signal(int number)
{
    (void)number;
    signals++;
}

/* Handles SIGALRM, which comes after 20 ms and, if every is not 0, after each
 * `every` ms. */
static void start_signals(void (*handler)(int), int flags, int every)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    struct itimerval timer = {.it_value = {.tv_usec = 20000},
                              .it_interval = {.tv_usec = every * 1000}};

    signals = 0;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
}

static void stop_signals(void)
{
    CHECK(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL) == 0);
    CHECK(signal(SIGALRM, SIG_DFL) != SIG_ERR);
}

static void check_signal_cancels(int flags)
{
    stg_policy policy = policy_of(endless);
    stg_ns began_at = now();
    stg_loop r;

    interrupted = (stg_cancel){0};
    start_signals(on_signal, flags, 0);
    stg_loop_begin(&r, &policy, &(stg_with){.cancel = &interrupted});
    while (stg_loop_again(&r))
        stg_loop_report(&r, stg_failed(STG_FAULT_REFUSED));
    stop_signals();
    CHECK_INT(signals, 1);
    CHECK(now() - began_at < patience);
    CHECK_INT(stg_loop_result(&r).why, STG_WHY_CANCELLED);
}

TEST(cancel, can_be_set_by_a_signal_handler)
{
    check_signal_cancels(0);
}

TEST(cancel, can_be_set_by_a_signal_handler_that_restarts_calls)
{
    check_signal_cancels(SA_RESTART);
}

/* A signal that cancels nothing ends no wait early. */
static void check_sleeps_through(const stg_cancel *cancel)
{
    stg_ns until_at = now() + 60 * STG_MS;

    start_signals(count_signal, 0, 5);
    CHECK(stg_env_system()->sleep(NULL, until_at, cancel));
    CHECK(now() >= until_at);
    stop_signals();
    CHECK(signals > 0);
}

TEST(cancel, leaves_a_sleep_alone_that_other_signals_disturb)
{
    stg_cancel cancel = {0};

    check_sleeps_through(NULL);
    check_sleeps_through(&cancel);
}
