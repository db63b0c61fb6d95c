/* pq.h - a transaction of PostgreSQL by libpq, until it is committed. Blocks.
 *
 * A library of its own: link stagger-pq. Each attempt is BEGIN, a function of
 * yours, and COMMIT, or ROLLBACK where the function failed; one that finds the
 * connection broken connects anew first. What is repeated is the policy's to
 * say, by SQLSTATE, with one exception: a COMMIT that was sent and not answered
 * may be done. It is the fault outcome-unknown, and is not repeated unless
 * somebody says that this does no harm.
 *
 *     static stg_outcome transfer(PGconn *conn, void *ctx)
 *     {
 *         PGresult *res = stg_pq_exec(conn, "UPDATE account SET ...");
 *         stg_outcome outcome = stg_pq_result(conn, res);
 *
 *         PQclear(res);
 *         return outcome;
 *     }
 *
 *     stg_pq_options serializable = {.isolation = STG_PQ_SERIALIZABLE};
 *
 *     stg_pq_run(conn, transfer, &order, &policy, NULL, &serializable, &report);
 *
 * The connection is the caller's and used by one thread at a time. Nothing is
 * allocated but by libpq.
 *
 * The attempt's time holds for connecting, for each statement and for COMMIT. The
 * server ends a statement that takes too long (statement_timeout, for the
 * transaction, unless the session's own is shorter). Where it does not,
 * stg_pq_exec() and stg_pq_wait() end the session, half a second after the
 * attempt's end, or after a cancel is set; a thread then asks the server to end
 * the command (PQcancel(), which may hang). PQexec() would wait on. An attempt
 * whose time is over, or that is cancelled, is not committed. Resolving a name
 * has no limit: libpq asks the system. */
#ifndef STAGGER_PQ_H
#define STAGGER_PQ_H

#include <libpq-fe.h>

#include <stagger/call.h>

STG_DECLS_BEGIN

typedef enum stg_pq_isolation {
    STG_PQ_DEFAULT, /* the session's default_transaction_isolation */
    STG_PQ_READ_COMMITTED,
    STG_PQ_REPEATABLE_READ,
    STG_PQ_SERIALIZABLE,
} stg_pq_isolation;

/* Makes one attempt, between BEGIN and COMMIT, and returns what it came to:
 * stg_ok() to commit, or a failure, which rolls back. It leaves BEGIN, COMMIT
 * and ROLLBACK alone; savepoints are its own. It may be called many times: what
 * it does outside of the database is not rolled back. When it fails it may leave
 * anything behind: results that were not taken, pipeline mode, a COPY. */
typedef stg_outcome stg_pq_fn(PGconn *conn, void *ctx);

/* All zeros, or NULL: a transaction as BEGIN makes it. */
typedef struct stg_pq_options {
    stg_pq_isolation isolation;
    bool read_only;
    bool deferrable; /* of use with serializable and read_only: it waits until
                        it cannot fail */
    bool idempotent; /* it may be carried out twice: outcome-unknown may be
                        repeated. The same is said by with.has_key, by a
                        with.method such as "PUT", by unsafe=yes */
    stg_pq_fn *connected; /* NULL, or called after each reconnect, before BEGIN:
                             prepares the session. Its failure is the attempt's;
                             the next one connects again */
    void *connected_ctx;
} stg_pq_options;

/* Runs fn in a transaction until it is committed or the policy gives up.
 * Returns whether it was committed, or with.fallback answered in its place, as
 * report->fell_back tells. with, options and report may be NULL; with
 * means what it does to stg_call(), and the operation is nested like one.
 *
 * Refused, as STG_WHY_INVALID with a flaw in the report: a NULL conn or fn, an
 * isolation that is none, and a connection that is in a transaction, in a
 * command or in pipeline mode.
 *
 * A connection that is not CONNECTION_OK is connected anew (PQresetStart()), by
 * its own options and within the attempt's time; its session starts from nothing,
 * and in libpq's blocking mode. Several hosts share that time, and
 * connect_timeout counts for each. When the call returns, the connection is
 * idle outside of a transaction, or it is not CONNECTION_OK, and the next call
 * connects it. */
STG_API bool stg_pq_run(PGconn *conn, stg_pq_fn *fn, void *ctx,
                        const stg_policy *policy, const stg_with *with,
                        const stg_pq_options *options, stg_report *report);

/* The outcome of a result, which may be NULL: success, or a fault by its SQLSTATE
 * (stg_failed_sqlstate()), with what only the connection knows:
 *
 *     57014, or no answer, when the attempt's time is over   timeout
 *     25006 on a server that is a standby                    connection-lost
 *     08P01 that ends the session, as poolers send it        connection-lost
 *     no SQLSTATE, and the connection is broken              connection-lost
 *     no SQLSTATE                                            error
 *
 * Does not clear the result. */
STG_API stg_outcome stg_pq_result(const PGconn *conn, const PGresult *res);

/* As PQexec() and, after a PQsend...() of any kind, as PQgetResult() up to its
 * NULL: the last result, to be cleared by the caller, or one that begins a COPY
 * or ends a pipeline; results before it are cleared, so this is not for single
 * rows. In an attempt they wait until 250 ms after its end, or
 * until 50 ms after its cancel is set, then ask the server to cancel, and 250 ms
 * later at most the connection is closed (CONNECTION_BAD); the result is an
 * error, if none came. Elsewhere they wait for ever. NULL where libpq returns
 * NULL. */
STG_API PGresult *stg_pq_exec(PGconn *conn, const char *sql);
STG_API PGresult *stg_pq_wait(PGconn *conn);

STG_DECLS_END

#endif
