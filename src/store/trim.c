/* The writer's work between its commits, a small piece at a time: it finds
 * what is too old or too much, trims, drops old keys, notes how far the letters
 * are, moves the WAL into the file, and rests. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "host/process.h"
#include "host/wall.h"
#include "store/internal.h"
#include "store/sqlite.h"

enum {
    PIECE_ROWS = 2048,   /* of a transaction that deletes rows: 2 ms */
    WAITING_ROWS = 4096, /* are worth one before trim_pause is over */
    FEW_ROWS = 256,      /* cost nothing, once in trim_pause */
    PIECE_BYTES = 8 << 20,
    MUCH_BYTES = 512 << 10, /* of the connection's pages */
    SQUEEZE_MS =
        250, /* ms for reads to end where the WAL has room that is wanted */
};

static const uint64_t held_pause = 5 * STG_S; /* before a read is told */
static const uint64_t trim_pause = STG_S, room_pause = 100 * STG_MS;
static const uint64_t rows_pause = 10 * STG_S;
static const uint64_t age_pause_min = 100 * STG_MS, age_pause_max = STG_MIN;
static const uint64_t renew_pause = STG_MIN;
static const uint64_t letters_pause = STG_S, checkpoint_pause = 50 * STG_MS;

/* -- what must go ---------------------------------------------------------- */

static bool has_messages(const stg_store_writer *w)
{
    return w->queue.is.first < w->queue.is.next;
}

/* Raises *position to the first that is younger than `age`. *at is when the next
 * one turns too old: at least 100 ms and at most a minute from now, for a clock
 * may step. */
static int find_young(stg_store_writer *w, uint64_t now, stg_ns age,
                      uint64_t *position, uint64_t *at)
{
    stg_ns wall = stg_wall_now(), left;
    stg_queue_place there;
    uint64_t first;
    int rc = stg_queue_younger(&w->queue, wall, age, &first);

    if (rc == SQLITE_OK)
        rc = stg_queue_at(&w->queue, first, &there);
    if (rc != SQLITE_OK)
        return rc;
    *position = stg_ns_max(*position, first);
    left = stg_ns_sub(stg_ns_add(there.created_at * STG_MS, age), wall);
    *at =
        there.position == w->queue.is.next
            ? UINT64_MAX
            : now + stg_ns_max(age_pause_min, stg_ns_min(left, age_pause_max));
    return SQLITE_OK;
}

/* Messages may fill half of the quota: the rest is for everything else. */
static int look_at_room(stg_store_writer *w, uint64_t now)
{
    uint64_t half = w->o->quota / 2, bytes = stg_queue_bytes(&w->queue);
    uint64_t position;
    int rc;

    w->room_at = UINT64_MAX;
    if (bytes <= half)
        return SQLITE_OK;
    rc = stg_queue_behind(&w->queue, bytes - half, &position);
    if (rc == SQLITE_OK)
        w->crowded = stg_ns_max(w->crowded, position);
    w->retained = stg_ns_max(w->retained, w->crowded);
    w->room_at = now + room_pause;
    return rc;
}

typedef struct notice {
    stg_store_request request;
    uint64_t position;
} notice;

static void tell_notice(stg_store_request *e)
{
    const notice *n = STG_HOLDER(&e->link, notice, request.link);
    const stg_store_options *o = &e->s->o;

    if (o->retaining != NULL)
        o->retaining(o->ctx, n->position);
}

static void free_notice(stg_store_request *e)
{
    free(STG_HOLDER(&e->link, notice, request.link));
}

/* Flow hears of it before anything goes: its lanes still there must shed. Where
 * the full log refuses instead, only bodies of bulk rows go. */
static bool tell_retained(stg_store_writer *w)
{
    notice *n;

    if (w->o->is_refusing || w->retained <= w->told ||
        w->retained <= w->commit || w->retained <= w->queue.is.first)
        return true;
    n = calloc(1, sizeof *n);
    if (n == NULL)
        return false;
    n->request.tell = tell_notice;
    n->request.free = free_notice;
    w->told = n->position = w->retained;
    stg_request_queue_answer(w->in, &n->request);
    return true;
}

