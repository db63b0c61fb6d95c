#include "adapters/pq_internal.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>

#include "tests/harness.h"

/* "deadlock 40P01", or with "unsent". */
static const char *name_of(const stg_outcome *o)
{
    static char text[80];
    char state[6] = "";

    if (o->code_kind == STG_CODE_SQLSTATE)
        stg_sqlstate_unpack(o->code, state);
    snprintf(text, sizeof text, "%s%s%s%s", stg_fault_about(o->fault)->name,
             *state == '\0' ? "" : " ", state, o->unsent ? " unsent" : "");
    return text;
}

static const char *sort(stg_pq_facts f)
{
    stg_outcome o = stg_pq_sort(&f);

    return name_of(&o);
}

static const char *sort_error(const char *sqlstate)
{
    return sort((stg_pq_facts){PGRES_FATAL_ERROR, .sqlstate = sqlstate});
}

static const char *sort_commit(stg_pq_facts f)
{
    stg_outcome o;

    f.status = PGRES_FATAL_ERROR;
    o = stg_pq_sort_commit(&f);
    return name_of(&o);
}

static const char *sort_connect(const char *words)
{
    stg_outcome o = stg_pq_sort_connect(words);

    return name_of(&o);
}

TEST(pq, takes_results_that_are_no_errors_for_success)
{
    static const ExecStatusType good[] = {
        PGRES_EMPTY_QUERY,  PGRES_COMMAND_OK,   PGRES_TUPLES_OK,
        PGRES_COPY_IN,      PGRES_COPY_OUT,     PGRES_COPY_BOTH,
        PGRES_SINGLE_TUPLE, PGRES_PIPELINE_SYNC};

    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK_STR(sort((stg_pq_facts){.status = good[i]}), "ok");
    CHECK_STR(sort((stg_pq_facts){.status = PGRES_BAD_RESPONSE}), "protocol");
    CHECK_STR(sort((stg_pq_facts){.status = PGRES_PIPELINE_ABORTED}),
              "sql 25P02");
}

TEST(pq, sorts_errors_by_their_sqlstate)
{
    CHECK_STR(sort_error("40001"), "serialization 40001");
    CHECK_STR(sort_error("40P01"), "deadlock 40P01");
    CHECK_STR(sort_error("57P01"), "connection-lost 57P01");
    CHECK_STR(sort_error("23505"), "sql 23505");
    CHECK_STR(sort_error("57014"), "sql 57014");
    CHECK_STR(sort_error("25006"), "sql 25006");
    CHECK_STR(sort_error("08P01"), "sql 08P01");
    CHECK_STR(sort_error(NULL), "error");
    // As RAISE EXCEPTION USING ERRCODE = '02000' has it: it has failed.
    CHECK_STR(sort_error("02000"), "sql 02000");
}

TEST(pq, knows_more_by_what_is_around_a_result)
{
    CHECK_STR(sort((stg_pq_facts){PGRES_FATAL_ERROR, "57014", .is_late = true}),
              "timeout 57014");
    CHECK_STR(sort((stg_pq_facts){PGRES_FATAL_ERROR, "57014", .is_late = true,
                                  .is_cancelled = true}),
              "cancelled 57014");
    CHECK_STR(
        sort((stg_pq_facts){PGRES_FATAL_ERROR, "25006", .is_standby = true}),
        "connection-lost 25006");
    CHECK_STR(
        sort((stg_pq_facts){PGRES_FATAL_ERROR, "08P01", .is_fatal = true}),
        "connection-lost 08P01");
    CHECK_STR(sort((stg_pq_facts){PGRES_FATAL_ERROR, .is_broken = true}),
              "connection-lost");
    CHECK_STR(sort((stg_pq_facts){PGRES_FATAL_ERROR, .is_broken = true,
                                  .is_late = true}),
              "timeout");
    CHECK_STR(sort((stg_pq_facts){PGRES_FATAL_ERROR, .is_broken = true,
                                  .is_late = true, .is_cancelled = true}),
              "cancelled");
    CHECK_STR(sort((stg_pq_facts){PGRES_FATAL_ERROR, "40001", .is_late = true,
                                  .is_standby = true}),
              "serialization 40001");
}

