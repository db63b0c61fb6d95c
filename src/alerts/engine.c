/* All keys, the two heaps that say when something is to be done, and the batch
 * that is being told.
 *
 * A key is in `due` at the time when it is to be told, and in `looks` when time
 * alone changes it (letters leave the window, a calm has lasted). Every change
 * of a key is followed by arrange(), which puts it into both heaps or frees it.
 * A caller must not use a key after arrange().
 *
 * `all` is the key of dead letters of all targets together: never freed, in no
 * list, and counted only with what no target's own key tells. */
#include "alerts/engine.h"

#include <stdlib.h>
#include <string.h>

#include "alerts/key.h"

/* -- keys ------------------------------------------------------------------ */

static stg_alert_rules rules_of(const stg_alert_engine *e,
                                const stg_alert_key *k)
{
    return (stg_alert_rules){.o = &e->o,
                             .threshold = k == e->all ? &e->o.threshold_all
                                                      : &e->o.threshold};
}

/* Where the first key of a lane is; NULL: the table has no such lane. */
static stg_alert_key **first_of(stg_alert_engine *e, uint32_t lane)
{
    if (!stg_alert_is_lane(lane))
        return &e->others;
    return lane < e->lanes ? &e->by_lane[lane] : NULL;
}

static stg_alert_key *find(const stg_alert_engine *e, stg_alert alert,
                           uint32_t lane)
{
    stg_alert_key *k = NULL;

    if (!stg_alert_is_lane(lane))
        k = e->others;
    else if (lane < e->lanes)
        k = e->by_lane[lane];
    while (k != NULL && (k->alert != (uint8_t)alert || k->lane != lane))
        k = k->next;
    return k;
}

/* Lanes are small numbers, so that they index a table. False: there is no
 * memory. */
static bool make_room(stg_alert_engine *e, uint32_t lane)
{
    size_t lanes = e->lanes == 0 ? 64 : e->lanes;
    stg_alert_key **by_lane;

    while (lanes <= lane)
        lanes *= 2;
    by_lane = realloc(e->by_lane, lanes * sizeof(stg_alert_key *));
    if (by_lane == NULL)
        return false;
    e->by_lane = by_lane;
    while (e->lanes < lanes)
        by_lane[e->lanes++] = NULL;
    return true;
}

/* NULL: there is no memory, or STG_ALERT_KEYS_MAX keys. The event is counted in
 * `unkept`, which the next digest states. */
static stg_alert_key *add(stg_alert_engine *e, stg_alert alert, uint32_t lane)
{
    stg_alert_key **first = NULL, *k = NULL;

    if (e->keys < STG_ALERT_KEYS_MAX)
        first = first_of(e, lane);
    if (first == NULL && e->keys < STG_ALERT_KEYS_MAX && make_room(e, lane))
        first = first_of(e, lane);
    if (first != NULL)
        k = stg_alert_key_new(alert, lane);
    if (k == NULL) {
        e->unkept++;
        return NULL;
    }
    k->next = *first;
    *first = k;
    e->keys++;
    return k;
}

/* Takes the key out of its list. */
static void engine_unlink(stg_alert_engine *e, const stg_alert_key *k)
{
    stg_alert_key **at = k->name != NULL ? &e->gone : first_of(e, k->lane);

    while (*at != k)
        at = &(*at)->next;
    *at = k->next;
}

static void remove_key(stg_alert_engine *e, stg_alert_key *k)
{
    engine_unlink(e, k);
    stg_heap_remove(&e->due, &k->due);
    stg_heap_remove(&e->looks, &k->look);
    stg_alert_key_free(k);
    e->keys--;
}

/* Does nothing where the time is the same: a dead letter rarely changes it. */
static void put(stg_heap *heap, stg_node *node, stg_ns at)
{
    if (at == STG_NEVER)
        stg_heap_remove(heap, node);
    else if (!stg_heap_has(node) || node->key != at)
        stg_heap_put(heap, node, at);
}

/* After each change of a key: updates its places in the heaps. A key that is
 * idle is freed, except for `all`. */
static void arrange(stg_alert_engine *e, stg_alert_key *k, stg_ns now)
{
    stg_alert_rules r = rules_of(e, k);

    if (!stg_alert_key_is_idle(k, &e->o, now)) {
        put(&e->due, &k->due, stg_alert_key_due_at(k, &e->o));
        put(&e->looks, &k->look, stg_alert_key_look_at(k, &r));
    } else if (k != e->all) {
        remove_key(e, k);
    } else {
        stg_heap_remove(&e->looks, &k->look);
    }
}

