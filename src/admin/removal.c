/* Forget, and what it or a removal would take away, as a dry run says: what waits
 * is cancelled, and dead letters cannot be sent again without their target. */
#include <stdlib.h>
#include <string.h>

#include "admin/internal.h"
#include "hub/control.h"

bool stg_admin_read_dry_run(stg_ask *ask, bool *is_dry)
{
    const char *text = stg_ask_option(ask, "dry-run");

    *is_dry = text != NULL && strcmp(text, "true") == 0;
    if (text == NULL || *is_dry || strcmp(text, "false") == 0)
        return true;
    stg_ask_refuse(ask, 400, "?dry-run: expected true or false");
    return false;
}

/* -- what would go --------------------------------------------------------- */

typedef struct look {
    stg_ask *ask;
    json_t *json;
} look;

json_t *stg_admin_print_removal(const char *name, bool is_dry,
                                const stg_lane_view *v)
{
    return json_pack(
        "{s:b,s:s,s:o,s:o,s:o}", "is_dry_run", (int)is_dry, "name", name,
        "waiting", stg_json_count(stg_ns_add(v->waiting, v->lag)), "parked",
        stg_json_count(v->parked), "in_flight", stg_json_count(v->in_flight));
}

/* Whether the settings have the target or not: the letters are lost. */
static void have_letters(void *ctx, const stg_letters_sum *sum)
{
    look *l = ctx;

    json_object_set_new(l->json, "dead_letters",
                        stg_json_count(sum->letters + sum->orphaned));
    stg_ask_answer_json(l->ask, 200, l->json);
    free(l);
}

void stg_admin_look_removal(stg_admin *a, stg_ask *ask, const char *name,
                            const stg_lane_view *v)
{
    const stg_letter_filter f = {.target = name};
    look *l = a->hub->store == NULL ? NULL : malloc(sizeof *l);

    if (l == NULL) {
        stg_ask_refuse(ask, 503, "the store is closed, or there is no memory");
        return;
    }
    *l = (look){ask, stg_admin_print_removal(name, true, v)};
    stg_store_replay(a->hub->store, &f, true, have_letters, l);
}

/* -- forget ---------------------------------------------------------------- */

static void look_forget(stg_admin *a, stg_ask *ask)
{
    const char *name = stg_ask_word(ask, 0);
    stg_lane_view v = {.waiting = 0};
    stg_error err;
    stg_status status = stg_hub_check_forget(a->hub, name, &v, &err);

    if (status == STG_OK)
        stg_admin_look_removal(a, ask, name, &v);
    else
        stg_ask_refuse(ask, stg_admin_status_for(status), "%s", err.text);
}

static void answer_forgotten(void *ctx, bool is_forgotten)
{
    stg_change_call *c = ctx;

    if (is_forgotten)
        stg_change_done(
            c, 200, json_pack("{s:s}", "name", stg_change_target(c)), false);
    else
        stg_change_refuse(c, 503,
                          "the hub is stopping: the target may have been "
                          "forgotten, or a part of what waited for it be "
                          "cancelled; ask again when the hub is back");
}

/* A dry run says what would be lost, and changes nothing. */
void stg_admin_forget(void *admin, stg_ask *ask)
{
    stg_admin *a = admin;
    stg_change_call *c;
    stg_status status;
    stg_error err;
    bool is_dry;

    if (!stg_admin_read_dry_run(ask, &is_dry))
        return;
    if (is_dry) {
        look_forget(a, ask);
        return;
    }
    c = stg_change_begin_target(a, ask, "forget");
    if (c == NULL)
        return;
    status =
        stg_hub_forget(a->hub, stg_change_target(c), answer_forgotten, c, &err);
    if (status != STG_OK)
        stg_change_refuse(c, stg_admin_status_for(status), "%s", err.text);
}
