/* Changes of targets that other hubs were asked for: pause, resume, forget; and
 * targets that were added, changed or removed by calls.
 *
 * Each hub that shares the store looks for them 2 s after it did so last, and
 * compares them with what it knows. The rows of targets are read only when
 * their number or the newest version is another than it was. The trap is an
 * answer that is older than a change of this hub's own: s->notes tells whether
 * one was made meanwhile, and then the answer is dropped. */
#include <stdlib.h>

#include "store/internal.h"
#include "store/target_rows.h"

static const uint64_t pause_time = 2 * STG_S;

/* A lane that is paused, or forgotten. */
typedef struct marked {
    uint32_t number;
    bool is_forgotten;
    stg_pause pause;
} marked;

typedef struct looking {
    stg_store_request request;
    uint64_t notes; /* s->notes when it was asked */
    marked *all;    /* by number */
    size_t count, room;
    stg_target_mark known, mark; /* what was compared last, and what is there */
    stg_target_table targets;    /* read if these differ */
} looking;

static looking *looking_of(stg_store_request *e)
{
    return STG_HOLDER(&e->link, looking, request.link);
}

/* -- on the query thread -------------------------------------------------- */

static int add(looking *l, stg_stmt *st)
{
    if (l->count == l->room) {
        size_t room = l->room == 0 ? 16 : 2 * l->room;
        marked *all = realloc(l->all, room * sizeof *all);

        if (all == NULL)
            return SQLITE_NOMEM;
        l->all = all;
        l->room = room;
    }
    l->all[l->count++] = (marked){.number = (uint32_t)stg_sql_column(st, 0),
                                  .is_forgotten = stg_sql_column(st, 1) != 0,
                                  .pause = (stg_pause)stg_sql_column(st, 2)};
    return SQLITE_OK;
}

static bool has_changed(const looking *l)
{
    return l->mark.count != l->known.count || l->mark.newest != l->known.newest;
}

static int look_lanes(stg_store_request *e, stg_db *db)
{
    looking *l = looking_of(e);
    stg_stmt *st;
    int rc =
        stg_sql_prepare_once(db, &st,
                             "SELECT number, is_forgotten, pause FROM lanes"
                             " WHERE pause <> 0 OR is_forgotten = 1"
                             " ORDER BY number");

    l->count = 0;
    while (rc == SQLITE_OK && (rc = stg_sql_step(st)) == SQLITE_ROW)
        rc = add(l, st);
    stg_sql_finalize(st);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The mark is read before the rows, in a statement of its own: a row that
 * changes in between is read now, and again with the next look. */
static int look(stg_store_request *e, stg_db *db)
{
    looking *l = looking_of(e);
    int rc = look_lanes(e, db);

    stg_target_table_free(&l->targets);
    if (rc == SQLITE_OK)
        rc = stg_target_mark_read(&l->mark, db);
    if (rc == SQLITE_OK && has_changed(l))
        rc = stg_target_table_read(&l->targets, db);
    return rc;
}

/* -- on the loop ----------------------------------------------------------- */

static void forget(stg_store *s, uint32_t number)
{
    const stg_store_options *o = &s->o;

    // While something of it is here its name is not free.
    if (o->forgotten == NULL || o->forgotten(o->ctx, number))
        stg_lanes_forget(&s->lanes, number);
}

/* A lane without a mark is neither paused nor forgotten: a resume takes the
 * mark away. */
static void compare_lane(stg_store *s, uint32_t number, const marked *m)
{
    stg_lane_name *lane = &s->lanes.names[number];
    stg_pause pause = m == NULL ? STG_PAUSE_NONE : m->pause;

    if (lane->name == NULL || lane->is_forgotten)
        return;
    if (m != NULL && m->is_forgotten) {
        forget(s, number);
        return;
    }
    if (pause == lane->pause)
        return;
    lane->pause = pause;
    if (s->o.paused != NULL)
        s->o.paused(s->o.ctx, number, pause);
}

/* Both lists rise by number, and are walked together. */
static void compare(stg_store *s, const looking *l)
{
    size_t at = 0;

    for (uint32_t i = 0; i < s->lanes.count; i++) {
        while (at < l->count && l->all[at].number < i)
            at++;
        compare_lane(
            s, i, at < l->count && l->all[at].number == i ? &l->all[at] : NULL);
    }
}

static void have_looked(stg_store_request *e)
{
    const looking *l = looking_of(e);
    stg_store *s = e->s;

    if (s->closed != NULL)
        return;
    // Notes that were made meanwhile may be newer than those seen.
    if (l->notes == s->notes) {
        compare(s, l);
        if (has_changed(l) && s->o.targets != NULL)
            s->o.targets(s->o.ctx, l->targets.rows, l->targets.count);
        s->targets_seen = l->mark;
    }
    stg_others_watch(s);
}

static void free_looking(stg_store_request *e)
{
    looking *l = looking_of(e);

    stg_target_table_free(&l->targets);
    free(l->all);
    free(l);
}

void stg_others_watch(stg_store *s)
{
    looking *l = calloc(1, sizeof *l);

    if (l == NULL) {
        stg_store_lack_memory(s);
        return;
    }
    l->request.look = look;
    l->request.tell = have_looked;
    l->request.free = free_looking;
    l->request.at = uv_hrtime() + pause_time;
    l->notes = s->notes;
    l->known = s->targets_seen;
    stg_store_request_send(s, &l->request);
}