/* What was written by a server that goes on did not happen; all else may
 * have. */
TEST(pq, is_unsure_of_a_commit_unless_the_server_says_that_it_failed)
{
    stg_outcome o =
        stg_pq_sort_commit(&(stg_pq_facts){.status = PGRES_COMMAND_OK});

    CHECK_STR(name_of(&o), "ok");
    CHECK_STR(sort_commit((stg_pq_facts){.sqlstate = "40001"}),
              "serialization 40001 unsent");
    CHECK_STR(sort_commit((stg_pq_facts){.sqlstate = "23505"}),
              "sql 23505 unsent");
    CHECK_STR(sort_commit((stg_pq_facts){.sqlstate = "57014", .is_late = true}),
              "timeout 57014 unsent");
    CHECK_STR(sort_commit((stg_pq_facts){.is_broken = true}),
              "outcome-unknown");
    CHECK_STR(sort_commit((stg_pq_facts){.is_broken = true, .is_late = true}),
              "outcome-unknown");
    CHECK_STR(
        sort_commit((stg_pq_facts){.sqlstate = "57P01", .is_fatal = true}),
        "outcome-unknown 57P01");
    CHECK_STR(sort_commit((stg_pq_facts){.sqlstate = "08006"}),
              "outcome-unknown 08006");
    CHECK_STR(sort_commit((stg_pq_facts){.sqlstate = "40003"}),
              "outcome-unknown 40003");
}

TEST(pq, reads_why_no_connection_was_made)
{
    char words[300];

    CHECK_STR(sort_connect("FATAL:  28P01: password authentication failed"),
              "sql 28P01");
    CHECK_STR(sort_connect("FATAL:  57P03: the database system is starting up\n"
                           "LOCATION:  ProcessStartupPacket"),
              "connection-lost 57P03");
    CHECK_STR(sort_connect("FATAL:  53300: sorry, too many clients already"),
              "too-many-connections 53300");
    CHECK_STR(sort_connect("server closed the connection unexpectedly"),
              "connection-lost");
    CHECK_STR(sort_connect(""), "connection-lost");
    snprintf(words, sizeof words, "connection to server failed: %s\n",
             strerror(ECONNREFUSED));
    CHECK_STR(sort_connect(words), "refused");
    CHECK_STR(sort_connect(strerror(ENOENT)), "refused");
    CHECK_STR(sort_connect(strerror(ETIMEDOUT)), "connect-timeout");
    snprintf(words, sizeof words, "could not translate host name \"x\": %s\n",
             gai_strerror(EAI_NONAME));
    CHECK_STR(sort_connect(words), "dns");
}

TEST(pq, hopes_for_the_best_of_several_hosts)
{
    char words[300];

    CHECK_STR(sort_connect("host a: FATAL:  28P01: no\n"
                           "host b: FATAL:  57P03: starting up\n"),
              "connection-lost 57P03");
    CHECK_STR(sort_connect("host a: FATAL:  28P01: no\n"
                           "host b: FATAL:  3D000: no\n"),
              "sql 3D000");
    snprintf(words, sizeof words, "host a: FATAL:  28P01: no\nhost b: %s",
             strerror(ECONNREFUSED));
    CHECK_STR(sort_connect(words), "refused");
    snprintf(words, sizeof words, "host a: %s\nhost b: %s",
             gai_strerror(EAI_NONAME), strerror(ECONNREFUSED));
    CHECK_STR(sort_connect(words), "refused");
}

TEST(pq, reads_a_time_as_show_prints_it)
{
    CHECK_U64(stg_pq_read_ms("0"), 0);
    CHECK_U64(stg_pq_read_ms("250ms"), 250);
    CHECK_U64(stg_pq_read_ms("90s"), 90000);
    CHECK_U64(stg_pq_read_ms("2min"), 120000);
    CHECK_U64(stg_pq_read_ms("3h"), 10800000);
    CHECK_U64(stg_pq_read_ms("1d"), 86400000);
    CHECK_U64(stg_pq_read_ms("1 fortnight"), 0);
    CHECK_U64(stg_pq_read_ms(NULL), 0);
}

