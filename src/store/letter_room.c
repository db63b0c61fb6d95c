/* How much room dead letters may have (I30), and what the writer does about it
 * between its commits: it deletes letters that ended a day ago, evicts the oldest
 * at the end of their time, number or share, and tells when little is left. */
#include <inttypes.h>
#include <stdio.h>

#include "store/writer.h"

enum {
    PIECE = 256,         /* rows of a transaction: 10 ms of a file's */
    PIECE_SHARED = 1024, /* of a server's, of which each has a round trip and a
                            flush of its log: half the time of 256 */
    HALF = 50,           /* percent: it is told */
    NEARLY = 90,
    BELOW = 5, /* and told that it is over, so far below */
};

static const stg_ns ended_kept = STG_DAY;
static const uint64_t look_pause = STG_MIN, blocked_pause = STG_S;

/* -- what they may have ---------------------------------------------------- */

/* UINT64_MAX: it does not matter. A server's room is its own; and a log that
 * refuses gives nothing up for room. */
static uint64_t bytes_max(const stg_store_writer *w)
{
    if (w->url != NULL || w->o->is_refusing || w->o->dead.share == 0)
        return UINT64_MAX;
    return w->o->quota / 100 * w->o->dead.share;
}

static uint64_t percent(uint64_t part, uint64_t most)
{
    return most == UINT64_MAX ? 0 : part / (most / 100 + 1);
}

/* -- what is told ---------------------------------------------------------- */

static uint64_t mebibytes(uint64_t bytes)
{
    return (bytes + (1 << 19)) >> 20;
}

/* Told once at each level, and again only after it was BELOW under it. */
static void tell_level(stg_store_writer *w, stg_store_trouble what,
                       uint64_t filled, uint64_t most)
{
    const stg_eviction *e = &w->eviction;
    bool by_number = percent(e->dead, w->o->dead.max) == filled;

    if (!w->troubles[what] && filled >= most) {
        w->troubles[what] = true;
        if (by_number)
            stg_request_queue_tell(w->in, what,
                                   "%" PRIu64 " dead letters of %" PRIu64
                                   " (dead-letters.max)",
                                   e->dead, w->o->dead.max);
        else
            stg_request_queue_tell(
                w->in, what,
                "dead letters fill %" PRIu64 " MiB of %" PRIu64 " (%" PRIu32
                " %% of store.quota)",
                mebibytes(e->bytes), mebibytes(bytes_max(w)), w->o->dead.share);
    } else if (filled + BELOW < most) {
        stg_writer_tell_end(w, what);
    }
}

static void tell_levels(stg_store_writer *w)
{
    const stg_eviction *e = &w->eviction;
    uint64_t filled = stg_ns_max(percent(e->bytes, bytes_max(w)),
                                 percent(e->dead, w->o->dead.max));

    tell_level(w, STG_STORE_DEAD_HALF, filled, HALF);
    tell_level(w, STG_STORE_DEAD_NEARLY, filled, NEARLY);
}

/* -- a piece --------------------------------------------------------------- */

static size_t piece_of(const stg_store_writer *w)
{
    return w->url == NULL ? PIECE : PIECE_SHARED;
}

static bool has_copy(const stg_store_writer *w)
{
    return w->o->letters != NULL || w->o->sink.write != NULL;
}

/* What it has got, durably. */
static uint64_t copied(const stg_store_writer *w)
{
    if (!has_copy(w))
        return INT64_MAX;
    return w->url == NULL ? w->letters_noted : 0;
}

static int run_piece(stg_store_writer *w, stg_eviction_piece *p)
{
    int rc = stg_writer_begin(w);

    if (rc == SQLITE_OK)
        rc = stg_sql_serialize(w->db);
    if (rc == SQLITE_OK)
        rc = stg_eviction_run(&w->eviction, p, stg_sql_now(w->db));
    rc = stg_writer_end(w, rc);
    if (rc == SQLITE_OK && w->url == NULL)
        rc = stg_eviction_look(&w->eviction);
    if (rc == SQLITE_OK && w->url != NULL && p->kind == STG_EVICTION_DEAD)
        w->eviction.dead = stg_ns_sub(w->eviction.dead, p->rows);
    return rc;
}

/* The kinds from..to, until one had some. *rows: how many went. */
static int run_kinds(stg_store_writer *w, stg_eviction_kind from,
                     stg_eviction_kind to, stg_ns before, uint64_t copied_to,
                     size_t rows_max, size_t *rows)
{
    int rc = SQLITE_OK;

    *rows = 0;
    for (stg_eviction_kind k = from; k <= to && *rows == 0 && rc == SQLITE_OK;
         k++) {
        stg_eviction_piece p = {.kind = k,
                                .before = before,
                                .copied = copied_to,
                                .rows_max = rows_max};

        rc = run_piece(w, &p);
        *rows = p.rows;
    }
    return rc;
}

/* -- too old --------------------------------------------------------------- */

/* A piece of each; *rows: of the larger one. */
static int delete_old(stg_store_writer *w, size_t *rows)
{
    stg_ns wall = stg_sql_now(w->db);
    size_t dead = 0;
    int rc =
        run_kinds(w, STG_EVICTION_ENDED, STG_EVICTION_ENDED_RANGES,
                  stg_ns_sub(wall, ended_kept), copied(w), piece_of(w), rows);

    if (rc == SQLITE_OK && w->o->dead.keep != STG_NEVER)
        rc = run_kinds(w, STG_EVICTION_DEAD, STG_EVICTION_DEAD_RANGES,
                       stg_ns_sub(wall, w->o->dead.keep), copied(w),
                       piece_of(w), &dead);
    if (dead > *rows)
        *rows = dead;
    return rc;
}

