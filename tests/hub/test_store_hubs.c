/* Several hubs and one store in PostgreSQL; and a server that goes away. By
 * tests/hub/on_postgres.sh, which has one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/store_letters.h"
#include "tests/harness.h"
#include "tests/hub/shelf.h"

#define CHECK_HAS(text, wanted) CHECK(strstr((text), (wanted)) != NULL)

/* -- calls */

typedef struct claiming {
    bool is_done;
    uint32_t number;
    uint64_t generation, bases[4];
    size_t count;
} claiming;

static void on_claimed(void *ctx, const stg_claimed *claimed)
{
    claiming *c = ctx;

    CHECK_INT(claimed->status, STG_OK);
    c->is_done = true;
    c->number = claimed->number;
    c->generation = claimed->generation;
    c->count = claimed->count;
    for (size_t i = 0; i < claimed->count && i < 4; i++)
        c->bases[i] = claimed->cursors[i].base;
}

static claiming claim(shelf *s, uint32_t partition)
{
    stg_claim_ask ask = {.log = "kafka",
                         .topic = "orders",
                         .partition = partition,
                         .end = STG_NO_POSITION,
                         .committed = STG_NO_POSITION,
                         .previous = STG_NO_PARTITION};
    claiming c = {.is_done = false};

    stg_store_claim(s->store, &ask, on_claimed, &c);
    SHELF_UNTIL(s, c.is_done);
    return c;
}

static stg_stored stand(shelf *s, const claiming *c, uint32_t lane,
                        uint64_t base)
{
    stg_cursor cursor = {.lane = lane, .partition = c->number, .base = base};
    stg_claim mine = {c->number, c->generation};

    return shelf_store(s, &(stg_group){.cursors = &cursor,
                                       .cursor_count = 1,
                                       .claims = &mine,
                                       .claim_count = 1});
}

/* As flow does: what was not answered is sent again. */
static stg_stored stand_at_last(shelf *s, const claiming *c, uint32_t lane,
                                uint64_t base)
{
    stg_stored how;

    do
        how = stand(s, c, lane, base);
    while (how == STG_STORED_UNKNOWN);
    return how;
}

static stg_stored write_change(shelf *s, stg_change change)
{
    stg_stored how;

    do
        how = shelf_change(s, &change);
    while (how == STG_STORED_UNKNOWN);
    return how;
}

static stg_change dead(shelf *s, uint32_t number, uint64_t position,
                       const stg_failure *failure)
{
    return (stg_change){.kind = STG_CHANGE_DEAD,
                        .partition = number,
                        .position = position,
                        .message = shelf_message(s, position, "body"),
                        .failure = failure};
}

/* -- the server */

static void serve(const char *verb)
{
    char command[600];

    snprintf(command, sizeof command, "%s %s %s >/dev/null",
             getenv("STAGGER_TEST_SCRIPT"), verb,
             getenv("STAGGER_TEST_SERVER"));
    CHECK_INT(system(command), 0);
}

/* Of the password, as the URL has it. */
static const char *password(const shelf *s)
{
    static char text[64];
    const char *from = strstr(s->server, "stagger:") + strlen("stagger:");

    snprintf(text, sizeof text, "%.*s", (int)strcspn(from, "@"), from);
    CHECK(strlen(text) > 8);
    return text;
}

static void ignore_rows(void *ctx, uint32_t lane, bool is_replay,
                        const stg_parked_row *rows, size_t count, bool is_all)
{
    (void)ctx;
    (void)lane;
    (void)is_replay;
    (void)rows;
    (void)count;
    (void)is_all;
}

/* It need not answer. */
static void ask_reader(shelf *s)
{
    stg_mark mark = {.due_at = 0};

    stg_store_fetch(s->store, 0, false, &mark, 9, ignore_rows, NULL);
}

