#include "store/read_retry.h"

#include "store/postgres/open.h"
#include "store/sqlite.h"

static const uint64_t PATIENCE = 10 * STG_S; /* from when it closes */

/* Also while an answer is waited for: a server may hang. */
static bool is_over(void *ctx)
{
    stg_read_retry *a = ctx;
    uint64_t now = uv_hrtime();
    bool over;

    uv_mutex_lock(&a->in->lock);
    if (a->in->stage >= STG_QUEUE_CLOSING && a->closing_at == 0)
        a->closing_at = now;
    over = a->in->is_broken ||
           (a->closing_at > 0 && now - a->closing_at >= PATIENCE);
    uv_mutex_unlock(&a->in->lock);
    return over;
}

bool stg_store_again(stg_read_retry *a, stg_db *db, int rc)
{
    // Another process has it for a moment; nothing was read yet.
    if ((rc & 0xff) == SQLITE_BUSY)
        return !stg_request_queue_is_broken(a->in);
    return rc == STG_SQL_AWAY && !is_over(a) &&
           stg_sql_revive(db, is_over, a) == SQLITE_OK &&
           !stg_request_queue_is_broken(a->in);
}

int stg_store_connect(stg_db **db, const char *url, const char *path)
{
    return url != NULL ? stg_pg_open_another(db, url)
                       : stg_sql_open_reader(db, path);
}

int stg_store_connect_again(stg_read_retry *a, stg_request_queue *in,
                            stg_db **db, const char *url, const char *path)
{
    int rc = stg_store_connect(db, url, path);

    *a = (stg_read_retry){.in = in};
    if (rc == SQLITE_OK && url != NULL)
        stg_pg_watch(*db, is_over, a);
    return rc;
}
