/* Numbers for new lanes, and other URLs for known ones: of all that a call names,
 * or of none.
 *
 * Names and numbers of lanes are the loop's own. In a file a new number is given
 * here, and the writer writes all of them with its next transaction. Hubs that
 * share a database must agree on the numbers, so there the database gives them,
 * in one transaction, and the loop waits for its answer: a trap for whoever asks
 * often. */
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "http/url.h"
#include "store/internal.h"
#include "store/postgres/open.h"

/* A lane, and what was made for it. */
typedef struct new_lane {
    stg_lane_begin *lane;
    char *url;                 /* masked; NULL: given to the store's names */
    stg_lane_request *request; /* the writer's; NULL: nothing to write */
    stg_pause pause;           /* noted in a database */
    bool is_new;               /* the store has no lane of the name */
    bool is_asked;             /* new, or its URL is another one */
    bool is_set;               /* new, and among the store's names by now */
} new_lane;

typedef struct stg_lane_beginning {
    stg_store *store;
    new_lane *all;
    size_t count;
    stg_lane_ready_fn *ready;
    void *ctx;
    stg_error *err;
    stg_status status;
} beginning;

static void lane_begin_free_request(stg_store_request *e)
{
    free(STG_HOLDER(&e->link, stg_lane_request, request.link));
}

static bool lane_begin_refuse_memory(beginning *b)
{
    b->status = stg_hub_refuse(b->err, STG_IO, "out of memory");
    return false;
}

/* Finds out what is to be asked for the lane. Secret parts of its URL are masked
 * before anything compares or stores them. */
static bool lane_begin_look(beginning *b, new_lane *n, stg_lane_begin *lane)
{
    const stg_lanes *l = &b->store->lanes;

    n->lane = lane;
    lane->number = stg_lanes_find(l, lane->name);
    n->is_new = lane->number == UINT32_MAX;
    n->url = stg_url_mask(lane->url);
    if (n->url == NULL)
        return lane_begin_refuse_memory(b);
    n->is_asked = n->is_new || strcmp(l->names[lane->number].url, n->url) != 0;
    return true;
}

static bool lane_begin_look_all(beginning *b, stg_lane_begin *lanes)
{
    for (size_t i = 0; i < b->count; i++)
        if (!lane_begin_look(b, &b->all[i], &lanes[i]))
            return false;
    return true;
}

/* Puts the new ones among the store's names, and asks the caller. */
static bool lane_begin_set(beginning *b)
{
    stg_lanes *l = &b->store->lanes;

    for (size_t i = 0; i < b->count; i++) {
        new_lane *n = &b->all[i];
        uint32_t number = n->lane->number;

        if (!n->is_new)
            continue;
        n->is_set = number >= l->count || l->names[number].name == NULL;
        if (!stg_lanes_set(l, number, n->lane->name, n->url)) {
            n->is_set = false;
            return lane_begin_refuse_memory(b);
        }
        l->names[number].pause = n->pause;
    }
    if (b->ready != NULL)
        b->status = b->ready(b->ctx, b->err);
    return b->status == STG_OK;
}

static void lane_begin_unset(beginning *b)
{
    for (size_t i = b->count; i-- > 0;)
        if (b->all[i].is_set)
            stg_lanes_drop(&b->store->lanes, b->all[i].lane->number);
}

/* -- a file ---------------------------------------------------------------- */

/* Gives numbers behind those there are. */
static bool lane_begin_number(beginning *b)
{
    uint32_t next = b->store->lanes.count;

    for (size_t i = 0; i < b->count; i++) {
        stg_lane_begin *lane = b->all[i].lane;

        if (!b->all[i].is_new)
            continue;
        if (next >= STG_LANES_MAX) {
            b->status = stg_hub_refuse(
                b->err, STG_INVALID,
                "target %s: the store has had %d targets, more have no "
                "number; begin with a new store",
                lane->name, STG_LANES_MAX);
            return false;
        }
        lane->number = next++;
    }
    return true;
}

static bool lane_begin_make_requests(beginning *b)
{
    for (size_t i = 0; i < b->count; i++) {
        new_lane *n = &b->all[i];
        size_t size = strlen(n->url) + 1;

        if (!n->is_asked)
            continue;
        n->request = calloc(1, sizeof *n->request + size);
        if (n->request == NULL)
            return lane_begin_refuse_memory(b);
        n->request->request.free = lane_begin_free_request;
        n->request->number = n->lane->number;
        memcpy(n->request->url, n->url, size);
    }
    return true;
}

/* Gives the lanes to the writer, all under one lock, which writes them before the
 * first row that names one: stg_writer_begin() does so in whatever transaction
 * comes next. No answer comes. */
