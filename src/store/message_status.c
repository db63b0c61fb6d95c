/* The status of a message, lane by lane.
 *
 * A lane is asked in the order of what proves more: a parked row (it waits),
 * a dead letter of its own, a bulk row that covers its position, and only
 * then the cursor, which says delivered or waiting. A dead letter in the
 * state `replayed` proves nothing: it was parked again, and if that row is
 * gone, too, it was delivered.
 *
 * All reads are of one snapshot: see begin(). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/dead_letters.h"
#include "store/internal.h"
#include "store/lanes.h"
#include "store/letter.h"
#include "store/receipts.h"
#include "store/sql.h"

typedef struct question {
    stg_store_request request;
    const stg_store *s;
    bool is_parsed;
    stg_message_status m;
    stg_delivery_status *deliveries;
    size_t count, room;
    stg_receipt *receipts;
    size_t receipt_count, receipt_room;
    stg_arena texts;
    stg_message_status_fn *done;
    void *ctx;
} question;

/* -- a lane's rows --------------------------------------------------------- */

typedef struct asking {
    stg_stmt *lanes, *parked, *letter, *range;
} asking;

/* The newest replay counts: each replay of a letter makes rows with a number
 * of its own, one higher. */
static int prepare(asking *a, stg_db *db)
{
    const struct {
        stg_stmt **st;
        const char *text;
    } all[] = {
        {&a->lanes,
         "SELECT number, name, is_forgotten, coalesce(begins, 0)"
         " FROM lanes ORDER BY number"},
        {&a->parked,
         "SELECT replay, attempts_before + attempts, due_at, cause"
         " FROM parked WHERE lane = ? AND partition = ? AND position = ?"
         " ORDER BY replay DESC LIMIT 1"},
        {&a->letter,
         "SELECT id, state, cause, attempts, replay FROM failed_broadcast_logs"
         " WHERE lane = ? AND partition = ? AND position = ?"
         " AND last_position IS NULL ORDER BY replay DESC LIMIT 1"},
        {&a->range, "SELECT id, state, cause, attempts, " STG_LETTER_REPLAYS
                    " FROM failed_broadcast_logs"
                    " WHERE lane = ?1 AND partition = ?2 AND position <= ?3"
                    " AND last_position IS NOT NULL AND last_position >= ?3"
                    " ORDER BY position DESC LIMIT 1"},
    };
    int rc = SQLITE_OK;

    for (size_t i = 0; i < sizeof all / sizeof *all && rc == SQLITE_OK; i++)
        rc = stg_sql_prepare_once(db, all[i].st, all[i].text);
    return rc;
}

static void finish(asking *a)
{
    stg_sql_finalize(a->lanes);
    stg_sql_finalize(a->parked);
    stg_sql_finalize(a->letter);
    stg_sql_finalize(a->range);
}

/* SQLITE_ROW, SQLITE_DONE, or an error. */
static int ask(stg_stmt *st, const question *q, const stg_delivery_status *f)
{
    int rc = stg_sql_bind(st, "uuu", (uint64_t)f->lane,
                          (uint64_t)q->m.partition, q->m.position);

    return rc == SQLITE_OK ? stg_sql_step(st) : rc;
}

static void take_letter(question *q, stg_delivery_status *f, stg_stmt *st)
{
    f->kind = STG_DELIVERY_STATUS_LETTER;
    f->letter = stg_sql_column(st, 0);
    f->state = stg_arena_column(&q->texts, st, 1).at;
    f->cause = stg_arena_column(&q->texts, st, 2).at;
    f->attempts = stg_sql_column(st, 3);
    f->replay = (uint32_t)stg_sql_column(st, 4);
    stg_sql_reset(st);
}

static void take_parked(question *q, stg_delivery_status *f, stg_stmt *st)
{
    f->kind = STG_DELIVERY_STATUS_PARKED;
    f->replay = (uint32_t)stg_sql_column(st, 0);
    f->attempts = stg_sql_column(st, 1);
    f->due_at = stg_sql_column(st, 2);
    f->cause = stg_arena_column(&q->texts, st, 3).at;
    stg_sql_reset(st);
}

