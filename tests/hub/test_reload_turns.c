/* A reload between two turns of the loop, and what else goes on there. */
#include "hub/control.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "admin/admin.h"
#include "config/load.h"
#include "hub/hub_internal.h"
#include "tests/harness.h"

enum { MANY = 600 }; /* targets: more than a turn of the metrics looks at */

typedef struct place {
    uv_loop_t loop;
    char folder[64], path[96];
    int listener, port; /* of a receiver that says nothing */
    stg_hub *hub;
    bool has_ended;
    unsigned reloads;
    stg_reloaded last; /* but its words */
    char *page;
} place;

/* count targets, the last one first if it is_backwards. */
static void write_settings(const place *p, int count, bool is_backwards)
{
    FILE *file = fopen(p->path, "w");

    CHECK(file != NULL);
    fprintf(file,
            "listen: {address: '127.0.0.1:0'}\n"
            "store: {path: %s/store.db}\n"
            "alerts:\n"
            "  receivers:\n"
            "    - {name: hook, type: webhook, url: 'http://127.0.0.1:%d/'}\n"
            "targets:\n",
            p->folder, p->port);
    for (int i = 0; i < count; i++)
        fprintf(file, "  - {name: t%03d, url: 'http://127.0.0.1:1/'}\n",
                is_backwards ? count - 1 - i : i);
    CHECK(fclose(file) == 0);
}

static void note_end(void *ctx, const stg_hub_end *end)
{
    place *p = ctx;

    (void)end;
    p->has_ended = true;
}

static void open_listener(place *p)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    p->listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(p->listener, (struct sockaddr *)&at, size) == 0);
    CHECK(listen(p->listener, 8) == 0);
    CHECK(getsockname(p->listener, (struct sockaddr *)&at, &size) == 0);
    p->port = ntohs(at.sin_port);
}

static void open_place(place *p, int count)
{
    const char *top = getenv("TMPDIR");
    stg_diagnostics c = {.all = NULL};
    stg_hub_options o = {
        .calls = &stg_admin_calls, .ended = note_end, .ctx = p};
    stg_error err = {.text = ""};

    *p = (place){.hub = NULL};
    snprintf(p->folder, sizeof p->folder, "%.40s/stagger-XXXXXX",
             top != NULL ? top : "/tmp");
    CHECK(mkdtemp(p->folder) != NULL);
    snprintf(p->path, sizeof p->path, "%s/hub.yaml", p->folder);
    open_listener(p);
    write_settings(p, count, false);
    CHECK(uv_loop_init(&p->loop) == 0);
    CHECK_INT(stg_settings_load(p->path, &o.settings, &c), STG_OK);
    stg_diagnostics_free(&c);
    (void)stg_hub_open(&p->hub, &p->loop, &o, &err);
    CHECK_STR(err.text, "");
}

static void close_place(place *p)
{
    char command[96];

    stg_hub_stop(p->hub);
    close(p->listener); // with that the receiver has ended, too
    CHECK(uv_run(&p->loop, UV_RUN_DEFAULT) == 0);
    CHECK(p->has_ended);
    stg_hub_free(p->hub);
    CHECK(uv_loop_close(&p->loop) == 0);
    snprintf(command, sizeof command, "rm -rf %s", p->folder);
    CHECK(system(command) == 0);
}

static void note_reload(void *ctx, const stg_reloaded *r)
{
    place *p = ctx;

    p->reloads++;
    p->last = *r;
}

static void ask_for_reload(place *p)
{
    stg_error err = {.text = ""};

    (void)stg_hub_reload(p->hub, note_reload, p, &err);
    CHECK_STR(err.text, "");
}

static void wait_reload(place *p)
{
    while (p->reloads == 0)
        (void)uv_run(&p->loop, UV_RUN_ONCE);
}

/* An alert for the receiver, which is then under way while the hub ends. */
static void make_trouble(place *p)
{
    stg_watch_store(&p->hub->watch, STG_TROUBLE_BUSY, "for the test",
                    stg_deadlines_now());
}

