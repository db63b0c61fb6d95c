/* Why a server of PostgreSQL does not let us in, in words, and whether that
 * can end by itself: STG_IO is tried again, STG_INVALID needs a person.
 *
 * libpq gives no SQLSTATE for a connection that failed, so a second connection
 * is tried with verbose errors and its text is read. It is given up after
 * PATIENCE. */
#include "store/postgres/link.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <uv.h>

#include "adapters/pq_internal.h"
#include "base/refuse.h"
#include "store/postgres/open.h"

static const uint64_t PATIENCE = 5 * STG_S;

/* It may hang. What the URL says counts, but for sslmode (NULL: as there). */
static PGPing ping_server(const stg_pg *pg, const char *sslmode)
{
    const char *names[] = {"connect_timeout", "dbname", "sslmode", NULL};
    const char *values[] = {"5", pg->url, sslmode, NULL};

    return PQpingParams(names, values, true);
}

/* It would answer who asks without TLS, if only to send him away: a certificate
 * that is not believed looks like no answer at all. */
static bool answers_plainly(const stg_pg *pg)
{
    return ping_server(pg, "disable") == PQPING_OK;
}

/* -- a second try, for the server's codes ---------------------------------- */

/* True: it is done, well or not. */
static bool turn(PGconn *conn, uint64_t until)
{
    PostgresPollingStatusType status = PQconnectPoll(conn);
    struct pollfd fd = {.fd = PQsocket(conn),
                        .events =
                            status == PGRES_POLLING_READING ? POLLIN : POLLOUT};
    uint64_t now = uv_hrtime();

    if (status == PGRES_POLLING_OK || status == PGRES_POLLING_FAILED ||
        now >= until)
        return true;
    return poll(&fd, 1, (int)((until - now) / STG_MS) + 1) < 0 &&
           errno != EINTR;
}

/* So that its words have the codes: adapters/pq_internal.h. */
static PGconn *try_verbosely(const stg_pg *pg)
{
    static const char *const names[] = {"dbname", NULL};
    const char *const values[] = {pg->url, NULL};
    PGconn *conn = PQconnectStartParams(names, values, 1);
    uint64_t until = uv_hrtime() + PATIENCE;

    if (conn == NULL || PQstatus(conn) == CONNECTION_BAD)
        return conn;
    PQsetErrorVerbosity(conn, PQERRORS_VERBOSE);
    while (!turn(conn, until))
        ;
    return conn;
}

/* Who we are, what we ask for and may: nothing of it ends by itself. */
static bool is_final_state(const char *state)
{
    static const char *const final[] = {"28", "3D", "42", "3F", "22", "0A"};

    for (size_t i = 0; i < sizeof final / sizeof *final; i++)
        if (strncmp(state, final[i], 2) == 0)
            return true;
    return false;
}

/* Of several hosts each has its say: one that may yet let us in is enough. */
static bool is_final(const char *words)
{
    const char *state = stg_pq_next_state(words);
    bool is_any = state != NULL;

    for (; state != NULL; state = stg_pq_next_state(state))
        if (!is_final_state(state))
            return false;
    return is_any;
}

/* -- words ----------------------------------------------------------------- */

/* The fault of the file that has the password; NULL: none. */
static const char *describe_file(const char *path)
{
    struct stat s;

    if (stat(path, &s) != 0)
        return strerror(errno);
    if (!S_ISREG(s.st_mode))
        return "it is no file";
    if ((s.st_mode & 077) != 0)
        return "others may read it, and then it is not used; chmod 600";
    return "no line of it is for this host, port, database and user";
}

static stg_status refuse_password(const stg_pg *pg, stg_error *err)
{
    char *path = stg_pg_url_passfile(pg->url);
    stg_status status =
        path == NULL
            ? stg_hub_refuse(err, STG_INVALID,
                             "%s: the server wants a password, and there is "
                             "none; name a passfile in the URL, or set "
                             "STAGGER_STORE to one with a password",
                             pg->name)
            : stg_hub_refuse(err, STG_INVALID,
                             "%s: the server wants a password, and there is "
                             "none in the passfile %s: %s",
                             pg->name, path, describe_file(path));

    free(path);
    return status;
}

static stg_status refuse_answer(const stg_pg *pg, stg_error *err)
{
    PGconn *again = try_verbosely(pg);
    bool wants_password = again != NULL && PQconnectionNeedsPassword(again);
    bool is_over = again != NULL && PQstatus(again) == CONNECTION_BAD &&
                   is_final(PQerrorMessage(again));

    PQfinish(again);
    if (wants_password)
        return refuse_password(pg, err);
    if (is_over)
        return stg_hub_refuse(err, STG_INVALID,
                              "%s: the server refuses: %s; see to the "
                              "database, the user and the password",
                              pg->name, pg->words);
    return stg_hub_refuse(err, STG_IO,
                          "%s: the server refuses for now: %s; start the hub "
                          "again when it takes connections",
                          pg->name, pg->words);
}

/* libpq has one text for many reasons; a ping tells a server that is away from one
 * that refuses, and from a URL that is wrong. */
stg_status stg_pg_refuse(const stg_pg *pg, stg_error *err)
{
    PGPing ping = ping_server(pg, NULL);

    if (ping == PQPING_NO_RESPONSE && answers_plainly(pg))
        return stg_hub_refuse(err, STG_INVALID,
                              "%s: there is no TLS with the server: %s; see to "
                              "its certificate, and to sslmode and sslrootcert "
                              "of the URL",
                              pg->name, pg->words);
    if (ping == PQPING_NO_ATTEMPT)
        return stg_hub_refuse(err, STG_INVALID,
                              "%s: cannot be connected to: %s; see to the "
                              "options of the URL",
                              pg->name, pg->words);
    if (ping == PQPING_NO_RESPONSE)
        return stg_hub_refuse(err, STG_IO,
                              "%s: the server does not answer: %s; start it, "
                              "or name another one",
                              pg->name, pg->words);
    return refuse_answer(pg, err);
}
