/* A change of a target by a call: written to the store, then made in flow. It is
 * in h->changes from its beginning to its end, where a reload looks for names
 * that are on their way. */

#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "config/load.h"
#include "hub/control.h"
#include "hub/hub_internal.h"
#include "store/target_rows.h"

struct stg_target_change {
    stg_target_change *next;
    stg_hub *hub;
    char *text; /* NULL: a removal */
    uint64_t version;
    stg_target_changed_fn *done; /* NULL: nobody waits */
    void *ctx;
    stg_error why; /* it is refused, while its row is taken back */
    char name[STG_TARGET_NAME_MAX];
};

/* NULL: no memory. */
static stg_target_change *begin(stg_hub *h, const char *name, const char *text)
{
    stg_target_change *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->hub = h;
    strncpy(c->name, name, sizeof c->name - 1);
    c->text = text == NULL ? NULL : strdup(text);
    if (text != NULL && c->text == NULL) {
        free(c);
        return NULL;
    }
    c->next = h->changes;
    h->changes = c;
    return c;
}

static void end(stg_target_change *c, stg_target_changed how, const char *why)
{
    stg_target_change **at = &c->hub->changes;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    if (c->done != NULL)
        c->done(c->ctx, how, why);
    free(c->text);
    free(c);
}

bool stg_target_changes_have(const stg_hub *h, const char *name)
{
    for (const stg_target_change *c = h->changes; c != NULL; c = c->next)
        if (strcmp(c->name, name) == 0)
            return true;
    return false;
}

static void tell(const stg_hub *h, const char *name, const char *what)
{
    STG_LOG(h->log, STG_LOG_INFO, "target-changed",
            stg_field_text("target", name), stg_field_text("what", what));
}

/* -- making it ------------------------------------------------------------- */

/* One target comes of the text, or none where another shard has it. */
stg_status stg_target_added_load(stg_added *a, const stg_settings *base,
                                 const char *text, uint64_t version,
                                 stg_error *err)
{
    stg_diagnostics c = {.all = NULL};
    stg_status status =
        stg_settings_load_target(text, strlen(text), base, &a->settings, &c);

    if (status != STG_OK)
        stg_hub_refuse(err, status, "%s",
                       c.count > 0 ? c.all[0].text : "there is no memory");
    stg_diagnostics_free(&c);
    if (status != STG_OK)
        return status;
    a->version = version;
    a->text = strdup(text);
    if (a->text != NULL && a->settings != NULL)
        return STG_OK;
    status = a->text == NULL ? stg_target_refuse_memory(err) : STG_NOT_FOUND;
    stg_added_free(a);
    return status;
}

/* The target of these settings from now on. Returns what it had, which its lane
 * may point into until it is told. */
static stg_added adopt(stg_target *t, stg_added *a, char *url)
{
    stg_added old = t->added;

    t->added = *a;
    t->settings = a->settings;
    t->version++;
    free(t->url);
    t->url = url;
    *a = (stg_added){.settings = NULL};
    return old;
}

static stg_status add_lane(stg_hub *h, stg_target *t, stg_error *err)
{
    stg_status status = stg_hub_begin_lane(h, t, err);

    if (status != STG_OK || stg_targets_insert(&h->targets, t))
        return status;
    // Without a place in the list it is as one that was forgotten.
    stg_targets_unput(&h->targets, t);
    stg_flow_remove(h->flow, t->lane, stg_deadlines_now());
    return stg_target_refuse_memory(err);
}

/* One that the hub has not got. */
static stg_status make(stg_hub *h, const char *name, stg_added *a,
                       stg_target **made, stg_error *err)
{
    const stg_target_settings *s = a->settings;
    stg_target *t = stg_target_new(name, s->url);
    char *url = strdup(s->url);
    stg_status status;

    if (t == NULL || url == NULL) {
        free(url);
        if (t != NULL)
            stg_target_free(t);
        return stg_target_refuse_memory(err);
    }
    (void)adopt(t, a, url);
    status = stg_target_endpoint(&t->endpoint, h->client, t->settings, err);
    if (status == STG_OK)
        status = stg_oauth_give(h, t, err);
    if (status == STG_OK)
        status = add_lane(h, t, err);
    if (status == STG_OK) {
        *made = t;
        return STG_OK;
    }
    if (t->endpoint != NULL)
        stg_endpoint_retire(t->endpoint);
    stg_target_free(t);
    return status;
}