/* -- the engine ------------------------------------------------------------ */

/* A threshold that is off still needs a window, since tallies divide by it. */
static void take_options(stg_alert_engine *e, const stg_alert_options *o)
{
    e->o = *o;
    if (o->threshold.failures == 0)
        e->o.threshold.window = STG_MIN;
    if (o->threshold_all.failures == 0)
        e->o.threshold_all.window = STG_MIN;
}

stg_alert_engine *stg_alert_engine_new(const stg_alert_options *o)
{
    stg_alert_engine *e = calloc(1, sizeof *e);

    if (e == NULL)
        return NULL;
    take_options(e, o);
    e->all = stg_alert_key_new(STG_ALERT_DEAD, STG_ALERT_NO_LANE);
    if (e->all == NULL) {
        free(e);
        return NULL;
    }
    return e;
}

/* Each key but that of all, which may be removed meanwhile. */
typedef void key_fn(stg_alert_engine *e, stg_alert_key *k, stg_ns now);

static void each_of(stg_alert_engine *e, stg_alert_key *k, key_fn *each,
                    stg_ns now)
{
    while (k != NULL) {
        stg_alert_key *next = k->next;

        each(e, k, now);
        k = next;
    }
}

static void each_key(stg_alert_engine *e, key_fn *each, stg_ns now)
{
    each_of(e, e->others, each, now);
    each_of(e, e->gone, each, now);
    for (size_t i = 0; i < e->lanes; i++)
        each_of(e, e->by_lane[i], each, now);
}

static void free_key(stg_alert_engine *e, stg_alert_key *k, stg_ns now)
{
    (void)e;
    (void)now;
    stg_alert_key_free(k);
}

void stg_alert_engine_free(stg_alert_engine *e)
{
    if (e == NULL)
        return;
    each_key(e, free_key, 0);
    stg_alert_key_free(e->all);
    free(e->by_lane);
    free(e);
}

/* -- other options --------------------------------------------------------- */

/* Another window means other slices: the old total goes into the newest one, so
 * that it stays in the window for its whole length. Slightly too long is better
 * than an alert that ends because of a reload. */
static void move_tally(stg_alert_key *k, const stg_alert_threshold *to,
                       stg_ns now)
{
    uint64_t total = k->tally->total;

    *k->tally = (stg_tally){.total = 0};
    if (to->failures > 0)
        stg_tally_add(k->tally, to->window, total, now);
    else
        stg_alert_key_clear(k, now);
}

static void move_key(stg_alert_engine *e, stg_alert_key *k, stg_ns now)
{
    if (k->alert == STG_ALERT_DEAD)
        move_tally(k, &e->o.threshold, now);
}

/* A target's own key has just fired: what it had counted before is taken from
 * `all`, so that one bad target is not told twice. The last `count` letters are
 * still in k only, and `all` never had them. */
static void take_from_all(stg_alert_engine *e, const stg_alert_key *k,
                          const stg_alert_causes *last, uint64_t count,
                          stg_ns now)
{
    stg_alert_rules r = rules_of(e, e->all);
    stg_alert_causes before = k->causes;

    if (e->o.threshold_all.failures == 0)
        return;
    stg_alert_causes_remove(&before, last);
    stg_alert_key_take(e->all, &r, &before, k->tally->total - count);
    arrange(e, e->all, now);
}

/* Applies the thresholds of now to letters that were counted by earlier ones. */
static void engine_judge(stg_alert_engine *e, stg_alert_key *k, stg_ns now)
{
    static const stg_alert_causes none = {.others = 0};
    stg_alert_rules r = rules_of(e, k);

    stg_alert_key_look(k, &r, now);
    if (k->alert == STG_ALERT_DEAD && stg_alert_key_judge(k, &r, now) &&
        k != e->all)
        take_from_all(e, k, &none, 0, now);
    arrange(e, k, now);
}

void stg_alert_engine_change(stg_alert_engine *e, const stg_alert_options *o,
                             stg_ns now)
{
    stg_alert_threshold one = e->o.threshold, all = e->o.threshold_all;

    take_options(e, o);
    if (one.window != e->o.threshold.window || o->threshold.failures == 0)
        each_key(e, move_key, now);
    if (all.window != e->o.threshold_all.window ||
        o->threshold_all.failures == 0)
        move_tally(e->all, &e->o.threshold_all, now);
    each_key(e, engine_judge, now);
    engine_judge(e, e->all, now);
}

