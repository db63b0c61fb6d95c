/* A file behind the calls of sql.h.
 *
 * A connection belongs to one thread, and has no mutex. A transaction that writes
 * begins with BEGIN IMMEDIATE, so that it waits for others at its begin, and
 * never fails for them in its middle. Its end is never unknown, as that of a
 * server may be: has_committed() is not asked. */
#include "store/sqlite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/refuse.h"
#include "store/shortage.h"

enum { LEAST_SPACE = 16384 }; /* bytes: a page */

typedef struct lite_db {
    stg_db db;
    sqlite3 *file;
} lite_db;

typedef struct lite_stmt {
    stg_stmt st;
    sqlite3_stmt *one;
} lite_stmt;

sqlite3 *stg_sqlite_of(const stg_db *db)
{
    return ((const lite_db *)db)->file;
}

static sqlite3_stmt *statement_of(const stg_stmt *st)
{
    return ((const lite_stmt *)st)->one;
}

/* -- connections ----------------------------------------------------------- */

static void close_file(stg_db *db)
{
    sqlite3_close(stg_sqlite_of(db));
    free(db);
}

/* Whether the file system of the store has less than a page for others than
 * root. */
static bool sqlite_lacks_space(sqlite3 *file)
{
    const char *path = sqlite3_db_filename(file, "main");
    struct statvfs s;

    return path != NULL && statvfs(path, &s) == 0 &&
           (uint64_t)s.f_bavail * s.f_frsize < LEAST_SPACE;
}

/* SQLite leaves errno as the write that failed has set it. A commit allocates no
 * page, so that it cannot meet the limit of pages. */
int stg_sqlite_code(stg_db *db, int rc, bool is_commit)
{
    int error = errno;
    sqlite3 *file = stg_sqlite_of(db);

    if (rc == SQLITE_FULL)
        return error == ENOSPC || is_commit || sqlite_lacks_space(file)
                   ? stg_shortage_code(STG_SHORT_DISK)
                   : rc;
    if (rc != SQLITE_IOERR_WRITE && rc != SQLITE_IOERR_SHMSIZE &&
        rc != SQLITE_IOERR_TRUNCATE)
        return rc;
    if (error == EDQUOT)
        return stg_shortage_code(STG_SHORT_ACCOUNT);
    if (error == EFBIG)
        return stg_shortage_code(STG_SHORT_SIZE);
    return error == ENOSPC ? stg_shortage_code(STG_SHORT_DISK) : rc;
}

/* Runs a text, of which COMMIT is told apart. */
static int sqlite_run_text(stg_db *db, const char *text, bool is_commit)
{
    int rc;

    errno = 0;
    rc = sqlite3_exec(stg_sqlite_of(db), text, NULL, NULL, NULL);
    return rc == SQLITE_OK ? rc : stg_sqlite_code(db, rc, is_commit);
}

static int exec(stg_db *db, const char *text)
{
    return sqlite_run_text(db, text, false);
}

/* Each try waits for STG_SQL_BUSY_MS; is_over() is asked between two of
 * them. */
static int begin(stg_db *db, bool (*is_over)(void *ctx), void *ctx)
{
    int rc;

    do
        rc = exec(db, "BEGIN IMMEDIATE");
    while ((rc & 0xff) == SQLITE_BUSY && (is_over == NULL || !is_over(ctx)));
    return rc;
}