/* Finds the lane's rows. A parked row, if there is one, replaces what the
 * letter said: the letter was replayed, and waits. A message with a row of
 * its own is not asked for in bulk rows, for these pass over it. */
static int find_rows(asking *a, question *q, stg_delivery_status *f)
{
    int rc = ask(a->letter, q, f);

    if (rc == SQLITE_ROW)
        take_letter(q, f, a->letter);
    else if (rc == SQLITE_DONE && (rc = ask(a->range, q, f)) == SQLITE_ROW) {
        take_letter(q, f, a->range);
        f->is_range = true;
    }
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        return rc;
    rc = ask(a->parked, q, f);
    if (rc == SQLITE_ROW)
        take_parked(q, f, a->parked);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* -- cursors --------------------------------------------------------------- */

/* Lanes were added by their number (ORDER BY), so they can be searched. */
static stg_delivery_status *find_fate(question *q, uint32_t lane)
{
    size_t low = 0, high = q->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (q->deliveries[middle].lane < lane)
            low = middle + 1;
        else
            high = middle;
    }
    return low < q->count && q->deliveries[low].lane == lane
               ? &q->deliveries[low]
               : NULL;
}

/* A lane without a cursor in the partition is not called, and stays unknown. */
static void note_cursor(void *ctx, const stg_cursor *c)
{
    question *q = ctx;
    stg_delivery_status *f = find_fate(q, c->lane);
    bool is_settled =
        q->m.position < c->base ||
        stg_positions_have(c->settled, c->settled_count, q->m.position);

    // Until here it was not known, or came before the lane.
    if (f != NULL && f->kind == STG_DELIVERY_STATUS_UNKNOWN)
        f->kind = is_settled ? STG_DELIVERY_STATUS_DELIVERED
                             : STG_DELIVERY_STATUS_WAITING;
}

/* -- receipts --------------------------------------------------------------- */

static int add_receipt(void *ctx, const stg_receipt *r)
{
    question *q = ctx;

    if (q->receipt_count == q->receipt_room) {
        size_t room = q->receipt_room == 0 ? 16 : 2 * q->receipt_room;
        stg_receipt *receipts = realloc(q->receipts, room * sizeof *receipts);

        if (receipts == NULL)
            return SQLITE_NOMEM;
        q->receipts = receipts;
        q->receipt_room = room;
    }
    q->receipts[q->receipt_count++] = *r;
    return SQLITE_OK;
}

/* -- all of it ------------------------------------------------------------- */

static stg_delivery_status *add_fate(question *q)
{
    if (q->count == q->room) {
        size_t room = q->room == 0 ? 64 : 2 * q->room;
        stg_delivery_status *deliveries =
            realloc(q->deliveries, room * sizeof *deliveries);

        if (deliveries == NULL)
            return NULL;
        q->deliveries = deliveries;
        q->room = room;
    }
    return &q->deliveries[q->count++];
}

/* lanes.begins is a position of the queue, and says nothing about a topic:
 * so only there a message can be from before the lane. */
static int add_lane(asking *a, question *q)
{
    stg_delivery_status *f = add_fate(q);
    int rc;

    if (f == NULL)
        return SQLITE_NOMEM;
    *f = (stg_delivery_status){.lane = (uint32_t)stg_sql_column(a->lanes, 0),
                               .target =
                                   stg_arena_column(&q->texts, a->lanes, 1).at,
                               .is_forgotten = stg_sql_column(a->lanes, 2) != 0,
                               .kind = STG_DELIVERY_STATUS_UNKNOWN};
    rc = find_rows(a, q, f);
    if (f->kind == STG_DELIVERY_STATUS_LETTER &&
        strcmp(f->state, "replayed") == 0)
        f->kind = STG_DELIVERY_STATUS_UNKNOWN;
    if (f->kind == STG_DELIVERY_STATUS_UNKNOWN && q->m.partition == 0 &&
        q->m.position < stg_sql_column(a->lanes, 3))
        f->kind = STG_DELIVERY_STATUS_BEFORE;
    return rc;
}

