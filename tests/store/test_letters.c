/* What people ask of dead letters: pages, one whole, what became of a message.
 * */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/dead_letters.h"
#include "store/query.h"
#include "store/sqlite.h"
#include "tests/harness.h"
#include "tests/store/fixture.h"

/* A dead letter of a lane, by an HTTP status. */
static void die(fixture *s, uint32_t lane, uint64_t position, int status)
{
    stg_failure failure = fixture_failure(status, STG_WHY_PERMANENT);
    stg_change c = {.kind = STG_CHANGE_DEAD,
                    .lane = lane,
                    .position = position,
                    .message = fixture_message(s, position, "body"),
                    .failure = &failure,
                    .progress = {.attempts = 3}};

    CHECK_INT(fixture_change(s, &c), STG_STORED);
}

static void shed(fixture *s, uint32_t lane, uint64_t first, uint64_t last,
                 uint64_t count)
{
    stg_change c = {.kind = STG_CHANGE_RANGE,
                    .lane = lane,
                    .position = first,
                    .last_position = last,
                    .count = count};

    CHECK_INT(fixture_change(s, &c), STG_STORED);
}

/* -- bulk rows */

TEST(store_letters, for_many_say_what_opened_the_breaker)
{
    stg_failure failure = fixture_failure(503, STG_WHY_CIRCUIT_OPEN);
    stg_change c = {.kind = STG_CHANGE_RANGE,
                    .position = 5,
                    .last_position = 9,
                    .count = 5,
                    .failure = &failure};
    fixture s;

    failure.first_attempt_at = 1772366400 * STG_S;
    failure.detail = "HTTP 503";
    failure.answer = "away";
    failure.answer_size = 4;
    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(
        fixture_ask(&s,
                    "SELECT why, cause, category, http_status, detail, count"
                    " FROM failed_broadcast_logs"),
        "shed|HTTP_503|B|503|breaker open since 2026-03-01T12:00:00.000Z: HTTP "
        "503|5");
    // What was last seen of it.
    c.last_position = 10;
    c.count = 6;
    failure.detail = "HTTP 503 again";
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(fixture_ask(&s,
                          "SELECT cause, detail, count, length(answer)"
                          " FROM failed_broadcast_logs"),
              "HTTP_503|breaker open since 2026-03-01T12:00:00.000Z: HTTP 503 "
              "again|6|4");
    c = (stg_change){.kind = STG_CHANGE_RANGE,
                     .position = 20,
                     .last_position = 29,
                     .count = 10,
                     .reason = STG_SHED_PAUSED};
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    c.position = 30;
    c.last_position = 39;
    c.reason = STG_SHED_SLOW;
    CHECK_INT(fixture_change(&s, &c), STG_STORED);
    CHECK_STR(fixture_ask(&s,
                          "SELECT why, cause FROM failed_broadcast_logs"
                          " WHERE id > 1 ORDER BY id"),
              "retention|PAUSED\nretention|SLOW");
    fixture_end(&s);
}

/* -- pages */

typedef struct paging {
    bool is_done;
    uint64_t next;
    char ids[2048];
} paging;

static void on_page(void *ctx, const stg_letter *letters, size_t count,
                    uint64_t next)
{
    paging *p = ctx;

    p->ids[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        size_t at = strlen(p->ids);

        snprintf(p->ids + at, sizeof p->ids - at, "%s%" PRIu64,
                 i == 0 ? "" : " ", letters[i].id);
    }
    p->next = next;
    p->is_done = true;
}

/* The ids of a page; static. */
static const char *page(fixture *s, const stg_letter_filter *f, uint64_t *after,
                        uint32_t rows_max, bool is_newest_first)
{
    static paging p;

    p.is_done = false;
    stg_store_letters(s->store, f, *after, rows_max, is_newest_first, on_page,
                      &p);
    FIXTURE_UNTIL(s, p.is_done);
    *after = p.next;
    return p.ids;
}

static const char *all(fixture *s, const stg_letter_filter *f)
{
    uint64_t after = 0;
    const char *ids = page(s, f, &after, 100, false);

    CHECK_U64(after, 0);
    return ids;
}

