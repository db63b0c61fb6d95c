/* Transactions on a real PostgreSQL that fails on purpose. By
 * tests/store/on_postgres.sh, which has one. */
#include <stagger/pq.h>

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stagger/loop.h>

#include "tests/adapters/pq_proxy.h"
#include "tests/adapters/story.h"
#include "tests/harness.h"

static const char quick[] = "fixed base=1ms jitter=none attempts=5";

/* -- the server */

static void hear_nothing(void *ctx, const char *message)
{
    (void)ctx;
    (void)message;
}

/* host: NULL, or another one than the URL's. */
static PGconn *connect_to(const char *host)
{
    const char *names[] = {"dbname", "host", NULL};
    const char *values[] = {getenv("STAGGER_TEST_POSTGRES"), host, NULL};
    PGconn *conn = PQconnectdbParams(names, values, 1);

    if (PQstatus(conn) != CONNECTION_OK)
        harness_fail(__FILE__, __LINE__, "%s", PQerrorMessage(conn));
    PQsetNoticeProcessor(conn, hear_nothing, NULL);
    return conn;
}

/* `freeze`, `thaw`, `stop`, `start`: of the server. */
static void tell_server(const char *verb)
{
    char command[512];

    snprintf(command, sizeof command, "%s %s %s", getenv("STAGGER_TEST_SCRIPT"),
             verb, getenv("STAGGER_TEST_SERVER"));
    CHECK_INT(system(command), 0);
}

/* The folder of its socket. */
static void find_socket(char folder[200])
{
    PGconn *conn = connect_to(NULL);

    snprintf(folder, 200, "%s", PQhost(conn));
    PQfinish(conn);
}

/* The first value of the answer, as a number. */
static int ask(PGconn *conn, const char *sql)
{
    PGresult *res = PQexec(conn, sql);
    int value = -1;

    if (PQresultStatus(res) == PGRES_TUPLES_OK)
        value = PQntuples(res) == 0 ? 0 : atoi(PQgetvalue(res, 0, 0));
    else if (PQresultStatus(res) != PGRES_COMMAND_OK)
        harness_fail(__FILE__, __LINE__, "%s", PQerrorMessage(conn));
    PQclear(res);
    return value;
}

/* Ends the session of a connection from outside, and waits until it shows. */
static void terminate(PGconn *conn)
{
    struct pollfd fd = {.fd = PQsocket(conn), .events = POLLIN};
    PGconn *other = connect_to(NULL);
    char sql[80];

    snprintf(sql, sizeof sql, "SELECT pg_terminate_backend(%d, 10000)::int",
             PQbackendPID(conn));
    CHECK_INT(ask(other, sql), 1);
    CHECK_INT(poll(&fd, 1, 10000), 1);
    PQfinish(other);
}

/* -- a world: a table, a session to work in, one to look with */

typedef struct world {
    PGconn *conn, *other;
    stg_policy policy;
    stg_with with;
    stg_pq_options options;
    stg_report report;
    stg_outcome (*body)(struct world *w);
    unsigned calls, connected;
    bool is_done;
} world;

static stg_outcome call_body(PGconn *conn, void *ctx)
{
    world *w = ctx;

    CHECK(conn == w->conn);
    CHECK_INT(PQtransactionStatus(conn), PQTRANS_INTRANS);
    w->calls++;
    return w->body(w);
}

static stg_outcome count_connected(PGconn *conn, void *ctx)
{
    world *w = ctx;

    CHECK_INT(PQtransactionStatus(conn), PQTRANS_IDLE);
    w->connected++;
    return stg_ok();
}

/* host: as of connect_to(). */
static void begin_world(world *w, const char *host)
{
    *w = (world){.conn = connect_to(host), .other = connect_to(NULL)};
    w->policy = policy_of(quick);
    w->options.connected = count_connected;
    w->options.connected_ctx = w;
    ask(w->other,
        "SET client_min_messages = 'warning';"
        "DROP TABLE IF EXISTS item;"
        "CREATE TABLE item (id int PRIMARY KEY"
        " DEFERRABLE INITIALLY IMMEDIATE, n int)");
}

static void run_in(world *w, stg_outcome (*body)(world *))
{
    w->body = body;
    w->calls = w->connected = 0;
    w->is_done = stg_pq_run(w->conn, call_body, w, &w->policy, &w->with,
                            &w->options, &w->report);
    CHECK_INT(w->is_done, w->report.next == STG_DONE);
    // Whatever it was, it is over.
    if (PQstatus(w->conn) == CONNECTION_OK) {
        CHECK_INT(PQtransactionStatus(w->conn), PQTRANS_IDLE);
        CHECK_INT(PQpipelineStatus(w->conn), PQ_PIPELINE_OFF);
    }
}

static void end_world(world *w)
{
    PQfinish(w->conn);
    PQfinish(w->other);
}

/* "done after 2 attempts", "gave up after 1 attempt: sql 23505 (permanent)" */
static const char *story_of(const world *w)
{
    static char text[200];
    const stg_outcome *o = &w->report.last;
    char state[6] = "";

    if (o->code_kind == STG_CODE_SQLSTATE)
        stg_sqlstate_unpack(o->code, state);
    if (w->is_done)
        snprintf(text, sizeof text, "done after %u", w->report.attempts);
    else if (w->report.why == STG_WHY_INVALID)
        snprintf(text, sizeof text, "%s", w->report.flaw);
    else
        snprintf(text, sizeof text, "%s%s%s after %u (%s)",
                 stg_fault_about(o->fault)->name, *state == '\0' ? "" : " ",
                 state, w->report.attempts, stg_why_name(w->report.why));
    return text;
}

