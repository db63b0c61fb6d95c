/* All receivers of a hub: those that its options have, and those of options
 * before that still send something.
 *
 * Options change in two steps. stg_alert_receivers_make() does all that can
 * fail, and reserves room in `ending` for every receiver that may have to end;
 * stg_alert_receivers_replace() cannot fail. A receiver is its name: what waits
 * in one goes on in the new one of the same name, and what it counted is added
 * to `gone`, so that totals never fall.
 *
 * A receiver in `ending` calls back when it is idle, perhaps from within
 * stg_alert_receiver_cancel(), and is freed then. */
#include "alerts/receiver.h"

#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"

static void add_counts(stg_alert_receiver_view *to, const stg_alert_receiver *s)
{
    stg_alert_receiver_view v;

    stg_alert_receiver_look(s, &v);
    to->sent += v.sent;
    to->failed += v.failed;
    to->given_up += v.given_up;
    to->merged += v.merged;
    to->waiting += v.waiting;
}

static void free_receivers(stg_alert_receiver **all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        stg_alert_receiver_free(all[i]);
    free(all);
}

void stg_alert_receivers_drop(stg_alert_receiver **made, size_t count)
{
    free_receivers(made, count);
}

/* -- other options --------------------------------------------------------- */

static bool make_room(stg_alert_receivers *r)
{
    stg_alert_receiver **ending =
        realloc(r->ending, (r->ending_count + r->count + 1) *
                               sizeof(stg_alert_receiver *));

    if (ending != NULL)
        r->ending = ending;
    return ending != NULL;
}

/* All of them or none: a reload with a mistake leaves those that are there. */
stg_status stg_alert_receivers_make(stg_alert_receivers *r, stg_alert_world *w,
                                    const stg_alert_options *o,
                                    stg_alert_receiver ***made, stg_error *err)
{
    stg_alert_receiver **all =
        calloc(o->receiver_count + 1, sizeof(stg_alert_receiver *));
    stg_status status = STG_OK;

    if (all == NULL || !make_room(r)) {
        free(all);
        return stg_hub_refuse(err, STG_IO,
                              "alerts: there is no memory for them");
    }
    for (size_t i = 0; i < o->receiver_count && status == STG_OK; i++)
        status = stg_alert_receiver_new(&all[i], w, &o->receivers[i], err);
    if (status != STG_OK) {
        free_receivers(all, o->receiver_count);
        return status;
    }
    *made = all;
    return STG_OK;
}

static stg_alert_receiver *heir_of(const stg_alert_receivers *r,
                                   const stg_alert_receiver *s)
{
    const char *name = stg_alert_receiver_options_of(s)->name;

    for (size_t i = 0; i < r->count; i++)
        if (strcmp(stg_alert_receiver_options_of(r->all[i])->name, name) == 0)
            return r->all[i];
    return NULL;
}

/* Frees one that is idle. Else it is in `ending` until it is; true. */
static bool retire(stg_alert_receivers *r, stg_alert_receiver *s)
{
    if (!stg_alert_receiver_is_idle(s)) {
        r->ending[r->ending_count++] = s;
        return true;
    }
    add_counts(&r->gone, s);
    stg_alert_receiver_free(s);
    return false;
}

void stg_alert_receivers_replace(stg_alert_receivers *r,
                                 stg_alert_receiver **made, size_t count)
{
    stg_alert_receiver **old = r->all;
    size_t old_count = r->count;

    r->all = made;
    r->count = count;
    for (size_t i = 0; i < old_count; i++) {
        stg_alert_receiver *heir = heir_of(r, old[i]);

        if (heir != NULL)
            stg_alert_receiver_inherit(heir, old[i]);
        // It is in `ending` before it is cancelled, which may call back.
        if (retire(r, old[i]) && heir == NULL)
            stg_alert_receiver_cancel(old[i]);
    }
    free(old);
}

/* -- the end --------------------------------------------------------------- */

void stg_alert_receivers_note_idle(stg_alert_receivers *r,
                                   stg_alert_receiver *s)
{
    for (size_t i = 0; i < r->ending_count; i++)
        if (r->ending[i] == s) {
            add_counts(&r->gone, s);
            stg_alert_receiver_free(s);
            r->ending[i] = r->ending[--r->ending_count];
            return;
        }
}

bool stg_alert_receivers_are_idle(const stg_alert_receivers *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (!stg_alert_receiver_is_idle(r->all[i]))
            return false;
    return r->ending_count == 0;
}

/* From the last one down: each that is cancelled may leave `ending` meanwhile,
 * and the last one takes its place. */
void stg_alert_receivers_cancel(stg_alert_receivers *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (!stg_alert_receiver_is_idle(r->all[i]))
            stg_alert_receiver_cancel(r->all[i]);
    for (size_t i = r->ending_count; i-- > 0;)
        stg_alert_receiver_cancel(r->ending[i]);
}

void stg_alert_receivers_free(stg_alert_receivers *r)
{
    free_receivers(r->all, r->count);
    free(r->ending);
}

/* -- a look ---------------------------------------------------------------- */

void stg_alert_receivers_look(const stg_alert_receivers *r,
                              stg_alert_receiver_view *view)
{
    *view = r->gone;
    for (size_t i = 0; i < r->count; i++)
        add_counts(view, r->all[i]);
}