static int read_lanes(question *q, stg_db *db)
{
    asking a = {.lanes = NULL};
    int rc = prepare(&a, db);

    while (rc == SQLITE_OK && (rc = stg_sql_step(a.lanes)) == SQLITE_ROW)
        rc = add_lane(&a, q);
    finish(&a);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The queue's message may be gone already (is_kept is false), while lanes
 * still have rows of it. */
static int read_message(question *q, stg_db *db)
{
    stg_stmt *st = NULL;
    int rc = stg_sql_prepare_once(
        db, &st,
        "SELECT created_at, length(body), key FROM messages WHERE position = ?");

    if (rc == SQLITE_OK)
        rc = stg_sql_bind(st, "u", q->m.position);
    if (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        q->m.is_kept = true;
        q->m.accepted_at = stg_sql_column(st, 0) * STG_MS;
        q->m.size = stg_sql_column(st, 1);
        q->m.key = stg_arena_column(&q->texts, st, 2).at;
        rc = SQLITE_DONE;
    }
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int look_all(question *q, stg_db *db)
{
    char number[16];
    uint64_t next = 0;
    int rc = stg_sql_ask(
        db, "SELECT value FROM meta WHERE name = 'next_position'", &next);

    // What a topic has at its front has position 0, and its end is not known.
    q->m.is_known =
        rc == SQLITE_OK &&
        (q->m.partition > 0 || (q->m.position > 0 && q->m.position < next));
    if (rc == SQLITE_OK && q->m.is_known && q->m.partition == 0)
        rc = read_message(q, db);
    if (rc == SQLITE_OK && q->m.is_known)
        rc = read_lanes(q, db);
    snprintf(number, sizeof number, "%" PRIu32, q->m.partition);
    if (rc == SQLITE_OK && q->m.is_known)
        rc = stg_cursors_read(db, number, false, note_cursor, q);
    if (rc == SQLITE_OK && q->m.is_known)
        rc = stg_receipts_read(db, q->m.partition, q->m.position, add_receipt,
                               q, &q->m.receipts_since);
    return rc == SQLITE_OK && q->texts.is_short ? SQLITE_NOMEM : rc;
}

/* One snapshot for all reads: a delivery that is parked between two of them
 * would have no row in the first and a cursor behind it in the second, which
 * reads as delivered. PostgreSQL has to be told, for its transactions are `read
 * committed` else (link.c). */
static int begin(stg_db *db)
{
    int rc = stg_sql_exec(db, "BEGIN");

    if (rc == SQLITE_OK && stg_sql_is_shared(db))
        rc =
            stg_sql_exec(db, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ");
    return rc;
}

/* The transaction only reads, so it is rolled back. Runs again from the
 * start when the server went away: the counts are set back for that. */
static int look(stg_store_request *e, stg_db *db)
{
    question *q = STG_HOLDER(&e->link, question, request.link);
    int rc;

    q->count = q->receipt_count = 0;
    if (!q->is_parsed)
        return SQLITE_OK;
    rc = begin(db);
    if (rc == SQLITE_OK)
        rc = look_all(q, db);
    stg_sql_exec(db, "ROLLBACK");
    return rc;
}

static void tell(stg_store_request *e)
{
    question *q = STG_HOLDER(&e->link, question, request.link);

    q->m.deliveries = q->deliveries;
    q->m.count = q->count;
    q->m.receipts = q->receipts;
    q->m.receipt_count = q->receipt_count;
    q->done(q->ctx, &q->m);
}

static void free_question(stg_store_request *e)
{
    question *q = STG_HOLDER(&e->link, question, request.link);

    stg_arena_free(&q->texts);
    free(q->deliveries);
    free(q->receipts);
    free(q);
}

void stg_store_message(stg_store *s, const char *id,
                       stg_message_status_fn *done, void *ctx)
{
    question *q = calloc(1, sizeof *q);

    if (q == NULL) {
        stg_store_lack_memory(s);
        return;
    }
    q->request.look = look;
    q->request.tell = tell;
    q->request.free = free_question;
    q->s = s;
    q->done = done;
    q->ctx = ctx;
    strncpy(q->m.id, id, sizeof q->m.id - 1);
    q->is_parsed = stg_store_find_id(s, id, &q->m.partition, &q->m.position);
    stg_store_request_send(s, &q->request);
}
