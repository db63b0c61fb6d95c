/* The admin API as a part of the hub: its table of routes, with the role that
 * each needs, and stg_hub_calls, by which the hub opens it without including
 * it. */
#include "admin/admin.h"

#include <stdlib.h>

#include "admin/internal.h"
#include "base/refuse.h"
#include "console/console.h"
#include "host/wall.h"

static const char *const page[] = {"limit", "cursor", NULL};
static const char *const targets[] = {"state", "limit", "cursor", NULL};
static const char *const events[] = {"level", "event", "target", NULL};
static const char *const letters[] = {"target", "cause", "category", "state",
                                      "since",  "until", "message",  "limit",
                                      "cursor", NULL};

#define LOOK(path, options, handle)                                       \
    {                                                                     \
        "GET", path, STG_ROLE_VIEW, STG_BODY_NONE, options, handle, false \
    }
#define CHANGE(path, body, handle)                                \
    {                                                             \
        "POST", path, STG_ROLE_OPERATE, body, NULL, handle, false \
    }

/* A call that adds or changes a target. */
#define WRITE(method, path, handle)                                            \
    {                                                                          \
        method, path, STG_ROLE_OPERATE, STG_BODY_JSON, dry_runs, handle, false \
    }

static const char *const dry_runs[] = {"dry-run", NULL};
static const char *const removals[] = {"dry-run", "waiting", NULL};
static const char *const alerts[] = {"receiver", NULL};

static const stg_route routes[] = {
    LOOK("/v1/status", NULL, stg_admin_status),
    LOOK("/v1/token", NULL, stg_admin_token),
    LOOK("/v1/events", events, stg_admin_events),
    LOOK("/v1/live", NULL, stg_admin_live),
    LOOK("/v1/targets", targets, stg_admin_targets),
    LOOK("/v1/targets/{name}", NULL, stg_admin_target),
    LOOK("/v1/targets/{name}/history", NULL, stg_admin_target_history),
    LOOK("/v1/targets/{name}/plan", NULL, stg_admin_target_plan),
    LOOK("/v1/targets/{name}/plan.svg", NULL, stg_admin_target_picture),
    LOOK("/v1/targets/{name}/attempts", NULL, stg_admin_attempts),
    LOOK("/v1/history", page, stg_admin_history),
    WRITE("POST", "/v1/targets", stg_admin_add_target),
    WRITE("PUT", "/v1/targets/{name}", stg_admin_put_target),
    WRITE("PATCH", "/v1/targets/{name}", stg_admin_patch_target),
    {"DELETE", "/v1/targets/{name}", STG_ROLE_OPERATE, STG_BODY_NONE, removals,
     stg_admin_remove_target, false},
    CHANGE("/v1/targets/{name}/pause", STG_BODY_NONE, stg_admin_pause),
    CHANGE("/v1/targets/{name}/resume", STG_BODY_NONE, stg_admin_resume),
    CHANGE("/v1/targets/{name}/probe", STG_BODY_NONE, stg_admin_probe),
    {"POST", "/v1/targets/{name}/forget", STG_ROLE_OPERATE, STG_BODY_NONE,
     dry_runs, stg_admin_forget, false},
    LOOK("/v1/targets/{name}/rewind", NULL, stg_admin_rewinds),
    CHANGE("/v1/targets/{name}/rewind", STG_BODY_JSON, stg_admin_rewind),
    {"DELETE", "/v1/targets/{name}/rewind", STG_ROLE_OPERATE, STG_BODY_NONE,
     NULL, stg_admin_cancel_rewind, false},
    LOOK("/v1/dead-letters", letters, stg_admin_letters),
    LOOK("/v1/dead-letters/{id}", NULL, stg_admin_letter),
    CHANGE("/v1/dead-letters/replay", STG_BODY_JSON, stg_admin_replay),
    CHANGE("/v1/dead-letters/drop", STG_BODY_JSON, stg_admin_drop),
    LOOK("/v1/replays", NULL, stg_admin_replays),
    LOOK("/v1/replays/{id}", NULL, stg_admin_one_replay),
    LOOK("/v1/messages/{id}", page, stg_admin_message),
    CHANGE("/v1/messages/{id}/resend", STG_BODY_JSON, stg_admin_resend),
    CHANGE("/v1/reload", STG_BODY_NONE, stg_admin_reload),
    {"POST", "/v1/alerts/test", STG_ROLE_OPERATE, STG_BODY_NONE, alerts,
     stg_admin_test_alerts, false},
};

static void serve(void *part, stg_ingress *g)
{
    stg_ingress_serve(g, routes, sizeof routes / sizeof *routes, part);
    stg_console_serve(g);
    stg_ingress_watch(g, stg_admin_note_refused, part);
}

static void free_part(void *part)
{
    stg_admin *a = part;

    free(a->live);
    free(a);
}

static stg_status open_part(void **part, stg_hub *h, const char *audit,
                            stg_error *err)
{
    const char *store = h->settings->store.path;
    stg_admin *a = calloc(1, sizeof *a);
    stg_status status;

    if (a == NULL)
        return stg_hub_refuse(err, STG_IO, "out of memory");
    a->hub = h;
    a->started_at = stg_wall_now();
    stg_list_init(&a->followers);
    a->live = stg_live_new(a);
    status = stg_audit_open(&a->audit, h->loop, h->log, audit,
                            stg_store_is_url(store) ? NULL : store, err);
    if (status == STG_OK)
        *part = a;
    else
        free_part(a);
    return status;
}

static void close_part(void *part, void (*closed)(void *ctx), void *ctx)
{
    stg_admin *a = part;

    stg_audit_close(&a->audit, closed, ctx);
}

const stg_hub_calls stg_admin_calls = {.open = open_part,
                                       .serve = serve,
                                       .note = stg_admin_note,
                                       .replayed = stg_admin_replayed,
                                       .close = close_part,
                                       .free = free_part};