/* All that can fail is made first; from there on the target has its new settings, and
 * flow hears of them. */
static stg_status change(stg_hub *h, stg_target *t, stg_added *a,
                         stg_error *err)
{
    const stg_target_settings *s = a->settings;
    stg_endpoint *endpoint = NULL;
    stg_oauth_token *token = NULL;
    char *url = strdup(s->url);
    stg_status status = url == NULL ? stg_target_refuse_memory(err) : STG_OK;
    stg_added old;
    stg_lane_options l;

    if (status == STG_OK && !stg_target_keeps_endpoint(t, s))
        status = stg_target_endpoint(&endpoint, h->client, s, err);
    if (status == STG_OK)
        status = stg_oauth_take(h, s->common->token, &token, err);
    if (status != STG_OK) {
        if (endpoint != NULL)
            stg_endpoint_retire(endpoint);
        free(url);
        return status;
    }
    if (endpoint != NULL) {
        if (t->endpoint != NULL)
            stg_endpoint_retire(t->endpoint);
        t->endpoint = endpoint;
    }
    stg_oauth_use(t, token);
    stg_targets_move(&h->targets, t, true);
    old = adopt(t, a, url);
    l = stg_hub_lane(h, t);
    (void)stg_flow_change_lane(h->flow, t->lane, &l, stg_deadlines_now(), NULL);
    stg_watch_renew(&h->watch);
    stg_added_free(&old);
    return STG_OK;
}

/* What the settings file has is changed there and nowhere else, or the next reload
 * would undo the change. */
stg_status stg_target_change_may(const stg_hub *h, const stg_target *t,
                                 stg_error *err)
{
    bool is_settings =
        t != NULL && t->settings != NULL && !stg_target_is_added(t);

    if (is_settings && h->settings->file == NULL)
        return stg_hub_refuse(
            err, STG_INVALID,
            "an option of the hub has it (--to): change that, "
            "and start it again");
    if (is_settings)
        return stg_hub_refuse(err, STG_INVALID,
                              "the settings have it (%.120s, line %u): change "
                              "it there, and reload",
                              h->settings->file,
                              (unsigned)t->settings->place.line);
    if (t != NULL && stg_target_control_forgets(h, t->lane))
        return stg_hub_refuse(err, STG_INVALID,
                              "it is being removed; ask again when it is gone");
    return STG_OK;
}

/* What the store has of a target is made true here. *made: where it has a new
 * lane. A version that is here already is nothing. */
stg_status stg_target_change_apply(stg_hub *h, const char *name,
                                   const char *text, uint64_t version,
                                   stg_target **made, stg_error *err)
{
    stg_target *t = stg_targets_named(&h->targets, name);
    stg_added a = {.settings = NULL};
    stg_status status = stg_target_change_may(h, t, err);

    *made = NULL;
    if (status != STG_OK || (t != NULL && t->added.version == version))
        return status;
    status = stg_target_added_load(&a, h->settings, text, version, err);
    if (status == STG_OK)
        status =
            t == NULL ? make(h, name, &a, made, err) : change(h, t, &a, err);
    stg_added_free(&a);
    if (status == STG_OK)
        tell(h, name, *made != NULL ? "added" : "changed");
    stg_shell_note(h);
    return status;
}

/* Complains of what the settings cannot know: an endpoint with files that TLS
 * does not take, a shard that is another hub's. */
