/* What can be said of advice. Two policies are told apart only where the
 * difference, run by run, is more than chance makes (stg_verdict_is_gain); those
 * that are not are named as equals. "In all runs" and "within" are of every run, not
 * of means. */
#include "core/writer.h"
#include "sim/advise.h"

static void put_ns(stg_text_buffer *p, stg_ns ns)
{
    char text[STG_NS_TEXT_MAX];

    stg_text_buffer_put(p, stg_ns_text(ns, text));
}

const char *stg_advice_say_after(double ms, char text[STG_ADVICE_AFTER_MAX])
{
    stg_writer w = stg_writer_on(text, STG_ADVICE_AFTER_MAX);

    if (ms < 0)
        stg_write_text(&w, "not always");
    else if (ms < 1)
        stg_write_text(&w, "at once");
    else
        (void)stg_ns_text((stg_ns)(ms * 1e6), text);
    return text;
}

/* -- the question ---------------------------------------------------------- */

void stg_advice_say_question(const stg_question *q, stg_text_buffer *p)
{
    stg_text_buffer_put_counted(p, q->clients, " client", " clients");
    if (q->processes != q->clients) {
        stg_text_buffer_put(p, " in ");
        stg_text_buffer_put_counted(p, q->processes, " process", " processes");
    }
    stg_text_buffer_put(p, ", ");
    stg_text_buffer_put_counted(p, (double)q->capacity / 1000,
                                " request a second, of which ",
                                " requests a second, of which ");
    stg_text_buffer_put_rounded(p, (double)q->load / 10);
    stg_text_buffer_put(p, " % are wanted; ");
    put_ns(p, q->outage);
    stg_text_buffer_put(p, " of outage, ");
    put_ns(p, q->patience);
    stg_text_buffer_put(p, " of patience");
    if (stg_question_scale(q) > 1)
        stg_text_buffer_form(p, "; simulated 1 : %d",
                             (int)stg_question_scale(q));
    stg_text_buffer_put(p, ".\n");
}

/* -- recovery -------------------------------------------------------------- */

/* The shortest trouble, under the least load, in which it fails. */
static size_t first_failure(const stg_advice_verdict *v)
{
    size_t first = STG_SCENARIOS;

    for (size_t i = 0; i < STG_SCENARIOS; i++) {
        stg_scenario s = stg_scenario_at(i), other;

        if (v->failed_in[i] == 0)
            continue;
        if (first == STG_SCENARIOS) {
            first = i;
            continue;
        }
        other = stg_scenario_at(first);
        if (s.outage < other.outage ||
            (s.outage == other.outage && s.load < other.load))
            first = i;
    }
    return first;
}

static const stg_advice_case *find_none(const stg_advice_report *r)
{
    for (size_t i = 0; i < r->count; i++)
        if (!r->cases[i].retries)
            return &r->cases[i];
    return NULL;
}

static void say_unwell(const stg_advice_report *r, stg_text_buffer *p)
{
    const stg_advice_verdict *v = r->cases[0].verdict;
    uint32_t least = UINT32_MAX;

    for (size_t i = 0; i < STG_SCENARIOS; i++) {
        uint32_t load = stg_scenario_load(r->question, stg_scenario_at(i));

        if (v->failed_in[i] > 0 && load < least)
            least = load;
    }
    stg_text_buffer_form(p,
                         "No policy helps: with the best one the service is "
                         "not well even before the trouble, in %d of %d runs, "
                         "the least of which want ",
                         (int)v->failed, (int)v->runs);
    stg_text_buffer_put_rounded(p, least / 10.0);
    stg_text_buffer_put(p,
                        " % of the capacity. It needs less load, more "
                        "capacity, or clients with more patience.\n");
}

/* What the best does not survive, and why: without any retries the service would
 * not, either; and its retries are not to blame. */
static void say_defeat(const stg_advice_report *r, stg_text_buffer *p)
{
    const stg_advice_verdict *v = r->cases[0].verdict;
    const stg_advice_case *none = find_none(r);
    size_t first = first_failure(v);
    stg_scenario s = stg_scenario_at(first);

    if (v->unwell == v->failed) {
        say_unwell(r, p);
        return;
    }
    stg_text_buffer_form(p,
                         "No policy survives all: the best one does not "
                         "recover in %d of %d runs, ",
                         (int)v->failed, (int)v->runs);
    stg_text_buffer_form(p, "%d of them after ", (int)v->failed_in[first]);
    stg_text_buffer_put(p, s.kind == STG_TRIGGER_STALL ? "a stall of "
                                                       : "an outage of ");
    put_ns(p, stg_scenario_outage(r->question, s));
    stg_text_buffer_put(p, " with ");
    stg_text_buffer_put_rounded(p, stg_scenario_load(r->question, s) / 10.0);
    stg_text_buffer_put(p, " % of the capacity wanted.\n");
    if (none != NULL && none->verdict->failed > 0)
        stg_text_buffer_form(
            p,
            "Without any retries %d of %d runs do not recover: the service needs "
            "more capacity, or a shorter queue.\n",
            (int)none->verdict->failed, (int)none->verdict->runs);
}

