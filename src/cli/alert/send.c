/* A test of the receivers of a settings file, without a hub. The trial is that
 * of the hub (alerts/trial.h), on a loop, a client and a mailer of our own, and
 * under the file's `egress`. So what a receiver answers here is what it would
 * answer to a hub on this machine. */
#include "cli/alert/alert.h"

#include <stdio.h>
#include <stdlib.h>

#include "alerts/trial.h"
#include "cli/options.h"
#include "config/load.h"

/* What a receiver stands on. */
typedef struct ground {
    uv_loop_t loop;
    stg_deadlines deadlines;
    stg_alert_world world;
    bool has_ended, are_all;
} ground;

static int complain_memory(const char *who)
{
    stg_options_complain(who, "there is no memory");
    return 1;
}

/* Called once, from the loop, when each receiver has answered or failed. */
static void print(void *ctx, const stg_alert_result *results, size_t count)
{
    ground *g = ctx;

    g->are_all = count > 0;
    for (size_t i = 0; i < count; i++) {
        const stg_alert_result *r = &results[i];

        stg_alert_print(r->name, stg_receiver_type_name(r->type), r->is_sent,
                        r->detail != NULL ? r->detail : "");
        g->are_all = g->are_all && r->is_sent;
    }
    g->has_ended = true;
}

/* As the hub does: what it may not connect to is not connected to. */
static stg_status open_ground(ground *g, const stg_settings *s)
{
    const stg_egress *egress = &s->egress;

    *g = (ground){.has_ended = false};
    if (uv_loop_init(&g->loop) != 0)
        return STG_IO;
    stg_deadlines_init(&g->deadlines, &g->loop);
    g->world = (stg_alert_world){.loop = &g->loop,
                                 .deadlines = &g->deadlines,
                                 .rng = stg_rng_seed(uv_hrtime())};
    g->world.mailer = stg_mailer_new(&g->loop, egress);
    if (g->world.mailer == NULL)
        return STG_IO;
    if (stg_client_new(&g->world.client, &g->loop, NULL) != STG_OK)
        return STG_IO;
    return stg_client_set_egress(g->world.client, egress, NULL);
}

static void nothing(void *ctx)
{
    (void)ctx;
}

/* Also after an open_ground() that failed half way: what was not made is
 * NULL. */
static void close_ground(ground *g)
{
    if (g->world.client != NULL)
        stg_client_close(g->world.client, NULL, NULL);
    stg_deadlines_close(&g->deadlines, nothing, NULL);
    (void)uv_run(&g->loop, UV_RUN_DEFAULT);
    stg_mailer_free(g->world.mailer);
    (void)uv_loop_close(&g->loop);
}

static void refuse_receiver(const char *who, const stg_alert_options *o,
                            const char *receiver)
{
    const char **names = calloc(o->receiver_count + 1, sizeof(char *));
    char suggestion[STG_SUGGESTION_MAX] = "";

    for (size_t i = 0, k = 0; names != NULL && i < o->receiver_count; i++)
        if (o->receivers[i].name != NULL)
            names[k++] = o->receivers[i].name;
    if (names != NULL)
        stg_options_suggest(suggestion, receiver, names);
    free(names);
    stg_options_complain(who, "%s: the settings have no such receiver%s",
                         receiver, suggestion);
}

/* Not found means two things: the receiver that was named, or any at all. */
static int run(const char *who, ground *g, const stg_alert_options *o,
               const char *receiver)
{
    stg_alert_trial_options t = {
        .alerts = o, .receiver = receiver, .world = &g->world};
    stg_alert_trial *trial;
    stg_status status = stg_alert_trial_start(&trial, &t, print, g);

    if (status == STG_NOT_FOUND && receiver != NULL)
        refuse_receiver(who, o, receiver);
    else if (status == STG_NOT_FOUND)
        stg_options_complain(who,
                             "the settings have no receiver: alerts.receivers");
    if (status == STG_NOT_FOUND)
        return STG_EXIT_USAGE;
    if (status != STG_OK)
        return complain_memory(who);
    while (!g->has_ended)
        (void)uv_run(&g->loop, UV_RUN_ONCE);
    return stg_options_finish(who, g->are_all ? 0 : 1);
}

/* The ground is closed even if it was not opened as a whole. */
static int send_all(const char *who, const stg_settings *s,
                    const char *receiver)
{
    ground g;
    int code;

    if (open_ground(&g, s) == STG_OK)
        code = run(who, &g, &s->alerts, receiver);
    else
        code = complain_memory(who);
    close_ground(&g);
    return code;
}

/* The settings live until the trial has ended: the options are part of them. */
int stg_alert_send(const char *who, const char *file, const char *receiver)
{
    stg_diagnostics c = {.all = NULL};
    stg_settings *s = NULL;
    stg_status status = stg_settings_load(file, &s, &c);
    int code = STG_EXIT_USAGE;

    if (status == STG_OK)
        code = send_all(who, s, receiver);
    else
        stg_diagnostics_print(&c, file, stderr);
    stg_diagnostics_free(&c);
    stg_settings_free(s);
    return code;
}