static int count_rows(world *w)
{
    return ask(w->other, "SELECT count(*) FROM item");
}

static stg_outcome do_in(world *w, const char *sql)
{
    PGresult *res = stg_pq_exec(w->conn, sql);
    stg_outcome o = stg_pq_result(w->conn, res);

    PQclear(res);
    return o;
}

/* A row with a new number. */
static stg_outcome insert(world *w)
{
    return do_in(w, "INSERT INTO item SELECT 1 + count(*), 0 FROM item");
}

/* -- commits, and errors that stay */

TEST(pq_server, commits_what_the_function_did)
{
    world w;

    begin_world(&w, NULL);
    run_in(&w, insert);
    CHECK_STR(story_of(&w), "done after 1");
    CHECK_INT(count_rows(&w), 1);
    CHECK_INT(w.connected, 0);
    end_world(&w);
}

static stg_outcome insert_twice_the_same(world *w)
{
    stg_outcome o = do_in(w, "INSERT INTO item VALUES (1)");

    return o.fault != STG_FAULT_NONE ? o
                                     : do_in(w, "INSERT INTO item VALUES (1)");
}

static stg_outcome insert_late(world *w)
{
    do_in(w, "SET CONSTRAINTS ALL DEFERRED");
    do_in(w, "INSERT INTO item VALUES (1)");
    return do_in(w, "INSERT INTO item VALUES (1)");
}

TEST(pq_server, rolls_back_and_gives_up_what_fails_for_good)
{
    world w;

    begin_world(&w, NULL);
    run_in(&w, insert_twice_the_same);
    CHECK_STR(story_of(&w), "sql 23505 after 1 (permanent)");
    run_in(&w, insert_late); // and the COMMIT fails
    CHECK_STR(story_of(&w), "sql 23505 after 1 (permanent)");
    CHECK_INT(count_rows(&w), 0);
    CHECK_INT(w.connected, 0);
    end_world(&w);
}

static stg_outcome ignore_an_error(world *w)
{
    insert(w);
    do_in(w, "SELECT 1 / 0");
    return stg_ok();
}

static stg_outcome commit_itself(world *w)
{
    insert(w);
    return do_in(w, "COMMIT");
}

static stg_outcome fail_elsewhere(world *w)
{
    insert(w);
    return stg_failed(STG_FAULT_TIMEOUT); // not of this session
}

static stg_outcome fail_elsewhere_at_commit(world *w)
{
    insert(w);
    return stg_failed(STG_FAULT_OUTCOME_UNKNOWN);
}

static stg_outcome ask_for_another_try(world *w)
{
    stg_outcome o = insert(w);

    return w->calls > 1 ? o : stg_failed(STG_FAULT_SERIALIZATION);
}

TEST(pq_server, repeats_what_the_function_wants_repeated)
{
    world w;

    begin_world(&w, NULL);
    run_in(&w, ask_for_another_try);
    CHECK_STR(story_of(&w), "done after 2");
    CHECK_INT(count_rows(&w), 1);
    end_world(&w);
}

TEST(pq_server, does_not_commit_for_a_function_that_breaks_its_rules)
{
    world w;

    begin_world(&w, NULL);
    run_in(&w, ignore_an_error);
    CHECK_STR(story_of(&w), "sql 25P02 after 1 (permanent)");
    CHECK_INT(count_rows(&w), 0);
    run_in(&w, commit_itself);
    CHECK_STR(story_of(&w), "invalid after 1 (permanent)");
    CHECK_INT(count_rows(&w), 1);
    end_world(&w);
}

TEST(pq_server, repeats_what_was_done_elsewhere_only_if_it_may_be)
{
    world w;

    begin_world(&w, NULL);
    run_in(&w, fail_elsewhere);
    CHECK_STR(story_of(&w), "timeout after 1 (not-idempotent)");
    run_in(&w, fail_elsewhere_at_commit);
    CHECK_STR(story_of(&w), "outcome-unknown after 1 (not-idempotent)");
    w.with.has_key = true;
    run_in(&w, fail_elsewhere);
    CHECK_STR(story_of(&w), "timeout after 5 (attempts)");
    CHECK_INT(count_rows(&w), 0);
    end_world(&w);
}

static stg_outcome look_at_modes(world *w)
{
    CHECK_INT(ask(w->conn,
                  "SELECT (current_setting('transaction_isolation')"
                  " = 'serializable')::int"),
              1);
    return insert(w);
}

TEST(pq_server, begins_as_the_options_say)
{
    world w;

    begin_world(&w, NULL);
    w.options.isolation = STG_PQ_SERIALIZABLE;
    run_in(&w, look_at_modes);
    CHECK_STR(story_of(&w), "done after 1");
    w.options.read_only = true;
    run_in(&w, look_at_modes);
    CHECK_STR(story_of(&w), "sql 25006 after 1 (permanent)");
    end_world(&w);
}

