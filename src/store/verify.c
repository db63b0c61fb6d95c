/* Whether a store fits together: SQLite's own check, and then the rules that
 * the tables keep between them, a question each: positions below next_position,
 * versions, epochs, and the books of each lane and partition (I17: routed =
 * delivered + dead + cancelled + parked). It reads, and changes nothing. */
#include "store/store_file.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "store/eviction.h"
#include "store/lanes.h"
#include "store/sqlite.h"

typedef struct check {
    stg_db *db;
    stg_verified *v;
    stg_flaw_fn *each;
    void *ctx;
    uint64_t next; /* position */
    stg_stmt *rows, *letters, *lane;
    int rc; /* of what a callback did */
} check;

__attribute__((format(printf, 2, 3))) static void flaw(check *c,
                                                       const char *format, ...)
{
    char words[256];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof words, format, args);
    va_end(args);
    c->v->flaws++;
    if (c->each != NULL)
        c->each(c->ctx, words);
}

/* -- SQLite's -------------------------------------------------------------- */

/* At most 20 findings: a damaged file has thousands of them, which say no
 * more. */
static int check_integrity(check *c)
{
    stg_stmt *st = NULL;
    int rc = stg_sql_prepare_once(c->db, &st, "PRAGMA integrity_check(20)");

    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        const char *words = stg_sql_text(st, 0);

        if (words == NULL || sqlite3_stricmp(words, "ok") != 0)
            flaw(c, "the file is damaged: %s", words == NULL ? "" : words);
        rc = SQLITE_OK;
    }
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* -- what can be asked by a question each ---------------------------------- */

/* Each question counts the rows that break a rule; 0 is right. A new rule
 * between tables has its question here. */
