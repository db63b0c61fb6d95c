/* Idempotency keys: a table in the order of the log, and an index of it in
 * memory.
 *
 * The index is a hash table with open addressing whose slots have a part of the
 * key's hash and the position; the row at the position decides. It holds what is
 * committed and what the open transaction has added: what that adds is taken back
 * from the index if it is rolled back. The oldest keys go first, from the front
 * of the table, so that it is written at its two ends only. */
#include "store/keys.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "http/header.h"

struct stg_key_slot {
    uint64_t hash;     /* of the key, seeded */
    uint64_t position; /* 0: free */
};

/* -- the index ------------------------------------------------------------- */

/* SHA-256 alone would let a producer search for keys that share a slot. */
static uint64_t short_of(const stg_keys *k, const unsigned char *key)
{
    return stg_hash(&k->seed, key, STG_KEY_SIZE);
}

/* make_room() was called: there is always a free slot, at which searches
 * end. */
static void put(stg_keys *k, uint64_t hash, uint64_t position)
{
    size_t mask = k->slot_count - 1, at = (size_t)hash & mask;

    while (k->slots[at].position != 0)
        at = (at + 1) & mask;
    k->slots[at] = (stg_key_slot){hash, position};
    k->count++;
}

/* Anew with so many slots, and what is below the position. */
static bool rebuild(stg_keys *k, size_t slot_count, uint64_t below)
{
    stg_key_slot *old = k->slots;
    size_t old_count = k->slot_count;
    stg_key_slot *slots = calloc(slot_count, sizeof *slots);

    if (slots == NULL)
        return false;
    k->slots = slots;
    k->slot_count = slot_count;
    k->count = 0;
    for (size_t i = 0; i < old_count; i++)
        if (old[i].position != 0 && old[i].position < below)
            put(k, old[i].hash, old[i].position);
    free(old);
    return true;
}

/* At most three quarters are filled. */
static bool make_room(stg_keys *k)
{
    if (k->count + 1 < k->slot_count - k->slot_count / 4)
        return true;
    return rebuild(k, k->slot_count == 0 ? 1024 : 2 * k->slot_count,
                   UINT64_MAX);
}

/* Whether what belongs to slot `home` is found from `from` without `hole`. */
static bool is_between(size_t hole, size_t home, size_t from)
{
    return hole < from ? hole < home && home <= from
                       : hole < home || home <= from;
}

/* Frees a slot and moves up those that were put behind it for want of it. */
static void free_slot(stg_keys *k, size_t hole)
{
    size_t mask = k->slot_count - 1;

    for (size_t at = (hole + 1) & mask; k->slots[at].position != 0;
         at = (at + 1) & mask)
        if (!is_between(hole, (size_t)k->slots[at].hash & mask, at)) {
            k->slots[hole] = k->slots[at];
            hole = at;
        }
    k->slots[hole].position = 0;
    k->count--;
}

/* By the position, which is in one slot only; the hash finds where to begin. */
static void drop(stg_keys *k, uint64_t hash, uint64_t position)
{
    size_t mask = k->slot_count - 1;

    if (k->slot_count == 0)
        return;
    for (size_t at = (size_t)hash & mask; k->slots[at].position != 0;
         at = (at + 1) & mask)
        if (k->slots[at].position == position) {
            free_slot(k, at);
            return;
        }
}

void stg_keys_drop(stg_keys *k, const stg_key *hash, uint64_t position)
{
    drop(k, short_of(k, hash->key), position);
}

/* After a rollback: drops all that the transaction has added. */
void stg_keys_undo(stg_keys *k, uint64_t from)
{
    bool is_touched = false;

    for (size_t i = 0; i < k->slot_count && !is_touched; i++)
        is_touched = k->slots[i].position >= from;
    if (!is_touched || rebuild(k, k->slot_count, from))
        return;
    // No memory for a second index: then one by one, from the front again
    // after each, for others move into its place.
    for (size_t i = 0; i < k->slot_count;)
        if (k->slots[i].position >= from)
            free_slot(k, i);
        else
            i++;
}

/* -- the table ------------------------------------------------------------- */

