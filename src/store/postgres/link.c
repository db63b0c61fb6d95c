/* A connection to PostgreSQL in pipeline mode.
 *
 * Commands of a transaction are sent one after the other, without waiting; the
 * first error counts, for the server skips what follows it. Results are read when
 * one is needed, when STG_PG_WAITS are on the way, and at COMMIT: what a
 * transaction does is known to be done only then. Whatever breaks the connection
 * is STG_SQL_AWAY; the next try comes after a wait that doubles, with jitter. */
#include "store/postgres/link.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include <stagger/backoff.h>

#include "host/wall.h"
#include "store/postgres/open.h"

enum { SLICE_MS = 1000 }; /* between two questions whether it is over */

/* -- errors ---------------------------------------------------------------- */

/* The first line. */
static void keep_words(stg_pg *pg, const char *words)
{
    size_t size = strcspn(words, "\n");

    snprintf(pg->words, sizeof pg->words, "%.*s", (int)size, words);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Reads SQLSTATE by how it begins. What the server may get over by itself is
 * AWAY, and is tried again: connections (08), conflicts and deadlocks (40),
 * shutdown (57P), a cancelled statement (57014), a read-only standby (25006), a
 * transaction that idled too long (25P03), too many clients (53300), no memory
 * (53200), a lock timeout (55P03). The rest is told. */
int stg_pg_code(const char *state)
{
    static const char *const away[] = {"08",    "40",    "57P",
                                       "57014", "25006", "25P03",
                                       "53300", "53200", "55P03"};

    if (state == NULL)
        return STG_SQL_AWAY;
    if (strcmp(state, "53100") == 0)
        return SQLITE_FULL;
    for (size_t i = 0; i < sizeof away / sizeof *away; i++)
        if (begins(state, away[i]))
            return STG_SQL_AWAY;
    if (begins(state, "42501") || begins(state, "28"))
        return SQLITE_PERM;
    if (begins(state, "42") || begins(state, "3F"))
        return SQLITE_NOTFOUND;
    if (begins(state, "XX") || begins(state, "58"))
        return SQLITE_CORRUPT;
    return begins(state, "23") ? SQLITE_CONSTRAINT : SQLITE_ERROR;
}

/* Keeps the first error of a transaction: the others come of it, as the server
 * skips all commands behind it. */
static void fail(stg_pg *pg, int rc, const char *words)
{
    if (pg->rc != SQLITE_OK)
        return;
    pg->rc = rc;
    pg->is_refused = false;
    keep_words(pg, words);
}

/* An answer that is an error. */
static void fail_by(stg_pg *pg, const PGresult *r)
{
    const char *state = PQresultErrorField(r, PG_DIAG_SQLSTATE);
    const char *words = PQresultErrorField(r, PG_DIAG_MESSAGE_PRIMARY);
    bool is_first = pg->rc == SQLITE_OK;

    fail(pg, stg_pg_code(state),
         words != NULL ? words : PQerrorMessage(pg->conn));
    // 57P is the server shutting down: it is away, and did not refuse anything.
    if (is_first)
        pg->is_refused = state != NULL && !begins(state, "57P");
}

/* Counts a try that was of no use: the wait before the next one grows with
 * it. */
static void count(stg_pg *pg)
{
    if (pg->tries < UINT32_MAX)
        pg->tries++;
    snprintf(pg->trouble, sizeof pg->trouble, "%s", pg->words);
}

void stg_pg_succeed(stg_pg *pg)
{
    pg->tries = 0;
}

/* Ends the connection after whatever went wrong with it: pg->rc is AWAY then,
 * also where an earlier error had another code. */
static int lose(stg_pg *pg)
{
    fail(pg, STG_SQL_AWAY,
         pg->conn == NULL ? "not connected" : PQerrorMessage(pg->conn));
    // Whatever it was, it is over.
    pg->rc = STG_SQL_AWAY;
    if (pg->conn != NULL)
        count(pg);
    stg_pg_disconnect(pg);
    return STG_SQL_AWAY;
}

/* -- connecting ------------------------------------------------------------ */

static void hear_nothing(void *ctx, const char *message)
{
    (void)ctx;
    (void)message;
}

/* A COMMIT that is still waited for is unknown from now on: has_committed()
 * asks what became of it. Prepared statements are gone with the connection. */
void stg_pg_disconnect(stg_pg *pg)
{
    for (size_t i = 0; i < pg->wait_count; i++)
        pg->is_unknown |= pg->waits[i].kind == STG_PG_COMMIT;
    pg->wait_count = 0;
    stg_pg_rows_drop(pg);
    PQclear(pg->result);
    pg->result = NULL;
    pg->is_begun = false;
    PQfinish(pg->conn);
    pg->conn = NULL;
}

/* An owner who hangs in a transaction holds up the one who takes over; and one
 * whose machine went holds its locks until the server finds out. */
static const char set_up[] =
    "SET idle_in_transaction_session_timeout = '10s';"
    "SET client_min_messages = 'warning';"
    "SET default_transaction_isolation = 'read committed';"
    "SET client_encoding = 'UTF8';"
    "SET tcp_keepalives_idle = 10;"
    "SET tcp_keepalives_interval = 5;"
    "SET tcp_keepalives_count = 3;"
    "SET tcp_user_timeout = '20s'";

/* Pipeline mode comes last: what the session does first is asked command by
 * command (PQexec), which that mode does not allow. */
static int open_session(stg_pg *pg)
{
    PGresult *r = PQexec(pg->conn, set_up);
    bool is_good = PQresultStatus(r) == PGRES_COMMAND_OK;
    int rc;

    if (!is_good)
        fail_by(pg, r);
    PQclear(r);
    if (!is_good)
        return lose(pg);
    rc = pg->open_session == NULL ? SQLITE_OK
                                  : pg->open_session(pg, pg->session_ctx);
    if (rc == STG_SQL_AWAY) {
        pg->rc = rc;
        pg->is_refused = PQstatus(pg->conn) == CONNECTION_OK;
        return lose(pg);
    }
    if (rc != SQLITE_OK) {
        stg_pg_disconnect(pg);
        return rc;
    }
    return PQenterPipelineMode(pg->conn) == 1 &&
                   PQsetnonblocking(pg->conn, 1) == 0
               ? SQLITE_OK
               : lose(pg);
}

int stg_pg_connect(stg_pg *pg)
{
    // The URL's own values come last, and count.
    static const char *const names[] = {
        "application_name", "connect_timeout",
        "keepalives_idle",  "keepalives_interval",
        "keepalives_count", "tcp_user_timeout",
        "dbname",           NULL};
    const char *const values[] = {"stagger", "5",     "10",    "5",
                                  "3",       "20000", pg->url, NULL};

    if (pg->conn != NULL)
        stg_pg_disconnect(pg);
    pg->rc = SQLITE_OK;
    pg->conn = PQconnectdbParams(names, values, 1);
    if (pg->conn == NULL || PQstatus(pg->conn) != CONNECTION_OK)
        return lose(pg);
    PQsetNoticeProcessor(pg->conn, hear_nothing, NULL);
    pg->connection++;
    return open_session(pg);
}

/* In slices, so that whoever waits hears of its end. */
static bool rest(uint64_t wait, bool (*is_over)(void *ctx), void *ctx)
{
    for (uint64_t left = wait; left > 0;) {
        uint64_t slice = stg_ns_min(left, SLICE_MS * STG_MS);

        usleep((useconds_t)(slice / STG_US));
        left -= slice;
        if (is_over != NULL && slice == SLICE_MS * STG_MS && is_over(ctx))
            return false;
    }
    return is_over == NULL || !is_over(ctx);
}

/* Blocks. The first try after a loss comes at once, the others after waits from
 * 250 ms to 5 s; is_over() is asked about once a second. The count is of tries
 * without a success (stg_pg_succeed()), not of connections: a server that lets
 * everybody in and refuses what is written is not asked in a loop. */
int stg_pg_revive(stg_pg *pg, bool (*is_over)(void *ctx), void *ctx)
{
    stg_backoff b = stg_backoff_default();
    stg_ns last = 0; // of decorrelated jitter, which this is not

    b.base = 250 * STG_MS;
    b.cap = 5 * STG_S;
    b.jitter = STG_JITTER_EQUAL;
    while (pg->conn == NULL) {
        int rc;

        if (pg->tries > 1 &&
            !rest(stg_backoff_wait(&b, pg->tries - 1, &last, &pg->rng), is_over,
                  ctx))
            return STG_SQL_AWAY;
        rc = stg_pg_connect(pg);
        if (rc != SQLITE_OK && rc != STG_SQL_AWAY)
            return rc;
    }
    return SQLITE_OK;
}

/* The answer's moment is taken as half of the way: the error is at most half of
 * the round trip. */
int stg_pg_read_clock(stg_pg *pg)
{
    uint64_t asked_at = uv_hrtime(), middle, server;
    PGresult *r = PQexec(pg->conn,
                         "SELECT (extract(epoch FROM"
                         " clock_timestamp()) * 1000000)::bigint");
    bool is_good = PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1;

    middle = asked_at + (uv_hrtime() - asked_at) / 2;
    if (is_good) {
        server = strtoull(PQgetvalue(r, 0, 0), NULL, 10) * STG_US;
        atomic_store(&pg->clock, server - middle);
    } else {
        fail_by(pg, r);
    }
    PQclear(r);
    return is_good ? SQLITE_OK : pg->rc;
}

stg_ns stg_pg_now(const stg_pg *pg)
{
    uint64_t clock = atomic_load(&pg->clock);

    return clock == 0 ? stg_wall_now() : uv_hrtime() + clock;
}

/* -- results --------------------------------------------------------------- */

/* Until the socket is ready. False: it is no use. */
static bool wait_for(stg_pg *pg, short events)
{
    struct pollfd fd = {.fd = PQsocket(pg->conn), .events = events};

    for (;;) {
        int ready = poll(&fd, 1, SLICE_MS);

        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR)
            return false;
        if (ready == 0 && pg->is_over != NULL && pg->is_over(pg->is_over_ctx))
            return false;
    }
}

