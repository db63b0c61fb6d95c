#include "sim/overload_report.h"

#include <stagger/text.h>

#include <string.h>

#include "sim/overload.h"
#include "sim/service.h"

/* What overloads came to, in sentences: titles, table cells and the setting.
 *
 * A sentence claims no more than the runs show. From a single run nothing
 * follows, so stg_overload_say_once() comes first. A run that was cut neither
 * recovers nor fails to. Two figures differ only by more than two standard
 * errors (is_apart). And "does not recover" is true within the time that was
 * simulated, which the sentence names.
 *
 * Sentences are put together from parts that bring their own blanks and commas:
 * a part that moves needs another beginning. */

/* How long the service had to recover, in seconds. */
static double rest_of(const stg_overload_summary *s)
{
    const stg_overload_options *o = s->options;

    return (double)(o->end_at - o->trigger.until_at) / 1e9;
}

/* "at once" is what is less than a bin: the series cannot tell more. The mean
 * is of those runs that recovered, so how many did stands before it. */
void stg_overload_say_recovery(const stg_overload_summary *s,
                               stg_text_buffer *buffer)
{
    stg_estimate after;

    if (s->options->trigger.kind == STG_TRIGGER_NONE || s->runs == 0)
        return;
    if (s->is_cut) {
        stg_text_buffer_put(buffer, "was cut");
        return;
    }
    if (s->healthy == 0) {
        stg_text_buffer_put(buffer, "was not well before");
        return;
    }
    if (s->recovered == 0) {
        stg_text_buffer_put(buffer, "not within ");
        stg_text_buffer_put_rounded(buffer, rest_of(s));
        stg_text_buffer_put(buffer, " s");
        return;
    }
    if (s->recovered < s->runs)
        stg_text_buffer_form(buffer, "in %d of %d, ", (int)s->recovered,
                             (int)s->runs);
    after = stg_overload_summary_figure(s, STG_FIGURE_RECOVERY, NULL);
    if (after.mean * 1e6 < (double)s->options->bin) {
        stg_text_buffer_put(buffer, "at once");
        return;
    }
    stg_text_buffer_put(buffer, "after ");
    stg_text_buffer_put_time(buffer, after.mean);
}

/* How the runs of a case ended, all together. */
typedef enum ending {
    NONE_RECOVERS,
    SOME_RECOVER,
    ALL_RECOVER,
    WAS_CUT, /* one was, so nobody knows */
} ending;

static ending find_ending(const stg_overload_summary *s)
{
    if (s->is_cut)
        return WAS_CUT;
    if (s->recovered == s->runs)
        return ALL_RECOVER;
    return s->recovered > 0 ? SOME_RECOVER : NONE_RECOVERS;
}

/* The names of the cases that ended so: "A, B and C". */
static void say_names(const stg_overload_case *cases, size_t count,
                      ending verdict, stg_text_buffer *buffer)
{
    size_t left = 0;

    for (size_t i = 0; i < count; i++)
        left += find_ending(cases[i].summary) == verdict;
    for (size_t i = 0; i < count; i++) {
        if (find_ending(cases[i].summary) != verdict)
            continue;
        stg_text_buffer_put(buffer, cases[i].name);
        left--;
        stg_text_buffer_put(buffer, left > 1 ? ", " : left == 1 ? " and " : "");
    }
}

/* Nothing if no case ended so. ALL_RECOVER is asked for first, and so begins
 * without a comma; without such a case the comma stands after the
 * introduction. */