static const struct {
    const char *what;
    const char *question;
} questions[] = {
    {"messages have a position that was not given yet, or none",
     "SELECT count(*) FROM messages WHERE position < 1 OR position >="
     " (SELECT value FROM meta WHERE name = 'next_position')"},
    {"messages do not say what those before them fill",
     "SELECT count(*) FROM (SELECT filled_before <="
     " lag(filled_before, 1, -1) OVER (ORDER BY position) AS is_wrong"
     " FROM messages) WHERE is_wrong"},
    {"messages of two segments are mixed",
     "SELECT (SELECT count(*) FROM (SELECT number IS NOT"
     " lag(number) OVER (ORDER BY position) AS is_first FROM messages)"
     " WHERE is_first) - (SELECT count(*) FROM segments WHERE first IS NOT"
     " NULL)"},
    {"idempotency keys name a position that was not given yet, or have another "
     "size",
     "SELECT count(*) FROM idempotency_keys WHERE length(key) <> 16"
     " OR length(body) <> 16 OR position < 1 OR position >="
     " (SELECT value FROM meta WHERE name = 'next_position')"},
    {"targets have the name of another one",
     "SELECT count(*) - count(DISTINCT name) FROM lanes"
     " WHERE is_forgotten = 0"},
    {"parked rows are of no lane, or of one that was forgotten",
     "SELECT count(*) FROM parked WHERE lane NOT IN"
     " (SELECT number FROM lanes WHERE is_forgotten = 0)"},
    {"rewinds are of no lane, or are beyond their end",
     "SELECT count(*) FROM rewinds WHERE lane NOT IN"
     " (SELECT number FROM lanes) OR (state = 'running' AND position >= until)"},
    {"dead letters are of no lane",
     "SELECT count(*) FROM failed_broadcast_logs WHERE lane NOT IN"
     " (SELECT number FROM lanes)"},
    {"dead letters have no such state",
     "SELECT count(*) FROM failed_broadcast_logs WHERE state NOT IN"
     " ('dead', 'replayed', 'dropped', 'expired', 'cancelled')"},
    {"dead letters for one message have no payload",
     "SELECT count(*) FROM failed_broadcast_logs WHERE state = 'dead'"
     " AND last_position IS NULL AND payload IS NULL"
     " AND replay <> " STG_EVICTED " AND coalesce(cause, '') <> 'TOO_LARGE'"},
    {"bulk rows of evicted letters have another form",
     "SELECT count(*) FROM failed_broadcast_logs WHERE"
     " (replay = " STG_EVICTED ") <> (position < 0) OR (replay = " STG_EVICTED
     " AND (payload IS NOT NULL OR last_position IS NOT NULL OR count < 1"
     " OR why <> 'evicted'))"},
    {"totals of dead letters are not what their rows are",
     "SELECT (SELECT letters FROM letter_totals) <>"
     " (SELECT count(*) FROM failed_broadcast_logs) OR"
     " (SELECT dead FROM letter_totals) <> (SELECT count(*)"
     " FROM failed_broadcast_logs WHERE state = 'dead'"
     " AND replay <> " STG_EVICTED ")"},
    {"bulk rows end before they begin",
     "SELECT count(*) FROM failed_broadcast_logs WHERE state = 'dead'"
     " AND last_position < position"},
    {"claims are of a partition that has no number",
     "SELECT count(*) FROM claims WHERE number NOT IN"
     " (SELECT number FROM partitions)"},
    {"parked rows are of a partition that has no number",
     "SELECT count(*) FROM parked WHERE partition > 0 AND partition NOT IN"
     " (SELECT number FROM partitions)"},
    {"epochs begin at a position that was not given yet, or none",
     "SELECT count(*) FROM epochs WHERE first < 1 OR first >="
     " (SELECT value FROM meta WHERE name = 'next_position')"},
    {"epochs are not 16 hexadecimal digits",
     "SELECT count(*) FROM epochs WHERE length(epoch) <> 16"
     " OR epoch GLOB '*[^0-9a-f]*'"},
    {"rows are of a message that has no epoch",
     "SELECT count(*) FROM (SELECT position FROM messages"
     " UNION ALL SELECT position FROM idempotency_keys"
     " UNION ALL SELECT position FROM parked WHERE partition = 0"
     " UNION ALL SELECT position FROM failed_broadcast_logs"
     " WHERE partition = 0 AND position > 0) WHERE position <"
     " (SELECT coalesce(min(first), (SELECT value FROM meta"
     " WHERE name = 'next_position')) FROM epochs)"},
    {"dead letters have another id than their message",
     "SELECT count(*) FROM failed_broadcast_logs AS f WHERE partition = 0"
     " AND position > 0 AND last_position IS NULL AND message_id <>"
     " (SELECT epoch FROM epochs WHERE first <= f.position"
     " ORDER BY first DESC LIMIT 1) || '-' || position"},
};

static int ask_questions(check *c)
{
    int rc = SQLITE_OK;

    for (size_t i = 0;
         i < sizeof questions / sizeof *questions && rc == SQLITE_OK; i++) {
        uint64_t count = 0;

        rc = stg_sql_ask(c->db, questions[i].question, &count);
        if (rc == SQLITE_OK && count > 0)
            flaw(c, "%" PRIu64 " %s", count, questions[i].what);
    }
    return rc;
}

/* -- meta ------------------------------------------------------------------ */

/* A missing value is a flaw, and not an error: the other checks go on. c->next
 * stays 0 then, so that cursors are said to be beyond the log, too. */
static int check_meta(check *c)
{
    static const char *const names[] = {"next_position", "letters_version",
                                        "incarnations"};
    int rc = SQLITE_OK;

    for (size_t i = 0; i < sizeof names / sizeof *names && rc == SQLITE_OK;
         i++) {
        uint64_t number = 0;

        rc = stg_meta_read(c->db, names[i], &number);
        if (rc == SQLITE_DONE || (rc == SQLITE_OK && i == 0 && number == 0))
            flaw(c, "meta has no %s", names[i]);
        if (i == 0)
            c->next = number;
        rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
    }
    return rc;
}

/* -- cursors, and the books ------------------------------------------------ */

/* Dead letters that were deleted still count in the books: deleted_letters has
 * their number. A bulk row of evicted letters stands for letters that are
 * counted there, and so is left out. */