static stg_outcome fail_test(world *w)
{
    (void)w;
    harness_fail(__FILE__, __LINE__, "it is called");
}

static const char *find_flaw(world *w)
{
    CHECK(
        !stg_pq_run(w->conn, call_body, w, &w->policy, NULL, NULL, &w->report));
    CHECK_INT(w->report.why, STG_WHY_INVALID);
    CHECK_INT(w->report.attempts, 0);
    return w->report.flaw;
}

TEST(pq_server, refuses_a_connection_that_is_in_use)
{
    world w;

    begin_world(&w, NULL);
    w.body = fail_test;
    ask(w.conn, "BEGIN");
    CHECK_STR(find_flaw(&w), "the connection is in a transaction already");
    ask(w.conn, "COMMIT");
    CHECK_INT(PQenterPipelineMode(w.conn), 1);
    CHECK_STR(find_flaw(&w), "the connection is in pipeline mode");
    CHECK_INT(PQexitPipelineMode(w.conn), 1);
    CHECK_INT(PQsendQuery(w.conn, "SELECT 1"), 1);
    CHECK_STR(find_flaw(&w), "the connection has a command under way");
    PQclear(stg_pq_wait(w.conn));
    w.body = insert;
    run_in(&w, insert);
    CHECK_STR(story_of(&w), "done after 1");
    end_world(&w);
}

/* -- conflicts */

typedef struct rival {
    pthread_t thread;
    pthread_barrier_t *both;
    const char *first, *second; /* statements */
    stg_pq_isolation isolation;
    int rounds;
    unsigned attempts;
} rival;

static stg_outcome compete(PGconn *conn, void *ctx)
{
    rival *r = ctx;
    PGresult *res = stg_pq_exec(conn, r->first);
    stg_outcome o = stg_pq_result(conn, res);

    PQclear(res);
    if (r->attempts++ == 0) // they hold what the other one wants
        pthread_barrier_wait(r->both);
    if (o.fault != STG_FAULT_NONE)
        return o;
    res = stg_pq_exec(conn, r->second);
    o = stg_pq_result(conn, res);
    PQclear(res);
    return o;
}

static void *run_rival(void *ctx)
{
    stg_policy policy = policy_of("base=1ms attempts=50 deadline=30s");
    PGconn *conn = connect_to(NULL);
    rival *r = ctx;
    stg_pq_options options = {.isolation = r->isolation};

    ask(conn, "SET deadlock_timeout = '10ms'");
    for (int i = 0; i < r->rounds; i++)
        CHECK(stg_pq_run(conn, compete, r, &policy, NULL, &options, NULL));
    PQfinish(conn);
    return NULL;
}

/* Both to their good end. Returns how many attempts failed. */
static unsigned let_compete(rival *a, rival *b)
{
    pthread_barrier_t both;

    pthread_barrier_init(&both, NULL, 2);
    a->both = b->both = &both;
    CHECK(pthread_create(&a->thread, NULL, run_rival, a) == 0);
    CHECK(pthread_create(&b->thread, NULL, run_rival, b) == 0);
    pthread_join(a->thread, NULL);
    pthread_join(b->thread, NULL);
    pthread_barrier_destroy(&both);
    return a->attempts + b->attempts - (unsigned)(a->rounds + b->rounds);
}

TEST(pq_server, repeats_the_victim_of_a_deadlock)
{
    static const char one[] = "UPDATE item SET n = n + 1 WHERE id = 1";
    static const char two[] = "UPDATE item SET n = n + 1 WHERE id = 2";
    rival a = {.first = one, .second = two, .rounds = 1};
    rival b = {.first = two, .second = one, .rounds = 1};
    world w;

    begin_world(&w, NULL);
    ask(w.other, "INSERT INTO item VALUES (1, 0), (2, 0)");
    CHECK(let_compete(&a, &b) >= 1);
    CHECK_INT(ask(w.other, "SELECT sum(n) FROM item"), 4);
    end_world(&w);
}

TEST(pq_server, repeats_what_cannot_be_serialized)
{
    static const char add[] =
        "INSERT INTO item SELECT 1 + max(id), 1 + max(n) FROM item";
    rival a = {.first = "SELECT sum(n) FROM item",
               .second = add,
               .isolation = STG_PQ_SERIALIZABLE,
               .rounds = 10};
    rival b = a;
    world w;

    begin_world(&w, NULL);
    ask(w.other, "INSERT INTO item VALUES (0, 0)");
    CHECK(let_compete(&a, &b) >= 1);
    CHECK_INT(ask(w.other, "SELECT max(n) FROM item"), 20);
    CHECK_INT(count_rows(&w), 21);
    end_world(&w);
}

/* Reads what another one writes that has read what this one writes; the other
 * one is first, and this one fails at its COMMIT. */
static stg_outcome skew(world *w)
{
    stg_outcome o;

    ask(w->conn, "SELECT sum(n) FROM item");
    if (w->calls == 1) {
        ask(w->other,
            "BEGIN ISOLATION LEVEL SERIALIZABLE;"
            "SELECT sum(n) FROM item");
        ask(w->other, "INSERT INTO item VALUES (10, 1)");
    }
    o = do_in(w, "INSERT INTO item VALUES (20, 1)");
    if (w->calls == 1)
        ask(w->other, "COMMIT");
    return o;
}

