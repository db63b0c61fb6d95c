/* An open load: when its next operation begins.
 *
 * A rate that changes is a line from each of its points to the next. The next
 * operation comes where the rate, summed up over time, reaches a number that is
 * drawn: exponential for a Poisson process (which makes it one that changes: the
 * time scale of one that does not), 1 for even distances. On a line that is a
 * quadratic equation.
 *
 * Source: Cinlar, "Introduction to Stochastic Processes", 1975, chapter 4. */
#include "base/compiler.h"
#include "core/reader.h"
#include "core/writer.h"
#include "sim/overload_internal.h"
#include "sim/random.h"

/* -- the rate --------------------------------------------------------------- */

/* A part of the load: until until_at it goes from one rate to the other,
 * operations a second. */
typedef struct segment {
    stg_ns from_at, until_at;
    double from, until;
} segment;

static segment between(stg_ns from_at, double from, stg_ns until_at,
                       double until)
{
    return (segment){from_at, until_at, from / 1000, until / 1000};
}

/* The part that at is in. Of points at the same instant the last one holds. */
static segment find_segment(const stg_overload_options *o, stg_ns at)
{
    const stg_overload_load *l = &o->load;
    const stg_load_point *p = l->points;
    uint32_t low = 0, high = l->point_count; // the first that is later

    if (p == NULL)
        return between(0, (double)l->rate, o->end_at, (double)l->rate_end);
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (p[middle].at <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return between(0, p[0].rate, p[0].at, p[0].rate);
    if (low == l->point_count)
        return between(p[low - 1].at, p[low - 1].rate, o->end_at,
                       p[low - 1].rate);
    return between(p[low - 1].at, p[low - 1].rate, p[low].at, p[low].rate);
}

static double slope_of(const segment *l)
{
    return (l->until - l->from) / ((double)(l->until_at - l->from_at) / 1e9);
}

bool stg_load_changes(const stg_overload_load *l)
{
    return l->points != NULL || l->rate_end != 0 || l->trace != NULL;
}

double stg_load_most(const stg_overload_load *l)
{
    uint64_t most = l->rate > l->rate_end ? l->rate : l->rate_end;

    if (l->points != NULL)
        most = 0;
    for (uint32_t i = 0; l->points != NULL && i < l->point_count; i++)
        if (l->points[i].rate > most)
            most = l->points[i].rate;
    return (double)most / 1000;
}

double stg_load_total(const stg_overload_options *o)
{
    double sum = 0;
    stg_ns at = 0;

    if (!stg_load_changes(&o->load) || o->load.trace != NULL)
        return (double)o->load.rate / 1000 * ((double)o->end_at / 1e9);
    while (at < o->end_at) {
        segment l = find_segment(o, at);
        stg_ns until_at = stg_ns_min(l.until_at, o->end_at);
        double span = (double)(until_at - at) / 1e9;

        // From `at` on, which is where it begins.
        sum += (l.from + slope_of(&l) * span / 2) * span;
        at = until_at;
    }
    return sum;
}

/* -- the next operation ----------------------------------------------------- */

/* When `count` more have come, of `factor` times the load. */
STG_NOINLINE static stg_ns find_time(const stg_overload_world *w, double factor,
                                     double count)
{
    const stg_overload_options *o = w->options;
    stg_ns at = w->now;

    while (at < o->end_at) {
        segment l = find_segment(o, at);
        double slope = slope_of(&l) * factor;
        double here = l.from * factor + slope * (double)(at - l.from_at) / 1e9;
        double span = (double)(l.until_at - at) / 1e9;
        double all = (here + slope * span / 2) * span;

        if (all >= count) {
            double root = stg_estimate_root(here * here + 2 * slope * count);

            return stg_ns_add(at, (stg_ns)(2e9 * count / (here + root) + 0.5));
        }
        count -= all;
        at = l.until_at;
    }
    return STG_NEVER;
}

/* After the last one of the trace nothing begins. */
static void follow_trace(stg_overload_world *w)
{
    const stg_sim_trace *t = w->options->load.trace;

    w->begin_at = w->traced < t->count ? t->at[w->traced++] : STG_NEVER;
    if (w->begin_at != STG_NEVER)
        stg_overload_push(w, w->begin_at, STG_EVENT_BEGIN, 0);
}

/* The BEGIN event that is in the queue stays there and is ignored, as begin_at
 * is another. For a Poisson process drawing anew is exact, because it has no
 * memory; a regular load begins a new distance at the change. */
void stg_overload_redraw_load(stg_overload_world *w)
{
    const stg_overload_load *load = &w->options->load;
    const stg_trigger *t = &w->options->trigger;
    bool is_spike = w->is_in_trigger && t->kind == STG_TRIGGER_SPIKE;

    if (load->is_closed)
        return;
    if (load->trace != NULL) {
        follow_trace(w);
        return;
    }
    if (stg_load_changes(load)) {
        double factor = is_spike ? t->factor / 1000.0 : 1;
        double count =
            load->is_regular ? 1 : stg_random_exponential(&w->of_load);

        w->begin_at = find_time(w, factor, count);
    } else {
        double gap = 1e12 / (double)load->rate;

        if (is_spike)
            gap = gap * 1000 / t->factor;
        if (!load->is_regular)
            gap *= stg_random_exponential(&w->of_load);
        w->begin_at = stg_ns_add(w->now, (stg_ns)(gap + 0.5));
    }
    stg_overload_push(w, w->begin_at, STG_EVENT_BEGIN, 0);
}

/* -- a file of rates -------------------------------------------------------- */

static stg_status refuse_line(size_t number, const char *words, stg_error *err)
{
    stg_writer w = stg_writer_on_error(err);

    stg_write_text(&w, "line ");
    stg_write_number(&w, number);
    stg_write_text(&w, ": ");
    stg_write_text(&w, words);
    return STG_INVALID;
}

static void skip_blanks(stg_reader *r)
{
    while (r->at < r->end && (stg_is_blank(*r->at) || *r->at == '\r'))
        r->at++;
}

/* A number without a unit is of seconds. */
static bool read_time(stg_reader r, stg_ns *at)
{
    stg_reader seconds = r;
    uint32_t number;

    if (stg_read_decimal(&seconds, &number) && stg_reader_is_empty(&seconds)) {
        *at = (stg_ns)number * STG_MS;
        return true;
    }
    return stg_read_duration(&r, at) && stg_reader_is_empty(&r);
}

/* "90s,700", or "90,700". */
static bool read_point(stg_reader r, stg_load_point *p)
{
    stg_reader time = stg_read_until(&r, ',');

    while (time.end > time.at && stg_is_blank(time.end[-1]))
        time.end--;
    skip_blanks(&r);
    if (!read_time(time, &p->at) || !stg_read_decimal(&r, &p->rate))
        return false;
    skip_blanks(&r);
    return stg_reader_is_empty(&r) && p->rate <= 4000000000;
}

/* Blank lines and those that begin with # say nothing, and the first one may be
 * a heading. */
static bool says_nothing(const stg_reader *line, size_t number)
{
    return stg_reader_is_empty(line) || *line->at == '#' ||
           (number == 1 && !stg_is_digit(*line->at));
}

stg_status stg_load_parse(const char *text, size_t size,
                          stg_load_point points[STG_LOAD_POINTS_MAX],
                          uint32_t *count, stg_error *err)
{
    stg_reader r = {text, text + size};
    uint32_t n = 0;
    bool has_load = false;

    for (size_t number = 1; !stg_reader_is_empty(&r); number++) {
        stg_reader line = stg_read_until(&r, '\n');

        skip_blanks(&line);
        if (says_nothing(&line, number))
            continue;
        if (n == STG_LOAD_POINTS_MAX)
            return refuse_line(number, "expected at most 10000 rates", err);
        if (!read_point(line, &points[n]))
            return refuse_line(number, "expected a time and a rate, as 90s,700",
                               err);
        if (n > 0 && points[n].at < points[n - 1].at)
            return refuse_line(number, "is earlier than the one before", err);
        has_load = has_load || points[n].rate > 0;
        n++;
    }
    if (!has_load)
        return refuse_line(1, "expected a rate above 0", err);
    *count = n;
    return STG_OK;
}