static void lane_begin_send(beginning *b)
{
    stg_store *s = b->store;

    uv_mutex_lock(&s->in.lock);
    for (size_t i = 0; i < b->count; i++) {
        new_lane *n = &b->all[i];

        if (n->request == NULL)
            continue;
        n->request->name = s->lanes.names[n->lane->number].name;
        stg_list_push(&s->in.lanes, &n->request->request.link);
        n->request = NULL;
    }
    uv_cond_signal(&s->in.writer_wake);
    uv_mutex_unlock(&s->in.lock);
}

static bool lane_begin_in_file(beginning *b)
{
    if (!lane_begin_number(b) || !lane_begin_make_requests(b) ||
        !lane_begin_set(b))
        return false;
    lane_begin_send(b);
    return true;
}

/* -- a database ------------------------------------------------------------ */

static bool lane_begin_refuse_database(beginning *b, int rc)
{
    const char *name = b->count > 0 ? b->all[0].lane->name : "";

    if (b->status == STG_OK)
        b->status = stg_hub_refuse(
            b->err, STG_IO,
            rc == SQLITE_TOOBIG
                ? "target %s: the store has had as many targets as it may, more "
                  "have no number"
                : "target %s: the store does not answer, and a number comes from "
                  "there; try it again",
            name);
    return false;
}

static int lane_begin_ask(void *ctx, stg_db *db)
{
    beginning *b = ctx;
    int rc = SQLITE_OK;

    for (size_t i = 0; rc == SQLITE_OK && i < b->count; i++) {
        new_lane *n = &b->all[i];
        uint32_t number;

        if (!n->is_asked)
            continue;
        rc = stg_shared_lanes_find(db, n->lane->name, n->url, &number,
                                   &n->pause);
        if (rc != SQLITE_OK)
            break;
        // Another hub may have forgotten the name and begun it again.
        n->is_new |= number != n->lane->number;
        n->lane->number = number;
    }
    return rc;
}

static bool lane_begin_have_asked(void *ctx)
{
    return lane_begin_set(ctx);
}

/* Blocks the loop for one transaction on a connection of its own, which is made
 * when it is first needed. While the server is known to be away it is not
 * tried. */
static bool lane_begin_in_database(beginning *b)
{
    stg_store *s = b->store;
    bool is_asked = false;
    int rc = SQLITE_OK;

    for (size_t i = 0; i < b->count; i++)
        is_asked |= b->all[i].is_asked;
    if (!is_asked)
        return lane_begin_set(b);
    if (s->is_away)
        rc = STG_SQL_AWAY;
    if (rc == SQLITE_OK && s->lane_db == NULL)
        rc = stg_pg_open_another(&s->lane_db, s->url);
    if (rc == SQLITE_OK)
        rc = stg_shared_lanes_transact(s->lane_db, b->count, lane_begin_ask,
                                       lane_begin_have_asked, b);
    return rc == SQLITE_OK || lane_begin_refuse_database(b, rc);
}

/* -- the calls ------------------------------------------------------------- */

/* URLs of known lanes cannot fail to change: the masked ones are given. */
static void lane_begin_take_urls(beginning *b)
{
    for (size_t i = 0; i < b->count; i++) {
        new_lane *n = &b->all[i];
        stg_lane_name *known = &b->store->lanes.names[n->lane->number];

        if (n->is_new || !n->is_asked)
            continue;
        free(known->url);
        known->url = n->url;
        n->url = NULL;
    }
}

static void lane_begin_free(beginning *b)
{
    for (size_t i = 0; i < b->count; i++) {
        free(b->all[i].url);
        free(b->all[i].request);
    }
    free(b->all);
}

stg_status stg_store_begin_lanes(stg_store *s, stg_lane_begin *lanes,
                                 size_t count, stg_lane_ready_fn *ready,
                                 void *ctx, stg_error *err)
{
    beginning b = {.store = s,
                   .all = calloc(count + 1, sizeof *b.all),
                   .count = count,
                   .ready = ready,
                   .ctx = ctx,
                   .err = err};

    if (b.all == NULL)
        return stg_store_refuse_memory(s, err);
    if (!lane_begin_look_all(&b, lanes) ||
        !(s->url != NULL ? lane_begin_in_database(&b) : lane_begin_in_file(&b)))
        lane_begin_unset(&b);
    else
        lane_begin_take_urls(&b);
    lane_begin_free(&b);
    return b.status;
}

stg_status stg_store_lane(stg_store *s, const char *name, const char *url,
                          uint32_t *lane, stg_error *err)
{
    stg_lane_begin one = {.name = name, .url = url};
    stg_status status = stg_store_begin_lanes(s, &one, 1, NULL, NULL, err);

    *lane = one.number;
    return status;
}
