#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/dead/dead.h"
#include "cli/options.h"
#include "cli/say.h"
#include "cli/store_path.h"
#include "store/postgres/open.h"
#include "store/postgres/url.h"
#include "store/schema.h"
#include "store/sqlite.h"
#include "store/store.h"

enum { PAGE = 100 };

/* Nobody else has it open, and we may not make the files that sharing it takes:
 * then it does not change. */
static int open_unshared(stg_db **db, const char *path)
{
    static const char unshared[] = "?immutable=1";
    size_t room = 3 * strlen(path) + 32;
    char *uri = malloc(room), *to;
    int rc;

    if (uri == NULL)
        return SQLITE_NOMEM;
    to = uri + snprintf(uri, room, "file:");
    for (const char *at = path; *at != '\0'; at++)
        to += snprintf(to, 4, strchr("%?#", *at) != NULL ? "%%%02X" : "%c",
                       (unsigned char)*at);
    memcpy(to, unshared, sizeof unshared);
    stg_sql_close(*db);
    rc = stg_sqlite_open(db, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    free(uri);
    return rc;
}

static bool has_wal(const char *path)
{
    size_t size = strlen(path) + 5;
    char *name = malloc(size);
    bool has = true;

    if (name == NULL)
        return true;
    snprintf(name, size, "%s-wal", path);
    has = access(name, F_OK) == 0;
    free(name);
    return has;
}

static bool open_url(dead_rows *r)
{
    stg_error err;

    if (stg_pg_open_to_look(&r->db, r->o->store, &err) == STG_OK)
        return true;
    stg_options_complain("stagger dead", "%s", err.text);
    return false;
}

static int open_file(dead_rows *r)
{
    stg_schema_kind kind;
    uint64_t version;
    int rc = stg_sql_open_reader(&r->db, r->o->store);

    if (rc == SQLITE_OK)
        rc = stg_schema_look(r->db, &kind, &version);
    if ((rc & 0xff) == SQLITE_CANTOPEN && !has_wal(r->o->store))
        rc = open_unshared(&r->db, r->o->store);
    return rc;
}

static bool name_store(dead_rows *r)
{
    r->name = stg_store_is_url(r->o->store) ? stg_pg_url_name(r->o->store)
                                            : strdup(r->o->store);
    return r->name != NULL;
}

bool dead_open(dead_rows *r, const dead_options *o)
{
    stg_error err;
    int rc;

    *r = (dead_rows){.o = o, .code = STG_EXIT_USAGE};
    if (o->remote.hub != NULL)
        return dead_open_remote(r);
    if (!name_store(r)) {
        stg_options_complain("stagger dead", "there is no memory left");
        return false;
    }
    if (stg_store_is_url(o->store))
        return open_url(r);
    if (!stg_store_path_look("stagger dead", o->store))
        return false;
    rc = open_file(r);
    if (rc != SQLITE_OK) {
        dead_fail(r, rc);
        return false;
    }
    if (stg_schema_check(r->db, o->store, false, &err) == STG_OK)
        return true;
    stg_options_complain("stagger dead", "%s", err.text);
    return false;
}

void dead_close(dead_rows *r)
{
    stg_sql_close(r->db);
    free(r->name);
}

int dead_fail(const dead_rows *r, int rc)
{
    stg_error err;

    if (r->db != NULL)
        stg_sql_words(&err, r->name, "cannot be read", r->db, rc);
    else
        snprintf(err.text, sizeof err.text, "there is no memory left");
    stg_options_complain("stagger dead", "%s", err.text);
    return STG_EXIT_USAGE;
}

/* What is asked for, as conditions on ?1 to ?5: a NULL is no condition. A
 * category is a cause, too; since is of the newest message of a row. */
static const char where[] =
    " WHERE (?1 IS NULL OR target = ?1)"
    " AND (?2 IS NULL OR cause LIKE ?2 ESCAPE '\\'"
    " OR category LIKE ?2 ESCAPE '\\')"
    " AND (?3 IS NULL OR state = ?3)"
    " AND (?4 IS NULL OR " DEAD_NEWEST
    " >= ?4)"
    " AND (?5 IS NULL OR created_at < ?5)";

static const char *given(const char *text)
{
    return *text == '\0' ? NULL : text;
}

int dead_ask(dead_rows *r, stg_stmt **st, const char *select,
             const char *behind)
{
    char *text = sqlite3_mprintf("%s FROM failed_broadcast_logs%s%s", select,
                                 where, behind);
    int rc = SQLITE_NOMEM;

    if (text != NULL)
        rc = stg_sql_prepare(r->db, st, text);
    sqlite3_free(text);
    if (rc != SQLITE_OK)
        return rc;
    return stg_sql_bind(*st, "sssss", r->o->target, given(r->o->cause_like),
                        r->o->state, given(r->o->since), given(r->o->until));
}

/* A row as values of their own, for the statement is reset before it is
 * printed: they are put into a statement that only says them. */
static int keep(stg_stmt *says, stg_stmt *row)
{
    int rc = stg_sql_reset(says);

    for (int i = 0; i < STG_LETTER_COLUMNS && rc == SQLITE_OK; i++)
        rc = sqlite3_bind_value(
            stg_sqlite_statement(says), i + 1,
            sqlite3_column_value(stg_sqlite_statement(row), i));
    return rc;
}

static int read_page(dead_rows *r, stg_stmt *says[PAGE], size_t most,
                     size_t *count)
{
    int rc = stg_sql_bind_from(r->page, 6, "u", r->last);

    *count = 0;
    while (rc == SQLITE_OK && *count < most &&
           (rc = stg_sql_step(r->page)) == SQLITE_ROW) {
        r->last = stg_sql_column(r->page, STG_LETTER_ID);
        rc = keep(says[(*count)++], r->page);
    }
    stg_sql_reset(r->page);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* "SELECT ?, ?, ..." of as many values as a letter has. */
static int prepare_says(dead_rows *r, stg_stmt *says[PAGE])
{
    char text[16 + 3 * STG_LETTER_COLUMNS] = "SELECT ?";
    char *end = text + strlen(text);
    int rc = SQLITE_OK;

    for (int i = 1; i < STG_LETTER_COLUMNS; i++, end += 3)
        memcpy(end, ", ?", 4);
    for (size_t i = 0; i < PAGE && rc == SQLITE_OK; i++)
        rc = stg_sql_prepare(r->db, &says[i], text);
    return rc;
}

/* Of a server the rows of a page are here already: nobody waits for them. */
static int print_page(dead_rows *r, uint64_t most, dead_each *each, void *ctx,
                      size_t *count)
{
    int rc = stg_sql_bind_from(r->page, 6, "u", r->last);

    *count = 0;
    while (rc == SQLITE_OK && *count < most &&
           (rc = stg_sql_step(r->page)) == SQLITE_ROW) {
        r->last = stg_sql_column(r->page, STG_LETTER_ID);
        (*count)++;
        each(ctx, r->page);
        rc = SQLITE_OK;
    }
    stg_sql_reset(r->page);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int dead_read(dead_rows *r, dead_each *each, void *ctx)
{
    stg_stmt *says[PAGE];
    bool is_shared = stg_sql_is_shared(r->db);
    uint64_t limit = r->o->limit, left = limit == 0 ? UINT64_MAX : limit;
    size_t count = PAGE;
    int rc = dead_ask(r, &r->page, "SELECT " STG_LETTER_SELECT,
                      limit == 0 ? " AND id > ?6 ORDER BY id LIMIT 100"
                                 : " AND id < ?6 ORDER BY id DESC LIMIT 100");

    r->last = limit == 0 ? 0 : INT64_MAX;
    if (rc == SQLITE_OK && !is_shared)
        rc = prepare_says(r, says);
    while (rc == SQLITE_OK && count == PAGE && left > 0) {
        if (is_shared)
            rc = print_page(r, left, each, ctx, &count);
        else
            rc = read_page(r, says, left < PAGE ? (size_t)left : PAGE, &count);
        left -= count;
        for (size_t i = 0; i < count && rc == SQLITE_OK && !is_shared; i++) {
            if (stg_sql_step(says[i]) == SQLITE_ROW)
                each(ctx, says[i]);
            rc = stg_sql_reset(says[i]);
        }
    }
    return rc;
}

void dead_put_csv(stg_span text, bool is_last)
{
    bool is_quoted = false;

    for (size_t i = 0; i < text.size; i++)
        is_quoted = is_quoted || strchr("\",\r\n", text.at[i]) != NULL;
    if (is_quoted)
        putchar('"');
    for (size_t i = 0, size; i < text.size; i += size) {
        const char *quote = memchr(text.at + i, '"', text.size - i);

        size =
            quote == NULL ? text.size - i : (size_t)(quote - text.at) - i + 1;
        stg_say_bytes(stdout, text.at + i, size);
        if (quote != NULL)
            putchar('"');
    }
    if (is_quoted)
        putchar('"');
    fputs(is_last ? "\r\n" : ",", stdout);
}
