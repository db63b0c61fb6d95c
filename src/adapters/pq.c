/* pq.c - the conversation with libpq: its asynchronous calls, so that no wait
 * is longer than the attempt may take. When a session cannot be used any more
 * it is cut, which makes its connection CONNECTION_BAD; the next attempt then
 * begins with a new one. There is no other state between attempts. */
#include <stagger/pq.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "adapters/pq_words.h"

enum { POLL_MS_MAX = 60000 };
static const stg_ns SLICE = 50 * STG_MS;  /* between looks at a cancel flag */
static const stg_ns GRACE = 250 * STG_MS; /* for the server to end a command */
static const stg_ns PATIENCE = STG_S;     /* for ROLLBACK */

typedef struct run {
    PGconn *conn;
    stg_pq_fn *fn;
    void *ctx;
    stg_pq_options options;
    bool is_timeout_known;
    uint64_t session_ms; /* the session's own statement_timeout; 0: none */
} run;

/* -- until when ------------------------------------------------------------- */

typedef struct limit {
    const stg_env *env;
    const stg_cancel *cancel; /* may be NULL */
    stg_ns at;                /* on the clock of env; STG_NEVER: none */
} limit;

static stg_ns read_clock(const stg_env *env)
{
    const stg_operation op = {.with = {.env = env}};

    return stg_operation_now(&op);
}

/* Of the attempt that this thread makes. */
static limit limit_of_attempt(void)
{
    const stg_retry *r = stg_call_current();
    limit l = {.at = STG_NEVER};

    if (r == NULL)
        return l;
    if (r->with != NULL) {
        l.env = r->with->env;
        l.cancel = r->with->cancel;
    }
    l.at = stg_ns_add(r->since_at, stg_retry_timeout(r, r->since_at));
    return l;
}

static stg_ns time_left(const limit *l)
{
    return l->at == STG_NEVER ? STG_NEVER
                              : stg_ns_sub(l->at, read_clock(l->env));
}

static bool is_cancelled(const limit *l)
{
    return l->cancel != NULL && stg_cancel_is_set(l->cancel);
}

static bool is_over(const limit *l)
{
    return is_cancelled(l) || time_left(l) == 0;
}

static int poll_ms(const limit *l)
{
    stg_ns left = time_left(l);

    if (l->cancel != NULL)
        left = stg_ns_min(left, SLICE);
    if (left == STG_NEVER)
        return -1;
    return (int)stg_ns_min(left / STG_MS + 1, POLL_MS_MAX);
}

/* -- waiting ---------------------------------------------------------------- */

/* Until the socket is ready, or of no use. False: the time is over. */
static bool wait_for(const PGconn *conn, short events, const limit *l)
{
    struct pollfd fd = {.fd = PQsocket(conn), .events = events};

    while (fd.fd >= 0) {
        int ready;

        if (is_over(l))
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
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, run_cancel, cancel) == 0)
        pthread_detach(thread);
    else
        PQfreeCancel(cancel);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Ends the session: the server rolls back what is open. */
static void cut(PGconn *conn)
{
    int fd = PQsocket(conn);

    if (fd < 0 || PQstatus(conn) != CONNECTION_OK)
        return;
    (void)shutdown(fd, SHUT_RDWR);
    while (PQstatus(conn) == CONNECTION_OK && PQconsumeInput(conn) == 1)
        ; // what had come before the end
}

/* Sends what is to be sent, and waits for the next result. False: the time was
 * over first. */
static bool take(PGconn *conn, const limit *l, PGresult **res)
{
    int unsent = PQflush(conn);

    while (PQisBusy(conn) == 1) {
        if (!wait_for(conn, unsent == 1 ? POLLIN | POLLOUT : POLLIN, l))
            return false;
        if (PQconsumeInput(conn) == 0)
            break; // but the server may have said why
        unsent = PQflush(conn);
    }
    *res = PQgetResult(conn);
    return true;
}