static void check_made(stg_hub *h, const stg_target_settings *s,
                       char name[STG_TARGET_NAME_MAX], stg_diagnostics *c)
{
    stg_endpoint *endpoint;
    stg_oauth_token *token;
    stg_error err;

    if (s == NULL) {
        stg_complain(c, (stg_file_place){0, 0},
                     "another shard has a target of this name; expected the "
                     "call at its hub");
        return;
    }
    strncpy(name, s->name, STG_TARGET_NAME_MAX - 1);
    if (stg_target_endpoint(&endpoint, h->client, s, &err) == STG_OK)
        stg_endpoint_retire(endpoint);
    else
        stg_complain(c, (stg_file_place){0, 0}, "%s", err.text);
    if (stg_oauth_take(h, s->common->token, &token, &err) == STG_OK)
        stg_oauth_drop(token);
    else
        stg_complain(c, (stg_file_place){0, 0}, "%s", err.text);
}

bool stg_hub_check_target(stg_hub *h, const char *text,
                          char name[STG_TARGET_NAME_MAX], stg_diagnostics *c)
{
    stg_target_settings *s;

    memset(name, 0, STG_TARGET_NAME_MAX);
    if (stg_settings_load_target(text, strlen(text), h->settings, &s, c) !=
        STG_OK)
        return false;
    check_made(h, s, name, c);
    stg_target_settings_free(s);
    return c->mistakes == 0;
}

/* -- a call ---------------------------------------------------------------- */

/* Whether the store has not written it: then it has ended. */
static bool ends(stg_target_change *c, stg_target_write how, uint64_t version)
{
    c->version = version;
    if (how == STG_TARGET_WRITTEN && !stg_hub_is_stopping(c->hub))
        return false;
    end(c,
        how == STG_TARGET_DIFFERS ? STG_TARGET_OTHER
        : how == STG_TARGET_FULL  ? STG_TARGET_NO_ROOM
                                  : STG_TARGET_UNCERTAIN,
        "");
    return true;
}

/* A row that another hub has changed since is its own. */
static void taken_back(void *ctx, stg_target_write how, uint64_t version)
{
    stg_target_change *c = ctx;
    stg_target *t = stg_targets_named(&c->hub->targets, c->name);

    if (how == STG_TARGET_WRITTEN && stg_target_is_added(t))
        t->added.version = version;
    if (how == STG_TARGET_FULL)
        end(c, STG_TARGET_UNCERTAIN, "");
    else
        end(c, STG_TARGET_REFUSED, c->why.text);
}

/* What was written cannot be made: the settings that it was checked with have
 * changed, or a file that it names. The row becomes what it was, or goes, so that
 * the next start finds what the hub has now. */
static void take_back(stg_target_change *c)
{
    stg_hub *h = c->hub;
    const stg_target *t = stg_targets_named(&h->targets, c->name);
    bool was_there = stg_target_is_added(t);
    char *sealed =
        was_there ? stg_target_seal(h, c->name, t->added.text) : NULL;

    if (was_there && sealed == NULL)
        end(c, STG_TARGET_UNCERTAIN, "");
    else
        stg_store_write_target(h->store, c->name, sealed, c->version,
                               taken_back, c);
    free(sealed);
}

/* The row is written. A new lane's beginning is to be durable, too, before it is
 * told: what is published from then on is for the target. */
static void written(void *ctx, stg_target_write how, uint64_t version)
{
    stg_target_change *c = ctx;
    stg_target *made;

    if (ends(c, how, version))
        return;
    if (stg_target_change_apply(c->hub, c->name, c->text, version, &made,
                                &c->why) != STG_OK)
        take_back(c);
    else if (made != NULL)
        made->change = c;
    else
        end(c, STG_TARGET_MADE, "");
}

void stg_target_change_begun(stg_target *t)
{
    stg_target_change *c = t->change;

    t->change = NULL;
    if (c != NULL)
        end(c, STG_TARGET_MADE, "");
}

/* The store's row decides between two callers: `expected` is its version. */
stg_status stg_hub_write_target(stg_hub *h, const char *name, const char *text,
                                uint64_t expected, stg_target_changed_fn *done,
                                void *ctx, stg_error *err)
{
    stg_target_change *c;
    char *sealed;
    stg_status status =
        stg_target_change_may(h, stg_targets_named(&h->targets, name), err);

    if (status != STG_OK)
        return status;
    if (stg_hub_is_stopping(h))
        return stg_hub_refuse(err, STG_IO, "the hub is stopping");
    sealed = stg_target_seal(h, name, text);
    c = sealed == NULL ? NULL : begin(h, name, text);
    if (c != NULL) {
        c->done = done;
        c->ctx = ctx;
        stg_store_write_target(h->store, name, sealed, expected, written, c);
    }
    free(sealed);
    return c == NULL ? stg_target_refuse_memory(err) : STG_OK;
}

