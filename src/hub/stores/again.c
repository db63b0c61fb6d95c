#include "hub/stores/again.h"

#include "hub/stores/pg_open.h"
#include "hub/stores/sqlite.h"

enum { CLOSING_TRIES = 10 }; /* about a second each */

typedef struct waiting {
    stg_inbox *in;
    int tries;
} waiting;

static bool is_over(void *ctx)
{
    waiting *w = ctx;
    bool over;

    uv_mutex_lock(&w->in->lock);
    over =
        w->in->is_broken || (w->in->is_closing && ++w->tries >= CLOSING_TRIES);
    uv_mutex_unlock(&w->in->lock);
    return over;
}

bool stg_store_again(stg_inbox *in, stg_db *db, int rc)
{
    waiting w = {.in = in};

    // Another process has it for a moment; nothing was read yet.
    if ((rc & 0xff) == SQLITE_BUSY)
        return !stg_inbox_is_broken(in);
    return rc == STG_SQL_AWAY && stg_sql_revive(db, is_over, &w) == SQLITE_OK &&
           !stg_inbox_is_broken(in);
}

int stg_store_connect(stg_db **db, const char *url, const char *path)
{
    return url != NULL ? stg_pg_open_another(db, url)
                       : stg_sql_open_reader(db, path);
}
