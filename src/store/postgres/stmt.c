/* PostgreSQL behind the calls of sql.h.
 *
 * Parameters and results go in binary, so that sizes count and not a zero. A
 * command that gives no rows is only sent: its error is that of a later call,
 * at the latest of end(). Within a transaction the first error stays (pg->rc);
 * outside of one it is told once and forgotten.
 *
 * The trap: a column of a type that type() does not name reads as text. sum()
 * of BIGINT is NUMERIC, whose bytes are no text: cast what is read. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/refuse.h"
#include "base/visible.h"
#include "store/postgres/link.h"

enum {
    UNKNOWN_TRIES = 100, /* a transaction that is still in progress */
    UNKNOWN_REST = 100,  /* ms between them */
};

static stg_pg *pg_of(const stg_db *db)
{
    return (stg_pg *)db;
}

static stg_pg_stmt *of(const stg_stmt *st)
{
    return (stg_pg_stmt *)st;
}

/* Returns rc. An error outside of a transaction is told by this one call;
 * within one it stays until end(), or half of it would be committed. */
static int told(stg_pg *pg, int rc)
{
    if (!pg->is_begun)
        pg->rc = SQLITE_OK;
    return rc;
}

/* -- texts ----------------------------------------------------------------- */

/* "?" and "?3" become "$1" and "$3"; CROSS, with which SQLite is made to begin
 * with the first table, goes. Twice the size is enough: "?" becomes three
 * characters at most (STG_PG_PARAMS), with a comma or more between two. Texts
 * of statements have no "?" in quotes. NULL: no memory. */
static char *translate(const char *text)
{
    static const char cross[] = "CROSS JOIN ";
    char *same = malloc(2 * strlen(text) + 1), *to = same;
    int next = 1;

    if (same == NULL)
        return NULL;
    while (*text != '\0') {
        if (*text == '?' && text[1] >= '0' && text[1] <= '9') {
            *to++ = '$';
            text++;
        } else if (*text == '?') {
            to += sprintf(to, "$%d", next++);
            text++;
        } else if (strncmp(text, cross, sizeof cross - 1) == 0) {
            text += sizeof cross - sizeof "JOIN ";
        } else {
            *to++ = *text++;
        }
    }
    *to = '\0';
    return same;
}

/* Text that the server takes: each byte that is not of valid UTF-8, and each
 * zero, becomes a question mark. NULL: it is fine as it is, or no memory. */
static char *clean(stg_span text)
{
    char *same = NULL;

    for (size_t i = 0, length; i < text.size; i += length) {
        length = stg_utf8_length(text.at + i, text.size - i);
        if (length > 0 && text.at[i] != '\0')
            continue;
        length = 1;
        if (same == NULL) {
            same = malloc(text.size + 1);
            if (same == NULL)
                return NULL;
            memcpy(same, text.at, text.size);
            same[text.size] = '\0';
        }
        same[i] = '?';
    }
    return same;
}

/* -- statements ------------------------------------------------------------ */

static void name_it(stg_db *db, stg_pg_stmt *one)
{
    snprintf(one->name, sizeof one->name, "s%" PRIu64, ++pg_of(db)->statements);
}

static int prepare(stg_db *db, stg_stmt **st, const char *text, bool is_kept)
{
    stg_pg_stmt *one = calloc(1, sizeof *one);

    if (one == NULL)
        return SQLITE_NOMEM;
    one->text = translate(text);
    if (one->text == NULL) {
        free(one);
        return SQLITE_NOMEM;
    }
    // Without a name it lives until the next one without: it is prepared each
    // time that it is sent.
    if (is_kept)
        name_it(db, one);
    *st = &one->st;
    return SQLITE_OK;
}

/* The text is made when the first rows are sent: see rows.c. */
static int prepare_many(stg_db *db, stg_stmt **st, const char *head,
                        const char *joint, const char *tail)
{
    stg_pg_stmt *one = calloc(1, sizeof *one);

    if (one == NULL)
        return SQLITE_NOMEM;
    one->rows = stg_pg_rows_new(head, joint, tail);
    if (one->rows == NULL) {
        free(one);
        return SQLITE_NOMEM;
    }
    name_it(db, one);
    *st = &one->st;
    return SQLITE_OK;
}

static int reset(stg_stmt *st)
{
    stg_pg_stmt *one = of(st);

    PQclear(one->result);
    one->result = NULL;
    one->row = 0;
    return SQLITE_OK;
}

/* Its results may still be on the way: they are read, and dropped. Rows that
 * were gathered and not sent are lost. */