TEST(store_letters, come_in_pages_that_new_ones_do_not_move)
{
    const stg_letter_filter f = {.id_count = 0};
    uint64_t after = 0, back = 0;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    for (uint64_t i = 1; i <= 5; i++)
        die(&s, 0, i, 500);
    CHECK_STR(page(&s, &f, &after, 2, false), "1 2");
    CHECK_STR(page(&s, &f, &back, 2, true), "5 4");
    die(&s, 0, 6, 500);
    CHECK_STR(page(&s, &f, &after, 2, false), "3 4");
    CHECK_STR(page(&s, &f, &after, 2, false), "5 6");
    CHECK_STR(page(&s, &f, &after, 2, false), "");
    CHECK_U64(after, 0);
    CHECK_STR(page(&s, &f, &back, 2, true), "3 2");
    CHECK_STR(page(&s, &f, &back, 2, true), "1");
    CHECK_U64(back, 0);
    fixture_end(&s);
}

TEST(store_letters, are_those_of_a_filter)
{
    const uint64_t ids[] = {4, 2, 99, 1};
    uint64_t after = 0;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    fixture_lane(&s, "b");
    die(&s, 0, 1, 500);
    die(&s, 1, 1, 404);
    die(&s, 0, 2, 404);
    shed(&s, 1, 2, 9, 5);
    fixture_ask(&s,
                "UPDATE failed_broadcast_logs SET state = 'dropped',"
                " created_at = '2026-03-01T12:00:00.000Z' WHERE id = 3");
    CHECK_STR(all(&s, &(stg_letter_filter){.target = "a"}), "1 3");
    CHECK_STR(all(&s, &(stg_letter_filter){.target = "c"}), "");
    CHECK_STR(all(&s, &(stg_letter_filter){.cause = "HTTP_404"}), "2 3");
    CHECK_STR(all(&s, &(stg_letter_filter){.category = "B"}), "1");
    CHECK_STR(all(&s, &(stg_letter_filter){.state = "dead"}), "1 2 4");
    CHECK_STR(all(&s, &(stg_letter_filter){.until = 1772366400 * STG_S}), "");
    CHECK_STR(all(&s, &(stg_letter_filter){.until = 1772366401 * STG_S}), "3");
    CHECK_STR(all(&s, &(stg_letter_filter){.since = 1772366400 * STG_S}),
              "1 2 3 4");
    CHECK_STR(all(&s, &(stg_letter_filter){.target = "a", .state = "dead"}),
              "1");
    CHECK_STR(all(&s, &(stg_letter_filter){.ids = ids, .id_count = 4}),
              "1 2 4");
    CHECK_STR(
        all(&s, &(stg_letter_filter){.ids = ids, .id_count = 4, .target = "b"}),
        "2 4");
    CHECK_STR(page(&s, &(stg_letter_filter){.ids = ids, .id_count = 4}, &after,
                   2, true),
              "4 2");
    CHECK_STR(page(&s, &(stg_letter_filter){.ids = ids, .id_count = 4}, &after,
                   2, true),
              "1");
    // About a message: also a range that has it.
    CHECK_STR(
        all(&s, &(stg_letter_filter){.has_position = true, .position = 1}),
        "1 2");
    CHECK_STR(
        all(&s, &(stg_letter_filter){.has_position = true, .position = 2}),
        "3 4");
    CHECK_STR(
        all(&s, &(stg_letter_filter){.has_position = true, .position = 9}),
        "4");
    CHECK_STR(all(&s, &(stg_letter_filter){.has_position = true,
                                           .position = 2,
                                           .ids = ids,
                                           .id_count = 4}),
              "4");
    fixture_end(&s);
}