/* The longest recovery of any run, from trouble of a kind. */
static double longest(const stg_advice_verdict *v, stg_trigger_kind kind)
{
    double most = 0;

    for (size_t i = 0; i < STG_SCENARIOS; i++)
        if (stg_scenario_at(i).kind == kind && v->longest_ms[i] > most)
            most = v->longest_ms[i];
    return most;
}

static void say_range(const stg_question *q, stg_text_buffer *p)
{
    stg_scenario s = stg_scenario_at(0);
    stg_ns least = stg_scenario_outage(q, s), most = least;
    uint32_t low = stg_scenario_load(q, s), high = low;

    for (size_t i = 1; i < STG_SCENARIOS; i++) {
        stg_ns outage = stg_scenario_outage(q, stg_scenario_at(i));
        uint32_t load = stg_scenario_load(q, stg_scenario_at(i));

        least = stg_ns_min(least, outage);
        most = stg_ns_max(most, outage);
        low = load < low ? load : low;
        high = load > high ? load : high;
    }
    stg_text_buffer_put(p, "outages and stalls of ");
    put_ns(p, least);
    stg_text_buffer_put(p, " to ");
    put_ns(p, most);
    stg_text_buffer_put(p, ", ");
    stg_text_buffer_put_rounded(p, low / 10.0);
    stg_text_buffer_put(p, " % to ");
    stg_text_buffer_put_rounded(p, high / 10.0);
    stg_text_buffer_put(p, " % of the capacity wanted");
}

static void say_within(const char *what, double ms, stg_text_buffer *p)
{
    char text[STG_ADVICE_AFTER_MAX];

    stg_text_buffer_form(p, ms < 1 ? "at once after %s" : "within %s",
                         ms < 1 ? what : stg_advice_say_after(ms, text));
    if (ms >= 1)
        stg_text_buffer_form(p, " of the end of %s", what);
}

static void say_recovery(const stg_advice_report *r, stg_text_buffer *p)
{
    const stg_advice_verdict *v = r->cases[0].verdict;

    if (v->failed > 0) {
        say_defeat(r, p);
        return;
    }
    stg_text_buffer_form(p, "The service recovers in all %d runs (",
                         (int)v->runs);
    say_range(r->question, p);
    stg_text_buffer_put(p, "): ");
    say_within("an outage", longest(v, STG_TRIGGER_OUTAGE), p);
    stg_text_buffer_put(p, ", and ");
    say_within("a stall", longest(v, STG_TRIGGER_STALL), p);
    stg_text_buffer_put(p, ".\n");
}

/* -- where it ends --------------------------------------------------------- */

static void put_outage(const stg_question *q, uint32_t outage,
                       stg_text_buffer *p)
{
    put_ns(p, stg_scenario_outage(q, (stg_scenario){.outage = outage}));
}

static void say_cliff(const stg_question *q, const stg_cliff *c,
                      stg_text_buffer *p)
{
    stg_text_buffer_put(p, "With ");
    stg_text_buffer_put_rounded(
        p, stg_scenario_load(q, (stg_scenario){.load = c->load}) / 10.0);
    stg_text_buffer_put(p, " % of the capacity wanted it ");
    if (c->holds == 0) {
        stg_text_buffer_put(p, "does not always recover even from ");
        put_outage(q, c->fails, p);
        stg_text_buffer_put(p, ", the shortest that was tried.\n");
        return;
    }
    stg_text_buffer_put(p, "recovers from up to ");
    put_outage(q, c->holds, p);
    if (c->fails == 0) {
        stg_text_buffer_put(p, ", the longest that was tried.\n");
        return;
    }
    stg_text_buffer_put(p, ", not always from ");
    put_outage(q, c->fails, p);
    stg_text_buffer_put(p, ".\n");
}

/* -- what it costs --------------------------------------------------------- */

/* "Hopeless" operations end in the outage whatever the policy is: they are a
 * lower bound of the loss. */
