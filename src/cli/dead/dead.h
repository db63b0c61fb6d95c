/* dead.h - what the parts of `stagger dead` share: its options, and the rows.
 *
 *   dead_rows     the rows that are asked for, of a hub or of a store
 *   dead_list     a table, or JSON, or CSV
 *   dead_summary  the same by target, cause and state; and the closing line
 *   dead_show     one dead letter with all that is known of it
 *   dead_export   all of them, whole
 *   dead_change   sent again, or put aside: by the hub that runs
 *
 * All of them ask the hub that runs, by HTTP. Those that only read can read its
 * store instead, where --store names it: rows are read in a moment and printed
 * then, so that a slow reader of the output never holds the hub's writer up. */
#ifndef STAGGER_CLI_DEAD_DEAD_H
#define STAGGER_CLI_DEAD_DEAD_H

#include <stagger/outcome.h>

#include "base/hash.h"
#include "cli/remote.h"
#include "store/cause.h"
#include "store/query.h"

enum { DEAD_IDS_MAX = 1000 };

/* The last option that says one counts. */
typedef enum dead_form { DEAD_TEXT, DEAD_JSON, DEAD_CSV, DEAD_RAW } dead_form;

typedef struct dead_options {
    const char *store;        /* NULL: the hub is asked */
    stg_letter_filter filter; /* which; its ids are not used */
    stg_cause cause;          /* that the filter is for */
    const char *cause_word;   /* as it was given; NULL: all */
    dead_form form;
    bool is_summary;
    uint64_t limit; /* so many, the newest first; 0: all, in their order */
    const char *id; /* the argument of `show` */

    stg_remote_options remote;

    /* Of replay and drop. */
    bool is_dry_run, is_sure, is_all;
    uint64_t ids[DEAD_IDS_MAX];
    size_t id_count;
} dead_options;

typedef struct dead_rows {
    const dead_options *o;
    // Only with a store:
    stg_db *db;
    stg_filter filter;
    stg_found found, whole; /* of the page */
    char *name;             /* of the store, without a password */
    // Only with a hub:
    stg_remote *remote;
    json_t *letters; /* all of them, the newest first */
    json_t *one;     /* that was read last, whole */
    // With both:
    uint64_t count; /* letters that dead_read() has given */
} dead_rows;

/* Returns 0, or complains, if there is no store or no hub, or it cannot be read:
 * the exit code. dead_close() is due in either case. */
int dead_open(dead_rows *r, const dead_options *o);
void dead_close(dead_rows *r);

/* Complains about what SQLite said, or the hub (SQLITE_IOERR). Returns the exit
 * code. */
int dead_fail(const dead_rows *r, int rc);

typedef void dead_each(void *ctx, const stg_letter *l);

/* Calls each for every letter that is asked for, in the order of ids, or for the
 * newest `limit` of them in the reverse. Meanwhile the store is let go. */
int dead_read(dead_rows *r, uint64_t limit, bool is_whole, dead_each *each,
              void *ctx);

/* Reads one, whole; l->id is 0 if there is none. It is lent until the next. */
int dead_read_one(dead_rows *r, uint64_t id, stg_letter *l);

/* A name that no target and no dead letter has is a slip: complains of it, with
 * the name that the hub takes it for. Where it cannot be known the name is none.
 * Both return the exit code. */
int dead_check_target(dead_rows *r);
int dead_check_target_of(stg_remote *r, const char *target);

/* The position of the oldest message in the queue; UINT64_MAX: it has none.
 * False: it is not known. */
bool dead_first_kept(dead_rows *r, uint64_t *position);

/* A column that is no bytes, as text; "": there is nothing to say. */
enum { DEAD_NUMBER_MAX = 24 };
const char *dead_text(const stg_letter *l, stg_letter_column column,
                      char number[DEAD_NUMBER_MAX]);

static inline const char *dead_or_none(const char *text)
{
    return text == NULL ? "" : text;
}

/* A line of CSV in the making: quoted where it must be. */
void dead_put_csv(stg_span text, bool is_last);

/* -- how many they are ------------------------------------------------------- */

/* Those of a target, cause and state. */
typedef struct dead_group {
    const char *target, *cause, *state; /* NULL: nothing to say */
    uint64_t letters, messages;
    char *first, *last; /* when the first and the last were given up */
} dead_group;

typedef struct dead_groups {
    dead_group *at;
    size_t count, room;
    stg_text_table numbers; /* by target, cause and state */
    stg_arena texts;
    uint64_t letters, messages;
} dead_groups;

/* Counts a letter. */
void dead_groups_add(dead_groups *g, const stg_letter *l);
void dead_groups_free(dead_groups *g);

/* By state and cause, in a line. False: there was no memory. */
bool dead_put_sums(const dead_rows *r, dead_groups *g);

/* Prints the groups, and in a table the line behind them. */
bool dead_summary(const dead_rows *r, dead_groups *g);

int dead_list(const dead_options *o);
int dead_show(const dead_options *o);
int dead_export(const dead_options *o);
int dead_replay(const dead_options *o);
int dead_drop(const dead_options *o);

#endif