/* A row that began before took messages since. */
TEST(store_letters, of_a_range_are_as_new_as_its_newest_message)
{
    const stg_ns noon = 1772366400 * STG_S, hour = 3600 * STG_S;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    shed(&s, 0, 2, 9, 5);
    fixture_ask(&s,
                "UPDATE failed_broadcast_logs SET"
                " created_at = '2026-03-01T12:00:00.000Z',"
                " last_attempt_at = '2026-03-01T14:00:00.000Z'");
    CHECK_STR(all(&s, &(stg_letter_filter){.since = noon + hour}), "1");
    CHECK_STR(all(&s, &(stg_letter_filter){.since = noon + 2 * hour}), "1");
    CHECK_STR(all(&s, &(stg_letter_filter){.since = noon + 3 * hour}), "");
    CHECK_STR(all(&s, &(stg_letter_filter){.until = noon}), "");
    CHECK_STR(all(&s, &(stg_letter_filter){.until = noon + hour}), "1");
    // One message is as old as it is.
    fixture_ask(&s,
                "UPDATE failed_broadcast_logs SET last_position = NULL,"
                " created_at = '2026-03-01T12:00:00.000Z',"
                " last_attempt_at = '2026-03-01T14:00:00.000Z'");
    CHECK_STR(all(&s, &(stg_letter_filter){.since = noon + hour}), "");
    s.is_made_up = true;
    fixture_end(&s);
}

/* Few of many: a call looks at so many only, and says where it was. */
TEST(store_letters, that_are_few_of_many_take_more_than_one_page)
{
    const stg_letter_filter f = {.cause = "HTTP_404"};
    uint64_t after = 0;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    die(&s, 0, 1, 500);
    fixture_ask(
        &s,
        "WITH RECURSIVE n(i) AS (VALUES (2) UNION ALL SELECT i + 1 FROM n"
        " WHERE i < 20001) INSERT INTO failed_broadcast_logs (message_id,"
        " target, target_url, lane, partition, position, replay, count,"
        " state, why, cause, attempts, created_at, payload)"
        " SELECT message_id, target, target_url, 0, 0, i, 0, 1, 'dead',"
        " why, cause, 1, created_at, payload FROM n,"
        " failed_broadcast_logs WHERE id = 1");
    die(&s, 0, 30000, 404);
    CHECK_STR(page(&s, &f, &after, 10, false), "");
    CHECK_U64(after, 20000);
    CHECK_STR(page(&s, &f, &after, 10, false), "20002");
    CHECK_U64(after, 0);
    fixture_end(&s);
}

/* -- one */

typedef struct reading {
    bool is_done, is_there;
    char text[512];
} reading;

static void on_letter(void *ctx, const stg_letter *l)
{
    reading *r = ctx;

    r->is_done = true;
    r->is_there = l != NULL;
    if (l != NULL)
        snprintf(r->text, sizeof r->text,
                 "%s|%s|%s|%s|%s|%s|%" PRIu64 "|%" PRIu64 "|%s|%s|%s|%.*s|%.*s",
                 l->target, l->target_url, l->state, l->category, l->cause,
                 l->detail, l->http_status, l->attempts, l->content_type,
                 l->headers, l->key, (int)l->answer.size, l->answer.at,
                 (int)l->payload.size, l->payload.at);
}

TEST(store_letters, are_there_whole_one_by_one)
{
    reading r = {.is_done = false};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    die(&s, 0, 7, 500);
    stg_store_letter(s.store, 1, on_letter, &r);
    FIXTURE_UNTIL(&s, r.is_done);
    CHECK_STR(r.text,
              "a|http://a.example/|dead|B|HTTP_500|it said no|500|3|"
              "text/plain|X-A: b\r\n|k|busy|body");
    r.is_done = false;
    stg_store_letter(s.store, 2, on_letter, &r);
    FIXTURE_UNTIL(&s, r.is_done);
    CHECK(!r.is_there);
    fixture_end(&s);
}

/* -- what became of a message */

static const char *const kinds[] = {
    [STG_DELIVERY_STATUS_WAITING] = "waiting",
    [STG_DELIVERY_STATUS_PARKED] = "parked",
    [STG_DELIVERY_STATUS_LETTER] = "letter",
    [STG_DELIVERY_STATUS_DELIVERED] = "delivered",
    [STG_DELIVERY_STATUS_BEFORE] = "before",
    [STG_DELIVERY_STATUS_UNKNOWN] = "unknown",
};

