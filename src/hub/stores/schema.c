#include "hub/stores/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/refuse.h"
#include "hub/stores/steps.h"

uint64_t stg_schema_version(void)
{
    return stg_steps_count();
}

int stg_schema_look(stg_db *db, stg_schema_kind *kind, uint64_t *version)
{
    uint64_t application = 0, tables = 0;
    int rc = stg_sql_ask(db, "SELECT count(*) FROM sqlite_master", &tables);

    if (rc == SQLITE_OK)
        rc = stg_sql_ask(db, "PRAGMA application_id", &application);
    if (rc == SQLITE_OK)
        rc = stg_sql_ask(db, "PRAGMA user_version", version);
    if (application == STG_SCHEMA_APPLICATION)
        *kind =
            *version > stg_steps_count() ? STG_SCHEMA_NEWER : STG_SCHEMA_OURS;
    else
        *kind = application == 0 && *version == 0 && tables == 0
                    ? STG_SCHEMA_EMPTY
                    : STG_SCHEMA_FOREIGN;
    return rc;
}

int stg_schema_migrate(stg_db *db, uint64_t version)
{
    char text[96];
    int rc;

    if (version == stg_steps_count())
        return SQLITE_OK;
    rc = stg_steps_take(db, version);
    if (rc != SQLITE_OK)
        return rc;
    snprintf(text, sizeof text,
             "PRAGMA application_id = %d; PRAGMA user_version = %" PRIu64 ";",
             STG_SCHEMA_APPLICATION, stg_steps_count());
    return stg_sql_exec(db, text);
}

stg_status stg_schema_check(stg_db *db, const char *path, bool may_be_empty,
                            stg_error *err)
{
    stg_schema_kind kind = STG_SCHEMA_FOREIGN;
    uint64_t version = 0;
    int rc = stg_schema_look(db, &kind, &version);

    if (rc != SQLITE_OK) {
        stg_sql_words(err, path, "cannot be read", db, rc);
        return STG_IO;
    }
    if (kind == STG_SCHEMA_NEWER) {
        return stg_hub_refuse(
            err, STG_INVALID,
            "%s: is a store of version %" PRIu64 ", this stagger knows %" PRIu64
            " at most; it was written by a newer one: use that",
            path, version, stg_steps_count());
    }
    if (kind == STG_SCHEMA_FOREIGN ||
        (kind == STG_SCHEMA_EMPTY && !may_be_empty)) {
        return stg_hub_refuse(
            err, STG_INVALID,
            "%s: is a database, but no store of stagger; name another "
            "file",
            path);
    }
    return STG_OK;
}

stg_status stg_schema_check_new(stg_db *db, const char *path, stg_error *err)
{
    stg_schema_kind kind;
    uint64_t version = 0;
    int rc = stg_schema_look(db, &kind, &version);

    if (rc != SQLITE_OK) {
        stg_sql_words(err, path, "cannot be read", db, rc);
        return STG_IO;
    }
    if (version == stg_steps_count())
        return STG_OK;
    return stg_hub_refuse(err, STG_INVALID,
                          "%s: is a store of version %" PRIu64
                          ", and is read when it is one of %" PRIu64
                          ": start its hub with this stagger once",
                          path, version, stg_steps_count());
}

int stg_meta_read(stg_db *db, const char *name, uint64_t *number)
{
    stg_stmt *st = NULL;
    int rc =
        stg_sql_prepare_once(db, &st, "SELECT value FROM meta WHERE name = ?");

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "s", name);
    if (rc == SQLITE_OK)
        rc = stg_sql_number(st, number);
    stg_sql_finalize(st);
    return rc;
}

static int write_value(stg_db *db, const char *name, const char *letters,
                       uint64_t number, const char *text)
{
    stg_stmt *st = NULL;
    int rc = stg_sql_prepare_once(
        db, &st, "INSERT OR REPLACE INTO meta (value, name) VALUES (?, ?)");

    if (rc == SQLITE_OK)
        rc = text != NULL ? stg_sql_run(st, letters, text, name)
                          : stg_sql_run(st, letters, number, name);
    stg_sql_finalize(st);
    return rc;
}

int stg_meta_write(stg_db *db, const char *name, uint64_t number)
{
    return write_value(db, name, "us", number, NULL);
}

int stg_meta_write_epoch(stg_db *db, uint64_t epoch)
{
    char text[17];

    snprintf(text, sizeof text, "%016" PRIx64, epoch);
    return write_value(db, "epoch", "ss", 0, text);
}