static int look(stg_store_writer *w, uint64_t now)
{
    int rc = SQLITE_OK;

    // A message that was just appended has set none of these.
    if (has_messages(w) && w->age_at == UINT64_MAX)
        w->age_at = now;
    if (has_messages(w) && w->o->keep > 0 && w->kept_at == UINT64_MAX)
        w->kept_at = now;
    if (stg_queue_bytes(&w->queue) > w->o->quota / 2 &&
        w->room_at == UINT64_MAX)
        w->room_at = now;
    if (w->age_at <= now)
        rc = find_young(w, now, w->o->retention, &w->retained, &w->age_at);
    if (rc == SQLITE_OK && w->kept_at <= now)
        rc = find_young(w, now, w->o->keep, &w->kept, &w->kept_at);
    if (rc == SQLITE_OK && w->room_at <= now)
        rc = look_at_room(w, now);
    return rc == SQLITE_OK && !tell_retained(w) ? SQLITE_NOMEM : rc;
}

/* -- trimming -------------------------------------------------------------- */

/* Everything below may go: it is settled, and neither is it younger than
 * options.keep nor does a bulk row need it; or there is no room for it. */
static int limit_of(stg_store_writer *w, uint64_t *limit)
{
    uint64_t needed = UINT64_MAX;
    int rc = SQLITE_OK;

    if (w->commit > w->queue.is.first)
        rc = stg_queue_needed(&w->queue, &needed);
    *limit = stg_ns_max(needed, w->retained);
    if (w->o->keep > 0)
        *limit = stg_ns_min(*limit, w->kept);
    *limit = stg_ns_min(w->commit, stg_ns_max(*limit, w->crowded));
    *limit = stg_ns_min(*limit, w->queue.is.next);
    return rc;
}

/* A rollback gives the rows back. */
static int trim_piece(stg_store_writer *w, uint64_t limit)
{
    const stg_queue_extent before = w->queue.is;
    uint64_t version = w->rows.version;
    int rc = stg_writer_begin(w);

    if (rc == SQLITE_OK)
        rc = stg_queue_trim(&w->queue, limit, PIECE_ROWS, PIECE_BYTES);
    if (rc == SQLITE_OK)
        rc = stg_ranges_expire(&w->rows, w->queue.is.first, stg_wall_now());
    rc = stg_writer_end(w, rc);
    if (rc != SQLITE_OK) {
        w->queue.is = before;
    } else if (w->rows.version != version) {
        stg_writer_tell_letters(w);
    }
    return rc;
}

/* How long messages below the limit may stay, if their segment has not ended. All
 * of it, or a few rows, go soon; many go row by row, which costs more than to wait
 * for its end. */
static uint64_t pause_of(const stg_store_writer *w, uint64_t limit)
{
    uint64_t rows = limit - w->queue.is.first;
    bool is_tight = w->used > w->o->quota / 4;
    bool is_whole = limit == w->queue.is.next;

    if (is_tight || (is_whole && rows >= WAITING_ROWS))
        return 0;
    return is_whole || rows <= FEW_ROWS ? trim_pause : rows_pause;
}

/* Segments that have ended go at once. */
static int trim(stg_store_writer *w, uint64_t now)
{
    uint64_t limit, end;
    int rc = limit_of(w, &limit);

    if (rc != SQLITE_OK)
        return rc;
    w->trim_at = UINT64_MAX;
    if (limit <= w->queue.is.first) {
        w->trim_since = UINT64_MAX;
        return SQLITE_OK;
    }
    w->trim_since = stg_ns_min(w->trim_since, now);
    end = stg_queue_ended(&w->queue, limit);
    if (end == w->queue.is.first) {
        w->trim_at = w->trim_since + pause_of(w, limit);
        if (now < w->trim_at)
            return SQLITE_OK;
        end = limit;
    }
    rc = trim_piece(w, end);
    w->is_tending = rc == SQLITE_OK && w->queue.is.first < end;
    if (!w->is_tending)
        w->trim_since = UINT64_MAX;
    return rc;
}

/* -- receipts, keys, letters --------------------------------------------------------- */

static int expire_keys(stg_store_writer *w, uint64_t now)
{
    size_t removed = 0;
    int rc = stg_writer_begin(w);

    if (rc == SQLITE_OK)
        rc = stg_keys_expire(&w->keys, stg_wall_now(), PIECE_ROWS, &removed);
    rc = stg_writer_end(w, rc);
    if (removed == PIECE_ROWS)
        w->is_tending = true;
    else
        w->keys_at = now + trim_pause;
    return rc;
}