static void finalize(stg_stmt *st)
{
    stg_pg_stmt *one = of(st);

    stg_pg_forget(pg_of(st->db), one);
    if (pg_of(st->db)->gathering == one)
        stg_pg_rows_drop(pg_of(st->db));
    reset(st);
    for (int i = 0; i < STG_PG_PARAMS; i++)
        free(one->clean[i]);
    stg_pg_rows_free(one->rows);
    free(one->text);
    free(one);
}

static void bind_text(stg_pg_stmt *one, int i, stg_span text)
{
    one->clean[i] = clean(text);
    one->types[i] = STG_PG_TEXT;
    one->formats[i] = 1; // its size counts, not a zero behind it
    one->values[i] = one->clean[i] != NULL ? one->clean[i] : text.at;
    one->sizes[i] = (int)text.size;
}

/* An empty value needs an address: NULL would be SQL's NULL. */
static void bind_bytes(stg_pg_stmt *one, int i, stg_span bytes)
{
    one->types[i] = STG_PG_BYTEA;
    one->formats[i] = 1;
    one->values[i] = bytes.size == 0 ? "" : bytes.at;
    one->sizes[i] = (int)bytes.size;
}

static void bind_number(stg_pg_stmt *one, int i, sqlite3_int64 number)
{
    for (int byte = 0; byte < 8; byte++)
        one->numbers[i][byte] = (char)((uint64_t)number >> (56 - 8 * byte));
    one->types[i] = STG_PG_INT8;
    one->formats[i] = 1;
    one->values[i] = one->numbers[i];
    one->sizes[i] = 8;
}

static int bind(stg_stmt *st, int at, const stg_sql_value *v)
{
    stg_pg_stmt *one = of(st);
    int i = at - 1;

    if (i < 0 || i >= STG_PG_PARAMS || v->span.size > INT32_MAX)
        return SQLITE_RANGE;
    if (one->count < at)
        one->count = at;
    free(one->clean[i]);
    one->clean[i] = NULL;
    if (v->kind == STG_SQL_NUMBER)
        bind_number(one, i, v->number);
    else if (v->kind == STG_SQL_TEXT)
        bind_text(one, i, v->is_null ? (stg_span){"", 0} : v->span);
    else
        bind_bytes(one, i, v->span);
    if (v->is_null)
        one->values[i] = NULL;
    return SQLITE_OK;
}

/* A connection's number tells whether the statement was prepared on it. */
int stg_pg_stmt_send(stg_pg_stmt *one, const char *const *values,
                     const int *sizes, stg_pg_kind kind)
{
    stg_pg *pg = pg_of(one->st.db);
    int rc = SQLITE_OK;

    if (pg->conn == NULL)
        pg->rc = STG_SQL_AWAY;
    if (pg->rc != SQLITE_OK)
        return pg->rc;
    if (one->prepared_on != pg->connection || one->name[0] == '\0') {
        one->prepared_on = pg->connection;
        rc = stg_pg_sent(pg,
                         PQsendPrepare(pg->conn, one->name, one->text,
                                       one->count, one->types),
                         STG_PG_PREPARE, one);
    }
    return rc != SQLITE_OK
               ? rc
               : stg_pg_sent(pg,
                             PQsendQueryPrepared(pg->conn, one->name,
                                                 one->count, values, sizes,
                                                 one->formats, 1),
                             kind, one);
}

static int send(stg_pg_stmt *one, stg_pg_kind kind)
{
    int rc = stg_pg_rows_flush(pg_of(one->st.db));

    return rc != SQLITE_OK
               ? rc
               : stg_pg_stmt_send(one, one->values, one->sizes, kind);
}

/* Counts a command outside of a transaction as the success that ends a row of
 * failed tries; within one only the COMMIT is. */
static void note_success(stg_pg *pg, int rc)
{
    if (rc == SQLITE_OK && !pg->is_begun)
        stg_pg_succeed(pg);
}

/* Within a transaction the result is not waited for here. */
static int run(stg_stmt *st)
{
    stg_pg *pg = pg_of(st->db);
    int rc;

    if (of(st)->rows != NULL && pg->is_begun)
        return stg_pg_rows_add(of(st));
    rc = of(st)->rows == NULL ? send(of(st), STG_PG_RUN)
                              : stg_pg_rows_add(of(st));
    if (rc == SQLITE_OK)
        rc = stg_pg_rows_flush(pg);
    if (rc == SQLITE_OK && !pg->is_begun) {
        rc = stg_pg_settle(pg);
        note_success(pg, rc);
    }
    return rc == SQLITE_OK ? rc : told(pg, rc);
}

static uint64_t changes(stg_stmt *st, int *rc)
{
    stg_pg *pg = pg_of(st->db);

    *rc = stg_pg_rows_flush(pg);
    if (*rc == SQLITE_OK)
        *rc = stg_pg_settle(pg);
    if (*rc != SQLITE_OK)
        told(pg, *rc);
    return *rc == SQLITE_OK ? of(st)->changed : 0;
}

