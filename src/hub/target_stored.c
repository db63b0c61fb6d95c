/* Targets that calls have added, as the store has them: made when the hub is
 * opened, and made anew when another hub has changed one. What others have
 * written comes as all rows that there are, and is compared with what is here. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/refuse.h"
#include "hub/hub_internal.h"
#include "store/target_rows.h"

/* -- at the start ---------------------------------------------------------- */

typedef struct opening {
    stg_hub *hub;
    stg_status status;
    stg_error *err;
} opening;

/* text: the settings that the row has. */
static stg_status open_text(stg_hub *h, const stg_target_row *row,
                            const char *text, stg_error *err)
{
    const stg_target *there = stg_targets_named(&h->targets, row->name);
    stg_target *t;
    stg_status status;

    if (there != NULL)
        return stg_hub_refuse(
            err, STG_INVALID,
            "the settings have it on line %u, and a call has added it to the "
            "store: take it out there, start, and to change hands remove it "
            "first (stagger targets remove)",
            (unsigned)there->settings->place.line);
    t = stg_target_new(row->name, "");
    if (t == NULL)
        return stg_target_refuse_memory(err);
    status =
        stg_target_added_load(&t->added, h->settings, text, row->version, err);
    if (status == STG_OK) {
        t->settings = t->added.settings;
        free(t->url);
        t->url = strdup(t->settings->url);
        status = t->url == NULL ? stg_target_refuse_memory(err)
                                : stg_target_endpoint(&t->endpoint, h->client,
                                                      t->settings, err);
    }
    if (status == STG_OK)
        status = stg_oauth_give(h, t, err);
    if (status == STG_OK && !stg_targets_insert(&h->targets, t))
        status = stg_target_refuse_memory(err);
    if (status == STG_OK)
        return STG_OK;
    if (t->endpoint != NULL)
        stg_endpoint_free(t->endpoint);
    stg_target_free(t);
    return status;
}

static stg_status open_row(stg_hub *h, const stg_target_row *row,
                           stg_error *err)
{
    char *text;
    stg_status status = stg_target_unseal(h, row, &text, err);

    if (status != STG_OK)
        return status;
    status = open_text(h, row, text, err);
    if (status == STG_OK)
        stg_target_rekey(h, row, text);
    free(text);
    return status;
}

static void open_rows(void *ctx, const stg_target_row *rows, size_t count)
{
    opening *o = ctx;
    stg_error why;

    for (size_t i = 0; i < count && o->status == STG_OK; i++) {
        if (*rows[i].settings == '\0') {
            if (!stg_target_change_resume(o->hub, rows[i].name,
                                          rows[i].version))
                o->status = stg_target_refuse_memory(o->err);
            continue;
        }
        o->status = open_row(o->hub, &rows[i], &why);
        if (o->status == STG_NOT_FOUND) // another shard's
            o->status = STG_OK;
        else if (o->status != STG_OK)
            stg_hub_refuse(o->err, o->status, "target %s, of the store: %.300s",
                           rows[i].name, why.text);
    }
}

stg_status stg_target_changes_open(stg_hub *h, stg_error *err)
{
    opening o = {.hub = h, .err = err};
    stg_status status = stg_store_target_rows(h->store, open_rows, &o, err);

    return status == STG_OK ? o.status : status;
}

/* -- by other hubs --------------------------------------------------------- */

/* Another hub has added, changed or removed a target: the same is done here, and what
 * is wrong with it is only logged, as nobody waits for an answer. */
static void seen(stg_hub *h, const stg_target_row *row)
{
    stg_target *t = stg_targets_named(&h->targets, row->name), *made;
    stg_error err;
    stg_status status;
    char *text;

    if (*row->settings == '\0') {
        if (stg_target_is_added(t))
            stg_target_change_drop(h, t, row->version);
        return;
    }
    status = stg_target_unseal(h, row, &text, &err);
    if (status == STG_OK) {
        status = stg_target_change_apply(h, row->name, text, row->version,
                                         &made, &err);
        free(text);
    }
    if (status != STG_OK && status != STG_NOT_FOUND)
        STG_LOG(h->log, STG_LOG_WARN, "target-refused",
                stg_field_text("target", row->name),
                stg_field_text("detail", err.text));
}

/* Those that are here and have no row any more. */
static void drop_others(stg_hub *h, const stg_text_table *names)
{
    for (size_t i = 0; i < h->targets.lanes; i++) {
        stg_target *t = h->targets.by_lane[i];
        size_t row;

        if (!stg_target_is_added(t) ||
            stg_text_table_find(names, t->name, &row))
            continue;
        stg_target_change_drop(h, t, t->added.version);
    }
}

/* Versions of those that are here, by lane, would be a second list: what is equal
 * is skipped by apply(), but not before it was looked for. So the names that are
 * here go into a table first. */
static bool list_here(const stg_hub *h, stg_text_table *here)
{
    for (size_t i = 0; i < h->targets.lanes; i++)
        if (h->targets.by_lane[i] != NULL &&
            !stg_text_table_add(here, h->targets.by_lane[i]->name, i, NULL))
            return false;
    return true;
}

static bool is_here(const stg_hub *h, const stg_text_table *here,
                    const stg_target_row *row)
{
    size_t lane;

    return stg_text_table_find(here, row->name, &lane) &&
           h->targets.by_lane[lane]->added.version == row->version;
}

/* No memory: nothing is done, and what changes next brings it all again. */
void stg_target_changes_seen(void *hub, const stg_target_row *rows,
                             size_t count)
{
    stg_hub *h = hub;
    stg_text_table names = {.at = NULL}, here = {.at = NULL};
    bool is_listed =
        h->flow != NULL && !stg_hub_is_stopping(h) && list_here(h, &here);

    for (size_t i = 0; is_listed && i < count; i++)
        is_listed = stg_text_table_add(&names, rows[i].name, i, NULL);
    if (is_listed)
        drop_others(h, &names);
    for (size_t i = 0; is_listed && i < count; i++)
        if (!is_here(h, &here, &rows[i]))
            seen(h, &rows[i]);
    stg_text_table_free(&here);
    stg_text_table_free(&names);
}
