/* pq_transfer.c - transfers between two accounts in PostgreSQL, in both
 * directions at once.
 *
 *     pq_transfer 'host=localhost dbname=test user=me'
 *
 * Each transaction reads a balance, and writes what it has worked out: without
 * serializable one of two at a time would be lost, with it one of them fails,
 * and is run again. So is one that had to give way in a deadlock, or whose
 * server was restarted. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <stagger/pq.h>
#include <stagger/stagger.h>

enum { TRANSFERS = 50 };

typedef struct teller {
    const char *conninfo, *from, *to;
    unsigned attempts, done;
} teller;

/* The one value of an answer, as a number, or 0. */
static stg_outcome ask(PGconn *conn, const char *sql, const char *account,
                       const char *value, long *answer)
{
    const char *values[] = {account, value};
    PGresult *res = NULL;
    stg_outcome outcome;

    if (PQsendQueryParams(conn, sql, value == NULL ? 1 : 2, NULL, values, NULL,
                          NULL, 0) == 1)
        res = stg_pq_wait(conn); // as PQgetResult(), within the attempt's time
    outcome = stg_pq_result(conn, res);
    if (PQntuples(res) == 1)
        *answer = atol(PQgetvalue(res, 0, 0));
    PQclear(res);
    return outcome;
}

static stg_outcome add(PGconn *conn, const char *account, long amount)
{
    long balance = 0;
    char text[24];
    stg_outcome outcome =
        ask(conn, "SELECT balance FROM stagger_account WHERE name = $1",
            account, NULL, &balance);

    if (outcome.fault != STG_FAULT_NONE)
        return outcome;
    snprintf(text, sizeof text, "%ld", balance + amount);
    return ask(conn, "UPDATE stagger_account SET balance = $2 WHERE name = $1",
               account, text, &balance);
}

static stg_outcome transfer(PGconn *conn, void *ctx)
{
    const teller *t = ctx;
    stg_outcome outcome = add(conn, t->from, -1);

    return outcome.fault == STG_FAULT_NONE ? add(conn, t->to, 1) : outcome;
}

static void *work(void *ctx)
{
    static const stg_pq_options serializable = {.isolation =
                                                    STG_PQ_SERIALIZABLE};
    teller *t = ctx;
    PGconn *conn = PQconnectdb(t->conninfo); // if it fails, it is tried again
    stg_policy policy;
    stg_report report;
    char text[STG_REPORT_TEXT_MAX];

    if (stg_policy_parse(&policy, "base=2ms attempts=50 deadline=30s", NULL) !=
        STG_OK)
        return NULL;
    for (int i = 0; i < TRANSFERS; i++) {
        if (stg_pq_run(conn, transfer, t, &policy, NULL, &serializable,
                       &report))
            t->done++;
        else
            fprintf(stderr, "%s\n", stg_report_text(&report, text));
        t->attempts += report.attempts;
    }
    PQfinish(conn);
    return NULL;
}

int main(int argc, char **argv)
{
    const char *conninfo = argc > 1 ? argv[1] : "";
    teller tellers[] = {{.conninfo = conninfo, .from = "ann", .to = "bob"},
                        {.conninfo = conninfo, .from = "bob", .to = "ann"}};
    PGconn *conn = PQconnectdb(conninfo);
    pthread_t threads[2];
    long sum = 0;

    PQclear(PQexec(conn,
                   "CREATE TABLE stagger_account"
                   " (name text PRIMARY KEY, balance bigint);"
                   "INSERT INTO stagger_account"
                   " VALUES ('ann', 1000), ('bob', 1000)"));
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, &tellers[i]) != 0)
            return 2;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);

    ask(conn, "SELECT sum(balance) FROM stagger_account WHERE name <> $1", "",
        NULL, &sum);
    PQclear(PQexec(conn, "DROP TABLE stagger_account"));
    PQfinish(conn);
    printf("%u of %d done, after %u attempts; %ld in both accounts\n",
           tellers[0].done + tellers[1].done, 2 * TRANSFERS,
           tellers[0].attempts + tellers[1].attempts, sum);
    return tellers[0].done + tellers[1].done == 2 * TRANSFERS && sum == 2000
               ? 0
               : 1;
}
