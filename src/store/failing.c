/* The column lanes.failing_since: written and read by the writer's thread. */
#include "store/store.h"

#include <stdlib.h>

#include "store/internal.h"

typedef struct noting {
    stg_store_request request;
    stg_lane_note *notes;
    size_t count;
    stg_lane_notes_fn *done;
    void *ctx;
} noting;

static noting *noting_of(stg_store_request *e)
{
    return STG_HOLDER(&e->link, noting, request.link);
}

typedef struct statements {
    stg_stmt *succeeded, *failed, *since;
} statements;

static int prepare(statements *st, stg_db *db)
{
    int rc =
        stg_sql_prepare_once(db, &st->succeeded,
                             "UPDATE lanes SET failing_since = NULL"
                             " WHERE number = ? AND failing_since IS NOT NULL");

    if (rc == SQLITE_OK)
        rc = stg_sql_prepare_once(
            db, &st->failed,
            "UPDATE lanes SET failing_since = ?2"
            " WHERE number = ?1 AND failing_since IS NULL");
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare_once(db, &st->since,
                                  "SELECT coalesce(failing_since, 0)"
                                  " FROM lanes WHERE number = ?");
    return rc;
}

static int write_note(const statements *st, stg_lane_note *n, stg_ns wall)
{
    uint64_t since = 0;
    int rc =
        n->has_succeeded
            ? stg_sql_run(st->succeeded, "u", (uint64_t)n->lane)
            : stg_sql_run(st->failed, "uu", (uint64_t)n->lane, wall / STG_MS);

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st->since, "u", (uint64_t)n->lane);
    if (rc == SQLITE_OK)
        rc = stg_sql_number(st->since, &since);
    n->failing_since = since * STG_MS;
    n->now = wall;
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int write_notes(stg_store_request *e, stg_store_writer *w)
{
    const noting *n = noting_of(e);
    statements st = {.succeeded = NULL};
    int rc = prepare(&st, w->db);

    for (size_t i = 0; i < n->count && rc == SQLITE_OK; i++)
        rc = write_note(&st, &n->notes[i], stg_sql_now(w->db));
    stg_sql_finalize(st.succeeded);
    stg_sql_finalize(st.failed);
    stg_sql_finalize(st.since);
    return rc;
}

static void tell_noted(stg_store_request *e)
{
    const noting *n = noting_of(e);

    if (!e->is_full)
        n->done(n->ctx, n->notes, n->count);
}

static void free_noting(stg_store_request *e)
{
    noting *n = noting_of(e);

    free(n->notes);
    free(n);
}

void stg_store_note_lanes(stg_store *s, stg_lane_note *notes, size_t count,
                          stg_lane_notes_fn *done, void *ctx)
{
    noting *n = stg_store_new_request(s, sizeof *n);

    if (n == NULL) {
        free(notes);
        return;
    }
    *n = (noting){.request = {.write = write_notes,
                              .tell = tell_noted,
                              .free = free_noting},
                  .notes = notes,
                  .count = count,
                  .done = done,
                  .ctx = ctx};
    stg_store_request_send(s, &n->request);
}
