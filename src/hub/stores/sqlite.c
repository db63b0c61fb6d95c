#include "hub/stores/sqlite.h"
#include "hub/refuse.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>

static int open_file(sqlite3 **db, const char *path, int flags)
{
    int rc = sqlite3_open_v2(path, db, flags | SQLITE_OPEN_NOMUTEX, NULL);

    if (rc != SQLITE_OK)
        return rc;
    sqlite3_extended_result_codes(*db, 1);
    return sqlite3_busy_timeout(*db, STG_SQL_BUSY_MS);
}

int stg_sql_open_writer(sqlite3 **db, const char *path)
{
    return open_file(db, path, SQLITE_OPEN_READWRITE);
}

int stg_sql_open_reader(sqlite3 **db, const char *path)
{
    int rc = open_file(db, path, SQLITE_OPEN_READONLY);

    return rc != SQLITE_OK ? rc
                           : stg_sql_exec(*db,
                                          "PRAGMA trusted_schema = OFF;"
                                          "PRAGMA temp_store = MEMORY;");
}

void stg_sql_close(sqlite3 *db)
{
    sqlite3_stmt *st;

    if (db == NULL)
        return;
    while ((st = sqlite3_next_stmt(db, NULL)) != NULL)
        sqlite3_finalize(st);
    sqlite3_close(db);
}

int stg_sql_exec(sqlite3 *db, const char *text)
{
    return sqlite3_exec(db, text, NULL, NULL, NULL);
}

int stg_sql_prepare(sqlite3 *db, sqlite3_stmt **st, const char *text)
{
    return sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, st,
                              NULL);
}

static sqlite3_int64 bits(uint64_t number)
{
    sqlite3_int64 same;

    memcpy(&same, &number, sizeof same);
    return same;
}

static int bind_number(sqlite3_stmt *st, int at, uint64_t number)
{
    return sqlite3_bind_int64(
        st, at, number > INT64_MAX ? INT64_MAX : (sqlite3_int64)number);
}

static int bind_text(sqlite3_stmt *st, int at, const char *text, size_t size)
{
    return text == NULL ? sqlite3_bind_null(st, at)
                        : sqlite3_bind_text64(st, at, text, size, SQLITE_STATIC,
                                              SQLITE_UTF8);
}

static int bind_blob(sqlite3_stmt *st, int at, stg_span span)
{
    return sqlite3_bind_blob64(st, at, span.size == 0 ? "" : span.at, span.size,
                               SQLITE_STATIC);
}

static int bind_all(sqlite3_stmt *st, int at, const char *letters, va_list args)
{
    int rc = SQLITE_OK;

    for (; *letters != '\0' && rc == SQLITE_OK; at++) {
        stg_span span;
        const char *text;
        uint64_t number;

        switch (*letters++) {
        case 'u':
            rc = bind_number(st, at, va_arg(args, uint64_t));
            break;
        case 'h':
            rc = sqlite3_bind_int64(st, at, bits(va_arg(args, uint64_t)));
            break;
        case 'o':
            number = va_arg(args, uint64_t);
            rc = number == 0 ? sqlite3_bind_null(st, at)
                             : bind_number(st, at, number);
            break;
        case 'd':
            rc = sqlite3_bind_int(st, at, va_arg(args, int));
            break;
        case 's':
            text = va_arg(args, const char *);
            rc = bind_text(st, at, text, text == NULL ? 0 : strlen(text));
            break;
        case 't':
            span = va_arg(args, stg_span);
            rc = bind_text(st, at, span.size == 0 ? NULL : span.at, span.size);
            break;
        case 'b':
            rc = bind_blob(st, at, va_arg(args, stg_span));
            break;
        case 'v':
            span = va_arg(args, stg_span);
            rc = span.size == 0 ? sqlite3_bind_null(st, at)
                                : bind_blob(st, at, span);
            break;
        default:
            rc = SQLITE_MISUSE;
        }
    }
    return rc;
}

int stg_sql_bind_from(sqlite3_stmt *st, int first, const char *letters, ...)
{
    va_list args;
    int rc;

    va_start(args, letters);
    rc = bind_all(st, first, letters, args);
    va_end(args);
    return rc;
}

int stg_sql_run(sqlite3_stmt *st, const char *letters, ...)
{
    va_list args;
    int rc;

    va_start(args, letters);
    rc = bind_all(st, 1, letters, args);
    va_end(args);
    if (rc != SQLITE_OK)
        return rc;
    do
        rc = stg_sql_step(st);
    while (rc == SQLITE_ROW);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int stg_sql_step(sqlite3_stmt *st)
{
    int rc = sqlite3_step(st);

    if (rc != SQLITE_ROW)
        sqlite3_reset(st);
    return rc;
}

int stg_sql_number(sqlite3_stmt *st, uint64_t *number)
{
    int rc = stg_sql_step(st);

    if (rc != SQLITE_ROW)
        return rc;
    *number = stg_sql_column(st, 0);
    return sqlite3_reset(st);
}

int stg_sql_ask(sqlite3 *db, const char *question, uint64_t *number)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db, question, -1, &st, NULL);

    if (rc == SQLITE_OK)
        rc = stg_sql_number(st, number);
    sqlite3_finalize(st);
    return rc;
}

uint64_t stg_sql_column(sqlite3_stmt *st, int column)
{
    sqlite3_int64 number = sqlite3_column_int64(st, column);

    return number < 0 ? 0 : (uint64_t)number;
}

stg_span stg_sql_column_span(sqlite3_stmt *st, int column)
{
    const char *at = sqlite3_column_blob(st, column);

    return (stg_span){at == NULL ? "" : at,
                      (size_t)sqlite3_column_bytes(st, column)};
}

int stg_sql_begin(sqlite3 *db, bool (*is_over)(void *ctx), void *ctx)
{
    int rc;

    do
        rc = stg_sql_exec(db, "BEGIN IMMEDIATE");
    while ((rc & 0xff) == SQLITE_BUSY && (is_over == NULL || !is_over(ctx)));
    return rc;
}

bool stg_sql_is_full(int rc)
{
    return (rc & 0xff) == SQLITE_FULL;
}

static const char *advice(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_NOTADB:
        return "; it is no SQLite database, name another file";
    case SQLITE_CORRUPT:
        return "; it is damaged: put a backup in its place, or move it away "
               "with its -wal and begin anew";
    case SQLITE_FULL:
        return "; make room on the disk, or raise the quota";
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
        return "; the file and its directory must be writable";
    case SQLITE_BUSY:
        return "; another process is writing to it, end it";
    case SQLITE_IOERR:
        return "; look at the disk and its log";
    default:
        return "";
    }
}

void stg_sql_words(stg_error *err, const char *path, const char *what,
                   sqlite3 *db, int rc)
{
    const char *words = sqlite3_errstr(rc);

    // The connection may speak of an earlier call; then the code is surer.
    if (db != NULL && sqlite3_extended_errcode(db) == rc)
        words = sqlite3_errmsg(db);
    (void)stg_hub_refuse(err, STG_IO, "%s: %s: %s (%d)%s", path, what, words,
                         rc, advice(rc));
}

int stg_sql_end(sqlite3 *db, int rc, const char *path, stg_error *err)
{
    if (rc == SQLITE_OK)
        rc = stg_sql_exec(db, "COMMIT");
    if (rc == SQLITE_OK)
        return rc;
    stg_sql_words(err, path, "cannot be written", db, rc);
    // Some errors have rolled it back already.
    if (sqlite3_get_autocommit(db) == 0)
        stg_sql_exec(db, "ROLLBACK");
    return rc;
}