/* -- facts ----------------------------------------------------------------- */

static void count_for_all(stg_alert_engine *e, stg_alert_cause cause,
                          uint64_t count, stg_ns now)
{
    stg_alert_rules r = rules_of(e, e->all);

    if (e->o.threshold_all.failures == 0)
        return;
    (void)stg_alert_key_count(e->all, &r, cause, count, now);
    arrange(e, e->all, now);
}

/* Letters count for their target, and for all together while the target's own
 * key does not fire. Without a key (no memory, or too many) they count for all
 * only. */
void stg_alert_engine_dead(stg_alert_engine *e, uint32_t lane,
                           stg_alert_cause cause, uint64_t count, stg_ns now)
{
    stg_alert_key *k = NULL;
    stg_alert_causes last = {.others = 0};
    stg_alert_rules r;

    if (count == 0)
        return;
    if (e->o.threshold.failures > 0)
        k = find(e, STG_ALERT_DEAD, lane);
    if (k == NULL && e->o.threshold.failures > 0)
        k = add(e, STG_ALERT_DEAD, lane);
    if (k == NULL) {
        count_for_all(e, cause, count, now);
        return;
    }
    r = rules_of(e, k);
    stg_alert_causes_add(&last, cause, count);
    if (stg_alert_key_count(k, &r, cause, count, now))
        take_from_all(e, k, &last, count, now);
    else if (!k->is_on)
        count_for_all(e, cause, count, now);
    arrange(e, k, now);
}

void stg_alert_engine_raise(stg_alert_engine *e, stg_alert alert, uint32_t lane,
                            const stg_alert_detail *detail, stg_ns now)
{
    stg_alert_key *k = find(e, alert, lane);

    if (k == NULL)
        k = add(e, alert, lane);
    if (k == NULL)
        return;
    stg_alert_key_raise(k, detail, now);
    arrange(e, k, now);
}

void stg_alert_engine_clear(stg_alert_engine *e, stg_alert alert, uint32_t lane,
                            stg_ns now)
{
    stg_alert_key *k = find(e, alert, lane);

    if (k == NULL)
        return;
    stg_alert_key_clear(k, now);
    arrange(e, k, now);
}

bool stg_alert_engine_is_raised(const stg_alert_engine *e, stg_alert alert,
                                uint32_t lane)
{
    const stg_alert_key *k = find(e, alert, lane);

    return k != NULL && k->is_on;
}

/* -- targets that leave ----------------------------------------------------- */

static void engine_calm(stg_alert_engine *e, stg_alert_key *k, stg_ns now)
{
    stg_alert_key_leave(k, now);
    arrange(e, k, now);
}

void stg_alert_engine_leave(stg_alert_engine *e, uint32_t lane, stg_ns now)
{
    if (lane < e->lanes)
        each_of(e, e->by_lane[lane], engine_calm, now);
}

/* From its lane's list into that of the targets that are gone. */
static void engine_part(stg_alert_engine *e, stg_alert_key *k, const char *name)
{
    char *copy = k->is_live && k->is_told ? strdup(name) : NULL;

    if (copy == NULL) {
        remove_key(e, k);
        return;
    }
    engine_unlink(e, k);
    k->name = copy;
    k->next = e->gone;
    e->gone = k;
}

void stg_alert_engine_forget(stg_alert_engine *e, uint32_t lane,
                             const char *name, stg_ns now)
{
    while (lane < e->lanes && e->by_lane[lane] != NULL)
        engine_part(e, e->by_lane[lane], name);
    each_of(e, e->gone, engine_calm, now);
}

bool stg_alert_engine_has_gone(const stg_alert_engine *e)
{
    return e->gone != NULL;
}

/* A receiver of events knows an alert by its target's name: the end of the old
 * target's must not close what the new target has opened. */
void stg_alert_engine_return(stg_alert_engine *e, uint32_t lane,
                             const char *name, stg_ns now)
{
    stg_alert_key *next;

    for (stg_alert_key *k = e->gone; k != NULL; k = next) {
        next = k->next;
        if (strcmp(k->name, name) != 0 || lane >= e->lanes ||
            find(e, (stg_alert)k->alert, lane) != NULL)
            continue;
        engine_unlink(e, k);
        free(k->name);
        k->name = NULL;
        k->lane = lane;
        k->next = e->by_lane[lane];
        e->by_lane[lane] = k;
        arrange(e, k, now);
    }
}

