/* A stagger that was built without PostgreSQL. */
#include <string.h>

#include <stdlib.h>

#include "base/refuse.h"
#include "store/postgres/open.h"

char *stg_pg_url_name(const char *url)
{
    (void)url;
    return strdup("postgres");
}

bool stg_pg_url_has_secret(const char *url)
{
    (void)url;
    return false;
}

static stg_status refuse(stg_db **db, stg_error *err)
{
    *db = NULL;
    return stg_hub_refuse(err, STG_INVALID,
                          "the store is in PostgreSQL, and this stagger was "
                          "built without it: build it where libpq is found, "
                          "or name a file");
}

stg_status stg_pg_open_writer(stg_db **db, const char *url, uint32_t shard_of,
                              stg_error *err)
{
    (void)url;
    (void)shard_of;
    return refuse(db, err);
}

stg_status stg_pg_open_to_look(stg_db **db, const char *url, stg_error *err)
{
    (void)url;
    return refuse(db, err);
}

int stg_pg_open_another(stg_db **db, const char *url)
{
    (void)url;
    *db = NULL;
    return SQLITE_NOMEM;
}

void stg_pg_watch(stg_db *db, bool (*is_over)(void *ctx), void *ctx)
{
    (void)db;
    (void)is_over;
    (void)ctx;
}

void stg_pg_say_trouble(const stg_db *db, bool is_hanging, stg_error *err)
{
    (void)db;
    (void)is_hanging;
    (void)err;
}
