/* The table of targets that were added by calls: read at the start and by peers,
 * written by the writer's thread, a transaction a row. The version of the row is
 * compared in that transaction, so that of two hubs, or two people, who change
 * the same target at the same time one is refused. */
#include "store/target_rows.h"

#include <stdlib.h>

#include "store/internal.h"

/* -- reading --------------------------------------------------------------- */

static int add(stg_target_table *t, stg_stmt *row)
{
    if (t->count == t->room) {
        size_t room = t->room == 0 ? 64 : 2 * t->room;
        stg_target_row *rows = realloc(t->rows, room * sizeof *rows);

        if (rows == NULL)
            return SQLITE_NOMEM;
        t->rows = rows;
        t->room = room;
    }
    t->rows[t->count++] = (stg_target_row){
        .name = stg_arena_text(&t->texts, stg_sql_text(row, 0)),
        .settings = stg_arena_text(&t->texts, stg_sql_text(row, 1)),
        .version = stg_sql_column(row, 2)};
    return t->texts.is_short ? SQLITE_NOMEM : SQLITE_OK;
}

int stg_target_table_read(stg_target_table *t, stg_db *db)
{
    stg_stmt *st;
    int rc = stg_sql_prepare_once(db, &st,
                                  "SELECT name, settings, version FROM targets"
                                  " ORDER BY version");

    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW)
        rc = add(t, st);
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

void stg_target_table_free(stg_target_table *t)
{
    stg_arena_free(&t->texts);
    free(t->rows);
    *t = (stg_target_table){.count = 0};
}

/* Every write but a removal raises the newest version, and a removal alone
 * lowers the number: so a table with the same mark is the same. */
int stg_target_mark_read(stg_target_mark *m, stg_db *db)
{
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        db, &st, "SELECT count(*), coalesce(max(version), 0) FROM targets");

    if (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        *m = (stg_target_mark){stg_sql_column(st, 0), stg_sql_column(st, 1)};
        rc = SQLITE_OK;
    }
    stg_sql_finalize(st);
    return rc;
}

/* Blocks, by a connection of its own: for the start, before targets are
 * known. */
stg_status stg_store_target_rows(stg_store *s, stg_target_rows_fn *each,
                                 void *ctx, stg_error *err)
{
    stg_target_table t = {.count = 0};
    stg_db *db = NULL;
    int rc = stg_store_connect(&db, s->url, s->o.path);

    if (rc == SQLITE_OK)
        rc = stg_target_table_read(&t, db);
    if (rc == SQLITE_OK)
        each(ctx, t.rows, t.count);
    else if (db != NULL)
        stg_sql_words(err, s->o.path, "targets cannot be read", db, rc);
    stg_target_table_free(&t);
    stg_sql_close(db);
    return rc == SQLITE_OK ? STG_OK : STG_IO;
}

/* -- writing --------------------------------------------------------------- */

typedef struct writing {
    stg_store_request request;
    const char *name, *settings; /* its own; settings NULL: the row goes */
    uint64_t expected, version;
    bool keeps_version, differs;
    stg_target_written_fn *done;
    void *ctx;
} writing;

static writing *writing_of(stg_store_request *e)
{
    return STG_HOLDER(&e->link, writing, request.link);
}

/* 0: there is no such row. */
static int read_version(stg_db *db, const char *name, uint64_t *version)
{
    stg_stmt *st;
    int rc = stg_sql_prepare_once(db, &st,
                                  "SELECT version FROM targets WHERE name = ?");

    *version = 0;
    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "s", name);
    if (rc == SQLITE_OK)
        rc = stg_sql_number(st, version);
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Finds a version above that of every row. It is at least the time, so that a
 * name that is removed and comes back has another one than before. */
static int next_version(stg_db *db, uint64_t *version)
{
    uint64_t newest = 0;
    int rc = stg_sql_ask(db, "SELECT coalesce(max(version), 0) FROM targets",
                         &newest);

    *version = stg_ns_max(stg_sql_now(db), newest + 1);
    return rc;
}

static int write_row(stg_db *db, const writing *w)
{
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        db, &st,
        w->settings == NULL ? "DELETE FROM targets WHERE name = ?"
                            : "INSERT INTO targets (name, settings, version)"
                              " VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE"
                              " SET settings = excluded.settings,"
                              " version = excluded.version");

    if (rc == SQLITE_OK && w->settings == NULL)
        rc = stg_sql_run(st, "s", w->name);
    else if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "ssu", w->name, w->settings, w->version);
    stg_sql_finalize(st);
    return rc;
}

/* Runs again where the first transaction was rolled back. The trap: if its
 * commit was done and never heard of (has_committed() in postgres/stmt.c), the
 * second run finds the new version, and the caller hears DIFFERS. */
static int write_target(stg_store_request *e, stg_store_writer *writer)
{
    writing *w = writing_of(e);
    stg_db *db = writer->db;
    uint64_t found = 0;
    int rc = stg_sql_serialize(db);

    if (rc == SQLITE_OK)
        rc = read_version(db, w->name, &found);
    w->differs = found != w->expected;
    if (rc != SQLITE_OK || w->differs)
        return rc;
    if (w->keeps_version)
        w->version = found;
    else
        rc = next_version(db, &w->version);
    return rc == SQLITE_OK ? write_row(db, w) : rc;
}

static void tell_written(stg_store_request *e)
{
    const writing *w = writing_of(e);

    // What peer_sync has read meanwhile may be older.
    e->s->notes++;
    w->done(w->ctx,
            e->is_full   ? STG_TARGET_FULL
            : w->differs ? STG_TARGET_DIFFERS
                         : STG_TARGET_WRITTEN,
            w->version);
}

static void free_writing(stg_store_request *e)
{
    writing *w = writing_of(e);

    free((void *)(uintptr_t)w->name);
    free((void *)(uintptr_t)w->settings);
    free(w);
}

/* w: what is not the request's; its texts are copied. */
static void send_copy(stg_store *s, writing what)
{
    writing *w = stg_store_new_request(s, sizeof *w);
    bool has_settings = what.settings != NULL;

    if (w == NULL)
        return;
    *w = what;
    w->request = (stg_store_request){
        .write = write_target, .tell = tell_written, .free = free_writing};
    w->name = stg_store_copy(what.name);
    w->settings = has_settings ? stg_store_copy(what.settings) : NULL;
    if (w->name == NULL || (has_settings && w->settings == NULL)) {
        free_writing(&w->request);
        stg_store_lack_memory(s);
        return;
    }
    stg_store_request_send(s, &w->request);
}

void stg_store_write_target(stg_store *s, const char *name,
                            const char *settings, uint64_t expected,
                            stg_target_written_fn *done, void *ctx)
{
    send_copy(s, (writing){.name = name,
                           .settings = settings,
                           .expected = expected,
                           .done = done,
                           .ctx = ctx});
}

void stg_store_rewrite_target(stg_store *s, const char *name,
                              const char *settings, uint64_t version,
                              stg_target_written_fn *done, void *ctx)
{
    send_copy(s, (writing){.name = name,
                           .settings = settings,
                           .expected = version,
                           .keeps_version = true,
                           .done = done,
                           .ctx = ctx});
}