static void say_verdict(const stg_overload_case *cases, size_t count,
                        ending verdict, const char *one, const char *many,
                        stg_text_buffer *buffer)
{
    size_t of = 0;

    for (size_t i = 0; i < count; i++)
        of += find_ending(cases[i].summary) == verdict;
    if (of == 0)
        return;
    stg_text_buffer_put(buffer, verdict == ALL_RECOVER ? " " : ", ");
    say_names(cases, count, verdict, buffer);
    stg_text_buffer_put(buffer, of == 1 ? one : many);
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

/* No longer than that is known of those that do not recover. */
static void say_within(const stg_overload_case *cases, size_t count,
                       stg_text_buffer *buffer)
{
    const stg_overload_summary *first = NULL;
    bool is_same = true;

    for (size_t i = 0; i < count; i++) {
        const stg_overload_summary *s = cases[i].summary;

        if (find_ending(s) != NONE_RECOVERS)
            continue;
        first = first == NULL ? s : first;
        is_same = is_same && rest_of(s) == rest_of(first);
    }
    if (first == NULL)
        return;
    if (!is_same) {
        stg_text_buffer_put(buffer, " within the time that was simulated");
        return;
    }
    stg_text_buffer_put(buffer, " within the ");
    stg_text_buffer_put_rounded(buffer, rest_of(first));
    stg_text_buffer_put(buffer, " s that were simulated");
}

/* Of more than four the names would be longer than a title: they are
 * counted. */
static void say_some(const stg_overload_case *cases, size_t count, size_t good,
                     stg_text_buffer *buffer)
{
    char text[STG_TRIGGER_TEXT_MAX];

    stg_text_buffer_form(buffer, "After %s", say_trouble(cases, count, text));
    if (count > 4) {
        stg_text_buffer_form(buffer, " %d of %d recover", (int)good,
                             (int)count);
        say_within(cases, count, buffer);
        return;
    }
    say_verdict(cases, count, ALL_RECOVER, " recovers", " recover", buffer);
    say_verdict(cases, count, SOME_RECOVER, " does not always",
                " do not always", buffer);
    say_verdict(cases, count, NONE_RECOVERS, " does not", " do not", buffer);
    say_within(cases, count, buffer);
    say_verdict(cases, count, WAS_CUT, " was cut", " were cut", buffer);
}

/* -- least and most -------------------------------------------------------- */

static stg_estimate figure_of(const stg_overload_case *c, stg_figure figure)
{
    return stg_overload_summary_figure(c->summary, figure, NULL);
}

bool stg_overload_rank(const stg_overload_case *cases, size_t count,
                       stg_figure figure, stg_overload_ends *ends)
{
    *ends = (stg_overload_ends){.is_single = count == 1};
    for (size_t i = 0; i < count; i++) {
        uint32_t has;
        double mean =
            stg_overload_summary_figure(cases[i].summary, figure, &has).mean;

        if (has == 0)
            continue;
        if (ends->least == NULL || mean < figure_of(ends->least, figure).mean)
            ends->least = &cases[i];
        if (ends->most == NULL || mean > figure_of(ends->most, figure).mean)
            ends->most = &cases[i];
    }
    if (ends->least == NULL)
        return false;
    ends->is_apart = stg_estimate_is_apart(figure_of(ends->least, figure),
                                           figure_of(ends->most, figure));
    return true;
}

void stg_overload_put_end(const stg_overload_ends *ends,
                          const stg_overload_case *end, stg_text_buffer *buffer)
{
    if (ends->is_apart)
        stg_text_buffer_form(buffer, " with %s", end->name);
    else if (!ends->is_single)
        stg_text_buffer_put(buffer, " in each case");
}

/* One case of one run is enough for no conclusion, since cases are compared.
 * One that was cut is left to the sentences that say so. */
bool stg_overload_say_once(const stg_overload_case *cases, size_t count,
                           stg_text_buffer *buffer)
{
    bool is_once = false;

    for (size_t i = 0; i < count; i++)
        is_once |= cases[i].summary->runs < 2 && !cases[i].summary->is_cut;
    if (is_once)
        stg_text_buffer_put(buffer, count > 1 ? "One run of each: no conclusion"
                                              : "One run: no conclusion");
    return is_once;
}

void stg_overload_put_success(const stg_overload_case *c,
                              stg_text_buffer *buffer)
{
    stg_text_buffer_put_rounded(buffer,
                                100 * figure_of(c, STG_FIGURE_SUCCESS).mean);
    stg_text_buffer_put(buffer, "\u00a0%");
}

/* Without a trigger there is nothing to recover from: how many succeed is
 * said. */
static void say_success(const stg_overload_case *cases, size_t count,
                        stg_text_buffer *buffer)
{
    stg_overload_ends ends;

    if (!stg_overload_rank(cases, count, STG_FIGURE_SUCCESS, &ends)) {
        stg_text_buffer_put(buffer, "No operation begins");
        return;
    }
    stg_text_buffer_put(buffer, "With nothing wrong from outside, ");
    stg_overload_put_success(ends.most, buffer);
    stg_text_buffer_put(buffer, " of the operations succeed");
    stg_overload_put_end(&ends, ends.most, buffer);
    if (!ends.is_apart)
        return;
    stg_text_buffer_put(buffer, ", and ");
    stg_overload_put_success(ends.least, buffer);
    stg_overload_put_end(&ends, ends.least, buffer);
}

/* From the strongest claim to the weakest: none was well before the trigger,
 * all or none recover, some do. The first case says whether there is a
 * trigger. */
void stg_overload_say_finding(const stg_overload_case *cases, size_t count,
                              stg_text_buffer *buffer)
{
    const stg_trigger *t = &cases[0].summary->options->trigger;
    char text[STG_TRIGGER_TEXT_MAX];
    size_t good = 0, bad = 0, unwell = 0;

    if (stg_overload_say_once(cases, count, buffer))
        return;
    if (t->kind == STG_TRIGGER_NONE) {
        say_success(cases, count, buffer);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        good += find_ending(cases[i].summary) == ALL_RECOVER;
        bad += find_ending(cases[i].summary) == NONE_RECOVERS;
        unwell += cases[i].summary->healthy == 0 && !cases[i].summary->is_cut;
    }
    if (unwell == count) {
        stg_text_buffer_form(buffer,
                             count > 1 ? "None was well before %s"
                                       : "It was not well before %s",
                             say_trouble(cases, count, text));
        return;
    }
    if (good == count || bad == count) {
        if (count > 1)
            stg_text_buffer_put(buffer, good == count ? "All recover"
                                                      : "None recovers");
        else
            stg_text_buffer_put(buffer, good == count ? "It recovers"
                                                      : "It does not recover");
        stg_text_buffer_form(buffer, " from %s",
                             say_trouble(cases, count, text));
        say_within(cases, count, buffer);
        return;
    }
    say_some(cases, count, good, buffer);
}

/* -- what was simulated ---------------------------------------------------- */

static void say_workers(const stg_overload_options *o, stg_text_buffer *buffer)
{
    char text[STG_DISTRIBUTION_TEXT_MAX];

    stg_text_buffer_put_counted(buffer, o->service.workers, " worker",
                                " workers");
    if (o->service.times != NULL)
        stg_text_buffer_put(buffer, " with the times of the trace");
    else
        stg_text_buffer_form(buffer, " of %s",
                             stg_distribution_print(&o->service.time, text));
}

static void say_queue(const stg_overload_options *o, stg_text_buffer *buffer)
{
    static const char *const orders[] = {"", ", last come first",
                                         ", last come first where it stands"};
    char text[STG_SERVICE_TEXT_MAX];

    stg_text_buffer_put(buffer, "a queue of ");
    stg_text_buffer_put_rounded(buffer, o->service.queue_max);
    stg_text_buffer_put(buffer, orders[o->service.order]);
    if (o->service.shed != STG_SIM_SHED_NONE)
        stg_text_buffer_form(buffer, ", shedding %s",
                             stg_service_print_shed(&o->service, text));
    if (o->service.limit != 0)
        stg_text_buffer_form(buffer, ", limit %s",
                             stg_service_print_limit(&o->service, text));
}

static void say_load(const stg_overload_options *o, stg_text_buffer *buffer)
{
    const stg_overload_load *l = &o->load;
    char text[STG_DISTRIBUTION_TEXT_MAX];

    if (l->is_closed) {
        stg_text_buffer_put_rounded(buffer, l->clients);
        stg_text_buffer_form(buffer, " clients that think for %s",
                             stg_distribution_print(&l->think, text));
        return;
    }
    if (l->points != NULL)
        stg_text_buffer_put(buffer, "up to ");
    else if (l->rate_end != 0) {
        stg_text_buffer_put_rounded(buffer, (double)l->rate / 1000);
        stg_text_buffer_put(buffer, " to ");
    }
    stg_text_buffer_put_rounded(buffer, l->points != NULL ? stg_load_most(l)
                                        : l->rate_end != 0
                                            ? (double)l->rate_end / 1000
                                            : (double)l->rate / 1000);
    stg_text_buffer_put(buffer, l->trace != NULL
                                    ? " operations a second, the mean of the "
                                      "trace"
                                    : " operations a second");
}

static void say_timeout(const stg_overload_options *o, stg_text_buffer *buffer)
{
    if (o->timeout == STG_NEVER)
        return;
    stg_text_buffer_put(buffer, "timeout ");
    stg_text_buffer_put_time(buffer, (double)o->timeout / 1e6);
}

static void say_trigger(const stg_overload_options *o, stg_text_buffer *buffer)
{
    char text[STG_TRIGGER_TEXT_MAX];

    if (o->trigger.kind == STG_TRIGGER_NONE)
        return;
    stg_text_buffer_form(buffer, "%s from ",
                         stg_trigger_print(&o->trigger, text));
    stg_text_buffer_put_time(buffer, (double)o->trigger.from_at / 1e6);
    stg_text_buffer_put(buffer, " to ");
    stg_text_buffer_put_time(buffer, (double)o->trigger.until_at / 1e6);
}

static void say_drag(const stg_overload_options *o, stg_text_buffer *buffer)
{
    if (o->service.drag == 0)
        return;
    stg_text_buffer_put_rounded(buffer, o->service.drag / 1e4);
    stg_text_buffer_put(buffer, "\u00a0% longer for each other one inside");
}

static void say_return(const stg_overload_options *o, stg_text_buffer *buffer)
{
    if (o->return_steps == 0)
        return;
    stg_text_buffer_form(buffer, "back in %d steps of ", (int)o->return_steps);
    stg_text_buffer_put_time(buffer, (double)o->return_step / 1e6);
}

static void say_cold(const stg_overload_options *o, stg_text_buffer *buffer)
{
    const stg_sim_cold *c = &o->cold;

    if (c->factor == 0)
        return;
    stg_text_buffer_put(buffer, "cold: ");
    stg_text_buffer_put_rounded(buffer, c->factor / 1000.0);
    stg_text_buffer_put(buffer, " times as long, for some ");
    if (c->starts == 0) {
        stg_text_buffer_put_time(buffer, (double)c->time / 1e6);
        return;
    }
    stg_text_buffer_put_rounded(buffer, c->starts);
    stg_text_buffer_put(buffer, " requests");
}

static void say_layers(const stg_overload_options *o, stg_text_buffer *buffer)
{
    if (o->layers > 1)
        stg_text_buffer_form(buffer, "the last of %d services in a row",
                             (int)o->layers);
}

static void say_others(const stg_overload_options *o, stg_text_buffer *buffer)
{
    char text[STG_POLICY_TEXT_MAX];

    if (!o->has_others)
        return;
    (void)stg_policy_print(&o->others, text);
    stg_text_buffer_form(buffer, "others with %s", text);
}

static void say_share(const stg_overload_options *o, stg_text_buffer *buffer)
{
    if (!o->has_others)
        return;
    stg_text_buffer_put_rounded(buffer, o->share / 1e4);
    stg_text_buffer_put(buffer, "\u00a0% of the clients are others");
}

typedef void say(const stg_overload_options *o, stg_text_buffer *buffer);

/* Whether a part says something, and the same of all cases. The texts are
 * compared, not the options: what a reader would see as equal is common. Leaves
 * the text of the first case in the buffer either way. */
static bool is_common(const stg_overload_case *cases, size_t count, say *part,
                      stg_text_buffer *buffer)
{
    stg_text_buffer other = stg_text_buffer_on(buffer->memory);
    bool is_same;

    part(cases[0].summary->options, buffer);
    is_same = buffer->length > 0;
    for (size_t i = 1; i < count && is_same; i++) {
        stg_text_buffer_clear(&other);
        part(cases[i].summary->options, &other);
        is_same = other.length == buffer->length &&
                  memcmp(other.text, buffer->text, buffer->length) == 0;
    }
    stg_text_buffer_free(&other);
    return is_same;
}

void stg_overload_say_setting(const stg_overload_case *cases, size_t count,
                              stg_text_buffer *buffer)
{
    say *const parts[] = {say_workers, say_drag,    say_queue,  say_layers,
                          say_load,    say_timeout, say_others, say_share,
                          say_trigger, say_return,  say_cold};
    stg_text_buffer part = stg_text_buffer_on(buffer->memory);
    bool is_first = true;

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        stg_text_buffer_clear(&part);
        if (!is_common(cases, count, parts[i], &part))
            continue;
        stg_text_buffer_form(buffer, "%s%s", is_first ? "" : ", ", part.text);
        is_first = false;
    }
    stg_text_buffer_free(&part);
}