static bool is_pause(const PGresult *res)
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
static PGresult *take_last(PGconn *conn, const limit *l)
{
    limit rest = {.env = l->env, .at = stg_ns_add(read_clock(l->env), GRACE)};
    PGresult *res = NULL;
    bool is_taken;

    stop_command(conn);
    is_taken = take(conn, &rest, &res);
    cut(conn);
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

static PGresult *wait_until(PGconn *conn, const limit *l)
{
    PGresult *last = NULL, *next = NULL;
    bool is_taken = true;

    while (is_taken && (last == NULL || !is_pause(last))) {
        is_taken = take(conn, l, &next);
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

/* Not blocking, or a long command would wait for a server that reads nothing. A
 * connection that breaks stays so until it is reset. */
static PGresult *ask(PGconn *conn, const char *sql, const limit *l)
{
    int is_nonblocking = PQisnonblocking(conn);
    PGresult *res = NULL;

    (void)PQsetnonblocking(conn, 1);
    if (PQsendQuery(conn, sql) == 1)
        res = wait_until(conn, l);
    (void)PQsetnonblocking(conn, is_nonblocking);
    return res;
}

/* The server is to end the statement itself, so that the session can go on. */
static limit limit_of_wait(void)
{
    limit l = limit_of_attempt();

    l.at = stg_ns_add(l.at, GRACE);
    return l;
}

PGresult *stg_pq_wait(PGconn *conn)
{
    limit l = limit_of_wait();

    return conn == NULL ? NULL : wait_until(conn, &l);
}

PGresult *stg_pq_exec(PGconn *conn, const char *sql)
{
    limit l = limit_of_wait();

    return conn == NULL || sql == NULL ? NULL : ask(conn, sql, &l);
}

/* -- results ---------------------------------------------------------------- */

static bool is_on(const PGconn *conn, const char *parameter)
{
    const char *value = PQparameterStatus(conn, parameter);

    return value != NULL && strcmp(value, "on") == 0;
}

static stg_pq_facts facts_of(const PGconn *conn, const PGresult *res)
{
    limit l = limit_of_attempt();
    const char *severity =
        PQresultErrorField(res, PG_DIAG_SEVERITY_NONLOCALIZED);

    return (stg_pq_facts){
        .status = PQresultStatus(res), // of NULL: PGRES_FATAL_ERROR
        .sqlstate = PQresultErrorField(res, PG_DIAG_SQLSTATE),
        .is_fatal = severity != NULL && strcmp(severity, "ERROR") != 0,
        .is_broken = PQstatus(conn) != CONNECTION_OK,
        .is_standby = is_on(conn, "in_hot_standby"),
        .is_late = time_left(&l) == 0,
        .is_cancelled = is_cancelled(&l),
    };
}

stg_outcome stg_pq_result(const PGconn *conn, const PGresult *res)
{
    stg_pq_facts facts = facts_of(conn, res);

    return stg_pq_sort(&facts);
}

static stg_outcome result_of(const PGconn *conn, PGresult *res)
{
    stg_outcome o = stg_pq_result(conn, res);

    PQclear(res);
    return o;
}

static stg_outcome out_of_time(const limit *l, stg_fault fault)
{
    return stg_failed(is_cancelled(l) ? STG_FAULT_CANCELLED : fault);
}

/* A function has left a state in which it cannot go on. */
static stg_outcome misused(void)
{
    stg_outcome o = stg_failed(STG_FAULT_INVALID);

    o.permanent = true;
    return o;
}

/* -- connecting ------------------------------------------------------------- */

static bool is_named(const PQconninfoOption *o, const char *keyword)
{
    return o->val != NULL && strcmp(o->keyword, keyword) == 0;
}

/* How long one of the hosts may take. */
static stg_ns find_patience(PGconn *conn, const limit *l)
{
    PQconninfoOption *options = PQconninfo(conn), *o;
    stg_ns left = time_left(l);
    uint64_t hosts = 1;
    long seconds = 0;

    for (o = options; o != NULL && o->keyword != NULL; o++) {
        if (is_named(o, "host") || is_named(o, "hostaddr"))
            hosts = stg_ns_max(hosts, stg_pq_count_hosts(o->val));
        if (is_named(o, "connect_timeout"))
            seconds = strtol(o->val, NULL, 10);
    }
    PQconninfoFree(options);
    if (left != STG_NEVER)
        left /= hosts;
    return seconds > 0 ? stg_ns_min(left, (stg_ns)seconds * STG_S) : left;
}

/* A host that does not answer is left for the next one by ending its socket:
 * libpq itself knows no time here. */
static bool finish_connecting(PGconn *conn, const limit *l)
{
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    stg_ns patience = find_patience(conn, l);
    limit host = *l;

    host.at = stg_ns_add(read_clock(l->env), patience);
    while (status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED) {
        short events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;

        if (!wait_for(conn, events, &host)) {
            if (is_over(l))
                return false;
            (void)shutdown(PQsocket(conn), SHUT_RDWR);
            host.at = stg_ns_add(read_clock(l->env), patience);
        }
        status = PQresetPoll(conn);
    }
    return status == PGRES_POLLING_OK;
}

static stg_outcome refusal_of(PGconn *conn, const limit *l)
{
    if (is_over(l))
        return out_of_time(l, STG_FAULT_CONNECT_TIMEOUT);
    if (PQconnectionNeedsPassword(conn))
        return stg_failed_sqlstate("28P01");
    return stg_pq_sort_connect(PQerrorMessage(conn));
}

static stg_outcome reset(PGconn *conn, const limit *l)
{
    PGVerbosity verbosity = PQsetErrorVerbosity(conn, PQERRORS_VERBOSE);
    bool is_made = PQresetStart(conn) == 1 && finish_connecting(conn, l);
    stg_outcome o = is_made ? stg_ok() : refusal_of(conn, l);

    PQsetErrorVerbosity(conn, verbosity);
    return o;
}

static stg_outcome connect_anew(run *r, const limit *l)
{
    stg_outcome o = reset(r->conn, l);

    r->is_timeout_known = false;
    if (o.fault != STG_FAULT_NONE || r->options.connected == NULL)
        return o;
    o = r->options.connected(r->conn, r->options.connected_ctx);
    if (o.fault == STG_FAULT_NONE &&
        PQtransactionStatus(r->conn) != PQTRANS_IDLE)
        o = misused();
    if (o.fault != STG_FAULT_NONE)
        cut(r->conn); // or the next attempt had a session half prepared
    return o;
}

/* -- the transaction -------------------------------------------------------- */

static bool is_shorter(const run *r, uint64_t ms)
{
    return r->session_ms == 0 || ms < r->session_ms;
}

/* In whole milliseconds, up: the statement ends when the time is over. */
static uint64_t ms_left(const limit *l)
{
    return stg_ns_min(time_left(l) / STG_MS + 1, INT32_MAX);
}

static stg_outcome limit_statements(run *r, const limit *l)
{
    uint64_t ms = ms_left(l);
    char sql[64];

    if (!is_shorter(r, ms))
        return stg_ok();
    snprintf(sql, sizeof sql, "SET LOCAL statement_timeout = %" PRIu64, ms);
    return result_of(r->conn, stg_pq_exec(r->conn, sql));
}

/* In one message with BEGIN, but for the first time in a session, which has to
 * be asked for its own. SHOW takes no snapshot. */
static stg_outcome begin(run *r, const limit *l)
{
    char begin[STG_PQ_BEGIN_MAX], sql[STG_PQ_BEGIN_MAX + 64];
    PGresult *res;
    stg_outcome o;

    stg_pq_begin_text(&r->options, begin);
    if (l->at == STG_NEVER)
        return result_of(r->conn, stg_pq_exec(r->conn, begin));
    if (!r->is_timeout_known)
        snprintf(sql, sizeof sql, "%s; SHOW statement_timeout", begin);
    else if (is_shorter(r, ms_left(l)))
        snprintf(sql, sizeof sql, "%s; SET LOCAL statement_timeout = %" PRIu64,
                 begin, ms_left(l));
    else
        snprintf(sql, sizeof sql, "%s", begin);
    res = stg_pq_exec(r->conn, sql);
    o = stg_pq_result(r->conn, res);
    if (o.fault == STG_FAULT_NONE && !r->is_timeout_known) {
        r->session_ms = stg_pq_read_ms(PQgetvalue(res, 0, 0));
        r->is_timeout_known = true;
        o = limit_statements(r, l);
    }
    PQclear(res);
    return o;
}

/* Whether there is a session: also one that was closed while nobody asked the
 * server anything is noticed. */
static bool is_alive(PGconn *conn)
{
    struct pollfd fd = {.fd = PQsocket(conn), .events = POLLIN};

    while (PQstatus(conn) == CONNECTION_OK && poll(&fd, 1, 0) > 0 &&
           PQconsumeInput(conn) == 1)
        ; // notices, before the end
    return PQstatus(conn) == CONNECTION_OK;
}

static stg_outcome prepare(run *r)
{
    limit l = limit_of_attempt();
    stg_outcome o = stg_ok();

    if (!is_alive(r->conn))
        o = connect_anew(r, &l);
    return o.fault == STG_FAULT_NONE ? begin(r, &l) : o;
}

static bool is_free(PGconn *conn)
{
    if (PQpipelineStatus(conn) != PQ_PIPELINE_OFF)
        return PQexitPipelineMode(conn) == 1;
    return PQtransactionStatus(conn) != PQTRANS_ACTIVE;
}

/* Takes what the function has left behind, so that a command can follow. */
static bool drain(PGconn *conn, const limit *l)
{
    bool is_good =
        PQpipelineStatus(conn) == PQ_PIPELINE_OFF || PQpipelineSync(conn) == 1;

    while (is_good && PQstatus(conn) == CONNECTION_OK && !is_free(conn)) {
        PGresult *res = NULL;

        is_good = !is_over(l) && take(conn, l, &res);
        if (PQresultStatus(res) == PGRES_COPY_IN)
            is_good = PQputCopyEnd(conn, "the transaction is given up") == 1;
        else if (is_good && res != NULL && is_pause(res))
            is_good = PQresultStatus(res) == PGRES_PIPELINE_SYNC;
        PQclear(res);
    }
    return is_good;
}

static bool is_open(const PGconn *conn)
{
    PGTransactionStatusType status = PQtransactionStatus(conn);

    return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

static void roll_back(PGconn *conn, const stg_outcome *o)
{
    limit l = limit_of_attempt();

    l.cancel = NULL;
    l.at = stg_ns_add(read_clock(l.env), PATIENCE);
    if (o->fault == STG_FAULT_CONNECTION_LOST || !drain(conn, &l)) {
        cut(conn);
        return;
    }
    if (is_open(conn))
        PQclear(ask(conn, "ROLLBACK", &l));
    if (PQtransactionStatus(conn) != PQTRANS_IDLE)
        cut(conn);
}

/* Whether rolling back undoes all: the function failed by this session, and not
 * by anything else that it speaks to, nor has it ended the transaction itself. */
static bool is_undone(const PGconn *conn, const stg_outcome *o)
{
    if (o->fault == STG_FAULT_OUTCOME_UNKNOWN) // a COMMIT elsewhere
        return false;
    if (PQstatus(conn) != CONNECTION_OK)
        return true;
    if (!is_open(conn) && PQtransactionStatus(conn) != PQTRANS_ACTIVE)
        return false;
    return o->code_kind == STG_CODE_SQLSTATE ||
           (o->code_kind == STG_CODE_NONE &&
            stg_fault_about(o->fault)->category == STG_CATEGORY_DATABASE);
}

/* Why it cannot be committed; STG_FAULT_NONE: it can. */
static stg_outcome find_obstacle(PGconn *conn)
{
    limit l = limit_of_attempt();
    stg_outcome o;

    if (!is_alive(conn))
        o = stg_failed(STG_FAULT_CONNECTION_LOST);
    else if (is_over(&l))
        o = out_of_time(&l, STG_FAULT_TIMEOUT);
    else if (!is_free(conn) || !is_open(conn))
        return misused();
    else if (PQtransactionStatus(conn) == PQTRANS_INERROR)
        o = stg_failed_sqlstate("25P02");
    else
        return stg_ok();
    o.unsent = true;
    return o;
}

static stg_outcome commit(PGconn *conn)
{
    limit l = limit_of_wait();
    stg_pq_facts facts;
    PGresult *res;
    stg_outcome o;

    l.cancel = NULL; // an answer is worth more than 50 ms
    res = ask(conn, "COMMIT", &l);
    facts = facts_of(conn, res);
    o = stg_pq_sort_commit(&facts);
    PQclear(res);
    return o;
}

static stg_outcome attempt(void *ctx)
{
    run *r = ctx;
    stg_outcome o = prepare(r);

    if (o.fault != STG_FAULT_NONE) {
        o.unsent = true;
    } else {
        o = r->fn(r->conn, r->ctx);
        if (o.fault != STG_FAULT_NONE)
            o.unsent = o.unsent || is_undone(r->conn, &o);
        else
            o = find_obstacle(r->conn);
        if (o.fault == STG_FAULT_NONE)
            o = commit(r->conn);
    }
    if (o.fault != STG_FAULT_NONE)
        roll_back(r->conn, &o);
    return o;
}

/* -- the operation ---------------------------------------------------------- */

static const char *find_flaw(const run *r)
{
    if (r->conn == NULL)
        return "the connection is NULL";
    if (r->fn == NULL)
        return "the function of the transaction is NULL";
    if ((unsigned)r->options.isolation > STG_PQ_SERIALIZABLE)
        return "options.isolation is none";
    if (PQpipelineStatus(r->conn) != PQ_PIPELINE_OFF)
        return "the connection is in pipeline mode";
    if (is_open(r->conn))
        return "the connection is in a transaction already";
    if (PQtransactionStatus(r->conn) == PQTRANS_ACTIVE)
        return "the connection has a command under way";
    return NULL;
}

bool stg_pq_run(PGconn *conn, stg_pq_fn *fn, void *ctx,
                const stg_policy *policy, const stg_with *with,
                const stg_pq_options *options, stg_report *report)
{
    run r = {.conn = conn, .fn = fn, .ctx = ctx};
    stg_with w = {.method = NULL};
    const char *flaw;

    if (options != NULL)
        r.options = *options;
    flaw = find_flaw(&r);
    if (flaw != NULL) {
        if (report != NULL)
            *report = (stg_report){
                .next = STG_GIVE_UP, .why = STG_WHY_INVALID, .flaw = flaw};
        return false;
    }
    if (with != NULL)
        w = *with;
    if (w.method == NULL) // as a POST: to be repeated only if it was not done
        w.method = "COMMIT";
    w.has_key = w.has_key || r.options.idempotent;
    return stg_call(policy, &w, attempt, &r, report);
}
