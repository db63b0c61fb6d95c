/* The index of idempotency keys, against a list of what it should have: a key that
 * it loses is a message that is taken twice. */
#include <stdio.h>

#include <stagger/rng.h>

#include "store/keys.h"
#include "store/sqlite.h"
#include "tests/harness.h"

enum {
    KEYS = 700
}; /* nearly as many as 1024 slots take before there are more */

typedef struct model {
    stg_db *db;
    stg_keys keys;
    stg_key hashes[KEYS];
    uint64_t positions[KEYS]; /* 0: it is not there */
    uint64_t next;
} model;

static void hash(model *m, size_t i, uint32_t number)
{
    char name[16];
    int size = snprintf(name, sizeof name, "key %u", number);

    CHECK(stg_keys_hash(&m->keys, &m->hashes[i], (stg_span){name, (size_t)size},
                        NULL));
}

static uint64_t slot_of(const model *m, size_t i)
{
    return stg_hash(&m->keys.seed, m->hashes[i].key, STG_KEY_SIZE) %
           m->keys.slot_count;
}

/* The first key is of the first slot, and the second of the last. */
static void begin(model *m)
{
    uint32_t number = KEYS;

    *m = (model){.keys = {.kept = STG_DAY, .count_max = 1000000}, .next = 1};
    CHECK_INT(stg_sql_open_writer(&m->db, ":memory:"), SQLITE_OK);
    CHECK_INT(stg_sql_exec(m->db,
                           "CREATE TABLE idempotency_keys (position INTEGER"
                           " PRIMARY KEY, key BLOB, body BLOB, at INTEGER)"),
              SQLITE_OK);
    CHECK_INT(stg_keys_load(&m->keys, m->db), SQLITE_OK);
    for (uint32_t i = 0; i < KEYS; i++)
        hash(m, i, i);
    do
        hash(m, 0, number++);
    while (slot_of(m, 0) != 0);
    do
        hash(m, 1, number++);
    while (slot_of(m, 1) != m->keys.slot_count - 1);
}

static void end(model *m)
{
    stg_stmt *all[] = {m->keys.find, m->keys.add, m->keys.oldest,
                       m->keys.remove};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        stg_sql_finalize(all[i]);
    stg_keys_free(&m->keys);
    stg_sql_close(m->db);
}

static void add(model *m, size_t i)
{
    CHECK_INT(stg_keys_add(&m->keys, &m->hashes[i], m->next, STG_S), SQLITE_OK);
    m->positions[i] = m->next++;
}

static void check_all(model *m, uint64_t seed)
{
    for (size_t i = 0; i < KEYS; i++) {
        stg_key_found found;
        uint64_t position = 0;

        CHECK_INT(
            stg_keys_find(&m->keys, &m->hashes[i], STG_S, &found, &position),
            SQLITE_OK);
        CHECK_FROM(seed, (found == STG_KEY_REPEATED) == (m->positions[i] > 0));
        CHECK_FROM(seed, found == STG_KEY_NEW || position == m->positions[i]);
    }
}

/* Keys leave in any order, so that others move into their slots. */
TEST(keys, finds_those_that_stay_when_others_leave)
{
    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        model m;

        begin(&m);
        for (size_t i = 0; i < KEYS; i++)
            add(&m, i);
        for (uint32_t round = 0; round < 8; round++) {
            for (uint32_t n = 0; n < KEYS / 4; n++) {
                size_t i = (size_t)stg_rng_upto(&rng, KEYS - 1);

                if (m.positions[i] == 0) {
                    add(&m, i);
                    continue;
                }
                stg_keys_drop(&m.keys, &m.hashes[i], m.positions[i]);
                m.positions[i] = 0;
            }
            check_all(&m, seed);
        }
        end(&m);
    }
}

/* What a transaction that was rolled back has added is not there; all else is. */
TEST(keys, has_nothing_of_what_was_rolled_back)
{
    model m;
    uint64_t from;

    begin(&m);
    for (size_t i = 0; i < KEYS / 2; i++)
        add(&m, i);
    from = m.next;
    for (size_t i = KEYS / 2; i < KEYS; i++) {
        add(&m, i);
        m.positions[i] = 0;
    }
    stg_keys_undo(&m.keys, from);
    check_all(&m, 0);
    end(&m);
}