static int trim_receipts(stg_store_writer *w, uint64_t now)
{
    stg_ns wait = STG_RECEIPT_PAUSE;
    int rc = stg_writer_begin(w);

    if (rc == SQLITE_OK)
        rc = stg_receipt_table_trim(&w->receipts, stg_sql_now(w->db), &wait);
    rc = stg_writer_end(w, rc);
    w->is_tending |= wait == 0;
    w->receipts.tend_at = stg_ns_add(now, wait);
    return rc;
}

/* Late by a second at most, and a crash then repeats letters of that time. */
static int note_letters(stg_store_writer *w)
{
    int rc = stg_writer_begin(w);

    if (rc == SQLITE_OK)
        rc = stg_meta_write(w->db, "letters_version", w->letters_version);
    rc = stg_writer_end(w, rc);
    if (rc == SQLITE_OK)
        w->letters_noted = w->letters_version;
    return rc;
}

/* -- the WAL --------------------------------------------------------------- */

/* Pages after which it goes into the file: 2 to 64 MiB, half of the WAL's bound.
 * A page that was written often goes once, and one that was freed not at all: so
 * the longer it waits, the less there is to move. */
static int wal_pages_max(const stg_store_writer *w)
{
    uint64_t bytes = stg_ns_min(w->o->quota / 8, 64 << 20);

    return (int)(stg_ns_max(bytes, 2 << 20) / STG_PAGE);
}

/* Notes whether a read holds the WAL; tells people when that has lasted for long. */
static void trim_note_held(stg_store_writer *w, bool is_whole)
{
    char who[96];

    if (is_whole) {
        w->held_at = 0;
        stg_writer_tell_end(w, STG_STORE_HELD);
        return;
    }
    if (w->held_at == 0)
        w->held_at = uv_hrtime();
    if (w->troubles[STG_STORE_HELD] || uv_hrtime() - w->held_at < held_pause)
        return;
    w->troubles[STG_STORE_HELD] = true;
    stg_store_files_reader(&w->files, who, sizeof who);
    stg_request_queue_tell(
        w->in, STG_STORE_HELD,
        "%s: %s reads it and does not end: its write-ahead log has %" PRIu64
        " MiB, cannot be emptied, and grows; end that process",
        w->o->path, who, w->files.log_size >> 20);
}