TEST(pq_server, repeats_what_cannot_be_serialized_at_its_commit)
{
    world w;

    begin_world(&w, NULL);
    w.options.isolation = STG_PQ_SERIALIZABLE;
    run_in(&w, skew);
    CHECK_STR(story_of(&w), "done after 2");
    CHECK_INT(w.report.last.fault, STG_FAULT_SERIALIZATION);
    CHECK_INT(w.connected, 0);
    CHECK_INT(count_rows(&w), 2);
    end_world(&w);
}

/* Where the examples are built, STAGGER_EXAMPLE has it. */
TEST(pq_server, runs_its_example)
{
    const char *example = getenv("STAGGER_EXAMPLE");
    char command[600];

    if (example == NULL)
        return;
    snprintf(command, sizeof command, "%s '%s' >&2", example,
             getenv("STAGGER_TEST_POSTGRES"));
    CHECK_INT(system(command), 0);
}

/* -- connections that break */

static stg_outcome lose_session_between(world *w)
{
    stg_outcome o = insert(w);

    if (w->calls == 1)
        terminate(w->conn);
    return o.fault != STG_FAULT_NONE ? o : insert(w);
}

TEST(pq_server, connects_anew_when_the_session_is_ended_between_statements)
{
    world w;

    begin_world(&w, NULL);
    run_in(&w, lose_session_between);
    CHECK_STR(story_of(&w), "done after 2");
    CHECK_INT(w.report.last.fault, STG_FAULT_CONNECTION_LOST);
    CHECK_U64(w.report.last.code, stg_sqlstate_pack("57P01"));
    CHECK_INT(w.connected, 1);
    CHECK_INT(count_rows(&w), 2);
    end_world(&w);
}

static stg_outcome want_another_session(world *w)
{
    return w->calls > 1 ? insert(w) : stg_failed(STG_FAULT_CONNECTION_LOST);
}

TEST(pq_server, connects_anew_when_the_session_is_of_no_use)
{
    world w;

    begin_world(&w, NULL);
    run_in(&w, want_another_session);
    CHECK_STR(story_of(&w), "done after 2");
    CHECK_INT(w.connected, 1);
    end_world(&w);
}

static stg_outcome lose_session_at_the_end(world *w)
{
    stg_outcome o = insert(w);

    if (w->calls == 1)
        terminate(w->conn);
    return o;
}

TEST(pq_server, knows_that_a_commit_was_not_sent)
{
    world w;

    begin_world(&w, NULL);
    run_in(&w, lose_session_at_the_end);
    CHECK_STR(story_of(&w), "done after 2");
    CHECK_INT(count_rows(&w), 1);
    end_world(&w);
}

TEST(pq_server, takes_no_attempt_for_a_session_that_died_idle)
{
    world w;

    begin_world(&w, NULL);
    terminate(w.conn);
    run_in(&w, insert);
    CHECK_STR(story_of(&w), "done after 1");
    CHECK_INT(w.connected, 1);
    CHECK_INT(count_rows(&w), 1);
    end_world(&w);
}

static stg_outcome use_prepared(world *w)
{
    if (w->calls == 1)
        terminate(w->conn);
    return do_in(w, "EXECUTE add_item");
}

static stg_outcome prepare_session(PGconn *conn, void *ctx)
{
    world *w = ctx;

    if (w->connected++ == 0)
        return stg_failed(STG_FAULT_LOCK_TIMEOUT);
    ask(conn, "PREPARE add_item AS INSERT INTO item VALUES (1, 1)");
    return stg_ok();
}

static stg_outcome begin_in_session(PGconn *conn, void *ctx)
{
    (void)ctx;
    ask(conn, "BEGIN");
    return stg_ok();
}

TEST(pq_server, prepares_each_new_session)
{
    world w;

    begin_world(&w, NULL);
    w.options.connected = prepare_session;
    run_in(&w, use_prepared);
    CHECK_STR(story_of(&w), "done after 3"); // once not prepared
    CHECK_INT(w.connected, 2);
    CHECK_INT(count_rows(&w), 1);
    CHECK_INT(PQsetErrorVerbosity(w.conn, PQERRORS_DEFAULT), PQERRORS_DEFAULT);

    terminate(w.conn);
    w.options.connected = begin_in_session;
    run_in(&w, insert);
    CHECK_STR(story_of(&w), "invalid after 1 (permanent)");
    end_world(&w);
}

static void start_server(void *ctx, const stg_event *event)
{
    (void)ctx;
    if (event->kind == STG_EVENT_DECISION && event->retry->attempts == 2)
        tell_server("start");
}

static stg_outcome stop_server(world *w)
{
    if (w->calls == 1)
        tell_server("stop");
    return insert(w);
}

TEST(pq_server, goes_on_when_the_server_was_stopped_and_started)
{
    stg_hook hook = {.on = start_server};
    world w;

    begin_world(&w, NULL);
    w.with.hook = &hook;
    run_in(&w, stop_server);
    CHECK_STR(story_of(&w), "done after 3");
    CHECK_INT(w.calls, 2); // the second did not get that far
    CHECK_INT(w.report.last.fault, STG_FAULT_REFUSED);
    CHECK_INT(w.connected, 1);
    PQreset(w.other);
    CHECK_INT(count_rows(&w), 1);
    end_world(&w);
}

