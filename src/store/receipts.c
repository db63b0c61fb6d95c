/* The table of receipts: written by the writer's thread, a batch of the hub's in a
 * transaction; trimmed between its commits; read with the status of a message. */
#include "store/receipts.h"

#include <stdlib.h>

#include "store/internal.h"

enum {
    PIECE_ROWS = 4096,     /* of a transaction that deletes */
    MESSAGE_ROWS = 200000, /* that are read of one message */
};

/* -- the table ------------------------------------------------------------- */

int stg_receipt_table_prepare(stg_receipt_table *t, stg_db *db,
                              const stg_store_options *o, bool is_shared)
{
    uint64_t quota = o->receipts.quota, rows = 0;
    int rc;

    t->db = db;
    t->keep = o->receipts.keep;
    if (!is_shared)
        quota = stg_ns_min(quota, o->quota / 8);
    t->rows_max = quota / STG_RECEIPT_COST;
    rc = stg_sql_prepare_many(
        db, &t->add,
        "INSERT INTO receipts (partition, position, lane, number, at, took,"
        " fault, code_kind, code) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9",
        "FROM", "");
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare(
            db, &t->trim,
            "DELETE FROM receipts WHERE id <= (SELECT max(id) FROM"
            " (SELECT id, at FROM receipts ORDER BY id LIMIT ?) AS oldest"
            " WHERE at < ? OR id <= (SELECT max(id) FROM receipts) - ?)");
    if (rc == SQLITE_OK)
        rc = stg_sql_ask(db,
                         "SELECT count(*) FROM"
                         " (SELECT 1 FROM receipts LIMIT 1) AS one",
                         &rows);
    // Those of other hubs stay where this one wants none.
    t->tend_at = rows == 0 || (is_shared && t->keep == 0) ? UINT64_MAX : 0;
    return rc;
}

/* When the oldest of all came; 0: there are none. */
static int read_oldest(stg_db *db, stg_ns *at)
{
    uint64_t ms = 0;
    int rc =
        stg_sql_ask(db, "SELECT at FROM receipts ORDER BY id LIMIT 1", &ms);

    *at = ms * STG_MS;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Where none is to be kept, those of other settings go, too. */
int stg_receipt_table_trim(stg_receipt_table *t, stg_ns wall, stg_ns *wait)
{
    stg_ns before = t->keep == 0 ? STG_NEVER : stg_ns_sub(wall, t->keep);
    stg_ns oldest = 0;
    int rc = stg_sql_run(t->trim, "uuu", (uint64_t)PIECE_ROWS, before / STG_MS,
                         t->rows_max);

    *wait = 0;
    if (rc != SQLITE_OK || stg_sql_changes(t->trim, &rc) == PIECE_ROWS)
        return rc;
    rc = read_oldest(t->db, &oldest);
    *wait = oldest == 0
                ? STG_NEVER
                : stg_ns_max(stg_ns_sub(stg_ns_add(oldest, t->keep), wall),
                             STG_RECEIPT_PAUSE);
    return rc;
}

/* -- writing --------------------------------------------------------------- */

typedef struct storing {
    stg_store_request request;
    stg_receipt *rows; /* its own */
    size_t count;
    stg_receipts_fn *done;
    void *ctx;
} storing;

static storing *storing_of(stg_store_request *e)
{
    return STG_HOLDER(&e->link, storing, request.link);
}

/* Times are kept in ms and us, which take less room. */
static int add(stg_stmt *st, const stg_receipt *r)
{
    return stg_sql_run(st, "uuuuuuuuu", (uint64_t)r->partition, r->position,
                       (uint64_t)r->lane, r->number, r->at / STG_MS,
                       r->took / STG_US, (uint64_t)r->fault,
                       (uint64_t)r->code_kind, (uint64_t)r->code);
}

static int write_receipts(stg_store_request *e, stg_store_writer *w)
{
    const storing *b = storing_of(e);
    int rc = SQLITE_OK;

    for (size_t i = 0; i < b->count && rc == SQLITE_OK; i++)
        rc = add(w->receipts.add, &b->rows[i]);
    w->receipts.tend_at =
        stg_ns_min(w->receipts.tend_at, uv_hrtime() + STG_RECEIPT_PAUSE);
    return rc;
}

static void tell_stored(stg_store_request *e)
{
    const storing *b = storing_of(e);

    b->done(b->ctx, b->count, !e->is_full);
}

static void free_storing(stg_store_request *e)
{
    storing *b = storing_of(e);

    free(b->rows);
    free(b);
}

void stg_store_write_receipts(stg_store *s, stg_receipt *rows, size_t count,
                              stg_receipts_fn *done, void *ctx)
{
    storing *b = stg_store_new_request(s, sizeof *b);

    if (b == NULL) {
        free(rows);
        return;
    }
    *b = (storing){.request = {.write = write_receipts,
                               .tell = tell_stored,
                               .free = free_storing},
                   .rows = rows,
                   .count = count,
                   .done = done,
                   .ctx = ctx};
    stg_store_request_send(s, &b->request);
}

/* -- reading --------------------------------------------------------------- */

static stg_receipt receipt_of(stg_stmt *row)
{
    return (stg_receipt){.lane = (uint32_t)stg_sql_column(row, 0),
                         .number = stg_sql_column(row, 1),
                         .at = stg_sql_column(row, 2) * STG_MS,
                         .took = stg_sql_column(row, 3) * STG_US,
                         .fault = (stg_fault)stg_sql_column(row, 4),
                         .code_kind = (stg_code_kind)stg_sql_column(row, 5),
                         .code = (uint32_t)stg_sql_column(row, 6)};
}

int stg_receipts_read(stg_db *db, uint32_t partition, uint64_t position,
                      stg_receipt_fn *add_one, void *ctx, stg_ns *since)
{
    stg_stmt *st;
    int rc = stg_sql_prepare_once(
        db, &st,
        "SELECT lane, number, at, took, fault, code_kind, code FROM receipts"
        " WHERE partition = ? AND position = ? ORDER BY lane, id LIMIT ?");

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "uuu", (uint64_t)partition, position,
                          (uint64_t)MESSAGE_ROWS);
    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        stg_receipt r = receipt_of(st);

        rc = add_one(ctx, &r);
    }
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? read_oldest(db, since) : rc;
}