/* -- the end comes first --------------------------------------------------- */

TEST(reload, is_refused_when_the_store_breaks_before_its_turn)
{
    place p;
    stg_error why = {.text = "for the test"};

    open_place(&p, 3);
    make_trouble(&p);
    ask_for_reload(&p);
    stg_shell_break(p.hub, &why);
    CHECK(p.hub->phase == STG_HUB_ALERTING);
    wait_reload(&p);
    CHECK_INT(p.last.status, STG_IO);
    close_place(&p);
    CHECK_INT(p.reloads, 1);
}

TEST(reload, is_refused_when_the_hub_is_stopped_before_its_turn)
{
    place p;

    open_place(&p, 3);
    make_trouble(&p);
    write_settings(&p, 4, false);
    ask_for_reload(&p);
    stg_hub_stop(p.hub);
    wait_reload(&p);
    CHECK_INT(p.last.status, STG_IO);
    close_place(&p);
    CHECK_INT(p.reloads, 1);
}

/* -- a lane that cannot be begun ------------------------------------------- */

/* As for want of memory: flow has one of that number. */
static void take_lane(place *p, uint32_t lane)
{
    stg_lane_options l = stg_hub_lane(p->hub, p->hub->targets.all[0]);
    stg_error err = {.text = ""};

    (void)stg_flow_add_lane(p->hub->flow, lane, &l, stg_deadlines_now(), &err);
    CHECK_STR(err.text, "");
}

TEST(reload, keeps_no_target_whose_lane_could_not_be_begun)
{
    enum { NEXT = 3 };
    place p;
    size_t i;

    open_place(&p, NEXT);
    take_lane(&p, NEXT);
    write_settings(&p, NEXT + 1, false);
    ask_for_reload(&p);
    wait_reload(&p);
    CHECK_INT(p.last.status, STG_INVALID);
    CHECK_INT(stg_hub_find_target(p.hub, "t003", &i), STG_NOT_FOUND);
    CHECK_U64(p.hub->targets.count, NEXT);
    CHECK(stg_targets_at(&p.hub->targets, NEXT) == NULL);
    close_place(&p);
}

/* -- an alert of what is no more ------------------------------------------- */

TEST(reload, ends_the_alert_of_a_certificate_that_is_shown_no_more)
{
    place p;
    stg_ns now = stg_deadlines_now();
    stg_watch *w;

    open_place(&p, 3);
    w = &p.hub->watch;
    // It was of https before, as far as alerts know.
    stg_alerts_certificate(w->alerts, 1, 2 * STG_HOUR, STG_HOUR, now);
    CHECK(stg_alerts_is_raised(w->alerts, STG_ALERT_CERTIFICATE, 1));
    w->look.passed(&w->look);
    CHECK(!stg_alerts_is_raised(w->alerts, STG_ALERT_CERTIFICATE, 1));
    close_place(&p);
}

/* -- a page is being made -------------------------------------------------- */

static void take_page(void *ctx, char *text, size_t size)
{
    place *p = ctx;

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
    place p;

    open_place(&p, MANY);
    CHECK(stg_metrics_ask(&p.hub->metrics, take_page, &p));
    while (p.hub->metrics.at == 0)
        (void)uv_run(&p.loop, UV_RUN_ONCE);
    CHECK(p.hub->metrics.at < MANY);
    write_settings(&p, MANY, true);
    ask_for_reload(&p);
    wait_reload(&p);
    while (p.page == NULL)
        (void)uv_run(&p.loop, UV_RUN_ONCE);
    CHECK_INT(p.last.status, STG_OK);
    CHECK_U64(p.last.same, MANY);
    for (int i = 0; i < MANY; i++) {
        char sample[64];

        snprintf(sample, sizeof sample,
                 "stagger_connects_total{target=\"t%03d\"} ", i);
        CHECK_INT(count_of(p.page, sample), 1);
    }
    free(p.page);
    close_place(&p);
}