/* Extended codes have the primary one in their low byte. */
static const char *advice(int rc)
{
    switch (rc & 0xff) {
    case SQLITE_NOTADB:
        return "; it is no SQLite database, name another file";
    case SQLITE_CORRUPT:
        return "; it is damaged: put a backup in its place, or move it away "
               "with its -wal and begin anew";
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

static void put_words(stg_error *err, const char *path, const char *what,
                      stg_db *db, int rc)
{
    const char *words = sqlite3_errstr(rc);
    sqlite3 *file = db == NULL ? NULL : stg_sqlite_of(db);
    const char *lack = stg_shortage_say(stg_shortage_of(rc, false));

    if (lack != NULL) {
        (void)stg_hub_refuse(err, STG_IO, "%s: %s: %s", path, what, lack);
        return;
    }

    // The connection may speak of an earlier call; then the code is surer.
    if (file != NULL && sqlite3_extended_errcode(file) == rc)
        words = sqlite3_errmsg(file);
    (void)stg_hub_refuse(err, STG_IO, "%s: %s: %s (%d)%s", path, what, words,
                         rc, advice(rc));
}

/* The words are made before the rollback, which makes the file forget its
 * error. */
static int end(stg_db *db, int rc, const char *path, stg_error *err)
{
    if (rc == SQLITE_OK)
        rc = sqlite_run_text(db, "COMMIT", true);
    if (rc == SQLITE_OK)
        return rc;
    put_words(err, path, "cannot be written", db, rc);
    // Some errors have rolled it back already.
    if (sqlite3_get_autocommit(stg_sqlite_of(db)) == 0)
        exec(db, "ROLLBACK");
    return rc;
}

/* COMMIT of a file says by itself whether it was done. */
static bool has_committed(stg_db *db)
{
    (void)db;
    return false;
}

static int revive(stg_db *db, bool (*is_over)(void *ctx), void *ctx)
{
    (void)db;
    (void)is_over;
    (void)ctx;
    return SQLITE_OK;
}

/* A transaction that writes is alone. */
static int serialize(stg_db *db)
{
    (void)db;
    return SQLITE_OK;
}

/* -- statements ------------------------------------------------------------ */

static int prepare(stg_db *db, stg_stmt **st, const char *text, bool is_kept)
{
    lite_stmt *one = calloc(1, sizeof *one);
    int rc;

    if (one == NULL)
        return SQLITE_NOMEM;
    rc = sqlite3_prepare_v3(stg_sqlite_of(db), text, -1,
                            is_kept ? SQLITE_PREPARE_PERSISTENT : 0, &one->one,
                            NULL);
    if (rc != SQLITE_OK) {
        free(one);
        return rc;
    }
    *st = &one->st;
    return SQLITE_OK;
}

static void finalize(stg_stmt *st)
{
    sqlite3_finalize(statement_of(st));
    free(st);
}

/* SQLITE_STATIC: the bytes are lent until the statement ends, as sql.h says. A
 * blob that is empty needs an address, or it would be NULL. */
static int bind(stg_stmt *st, int at, const stg_sql_value *v)
{
    sqlite3_stmt *one = statement_of(st);

    if (v->is_null)
        return sqlite3_bind_null(one, at);
    if (v->kind == STG_SQL_NUMBER)
        return sqlite3_bind_int64(one, at, v->number);
    if (v->kind == STG_SQL_BLOB)
        return sqlite3_bind_blob64(one, at, v->span.size == 0 ? "" : v->span.at,
                                   v->span.size, SQLITE_STATIC);
    return sqlite3_bind_text64(one, at, v->span.at, v->span.size, SQLITE_STATIC,
                               SQLITE_UTF8);
}

static int step(stg_stmt *st)
{
    sqlite3_stmt *one = statement_of(st);
    int rc;

    errno = 0;
    rc = sqlite3_step(one);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        rc = stg_sqlite_code(st->db, rc, false);
    if (rc != SQLITE_ROW)
        sqlite3_reset(one);
    return rc;
}

/* Steps to the end also where rows come: RETURNING is not read by this call. */
static int run(stg_stmt *st)
{
    int rc;

    do
        rc = step(st);
    while (rc == SQLITE_ROW);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Of the connection's last write, which is this statement's only if nothing
 * else was run since. */
static uint64_t changes(stg_stmt *st, int *rc)
{
    *rc = SQLITE_OK;
    return (uint64_t)sqlite3_changes(stg_sqlite_of(st->db));
}

static int reset(stg_stmt *st)
{
    return sqlite3_reset(statement_of(st));
}

static stg_sql_type type(stg_stmt *st, int column)
{
    switch (sqlite3_column_type(statement_of(st), column)) {
    case SQLITE_NULL:
        return STG_SQL_IS_NULL;
    case SQLITE_INTEGER:
        return STG_SQL_IS_NUMBER;
    case SQLITE_BLOB:
        return STG_SQL_IS_BLOB;
    default:
        return STG_SQL_IS_TEXT;
    }
}

static sqlite3_int64 number(stg_stmt *st, int column)
{
    return sqlite3_column_int64(statement_of(st), column);
}

static const char *text(stg_stmt *st, int column)
{
    return (const char *)sqlite3_column_text(statement_of(st), column);
}

/* The size is asked for after the blob: SQLite promises it in that order
 * only. */
static stg_span span(stg_stmt *st, int column)
{
    sqlite3_stmt *one = statement_of(st);
    const char *at = sqlite3_column_blob(one, column);

    return (stg_span){at, (size_t)sqlite3_column_bytes(one, column)};
}

static const stg_sql_calls calls = {.close = close_file,
                                    .exec = exec,
                                    .prepare = prepare,
                                    .finalize = finalize,
                                    .bind = bind,
                                    .run = run,
                                    .changes = changes,
                                    .step = step,
                                    .reset = reset,
                                    .type = type,
                                    .number = number,
                                    .text = text,
                                    .span = span,
                                    .begin = begin,
                                    .end = end,
                                    .has_committed = has_committed,
                                    .revive = revive,
                                    .serialize = serialize,
                                    .words = put_words};

/* -- opening --------------------------------------------------------------- */

/* *db is set also where the file could not be opened, for its words; the caller
 * closes it. */
int stg_sqlite_open(stg_db **db, const char *path, int flags)
{
    lite_db *made = calloc(1, sizeof *made);

    *db = NULL;
    if (made == NULL)
        return SQLITE_NOMEM;
    made->db.calls = &calls;
    stg_list_init(&made->db.statements);
    *db = &made->db;
    return sqlite3_open_v2(path, &made->file, flags, NULL);
}

/* NOMUTEX: the connection belongs to one thread at a time. */
static int open_file(stg_db **db, const char *path, int flags)
{
    int rc = stg_sqlite_open(db, path, flags | SQLITE_OPEN_NOMUTEX);

    if (rc != SQLITE_OK)
        return rc;
    sqlite3_extended_result_codes(stg_sqlite_of(*db), 1);
    return sqlite3_busy_timeout(stg_sqlite_of(*db), STG_SQL_BUSY_MS);
}

int stg_sql_open_writer(stg_db **db, const char *path)
{
    return open_file(db, path, SQLITE_OPEN_READWRITE);
}

/* Whether a file has a WAL with something in it, or may have. */
static bool sqlite_has_log(const char *path)
{
    char name[4096];
    struct stat s;

    if (snprintf(name, sizeof name, "%s-wal", path) >= (int)sizeof name)
        return true;
    return stat(name, &s) == 0 ? s.st_size > 0 : errno != ENOENT;
}

/* An URI of SQLite: the signs that mean something there are escaped. */
static int sqlite_open_immutable(stg_db **db, const char *path)
{
    char uri[3 * 4096 + 32], *to = uri + sprintf(uri, "file:");

    if (strlen(path) > 4096)
        return stg_sqlite_open(db, path, SQLITE_OPEN_READONLY);
    for (; *path != '\0'; path++)
        to += strchr("%?#", *path) == NULL
                  ? sprintf(to, "%c", *path)
                  : sprintf(to, "%%%02x", (unsigned)*path);
    sprintf(to, "?immutable=1");
    return open_file(db, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
}

int stg_sql_open_still(stg_db **db, const char *path)
{
    char *real = realpath(path, NULL);
    int rc = real == NULL || sqlite_has_log(real)
                 ? open_file(db, path, SQLITE_OPEN_READONLY)
                 : sqlite_open_immutable(db, real);

    free(real);
    return rc;
}

/* Whether the folder of a file is on a file system that is mounted read-only:
 * there nobody writes, and SQLite can make no shared memory. */
static bool sqlite_is_read_only(const char *path)
{
    struct statvfs s;

    return statvfs(path, &s) == 0 && (s.f_flag & ST_RDONLY) != 0;
}

/* The last pragma reads, so that the connection has its file of the WAL from its
 * begin: later there may be none left, and that would be a broken store. */
int stg_sql_open_reader(stg_db **db, const char *path)
{
    int rc = sqlite_is_read_only(path)
                 ? stg_sql_open_still(db, path)
                 : open_file(db, path, SQLITE_OPEN_READONLY);

    return rc != SQLITE_OK ? rc
                           : exec(*db,
                                  "PRAGMA trusted_schema = OFF;"
                                  "PRAGMA temp_store = MEMORY;"
                                  "PRAGMA schema_version;");
}