TEST(pq_server, gives_up_where_it_is_not_let_in)
{
    char folder[200];
    const char *names[] = {"host", "user", "passfile", "password", NULL};
    const char *values[] = {folder, "stagger", "/nowhere", NULL, NULL};
    static const char *const passwords[] = {"wrong", ""};
    world w;

    find_socket(folder);
    begin_world(&w, NULL);
    for (int i = 0; i < 2; i++) {
        PQfinish(w.conn);
        values[3] = passwords[i];
        w.conn = PQconnectdbParams(names, values, 1);
        CHECK_INT(PQstatus(w.conn), CONNECTION_BAD);
        run_in(&w, fail_test);
        CHECK_STR(story_of(&w), "sql 28P01 after 1 (permanent)");
    }
    end_world(&w);
}

/* -- a COMMIT without an answer */

/* Loses the first COMMIT in this way. options and with are kept. */
static void lose(world *w, pq_loss loss, const char *policy)
{
    bool is_idempotent = w->options.idempotent;
    stg_with with = w->with;
    char folder[200];
    pq_proxy p;

    find_socket(folder);
    pq_proxy_begin(&p, folder);
    begin_world(w, p.folder);
    w->policy = policy_of(policy);
    w->options.idempotent = is_idempotent;
    w->with = with;
    p.commits = 1;
    p.loss = (int)loss;
    run_in(w, insert);
    PQfinish(w->conn);
    w->conn = NULL;
    pq_proxy_end(&p);
}

TEST(pq_server, does_not_repeat_a_commit_whose_answer_was_lost)
{
    world w = {.calls = 0};

    lose(&w, PQ_LOSE_ANSWER, quick);
    CHECK_STR(story_of(&w), "outcome-unknown after 1 (not-idempotent)");
    CHECK_INT(w.calls, 1);
    CHECK_INT(count_rows(&w), 1); // it was done
    end_world(&w);
}

TEST(pq_server, does_not_repeat_a_commit_that_was_lost_itself)
{
    world w = {.calls = 0};

    lose(&w, PQ_LOSE_COMMIT, quick);
    CHECK_STR(story_of(&w), "outcome-unknown after 1 (not-idempotent)");
    CHECK_INT(w.calls, 1);
    CHECK_INT(count_rows(&w), 0); // it was not; nobody here can know
    end_world(&w);
}

TEST(pq_server, repeats_a_commit_without_an_answer_that_is_idempotent)
{
    world w = {.options = {.idempotent = true}};

    lose(&w, PQ_LOSE_ANSWER, quick);
    CHECK_STR(story_of(&w), "done after 2");
    CHECK_INT(w.calls, 2);
    CHECK_INT(w.connected, 1);
    CHECK_INT(count_rows(&w), 2);
    end_world(&w);

    w = (world){.with = {.method = "PUT"}};
    lose(&w, PQ_LOSE_ANSWER, quick);
    CHECK_STR(story_of(&w), "done after 2");
    end_world(&w);
}

TEST(pq_server, is_sure_of_a_commit_that_was_answered)
{
    world w = {.calls = 0};

    lose(&w, PQ_CUT_ANSWER, quick);
    CHECK_STR(story_of(&w), "done after 1");
    CHECK_INT(count_rows(&w), 1);
    end_world(&w);
}

/* A trigger that runs these words at COMMIT. */
static void at_commit(world *w, const char *words)
{
    char sql[600];

    snprintf(sql, sizeof sql,
             "CREATE OR REPLACE FUNCTION at_commit() RETURNS trigger"
             " LANGUAGE plpgsql AS $$ BEGIN PERFORM %s; RETURN NULL; END $$;"
             "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON item"
             " INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION at_commit()",
             words);
    ask(w->other, sql);
}

TEST(pq_server, is_unsure_of_a_commit_at_which_the_session_ends)
{
    world w;

    begin_world(&w, NULL);
    at_commit(&w, "pg_terminate_backend(pg_backend_pid())");
    run_in(&w, insert);
    CHECK_STR(story_of(&w), "outcome-unknown 57P01 after 1 (not-idempotent)");
    end_world(&w);
}

/* -- sessions that are ended at any moment */

enum { WORKERS = 4, PIECES = 200 };

typedef struct worker {
    pthread_t thread;
    int first, id; /* of the rows that it makes */
    unsigned attempts;
    bool is_done[PIECES];
} worker;

static stg_outcome insert_piece(PGconn *conn, void *ctx)
{
    worker *k = ctx;
    char sql[60];
    PGresult *res;
    stg_outcome o;

    snprintf(sql, sizeof sql, "INSERT INTO item VALUES (%d, 0)", k->id);
    res = stg_pq_exec(conn, sql);
    o = stg_pq_result(conn, res);
    PQclear(res);
    return o;
}

static void *run_worker(void *ctx)
{
    stg_policy policy = policy_of("fixed base=1ms attempts=1000 deadline=1m");
    PGconn *conn = connect_to(NULL);
    stg_report report;
    worker *k = ctx;

    for (int i = 0; i < PIECES; i++) {
        k->id = k->first + i;
        k->is_done[i] =
            stg_pq_run(conn, insert_piece, k, &policy, NULL, NULL, &report);
        k->attempts += report.attempts;
        CHECK(k->is_done[i] || report.why == STG_WHY_NOT_IDEMPOTENT);
    }
    PQfinish(conn);
    return NULL;
}

