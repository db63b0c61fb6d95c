#include "cli/demo/audit.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { REFUSED_ROWS = 3 /* in a row, and the breaker of `broadcast` opens */ };

typedef struct audit {
    const demo_audit *of;
    sqlite3 *db;
    bool holds;
} audit;

/* The first number of the first row; a question that fails has no answer that
 * could be right. */
static uint64_t ask(const audit *a, const char *question, const char *name)
{
    sqlite3_stmt *st = NULL;
    uint64_t number = UINT64_MAX;

    if (sqlite3_prepare_v2(a->db, question, -1, &st, NULL) == SQLITE_OK &&
        sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        number = (uint64_t)sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return number;
}

static uint64_t ask_cursor(const audit *a, const char *what, const char *name)
{
    char question[320];

    snprintf(question, sizeof question,
             "SELECT coalesce(json_extract(c.value, '$.%s'), 0) FROM cursors, "
             "json_each(cursors.lanes) c JOIN lanes ON lanes.number = c.key "
             "WHERE lanes.name = ?",
             what);
    return ask(a, question, name);
}

__attribute__((format(printf, 3, 4))) static void check(audit *a, bool holds,
                                                        const char *format, ...)
{
    va_list args;

    printf("  %-5s ", holds ? "ok" : "WRONG");
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    fputc('\n', stdout);
    a->holds = a->holds && holds;
}

/* -- what became of it ----------------------------------------------------- */

static void sum_up(const audit *a)
{
    uint64_t delivered = 0, retried = 0, dead = 0;
    stg_target_view v;

    for (size_t i = 0; stg_hub_look_target(a->of->hub, i, &v) == STG_OK; i++) {
        delivered += v.lane.delivered;
        retried += v.lane.retries;
        dead += v.lane.dead;
    }
    printf("\n%" PRIu64 " messages to %d targets: %" PRIu64
           " delivered, "
           "%" PRIu64 " retries, %" PRIu64 " dead letters\n",
           a->of->messages, DEMO_SINKS, delivered, retried, dead);
}

static void list_causes(const audit *a)
{
    static const char question[] =
        "SELECT target, coalesce(cause, '-'), sum(count), "
        "last_position IS NOT NULL, count(*) FROM failed_broadcast_logs "
        "GROUP BY 1, 2, 4 ORDER BY 1, 4, 2";
    static const char *const words[2][2] = {
        {"row", "rows"},
        {"bulk row, never tried", "bulk rows, never tried"},
    };
    sqlite3_stmt *st = NULL;

    printf("\nDead letters, in failed_broadcast_logs:\n");
    if (sqlite3_prepare_v2(a->db, question, -1, &st, NULL) == SQLITE_OK)
        while (sqlite3_step(st) == SQLITE_ROW) {
            printf("  %-11s %-19s %6lld in %lld %s\n",
                   (const char *)sqlite3_column_text(st, 0),
                   (const char *)sqlite3_column_text(st, 1),
                   (long long)sqlite3_column_int64(st, 2),
                   (long long)sqlite3_column_int64(st, 4),
                   words[sqlite3_column_int(st, 3) != 0]
                        [sqlite3_column_int64(st, 4) != 1]);
        }
    sqlite3_finalize(st);
}

/* -- what has to hold ------------------------------------------------------ */

/* routed = delivered + dead + cancelled + parked, in the store and in flow, and
 * in both the same; and dead counts rows. */
static bool balances(const audit *a, const stg_target_view *v)
{
    const stg_lane_view *l = &v->lane;
    uint64_t routed = ask_cursor(a, "routed", v->name);
    uint64_t delivered = ask_cursor(a, "delivered", v->name);
    uint64_t dead = ask_cursor(a, "dead", v->name);
    uint64_t cancelled = ask_cursor(a, "cancelled", v->name);
    uint64_t parked = ask(a,
                          "SELECT count(*) FROM parked JOIN lanes ON "
                          "lane = number WHERE name = ?",
                          v->name);
    uint64_t rows = ask(a,
                        "SELECT coalesce(sum(count), 0) FROM "
                        "failed_broadcast_logs WHERE target = ? AND "
                        "state IN ('dead', 'dropped', 'expired')",
                        v->name);

    return routed == delivered + dead + cancelled + parked && dead == rows &&
           l->routed == routed && l->delivered == delivered &&
           l->dead == dead && l->cancelled == cancelled &&
           l->parked == parked && l->waiting == 0 && l->in_flight == 0;
}

static void check_books(audit *a)
{
    bool is_all = true, is_balanced = true, is_over = true;
    stg_target_view v;

    for (size_t i = 0; stg_hub_look_target(a->of->hub, i, &v) == STG_OK; i++) {
        is_all = is_all && v.lane.routed == a->of->messages;
        is_balanced = is_balanced && balances(a, &v);
        is_over = is_over && v.lane.delivered + v.lane.dead == v.lane.routed;
    }
    check(a, a->of->is_clean, "the hub ended cleanly");
    check(a, is_all, "every target was handed every message");
    check(a, is_over, "each of them was delivered, or is a dead letter");
    check(a, is_balanced,
          "the books balance, and the store says what the hub says");
}

static void check_receipts(audit *a)
{
    bool is_same = true;
    uint64_t duplicates = 0;
    stg_target_view v;

    for (int i = 0; i < DEMO_DOWN; i++) {
        if (stg_hub_look_target(a->of->hub, (size_t)i, &v) != STG_OK)
            return;
        is_same = is_same && stg_demo_sinks_count(a->of->sinks, i, "200") ==
                                 v.lane.delivered;
        duplicates += stg_demo_sinks_count(a->of->sinks, i, "duplicates");
    }
    check(a, is_same, "the targets took what was delivered, no more, no less");
    check(a, duplicates == 0, "and nothing twice");
}

static void check_down(audit *a)
{
    uint64_t rows = ask(a,
                        "SELECT count(*) FROM failed_broadcast_logs WHERE "
                        "target = ? AND last_position IS NULL AND attempts = 1 "
                        "AND cause = 'CONNECTION_REFUSED'",
                        "down");
    uint64_t ranges = ask(a,
                          "SELECT count(*) FROM failed_broadcast_logs WHERE "
                          "target = ? AND last_position IS NOT NULL",
                          "down");
    uint64_t range = ask(a,
                         "SELECT sum(count) FROM failed_broadcast_logs WHERE "
                         "target = ? AND last_position IS NOT NULL",
                         "down");

    check(a,
          rows == REFUSED_ROWS && ranges == 1 &&
              rows + range == a->of->messages,
          "what is down was tried %d times; the rest is one bulk row",
          REFUSED_ROWS);
}

bool stg_demo_audit(const demo_audit *of)
{
    audit a = {.of = of, .holds = true};

    if (sqlite3_open_v2(of->store, &a.db, SQLITE_OPEN_READONLY, NULL) !=
        SQLITE_OK) {
        printf("cannot read the store: %s\n", sqlite3_errmsg(a.db));
        sqlite3_close(a.db);
        return false;
    }
    sum_up(&a);
    list_causes(&a);
    printf("\nChecked:\n");
    check_books(&a);
    check_receipts(&a);
    check_down(&a);
    sqlite3_close(a.db);
    return a.holds;
}