/* -- removing -------------------------------------------------------------- */

static void row_gone(void *ctx, stg_target_write how, uint64_t version)
{
    stg_target_change *c = ctx;

    (void)how; // where another hub was faster, it is gone, too
    (void)version;
    end(c, STG_TARGET_MADE, "");
}

static void remove_row(stg_target_change *c)
{
    stg_store_write_target(c->hub->store, c->name, NULL, c->version, row_gone,
                           c);
}

static void forgotten(void *ctx, bool is_forgotten)
{
    stg_target_change *c = ctx;

    if (is_forgotten && !stg_hub_is_closing(c->hub))
        remove_row(c);
    else
        end(c, STG_TARGET_UNCERTAIN, "");
}

void stg_target_change_drop(stg_hub *h, stg_target *t, uint64_t version)
{
    stg_target_change_begun(t);
    stg_reload_leave(h, t);
    stg_added_free(&t->added);
    t->added.version = version;
    stg_targets_move(&h->targets, t, false);
    stg_shell_note(h);
    tell(h, t->name, "removed");
}

static void forget(stg_target_change *c)
{
    stg_error err;
    stg_status status = stg_hub_forget(c->hub, c->name, forgotten, c, &err);

    if (status == STG_NOT_FOUND)
        remove_row(c);
    else if (status != STG_OK)
        end(c, STG_TARGET_REFUSED, err.text);
}

static void marked(void *ctx, stg_target_write how, uint64_t version)
{
    stg_target_change *c = ctx;
    stg_target *t;

    if (ends(c, how, version))
        return;
    t = stg_targets_named(&c->hub->targets, c->name);
    if (stg_target_is_added(t))
        stg_target_change_drop(c->hub, t, version);
    forget(c);
}

/* The row is marked first ("" for its settings): marked() goes on when that is
 * durable. */
stg_status stg_hub_remove_target(stg_hub *h, const char *name,
                                 uint64_t expected, stg_target_changed_fn *done,
                                 void *ctx, stg_error *err)
{
    const stg_target *t = stg_targets_named(&h->targets, name);
    stg_target_change *c;
    stg_status status = stg_target_change_may(h, t, err);

    if (status != STG_OK)
        return status;
    if (stg_hub_is_stopping(h))
        return stg_hub_refuse(err, STG_IO, "the hub is stopping");
    c = begin(h, name, NULL);
    if (c == NULL)
        return stg_target_refuse_memory(err);
    c->done = done;
    c->ctx = ctx;
    stg_store_write_target(h->store, name, "", expected, marked, c);
    return STG_OK;
}

/* -- removals that a restart has cut short --------------------------------- */

bool stg_target_change_resume(stg_hub *h, const char *name, uint64_t version)
{
    stg_target_change *c = begin(h, name, NULL);

    if (c != NULL)
        c->version = version;
    return c != NULL;
}

void stg_target_changes_start(stg_hub *h)
{
    stg_target_change *next;

    for (stg_target_change *c = h->changes; c != NULL; c = next) {
        next = c->next;
        forget(c);
    }
}

/* -- the end --------------------------------------------------------------- */

void stg_target_changes_close(stg_hub *h)
{
    for (stg_target_change *c = h->changes; c != NULL; c = c->next) {
        if (c->done != NULL)
            c->done(c->ctx, STG_TARGET_UNCERTAIN, "");
        c->done = NULL;
    }
}

/* Those that the store had at its end. */
void stg_target_changes_free(stg_hub *h)
{
    while (h->changes != NULL) {
        stg_target_change *c = h->changes;

        h->changes = c->next;
        free(c->text);
        free(c);
    }
}
