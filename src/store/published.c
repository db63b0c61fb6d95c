/* Keys of messages that are published to another log: see published.h.
 *
 * Two kinds of requests, each in a transaction of its own, which no other hub's
 * runs beside (stg_sql_serialize()): so what is found is what was added. A request
 * has any number of keys, and takes as many round trips as one: rows are added
 * and changed as arrays, and found by one text of all their names. */
#include "store/published.h"

#include <stdlib.h>
#include <string.h>

#include "store/internal.h"

enum {
    SIZE = STG_RECORD_ID_SIZE, /* of a key's hash, too */
    EXPIRES = 100, /* old ones that go with a request, and with each of
                                  its keys two */
};

_Static_assert((int)STG_KEY_SIZE == (int)SIZE, "both are cut out of one text");

bool stg_record_id_is_none(const stg_record_id *id)
{
    static const stg_record_id none;

    return memcmp(id, &none, sizeof none) == 0;
}

bool stg_store_keeps_keys(const stg_store *s)
{
    return s->url != NULL;
}

/* -- statements ------------------------------------------------------------ */

/* Names are cut out of one text, in the order of their numbers. */
#define EACH(name)                                                  \
    " FROM generate_series(0, ?1 - 1) AS i JOIN published ON " name \
    " = substring(?2 FROM CAST(16 * i + 1 AS INTEGER) FOR 16)"

int stg_published_prepare(stg_published_table *t, stg_db *db)
{
    int rc = stg_sql_prepare(db, &t->expire,
                             "DELETE FROM published WHERE key IN (SELECT key"
                             " FROM published WHERE at < ? ORDER BY at"
                             " LIMIT ?)");

    if (rc == SQLITE_OK)
        rc = stg_sql_prepare_many(db, &t->forget, "DELETE FROM published",
                                  "USING", " WHERE key = ?1 AND at < ?2");
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare_many(
            db, &t->add,
            "INSERT INTO published (key, body, id, at, topic)"
            " SELECT ?1, ?2, ?3, ?4, ?5",
            "FROM", " WHERE true ON CONFLICT (key) DO NOTHING");
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare(
            db, &t->find,
            "SELECT i, id, partition, position, topic, body" EACH("key"));
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare_many(
            db, &t->place, "UPDATE published SET partition = ?2, position = ?3",
            "FROM", " WHERE id = ?1 AND topic = ?4 AND position IS NULL");
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare(
            db, &t->look,
            "SELECT i, id, partition, position, topic" EACH("id"));
    return rc;
}

/* -- requests -------------------------------------------------------------- */

typedef struct keying {
    stg_store_request request;
    stg_reserved_fn *done;
    void *ctx;
    size_t count;
    stg_reserved *all;
    stg_key_ask *asks; /* to reserve; else NULL */
    stg_key *hashes;
    stg_arena texts;      /* topics */
    unsigned char *names; /* of all, one behind the other */
} keying;

static keying *keying_of(stg_store_request *e)
{
    return STG_HOLDER(&e->link, keying, request.link);
}

static void tell(stg_store_request *e)
{
    const keying *k = keying_of(e);

    k->done(k->ctx, e->is_full ? NULL : k->all, k->count);
}

static void free_keying(stg_store_request *e)
{
    keying *k = keying_of(e);

    free(k->all);
    free(k->asks);
    stg_arena_free(&k->texts);
    free(k->hashes);
    free(k->names);
    free(k);
}

static stg_span half(const unsigned char *at)
{
    return (stg_span){(const char *)at, SIZE};
}

static bool is_of_topic(const stg_reserved *r, stg_stmt *st)
{
    const char *topic = stg_sql_text(st, 4);

    return topic != NULL && strcmp(topic, r->topic) == 0;
}

/* A row of what was found. */
static int read_row(const keying *k, stg_stmt *st)
{
    uint64_t i = stg_sql_column(st, 0);
    stg_span id = stg_sql_column_span(st, 1);
    stg_reserved *r;

    if (i >= k->count || id.size != SIZE)
        return SQLITE_CORRUPT;
    r = &k->all[i];
    if (k->hashes == NULL && !is_of_topic(r, st))
        return SQLITE_OK;
    memcpy(r->id.at, id.at, SIZE);
    if (!stg_sql_is_null(st, 3)) {
        r->partition = (uint32_t)stg_sql_column(st, 2);
        r->position = stg_sql_column(st, 3);
    }
    if (k->hashes != NULL) {
        stg_span body = stg_sql_column_span(st, 5);

        r->is_other =
            body.size != SIZE || memcmp(body.at, k->hashes[i].body, SIZE) != 0;
    }
    return SQLITE_OK;
}