static int prepare_books(check *c)
{
    int rc = stg_sql_prepare_once(
        c->db, &c->rows,
        "SELECT count(*) FROM parked WHERE lane = ? AND partition = ?");

    if (rc == SQLITE_OK)
        rc = stg_sql_prepare_once(
            c->db, &c->letters,
            "SELECT coalesce(sum(count) FILTER (WHERE state IN"
            " ('dead', 'dropped', 'expired')), 0) + coalesce((SELECT dead"
            " FROM deleted_letters WHERE lane = ?1 AND partition = ?2), 0),"
            " coalesce(sum(count) FILTER (WHERE state = 'cancelled'), 0)"
            " + coalesce((SELECT cancelled FROM deleted_letters"
            " WHERE lane = ?1 AND partition = ?2), 0)"
            " FROM failed_broadcast_logs WHERE lane = ?1 AND partition = ?2"
            " AND replay <> " STG_EVICTED);
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare_once(
            c->db, &c->lane, "SELECT is_forgotten FROM lanes WHERE number = ?");
    return rc;
}

static void finish_books(check *c)
{
    stg_sql_finalize(c->rows);
    stg_sql_finalize(c->letters);
    stg_sql_finalize(c->lane);
}

/* Adds what was deleted, so that the sums are those of all time. */
static int count_letters(check *c, const stg_cursor *cursor, uint64_t *dead,
                         uint64_t *cancelled)
{
    int rc = stg_sql_bind(c->letters, "uu", (uint64_t)cursor->lane,
                          (uint64_t)cursor->partition);

    if (rc == SQLITE_OK)
        rc = stg_sql_step(c->letters);
    if (rc != SQLITE_ROW)
        return rc;
    *dead = stg_sql_column(c->letters, 0);
    *cancelled = stg_sql_column(c->letters, 1);
    return stg_sql_reset(c->letters);
}

/* The rule I17 for one lane and partition. The table of parked rows is counted,
 * for the cursor's text has them as of its last group. */
static int check_books(check *c, const stg_cursor *cursor)
{
    uint64_t rows = 0, dead = 0, cancelled = 0, sum;
    int rc = stg_sql_bind(c->rows, "uu", (uint64_t)cursor->lane,
                          (uint64_t)cursor->partition);

    if (rc == SQLITE_OK)
        rc = stg_sql_number(c->rows, &rows);
    if (rc == SQLITE_OK)
        rc = count_letters(c, cursor, &dead, &cancelled);
    if (rc != SQLITE_OK)
        return rc;
    sum = cursor->delivered + cursor->dead + cursor->cancelled + rows;
    if (cursor->dead != dead)
        flaw(c,
             "lane %u: its books have %" PRIu64
             " dead, its letters are %" PRIu64,
             cursor->lane, cursor->dead, dead);
    if (cursor->cancelled != cancelled)
        flaw(c,
             "lane %u: its books have %" PRIu64
             " cancelled, its letters are %" PRIu64,
             cursor->lane, cursor->cancelled, cancelled);
    if (cursor->routed != sum)
        flaw(c,
             "lane %u: %" PRIu64
             " were routed, and delivered, dead, cancelled and parked are "
             "%" PRIu64,
             cursor->lane, cursor->routed, sum);
    return SQLITE_OK;
}

/* A target that is forgotten has lost its cursor in the same transaction. */
static int check_lane(check *c, const stg_cursor *cursor)
{
    uint64_t is_forgotten = 0;
    int rc = stg_sql_bind(c->lane, "u", (uint64_t)cursor->lane);

    if (rc == SQLITE_OK)
        rc = stg_sql_number(c->lane, &is_forgotten);
    if (rc == SQLITE_DONE || is_forgotten != 0) {
        flaw(c, "lane %u: has a cursor, and there is no such target",
             cursor->lane);
        rc = SQLITE_OK;
    }
    return rc;
}

/* Where a topic ends the store does not know, so only the queue's are compared. */
static void check_place(check *c, const stg_cursor *cursor)
{
    size_t count = cursor->settled_count;

    if (cursor->partition == 0 &&
        (cursor->base > c->next ||
         (count > 0 && cursor->settled[count - 1].last >= c->next)))
        flaw(c, "lane %u: its cursor is beyond the log", cursor->lane);
}

