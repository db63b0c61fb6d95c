/* What the hub tells its log, to those who follow it by HTTP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/internal.h"
#include "hub/control.h"
#include "ingress/ask.h"

/* Somebody who follows; "" or STG_LOG_DEBUG is everything. */
typedef struct follower {
    stg_link link;
    stg_admin *admin;
    stg_stream *stream;
    stg_log_level least;
    char event[STG_WORD_MAX];
    char target[STG_TARGET_NAME_MAX + 16]; /* as the line has it */
} follower;

/* A target is searched for in the printed line, as `"target":"NAME"`: names
 * have no character that JSON escapes. */
static bool is_asked(const follower *f, stg_log_level level, const char *event,
                     stg_span json)
{
    return level >= f->least &&
           (f->event[0] == '\0' || strcmp(f->event, event) == 0) &&
           (f->target[0] == '\0' || strstr(json.at, f->target) != NULL);
}

/* Called for each line of the log, within the call that logs it. It must not
 * log itself. */
static void hear(void *admin, stg_log_level level, const char *event,
                 stg_span json)
{
    const stg_admin *a = admin;

    for (stg_link *at = stg_list_first(&a->followers); at != NULL;
         at = stg_list_next(&a->followers, at)) {
        follower *f = STG_HOLDER(at, follower, link);

        if (is_asked(f, level, event, json))
            stg_stream_send(f->stream, json);
    }
}

/* -- who follows ------------------------------------------------------------- */

/* The stream has ended: the client has left, or the hub closes. Without
 * followers the log does not print lines for nobody. */
static void leave(void *ctx)
{
    follower *f = ctx;
    stg_admin *a = f->admin;

    stg_list_remove(&f->link);
    free(f);
    if (stg_list_is_empty(&a->followers))
        stg_log_listen(a->hub->log, NULL, NULL);
}

static bool read_level(follower *f, stg_ask *ask)
{
    const char *level = stg_ask_option(ask, "level");

    if (level == NULL)
        return true;
    for (int i = 0; stg_log_levels[i] != NULL; i++)
        if (strcmp(level, stg_log_levels[i]) == 0) {
            f->least = (stg_log_level)i;
            return true;
        }
    stg_ask_refuse(ask, 400, "?level: expected debug, info, warn or error");
    return false;
}

/* What is longer than any name fits no event. */
static bool read_names(follower *f, stg_ask *ask)
{
    const char *event = stg_ask_option(ask, "event");
    const char *target = stg_ask_option(ask, "target");
    size_t i;

    if (event != NULL && strlen(event) >= sizeof f->event) {
        stg_ask_refuse(ask, 400, "?event: no event has so long a name");
        return false;
    }
    if (target != NULL &&
        stg_hub_find_target(f->admin->hub, target, &i) != STG_OK) {
        stg_admin_refuse_name(f->admin, ask, target);
        return false;
    }
    if (event != NULL)
        snprintf(f->event, sizeof f->event, "%s", event);
    if (target != NULL)
        snprintf(f->target, sizeof f->target, "\"target\":\"%s\"", target);
    return true;
}

/* The log calls hear() for each event as long as somebody follows. */
void stg_admin_events(void *admin, stg_ask *ask)
{
    stg_admin *a = admin;
    follower *f = calloc(1, sizeof *f);

    if (f == NULL) {
        stg_ask_refuse(ask, 503, "no memory");
        return;
    }
    f->admin = a;
    if (!read_level(f, ask) || !read_names(f, ask)) {
        free(f);
        return;
    }
    f->stream = stg_ask_stream(ask, leave, f);
    if (f->stream == NULL) {
        free(f);
        return;
    }
    stg_list_push(&a->followers, &f->link);
    stg_log_listen(a->hub->log, hear, a);
}