/* The server's answers are read meanwhile, or it may stop to read. */
static bool flush(stg_pg *pg)
{
    int left;

    while ((left = PQflush(pg->conn)) == 1)
        if (!wait_for(pg, POLLIN | POLLOUT) || PQconsumeInput(pg->conn) == 0)
            return false;
    return left == 0;
}

/* The next result, or NULL behind the last one of a command. False: the
 * connection is gone. */
static bool take_result(stg_pg *pg, PGresult **r)
{
    while (PQisBusy(pg->conn) == 1)
        if (!wait_for(pg, POLLIN) || PQconsumeInput(pg->conn) == 0)
            return false;
    *r = PQgetResult(pg->conn);
    return true;
}

/* A COMMIT of a transaction that had an error is answered by "ROLLBACK", and
 * with success: so its tag is looked at. */
static void keep_result(stg_pg *pg, const stg_pg_wait *w, PGresult *r)
{
    stg_pg_stmt *st = w->st;

    if (st != NULL)
        st->changed = strtoull(PQcmdTuples(r), NULL, 10);
    if (w->kind == STG_PG_COMMIT && strcmp(PQcmdStatus(r), "COMMIT") != 0)
        fail(pg, SQLITE_ABORT, "the transaction was rolled back");
    if (w->kind != STG_PG_QUERY) {
        PQclear(r);
        return;
    }
    PQclear(pg->result);
    pg->result = r;
}