TEST(pq, counts_hosts)
{
    CHECK_U64(stg_pq_count_hosts(NULL), 1);
    CHECK_U64(stg_pq_count_hosts("a"), 1);
    CHECK_U64(stg_pq_count_hosts("a,b,c"), 3);
}

TEST(pq, begins_as_it_is_told)
{
    char text[STG_PQ_BEGIN_MAX];
    stg_pq_options o = {.isolation = STG_PQ_DEFAULT};

    CHECK_STR(stg_pq_begin_text(&o, text), "BEGIN");
    o.isolation = STG_PQ_READ_COMMITTED;
    CHECK_STR(stg_pq_begin_text(&o, text),
              "BEGIN ISOLATION LEVEL READ COMMITTED");
    o.read_only = true;
    o.isolation = STG_PQ_REPEATABLE_READ;
    CHECK_STR(stg_pq_begin_text(&o, text),
              "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    o.deferrable = true;
    o.isolation = STG_PQ_SERIALIZABLE;
    CHECK_STR(stg_pq_begin_text(&o, text),
              "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE");
}

static stg_outcome succeed(PGconn *conn, void *ctx)
{
    (void)conn;
    (void)ctx;
    return stg_ok();
}

TEST(pq, refuses_what_is_not_there)
{
    PGconn *conn = PQconnectStart("invalid");
    stg_policy policy = stg_policy_default();
    stg_pq_options none = {.isolation = (stg_pq_isolation)77};
    stg_report r;

    CHECK(!stg_pq_run(NULL, succeed, NULL, &policy, NULL, NULL, &r));
    CHECK_INT(r.why, STG_WHY_INVALID);
    CHECK_STR(r.flaw, "the connection is NULL");
    CHECK(!stg_pq_run(conn, NULL, NULL, &policy, NULL, NULL, &r));
    CHECK_STR(r.flaw, "the function of the transaction is NULL");
    CHECK(!stg_pq_run(conn, succeed, NULL, &policy, NULL, &none, &r));
    CHECK_STR(r.flaw, "options.isolation is none");
    CHECK(!stg_pq_run(conn, succeed, NULL, &policy, NULL, &none, NULL));
    CHECK(!stg_pq_run(conn, succeed, NULL, NULL, NULL, NULL, &r));
    CHECK_INT(r.why, STG_WHY_INVALID);
    PQfinish(conn);
}

static bool is_told(void *ctx, const stg_report *r)
{
    return stg_report_text(r, ctx) != NULL;
}

TEST(pq, is_answered_by_its_fallback_when_it_gives_up)
{
    PGconn *conn = PQconnectdb("host=/nowhere/at/all");
    stg_policy policy = stg_policy_default();
    char told[STG_REPORT_TEXT_MAX] = "";
    stg_fallback fallback = {.answer = is_told, .ctx = told};
    stg_with with = {.fallback = &fallback};
    stg_report r;

    policy.attempts_max = 1;
    CHECK(stg_pq_run(conn, succeed, NULL, &policy, &with, NULL, &r));
    CHECK(r.fell_back);
    CHECK_INT(r.next, STG_GIVE_UP);
    CHECK(strstr(told, "gave up after 1 attempt") != NULL);
    CHECK(!stg_pq_run(conn, NULL, NULL, &policy, &with, NULL, &r));
    CHECK(!r.fell_back); // no fallback for an invalid call
    PQfinish(conn);
}

TEST(pq, cannot_connect_what_has_nowhere_to)
{
    PGconn *conn = PQconnectdb("host=/nowhere/at/all");
    stg_policy policy = stg_policy_default();
    stg_report r;

    policy.attempts_max = 2;
    policy.backoff.base = 0;
    CHECK(!stg_pq_run(conn, succeed, NULL, &policy, NULL, NULL, &r));
    CHECK_INT(r.why, STG_WHY_ATTEMPTS);
    CHECK_INT(r.last.fault, STG_FAULT_REFUSED);
    CHECK(r.last.unsent);
    CHECK_INT(r.attempts, 2);
    PQfinish(conn);
}
