/* What can be said of advice for clients that begin together. Two candidates are
 * told apart only where the difference, run by run, is more than chance makes:
 * three standard errors, for the best of ten was chosen for being ahead. Those that
 * are not are named as equals. "In all runs" is of every run, not of means. */
#include "core/writer.h"
#include "sim/drain.h"

static void put_ns(stg_text_buffer *p, stg_ns ns)
{
    char text[STG_NS_TEXT_MAX];

    stg_text_buffer_put(p, stg_ns_text(ns, text));
}

static void put_clients(stg_text_buffer *p, uint32_t clients)
{
    stg_text_buffer_put_counted(p, clients, " client", " clients");
}

static bool is_more(stg_estimate e)
{
    return e.mean > 3 * e.se;
}

static bool is_less(stg_estimate e)
{
    return -e.mean > 3 * e.se;
}

static bool is_apart(stg_estimate e)
{
    return is_more(e) || is_less(e);
}

/* Success before time, and time before calls: chance makes no difference
 * bad. */
static bool is_worse(const stg_drain_case *c)
{
    if (is_apart(c->more.missed))
        return is_more(c->more.missed);
    if (is_apart(c->more.time))
        return is_more(c->more.time);
    return is_more(c->more.calls);
}

static bool is_tie(const stg_drain_case *c)
{
    return !is_apart(c->more.missed) && !is_apart(c->more.time) &&
           !is_apart(c->more.calls);
}

/* -- the question ---------------------------------------------------------- */

void stg_drain_say_question(const stg_drain_question *q, stg_text_buffer *p)
{
    char resource[STG_RESOURCE_TEXT_MAX];
    stg_ns timeout = stg_drain_timeout(q);

    put_clients(p, q->clients);
    stg_text_buffer_form(p,
                         " begin together, and each wants one success of "
                         "one resource: %s. An attempt ",
                         stg_resource_print(&q->resource, resource));
    if (timeout == STG_NEVER) {
        stg_text_buffer_put(p, "has no timeout");
    } else {
        stg_text_buffer_put(p, "waits ");
        put_ns(p, timeout);
        stg_text_buffer_put(p, " at most");
    }
    if (q->patience != STG_NEVER) {
        stg_text_buffer_put(p, ", a client ");
        put_ns(p, q->patience);
    }
    if (stg_drain_scale(q) > 1) {
        stg_text_buffer_put(p, "; simulated 1 : ");
        stg_text_buffer_put_rounded(p, stg_drain_scale(q));
    }
    stg_text_buffer_put(p, ".\n");
}

/* -- success and time ------------------------------------------------------ */

static void say_success(const stg_drain_report *r, stg_text_buffer *p)
{
    const stg_drain_verdict *v = r->cases[0].verdict;

    if (v->unfinished == 0) {
        stg_text_buffer_form(p, "Each client succeeds, in all %d runs (",
                             (int)v->runs);
        stg_text_buffer_put_rounded(p, stg_drain_clients(r->question, 2));
        stg_text_buffer_put(p, " to ");
        put_clients(p, stg_drain_clients(r->question, 1));
        stg_text_buffer_put(p, ").\n");
        return;
    }
    stg_text_buffer_form(p,
                         "Not each client succeeds: with the best of %d "
                         "candidates ",
                         (int)r->tried);
    stg_text_buffer_put_percent(p, v->missed);
    stg_text_buffer_form(
        p, " of the clients do not, and in %d of %d runs some do not.\n",
        (int)v->unfinished, (int)v->runs);
}

/* "20 s is the least that any policy needs" is of the mean over runs. */
static void put_least(const stg_drain_question *q, size_t scenario,
                      stg_text_buffer *p)
{
    double least = stg_drain_least(q, stg_drain_clients(q, scenario));

    if (least <= 0)
        return;
    stg_text_buffer_put(p, " (at best ");
    stg_text_buffer_put_time(p, least / 1e6);
    stg_text_buffer_put(p, ")");
}

static void say_time(const stg_drain_report *r, stg_text_buffer *p)
{
    static const size_t order[] = {0, 2, 1};
    const stg_drain_verdict *v = r->cases[0].verdict;

    stg_text_buffer_put(p, v->unfinished == 0 ? "Done: " : "Stopped: ");
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        stg_text_buffer_put(p, i == 0 ? "" : "; ");
        put_clients(p, stg_drain_clients(r->question, order[i]));
        stg_text_buffer_put(p, " after ");
        stg_text_buffer_put_time(p, v->done_ms[order[i]].mean);
        put_least(r->question, order[i], p);
    }
    stg_text_buffer_form(p, ". Means of %d runs each.\n", (int)r->reps);
}

/* -- cost ------------------------------------------------------------------ */

static void put_calls(double calls, stg_text_buffer *p)
{
    stg_text_buffer_put_counted(p, calls, " call for each success",
                                " calls for each success");
}

static void say_cost(const stg_drain_report *r, stg_text_buffer *p)
{
    const stg_drain_verdict *v = r->cases[0].verdict;

    stg_text_buffer_put(p, "Cost: ");
    put_calls(v->each[0], p);
    stg_text_buffer_put(p, ", ");
    stg_text_buffer_put_rounded(p, v->each[1]);
    stg_text_buffer_put(p, " with ");
    put_clients(p, stg_drain_clients(r->question, 1));
    stg_text_buffer_put(p, "; at most ");
    stg_text_buffer_put_rounded(p, v->peak_ms100);
    stg_text_buffer_put(p,
                        " calls in 100 ms, the mean of the runs as asked.\n");
}

