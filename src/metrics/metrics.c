/* The page: a picture is taken, printed by a thread, and given away. */
#include "metrics/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/wall.h"
#include "hub/hub_internal.h"
#include "ingress/ask.h"

enum { SLICE = 256 /* targets a turn of the loop */ };

typedef struct waiter {
    stg_link link;
    stg_metrics_fn *done;
    void *ctx;
} waiter;

/* -- the answer ------------------------------------------------------------ */

static char *copy_of(const char *text, size_t size)
{
    char *copy = text == NULL ? NULL : malloc(size);

    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

/* The text for the last, a copy for each before. Who asks from here on asks for
 * the next page. */
static void give(stg_metrics *m, char *text, size_t size)
{
    stg_link *last = stg_list_last(&m->waiting), *at;

    if (last == NULL)
        free(text);
    do {
        waiter *w;
        char *given;

        at = stg_list_shift(&m->waiting);
        if (at == NULL)
            return;
        w = STG_HOLDER(at, waiter, link);
        given = at == last ? text : copy_of(text, size);
        w->done(w->ctx, given, given == NULL ? 0 : size);
        free(w);
    } while (at != last);
}

static void forget_picture(stg_metrics *m)
{
    free(m->picture.rows);
    stg_picture_free_kafka(&m->picture);
    m->picture = (stg_snapshot){.rows = NULL};
    m->rows_max = m->at = 0;
}

static void begin(stg_metrics *m)
{
    stg_deadline_set(&m->hub->deadlines, &m->next, stg_deadlines_now());
}

static void end(stg_metrics *m, char *text, size_t size)
{
    forget_picture(m);
    give(m, text, size);
    if (!stg_list_is_empty(&m->waiting) && m->closed == NULL)
        begin(m);
}

/* -- printing, by a thread ------------------------------------------------- */

static void print(uv_work_t *work)
{
    stg_metrics *m = work->data;
    stg_process_view process;

    stg_process_look(&process);
    stg_picture_print(&m->picture, &process, &m->page);
}

static void printed(uv_work_t *work, int status)
{
    stg_metrics *m = work->data;
    size_t size;
    char *text = stg_page_take(&m->page, &size);

    (void)status; // nobody cancels it
    m->is_printing = false;
    end(m, text, size);
    if (m->closed != NULL)
        m->closed(m->closed_ctx);
}

static void begin_printing(stg_metrics *m)
{
    m->work.data = m;
    m->is_printing = uv_queue_work(m->hub->loop, &m->work, print, printed) == 0;
    if (!m->is_printing)
        end(m, NULL, 0);
}

/* -- a picture of the targets, in slices ----------------------------------- */

static void look_at(const stg_metrics *m, const stg_target *t,
                    stg_picture_row *row, stg_ns now)
{
    stg_lane_view *lane = &row->lane;

    *row = (stg_picture_row){.targets = 1};
    memcpy(row->name, t->name, strlen(t->name) + 1);
    row->lane_number = t->lane;
    if (t->endpoint != NULL)
        stg_endpoint_look(t->endpoint, &row->sockets);
    if (stg_hub_look_lane(m->hub, t->lane, lane, now) != STG_OK)
        return; // it has ended
    row->states[stg_target_state(t, lane->state)] = 1;
    row->catching_up = lane->is_laggard;
    row->breakers_open = lane->breaker != STG_BREAKER_CLOSED;
    if (lane->oldest_at > 0)
        row->lag_time = stg_ns_sub(m->wall_at, lane->oldest_at);
    if (t->counters != NULL)
        stg_counters_note(t->counters, lane->budget_refused,
                          row->sockets.connects);
}

/* A target keeps its label, or its place among the others, for as long as it
 * is there: else a sum would fall. */
static void give_label(stg_metrics *m, stg_target *t)
{
    if (t->label != STG_LABEL_NONE)
        return;
    t->label = m->labelled < m->labelled_max ? STG_LABEL_OWN : STG_LABEL_OTHERS;
    m->labelled += t->label == STG_LABEL_OWN;
}

/* The row of the others is behind all that may have their own. */
static void add_target(stg_metrics *m, stg_target *t, stg_ns now)
{
    stg_snapshot *p = &m->picture;
    stg_picture_row one;

    give_label(m, t);
    if (t->label == STG_LABEL_OWN && p->count < m->rows_max) {
        look_at(m, t, &p->rows[p->count], now);
        if (t->counters != NULL)
            p->rows[p->count].counters = *t->counters;
        p->count++;
        return;
    }
    look_at(m, t, &one, now);
    stg_picture_add(&p->rows[m->rows_max], &one, t->counters);
    p->has_others = true;
}

static void take_alerts(const stg_alerts *a, stg_snapshot *p)
{
    stg_alerts_look(a, &p->alerts);
    for (p->sink_count = 0; p->sink_count < STG_ALERT_SINKS_MAX;
         p->sink_count++) {
        stg_picture_sink *sink = &p->sinks[p->sink_count];

        if (stg_alerts_look_sink(a, p->sink_count, &sink->view) != STG_OK)
            return;
        (void)snprintf(sink->name, sizeof sink->name, "%s", sink->view.name);
        sink->view.name = NULL;
    }
}

static void take_hub(stg_metrics *m)
{
    stg_hub *h = m->hub;
    stg_snapshot *p = &m->picture;

    stg_hub_look(h, &p->hub);
    stg_store_look(h->store, &p->store);
    p->has_ingress = h->intake.ingress != NULL;
    if (p->has_ingress)
        stg_ingress_look(h->intake.ingress, &p->ingress);
    p->known = h->targets.known;
    p->unknown = h->targets.count - h->targets.known;
    p->groups = m->groups;
    stg_picture_take_kafka(p, &h->source);
    take_alerts(h->watch.alerts, p);
    p->log_dropped = stg_log_dropped(h->log);
    p->started_at = m->started_at;
    p->memory_max = h->settings->memory_max;
}

/* The row of the others to its place. */
static void complete(stg_metrics *m)
{
    stg_snapshot *p = &m->picture;

    if (p->has_others) {
        stg_picture_row *others = &p->rows[p->count++];

        if (others != &p->rows[m->rows_max])
            *others = p->rows[m->rows_max];
        memcpy(others->name, STG_OTHER_TARGETS, sizeof STG_OTHER_TARGETS);
    }
    take_hub(m);
    begin_printing(m);
}

/* False: there was no memory. */
static bool start_over(stg_metrics *m)
{
    const stg_targets *t = &m->hub->targets;

    forget_picture(m);
    m->changes = t->changes;
    m->wall_at = stg_wall_now();
    m->rows_max = t->count < m->labelled_max ? t->count : m->labelled_max;
    m->picture.rows = calloc(m->rows_max + 1, sizeof *m->picture.rows);
    if (m->picture.rows == NULL)
        return false;
    m->picture.rows[m->rows_max].counters = m->gone;
    m->picture.has_others = m->gone.started > 0;
    return true;
}

static void take_slice(stg_deadline *d)
{
    stg_metrics *m = STG_HEAP_HOLDER(d, stg_metrics, next);
    const stg_targets *all = &m->hub->targets;
    stg_ns now = stg_deadlines_now();

    // Targets that came or went have moved the others.
    if ((m->picture.rows == NULL || m->changes != all->changes) &&
        !start_over(m)) {
        end(m, NULL, 0);
        return;
    }
    for (int i = 0; i < SLICE && m->at < all->count; i++)
        add_target(m, all->all[m->at++], now);
    if (m->at < all->count)
        stg_deadline_set(&m->hub->deadlines, d, now);
    else
        complete(m);
}

/* -- asking ---------------------------------------------------------------- */

bool stg_metrics_ask(stg_metrics *m, stg_metrics_fn *done, void *ctx)
{
    waiter *w = malloc(sizeof *w);

    if (w == NULL)
        return false;
    *w = (waiter){.done = done, .ctx = ctx};
    stg_list_push(&m->waiting, &w->link);
    if (!m->is_printing && m->picture.rows == NULL)
        begin(m);
    return true;
}

static void answer(void *ask, char *text, size_t size)
{
    stg_ask_answer(ask, 200, STG_PAGE_TYPE, text, size);
}

static void answer_metrics(void *ctx, stg_ask *a)
{
    if (!stg_metrics_ask(ctx, answer, a))
        stg_ask_refuse(a, 503, "there is no memory for the metrics");
}

void stg_metrics_serve(stg_metrics *m, stg_ingress *g)
{
    static const stg_route routes[] = {
        {"GET", "/metrics", STG_ROLE_VIEW, STG_BODY_NONE, NULL, answer_metrics,
         true},
    };

    stg_ingress_serve(g, routes, 1, m);
}

/* -- open, close ----------------------------------------------------------- */

void stg_metrics_open(stg_metrics *m, stg_hub *hub, uint32_t labelled_max)
{
    m->hub = hub;
    m->labelled_max = labelled_max;
    m->started_at = stg_wall_now();
    m->next.passed = take_slice;
    stg_list_init(&m->waiting);
}

void stg_metrics_close(stg_metrics *m, void (*closed)(void *ctx), void *ctx)
{
    if (m->is_printing) {
        m->closed = closed;
        m->closed_ctx = ctx;
        return;
    }
    stg_deadline_clear(&m->hub->deadlines, &m->next);
    forget_picture(m);
    give(m, NULL, 0);
    closed(ctx);
}