/* One command's result, and the NULL behind it. A PREPARE that failed, or was
 * skipped, is sent again with the next use of its statement. */
static bool take_one(stg_pg *pg, const stg_pg_wait *w)
{
    PGresult *r, *end;
    ExecStatusType status;

    if (!take_result(pg, &r) || r == NULL)
        return false;
    status = PQresultStatus(r);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
        keep_result(pg, w, r);
    } else {
        if (status == PGRES_FATAL_ERROR)
            fail_by(pg, r);
        if (w->kind == STG_PG_PREPARE && w->st != NULL)
            w->st->prepared_on = 0;
        PQclear(r);
    }
    return take_result(pg, &end) && end == NULL;
}

static bool take_sync(stg_pg *pg)
{
    PGresult *r;
    bool is_sync;

    if (!take_result(pg, &r) || r == NULL)
        return false;
    is_sync = PQresultStatus(r) == PGRES_PIPELINE_SYNC;
    PQclear(r);
    return is_sync;
}

/* Sends a sync, and reads one result for each command in `waits`, and the
 * sync's: one more or fewer means that both sides have lost count, and the
 * connection is given up. */
int stg_pg_settle(stg_pg *pg)
{
    size_t taken = 0;
    bool is_good;

    if (pg->conn == NULL)
        return lose(pg);
    is_good = PQpipelineSync(pg->conn) == 1 && flush(pg);
    for (; is_good && taken < pg->wait_count; taken++)
        is_good = take_one(pg, &pg->waits[taken]);
    is_good = is_good && take_sync(pg);
    if (!is_good || pg->rc == STG_SQL_AWAY)
        return lose(pg);
    pg->wait_count = 0;
    return pg->rc;
}