static void *end_sessions(void *ctx)
{
    atomic_bool *is_over = ctx;
    PGconn *conn = connect_to(NULL);

    while (!*is_over) {
        ask(conn,
            "SELECT count(pg_terminate_backend(pid)) FROM"
            " (SELECT pid FROM pg_stat_activity WHERE datname ="
            " current_database() AND pid <> pg_backend_pid()"
            " AND query LIKE ANY ('{BEGIN%,INSERT%,COMMIT}')"
            " ORDER BY random() LIMIT 1) AS one");
    }
    PQfinish(conn);
    return NULL;
}

static bool has_row(PGconn *conn, int id)
{
    char sql[60];

    snprintf(sql, sizeof sql, "SELECT 1 FROM item WHERE id = %d", id);
    return ask(conn, sql) == 1;
}

/* A transaction that was repeated after it was committed would find its row. */
TEST(pq_server, does_each_transaction_once_whenever_sessions_are_ended)
{
    worker workers[WORKERS] = {{.first = 0}};
    atomic_bool is_over = false;
    unsigned attempts = 0;
    pthread_t killer;
    PGconn *conn;
    world w;

    begin_world(&w, NULL);
    for (int i = 0; i < WORKERS; i++) {
        workers[i].first = 1000 * i;
        CHECK(pthread_create(&workers[i].thread, NULL, run_worker,
                             &workers[i]) == 0);
    }
    CHECK(pthread_create(&killer, NULL, end_sessions, &is_over) == 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i].thread, NULL);
    is_over = true;
    pthread_join(killer, NULL);

    conn = connect_to(NULL);
    for (int i = 0; i < WORKERS; i++) {
        attempts += workers[i].attempts;
        for (int j = 0; j < PIECES; j++)
            if (workers[i].is_done[j])
                CHECK(has_row(conn, workers[i].first + j));
    }
    CHECK(attempts > WORKERS * PIECES); // some were hit
    PQfinish(conn);
    end_world(&w);
}

/* -- time */

TEST(pq_server, does_not_repeat_a_commit_that_is_not_answered_in_time)
{
    world w = {.calls = 0};

    lose(&w, PQ_HOLD_ANSWER, "fixed base=1ms attempt-timeout=500ms");
    CHECK_STR(story_of(&w), "outcome-unknown after 1 (not-idempotent)");
    CHECK(w.report.took < 10 * STG_S);
    CHECK_INT(count_rows(&w), 1);
    end_world(&w);
}

static stg_outcome wait_for_lock(world *w)
{
    return do_in(w, "LOCK TABLE item");
}

static stg_outcome sleep_by_pqexec(world *w)
{
    PGresult *res = PQexec(w->conn, "SELECT pg_sleep(60)");
    stg_outcome o = stg_pq_result(w->conn, res);

    PQclear(res);
    return o;
}

TEST(pq_server, ends_a_statement_with_the_attempt_and_keeps_the_session)
{
    int session;
    world w;

    begin_world(&w, NULL);
    session = PQbackendPID(w.conn);
    w.policy = policy_of("fixed base=1ms attempts=2 attempt-timeout=300ms");
    ask(w.other, "BEGIN; LOCK TABLE item");
    run_in(&w, wait_for_lock);
    CHECK_STR(story_of(&w), "timeout 57014 after 2 (attempts)");
    run_in(&w, sleep_by_pqexec);
    CHECK_STR(story_of(&w), "timeout 57014 after 2 (attempts)");
    w.policy = policy_of("fixed base=1ms attempts=9 deadline=300ms");
    run_in(&w, wait_for_lock);
    CHECK_STR(story_of(&w), "timeout 57014 after 1 (deadline)");
    CHECK_INT(PQbackendPID(w.conn), session);
    CHECK_INT(w.connected, 0);
    end_world(&w);
}

static stg_outcome look_at_timeout(world *w)
{
    w->calls = (unsigned)ask(w->conn,
                             "SELECT extract(epoch FROM current_setting("
                             "'statement_timeout')::interval)::int");
    return stg_ok();
}

TEST(pq_server, leaves_a_shorter_statement_timeout_alone)
{
    world w;

    begin_world(&w, NULL);
    w.policy = policy_of("attempt-timeout=1m");
    ask(w.conn, "SET statement_timeout = '5s'");
    run_in(&w, look_at_timeout);
    CHECK_INT(w.calls, 5);
    ask(w.conn, "SET statement_timeout = '10min'");
    run_in(&w, look_at_timeout);
    CHECK(50 <= w.calls && w.calls <= 60);
    ask(w.conn, "SET statement_timeout = 0");
    run_in(&w, look_at_timeout);
    CHECK(50 <= w.calls && w.calls <= 60);
    w.policy = policy_of("deadline=none");
    run_in(&w, look_at_timeout);
    CHECK_INT(w.calls, 0);
    CHECK_INT(ask(w.conn, "SHOW statement_timeout"), 0);
    end_world(&w);
}

static stg_outcome look_at_timeout_anew(world *w)
{
    if (w->calls > 1)
        return look_at_timeout(w);
    terminate(w->conn);
    return stg_failed(STG_FAULT_CONNECTION_LOST);
}

