/* Rows that are gathered: many runs of one statement become one command.
 *
 * Values are kept column by column, each column as an array in the server's
 * binary form; the command unnests them to a table of rows.
 *
 * One statement gathers at a time. Whoever sends anything else calls
 * stg_pg_rows_flush() first, for the order of commands is that of their calls.
 * Trap: rows of one command must differ in their keys (sql.h), for ON CONFLICT
 * DO UPDATE cannot change a row twice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/postgres/link.h"

enum {
    ROWS_MAX = 1024,
    BYTES_MAX = 1 << 20, /* and about so many bytes */
    HEAD = 20,           /* of an array */
};

/* An array of one dimension as the server receives it: HEAD, then each value
 * behind its size, all in 32 bits with the highest byte first. array_recv() of
 * its sources. */
typedef struct column {
    char *bytes;
    size_t size, room;
    bool has_null;
} column;

struct stg_pg_rows {
    const char *head, *joint, *tail;
    size_t count, bytes;
    column columns[STG_PG_PARAMS];
};

stg_pg_rows *stg_pg_rows_new(const char *head, const char *joint,
                             const char *tail)
{
    stg_pg_rows *r = calloc(1, sizeof *r);

    if (r != NULL)
        *r = (stg_pg_rows){.head = head, .joint = joint, .tail = tail};
    return r;
}

static void clear(stg_pg_rows *r)
{
    // Memory that one large message has taken is not kept for all time.
    for (int i = 0; i < STG_PG_PARAMS; i++) {
        column *c = &r->columns[i];

        if (c->room > BYTES_MAX) {
            free(c->bytes);
            *c = (column){.bytes = NULL};
        }
        c->size = 0;
        c->has_null = false;
    }
    r->count = r->bytes = 0;
}

void stg_pg_rows_free(stg_pg_rows *r)
{
    for (int i = 0; r != NULL && i < STG_PG_PARAMS; i++)
        free(r->columns[i].bytes);
    free(r);
}

void stg_pg_rows_drop(stg_pg *pg)
{
    if (pg->gathering != NULL)
        clear(pg->gathering->rows);
    pg->gathering = NULL;
}

/* -- arrays ---------------------------------------------------------------- */

/* 32 bits, the highest byte first, as pq_getmsgint() of the server reads
 * them. */
static void put(char *to, uint32_t number)
{
    to[0] = (char)(number >> 24);
    to[1] = (char)(number >> 16);
    to[2] = (char)(number >> 8);
    to[3] = (char)number;
}

/* The head is written last, when the count is known; its room is kept free. */
static bool make_room(column *c, size_t more)
{
    size_t room = c->room == 0 ? 256 : c->room;
    char *bytes;

    if (c->size == 0)
        c->size = HEAD;
    while (room - c->size < more)
        room *= 2;
    if (room == c->room)
        return true;
    bytes = realloc(c->bytes, room);
    if (bytes == NULL)
        return false;
    c->bytes = bytes;
    c->room = room;
    return true;
}

/* A NULL is a size of -1, without bytes. */
static bool add(column *c, const char *value, int size)
{
    size_t bytes = value == NULL ? 0 : (size_t)size;

    if (!make_room(c, 4 + bytes))
        return false;
    c->has_null |= value == NULL;
    put(c->bytes + c->size, value == NULL ? UINT32_MAX : (uint32_t)size);
    if (bytes > 0)
        memcpy(c->bytes + c->size + 4, value, bytes);
    c->size += 4 + bytes;
    return true;
}

static void put_head(column *c, Oid type, size_t count)
{
    put(c->bytes, 1); // dimensions
    put(c->bytes + 4, c->has_null);
    put(c->bytes + 8, type);
    put(c->bytes + 12, (uint32_t)count);
    put(c->bytes + 16, 1); // the first one's number
}

/* -- the text -------------------------------------------------------------- */

static Oid array_of(Oid type)
{
    return type == STG_PG_INT8   ? STG_PG_INT8S
           : type == STG_PG_TEXT ? STG_PG_TEXTS
                                 : STG_PG_BYTEAS;
}

/* "?7" becomes "r.p7". */
static char *put_text(char *to, const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '?')
            to += sprintf(to, "r.p");
        else
            *to++ = *text;
    return to;
}

/* Of as many parameters as were bound. The arrays are walked in step: behind
 * FROM, as one call, the server would first make a table of each. NULL: no
 * memory. */
static char *write_text(const stg_pg_rows *r, int count)
{
    size_t size = 3 * (strlen(r->head) + strlen(r->tail)) + 32 * (size_t)count;
    char *text = malloc(size + 64), *to = text;

    if (text == NULL)
        return NULL;
    to = put_text(to, r->head);
    to += sprintf(to, " %s (SELECT ", r->joint);
    for (int i = 1; i <= count; i++)
        to += sprintf(to, "%sunnest($%d) AS p%d", i > 1 ? ", " : "", i, i);
    to += sprintf(to, ") AS r");
    to = put_text(to, r->tail);
    *to = '\0';
    return text;
}

/* -- sending --------------------------------------------------------------- */

/* Sends arrays under the statement's types for the time of the call: bind()
 * sets the element's types, which the next rows need again. */
static int send(stg_pg_stmt *one)
{
    stg_pg_rows *r = one->rows;
    const char *values[STG_PG_PARAMS];
    Oid types[STG_PG_PARAMS];
    int sizes[STG_PG_PARAMS], rc;

    if (one->text == NULL)
        one->text = write_text(r, one->count);
    if (one->text == NULL)
        return SQLITE_NOMEM;
    memcpy(types, one->types, sizeof types);
    for (int i = 0; i < one->count; i++) {
        column *c = &r->columns[i];

        put_head(c, types[i], r->count);
        values[i] = c->bytes;
        sizes[i] = (int)c->size;
        one->types[i] = array_of(types[i]);
    }
    rc = stg_pg_stmt_send(one, values, sizes, STG_PG_RUN);
    memcpy(one->types, types, sizeof types);
    return rc;
}

int stg_pg_rows_flush(stg_pg *pg)
{
    stg_pg_stmt *one = pg->gathering;
    int rc;

    if (one == NULL)
        return pg->rc;
    pg->gathering = NULL;
    rc = send(one);
    // The error stays, although nothing was sent: else the transaction would be
    // committed without these rows.
    if (rc != SQLITE_OK && pg->rc == SQLITE_OK)
        pg->rc = rc;
    clear(one->rows);
    return rc;
}

int stg_pg_rows_add(stg_pg_stmt *one)
{
    stg_pg *pg = (stg_pg *)one->st.db;
    stg_pg_rows *r = one->rows;
    int rc = pg->gathering == one ? pg->rc : stg_pg_rows_flush(pg);

    if (rc != SQLITE_OK)
        return rc;
    pg->gathering = one;
    for (int i = 0; i < one->count; i++) {
        if (!add(&r->columns[i], one->values[i], one->sizes[i])) {
            // Some columns have the row by now, and some have not: all are
            // dropped.
            stg_pg_rows_drop(pg);
            return pg->rc = SQLITE_NOMEM;
        }
        r->bytes += (size_t)one->sizes[i];
    }
    return ++r->count < ROWS_MAX && r->bytes < BYTES_MAX
               ? SQLITE_OK
               : stg_pg_rows_flush(pg);
}
