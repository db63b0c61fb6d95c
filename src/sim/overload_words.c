#include "sim/overload_words.h"

#include <string.h>

#include "sim/overload_text.h"

void stg_overload_say_recovery(const stg_overload_summary *s, stg_paper *p)
{
    stg_estimate after;

    if (s->options->trigger.kind == STG_TRIGGER_NONE || s->runs == 0)
        return;
    if (s->healthy == 0) {
        stg_paper_put(p, "was not well before");
        return;
    }
    if (s->recovered == 0) {
        stg_paper_put(p, "never");
        return;
    }
    if (s->recovered < s->runs)
        stg_paper_form(p, "in %d of %d, ", (int)s->recovered, (int)s->runs);
    after = stg_overload_summary_figure(s, STG_FIGURE_RECOVERY, NULL);
    if (after.mean * 1e6 < (double)s->options->bin) {
        stg_paper_put(p, "at once");
        return;
    }
    stg_paper_put(p, "after ");
    stg_paper_put_time(p, after.mean);
}

/* All runs recover; some; none. */
static int judge(const stg_overload_summary *s)
{
    if (s->recovered == s->runs)
        return 2;
    return s->recovered > 0 ? 1 : 0;
}

static void say_names(const stg_overload_case *cases, size_t count, int verdict,
                      stg_paper *p)
{
    size_t left = 0;

    for (size_t i = 0; i < count; i++)
        left += judge(cases[i].summary) == verdict;
    for (size_t i = 0; i < count; i++) {
        if (judge(cases[i].summary) != verdict)
            continue;
        stg_paper_put(p, cases[i].name);
        left--;
        stg_paper_put(p, left > 1 ? ", " : left == 1 ? " and " : "");
    }
}

static void say_verdict(const stg_overload_case *cases, size_t count,
                        int verdict, const char *one, const char *many,
                        stg_paper *p)
{
    size_t of = 0;

    for (size_t i = 0; i < count; i++)
        of += judge(cases[i].summary) == verdict;
    if (of == 0)
        return;
    stg_paper_put(p, verdict == 2 ? " " : ", ");
    say_names(cases, count, verdict, p);
    stg_paper_put(p, of == 1 ? one : many);
}

/* "the outage"; where they differ "the trouble". */
static const char *say_trouble(const stg_overload_case *cases, size_t count,
                               char text[STG_TRIGGER_TEXT_MAX])
{
    const stg_trigger *first = &cases[0].summary->options->trigger;

    for (size_t i = 1; i < count; i++) {
        const stg_trigger *t = &cases[i].summary->options->trigger;

        if (t->kind != first->kind || t->factor != first->factor)
            return "the trouble";
    }
    return stg_trigger_say(first, text);
}

static void say_some(const stg_overload_case *cases, size_t count, size_t good,
                     stg_paper *p)
{
    char text[STG_TRIGGER_TEXT_MAX];

    stg_paper_form(p, "After %s", say_trouble(cases, count, text));
    if (count > 4) {
        stg_paper_form(p, " %d of %d recover", (int)good, (int)count);
        return;
    }
    say_verdict(cases, count, 2, " recovers", " recover", p);
    say_verdict(cases, count, 1, " does not always", " do not always", p);
    say_verdict(cases, count, 0, " never does", " never do", p);
}

static double success_of(const stg_overload_case *c)
{
    return stg_overload_summary_figure(c->summary, STG_FIGURE_SUCCESS, NULL)
        .mean;
}

static void put_success(const stg_overload_case *c, stg_paper *p)
{
    stg_paper_put_people(p, 100 * success_of(c));
    stg_paper_put(p, " %");
}

/* There is nothing to recover from. */
static void say_success(const stg_overload_case *cases, size_t count,
                        stg_paper *p)
{
    const stg_overload_case *best = cases, *worst = cases;

    for (size_t i = 1; i < count; i++) {
        best = success_of(&cases[i]) > success_of(best) ? &cases[i] : best;
        worst = success_of(&cases[i]) < success_of(worst) ? &cases[i] : worst;
    }
    stg_paper_put(p, "With nothing wrong from outside, ");
    put_success(best, p);
    stg_paper_put(p, " of the operations succeed");
    if (best == worst)
        return;
    stg_paper_form(p, " with %s, and ", best->name);
    put_success(worst, p);
    stg_paper_form(p, " with %s", worst->name);
}