static int read_rows(const keying *k, stg_stmt *st)
{
    stg_span names = {(const char *)k->names, k->count * SIZE};
    int rc = stg_sql_bind(st, "ub", (uint64_t)k->count, names);

    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW)
        rc = read_row(k, st);
    stg_sql_reset(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* -- reserving ------------------------------------------------------------- */

static bool hash_all(keying *k, stg_store_writer *w)
{
    for (size_t i = 0; i < k->count; i++) {
        const stg_append *m = k->asks[i].message;
        stg_span topic = {k->all[i].topic, strlen(k->all[i].topic)};

        if (!stg_keys_hash(&w->keys, &k->hashes[i], m->idempotency_key,
                           m->is_same_by_key ? NULL : &m->parcel) ||
            !stg_keys_hash_topic(&w->keys, &k->hashes[i], topic))
            return false;
        memcpy(k->names + i * SIZE, k->hashes[i].key, SIZE);
    }
    return true;
}

static int add_all(const keying *k, const stg_published_table *t, stg_ns wall,
                   stg_ns before)
{
    int rc = stg_sql_run(t->expire, "uu", before,
                         (uint64_t)(EXPIRES + 2 * k->count));

    for (size_t i = 0; i < k->count && rc == SQLITE_OK; i++)
        rc = stg_sql_run(t->forget, "bu", half(k->hashes[i].key), before);
    for (size_t i = 0; i < k->count && rc == SQLITE_OK; i++)
        rc = stg_sql_run(t->add, "bbbus", half(k->hashes[i].key),
                         half(k->hashes[i].body), half(k->all[i].id.at), wall,
                         k->all[i].topic);
    return rc;
}

/* Also once more, where the server went away: then what it added may be there,
 * under the same ids. */
static int reserve(stg_store_request *e, stg_store_writer *w)
{
    keying *k = keying_of(e);
    stg_ns wall = stg_sql_now(w->db);
    int rc;

    if (!hash_all(k, w))
        return SQLITE_NOMEM;
    rc = add_all(k, &w->published, wall, stg_ns_sub(wall, w->o->keys_kept));
    return rc == SQLITE_OK ? read_rows(k, w->published.find) : rc;
}

static keying *make(stg_store *s, size_t count, stg_reserved_fn *done,
                    void *ctx)
{
    keying *k = stg_store_new_request(s, sizeof *k);

    if (k == NULL)
        return NULL;
    *k = (keying){.request = {.tell = tell, .free = free_keying},
                  .done = done,
                  .ctx = ctx,
                  .count = count,
                  .all = calloc(count + 1, sizeof *k->all),
                  .names = calloc(count + 1, SIZE)};
    if (k->all != NULL && k->names != NULL)
        return k;
    free_keying(&k->request);
    stg_store_lack_memory(s);
    return NULL;
}

/* False: no memory. Many follow each other of one topic. */
static bool copy_topic(keying *k, size_t i, const char *topic)
{
    const char *last = i > 0 ? k->all[i - 1].topic : NULL;

    k->all[i].topic = last != NULL && strcmp(last, topic) == 0
                          ? last
                          : stg_arena_text(&k->texts, topic);
    return k->all[i].topic != NULL;
}

static bool put_asks(keying *k, const stg_key_ask *asks)
{
    for (size_t i = 0; i < k->count; i++) {
        if (!copy_topic(k, i, asks[i].topic) ||
            uv_random(NULL, NULL, k->all[i].id.at, SIZE, 0, NULL) != 0)
            return false;
        k->all[i].position = STG_NO_POSITION;
        k->asks[i] = (stg_key_ask){k->all[i].topic, asks[i].message};
    }
    return true;
}

static void give_up(stg_store *s, keying *k)
{
    free_keying(&k->request);
    stg_store_lack_memory(s);
}

void stg_store_reserve(stg_store *s, const stg_key_ask *asks, size_t count,
                       stg_reserved_fn *done, void *ctx)
{
    keying *k = make(s, count, done, ctx);

    if (k == NULL)
        return;
    k->request.write = reserve;
    k->asks = calloc(count + 1, sizeof *k->asks);
    k->hashes = calloc(count + 1, sizeof *k->hashes);
    if (k->asks == NULL || k->hashes == NULL || !put_asks(k, asks))
        give_up(s, k);
    else
        stg_store_request_send(s, &k->request);
}

/* -- placing --------------------------------------------------------------- */

static int place(stg_store_request *e, stg_store_writer *w)
{
    const keying *k = keying_of(e);
    int rc = SQLITE_OK;

    for (size_t i = 0; i < k->count && rc == SQLITE_OK; i++) {
        const stg_reserved *r = &k->all[i];

        memcpy(k->names + i * SIZE, r->id.at, SIZE);
        rc = stg_sql_run(w->published.place, "buus", half(r->id.at),
                         (uint64_t)r->partition, r->position, r->topic);
    }
    return rc == SQLITE_OK ? read_rows(k, w->published.look) : rc;
}

void stg_store_place(stg_store *s, const stg_reserved *all, size_t count,
                     stg_reserved_fn *done, void *ctx)
{
    keying *k = make(s, count, done, ctx);
    bool is_whole = true;

    if (k == NULL)
        return;
    k->request.write = place;
    for (size_t i = 0; i < count && is_whole; i++) {
        k->all[i] = all[i];
        is_whole = copy_topic(k, i, all[i].topic);
    }
    if (is_whole)
        stg_store_request_send(s, &k->request);
    else
        give_up(s, k);
}