/* Whether an error passes by itself. */
static bool trim_is_passing(int rc)
{
    return (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED ||
           stg_sql_is_full(rc);
}

/* Moves the WAL into the file: all of it where nobody reads what is at its
 * begin. Others wait meanwhile, for the patience in ms at most. */
static int trim_log(stg_store_writer *w, int mode, int patience, bool *is_whole)
{
    int pages = 0, moved = 0, rc;
    uint64_t began_at = uv_hrtime();

    sqlite3_busy_timeout(stg_sqlite_of(w->db), patience);
    errno = 0;
    rc = sqlite3_wal_checkpoint_v2(stg_sqlite_of(w->db), NULL, mode, &pages,
                                   &moved);
    if (rc != SQLITE_OK)
        rc = stg_sqlite_code(w->db, rc, true);
    sqlite3_busy_timeout(stg_sqlite_of(w->db), STG_SQL_BUSY_MS);
    stg_histogram_add(&w->checkpoints, uv_hrtime() - began_at);
    *is_whole = rc == SQLITE_OK && moved == pages;
    // The next commit begins it anew.
    if (*is_whole)
        w->wal_pages = 0;
    if (*is_whole && mode == SQLITE_CHECKPOINT_TRUNCATE)
        w->files.log_size = 0;
    if (*is_whole || mode == SQLITE_CHECKPOINT_TRUNCATE)
        trim_note_held(w, *is_whole || stg_sql_is_full(rc));
    if (rc == SQLITE_OK || trim_is_passing(rc))
        return SQLITE_OK;
    stg_sql_words(&w->why, w->o->path,
                  "its write-ahead log cannot be moved into it", w->db, rc);
    return rc;
}

/* A reader may hold back the end of it, and what comes next lengthens it; when
 * it has grown long, readers are waited for. */
static int checkpoint(stg_store_writer *w, uint64_t now)
{
    int most = wal_pages_max(w), rc;
    bool is_held = w->held_at > 0, is_whole;
    bool is_long = is_held || w->wal_pages > 2 * most;

    if ((w->wal_pages < most && !is_held) || now < w->checkpoint_at)
        return SQLITE_OK;
    // Commits wait meanwhile: a reader that stays is not waited for.
    rc = trim_log(
        w, is_long ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE,
        STG_SQL_SHORT_MS, &is_whole);
    if (!is_whole)
        w->checkpoint_at = uv_hrtime() + (is_long ? STG_S : checkpoint_pause);
    return rc;
}

int stg_writer_squeeze(stg_store_writer *w)
{
    bool is_whole;
    int rc;

    if (uv_hrtime() < w->squeeze_at || w->files.log_size == 0)
        return SQLITE_OK;
    rc = trim_log(w, SQLITE_CHECKPOINT_TRUNCATE, SQUEEZE_MS, &is_whole);
    w->squeeze_at = is_whole ? 0 : uv_hrtime() + STG_S;
    return rc;
}

/* Another process that has the file open keeps SQLite from doing so at the
 * close. */
void stg_writer_empty_log(stg_store_writer *w)
{
    bool is_whole;

    if (w->files.log_size > 0)
        (void)trim_log(w, SQLITE_CHECKPOINT_TRUNCATE, STG_SQL_BUSY_MS,
                       &is_whole);
}

/* Nothing was stored for a while: the pages that the connection holds, up to 8 MiB,
 * are read from the file again when they are wanted. Where there were many, something
 * large has ended, such as the start with thousands of targets. */
static void rest(stg_store_writer *w)
{
    sqlite3 *file = stg_sqlite_of(w->db);
    int bytes = 0, most = 0;

    (void)sqlite3_db_status(file, SQLITE_DBSTATUS_CACHE_USED, &bytes, &most, 0);
    sqlite3_db_release_memory(file);
    if (bytes > MUCH_BYTES)
        stg_process_trim();
    w->rest_at = UINT64_MAX;
}

/* -- all of it ------------------------------------------------------------- */

static bool has_lanes(const stg_store_writer *w)
{
    return stg_list_first(&w->lanes) != NULL;
}

static bool has_letters(const stg_store_writer *w)
{
    return w->letters_version > w->letters_noted;
}

static bool has_grown(const stg_store_writer *w)
{
    return (w->o->letters != NULL || w->o->sink.write != NULL) &&
           w->rows.ranges.has_grown;
}

/* Bulk rows have grown since the file of dead letters had them last. */
static int renew_letters(stg_store_writer *w, uint64_t now)
{
    uint64_t version = w->rows.version;
    bool is_more = false;
    int rc = stg_writer_begin(w);

    if (rc == SQLITE_OK)
        rc = stg_ranges_renew(&w->rows, &is_more);
    rc = stg_writer_end(w, rc);
    if (rc == SQLITE_OK && w->rows.version != version)
        stg_writer_tell_letters(w);
    w->renew_at = is_more ? now : now + renew_pause;
    return rc;
}

/* A database has refused to store. Until it takes a write nothing is trimmed:
 * what only reads ends well, and would be taken for the end of the trouble. */
static bool is_on_trial(const stg_store_writer *w)
{
    return w->url != NULL && stg_writer_is_stuck(w);
}

/* Where nothing else is to be stored, tries a write that changes no row: it
 * needs the right to write, and a server that takes writes. */
static int try_again(stg_store_writer *w, uint64_t now)
{
    int rc;

    if (w->trial_at > now)
        return SQLITE_OK;
    rc = stg_writer_begin(w);

    if (rc == SQLITE_OK)
        rc = stg_sql_exec(w->db,
                          "UPDATE stagger SET version = 0 WHERE version < 0");
    w->trial_at = now + trim_pause;
    return stg_writer_end(w, rc);
}

/* Writes the notes that must be stored before the end, too. */
static int write_notes(stg_store_writer *w, uint64_t now)
{
    int rc = SQLITE_OK;

    if (has_letters(w) && (w->letters_at <= now || w->is_closing)) {
        w->letters_at = now + letters_pause;
        rc = note_letters(w);
    }
    if (rc == SQLITE_OK && has_lanes(w) && w->lanes_at <= now)
        rc = stg_writer_end(w, stg_writer_begin(w));
    return rc;
}

static int make_room(stg_store_writer *w, uint64_t now)
{
    int rc = look(w, now);

    if (rc == SQLITE_OK)
        rc = trim(w, now);
    if (rc == SQLITE_OK && w->keys_at <= now)
        rc = expire_keys(w, now);
    if (rc == SQLITE_OK && w->receipts.tend_at <= now)
        rc = trim_receipts(w, now);
    if (rc == SQLITE_OK && has_grown(w) && w->renew_at <= now)
        rc = renew_letters(w, now);
    return rc == SQLITE_OK ? stg_writer_evict(w, now) : rc;
}

/* A full disk and a server that is away are no end: what can wait is tried
 * again a second later. While it closes, letters that cannot be noted are given
 * up, and are copied again after the next start. */
static int tend(stg_store_writer *w, uint64_t now)
{
    int rc = SQLITE_OK;

    w->is_tending = false;
    if (!w->is_closing)
        rc = is_on_trial(w) ? try_again(w, now) : make_room(w, now);
    if (rc == SQLITE_OK)
        rc = write_notes(w, now);
    if (stg_sql_is_full(rc) || (rc == STG_SQL_AWAY && !w->is_hopeless)) {
        // The disk is full, which is nothing new to what can wait.
        w->is_tending = false;
        w->letters_at = now + trim_pause;
        if (w->url == NULL)
            w->trim_at = w->keys_at = now + trim_pause;
        w->receipts.tend_at = now + trim_pause;
        w->renew_at = w->evict_at = w->letters_old_at = now + trim_pause;
        if (w->is_closing)
            w->letters_version = w->letters_noted;
        rc = SQLITE_OK;
    }
    if (rc == SQLITE_OK)
        rc = checkpoint(w, now);
    if (w->rest_at <= now)
        rest(w);
    return rc;
}

bool stg_writer_tend(stg_store_writer *w)
{
    int rc;

    w->why.text[0] = '\0';
    rc = w->files_at <= uv_hrtime() ? stg_writer_look(w, SQLITE_OK) : SQLITE_OK;
    if (rc == SQLITE_OK && !w->is_closing)
        rc = stg_writer_tell_shortage(w, uv_hrtime());
    if (rc == SQLITE_OK)
        rc = tend(w, uv_hrtime());
    if (rc == SQLITE_OK)
        return true;
    // An error outside of a transaction is the last that SQLite knows.
    if (w->why.text[0] == '\0')
        stg_sql_words(&w->why, w->o->path, "cannot be kept in order", w->db,
                      rc);
    stg_request_queue_break(w->in, &w->why);
    return false;
}

/* The earliest of all that is done between two commits; 0: at once. */
uint64_t stg_writer_tend_at(const stg_store_writer *w)
{
    uint64_t at = UINT64_MAX;

    if (w->is_tending && !w->is_closing)
        return 0;
    if (has_letters(w))
        at = w->is_closing ? 0 : w->letters_at;
    if (has_lanes(w) && !w->is_closing)
        at = stg_ns_min(at, w->lanes_at);
    if (has_lanes(w) && w->is_closing && w->lanes_at == 0)
        at = 0;
    if (w->is_closing)
        return at;
    if (is_on_trial(w))
        return stg_ns_min(at, w->trial_at);
    if (w->keys.count > w->keys.count_max)
        at = stg_ns_min(at, w->keys_at);
    if (w->wal_pages >= wal_pages_max(w) || w->held_at > 0)
        at = stg_ns_min(at, w->checkpoint_at);
    if (has_grown(w))
        at = stg_ns_min(at, w->renew_at);
    at = stg_ns_min(at, w->receipts.tend_at);
    at = stg_ns_min(at, stg_ns_min(w->age_at, w->room_at));
    at = stg_ns_min(at, w->kept_at);
    at = stg_ns_min(at, stg_writer_evict_at(w));
    at = stg_ns_min(at, w->rest_at);
    at = stg_ns_min(at, stg_ns_min(w->files_at, stg_writer_shortage_at(w)));
    return stg_ns_min(at, w->trim_at);
}
