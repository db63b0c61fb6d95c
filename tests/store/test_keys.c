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

static void begin(model *m)
{
    *m = (model){.keys = {.kept = STG_DAY, .count_max = 1000000}, .next = 1};
    CHECK_INT(stg_sql_open_writer(&m->db, ":memory:"), SQLITE_OK);
    CHECK_INT(stg_sql_exec(m->db,
                           "CREATE TABLE idempotency_keys (position INTEGER"
                           " PRIMARY KEY, key BLOB, body BLOB, at INTEGER)"),
              SQLITE_OK);
    CHECK_INT(stg_keys_load(&m->keys, m->db), SQLITE_OK);
    for (uint32_t i = 0; i < KEYS; i++) {
        char name[16];
        int size = snprintf(name, sizeof name, "key %u", i);

        CHECK(stg_keys_hash(&m->keys, &m->hashes[i],
                            (stg_span){name, (size_t)size}, NULL));
    }
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
