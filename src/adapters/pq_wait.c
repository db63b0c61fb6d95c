/* pq_wait.c - the asynchronous calls of libpq, so that no wait is longer than
 * the attempt may take. A command whose time is over is cancelled at the
 * server, and its session ends with it: a cancel request names a session, and
 * could hit the next command. */
#include "adapters/pq_internal.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include <stagger/call.h>

enum { POLL_MS_MAX = 60000 };
static const stg_ns SLICE = 50 * STG_MS;  /* between looks at a cancel flag */
static const stg_ns GRACE = 250 * STG_MS; /* for the server to end a command */

/* -- until when ------------------------------------------------------------- */

stg_ns stg_pq_now(const stg_env *env)
{
    const stg_operation op = {.with = {.env = env}};

    return stg_operation_now(&op);
}

/* Of the operation that is in an attempt on this thread (call.c). Outside of
 * one there is no limit. */
stg_pq_limit stg_pq_limit_of_attempt(void)
{
    const stg_retry *r = stg_call_current();
    stg_pq_limit l = {.at = STG_NEVER};

    if (r == NULL)
        return l;
    if (r->with != NULL) {
        l.env = r->with->env;
        l.cancel = r->with->cancel;
    }
    l.at = stg_ns_add(r->since_at, stg_retry_timeout(r, r->since_at));
    return l;
}

stg_ns stg_pq_time_left(const stg_pq_limit *l)
{
    return l->at == STG_NEVER ? STG_NEVER
                              : stg_ns_sub(l->at, stg_pq_now(l->env));
}

bool stg_pq_is_cancelled(const stg_pq_limit *l)
{
    return l->cancel != NULL && stg_cancel_is_set(l->cancel);
}

bool stg_pq_is_over(const stg_pq_limit *l)
{
    return stg_pq_is_cancelled(l) || stg_pq_time_left(l) == 0;
}

static int poll_ms(const stg_pq_limit *l)
{
    stg_ns left = stg_pq_time_left(l);

    if (l->cancel != NULL)
        left = stg_ns_min(left, SLICE);
    if (left == STG_NEVER)
        return -1;
    return (int)stg_ns_min(left / STG_MS + 1, POLL_MS_MAX);
}

/* -- waiting ---------------------------------------------------------------- */

/* True also where poll() fails: the next call of libpq says what is wrong. */
bool stg_pq_wait_for(const PGconn *conn, short events, const stg_pq_limit *l)
{
    struct pollfd fd = {.fd = PQsocket(conn), .events = events};

    while (fd.fd >= 0) {
        int ready;

        if (stg_pq_is_over(l))
            return false;
        ready = poll(&fd, 1, poll_ms(l));
        if (ready > 0 || (ready < 0 && errno != EINTR))
            break;
    }
    return true;
}

static void *run_cancel(void *ctx)
{
    PGcancel *cancel = ctx;
    char words[256];

    (void)PQcancel(cancel, words, sizeof words);
    PQfreeCancel(cancel);
    return NULL;
}

/* Asks the server to end the command that is under way. By a thread, for
 * PQcancel() waits for the server, and no time ends that. */
static void stop_command(PGconn *conn)
{
    PGcancel *cancel = PQgetCancel(conn);
    sigset_t all, before;
    pthread_t thread;

    if (cancel == NULL)
        return;
    // No signal of the application is handled on the new thread.
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, run_cancel, cancel) == 0)
        pthread_detach(thread);
    else
        PQfreeCancel(cancel);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void stg_pq_cut(PGconn *conn)
{
    int fd = PQsocket(conn);

    if (fd < 0 || PQstatus(conn) != CONNECTION_OK)
        return;
    (void)shutdown(fd, SHUT_RDWR);
    while (PQstatus(conn) == CONNECTION_OK && PQconsumeInput(conn) == 1)
        ; // what had come before the end
}

bool stg_pq_take(PGconn *conn, const stg_pq_limit *l, PGresult **res)
{
    int unsent = PQflush(conn);

    while (PQisBusy(conn) == 1) {
        if (!stg_pq_wait_for(conn, unsent == 1 ? POLLIN | POLLOUT : POLLIN, l))
            return false;
        if (PQconsumeInput(conn) == 0)
            break; // but the server may have said why
        unsent = PQflush(conn);
    }
    *res = PQgetResult(conn);
    return true;
}

bool stg_pq_is_pause(const PGresult *res)
{
    switch (PQresultStatus(res)) {
    case PGRES_COPY_IN:
    case PGRES_COPY_OUT:
    case PGRES_COPY_BOTH:
    case PGRES_PIPELINE_SYNC:
        return true;
    default:
        return false;
    }
}

/* The time is over: the server gets a little more to end the command, and to
 * say so. What it was asked might hit the next command too, so the session ends
 * either way. */
static PGresult *take_last(PGconn *conn, const stg_pq_limit *l)
{
    stg_pq_limit rest = {.env = l->env,
                         .at = stg_ns_add(stg_pq_now(l->env), GRACE)};
    PGresult *res = NULL;
    bool is_taken;

    stop_command(conn);
    is_taken = stg_pq_take(conn, &rest, &res);
    stg_pq_cut(conn);
    return is_taken ? res : PQgetResult(conn); // which says that it is cut
}

/* Behind what the server says before it ends the session comes an error of
 * libpq's own, that the session has ended: it says less than an error of the
 * server, and nothing of a COMMIT that was answered. */
static bool is_less(const PGresult *next, PGresult *last)
{
    return PQresultStatus(next) == PGRES_FATAL_ERROR &&
           PQresultErrorField(next, PG_DIAG_SQLSTATE) == NULL &&
           (PQresultErrorField(last, PG_DIAG_SQLSTATE) != NULL ||
            (last != NULL && strcmp(PQcmdStatus(last), "COMMIT") == 0));
}

/* The last result counts, as PQexec() has it, but for what a connection that breaks
 * then adds behind an answer. */
static PGresult *wait_until(PGconn *conn, const stg_pq_limit *l)
{
    PGresult *last = NULL, *next = NULL;
    bool is_taken = true;

    while (is_taken && (last == NULL || !stg_pq_is_pause(last))) {
        is_taken = stg_pq_take(conn, l, &next);
        if (!is_taken)
            next = take_last(conn, l);
        if (next == NULL)
            break;
        if (is_less(next, last)) {
            PQclear(next);
            continue;
        }
        PQclear(last);
        last = next;
    }
    return last;
}

PGresult *stg_pq_ask(PGconn *conn, const char *sql, const stg_pq_limit *l)
{
    int is_nonblocking = PQisnonblocking(conn);
    PGresult *res = NULL;

    (void)PQsetnonblocking(conn, 1);
    if (PQsendQuery(conn, sql) == 1)
        res = wait_until(conn, l);
    (void)PQsetnonblocking(conn, is_nonblocking);
    return res;
}

stg_pq_limit stg_pq_limit_of_wait(void)
{
    stg_pq_limit l = stg_pq_limit_of_attempt();

    l.at = stg_ns_add(l.at, GRACE);
    return l;
}

PGresult *stg_pq_wait(PGconn *conn)
{
    stg_pq_limit l = stg_pq_limit_of_wait();

    return conn == NULL ? NULL : wait_until(conn, &l);
}

PGresult *stg_pq_exec(PGconn *conn, const char *sql)
{
    stg_pq_limit l = stg_pq_limit_of_wait();

    return conn == NULL || sql == NULL ? NULL : stg_pq_ask(conn, sql, &l);
}