/* stg_cursors_parse() cannot be stopped: after an error the others pass. */
static void check_cursor(void *ctx, const stg_cursor *cursor)
{
    check *c = ctx;

    if (c->rc != SQLITE_OK)
        return;
    check_place(c, cursor);
    c->rc = check_lane(c, cursor);
    if (c->rc == SQLITE_OK)
        c->rc = check_books(c, cursor);
}

static int check_cursors(check *c)
{
    stg_stmt *st = NULL;
    int rc = prepare_books(c);

    if (rc == SQLITE_OK)
        rc = stg_sql_prepare_once(
            c->db, &st, "SELECT partition, slice, lanes FROM cursors");
    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW) {
        uint64_t partition = stg_sql_column(st, 0);
        uint64_t slice = stg_sql_column(st, 1);

        if (!stg_cursors_parse(stg_sql_column_span(st, 2), (uint32_t)partition,
                               (uint32_t)slice, check_cursor, c))
            flaw(c,
                 "the cursors of partition %" PRIu64 ", slice %" PRIu64
                 " cannot be read",
                 partition, slice);
        rc = c->rc;
    }
    stg_sql_finalize(st);
    finish_books(c);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* -- all of it ------------------------------------------------------------- */

#define COUNT_STATE(state) \
    "SELECT count(*) FROM failed_broadcast_logs WHERE state = '" state "'"

static int count(check *c)
{
    const struct {
        const char *question;
        uint64_t *number;
    } all[] = {
        {"SELECT count(*) FROM messages", &c->v->messages},
        {"SELECT count(*) FROM lanes WHERE is_forgotten = 0", &c->v->lanes},
        {"SELECT count(*) FROM parked", &c->v->parked},
        {"SELECT count(*) FROM failed_broadcast_logs", &c->v->letters},
        {COUNT_STATE("dead"), &c->v->dead},
        {COUNT_STATE("replayed"), &c->v->replayed},
        {COUNT_STATE("dropped"), &c->v->dropped},
        {COUNT_STATE("expired"), &c->v->expired},
        {COUNT_STATE("cancelled"), &c->v->cancelled},
        {"SELECT count(*) FROM idempotency_keys", &c->v->keys},
    };
    int rc = SQLITE_OK;

    for (size_t i = 0; i < sizeof all / sizeof *all && rc == SQLITE_OK; i++)
        rc = stg_sql_ask(c->db, all[i].question, all[i].number);
    return rc;
}

/* Tables are not asked where the file itself is damaged. */
static int check_all(check *c)
{
    int rc = check_integrity(c);

    if (rc != SQLITE_OK || c->v->flaws > 0)
        return rc;
    rc = count(c);
    if (rc == SQLITE_OK)
        rc = check_meta(c);
    if (rc == SQLITE_OK)
        rc = ask_questions(c);
    return rc == SQLITE_OK ? check_cursors(c) : rc;
}

static int look(check *c)
{
    int rc = stg_sql_exec(c->db, "BEGIN");

    if (rc == SQLITE_OK)
        rc = check_all(c);
    // A file that is too damaged to be read at all is damaged, too.
    if ((rc & 0xff) == SQLITE_CORRUPT) {
        flaw(c, "the file is damaged: %s",
             sqlite3_errmsg(stg_sqlite_of(c->db)));
        rc = SQLITE_OK;
    }
    if (sqlite3_get_autocommit(stg_sqlite_of(c->db)) == 0)
        stg_sql_exec(c->db, "ROLLBACK");
    return rc;
}

stg_status stg_verify(const char *path, stg_verified *v, stg_flaw_fn *each,
                      void *ctx, stg_error *err)
{
    check c = {.v = v, .each = each, .ctx = ctx};
    stg_status status = STG_OK;
    int rc = stg_sql_open_reader(&c.db, path);

    *v = (stg_verified){.flaws = 0};
    if (rc == SQLITE_OK)
        status = stg_schema_check(c.db, path, false, err);
    if (rc == SQLITE_OK && status == STG_OK)
        rc = look(&c);
    if (rc != SQLITE_OK) {
        stg_sql_words(err, path, "cannot be read", c.db, rc);
        status = STG_IO;
    }
    stg_sql_close(c.db);
    return status;
}