/* -- the others ------------------------------------------------------------ */

static void put_scenario(const stg_drain_report *r, const stg_drain_verdict *v,
                         size_t scenario, stg_text_buffer *p)
{
    stg_text_buffer_put_time(p, v->done_ms[scenario].mean);
    stg_text_buffer_put(p, " and ");
    put_calls(v->each[scenario], p);
    stg_text_buffer_put(p, " with ");
    put_clients(p, stg_drain_clients(r->question, scenario));
}

/* Writes another candidate's times and calls. If some clients did not succeed,
 * writes their share instead: the times say nothing about these clients. */
static void put_other(const stg_drain_report *r, const stg_drain_case *c,
                      stg_text_buffer *p)
{
    const stg_drain_verdict *v = c->verdict;

    stg_text_buffer_form(p, "%s: ", c->name);
    if (v->unfinished == 0) {
        put_scenario(r, v, 0, p);
        stg_text_buffer_put(p, ", ");
        put_scenario(r, v, 1, p);
        stg_text_buffer_put(p, ".");
        return;
    }
    stg_text_buffer_put_percent(p, v->missed);
    stg_text_buffer_put(p, " of all clients do not succeed");
    if (v->cut > 0)
        stg_text_buffer_form(p,
                             ", %d of %d runs being ended after %d calls a "
                             "client or long after the others",
                             (int)v->cut, (int)v->runs,
                             (int)STG_DRAIN_CALLS_MAX);
    stg_text_buffer_put(p, ".");
}

/* The best of those that begin at once, or of those that do not. */
static const stg_drain_case *find(const stg_drain_report *r, bool is_spread)
{
    for (size_t i = 0; i < r->count; i++)
        if (!r->cases[i].is_plain && (r->cases[i].start > 0) == is_spread)
            return &r->cases[i];
    return NULL;
}

static void say_starts(const stg_drain_report *r, stg_text_buffer *p)
{
    const stg_drain_case *best = &r->cases[0];
    const stg_drain_case *other = find(r, best->start == 0);

    if (best->start > 0) {
        stg_text_buffer_put(p, "Spread the starts over ");
        put_ns(p, best->start);
        stg_text_buffer_put(p, ".");
    } else if (other != NULL && is_worse(other)) {
        stg_text_buffer_put(p, "Begin at once.");
    }
    if (other != NULL && is_worse(other)) {
        stg_text_buffer_put(p, best->start > 0
                                   ? " The best of those that begin at once, "
                                   : " The best with a spread of the starts, ");
        put_other(r, other, p);
    }
    if (best->start > 0 || (other != NULL && is_worse(other)))
        stg_text_buffer_put(p, "\n");
}

static void say_ties(const stg_drain_report *r, stg_text_buffer *p)
{
    bool is_first = true;

    for (size_t i = 1; i < r->count; i++) {
        if (!is_tie(&r->cases[i]))
            continue;
        stg_text_buffer_put(p, is_first ? "As good, but for chance: " : "; ");
        stg_text_buffer_put(p, r->cases[i].name);
        is_first = false;
    }
    if (!is_first)
        stg_text_buffer_put(p, ".\n");
}

/* No fewer succeed, and there is something else that is better: fewer calls for
 * more time, or some less time for more calls. */
static bool is_choice(const stg_drain_case *c)
{
    return !is_more(c->more.missed) &&
           (is_less(c->more.calls) || is_less(c->more.time));
}

static void put_choice(const stg_drain_case *c, stg_text_buffer *p)
{
    bool is_cheap = is_less(c->more.calls), is_soon = is_less(c->more.time);

    stg_text_buffer_put(p, is_cheap ? "fewer calls" : "sooner");
    if (is_cheap && is_soon)
        stg_text_buffer_put(p, ", and sooner");
    else if (is_cheap && is_more(c->more.time))
        stg_text_buffer_put(p, ", but later");
    else if (is_soon && is_more(c->more.calls))
        stg_text_buffer_put(p, ", by more calls");
    stg_text_buffer_put(p, ", with ");
}

static void say_choices(const stg_drain_report *r, stg_text_buffer *p)
{
    for (size_t i = 1; i < r->count; i++) {
        const stg_drain_case *c = &r->cases[i];

        if (!is_choice(c))
            continue;
        stg_text_buffer_put(p, "Over all runs ");
        put_choice(c, p);
        put_other(r, c, p);
        stg_text_buffer_put(p, "\n");
    }
}

static void say_plain(const stg_drain_report *r, stg_text_buffer *p)
{
    for (size_t i = 1; i < r->count; i++) {
        const stg_drain_case *c = &r->cases[i];

        if (!c->is_plain || !is_worse(c) || is_choice(c))
            continue;
        stg_text_buffer_put(p, "With ");
        put_other(r, c, p);
        stg_text_buffer_put(p, "\n");
    }
}

void stg_drain_say(const stg_drain_report *r, stg_text_buffer *p)
{
    say_success(r, p);
    say_time(r, p);
    say_cost(r, p);
    say_starts(r, p);
    say_ties(r, p);
    say_choices(r, p);
    say_plain(r, p);
}