/* -- what is to be told ---------------------------------------------------- */

/* `group-wait` lets what comes at the same time go in the same digest, and
 * `min-interval` bounds digests whatever happens. */
static stg_ns digest_at(const stg_alert_engine *e)
{
    stg_ns at;

    if (e->due.top == NULL)
        return STG_NEVER;
    at = stg_ns_add(e->due.top->key, e->o.group_wait);
    return e->has_told
               ? stg_ns_max(at, stg_ns_add(e->told_at, e->o.min_interval))
               : at;
}

stg_ns stg_alert_engine_free_at(const stg_alert_engine *e)
{
    return e->has_told ? stg_ns_add(e->told_at, e->o.min_interval) : 0;
}

stg_ns stg_alert_engine_wake_at(const stg_alert_engine *e)
{
    stg_ns look_at = e->looks.top != NULL ? e->looks.top->key : STG_NEVER;

    return stg_ns_min(look_at, digest_at(e));
}

static void look(stg_alert_engine *e, stg_ns now)
{
    while (e->looks.top != NULL && e->looks.top->key <= now) {
        stg_alert_key *k = STG_HEAP_HOLDER(e->looks.top, stg_alert_key, look);
        stg_alert_rules r = rules_of(e, k);

        stg_alert_key_look(k, &r, now);
        arrange(e, k, now);
    }
}

/* Fills the batch, which holds until stg_alert_engine_settle(). Keys in it are
 * in no `due` heap. */
bool stg_alert_engine_gather(stg_alert_engine *e, bool is_last, stg_ns now)
{
    look(e, now);
    e->batch = NULL;
    if (!is_last && digest_at(e) > now)
        return false;
    while (e->due.top != NULL && e->due.top->key <= now) {
        stg_alert_key *k = STG_HEAP_HOLDER(e->due.top, stg_alert_key, due);

        stg_heap_remove(&e->due, &k->due);
        k->batch = e->batch;
        e->batch = k;
    }
    return e->batch != NULL;
}

/* Into the list in its order, if it has a place there. */
static size_t insert_share(stg_alert_share *shares, size_t count, size_t room,
                           stg_alert_share s)
{
    size_t i = count;

    while (i > 0 && shares[i - 1].count < s.count)
        i--;
    if (i == room)
        return count;
    if (count < room)
        count++;
    memmove(shares + i + 1, shares + i, (count - i - 1) * sizeof *shares);
    shares[i] = s;
    return count;
}

/* Visits every lane: called only for a digest that has `all` in it. */
size_t stg_alert_engine_shares(const stg_alert_engine *e,
                               stg_alert_share *shares, size_t room)
{
    size_t count = 0;

    for (uint32_t lane = 0; lane < e->lanes; lane++) {
        const stg_alert_key *k = find(e, STG_ALERT_DEAD, lane);

        if (k != NULL && !k->is_on && k->tally->total > 0)
            count = insert_share(shares, count, room,
                                 (stg_alert_share){lane, k->tally->total});
    }
    return count;
}

/* The batch was told. arrange() may free a key, so that the next one is read
 * before. */
void stg_alert_engine_settle(stg_alert_engine *e, stg_ns now)
{
    stg_alert_key *next;

    for (stg_alert_key *k = e->batch; k != NULL; k = next) {
        next = k->batch;
        stg_alert_key_settle(k, &e->o, now);
        arrange(e, k, now);
    }
    e->batch = NULL;
    e->has_told = true;
    e->told_at = now;
}

/* -- a look ---------------------------------------------------------------- */

static void look_at_lane(const stg_alert_key *k, stg_alert_engine_view *view)
{
    for (; k != NULL; k = k->next)
        view->firing[k->alert] += k->is_on;
}

void stg_alert_engine_look(const stg_alert_engine *e,
                           stg_alert_engine_view *view)
{
    *view = (stg_alert_engine_view){.keys = e->keys, .unkept = e->unkept};
    look_at_lane(e->all, view);
    look_at_lane(e->others, view);
    for (size_t i = 0; i < e->lanes; i++)
        look_at_lane(e->by_lane[i], view);
}