/* All rows come into memory at once. */
static int fetch(stg_pg_stmt *one)
{
    stg_pg *pg = pg_of(one->st.db);
    int rc = send(one, STG_PG_QUERY);

    if (rc == SQLITE_OK)
        rc = stg_pg_settle(pg);
    note_success(pg, rc);
    if (rc != SQLITE_OK)
        return told(pg, rc);
    one->result = pg->result;
    pg->result = NULL;
    one->row = -1;
    return one->result == NULL ? SQLITE_ERROR : SQLITE_OK;
}

static int step(stg_stmt *st)
{
    stg_pg_stmt *one = of(st);
    int rc = one->result == NULL ? fetch(one) : SQLITE_OK;

    if (rc != SQLITE_OK)
        return rc;
    if (++one->row < PQntuples(one->result))
        return SQLITE_ROW;
    reset(st);
    return SQLITE_DONE;
}

/* -- columns --------------------------------------------------------------- */

static stg_sql_type type(stg_stmt *st, int column)
{
    const stg_pg_stmt *one = of(st);

    if (PQgetisnull(one->result, one->row, column))
        return STG_SQL_IS_NULL;
    switch (PQftype(one->result, column)) {
    case STG_PG_INT2:
    case STG_PG_INT4:
    case STG_PG_INT8:
        return STG_SQL_IS_NUMBER;
    case STG_PG_BYTEA:
        return STG_SQL_IS_BLOB;
    default:
        return STG_SQL_IS_TEXT;
    }
}

static sqlite3_int64 decode(const char *at, int size)
{
    uint64_t bits = size > 0 && (at[0] & 0x80) != 0 ? UINT64_MAX : 0;
    sqlite3_int64 number;

    for (int i = 0; i < size; i++)
        bits = bits << 8 | (unsigned char)at[i];
    memcpy(&number, &bits, sizeof number);
    return number;
}

static sqlite3_int64 number(stg_stmt *st, int column)
{
    const stg_pg_stmt *one = of(st);
    const char *at = PQgetvalue(one->result, one->row, column);

    switch (type(st, column)) {
    case STG_SQL_IS_NULL:
        return 0;
    case STG_SQL_IS_NUMBER:
        return decode(at, PQgetlength(one->result, one->row, column));
    default:
        return strtoll(at, NULL, 10);
    }
}

static const char *text(stg_stmt *st, int column)
{
    stg_pg_stmt *one = of(st);

    switch (type(st, column)) {
    case STG_SQL_IS_NULL:
        return NULL;
    case STG_SQL_IS_NUMBER:
        snprintf(one->shown, sizeof one->shown, "%lld",
                 (long long)number(st, column));
        return one->shown;
    default:
        return PQgetvalue(one->result, one->row, column);
    }
}

static stg_span span(stg_stmt *st, int column)
{
    const stg_pg_stmt *one = of(st);
    const char *at = text(st, column);

    if (at == NULL || at == one->shown)
        return (stg_span){at, at == NULL ? 0 : strlen(at)};
    return (stg_span){at, (size_t)PQgetlength(one->result, one->row, column)};
}

/* -- transactions ---------------------------------------------------------- */

static int exec(stg_db *db, const char *command)
{
    stg_pg *pg = pg_of(db);
    int rc = stg_pg_send(pg, command, STG_PG_RUN);

    if (rc == SQLITE_OK)
        rc = stg_pg_settle(pg);
    return rc == SQLITE_OK ? rc : told(pg, rc);
}

/* BEGIN is only sent: a connection that broke while nobody used it is found out
 * with the first result. */
static int begin(stg_db *db, bool (*is_over)(void *ctx), void *ctx)
{
    stg_pg *pg = pg_of(db);
    int rc = stg_pg_revive(pg, is_over, ctx);

    if (rc != SQLITE_OK)
        return rc;
    pg->rc = SQLITE_OK;
    pg->is_begun = true;
    pg->is_unknown = false;
    pg->xid[0] = '\0';
    return stg_pg_send(pg, "BEGIN", STG_PG_RUN);
}

/* The advice for an error that a restart does not mend. */
static const char *advice(int rc)
{
    switch (rc) {
    case SQLITE_PERM:
        return "; grant it to the hub's user, and start the hub again";
    case SQLITE_NOTFOUND:
        return "; somebody has changed the tables: restore them from a backup, "
               "or name another database";
    default:
        return "";
    }
}

static void put_words(stg_error *err, const char *path, const char *what,
                      stg_db *db, int rc)
{
    const stg_pg *pg = (const stg_pg *)db;

    (void)stg_hub_refuse(err, STG_IO, "%s: %s: %s%s", path, what,
                         pg != NULL && pg->words[0] != '\0' ? pg->words
                         : rc == STG_SQL_AWAY ? "the server is away"
                                              : sqlite3_errstr(rc),
                         advice(rc));
}

