/* Parked rows as they are read: one by its columns, and a lane's in order.
 *
 * Columns are read by number, in the order of STG_PARKED_COLUMNS (rows.h): a
 * new one goes to its end. Rows come in the order of stg_mark in flow (due,
 * position, partition, replay), so that flow can go on behind the last one it
 * has.
 *
 * What is read is gone with the next step, so each row of a fetch is copied
 * into one piece of memory. is_all is a promise that flow relies on: it is set
 * only when the statement came to its end. */
#include <stdlib.h>
#include <string.h>

#include "store/parcel.h"
#include "store/rows.h"

enum { FETCH_BYTES_MAX = 16 << 20 };

/* Text that ends with a zero, as SQLite keeps it. */
static const char *text_of(stg_stmt *st, int column)
{
    const char *text = stg_sql_text(st, column);

    return text == NULL ? "" : text;
}

/* NULL stays apart from what is empty. */
static stg_span span_of(stg_stmt *st, int column)
{
    return stg_sql_is_null(st, column) ? (stg_span){NULL, 0}
                                       : stg_sql_column_span(st, column);
}

/* A blob of another size reads as zeros. */
static void read_progress(stg_progress *p, stg_stmt *st)
{
    stg_span limited = stg_sql_column_span(st, 7);

    *p = (stg_progress){.attempts = (uint32_t)stg_sql_column(st, 5),
                        .last = stg_sql_column(st, 6)};
    if (limited.size == sizeof p->limited)
        memcpy(p->limited, limited.at, sizeof p->limited);
}

static void read_failure(stg_failure *f, stg_stmt *st)
{
    stg_span answer = stg_sql_column_span(st, 19);

    *f = (stg_failure){
        .outcome = {.fault = (stg_fault)stg_sql_column(st, 9),
                    .code_kind = (stg_code_kind)stg_sql_column(st, 10),
                    .code = (uint32_t)stg_sql_column(st, 11),
                    .permanent = stg_sql_column(st, 12) != 0,
                    .unsent = stg_sql_column(st, 13) != 0,
                    .delay = stg_sql_column(st, 14)},
        .why = (stg_why)stg_sql_column(st, 15),
        .first_attempt_at = stg_sql_column(st, 16),
        .last_attempt_at = stg_sql_column(st, 17),
        .detail = text_of(st, 18),
        .answer = answer.at,
        .answer_size = answer.size};
}

/* Columns in the order of STG_PARKED_COLUMNS. */
void stg_parked_read(stg_parked *p, stg_stmt *st)
{
    *p = (stg_parked){.partition = (uint32_t)stg_sql_column(st, 0),
                      .position = stg_sql_column(st, 1),
                      .replay = (uint32_t)stg_sql_column(st, 2),
                      .due_at = stg_sql_column(st, 3),
                      .wait = stg_sql_column(st, 4),
                      .has_failure = stg_sql_column(st, 8) != 0,
                      .attempts_before = stg_sql_column(st, 25),
                      .began_at = stg_sql_column(st, 26),
                      .created_at = stg_sql_column(st, 27),
                      .key_hash = stg_sql_bits(st, 20),
                      .parcel = {.content_type = stg_sql_column_span(st, 21),
                                 .headers = stg_sql_column_span(st, 22),
                                 .key = stg_sql_column_span(st, 23),
                                 .body = stg_sql_column_span(st, 24),
                                 .source_key = span_of(st, 28),
                                 .source_headers = span_of(st, 29)}};
    read_progress(&p->progress, st);
    read_failure(&p->failure, st);
}

/* -- a lane's -------------------------------------------------------------- */

/* The memory that one row points to: its parcel, its detail, its answer. */
struct stg_fetched_piece {
    struct stg_fetched_piece *next;
    unsigned char bytes[];
};

/* Each kind has an index of its own, and so a statement of its own. All rows of
 * an answer of PostgreSQL's come at once, so there the statement has a limit;
 * and it names the partitions that are claimed, for rows of other hubs are in
 * the same table. */