typedef struct asking {
    bool is_done;
    char text[2048];
} asking;

static void on_message(void *ctx, const stg_message_status *m)
{
    asking *a = ctx;

    snprintf(a->text, sizeof a->text, "%s", m->is_known ? "" : "unknown");
    if (m->is_known)
        snprintf(a->text, sizeof a->text, "%" PRIu64 " %s %" PRIu64,
                 m->position, m->is_kept ? "kept" : "gone", m->size);
    for (size_t i = 0; i < m->count; i++) {
        const stg_delivery_status *f = &m->deliveries[i];
        size_t at = strlen(a->text);

        snprintf(a->text + at, sizeof a->text - at, "\n%s %s%s%s%s %u %" PRIu64,
                 f->target, kinds[f->kind],
                 f->is_range        ? " range "
                 : f->state == NULL ? ""
                                    : " ",
                 f->state == NULL ? "" : f->state,
                 f->is_forgotten ? " forgotten" : "", f->replay, f->attempts);
    }
    a->is_done = true;
}

static const char *found_of(fixture *s, const char *id)
{
    static asking a;

    a.is_done = false;
    stg_store_message(s->store, id, on_message, &a);
    FIXTURE_UNTIL(s, a.is_done);
    return a.text;
}

/* The id of a position. */
static const char *id_of(fixture *s, uint64_t position)
{
    static char id[48];

    snprintf(id, sizeof id, "%016" PRIx64 "-%" PRIu64,
             stg_store_epoch_at(s->store, position), position);
    return id;
}

TEST(queue_letters, tell_what_became_of_a_message_for_each_lane)
{
    const stg_positions above[] = {{5, 5}};
    stg_cursor cursors[] = {
        {.lane = 0, .base = 9},
        {.lane = 1, .base = 3},
        {.lane = 2, .base = 4, .settled = above, .settled_count = 1},
        {.lane = 3, .base = 9},
        {.lane = 4, .base = 9},
        {.lane = 5, .base = 9},
        {.lane = 6, .base = 9}};
    stg_change forget = {.kind = STG_CHANGE_FORGET, .lane = 6};
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    for (int i = 0; i < 9; i++)
        fixture_put(&s, NULL, "body");
    for (char name[] = "a"; *name <= 'g'; ++*name)
        fixture_lane(&s, name);
    // All of them begin at the first position.
    for (uint32_t i = 0; i < 7; i++)
        CHECK_INT(fixture_cursors(&s, &(stg_cursor){.lane = i, .base = 1}, 1),
                  STG_STORED);
    CHECK_INT(fixture_cursors(&s, cursors, 7), STG_STORED);
    fixture_park(&s, 3, 5, 100, "body");
    die(&s, 4, 5, 500);
    shed(&s, 5, 4, 6, 3);
    CHECK_INT(fixture_change(&s, &forget), STG_STORED);
    CHECK_STR(found_of(&s, id_of(&s, 5)),
              "5 kept 4\na delivered 0 0\n"
              "b waiting 0 0\nc delivered 0 0\n"
              "d parked 0 7\ne letter dead 0 3\n"
              "f letter range dead 0 0\n"
              "g unknown forgotten 0 0");
    CHECK_STR(found_of(&s, id_of(&s, 4)),
              "4 kept 4\na delivered 0 0\n"
              "b waiting 0 0\nc waiting 0 0\n"
              "d delivered 0 0\ne delivered 0 0\n"
              "f letter range dead 0 0\n"
              "g unknown forgotten 0 0");
    // A lane that came later has not seen it.
    CHECK_INT(fixture_lane(&s, "h"), 7);
    CHECK_INT(fixture_cursors(&s, &(stg_cursor){.lane = 7, .base = 6}, 1),
              STG_STORED);
    CHECK(strstr(found_of(&s, id_of(&s, 5)), "\nh before 0 0") != NULL);
    CHECK(strstr(found_of(&s, id_of(&s, 6)), "\nh waiting 0 0") != NULL);
    s.is_made_up = true;
    fixture_end(&s);
}