/* A connection that is gone has rolled back by itself. The server skips what
 * follows an error, so what is gathered is not sent any more. */
static void roll_back(stg_pg *pg)
{
    if (pg->conn == NULL)
        return;
    // The error of before must not keep ROLLBACK from being sent.
    stg_pg_rows_drop(pg);
    pg->rc = SQLITE_OK;
    if (stg_pg_send(pg, "ROLLBACK", STG_PG_RUN) == SQLITE_OK)
        stg_pg_settle(pg);
    pg->rc = SQLITE_OK;
}

/* STG_SQL_AWAY leaves open whether it was committed: see has_committed(). On a
 * connection that is there, COMMIT of a transaction that failed is answered by
 * ROLLBACK, which keep_result() in link.c reads as an error. */
static int end(stg_db *db, int rc, const char *path, stg_error *err)
{
    stg_pg *pg = pg_of(db);

    if (rc == SQLITE_OK)
        rc = stg_pg_rows_flush(pg);
    if (rc == SQLITE_OK)
        rc = stg_pg_send(pg, "COMMIT", STG_PG_COMMIT);
    if (rc == SQLITE_OK)
        rc = stg_pg_settle(pg);
    if (rc != SQLITE_OK) {
        put_words(err, path, "cannot be written", db, rc);
        roll_back(pg);
    } else {
        stg_pg_succeed(pg);
    }
    pg->is_begun = false;
    pg->rc = SQLITE_OK;
    pg->words[0] = '\0';
    return rc;
}

/* The transaction's own number, by which it is asked for later. */
static int note_xid(stg_pg *pg)
{
    PGresult *r = stg_pg_ask(pg, "SELECT pg_current_xact_id()::text", 0, NULL);

    if (r == NULL)
        return pg->rc;
    snprintf(pg->xid, sizeof pg->xid, "%s", PQgetvalue(r, 0, 0));
    PQclear(r);
    return SQLITE_OK;
}

/* NULL: the server does not know. */
static PGresult *ask_status(stg_pg *pg)
{
    const char *const values[] = {pg->xid};
    PGresult *r =
        stg_pg_ask(pg, "SELECT pg_xact_status($1::text::xid8)", 1, values);

    pg->rc = SQLITE_OK;
    if (r != NULL && !PQgetisnull(r, 0, 0))
        return r;
    PQclear(r);
    return NULL;
}

/* Asks what became of a transaction whose COMMIT was not answered. It may still
 * be in progress where the server has not found out yet that the connection is
 * gone: so it asks for 10 s, and blocks its thread. False also where the
 * connection breaks again: the caller then repeats what it did, so a request
 * must be able to find itself done. */
static bool has_committed(stg_db *db)
{
    stg_pg *pg = pg_of(db);
    bool has = false, is_open = true;

    if (!pg->is_unknown || pg->xid[0] == '\0')
        return false;
    for (int i = 0; i < UNKNOWN_TRIES && is_open; i++) {
        PGresult *r = ask_status(pg);
        const char *status = r == NULL ? "" : PQgetvalue(r, 0, 0);

        has = strcmp(status, "committed") == 0;
        is_open = strcmp(status, "in progress") == 0;
        PQclear(r);
        if (is_open)
            usleep(UNKNOWN_REST * 1000);
    }
    return has;
}

static int flush(stg_db *db)
{
    return stg_pg_rows_flush(pg_of(db));
}

static int revive(stg_db *db, bool (*is_over)(void *ctx), void *ctx)
{
    return stg_pg_revive(pg_of(db), is_over, ctx);
}

/* Takes the store's one advisory lock (the LOCK of schema.c) until the
 * transaction ends. Before that it notes the transaction's number, by which
 * has_committed() asks: so only transactions that call this can be asked
 * for. */
static int serialize(stg_db *db)
{
    stg_pg *pg = pg_of(db);
    int rc = note_xid(pg);

    if (rc != SQLITE_OK)
        return rc;
    return stg_pg_send(pg,
                       "SELECT pg_advisory_xact_lock(hashtext('stagger'),"
                       " hashtext(current_schema()))",
                       STG_PG_RUN);
}

static stg_ns now(const stg_db *db)
{
    return stg_pg_now((const stg_pg *)db);
}

static void close_link(stg_db *db)
{
    stg_pg_free(pg_of(db));
}

const stg_sql_calls stg_pg_calls = {.is_shared = true,
                                    .close = close_link,
                                    .now = now,
                                    .exec = exec,
                                    .prepare = prepare,
                                    .prepare_many = prepare_many,
                                    .flush = flush,
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