int stg_rows_prepare_fetch(stg_db *db, bool is_replay, stg_stmt **st)
{
#define FETCH(which, claimed, limit)                                        \
    "SELECT " STG_PARKED_COLUMNS " FROM parked WHERE lane = ?1 AND " which  \
    " AND (due_at, position, partition, replay) > (?2, ?3, ?4, ?5)" claimed \
    " ORDER BY due_at, position, partition, replay" limit
#define OF_FILE(which) FETCH(which, "", "")
#define OF_SHARED(which) \
    FETCH(which, " AND partition = ANY (CAST(?6 AS INTEGER[]))", " LIMIT ?7")

    if (stg_sql_is_shared(db))
        return stg_sql_prepare(db, st,
                               is_replay ? OF_SHARED("replay > 0")
                                         : OF_SHARED("replay = 0"));
    return stg_sql_prepare(
        db, st, is_replay ? OF_FILE("replay > 0") : OF_FILE("replay = 0"));
}

static void copy_row(const stg_parked *p, size_t parcel_size,
                     unsigned char *bytes, stg_parked_row *row)
{
    size_t detail_size = strlen(p->failure.detail) + 1;
    stg_times times = stg_times_find(p->parcel.headers);

    // Somebody who sends it again sends it now.
    if (times.not_before == STG_NEVER)
        times.not_before = 0;
    *row = (stg_parked_row){.partition = p->partition,
                            .replay = p->replay,
                            .record = {.position = p->position,
                                       .key = p->key_hash,
                                       .bytes = bytes,
                                       .size = parcel_size,
                                       .created_at = p->created_at,
                                       .not_before = times.not_before,
                                       .expires_at = times.expires_at},
                            .attempts_before = p->attempts_before,
                            .began_at = p->began_at,
                            .progress = p->progress,
                            .failure = p->failure,
                            .has_failure = p->has_failure,
                            .wait = p->wait,
                            .due_at = p->due_at};
    stg_parcel_pack(&p->parcel, bytes);
    row->failure.detail =
        memcpy(bytes + parcel_size, p->failure.detail, detail_size);
    row->failure.answer = memcpy(bytes + parcel_size + detail_size,
                                 p->failure.answer, p->failure.answer_size);
}

static bool add(stg_fetched *f, const stg_parked *p, size_t parcel_size)
{
    size_t size =
        parcel_size + strlen(p->failure.detail) + 1 + p->failure.answer_size;
    struct stg_fetched_piece *piece = malloc(sizeof *piece + size);

    if (piece == NULL)
        return false;
    piece->next = f->pieces;
    f->pieces = piece;
    copy_row(p, parcel_size, piece->bytes, &f->rows[f->count++]);
    return true;
}

/* Takes rows_max rows, and the first one whatever its size. Bytes are those of
 * the parcels; details and answers are not counted. */
static int fetch_all(stg_stmt *st, uint32_t rows_max, stg_fetched *f)
{
    size_t bytes = 0;
    int rc;

    while ((rc = stg_sql_step(st)) == SQLITE_ROW) {
        stg_parked p;
        size_t size;

        if (f->count == rows_max)
            return SQLITE_OK;
        stg_parked_read(&p, st);
        size = stg_parcel_size(&p.parcel);
        bytes += size;
        if (f->count > 0 && bytes > FETCH_BYTES_MAX)
            return SQLITE_OK;
        if (!add(f, &p, size))
            return SQLITE_NOMEM;
    }
    f->is_all = rc == SQLITE_DONE;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* PostgreSQL's limit is one more than rows_max: the row that is not taken shows
 * that these are not all. */
int stg_rows_fetch(stg_stmt *st, uint32_t lane, const stg_mark *after,
                   uint32_t rows_max, const char *claimed, stg_fetched *f)
{
    int rc = stg_sql_bind(st, "uuuuu", (uint64_t)lane, after->due_at,
                          after->position, (uint64_t)after->partition,
                          (uint64_t)after->replay);

    if (rc == SQLITE_OK && claimed != NULL)
        rc = stg_sql_bind_from(st, 6, "su", claimed, (uint64_t)rows_max + 1);
    stg_fetched_free(f);
    *f = (stg_fetched){.count = 0};
    if (f->rows == NULL)
        f->rows = calloc((size_t)rows_max + 1, sizeof *f->rows);
    if (f->rows == NULL)
        return SQLITE_NOMEM;
    if (rc == SQLITE_OK)
        rc = fetch_all(st, rows_max, f);
    stg_sql_reset(st);
    return rc;
}

void stg_fetched_free(stg_fetched *f)
{
    while (f->pieces != NULL) {
        struct stg_fetched_piece *next = f->pieces->next;

        free(f->pieces);
        f->pieces = next;
    }
    free(f->rows);
}