void stg_overload_say_finding(const stg_overload_case *cases, size_t count,
                              stg_paper *p)
{
    const stg_trigger *t = &cases[0].summary->options->trigger;
    char text[STG_TRIGGER_TEXT_MAX];
    size_t good = 0, bad = 0, unwell = 0;

    if (t->kind == STG_TRIGGER_NONE) {
        say_success(cases, count, p);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        good += judge(cases[i].summary) == 2;
        bad += judge(cases[i].summary) == 0;
        unwell += cases[i].summary->healthy == 0;
    }
    if (unwell == count) {
        stg_paper_form(p,
                       count > 1 ? "None was well before %s"
                                 : "It was not well before %s",
                       say_trouble(cases, count, text));
        return;
    }
    if (good == count || bad == count) {
        if (count > 1)
            stg_paper_put(p, good == count ? "All recover" : "None recovers");
        else
            stg_paper_put(p, good == count ? "It recovers"
                                           : "It does not recover");
        stg_paper_form(p, " from %s", say_trouble(cases, count, text));
        return;
    }
    say_some(cases, count, good, p);
}

/* -- what was simulated ---------------------------------------------------- */

static void say_workers(const stg_overload_options *o, stg_paper *p)
{
    char text[STG_LAW_TEXT_MAX];

    stg_paper_put_people(p, o->service.workers);
    stg_paper_put(p, o->service.workers == 1 ? " worker of " : " workers of ");
    stg_paper_put(p, stg_law_print(&o->service.time, text));
}

static void say_queue(const stg_overload_options *o, stg_paper *p)
{
    stg_paper_put(p, "a queue of ");
    stg_paper_put_people(p, o->service.queue_max);
    stg_paper_put(p, o->service.is_lifo ? ", last come first" : "");
}

static void say_load(const stg_overload_options *o, stg_paper *p)
{
    const stg_load *l = &o->load;
    char text[STG_LAW_TEXT_MAX];

    if (l->is_closed) {
        stg_paper_put_people(p, l->clients);
        stg_paper_form(p, " clients that think for %s",
                       stg_law_print(&l->think, text));
        return;
    }
    stg_paper_put_people(p, (double)l->rate / 1000);
    stg_paper_put(p, " operations a second");
}

static void say_timeout(const stg_overload_options *o, stg_paper *p)
{
    if (o->timeout == STG_NEVER)
        return;
    stg_paper_put(p, "timeout ");
    stg_paper_put_time(p, (double)o->timeout / 1e6);
}

static void say_trigger(const stg_overload_options *o, stg_paper *p)
{
    char text[STG_TRIGGER_TEXT_MAX];

    if (o->trigger.kind == STG_TRIGGER_NONE)
        return;
    stg_paper_form(p, "%s from ", stg_trigger_print(&o->trigger, text));
    stg_paper_put_time(p, (double)o->trigger.from_at / 1e6);
    stg_paper_put(p, " to ");
    stg_paper_put_time(p, (double)o->trigger.until_at / 1e6);
}

typedef void say(const stg_overload_options *o, stg_paper *p);

/* Whether it is something, and the same of all. */
static bool is_common(const stg_overload_case *cases, size_t count, say *part,
                      stg_paper *p)
{
    stg_paper other = stg_paper_on(p->memory);
    bool is_same;

    part(cases[0].summary->options, p);
    is_same = p->length > 0;
    for (size_t i = 1; i < count && is_same; i++) {
        stg_paper_clear(&other);
        part(cases[i].summary->options, &other);
        is_same = other.length == p->length &&
                  memcmp(other.text, p->text, p->length) == 0;
    }
    stg_paper_free(&other);
    return is_same;
}

void stg_overload_say_setting(const stg_overload_case *cases, size_t count,
                              stg_paper *p)
{
    say *const parts[] = {say_workers, say_queue, say_load, say_timeout,
                          say_trigger};
    stg_paper part = stg_paper_on(p->memory);
    bool is_first = true;

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        stg_paper_clear(&part);
        if (!is_common(cases, count, parts[i], &part))
            continue;
        stg_paper_form(p, "%s%s", is_first ? "" : ", ", part.text);
        is_first = false;
    }
    stg_paper_free(&part);
}
