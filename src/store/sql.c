/* Statements and their parameters, the same for both databases: the table of
 * calls does the rest (sqlite.c, postgres/stmt.c).
 *
 * A connection knows its statements, and finalizes them when it closes: so a
 * pointer to a statement is not to be used, or finalized, behind
 * stg_sql_close().
 *
 * Numbers are signed in both databases. 'u' cuts what is above INT64_MAX, so
 * STG_NEVER comes back as INT64_MAX; 'h' keeps all 64 bits, and must be read by
 * stg_sql_bits(), for stg_sql_column() reads a negative number as 0. */
#include "store/sql.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/wall.h"

/* -- connections ----------------------------------------------------------- */

void stg_sql_close(stg_db *db)
{
    stg_link *link;

    if (db == NULL)
        return;
    while ((link = stg_list_first(&db->statements)) != NULL)
        stg_sql_finalize(STG_HOLDER(link, stg_stmt, link));
    db->calls->close(db);
}

stg_ns stg_sql_now(const stg_db *db)
{
    return db->calls->now == NULL ? stg_wall_now() : db->calls->now(db);
}

bool stg_sql_is_shared(const stg_db *db)
{
    return db->calls->is_shared;
}

int stg_sql_exec(stg_db *db, const char *text)
{
    return db->calls->exec(db, text);
}

int stg_sql_begin(stg_db *db, bool (*is_over)(void *ctx), void *ctx)
{
    return db->calls->begin(db, is_over, ctx);
}

int stg_sql_end(stg_db *db, int rc, const char *path, stg_error *err)
{
    return db->calls->end(db, rc, path, err);
}

bool stg_sql_has_committed(stg_db *db)
{
    return db->calls->has_committed(db);
}

int stg_sql_revive(stg_db *db, bool (*is_over)(void *ctx), void *ctx)
{
    return db->calls->revive(db, is_over, ctx);
}

int stg_sql_serialize(stg_db *db)
{
    return db->calls->serialize(db);
}

bool stg_sql_is_full(int rc)
{
    return (rc & 0xff) == SQLITE_FULL;
}

void stg_sql_words(stg_error *err, const char *path, const char *what,
                   stg_db *db, int rc)
{
    db->calls->words(err, path, what, db, rc);
}

/* -- statements ------------------------------------------------------------ */

/* rc: of the call that made it. */
static int note(stg_db *db, stg_stmt *st, int rc)
{
    if (rc != SQLITE_OK)
        return rc;
    st->db = db;
    stg_list_push(&db->statements, &st->link);
    return SQLITE_OK;
}

static int prepare(stg_db *db, stg_stmt **st, const char *text, bool is_kept)
{
    int rc;

    *st = NULL;
    rc = db->calls->prepare(db, st, text, is_kept);
    return note(db, *st, rc);
}

int stg_sql_prepare(stg_db *db, stg_stmt **st, const char *text)
{
    return prepare(db, st, text, true);
}

int stg_sql_prepare_once(stg_db *db, stg_stmt **st, const char *text)
{
    return prepare(db, st, text, false);
}

/* A database that does not gather runs head and tail as one statement; `joint`
 * is for the table of rows, which there is not. */
int stg_sql_prepare_many(stg_db *db, stg_stmt **st, const char *head,
                         const char *joint, const char *tail)
{
    size_t size = strlen(head) + strlen(tail) + 1;
    char *text;
    int rc;

    *st = NULL;
    if (db->calls->prepare_many != NULL) {
        rc = db->calls->prepare_many(db, st, head, joint, tail);
        return note(db, *st, rc);
    }
    text = malloc(size);
    if (text == NULL)
        return SQLITE_NOMEM;
    snprintf(text, size, "%s%s", head, tail);
    rc = prepare(db, st, text, true);
    free(text);
    return rc;
}

int stg_sql_prepare_list(stg_db *db, stg_stmt **st, const char *head,
                         const char *numbers, const char *tail)
{
    size_t size = strlen(head) + strlen(numbers) + strlen(tail) + 1;
    char *text = malloc(size);
    int rc;

    *st = NULL;
    if (text == NULL)
        return SQLITE_NOMEM;
    snprintf(text, size, "%s%s%s", head, numbers, tail);
    rc = stg_sql_prepare_once(db, st, text);
    free(text);
    return rc;
}

/* Without numbers it is "NULL": `IN ()` is an error in PostgreSQL, and `IN
 * (NULL)` is true of no row. */
char *stg_sql_list(const uint32_t *numbers, size_t count)
{
    char *list = malloc(sizeof "NULL" + 11 * count), *to = list;

    if (list == NULL)
        return NULL;
    memcpy(list, "NULL", sizeof "NULL");
    for (size_t i = 0; i < count; i++)
        to += sprintf(to, "%s%" PRIu32, i > 0 ? "," : "", numbers[i]);
    return list;
}

int stg_sql_flush(stg_db *db)
{
    return db->calls->flush == NULL ? SQLITE_OK : db->calls->flush(db);
}

void stg_sql_finalize(stg_stmt *st)
{
    if (st == NULL)
        return;
    stg_list_remove(&st->link);
    st->db->calls->finalize(st);
}

/* -- parameters ------------------------------------------------------------ */