/* The place in `waits` stays, for its result still comes. */
void stg_pg_forget(stg_pg *pg, const stg_pg_stmt *st)
{
    for (size_t i = 0; i < pg->wait_count; i++)
        if (pg->waits[i].st == st)
            pg->waits[i].st = NULL;
}

/* -- commands -------------------------------------------------------------- */

int stg_pg_sent(stg_pg *pg, int is_sent, stg_pg_kind kind, stg_pg_stmt *st)
{
    if (is_sent != 1)
        return lose(pg);
    pg->waits[pg->wait_count++] = (stg_pg_wait){.kind = kind, .st = st};
    // A statement takes two places.
    return pg->wait_count >= STG_PG_WAITS && kind != STG_PG_PREPARE
               ? stg_pg_settle(pg)
               : pg->rc;
}

int stg_pg_send(stg_pg *pg, const char *command, stg_pg_kind kind)
{
    stg_pg_rows_flush(pg);
    if (pg->conn == NULL)
        return lose(pg);
    return stg_pg_sent(
        pg, PQsendQueryParams(pg->conn, command, 0, NULL, NULL, NULL, NULL, 1),
        kind, NULL);
}

PGresult *stg_pg_ask(stg_pg *pg, const char *command, int count,
                     const char *const *values)
{
    PGresult *r;

    stg_pg_rows_flush(pg);
    if (pg->conn == NULL) {
        lose(pg);
        return NULL;
    }
    if (stg_pg_sent(pg,
                    PQsendQueryParams(pg->conn, command, count, NULL, values,
                                      NULL, NULL, 0),
                    STG_PG_QUERY, NULL) != SQLITE_OK ||
        stg_pg_settle(pg) != SQLITE_OK)
        return NULL;
    r = pg->result;
    pg->result = NULL;
    return r;
}

/* -- life ------------------------------------------------------------------ */

stg_pg *stg_pg_new(const char *url)
{
    stg_pg *pg = calloc(1, sizeof *pg);
    uint64_t seed = uv_hrtime();

    if (pg == NULL)
        return NULL;
    uv_random(NULL, NULL, &seed, sizeof seed, 0, NULL);
    pg->rng = stg_rng_seed(seed);
    pg->db.calls = &stg_pg_calls;
    stg_list_init(&pg->db.statements);
    pg->url = strdup(url);
    pg->name = stg_pg_url_name(url);
    if (pg->url != NULL && pg->name != NULL)
        return pg;
    stg_pg_free(pg);
    return NULL;
}

void stg_pg_free(stg_pg *pg)
{
    stg_pg_disconnect(pg);
    free(pg->url);
    free(pg->name);
    free(pg);
}