TEST(store_hubs, wait_for_a_server_that_is_away)
{
    stg_mark mark = {.due_at = 0};
    claiming c;
    shelf s;

    shelf_make(&s);
    shelf_open(&s);
    shelf_lane(&s, "a");
    c = claim(&s, 0);
    CHECK_INT(stand(&s, &c, 0, 5), STG_STORED);
    serve("kill");
    while (s.times_troubled == 0) {
        // The first finds out, the next one waits.
        stg_cursor cursor = {.partition = c.number, .base = 6};
        stg_group g = {.cursors = &cursor, .cursor_count = 1};

        if (s.times_untroubled == 0 && s.fenced_count == 0)
            shelf_begin_store(&s, &g);
        SHELF_POLL(&s, !s.is_storing || s.times_troubled > 0);
        if (s.is_storing) {
            CHECK(strstr(s.words, "away") != NULL);
            CHECK(strstr(s.words, password(&s)) == NULL);
            serve("start");
            SHELF_UNTIL(&s, !s.is_storing);
        }
    }
    CHECK_INT(stand_at_last(&s, &c, 0, 7), STG_STORED);
    SHELF_UNTIL(&s, s.times_untroubled == s.times_troubled);
    CHECK_STR(shelf_stands(&s), "0/1 7 [] 0=0+0+0+0\n");
    CHECK_STR(shelf_fetch(&s, 0, &mark, 9), "");
    CHECK_INT(s.times_broken, 0);
    shelf_end(&s);
}

TEST(store_hubs, lose_nothing_when_their_connections_are_killed)
{
    stg_failure failure = shelf_failure(503, STG_WHY_BACKOFF);
    shelf s;

    shelf_make(&s);
    shelf_open(&s);
    shelf_lane(&s, "a");
    for (uint64_t i = 1; i <= 12; i++) {
        stg_mark mark = {.due_at = 0};
        stg_change park = {.kind = STG_CHANGE_PARK,
                           .partition = 1,
                           .position = i,
                           .message = shelf_message(&s, i, "b"),
                           .failure = &failure,
                           .due_at = 100};
        claiming c;

        shelf_ask(&s,
                  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                  " WHERE application_name = 'stagger'");
        c = claim(&s, 0);
        CHECK_U64(c.number, 1);
        CHECK_INT(write_change(&s, park), STG_STORED);
        CHECK_INT(stand_at_last(&s, &c, 0, i), STG_STORED);
        shelf_fetch(&s, 0, &mark, 99);
        CHECK_U64(mark.position, i);
    }
    CHECK_STR(shelf_ask(&s, "SELECT count(*) FROM parked"), "12");
    CHECK_U64(claim(&s, 0).bases[0], 12);
    CHECK_INT(s.times_broken, 0);
    shelf_end(&s);
}

TEST(store_hubs, close_in_time_while_the_server_is_away)
{
    claiming c;
    shelf s;

    shelf_make(&s);
    shelf_open(&s);
    shelf_lane(&s, "a");
    c = claim(&s, 0);
    CHECK_INT(stand(&s, &c, 0, 5), STG_STORED);
    serve("kill");
    shelf_close(&s);
    serve("start");
    shelf_open(&s);
    CHECK_STR(shelf_stands(&s), "0/1 5 [] 0=0+0+0+0\n");
    shelf_end(&s);
}

/* Its connections stay, and nothing comes by them: who waits for an answer is
 * told, asks for nothing more, and closes all the same. */
TEST(store_hubs, close_in_time_while_the_server_hangs)
{
    stg_cursor cursor = {.base = 6};
    stg_group g = {.cursors = &cursor, .cursor_count = 1};
    uint32_t lane;
    stg_error err;
    claiming c;
    shelf s;

    shelf_make(&s);
    shelf_open(&s);
    shelf_lane(&s, "a");
    c = claim(&s, 0);
    CHECK_INT(stand(&s, &c, 0, 5), STG_STORED);
    cursor.partition = c.number;
    serve("freeze");
    shelf_begin_store(&s, &g);
    ask_reader(&s);
    SHELF_UNTIL(&s, s.times_troubled == 1);
    CHECK_HAS(s.words, "away");
    CHECK_INT(stg_store_lane(s.store, "b", "http://b/", &lane, &err), STG_IO);
    CHECK_HAS(err.text, "does not answer");
    shelf_close(&s);
    strcat(s.path, "&connect_timeout=2");
    CHECK_HAS(shelf_refused(&s, STG_IO), "does not answer");
    serve("thaw");
    shelf_open(&s);
    CHECK_INT(s.times_untroubled, 0);
    shelf_end(&s);
}