TEST(pq_server, asks_each_new_session_for_its_statement_timeout)
{
    world w;

    begin_world(&w, NULL);
    w.policy = policy_of("base=1ms attempt-timeout=1m");
    ask(w.conn, "SET statement_timeout = '5s'");
    run_in(&w, look_at_timeout_anew);
    CHECK(50 <= w.calls && w.calls <= 60);
    end_world(&w);
}

static stg_outcome take_too_long(world *w)
{
    stg_outcome o = insert(w);

    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    return o;
}

TEST(pq_server, does_not_commit_what_took_too_long)
{
    world w;

    begin_world(&w, NULL);
    w.policy = policy_of("fixed base=1ms attempts=2 attempt-timeout=200ms");
    run_in(&w, take_too_long);
    CHECK_STR(story_of(&w), "timeout after 2 (attempts)");
    CHECK_INT(count_rows(&w), 0);
    end_world(&w);
}

/* More than goes into a socket. */
static stg_outcome freeze(world *w)
{
    char *sql = malloc(10000000);
    stg_outcome o;

    CHECK(sql != NULL);
    memset(sql, ' ', 10000000);
    strcpy(sql + 10000000 - 9, "SELECT 1");
    tell_server("freeze");
    o = do_in(w, sql);
    free(sql);
    return o;
}

TEST(pq_server, leaves_a_server_that_hangs)
{
    world w;

    begin_world(&w, NULL);
    w.policy = policy_of("fixed base=1ms attempts=2 attempt-timeout=300ms");
    run_in(&w, freeze);
    tell_server("thaw");
    CHECK_STR(story_of(&w), "connect-timeout after 2 (attempts)");
    CHECK_INT(w.calls, 1);
    CHECK(w.report.took < 10 * STG_S);
    CHECK(PQstatus(w.conn) != CONNECTION_OK);

    w.policy = policy_of(quick);
    run_in(&w, insert); // and finds it again
    CHECK_STR(story_of(&w), "done after 1");
    CHECK_INT(count_rows(&w), 1);
    end_world(&w);
}

static void *cancel_soon(void *ctx)
{
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    stg_cancel_set(ctx);
    return NULL;
}

/* Sets the cancel a moment later. */
static void begin_to_cancel(world *w)
{
    pthread_t thread;

    CHECK(pthread_create(&thread, NULL, cancel_soon, w->with.cancel) == 0);
    pthread_detach(thread);
}

static stg_outcome sleep_long(world *w)
{
    insert(w);
    begin_to_cancel(w);
    return do_in(w, "SELECT pg_sleep(60)");
}

static stg_outcome insert_and_cancel(world *w)
{
    stg_outcome o = insert(w);

    begin_to_cancel(w);
    return o;
}

static stg_outcome cancel_itself(world *w)
{
    stg_outcome o = insert(w);

    stg_cancel_set(w->with.cancel);
    return o;
}

TEST(pq_server, ends_when_it_is_cancelled)
{
    stg_cancel cancel = {0}, before_commit = {0};
    world w;

    begin_world(&w, NULL);
    w.with.cancel = &cancel;
    run_in(&w, sleep_long);
    CHECK_STR(story_of(&w), "cancelled 57014 after 1 (cancelled)");
    CHECK(w.report.took < 10 * STG_S);
    ask(w.other,
        "SET lock_timeout = '10s';"
        "BEGIN; LOCK TABLE item; COMMIT"); // it has stopped

    w.with.cancel = &before_commit;
    run_in(&w, cancel_itself);
    CHECK_STR(story_of(&w), "cancelled after 1 (cancelled)");
    CHECK_INT(count_rows(&w), 0);
    end_world(&w);
}

TEST(pq_server, waits_for_a_commit_although_it_is_cancelled)
{
    stg_cancel cancel = {0};
    world w;

    begin_world(&w, NULL);
    at_commit(&w, "pg_sleep(0.8)");
    w.with.cancel = &cancel;
    run_in(&w, insert_and_cancel);
    CHECK_STR(story_of(&w), "done after 1");
    CHECK(stg_cancel_is_set(&cancel));
    CHECK_INT(count_rows(&w), 1);
    end_world(&w);
}

TEST(pq_server, is_nested_like_a_call)
{
    stg_policy outer = policy_of("fixed base=1ms jitter=none attempts=2");
    stg_loop l;
    world w;

    begin_world(&w, NULL);
    stg_loop_begin(&l, &outer, NULL);
    CHECK(stg_loop_again(&l));
    w.with.parent = &l.op.retry;
    ask(w.other, "BEGIN; LOCK TABLE item");
    ask(w.conn, "SET lock_timeout = '10ms'");
    run_in(&w, wait_for_lock);
    CHECK_STR(story_of(&w), "lock-timeout 55P03 after 1 (nested)");
    stg_loop_end(&l);
    end_world(&w);
}

/* -- what a function leaves behind */

static stg_outcome leave_pipeline(world *w)
{
    if (w->calls > 1)
        return insert(w);
    CHECK_INT(PQenterPipelineMode(w->conn), 1);
    for (int i = 0; i < 10; i++)
        CHECK_INT(PQsendQueryParams(w->conn, "SELECT 1 / 0", 0, NULL, NULL,
                                    NULL, NULL, 0),
                  1);
    return stg_failed(STG_FAULT_DEADLOCK);
}

