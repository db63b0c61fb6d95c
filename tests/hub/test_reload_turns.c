/* A reload between two turns of the loop, and what else goes on there. */
#include "hub/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/hub_internal.h"
#include "tests/harness.h"
#include "tests/hub/place.h"

enum { MANY = 600 }; /* targets: more than a turn of the metrics looks at */

typedef struct scene {
    place at; /* whose listener is a receiver that says nothing */
    unsigned reloads;
    stg_reloaded last; /* but its words */
    char *page;
    const char *path; /* end of each target's URL */
} scene;

/* count targets, the last one first if it is_backwards. */
static void write_settings(const scene *p, int count, bool is_backwards)
{
    FILE *file = fopen(p->at.path, "w");

    CHECK(file != NULL);
    fprintf(file,
            "listen: {address: '127.0.0.1:0'}\n"
            "store: {path: %s/store.db}\n"
            "alerts:\n"
            "  receivers:\n"
            "    - {name: hook, type: webhook, url: 'http://127.0.0.1:%d/'}\n"
            "targets:\n",
            p->at.folder, p->at.port);
    for (int i = 0; i < count; i++)
        fprintf(file, "  - {name: t%03d, url: 'http://127.0.0.1:1%s'}\n",
                is_backwards ? count - 1 - i : i, p->path);
    CHECK(fclose(file) == 0);
}

static void open_scene(scene *p, int count)
{
    *p = (scene){.path = "/"};
    place_begin(&p->at);
    write_settings(p, count, false);
    place_start(&p->at);
}

static void note_reload(void *ctx, const stg_reloaded *r)
{
    scene *p = ctx;

    p->reloads++;
    p->last = *r;
}

static void ask_for_reload(scene *p)
{
    stg_error err = {.text = ""};

    (void)stg_hub_reload(p->at.hub, note_reload, p, &err);
    CHECK_STR(err.text, "");
}

static void wait_reload(scene *p)
{
    while (p->reloads == 0)
        (void)uv_run(&p->at.loop, UV_RUN_ONCE);
}

/* An alert for the receiver, which is then under way while the hub ends. */
static void make_trouble(scene *p)
{
    stg_watch_store(&p->at.hub->watch, STG_TROUBLE_BUSY, "for the test",
                    stg_deadlines_now());
}

/* -- the end comes first --------------------------------------------------- */

TEST(reload, is_refused_when_the_store_breaks_before_its_turn)
{
    scene p;
    stg_error why = {.text = "for the test"};

    open_scene(&p, 3);
    make_trouble(&p);
    ask_for_reload(&p);
    stg_shell_break(p.at.hub, &why);
    CHECK(p.at.hub->phase == STG_HUB_ALERTING);
    wait_reload(&p);
    CHECK_INT(p.last.status, STG_IO);
    place_end(&p.at);
    CHECK_INT(p.reloads, 1);
}

TEST(reload, is_refused_when_the_hub_is_stopped_before_its_turn)
{
    scene p;

    open_scene(&p, 3);
    make_trouble(&p);
    write_settings(&p, 4, false);
    ask_for_reload(&p);
    stg_hub_stop(p.at.hub);
    wait_reload(&p);
    CHECK_INT(p.last.status, STG_IO);
    place_end(&p.at);
    CHECK_INT(p.reloads, 1);
}

/* -- a lane that cannot be begun ------------------------------------------- */

/* As for want of memory: flow has one of that number. */
static void take_lane(scene *p, uint32_t lane)
{
    stg_lane_options l = stg_hub_lane(p->at.hub, p->at.hub->targets.all[0]);
    stg_error err = {.text = ""};

    (void)stg_flow_add_lane(p->at.hub->flow, lane, &l, stg_deadlines_now(),
                            &err);
    CHECK_STR(err.text, "");
}

static void add_text(void *ctx, uint32_t lane, const char *name,
                     const char *url)
{
    char *text = ctx;
    size_t used = strlen(text);

    snprintf(text + used, 256 - used, "%u %s %s\n", (unsigned)lane, name, url);
}