/* -- two hubs */

TEST(store_hubs, take_over_from_each_other)
{
    stg_failure failure = shelf_failure(503, STG_WHY_BACKOFF);
    stg_mark mark = {.due_at = 0};
    claiming one, two;
    shelf a, b;

    shelf_make(&a);
    shelf_open(&a);
    shelf_share(&b, &a);
    shelf_open(&b);
    CHECK_INT(shelf_lane(&a, "x"), 0);
    CHECK_INT(shelf_lane(&b, "y"), 1);
    CHECK_INT(shelf_lane(&a, "y"), 1);
    one = claim(&a, 0);
    CHECK_INT(stand(&a, &one, 0, 10), STG_STORED);
    CHECK_INT(stand(&a, &one, 1, 20), STG_STORED);
    CHECK_INT(
        write_change(&a, (stg_change){.kind = STG_CHANGE_PARK,
                                      .partition = one.number,
                                      .position = 3,
                                      .message = shelf_message(&a, 3, "p"),
                                      .failure = &failure,
                                      .due_at = 100}),
        STG_STORED);
    CHECK_STR(shelf_fetch(&b, 0, &mark, 9), "");
    two = claim(&b, 0);
    CHECK_U64(two.number, one.number);
    CHECK_U64(two.count, 2);
    CHECK_U64(two.bases[0], 10);
    CHECK_U64(two.bases[1], 20);
    CHECK_STR(shelf_fetch(&b, 0, &mark, 9), "3@100:p");
    // Whoever is late writes nothing.
    CHECK_INT(stand(&a, &one, 0, 11), STG_STORED_FENCED);
    // A lane that the writer does not know stays in the row.
    CHECK_INT(stand(&b, &two, 0, 12), STG_STORED);
    CHECK_STR(shelf_stands(&b),
              "0/1 12 [] 0=0+0+0+1\n"
              "1/1 20 [] 0=0+0+0+0\n");
    // And back again, with what the other has written.
    one = claim(&a, 0);
    CHECK_U64(one.bases[0], 12);
    CHECK_INT(stand(&a, &one, 1, 21), STG_STORED);
    CHECK_STR(shelf_stands(&a),
              "0/1 12 [] 0=0+0+0+1\n"
              "1/1 21 [] 0=0+0+0+0\n");
    shelf_end(&b);
    shelf_end(&a);
}

static void on_sum(void *ctx, const stg_letters_sum *sum)
{
    CHECK_INT(sum->end, STG_LETTERS_DONE);
    CHECK_U64(sum->letters, 2);
    *(bool *)ctx = true;
}

typedef struct told {
    uint64_t count;
    uint32_t partition;
} told;

static told replayed_a;

static void on_replayed(void *ctx, uint32_t lane, uint32_t partition,
                        uint64_t count)
{
    (void)ctx;
    CHECK_INT(lane, 0);
    replayed_a.partition = partition;
    replayed_a.count += count;
}

TEST(store_hubs, replay_a_letter_by_whoever_has_its_partition)
{
    stg_failure failure = shelf_failure(400, STG_WHY_PERMANENT);
    bool is_done = false;
    stg_mark mark = {.due_at = 0};
    claiming c;
    shelf a, b;

    replayed_a = (told){.count = 0};
    shelf_make(&a);
    a.options.replayed = on_replayed;
    shelf_open(&a);
    shelf_share(&b, &a);
    shelf_open(&b);
    shelf_lane(&a, "x");
    c = claim(&a, 0);
    CHECK_INT(write_change(&a, dead(&a, c.number, 5, &failure)), STG_STORED);
    CHECK_INT(write_change(&a, dead(&a, c.number, 6, &failure)), STG_STORED);
    stg_store_replay(b.store, &(stg_letter_filter){.target = "x"}, false,
                     on_sum, &is_done);
    SHELF_UNTIL(&b, is_done);
    while (replayed_a.count < 2) {
        shelf_turn(&a);
        shelf_turn(&b);
    }
    CHECK_INT(replayed_a.partition, c.number);
    CHECK_STR(shelf_ask(&a,
                        "SELECT count(*) FROM failed_broadcast_logs"
                        " WHERE state = 'replayed'"),
              "2");
    shelf_fetch_replays(&a, 0, &mark, 9);
    CHECK_U64(mark.position, 6);
    shelf_end(&b);
    shelf_end(&a);
}

