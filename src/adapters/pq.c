/* pq.c - a transaction of PostgreSQL: connecting, BEGIN, the function, COMMIT;
 * pq_wait.c has its statements. When a session cannot be used any more
 * it is cut, which makes its connection CONNECTION_BAD; the next attempt then
 * begins with a new one. There is no other state between attempts. */
#include <stagger/pq.h>

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "adapters/pq_internal.h"

static const stg_ns PATIENCE = STG_S; /* for ROLLBACK */

typedef struct run {
    PGconn *conn;
    stg_pq_fn *fn;
    void *ctx;
    stg_pq_options options;
    bool is_timeout_known;
    uint64_t session_ms; /* the session's own statement_timeout; 0: none */
} run;

/* -- results ---------------------------------------------------------------- */

static bool is_on(const PGconn *conn, const char *parameter)
{
    const char *value = PQparameterStatus(conn, parameter);

    return value != NULL && strcmp(value, "on") == 0;
}

static stg_pq_facts facts_of(const PGconn *conn, const PGresult *res)
{
    stg_pq_limit l = stg_pq_limit_of_attempt();
    const char *severity =
        PQresultErrorField(res, PG_DIAG_SEVERITY_NONLOCALIZED);

    return (stg_pq_facts){
        .status = PQresultStatus(res), // of NULL: PGRES_FATAL_ERROR
        .sqlstate = PQresultErrorField(res, PG_DIAG_SQLSTATE),
        .is_fatal = severity != NULL && strcmp(severity, "ERROR") != 0,
        .is_broken = PQstatus(conn) != CONNECTION_OK,
        .is_standby = is_on(conn, "in_hot_standby"),
        .is_late = stg_pq_time_left(&l) == 0,
        .is_cancelled = stg_pq_is_cancelled(&l),
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

static stg_outcome out_of_time(const stg_pq_limit *l, stg_fault fault)
{
    return stg_failed(stg_pq_is_cancelled(l) ? STG_FAULT_CANCELLED : fault);
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

/* How long one of the hosts may take. libpq's connect_timeout is for each
 * host; what is left of the attempt is shared by all of them. */
static stg_ns find_patience(PGconn *conn, const stg_pq_limit *l)
{
    PQconninfoOption *options = PQconninfo(conn), *o;
    stg_ns left = stg_pq_time_left(l);
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
static bool finish_connecting(PGconn *conn, const stg_pq_limit *l)
{
    PostgresPollingStatusType status = PGRES_POLLING_WRITING;
    stg_ns patience = find_patience(conn, l);
    stg_pq_limit host = *l;

    host.at = stg_ns_add(stg_pq_now(l->env), patience);
    while (status != PGRES_POLLING_OK && status != PGRES_POLLING_FAILED) {
        short events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT;

        if (!stg_pq_wait_for(conn, events, &host)) {
            if (stg_pq_is_over(l))
                return false;
            (void)shutdown(PQsocket(conn), SHUT_RDWR);
            host.at = stg_ns_add(stg_pq_now(l->env), patience);
        }
        status = PQresetPoll(conn);
    }
    return status == PGRES_POLLING_OK;
}

/* libpq has no code for a connection that failed: only its words are left
 * (pq_words.c). */
static stg_outcome refusal_of(PGconn *conn, const stg_pq_limit *l)
{
    if (stg_pq_is_over(l))
        return out_of_time(l, STG_FAULT_CONNECT_TIMEOUT);
    if (PQconnectionNeedsPassword(conn))
        return stg_failed_sqlstate("28P01");
    return stg_pq_sort_connect(PQerrorMessage(conn));
}

static stg_outcome reset(PGconn *conn, const stg_pq_limit *l)
{
    PGVerbosity verbosity = PQsetErrorVerbosity(conn, PQERRORS_VERBOSE);
    bool is_made = PQresetStart(conn) == 1 && finish_connecting(conn, l);
    stg_outcome o = is_made ? stg_ok() : refusal_of(conn, l);

    PQsetErrorVerbosity(conn, verbosity);
    return o;
}

/* A new session has its own statement_timeout: what was known of the last one
 * is forgotten. */
static stg_outcome connect_anew(run *r, const stg_pq_limit *l)
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
        stg_pq_cut(r->conn); // or the next attempt had a session half prepared
    return o;
}

/* -- the transaction -------------------------------------------------------- */

static bool is_shorter(const run *r, uint64_t ms)
{
    return r->session_ms == 0 || ms < r->session_ms;
}

/* In whole milliseconds, up: the statement ends when the time is over. */
static uint64_t ms_left(const stg_pq_limit *l)
{
    return stg_ns_min(stg_pq_time_left(l) / STG_MS + 1, INT32_MAX);
}

static stg_outcome limit_statements(run *r, const stg_pq_limit *l)
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
static stg_outcome begin(run *r, const stg_pq_limit *l)
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
    stg_pq_limit l = stg_pq_limit_of_attempt();
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
static bool drain(PGconn *conn, const stg_pq_limit *l)
{
    bool is_good =
        PQpipelineStatus(conn) == PQ_PIPELINE_OFF || PQpipelineSync(conn) == 1;

    while (is_good && PQstatus(conn) == CONNECTION_OK && !is_free(conn)) {
        PGresult *res = NULL;

        is_good = !stg_pq_is_over(l) && stg_pq_take(conn, l, &res);
        if (PQresultStatus(res) == PGRES_COPY_IN)
            is_good = PQputCopyEnd(conn, "the transaction is given up") == 1;
        else if (is_good && res != NULL && stg_pq_is_pause(res))
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

/* Has a second of its own, also where the attempt has none left; if that is
 * not enough, the session is cut. */
static void roll_back(PGconn *conn, const stg_outcome *o)
{
    stg_pq_limit l = stg_pq_limit_of_attempt();

    l.cancel = NULL;
    l.at = stg_ns_add(stg_pq_now(l.env), PATIENCE);
    if (o->fault == STG_FAULT_CONNECTION_LOST || !drain(conn, &l)) {
        stg_pq_cut(conn);
        return;
    }
    if (is_open(conn))
        PQclear(stg_pq_ask(conn, "ROLLBACK", &l));
    if (PQtransactionStatus(conn) != PQTRANS_IDLE)
        stg_pq_cut(conn);
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
    stg_pq_limit l = stg_pq_limit_of_attempt();
    stg_outcome o;

    if (!is_alive(conn))
        o = stg_failed(STG_FAULT_CONNECTION_LOST);
    else if (stg_pq_is_over(&l))
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
    stg_pq_limit l = stg_pq_limit_of_wait();
    stg_pq_facts facts;
    PGresult *res;
    stg_outcome o;

    l.cancel = NULL; // an answer is worth more than 50 ms
    res = stg_pq_ask(conn, "COMMIT", &l);
    facts = facts_of(conn, res);
    o = stg_pq_sort_commit(&facts);
    PQclear(res);
    return o;
}

/* `unsent` says here: nothing of this transaction is in the database. */
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