/* Cuts, and does not wrap: a time of STG_NEVER must stay behind all others. */
static stg_sql_value number_of(uint64_t number)
{
    return (stg_sql_value){
        .kind = STG_SQL_NUMBER,
        .number = number > INT64_MAX ? INT64_MAX : (sqlite3_int64)number};
}

/* A hash: its order means nothing, but each of its bits does. */
static stg_sql_value bits_of(uint64_t number)
{
    stg_sql_value value = {.kind = STG_SQL_NUMBER};

    memcpy(&value.number, &number, sizeof value.number);
    return value;
}

static stg_sql_value text_of(const char *text)
{
    return (stg_sql_value){.kind = STG_SQL_TEXT,
                           .is_null = text == NULL,
                           .span = {text, text == NULL ? 0 : strlen(text)}};
}

/* The parameter that a letter says; false: it says none. */
static bool read_value(stg_sql_value *value, char letter, va_list *args)
{
    switch (letter) {
    case 'u':
        *value = number_of(va_arg(*args, uint64_t));
        return true;
    case 'h':
        *value = bits_of(va_arg(*args, uint64_t));
        return true;
    case 'o':
        *value = number_of(va_arg(*args, uint64_t));
        value->is_null = value->number == 0;
        return true;
    case 'd':
        *value = (stg_sql_value){.kind = STG_SQL_NUMBER,
                                 .number = va_arg(*args, int)};
        return true;
    case 's':
        *value = text_of(va_arg(*args, const char *));
        return true;
    case 'j':
        *value = (stg_sql_value){.kind = STG_SQL_TEXT,
                                 .span = va_arg(*args, stg_span)};
        return true;
    case 't':
        *value = (stg_sql_value){.kind = STG_SQL_WIRE,
                                 .span = va_arg(*args, stg_span)};
        value->is_null = value->span.size == 0;
        return true;
    case 'b':
    case 'v':
    case 'n':
        *value = (stg_sql_value){.kind = STG_SQL_BLOB,
                                 .span = va_arg(*args, stg_span)};
        value->is_null = (letter == 'v' && value->span.size == 0) ||
                         (letter == 'n' && value->span.at == NULL);
        return true;
    default:
        return false;
    }
}

/* A letter that there is not is SQLITE_MISUSE: the compiler does not check
 * them. */
static int bind_all(stg_stmt *st, int at, const char *letters, va_list *args)
{
    stg_sql_value value;
    int rc = SQLITE_OK;

    for (; *letters != '\0' && rc == SQLITE_OK; at++, letters++)
        rc = read_value(&value, *letters, args)
                 ? st->db->calls->bind(st, at, &value)
                 : SQLITE_MISUSE;
    return rc;
}

int stg_sql_bind_from(stg_stmt *st, int first, const char *letters, ...)
{
    va_list args;
    int rc;

    va_start(args, letters);
    rc = bind_all(st, first, letters, &args);
    va_end(args);
    return rc;
}

int stg_sql_run(stg_stmt *st, const char *letters, ...)
{
    va_list args;
    int rc;

    va_start(args, letters);
    rc = bind_all(st, 1, letters, &args);
    va_end(args);
    return rc == SQLITE_OK ? st->db->calls->run(st) : rc;
}

uint64_t stg_sql_changes(stg_stmt *st, int *rc)
{
    return st->db->calls->changes(st, rc);
}

/* -- rows ------------------------------------------------------------------ */

int stg_sql_step(stg_stmt *st)
{
    return st->db->calls->step(st);
}

int stg_sql_reset(stg_stmt *st)
{
    return st == NULL ? SQLITE_OK : st->db->calls->reset(st);
}

/* Resets the statement when it had a row: in a file, a statement that is left
 * in its middle holds a read transaction open. */
int stg_sql_number(stg_stmt *st, uint64_t *number)
{
    int rc = stg_sql_step(st);

    if (rc != SQLITE_ROW)
        return rc;
    *number = stg_sql_column(st, 0);
    return stg_sql_reset(st);
}

int stg_sql_ask(stg_db *db, const char *question, uint64_t *number)
{
    stg_stmt *st;
    int rc = stg_sql_prepare_once(db, &st, question);

    if (rc == SQLITE_OK)
        rc = stg_sql_number(st, number);
    stg_sql_finalize(st);
    return rc;
}

/* A negative number is bits that 'h' has bound, or damage: 0 does less harm
 * than a number above INT64_MAX. */
uint64_t stg_sql_column(stg_stmt *st, int column)
{
    sqlite3_int64 number = st->db->calls->number(st, column);

    return number < 0 ? 0 : (uint64_t)number;
}

uint64_t stg_sql_bits(stg_stmt *st, int column)
{
    return (uint64_t)st->db->calls->number(st, column);
}

/* SQLite gives NULL for an empty blob: `at` is never NULL here, so NULL and
 * empty are told apart by stg_sql_is_null() alone. */
stg_span stg_sql_column_span(stg_stmt *st, int column)
{
    stg_span span = st->db->calls->span(st, column);

    return (stg_span){span.at == NULL ? "" : span.at, span.size};
}

const char *stg_sql_text(stg_stmt *st, int column)
{
    return st->db->calls->text(st, column);
}

bool stg_sql_is_null(stg_stmt *st, int column)
{
    return st->db->calls->type(st, column) == STG_SQL_IS_NULL;
}