/* The oldest leave first: those that are too many, and then those too old. */
TEST(keys, forgets_the_oldest)
{
    model m;
    size_t removed;

    begin(&m);
    for (size_t i = 0; i < KEYS; i++)
        add(&m, i);
    m.keys.count_max = KEYS - 10;
    CHECK_INT(stg_keys_expire(&m.keys, STG_S, 7, &removed), SQLITE_OK);
    CHECK_U64(removed, 7); // at most
    CHECK_INT(stg_keys_expire(&m.keys, STG_S, 7, &removed), SQLITE_OK);
    CHECK_U64(removed, 3);
    for (size_t i = 0; i < 10; i++)
        m.positions[i] = 0;
    check_all(&m, 0);
    CHECK_INT(stg_keys_expire(&m.keys, STG_S + STG_DAY - 1, KEYS, &removed),
              SQLITE_OK);
    CHECK_U64(removed, 0);
    CHECK_INT(stg_keys_expire(&m.keys, STG_S + STG_DAY, KEYS, &removed),
              SQLITE_OK);
    CHECK_U64(removed, KEYS - 10);
    memset(m.positions, 0, sizeof m.positions);
    check_all(&m, 0);
    end(&m);
}

/* -- what makes a message the same ----------------------------------------- */

static stg_span span(const char *text)
{
    return (stg_span){text, strlen(text)};
}

/* Whether both are one message; of the key nothing but the key itself counts. */
static bool is_same(const stg_parcel *a, const stg_parcel *b)
{
    stg_keys k = {.count = 0};
    stg_key one, other;

    CHECK(stg_keys_begin(&k));
    CHECK(stg_keys_hash(&k, &one, span("key"), a));
    CHECK(stg_keys_hash(&k, &other, span("key"), b));
    CHECK(memcmp(one.key, other.key, STG_KEY_SIZE) == 0);
    stg_keys_free(&k);
    return memcmp(one.body, other.body, STG_KEY_SIZE) == 0;
}

static bool has_same_headers(const char *a, const char *b)
{
    return is_same(&(stg_parcel){.headers = span(a), .body = span("body")},
                   &(stg_parcel){.headers = span(b), .body = span("body")});
}

/* Who sends it again may have them in another order, and names in another case. */
TEST(keys, take_headers_in_any_order)
{
    const char *headers = "A: 1\r\nB: 2\r\nC: 3\r\n";

    CHECK(has_same_headers(headers, headers));
    CHECK(has_same_headers(headers, "C: 3\r\nA: 1\r\nB: 2\r\n"));
    CHECK(has_same_headers(headers, "a: 1\r\nb: 2\r\nc: 3\r\n"));
    CHECK(!has_same_headers(headers, "A: 1\r\nB: 2\r\n"));
    CHECK(!has_same_headers(headers, "A: 2\r\nB: 1\r\nC: 3\r\n"));
    CHECK(!has_same_headers("A: x\r\n", "A: X\r\n"));
    CHECK(!has_same_headers(headers, ""));
    CHECK(!has_same_headers("A: 1\r\nA: 1\r\n", "")); // each counts
    CHECK(!has_same_headers("A: 1\r\nA: 1\r\nB: 2\r\n", "B: 2\r\n"));
    CHECK(has_same_headers("A: 1\r\nB: 2\r\nA: 1\r\n",
                           "A: 1\r\nA: 1\r\nB: 2\r\n"));
}

/* A trace is another one each time. */
TEST(keys, take_no_header_that_is_passing)
{
    CHECK(has_same_headers("A: 1\r\ntraceparent: 00-1\r\n",
                           "traceparent: 00-2\r\nA: 1\r\n"));
    CHECK(has_same_headers("A: 1\r\nTracestate: x\r\n", "A: 1\r\n"));
}

TEST(keys, tell_the_parts_of_a_message_apart)
{
    const stg_parcel a = {
        .content_type = span("ab"), .key = span("c"), .body = span("d")};
    stg_parcel b = a;

    CHECK(is_same(&a, &b));
    b.content_type = span("a");
    b.key = span("bc");
    CHECK(!is_same(&a, &b));
    b = a;
    b.key = span("");
    b.body = span("cd");
    CHECK(!is_same(&a, &b));
    b = a;
    b.body = span("e");
    CHECK(!is_same(&a, &b));
}
