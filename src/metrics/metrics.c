/* The page of metrics: a snapshot is taken in slices, printed by a thread, and
 * given to all who wait for it.
 *
 * A slice has SLICE targets, so that a turn of the loop stays short. If a
 * target came, went or moved between two slices, the snapshot starts over,
 * because it goes by their numbers.
 *
 * The thread reads the snapshot, which the loop does not touch while
 * is_printing is true. */
#include "metrics/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/wall.h"
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

/* rows NULL is how the rest knows that no page is being made. */
static void forget_snapshot(stg_metrics *m)
{
    free(m->snapshot.rows);
    stg_snapshot_free_source(&m->snapshot);
    m->snapshot = (stg_snapshot){.rows = NULL};
    m->rows_max = m->at = 0;
}

static void begin(stg_metrics *m)
{
    stg_deadline_set(m->facts.deadlines, &m->next, stg_deadlines_now());
}

/* text may be NULL: no memory. Those who asked since give() began have a page
 * made anew. */
static void end(stg_metrics *m, char *text, size_t size)
{
    forget_snapshot(m);
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
    stg_snapshot_print(&m->snapshot, &process, &m->page);
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

/* A pool that takes no work is answered like want of memory. */
static void begin_printing(stg_metrics *m)
{
    m->work.data = m;
    m->is_printing =
        uv_queue_work(m->facts.loop, &m->work, print, printed) == 0;
    if (!m->is_printing)
        end(m, NULL, 0);
}

/* -- a snapshot of the targets, in slices ----------------------------------- */

/* A target keeps its label, or its place among the others, for as long as it
 * is there: else a sum would fall. */
static void give_label(stg_metrics *m, stg_meter *t)
{
    if (t->label != STG_LABEL_NONE)
        return;
    t->label =
        m->labelled < m->facts.labelled_max ? STG_LABEL_OWN : STG_LABEL_OTHERS;
    m->labelled += t->label == STG_LABEL_OWN;
}

/* Behind the rows of those with a label come the row of all others, and one in
 * which each of them is looked at. */
static void add_target(stg_metrics *m, size_t i)
{
    stg_snapshot *p = &m->snapshot;
    stg_snapshot_row *row;
    stg_meter *t = m->facts.look(m->facts.ctx, i, NULL, 0);
    bool has_own;

    give_label(m, t);
    has_own = t->label == STG_LABEL_OWN && p->count < m->rows_max;
    row = &p->rows[has_own ? p->count++ : m->rows_max + 1];
    (void)m->facts.look(m->facts.ctx, i, row, m->wall_at);
    if (!has_own) {
        stg_snapshot_add(&p->rows[m->rows_max], row, t->counters);
        p->has_others = true;
    } else if (t->counters != NULL) {
        row->counters = *t->counters;
    }
}

/* The row of the others to its place. */
static void complete(stg_metrics *m)
{
    stg_snapshot *p = &m->snapshot;

    if (p->has_others) {
        stg_snapshot_row *others = &p->rows[p->count++];

        if (others != &p->rows[m->rows_max])
            *others = p->rows[m->rows_max];
        memcpy(others->name, STG_OTHER_TARGETS, sizeof STG_OTHER_TARGETS);
    }
    p->groups = m->groups;
    p->started_at = m->started_at;
    m->facts.complete(m->facts.ctx, p);
    begin_printing(m);
}

/* Two rows more than labels: the sum of the others, which begins with what
 * targets that are no more have counted, and a row to look at one of them.
 * False: there was no memory. */
static bool start_over(stg_metrics *m)
{
    size_t count;

    forget_snapshot(m);
    count = m->facts.count(m->facts.ctx, &m->changes);
    m->wall_at = stg_wall_now();
    m->rows_max = count < m->facts.labelled_max ? count : m->facts.labelled_max;
    m->snapshot.rows = calloc(m->rows_max + 2, sizeof *m->snapshot.rows);
    if (m->snapshot.rows == NULL)
        return false;
    m->snapshot.rows[m->rows_max].counters = m->gone;
    m->snapshot.has_others = m->gone.started > 0;
    return true;
}

static void take_slice(stg_deadline *d)
{
    stg_metrics *m = STG_HEAP_HOLDER(d, stg_metrics, next);
    uint64_t changes;
    size_t count = m->facts.count(m->facts.ctx, &changes);

    // Targets that came or went have moved the others.
    if ((m->snapshot.rows == NULL || m->changes != changes) && !start_over(m)) {
        end(m, NULL, 0);
        return;
    }
    for (int i = 0; i < SLICE && m->at < count; i++)
        add_target(m, m->at++);
    if (m->at < count)
        stg_deadline_set(m->facts.deadlines, d, stg_deadlines_now());
    else
        complete(m);
}

/* -- asking ---------------------------------------------------------------- */

/* False: no memory, and done is not called. Who asks while a page is made gets
 * that page; who asks while it is given away, the next one. */
bool stg_metrics_ask(stg_metrics *m, stg_metrics_fn *done, void *ctx)
{
    waiter *w = malloc(sizeof *w);

    if (w == NULL)
        return false;
    *w = (waiter){.done = done, .ctx = ctx};
    stg_list_push(&m->waiting, &w->link);
    if (!m->is_printing && m->snapshot.rows == NULL)
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
        stg_ask_refuse(a, 503, "out of memory: cannot print the metrics");
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

void stg_metrics_open(stg_metrics *m, const stg_metrics_facts *facts)
{
    m->facts = *facts;
    m->started_at = stg_wall_now();
    m->next.passed = take_slice;
    stg_list_init(&m->waiting);
}

/* While the thread prints, closed is called by printed(). */
void stg_metrics_close(stg_metrics *m, void (*closed)(void *ctx), void *ctx)
{
    if (m->is_printing) {
        m->closed = closed;
        m->closed_ctx = ctx;
        return;
    }
    stg_deadline_clear(m->facts.deadlines, &m->next);
    forget_snapshot(m);
    give(m, NULL, 0);
    closed(ctx);
}