static stg_outcome leave_copy_in(world *w)
{
    return w->calls > 1 ? insert(w)
                        : (do_in(w, "COPY item FROM STDIN"),
                           stg_failed(STG_FAULT_DEADLOCK));
}

static stg_outcome leave_results(world *w)
{
    if (w->calls > 1)
        return insert(w);
    CHECK_INT(PQsendQuery(w->conn, "SELECT 1; SELECT 2; SELECT 3"), 1);
    return stg_failed(STG_FAULT_DEADLOCK);
}

static stg_outcome leave_copy_out(world *w)
{
    return w->calls > 1 ? insert(w)
                        : (do_in(w, "COPY pg_class TO STDOUT"),
                           stg_failed(STG_FAULT_DEADLOCK));
}

TEST(pq_server, cleans_up_after_a_function)
{
    stg_outcome (*const leavers[])(world *) = {leave_pipeline, leave_copy_in,
                                               leave_results};
    int session;
    world w;

    begin_world(&w, NULL);
    session = PQbackendPID(w.conn);
    for (int i = 0; i < 3; i++) {
        run_in(&w, leavers[i]);
        CHECK_STR(story_of(&w), "done after 2");
    }
    CHECK_INT(PQbackendPID(w.conn), session);
    run_in(&w, leave_copy_out); // which is begun anew
    CHECK_STR(story_of(&w), "done after 2");
    CHECK_INT(w.connected, 1);
    CHECK_INT(count_rows(&w), 4);
    end_world(&w);
}

static stg_outcome insert_in_pipeline(world *w)
{
    CHECK_INT(PQenterPipelineMode(w->conn), 1);
    CHECK_INT(PQsendQueryParams(w->conn, "INSERT INTO item VALUES (1, 1)", 0,
                                NULL, NULL, NULL, NULL, 0),
              1);
    CHECK_INT(PQpipelineSync(w->conn), 1);
    PQclear(stg_pq_wait(w->conn));
    PQclear(stg_pq_wait(w->conn));
    return stg_ok();
}

static stg_outcome succeed_in_copy(world *w)
{
    do_in(w, "COPY item FROM STDIN");
    return stg_ok();
}

TEST(pq_server, commits_only_when_nothing_is_under_way)
{
    world w;

    begin_world(&w, NULL);
    run_in(&w, insert_in_pipeline);
    CHECK_STR(story_of(&w), "done after 1");
    CHECK_INT(count_rows(&w), 1);
    run_in(&w, succeed_in_copy);
    CHECK_STR(story_of(&w), "invalid after 1 (permanent)");
    CHECK_INT(count_rows(&w), 1);
    end_world(&w);
}

/* -- several hosts */

TEST(pq_server, goes_on_to_the_host_that_is_there)
{
    char folder[200], hosts[300];
    world w;

    find_socket(folder);
    snprintf(hosts, sizeof hosts, "/nowhere,%s", folder);
    begin_world(&w, hosts);
    terminate(w.conn);
    run_in(&w, insert);
    CHECK_STR(story_of(&w), "done after 1");
    end_world(&w);
}

/* A port to which no connection is made: those that wait for accept() are more
 * than it takes. Returns its number. */
static int block_port(int sockets[3])
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int i = 0; i < 3; i++)
        sockets[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(bind(sockets[0], (struct sockaddr *)&address, size) == 0);
    CHECK(getsockname(sockets[0], (struct sockaddr *)&address, &size) == 0);
    CHECK(listen(sockets[0], 0) == 0);
    for (int i = 1; i < 3; i++)
        (void)!connect(sockets[i], (struct sockaddr *)&address, size);
    return ntohs(address.sin_port);
}

/* How long a run takes whose first host does not answer. */
static stg_ns leave_host(const char *policy, const char *connect_timeout)
{
    const char *names[] = {"dbname", "host", "port", "connect_timeout", NULL};
    const char *values[] = {getenv("STAGGER_TEST_POSTGRES"), NULL, NULL,
                            connect_timeout, NULL};
    char folder[200], hosts[300], ports[40];
    stg_ns began_at;
    int sockets[3];
    world w;

    find_socket(folder);
    snprintf(hosts, sizeof hosts, "127.0.0.1,%s", folder);
    snprintf(ports, sizeof ports, "%d,5432", block_port(sockets));
    begin_world(&w, NULL);
    PQfinish(w.conn);
    values[1] = hosts;
    values[2] = ports;
    w.conn = PQconnectStartParams(names, values, 1);
    w.policy = policy_of(policy);
    began_at = stg_env_system()->now(NULL);
    run_in(&w, insert);
    CHECK_STR(story_of(&w), "done after 1");
    end_world(&w);
    for (int i = 0; i < 3; i++)
        close(sockets[i]);
    return stg_env_system()->now(NULL) - began_at;
}

TEST(pq_server, leaves_a_host_that_does_not_answer_for_the_next)
{
    stg_ns took = leave_host("attempts=1 attempt-timeout=1s", NULL);

    CHECK(took >= 400 * STG_MS); // its half of the time
    took = leave_host("attempts=1 attempt-timeout=1m", "1");
    CHECK(900 * STG_MS <= took && took < 15 * STG_S);
}