TEST(store_hubs, agree_on_the_number_of_shards)
{
    claiming one, two;
    shelf a, b;

    shelf_make(&a);
    a.options.shard_of = 2;
    shelf_open(&a);
    shelf_share(&b, &a);
    b.options.shard_of = 3;
    CHECK_HAS(shelf_refused(&b, STG_INVALID), "2 shards");
    b.options.shard_of = 2;
    b.options.shard = 1;
    shelf_open(&b);
    shelf_lane(&a, "x");
    shelf_lane(&b, "y");
    // Each has the partition for its own targets.
    one = claim(&a, 0);
    two = claim(&b, 0);
    CHECK_U64(one.number, two.number);
    CHECK_INT(stand(&a, &one, 0, 5), STG_STORED);
    CHECK_INT(stand(&b, &two, 1, 6), STG_STORED);
    shelf_close(&a);
    // A lane that moves to another shard goes on from the furthest.
    two = claim(&b, 0);
    CHECK_U64(two.count, 2);
    CHECK_U64(two.bases[0], 5);
    CHECK_INT(stand(&b, &two, 0, 9), STG_STORED);
    CHECK_U64(claim(&b, 0).bases[0], 9);
    shelf_close(&b);
    b.options.shard_of = 3;
    shelf_open(&b);
    shelf_end(&b);
    shelf_end(&a);
}

/* -- opening */

static void check_refused(shelf *s, const char *path, stg_status status,
                          const char *words)
{
    char copy[300];
    const char *words_told;

    snprintf(copy, sizeof copy, "%s", path);
    s->options.path = copy;
    words_told = shelf_refused(s, status);
    CHECK_HAS(words_told, words);
    CHECK(strstr(words_told, "secret") == NULL);
    s->options.path = s->path;
}

TEST(store_hubs, are_told_what_is_wrong_with_their_store)
{
    const char *host;
    char url[300];
    shelf s;

    shelf_make(&s);
    host = strstr(s.server, "@");
    snprintf(url, sizeof url, "postgres://stagger:wr0ng-secret%s", host);
    check_refused(&s, url, STG_INVALID, "password authentication failed");
    snprintf(url, sizeof url, "postgres://stagger:%s@/nothing%s", password(&s),
             strchr(host, '?'));
    check_refused(&s, url, STG_INVALID, "does not exist");
    check_refused(&s, "postgres://stagger@/x?host=/nowhere", STG_IO,
                  "does not answer");
    check_refused(&s, "postgres://u:p@ss@host/x", STG_INVALID, "%40");
    check_refused(&s, "postgres://u:secret@h/x?sslmod=require", STG_INVALID,
                  "is no URL");
    shelf_end(&s);
}

TEST(store_hubs, bring_a_store_of_an_older_version_up_to_date)
{
    stg_mark mark = {.due_at = 0};
    shelf s;

    shelf_make(&s);
    shelf_open(&s);
    shelf_park(&s, shelf_lane(&s, "a"), 5, 100, "x");
    shelf_close(&s);
    // As the first version had it.
    shelf_ask(&s,
              "ALTER TABLE parked DROP CONSTRAINT parked_pkey,"
              " ADD PRIMARY KEY (lane, partition, position, replay);"
              "CREATE INDEX parked_partition"
              " ON parked (partition, lane, replay);"
              "UPDATE stagger SET version = 1");
    shelf_open(&s);
    CHECK_STR(shelf_ask(&s, "SELECT version FROM stagger"), "2");
    CHECK_STR(shelf_ask(&s,
                        "SELECT indexdef LIKE '%(partition, lane,%'"
                        " FROM pg_indexes WHERE schemaname ="
                        " current_schema() AND tablename = 'parked'"
                        " ORDER BY indexname"),
              "0\n1\n0");
    CHECK_STR(shelf_fetch(&s, 0, &mark, 9), "5@100:x");
    shelf_end(&s);
}