static void say_cost(const stg_advice_report *r, stg_text_buffer *p)
{
    const stg_advice_verdict *v = r->cases[0].verdict;
    double hopeless = stg_question_hopeless(r->question);

    stg_text_buffer_put(p, "Lost: ");
    stg_text_buffer_put_percent(p, v->lost);
    stg_text_buffer_put(p, " of the operations of all runs, ");
    stg_text_buffer_put_percent(p, v->lost_asked);
    stg_text_buffer_put(p, " of those with ");
    put_ns(p, r->question->outage);
    stg_text_buffer_put(p, " of trouble");
    if (hopeless > 0) {
        stg_text_buffer_put(p, "; ");
        stg_text_buffer_put_percent(p, hopeless);
        stg_text_buffer_put(p,
                            " of all no policy can save, for their clients "
                            "lose patience before the trouble ends");
    }
    stg_text_buffer_put(p, ".\nCost: ");
    stg_text_buffer_put_counted(p, v->load, " request for each operation, ",
                                " requests for each operation, ");
    stg_text_buffer_put_rounded(p, v->peak);
    stg_text_buffer_put(p, " times the capacity at the peak");
    if (v->p99_runs > 0) {
        stg_text_buffer_put(p, "; p99 of what succeeds ");
        stg_text_buffer_put_time(p, v->p99_ms);
        stg_text_buffer_put(p, ", the mean of the runs");
    }
    stg_text_buffer_put(p, ".\n");
}

/* -- the others ------------------------------------------------------------ */

/* It recovers as often as the advised one, and loses less by more than chance
 * makes. */
static bool is_better(const stg_advice_report *r, const stg_advice_case *c)
{
    stg_estimate loss = {.mean = -c->gain.mean, .se = c->gain.se};

    return c->verdict->failed <= r->cases[0].verdict->failed &&
           stg_verdict_is_gain(loss);
}

/* They recover as often, and neither loses more than the other by more than
 * chance makes. */
static bool is_tie(const stg_advice_report *r, const stg_advice_case *c)
{
    return c->verdict->failed == r->cases[0].verdict->failed &&
           !stg_verdict_is_gain(c->gain) && !is_better(r, c);
}

static void say_ties(const stg_advice_report *r, stg_text_buffer *p)
{
    bool is_first = true;

    for (size_t i = 1; i < r->count; i++) {
        if (!is_tie(r, &r->cases[i]))
            continue;
        stg_text_buffer_put(p, is_first ? "As good, but for chance: " : "; ");
        stg_text_buffer_put(p, r->cases[i].name);
        is_first = false;
    }
    if (!is_first)
        stg_text_buffer_put(p, ".\n");
}

static void say_other(const stg_advice_case *c, stg_text_buffer *p)
{
    const stg_advice_verdict *v = c->verdict;

    stg_text_buffer_form(p, "With %s ", c->name);
    if (v->failed > 0) {
        stg_text_buffer_form(p, "%d of %d runs do not recover.\n",
                             (int)v->failed, (int)v->runs);
        return;
    }
    stg_text_buffer_put_percent(p, v->lost);
    stg_text_buffer_put(p, " of all operations are lost, at ");
    stg_text_buffer_put_counted(p, v->load, " request for each.\n",
                                " requests for each.\n");
}

/* What the ones for comparison show: why a policy is needed, and a budget. */
static void say_others(const stg_advice_report *r, stg_text_buffer *p)
{
    for (size_t i = 1; i < r->count; i++) {
        const stg_advice_case *c = &r->cases[i];

        if (c->is_plain && (c->verdict->failed > r->cases[0].verdict->failed ||
                            stg_verdict_is_gain(c->gain)))
            say_other(c, p);
    }
}

/* -- all of it ------------------------------------------------------------- */

/* Only finalists are compared by what they lose: of the rest there was one run. */
static void say_none(const stg_advice_report *r, stg_text_buffer *p)
{
    size_t rivals = 0;

    if (r->cases[0].retries || r->cases[0].verdict->failed > 0)
        return;
    for (size_t i = 1; i < r->count; i++) {
        if (is_better(r, &r->cases[i]))
            return;
        rivals += r->cases[i].retries;
    }
    stg_text_buffer_form(
        p,
        "Do not retry here: of at least %d policies the best %d with "
        "retries went through all, and none of them recovers "
        "and loses fewer by more than chance makes.\n",
        (int)r->tried, (int)rivals);
}

void stg_advice_say(const stg_advice_report *r, stg_text_buffer *p)
{
    say_none(r, p);
    say_recovery(r, p);
    for (size_t i = 0; i < STG_CLIFFS; i++)
        if (r->cliffs[i].load > 0)
            say_cliff(r->question, &r->cliffs[i], p);
    say_cost(r, p);
    say_ties(r, p);
    say_others(r, p);
}
