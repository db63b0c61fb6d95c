/* dead.h - what the parts of `stagger dead` share: its options, and the rows.
 *
 *   dead_rows     the store, opened to be read, and the rows that are asked for
 *   dead_remote   the same of a hub that is asked by HTTP
 *   dead_list     a table, or JSON, or CSV
 *   dead_summary  the same by target, cause and state; and the closing line
 *   dead_show     one dead letter with all that is known of it
 *   dead_export   all of them, whole
 *   dead_change   sent again, or put aside: by the hub that runs
 *
 * A row is read in a moment and printed then: however slowly the output is
 * read, the hub's writer is not held up. */
#ifndef STAGGER_CLI_DEAD_DEAD_H
#define STAGGER_CLI_DEAD_DEAD_H

#include <stagger/outcome.h>

#include "cli/remote.h"
#include "store/cause.h"
#include "store/letter.h"

enum { DEAD_IDS_MAX = 1000 };

typedef struct dead_options {
    const char *store;
    const char *target, *state;          /* NULL: all */
    const char *cause;                   /* as it was given; NULL: all */
    char cause_like[STG_CAUSE_LIKE_MAX]; /* the same for LIKE; a category's
                                            letter for one */
    char since[STG_SQL_TIME_MAX], until[STG_SQL_TIME_MAX]; /* "": all */
    bool is_json, is_csv, is_raw, is_summary;
    uint64_t limit; /* so many, the newest first; 0: all, in their order */
    const char *id; /* of show */

    stg_remote_options remote; /* of list, where it has a hub */

    /* Of replay and drop. */
    bool is_dry_run, is_sure, is_all;
    uint64_t ids[DEAD_IDS_MAX];
    size_t id_count;
} dead_options;

typedef struct dead_rows {
    stg_db *db;
    const dead_options *o;
    char *name; /* of the store, without a password */
    stg_stmt *page;
    uint64_t last; /* the id that was read last */
    int code;      /* after dead_open() has failed: the exit code */
} dead_rows;

/* Complains, and returns false, if there is no store or it cannot be read. */
bool dead_open(dead_rows *r, const dead_options *o);
void dead_close(dead_rows *r);

/* dead_open() for --hub: r->o is set. */
bool dead_open_remote(dead_rows *r);

/* The beginning of a time, as rows have it, whole. Returns text. */
enum { DEAD_TIME_MAX = 25 };
const char *dead_whole_time(const char *beginning, char text[DEAD_TIME_MAX]);

/* Complains about what SQLite said. Returns STG_EXIT_USAGE. */
int dead_fail(const dead_rows *r, int rc);

/* A question about the rows that are asked for: "SELECT ... FROM
 * failed_broadcast_logs" and what comes behind WHERE. */
int dead_ask(dead_rows *r, stg_stmt **st, const char *select,
             const char *behind);

/* When the last of a row's messages was given up: a bulk row takes some for a
 * while. One that an older stagger wrote does not know. */
#define DEAD_NEWEST                                   \
    "CASE WHEN last_position IS NULL THEN created_at" \
    " ELSE coalesce(last_attempt_at, created_at) END"

/* Calls each for every row that is asked for, in the order of ids or, where
 * there is a limit, in the reverse, with the columns of a letter. Between a few rows the store is let go. */
typedef void dead_each(void *ctx, stg_stmt *row);
int dead_read(dead_rows *r, dead_each *each, void *ctx);

/* A line of CSV in the making: quoted where it must be. */
void dead_put_csv(stg_span text, bool is_last);

/* How many they are, by state and cause, in a line. */
int dead_put_sums(dead_rows *r);

int dead_summary(dead_rows *r);
int dead_list(const dead_options *o);
int dead_show(const dead_options *o);
int dead_export(const dead_options *o);
int dead_replay(const dead_options *o);
int dead_drop(const dead_options *o);

#endif