/* -- too much -------------------------------------------------------------- */

static bool is_too_much(const stg_store_writer *w)
{
    return w->eviction.bytes > bytes_max(w) ||
           w->eviction.dead > w->o->dead.max;
}

/* Far beyond what they may have: they come faster than they go. */
static bool is_pressed(const stg_store_writer *w)
{
    uint64_t most = bytes_max(w), max = w->o->dead.max;

    return (most != UINT64_MAX && w->eviction.bytes > most + most / 16) ||
           (max != UINT64_MAX && w->eviction.dead > max + max / 16);
}

/* No more than must go, and a little, so that not each letter that comes makes
 * another go. */
static size_t rows_of_piece(const stg_store_writer *w)
{
    const stg_eviction *e = &w->eviction;
    uint64_t most = bytes_max(w), by_bytes = 0, by_number = 0;
    uint64_t mean = e->letters == 0 ? 1 : e->bytes / e->letters + 1;

    if (e->bytes > most)
        by_bytes = (e->bytes - (most - most / 64)) / mean + 1;
    if (e->dead > w->o->dead.max)
        by_number = e->dead - w->o->dead.max;
    return (size_t)stg_ns_min(stg_ns_max(by_bytes, by_number),
                              is_pressed(w) ? STG_EVICTION_MOST : piece_of(w));
}

/* Intake has stopped, or is about to. */
static bool is_out_of_room(const stg_store_writer *w)
{
    return w->url == NULL &&
           (w->refused > 0 || w->used > w->o->quota - w->o->quota / 4);
}

/* The copy holds up what must go: now it loses. */
static void tell_uncopied(stg_store_writer *w)
{
    if (w->troubles[STG_STORE_UNCOPIED])
        return;
    w->troubles[STG_STORE_UNCOPIED] = true;
    stg_request_queue_tell(
        w->in, STG_STORE_UNCOPIED,
        "there is no more room, and the oldest dead letters are "
        "evicted though the copy has not got them");
}

static void tell_copied(stg_store_writer *w)
{
    if (!is_too_much(w))
        stg_writer_tell_end(w, STG_STORE_UNCOPIED);
}

static int make_room(stg_store_writer *w, size_t *rows)
{
    bool by_bytes = w->eviction.bytes > bytes_max(w);
    stg_eviction_kind first = by_bytes ? STG_EVICTION_ENDED : STG_EVICTION_DEAD;
    stg_ns any = stg_ns_add(stg_sql_now(w->db), STG_DAY);
    int rc = run_kinds(w, first, STG_EVICTION_DEAD_RANGES, any, copied(w),
                       rows_of_piece(w), rows);

    w->waits_for_copy = *rows == 0 && has_copy(w) && !is_out_of_room(w);
    if (rc != SQLITE_OK || *rows > 0 || !has_copy(w) || w->waits_for_copy)
        return rc;
    rc = run_kinds(w, first, STG_EVICTION_DEAD_RANGES, any, INT64_MAX,
                   rows_of_piece(w), rows);
    if (rc == SQLITE_OK && *rows > 0)
        tell_uncopied(w);
    return rc;
}

/* -- all of it ------------------------------------------------------------- */

/* Of a file the totals are there; with others they are counted, at times. */
static int look(stg_store_writer *w, uint64_t now)
{
    bool is_due = w->url == NULL ? w->rows.version != w->letters_seen
                                 : w->o->dead.max != UINT64_MAX &&
                                       w->letters_look_at <= now;
    int rc = is_due ? stg_eviction_look(&w->eviction) : SQLITE_OK;

    w->letters_seen = w->rows.version;
    if (w->letters_look_at <= now)
        w->letters_look_at =
            uv_hrtime() + stg_ns_max(look_pause, 100 * (uv_hrtime() - now));
    return rc;
}

static bool is_empty(const stg_store_writer *w)
{
    return w->url == NULL && w->eviction.letters == 0;
}

/* Four times as long as it took is for others, but under pressure. */
static uint64_t pause_after(const stg_store_writer *w, uint64_t began_at)
{
    uint64_t took = uv_hrtime() - began_at;

    return is_pressed(w) ? 0 : stg_ns_max(4 * took, 2 * STG_MS);
}

/* What waits for the copy waits no longer when there is no more room. */
static uint64_t too_much_at(const stg_store_writer *w)
{
    return w->waits_for_copy && is_out_of_room(w) ? 0 : w->evict_at;
}

/* In pieces with pauses between them, so that messages go on being stored. */
int stg_writer_evict(stg_store_writer *w, uint64_t now)
{
    bool is_old_due = w->letters_old_at <= now;
    size_t rows = 0;
    int rc = look(w, now);

    if (rc == SQLITE_OK && is_old_due && !is_empty(w))
        rc = delete_old(w, &rows);
    if (is_old_due)
        w->letters_old_at =
            rows == piece_of(w) ? now + pause_after(w, now) : now + look_pause;
    if (rc == SQLITE_OK && is_too_much(w) && too_much_at(w) <= now) {
        rc = make_room(w, &rows);
        w->evict_at =
            uv_hrtime() + (rows == 0 ? blocked_pause : pause_after(w, now));
    }
    tell_copied(w);
    if (rc == SQLITE_OK)
        tell_levels(w);
    return rc;
}

uint64_t stg_writer_evict_at(const stg_store_writer *w)
{
    uint64_t at = UINT64_MAX;

    if (w->url == NULL && w->rows.version != w->letters_seen)
        return 0;
    if (w->url != NULL && w->o->dead.max != UINT64_MAX)
        at = w->letters_look_at;
    if (is_too_much(w))
        at = stg_ns_min(at, too_much_at(w));
    return is_empty(w) ? at : stg_ns_min(at, w->letters_old_at);
}