TEST(queue_letters, know_no_message_that_was_not_accepted)
{
    char id[100];
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_put(&s, NULL, "a");
    fixture_lane(&s, "a");
    CHECK_INT(fixture_cursors(&s, &(stg_cursor){.base = 1}, 1), STG_STORED);
    CHECK_STR(found_of(&s, id_of(&s, 1)), "1 kept 1\na waiting 0 0");
    CHECK_STR(found_of(&s, id_of(&s, 2)), "unknown");
    CHECK_STR(found_of(&s, id_of(&s, 0)), "unknown");
    CHECK_STR(found_of(&s, "0000000000000000-1"), "unknown");
    CHECK_STR(found_of(&s, ""), "unknown");
    CHECK_STR(found_of(&s, "x"), "unknown");
    snprintf(id, sizeof id, "%s ", id_of(&s, 1));
    CHECK_STR(found_of(&s, id), "unknown");
    snprintf(id, sizeof id, "%s9999999999999999999999", id_of(&s, 1));
    CHECK_STR(found_of(&s, id), "unknown");
    fixture_end(&s);
}

/* -- copies to a sink */

typedef struct sink {
    uv_mutex_t lock;
    unsigned calls, refusals; /* to be made first */
    size_t takes;             /* of what it refuses, but for the first call */
    char text[512];
} sink;

static stg_status on_letters(void *ctx, const stg_letter *letters, size_t count,
                             stg_letter_report *report, stg_error *err)
{
    sink *to = ctx;
    bool refuses;
    size_t taken;

    uv_mutex_lock(&to->lock);
    to->calls++;
    refuses = to->refusals > 0;
    to->refusals -= refuses;
    taken = !refuses ? count : to->calls == 1 ? 0 : to->takes;
    for (size_t i = 0; i < taken; i++) {
        size_t at = strlen(to->text);

        snprintf(to->text + at, sizeof to->text - at, "%s %s %.*s\n",
                 letters[i].target, letters[i].state,
                 (int)letters[i].payload.size, letters[i].payload.at);
    }
    uv_mutex_unlock(&to->lock);
    snprintf(err->text, sizeof err->text, "the sink does not take them");
    *report = (stg_letter_report){.written = taken};
    return taken < count ? STG_IO : STG_OK;
}

static bool has_text(sink *s, const char *text)
{
    bool has;

    uv_mutex_lock(&s->lock);
    has = strcmp(s->text, text) == 0;
    uv_mutex_unlock(&s->lock);
    return has;
}

static void on_dropped(void *ctx, const stg_letters_sum *sum)
{
    (void)sum;
    *(bool *)ctx = true;
}

TEST(store_letters, go_to_a_sink_until_it_has_them)
{
    sink to = {.refusals = 1};
    bool is_done = false;
    fixture s;

    CHECK_INT(uv_mutex_init(&to.lock), 0);
    fixture_make(&s);
    s.options.sink.write = on_letters;
    s.options.sink.ctx = &to;
    fixture_open(&s);
    fixture_lane(&s, "a");
    die(&s, 0, 5, 500);
    FIXTURE_POLL(&s, has_text(&to, "a dead body\n"));
    FIXTURE_UNTIL(&s, s.times_untroubled == 1);
    CHECK_INT(s.times_troubled, 1);
    CHECK(strstr(s.words, "does not take them") != NULL);
    // Once, and again when it has changed.
    fixture_reopen(&s);
    stg_store_drop(s.store, &(stg_letter_filter){.target = "a"}, false,
                   on_dropped, &is_done);
    FIXTURE_UNTIL(&s, is_done);
    FIXTURE_POLL(&s, has_text(&to, "a dead body\na dropped \n"));
    fixture_end(&s);
    CHECK(has_text(&to, "a dead body\na dropped \n"));
    uv_mutex_destroy(&to.lock);
}

