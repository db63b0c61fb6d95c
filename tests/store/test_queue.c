#include <stagger/rng.h>

#include "store/parcel.h"
#include "store/queue.h"
#include "store/sqlite.h"
#include "tests/harness.h"

/* The segments of the queue, beside a list of what was appended. */

enum { MESSAGES = 20000, SEGMENT = 64 << 10, BODY_MAX = 60000 };

typedef struct model {
    stg_db *db;
    stg_queue q;
    stg_queue_reader reader;
    stg_rng rng;
    uint64_t filled[MESSAGES + 1]; /* before each position */
    uint64_t seed;
    size_t most; /* segments there were */
} model;

static unsigned char bytes[BODY_MAX + 8];

static uint64_t upto(model *m, uint64_t n)
{
    return stg_rng_upto(&m->rng, n);
}

static void begin(model *m)
{
    CHECK_INT(stg_sql_exec(m->db, "BEGIN"), SQLITE_OK);
}

/* One in eight is taken back. */
static void end(model *m, const stg_queue_extent *before)
{
    bool is_kept = upto(m, 7) > 0;

    CHECK_INT(stg_sql_exec(m->db, is_kept ? "COMMIT" : "ROLLBACK"), SQLITE_OK);
    if (!is_kept)
        m->q.is = *before;
}

static void check_place(model *m, uint64_t from)
{
    const stg_queue_extent *is = &m->q.is;
    uint64_t expected = stg_ns_min(stg_ns_max(from, is->first), is->next);
    stg_queue_place place;

    CHECK_INT(stg_queue_at(&m->q, from, &place), SQLITE_OK);
    CHECK_U64(place.position, expected);
    CHECK_U64(place.filled, m->filled[expected]);
}

static void check(model *m)
{
    const stg_queue_extent *is = &m->q.is;

    CHECK_FROM(m->seed, is->count <= STG_SEGMENTS);
    CHECK_FROM(m->seed, (is->count == 0) == (is->first == is->next));
    CHECK_U64(stg_queue_bytes(&m->q),
              m->filled[is->next] - m->filled[is->first]);
    for (size_t i = 0; i < is->count; i++)
        CHECK_U64(is->segments[i].filled, m->filled[is->segments[i].first]);
    check_place(m, upto(m, is->next));
    check_place(m, is->first);
    m->most = stg_ns_max(m->most, is->count);
}

static void append(model *m)
{
    const stg_queue_extent before = m->q.is;
    size_t count = 1 + upto(m, 200), size_max = 1 << upto(m, 15);
    stg_ns wall = 1000 * STG_S;

    begin(m);
    for (size_t i = 0; i < count && m->q.is.next < MESSAGES; i++) {
        stg_parcel p = {.body = {(char *)bytes, 8 + upto(m, size_max)}};
        uint64_t position = m->q.is.next;

        memcpy(bytes, &position, 8);
        CHECK_INT(stg_queue_add(&m->q, &p, wall, &position), SQLITE_OK);
        m->filled[m->q.is.next] = m->q.is.filled;
    }
    CHECK_INT(stg_queue_note(&m->q), SQLITE_OK);
    end(m, &before);
}

static void trim(model *m)
{
    const stg_queue_extent before = m->q.is;
    uint64_t limit, ended;

    if (before.count == 0)
        return;
    limit = before.first + 1 + upto(m, before.next - before.first - 1);
    ended = stg_queue_ended(&m->q, limit);
    CHECK_FROM(m->seed, ended <= limit && ended >= before.first);
    begin(m);
    CHECK_INT(stg_queue_trim(&m->q, limit, 1 + upto(m, 400), 1 << 20),
              SQLITE_OK);
    CHECK_FROM(m->seed, m->q.is.first > before.first);
    CHECK_FROM(m->seed, m->q.is.first <= limit);
    end(m, &before);
}

/* What is read is all from `from` on, in order, until there is room. */
static void read_some(model *m)
{
    uint64_t from = upto(m, m->q.is.next), position;
    stg_chunk c = {0};

    CHECK_INT(stg_queue_read(&m->reader, from, 1 << upto(m, 20), &c),
              SQLITE_OK);
    from = stg_ns_max(from, m->q.is.first);
    CHECK_FROM(m->seed, (c.count == 0) == (from == m->q.is.next));
    for (size_t i = 0; i < c.count; i++) {
        stg_parcel p;

        CHECK_U64(c.records[i].position, from + i);
        CHECK(stg_parcel_unpack(&p, c.records[i].bytes, c.records[i].size));
        memcpy(&position, p.body.at, 8);
        CHECK_U64(position, from + i);
    }
    stg_chunk_free(&c);
}