static int prepare(stg_keys *k, stg_db *db)
{
    const struct {
        stg_stmt **st;
        const char *text;
    } all[] = {
        {&k->find,
         "SELECT key, body, at FROM idempotency_keys WHERE position = ?"},
        {&k->add,
         "INSERT INTO idempotency_keys (position, key, body, at)"
         " VALUES (?, ?, ?, ?)"},
        {&k->oldest,
         "SELECT position, key, at FROM idempotency_keys ORDER BY position"},
        {&k->remove, "DELETE FROM idempotency_keys WHERE position <= ?"},
    };
    int rc = SQLITE_OK;

    for (size_t i = 0; i < sizeof all / sizeof *all && rc == SQLITE_OK; i++)
        rc = stg_sql_prepare(db, all[i].st, all[i].text);
    return rc;
}

static int read_all(stg_keys *k)
{
    int rc = SQLITE_OK;

    while (rc == SQLITE_OK && (rc = stg_sql_step(k->oldest)) == SQLITE_ROW) {
        uint64_t position = stg_sql_column(k->oldest, 0);
        stg_span key = stg_sql_column_span(k->oldest, 1);

        rc = SQLITE_OK;
        if (key.size != STG_KEY_SIZE || position == 0)
            rc = SQLITE_CORRUPT;
        else if (!make_room(k))
            rc = SQLITE_NOMEM;
        else
            put(k, short_of(k, (const unsigned char *)key.at), position);
    }
    stg_sql_reset(k->oldest);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

bool stg_keys_begin(stg_keys *k)
{
    k->context = EVP_MD_CTX_new();
    k->digest = EVP_MD_fetch(NULL, "SHA256", NULL);
    return k->context != NULL && k->digest != NULL;
}

int stg_keys_load(stg_keys *k, stg_db *db)
{
    int rc = prepare(k, db);

    k->seed = stg_hash_seed_draw(stg_env_system());
    if (!stg_keys_begin(k) || !make_room(k))
        return SQLITE_NOMEM;
    return rc == SQLITE_OK ? read_all(k) : rc;
}

void stg_keys_free(stg_keys *k)
{
    EVP_MD_CTX_free(k->context);
    EVP_MD_free(k->digest);
    free(k->slots);
}

static bool begin_hash(stg_keys *k)
{
    // EVP_sha256() would be looked up by its name each time.
    return EVP_DigestInit_ex(k->context, k->digest, NULL) == 1;
}

static bool end_hash(stg_keys *k, unsigned char half[STG_KEY_SIZE])
{
    unsigned char whole[EVP_MAX_MD_SIZE];

    if (EVP_DigestFinal_ex(k->context, whole, NULL) != 1)
        return false;
    memcpy(half, whole, STG_KEY_SIZE);
    return true;
}

/* With its size before it: "ab" and "c" must not hash as "a" and "bc". */
static bool add_sized(stg_keys *k, stg_span part)
{
    unsigned char size[8];

    for (size_t i = 0; i < sizeof size; i++)
        size[i] = (unsigned char)((uint64_t)part.size >> 8 * i);
    return EVP_DigestUpdate(k->context, size, sizeof size) == 1 &&
           EVP_DigestUpdate(k->context, part.at, part.size) == 1;
}

/* A line, whatever the case of its name. */
static bool hash_line(stg_keys *k, stg_span line,
                      unsigned char half[STG_KEY_SIZE])
{
    stg_span name = stg_header_name(line);
    char c;

    if (!begin_hash(k))
        return false;
    for (size_t i = 0; i < name.size; i++) {
        c = stg_header_fold_case(name.at[i]);
        if (EVP_DigestUpdate(k->context, &c, 1) != 1)
            return false;
    }
    return EVP_DigestUpdate(k->context, line.at + name.size,
                            line.size - name.size) == 1 &&
           end_hash(k, half);
}

/* The sum of a hash for each line: a line that comes twice counts twice. */
typedef struct header_sum {
    uint64_t at[STG_KEY_SIZE / sizeof(uint64_t)];
} header_sum;

/* All headers that belong to the message, in whatever order they came: who
 * sends it again may have them in another one. */
static bool hash_headers(stg_keys *k, stg_span headers, header_sum *sum)
{
    unsigned char half[STG_KEY_SIZE];
    header_sum of_line;
    stg_span line;

    *sum = (header_sum){.at = {0}};
    while ((line = stg_header_next(&headers)).size > 0) {
        if (stg_header_is_passing(stg_header_name(line)))
            continue;
        if (!hash_line(k, line, half))
            return false;
        memcpy(&of_line, half, sizeof of_line);
        for (size_t i = 0; i < sizeof sum->at / sizeof *sum->at; i++)
            sum->at[i] += of_line.at[i];
    }
    return true;
}

bool stg_keys_hash(stg_keys *k, stg_key *hash, stg_span key,
                   const stg_parcel *p)
{
    header_sum headers;

    if (!begin_hash(k) || EVP_DigestUpdate(k->context, key.at, key.size) != 1 ||
        !end_hash(k, hash->key))
        return false;
    memset(hash->body, 0, STG_KEY_SIZE);
    if (p == NULL)
        return true;
    return hash_headers(k, p->headers, &headers) && begin_hash(k) &&
           add_sized(k, p->content_type) && add_sized(k, p->key) &&
           EVP_DigestUpdate(k->context, &headers, sizeof headers) == 1 &&
           EVP_DigestUpdate(k->context, p->body.at, p->body.size) == 1 &&
           end_hash(k, hash->body);
}

bool stg_keys_hash_topic(stg_keys *k, stg_key *hash, stg_span topic)
{
    return begin_hash(k) &&
           EVP_DigestUpdate(k->context, hash->body, STG_KEY_SIZE) == 1 &&
           EVP_DigestUpdate(k->context, topic.at, topic.size) == 1 &&
           end_hash(k, hash->body);
}

/* Whether the row at a position has the key and is young enough. */
static int look(stg_keys *k, const stg_key *hash, uint64_t position,
                stg_ns wall, stg_key_found *found)
{
    stg_span key, body;
    int rc = stg_sql_bind(k->find, "u", position);

    if (rc != SQLITE_OK)
        return rc;
    rc = stg_sql_step(k->find);
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_OK : rc;
    key = stg_sql_column_span(k->find, 0);
    body = stg_sql_column_span(k->find, 1);
    if (key.size == STG_KEY_SIZE && body.size == STG_KEY_SIZE &&
        memcmp(key.at, hash->key, STG_KEY_SIZE) == 0 &&
        stg_ns_sub(wall, stg_sql_column(k->find, 2)) < k->kept)
        *found = memcmp(body.at, hash->body, STG_KEY_SIZE) == 0
                     ? STG_KEY_REPEATED
                     : STG_KEY_OTHER;
    return stg_sql_reset(k->find);
}

int stg_keys_find(stg_keys *k, const stg_key *hash, stg_ns wall,
                  stg_key_found *found, uint64_t *position)
{
    uint64_t first = short_of(k, hash->key);
    size_t mask = k->slot_count - 1;
    int rc = SQLITE_OK;

    *found = STG_KEY_NEW;
    for (size_t at = (size_t)first & mask;
         k->slots[at].position != 0 && *found == STG_KEY_NEW && rc == SQLITE_OK;
         at = (at + 1) & mask)
        if (k->slots[at].hash == first) {
            *position = k->slots[at].position;
            rc = look(k, hash, *position, wall, found);
        }
    return rc;
}

/* Room first: after the row was added nothing may fail. */
int stg_keys_add(stg_keys *k, const stg_key *hash, uint64_t position,
                 stg_ns wall)
{
    stg_span key = {(const char *)hash->key, STG_KEY_SIZE};
    stg_span body = {(const char *)hash->body, STG_KEY_SIZE};
    int rc;

    if (!make_room(k))
        return SQLITE_NOMEM;
    rc = stg_sql_run(k->add, "ubbu", position, key, body, wall);
    if (rc == SQLITE_OK)
        put(k, short_of(k, hash->key), position);
    return rc;
}

/* Removes keys from the oldest on, by age or because there are too many. They
 * leave the index before the transaction is committed: after a rollback their
 * rows are there without it, and go with a later call. */
int stg_keys_expire(stg_keys *k, stg_ns wall, size_t most, size_t *removed)
{
    uint64_t last = 0;
    int rc = SQLITE_ROW;

    *removed = 0;
    while (*removed < most && (rc = stg_sql_step(k->oldest)) == SQLITE_ROW) {
        stg_span key = stg_sql_column_span(k->oldest, 1);
        stg_ns age = stg_ns_sub(wall, stg_sql_column(k->oldest, 2));

        if (age < k->kept && k->count <= k->count_max)
            break;
        last = stg_sql_column(k->oldest, 0);
        ++*removed;
        if (key.size == STG_KEY_SIZE)
            drop(k, short_of(k, (const unsigned char *)key.at), last);
    }
    stg_sql_reset(k->oldest);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return rc;
    return *removed == 0 ? SQLITE_OK : stg_sql_run(k->remove, "u", last);
}
