/* Numbers of lanes that hubs share: the database gives them, many in one
 * transaction.
 *
 * Called on the loop, which stands still meanwhile: so it gives up after
 * PATIENCE and a little for each lane, or after TRIES to connect. A name has one number among all hubs:
 * looking and adding are behind the store's advisory lock. */
#include "store/postgres/open.h"

enum { TRIES = 2 };

/* The loop stands still meanwhile. */
static const uint64_t PATIENCE = 10 * STG_S, PATIENCE_FOR_EACH = 10 * STG_MS;

typedef struct waiting {
    uint64_t until;
    int tries;
} waiting;

static bool is_late(void *ctx)
{
    const waiting *w = ctx;

    return uv_hrtime() >= w->until;
}

static bool is_enough(void *ctx)
{
    waiting *w = ctx;

    return ++w->tries >= TRIES || is_late(w);
}

/* Finds the lane's number by its name. SQLITE_DONE: there is none. */
static int look(stg_db *db, const char *name, uint64_t *number,
                stg_pause *pause)
{
    stg_stmt *st;
    int rc = stg_sql_prepare_once(db, &st,
                                  "SELECT number, pause FROM lanes"
                                  " WHERE name = ? AND is_forgotten = 0");

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "s", name);
    if (rc == SQLITE_OK)
        rc = stg_sql_step(st);
    if (rc == SQLITE_ROW) {
        *number = stg_sql_column(st, 0);
        *pause = (stg_pause)stg_sql_column(st, 1);
        rc = SQLITE_OK;
    }
    stg_sql_finalize(st);
    return rc;
}

static int set_url(stg_db *db, uint64_t number, const char *url)
{
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        db, &st, "UPDATE lanes SET url = ?2 WHERE number = ?1 AND url <> ?2");

    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "us", number, url);
    stg_sql_finalize(st);
    return rc;
}

/* Numbers are never given again: rows of forgotten lanes stay in the table, so
 * the highest number does not fall. */
static int add(stg_db *db, const char *name, const char *url, uint64_t *number)
{
    stg_stmt *st;
    int rc = stg_sql_ask(db, "SELECT coalesce(max(number) + 1, 0) FROM lanes",
                         number);

    if (rc != SQLITE_OK)
        return rc;
    if (*number >= STG_LANES_MAX)
        return SQLITE_TOOBIG;
    rc = stg_sql_prepare_once(
        db, &st, "INSERT INTO lanes (number, name, url) VALUES (?, ?, ?)");
    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "uss", *number, name, url);
    stg_sql_finalize(st);
    return rc;
}

int stg_shared_lanes_find(stg_db *db, const char *name, const char *url,
                          uint32_t *number, stg_pause *pause)
{
    uint64_t found = 0;
    int rc = look(db, name, &found, pause);

    if (rc == SQLITE_OK) {
        rc = set_url(db, found, url);
    } else if (rc == SQLITE_DONE) {
        *pause = STG_PAUSE_NONE;
        rc = add(db, name, url, &found);
    }
    *number = (uint32_t)found;
    return rc;
}

/* Does not wait for the disk: whatever names the lanes is committed later, and
 * so cannot be durable without them. */
static int shared_lanes_begin(stg_db *db, waiting *w)
{
    int rc = stg_sql_begin(db, is_enough, w);

    if (rc == SQLITE_OK)
        rc = stg_sql_serialize(db);
    if (rc == SQLITE_OK)
        rc = stg_sql_exec(db, "SET LOCAL synchronous_commit = off");
    return rc;
}

int stg_shared_lanes_transact(stg_db *db, size_t count,
                              int (*ask)(void *ctx, stg_db *db),
                              bool (*have_asked)(void *ctx), void *ctx)
{
    waiting w = {.until = uv_hrtime() + PATIENCE + count * PATIENCE_FOR_EACH};
    stg_error none;
    int rc;

    stg_pg_watch(db, is_late, &w);
    // A connection that broke while nobody used it is found out only now.
    for (int i = 0; i < 2; i++) {
        rc = shared_lanes_begin(db, &w);
        if (rc == SQLITE_OK)
            rc = ask(ctx, db);
        if (rc == SQLITE_OK && !have_asked(ctx))
            rc = SQLITE_ABORT;
        else if (rc != SQLITE_OK && rc == STG_SQL_AWAY && i == 0 &&
                 !is_late(&w)) {
            (void)stg_sql_end(db, rc, "", &none);
            continue;
        }
        rc = stg_sql_end(db, rc, "", &none);
        break;
    }
    stg_pg_watch(db, NULL, NULL);
    return rc;
}