TEST(store_hubs, refuse_a_store_of_a_newer_version)
{
    shelf s;

    shelf_make(&s);
    shelf_open(&s);
    shelf_close(&s);
    shelf_ask(&s, "UPDATE stagger SET version = 99");
    CHECK_HAS(shelf_refused(&s, STG_INVALID), "version 99");
    shelf_end(&s);
}

/* -- the command */

/* What it prints about the store; static. */
static const char *ask_command(const shelf *s, const char *words)
{
    static char text[8192];
    char command[512];
    FILE *out;
    size_t size;

    CHECK(getenv("STAGGER") != NULL);
    CHECK_INT(setenv("STAGGER_STORE", s->path, 1), 0);
    snprintf(command, sizeof command, "\"$STAGGER\" dead %s 2>&1", words);
    out = popen(command, "r");
    CHECK(out != NULL);
    size = fread(text, 1, sizeof text - 1, out);
    text[size] = '\0';
    if (pclose(out) != 0)
        CHECK_STR(text, "");
    return text;
}

TEST(store_hubs, have_letters_that_the_command_shows)
{
    stg_failure failure = shelf_failure(503, STG_WHY_ATTEMPTS);
    shelf s;

    shelf_make(&s);
    shelf_open(&s);
    shelf_lane(&s, "a");
    claim(&s, 3);
    for (uint64_t i = 1; i <= 120; i++)
        CHECK_INT(write_change(&s, dead(&s, 1, i, &failure)), STG_STORED);
    CHECK_HAS(ask_command(&s, "list --summary"), "120 dead letters");
    CHECK_HAS(ask_command(&s, "list --limit 2"), "HTTP_503");
    CHECK_HAS(ask_command(&s, "show 120 --json"), "\"topic\": \"orders\"");
    CHECK_HAS(ask_command(&s, "show 120 --json"), "\"payload\": \"body\"");
    CHECK_HAS(ask_command(&s, "show 7"), "orders.3.7");
    CHECK_HAS(ask_command(&s, "export --target a | tail -1"), "orders.3.120");
    CHECK(strstr(ask_command(&s, "list --cause HTTP_404"), "orders") == NULL);
    shelf_end(&s);
}

/* -- the file of dead letters */

static unsigned count_lines(const shelf *s)
{
    FILE *file = fopen(s->letters, "r");
    unsigned lines = 0;
    int c;

    if (file == NULL)
        return 0;
    while ((c = fgetc(file)) != EOF)
        lines += c == '\n';
    fclose(file);
    return lines;
}

TEST(store_hubs, copy_the_letters_of_their_partitions)
{
    stg_failure failure = shelf_failure(400, STG_WHY_PERMANENT);
    claiming one, two;
    shelf a, b;

    shelf_make(&a);
    a.options.letters = a.letters;
    shelf_open(&a);
    shelf_share(&b, &a);
    b.options.letters = b.letters;
    shelf_open(&b);
    shelf_lane(&a, "x");
    one = claim(&a, 0);
    two = claim(&b, 1);
    CHECK_INT(write_change(&a, dead(&a, one.number, 5, &failure)), STG_STORED);
    CHECK_INT(write_change(&b, dead(&b, two.number, 6, &failure)), STG_STORED);
    CHECK_INT(write_change(&b, dead(&b, two.number, 7, &failure)), STG_STORED);
    SHELF_POLL(&a, count_lines(&a) == 1);
    SHELF_POLL(&b, count_lines(&b) == 2);
    SHELF_POLL(&b, strcmp(shelf_ask(&a,
                                    "SELECT count(*)"
                                    " FROM failed_broadcast_logs"
                                    " WHERE version <> sent_version"),
                          "0") == 0);
    shelf_end(&b);
    // What the other had is copied no second time.
    claim(&a, 1);
    CHECK_INT(write_change(&a, dead(&a, two.number, 8, &failure)), STG_STORED);
    SHELF_POLL(&a, count_lines(&a) == 2);
    shelf_end(&a);
}