/* Writes the lanes that the store knows. Returns text. */
static const char *list_lanes(const scene *p, char text[256])
{
    stg_error err;

    text[0] = '\0';
    CHECK_INT(stg_store_lanes(p->at.hub->store, add_text, text, &err), STG_OK);
    return text;
}

/* I35: the lane of the second new target cannot begin, so none does. */
TEST(reload, begins_all_lanes_or_none)
{
    char before[256], behind[256];
    scene p;
    size_t i;

    open_scene(&p, 1);
    list_lanes(&p, before);
    take_lane(&p, 2);
    p.path = "/other"; // t000 gets it, too
    write_settings(&p, 4, false);
    ask_for_reload(&p);
    wait_reload(&p);
    CHECK_INT(p.last.status, STG_INVALID);
    CHECK_U64(p.at.hub->targets.count, 1);
    for (uint32_t lane = 1; lane < 4; lane++)
        CHECK_FROM(lane, stg_targets_at(&p.at.hub->targets, lane) == NULL);
    CHECK_INT(stg_hub_find_target(p.at.hub, "t001", &i), STG_NOT_FOUND);
    CHECK(stg_targets_named(&p.at.hub->targets, "t001") == NULL);
    CHECK_STR(list_lanes(&p, behind), before);

    // One lane has a number that is free.
    write_settings(&p, 2, false);
    p.reloads = 0;
    ask_for_reload(&p);
    wait_reload(&p);
    CHECK_INT(p.last.status, STG_OK);
    CHECK_U64(p.at.hub->targets.count, 2);
    CHECK(stg_targets_at(&p.at.hub->targets, 1) ==
          stg_targets_named(&p.at.hub->targets, "t001"));
    place_end(&p.at);
}

/* -- an alert of what is no more ------------------------------------------- */

TEST(reload, ends_the_alert_of_a_certificate_that_is_shown_no_more)
{
    scene p;
    stg_ns now = stg_deadlines_now();
    stg_watch *w;

    open_scene(&p, 3);
    w = &p.at.hub->watch;
    // It was of https before, as far as alerts know.
    stg_alerts_certificate(w->alerts, 1, 2 * STG_HOUR, STG_HOUR, now);
    CHECK(stg_alerts_is_raised(w->alerts, STG_ALERT_CERTIFICATE, 1));
    w->look.passed(&w->look);
    CHECK(!stg_alerts_is_raised(w->alerts, STG_ALERT_CERTIFICATE, 1));
    place_end(&p.at);
}

/* -- a page is being made -------------------------------------------------- */

static void take_page(void *ctx, char *text, size_t size)
{
    scene *p = ctx;

    p->page = malloc(size + 1);
    CHECK(p->page != NULL && text != NULL);
    memcpy(p->page, text, size);
    p->page[size] = '\0';
    free(text);
}

static int count_of(const char *in, const char *text)
{
    int count = 0;

    while ((in = strstr(in, text)) != NULL) {
        count++;
        in += strlen(text);
    }
    return count;
}

TEST(metrics, tell_of_each_target_once_whatever_a_reload_moves)
{
    scene p;

    open_scene(&p, MANY);
    CHECK(stg_metrics_ask(&p.at.hub->metrics, take_page, &p));
    while (p.at.hub->metrics.at == 0)
        (void)uv_run(&p.at.loop, UV_RUN_ONCE);
    CHECK(p.at.hub->metrics.at < MANY);
    write_settings(&p, MANY, true);
    ask_for_reload(&p);
    wait_reload(&p);
    while (p.page == NULL)
        (void)uv_run(&p.at.loop, UV_RUN_ONCE);
    CHECK_INT(p.last.status, STG_OK);
    CHECK_U64(p.last.same, MANY);
    for (int i = 0; i < MANY; i++) {
        char sample[64];

        snprintf(sample, sizeof sample,
                 "stagger_connects_total{target=\"t%03d\"} ", i);
        CHECK_INT(count_of(p.page, sample), 1);
    }
    free(p.page);
    place_end(&p.at);
}