/* The first call takes none, so that there are three; the next takes one. */
TEST(store_letters, go_to_a_sink_once_though_it_fails_at_their_neighbours)
{
    sink to = {.refusals = 2, .takes = 1};
    fixture s;

    CHECK_INT(uv_mutex_init(&to.lock), 0);
    fixture_make(&s);
    s.options.sink.write = on_letters;
    s.options.sink.ctx = &to;
    fixture_open(&s);
    fixture_lane(&s, "a");
    for (uint64_t position = 1; position <= 3; position++)
        die(&s, 0, position, 500);
    FIXTURE_POLL(&s, has_text(&to, "a dead body\na dead body\na dead body\n"));
    FIXTURE_UNTIL(&s, s.times_untroubled == 1);
    fixture_end(&s);
    uv_mutex_destroy(&to.lock);
}

/* -- what commands ask a file ------------------------------------------------ */

TEST(queue_letters, are_read_whole_by_the_ids_of_a_page)
{
    stg_filter f;
    stg_found page = {.count = 0}, whole = {.count = 0};
    uint64_t first;
    bool is_known;
    stg_db *db;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    CHECK(stg_filter_copy(&f, &(stg_letter_filter){.cause = "HTTP_5*"}));
    CHECK_INT(stg_sql_open_reader(&db, s.path), 0);
    CHECK_INT(stg_find_page(db, &f, 0, 10, false, &page), 0);
    CHECK_INT(stg_find_whole(db, &page, &whole), 0);
    CHECK_U64(whole.count, 0);
    CHECK_INT(stg_find_first(db, &first), 0);
    CHECK_U64(first, UINT64_MAX);
    for (uint64_t i = 1; i <= 4; i++) {
        fixture_put(&s, NULL, "body");
        die(&s, 0, i, i == 2 ? 404 : 503);
    }
    CHECK_INT(stg_find_page(db, &f, 0, 10, true, &page), 0);
    CHECK_U64(page.count, 3);
    CHECK(page.letters[0].payload.at == NULL);
    CHECK_INT(stg_find_whole(db, &page, &whole), 0);
    CHECK_U64(whole.count, 3);
    for (size_t i = 0; i < 3; i++) {
        CHECK_U64(whole.letters[i].id, i == 0 ? 1 : i + 2);
        CHECK(whole.letters[i].payload.size == 4 &&
              memcmp(whole.letters[i].payload.at, "body", 4) == 0);
    }
    CHECK_INT(stg_find_first(db, &first), 0);
    CHECK_U64(first, 1);
    CHECK_INT(stg_find_is_target(db, "a", &is_known), 0);
    CHECK(is_known);
    CHECK_INT(stg_find_is_target(db, "b", &is_known), 0);
    CHECK(!is_known);
    CHECK(stg_list_is_empty(&db->statements));
    stg_found_free(&page);
    stg_found_free(&whole);
    stg_filter_free(&f);
    stg_sql_close(db);
    s.is_made_up = true;
    fixture_end(&s);
}

/* A connection lasts as long as the store, and would keep them. */
TEST(queue_letters, are_found_by_statements_that_end)
{
    uint64_t id = 1;
    const stg_letter_filter filters[] = {
        {.target = NULL},
        {.target = "a"},
        {.ids = &id, .id_count = 1},
        {.has_position = true, .position = 1},
        {.has_position = true, .position = 1, .ids = &id, .id_count = 1},
    };
    stg_found page = {.count = 0};
    stg_db *db;
    fixture s;

    fixture_make(&s);
    fixture_open(&s);
    fixture_lane(&s, "a");
    fixture_put(&s, NULL, "body");
    die(&s, 0, 1, 503);
    CHECK_INT(stg_sql_open_reader(&db, s.path), 0);
    for (size_t i = 0; i < sizeof filters / sizeof *filters; i++) {
        stg_filter f;

        CHECK(stg_filter_copy(&f, &filters[i]));
        CHECK_INT(stg_find_page(db, &f, 0, 10, false, &page), 0);
        CHECK_FROM(i, page.count == 1);
        CHECK_FROM(i, stg_list_is_empty(&db->statements));
        stg_filter_free(&f);
    }
    CHECK_INT(stg_find_one(db, id, &page), 0);
    CHECK_U64(page.count, 1);
    CHECK(stg_list_is_empty(&db->statements));
    stg_found_free(&page);
    stg_sql_close(db);
    s.is_made_up = true;
    fixture_end(&s);
}