/* Another queue finds in the file what this one has in memory. */
static void load(model *m)
{
    stg_queue other = {0};

    CHECK_INT(stg_queue_load(&other, m->db, SEGMENT), SQLITE_OK);
    CHECK_U64(other.is.next, m->q.is.next);
    CHECK_U64(other.is.first, m->q.is.first);
    CHECK_U64(other.is.count, m->q.is.count);
    for (size_t i = 0; i < other.is.count; i++) {
        CHECK_INT(other.is.segments[i].table, m->q.is.segments[i].table);
        CHECK_U64(other.is.segments[i].first, m->q.is.segments[i].first);
        CHECK_U64(other.is.segments[i].filled, m->q.is.segments[i].filled);
    }
    if (other.is.count > 0)
        CHECK_U64(stg_queue_bytes(&other), stg_queue_bytes(&m->q));
}

static void make(model *m, uint64_t seed)
{
    *m = (model){.rng = stg_rng_seed(seed), .seed = seed};
    CHECK_INT(stg_sqlite_open(&m->db, ":memory:",
                              SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE),
              SQLITE_OK);
    CHECK_INT(stg_schema_make(m->db), SQLITE_OK);
    CHECK_INT(stg_meta_write(m->db, "next_position", 1), SQLITE_OK);
    CHECK_INT(stg_queue_load(&m->q, m->db, SEGMENT), SQLITE_OK);
    CHECK_INT(stg_queue_reader_prepare(&m->reader, m->db), SQLITE_OK);
}

TEST(queue, has_what_was_appended_and_not_trimmed)
{
    static model m;
    size_t most = 0;

    for (uint64_t seed = 0; seed < seeds(20); seed++) {
        uint64_t appends = 1 + (seed + 2) % 4; // of 4; one seed is enough

        make(&m, seed);
        for (int i = 0; i < 200; i++) {
            if (upto(&m, 3) < appends)
                append(&m);
            else
                trim(&m);
            check(&m);
            read_some(&m);
            if (i % 20 == 0)
                load(&m);
        }
        stg_sql_close(m.db);
        most = stg_ns_max(most, m.most);
    }
    CHECK_U64(most, STG_SEGMENTS);
}

/* A segment goes as a whole; where there is no table left, by its rows. */
TEST(queue, empties_segments_that_have_ended)
{
    static model m;
    stg_parcel p = {.body = {(char *)bytes, 16000}};
    uint64_t position, ended;

    make(&m, 1);
    for (int i = 0; i < 8; i++)
        CHECK_INT(stg_queue_add(&m.q, &p, 0, &position), SQLITE_OK);
    CHECK_U64(m.q.is.count, 2);
    ended = m.q.is.segments[1].first;
    CHECK_U64(stg_queue_ended(&m.q, ended - 1), 1);
    CHECK_U64(stg_queue_ended(&m.q, ended), ended);
    // The last one is still written to.
    CHECK_U64(stg_queue_ended(&m.q, 9), ended);
    CHECK_INT(stg_queue_trim(&m.q, ended, 1, 1), SQLITE_OK);
    CHECK_U64(m.q.is.first, ended);
    CHECK_U64(m.q.is.count, 1);
    // Its table is the next one's.
    while (m.q.is.count == 1)
        CHECK_INT(stg_queue_add(&m.q, &p, 0, &position), SQLITE_OK);
    CHECK_INT(m.q.is.segments[1].table, 0);
    // The last one, whole.
    CHECK_INT(stg_queue_trim(&m.q, m.q.is.next, 1, 1), SQLITE_OK);
    CHECK_INT(stg_queue_trim(&m.q, m.q.is.next, 1, 1), SQLITE_OK);
    CHECK_U64(m.q.is.count, 0);
    CHECK_U64(stg_queue_bytes(&m.q), 0);
    stg_sql_close(m.db);
}

TEST(queue, removes_rows_of_a_segment_that_is_too_large)
{
    static model m;
    stg_parcel p = {.body = {(char *)bytes, 60000}};
    uint64_t position, before;

    make(&m, 1);
    for (int i = 0; i < 600; i++)
        CHECK_INT(stg_queue_add(&m.q, &p, 0, &position), SQLITE_OK);
    CHECK_U64(m.q.is.count, STG_SEGMENTS);
    while (m.q.is.count > 1)
        CHECK_INT(stg_queue_trim(&m.q, m.q.is.next, 1, 1), SQLITE_OK);
    before = m.q.is.first;
    CHECK_INT(stg_queue_trim(&m.q, m.q.is.next, 7, 1 << 20), SQLITE_OK);
    CHECK_U64(m.q.is.first, before + 7);
    CHECK_U64(m.q.is.segments[0].first, before + 7);
    stg_sql_close(m.db);
}
