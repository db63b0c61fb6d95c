#include "chart/svg_internal.h"

#include <stdint.h>
#include <string.h>

/* Maps numbers to places on an axis: finds the range and its ticks, and prints
 * the ticks' text. The logarithm is our own, since charts are drawn without a C
 * library, too, and must be the same bytes everywhere. Ticks are compared with
 * a tolerance of 1e-9, since a step such as 0.1 is not an exact double: without
 * it the last tick of a range would be missing at times.
 *
 * A tight scale ends where the range ends; any other is widened to whole ticks.
 * Only the first STG_TICKS_MAX ticks are kept. */

/* -- the logarithm */

/* ln(m) = 2 (t + t^3/3 + t^5/5 + ...), t = (m - 1) / (m + 1), for m from
 * 1 / sqrt 2 to sqrt 2: t^2 <= 0.0295, and 9 terms leave 1e-14. */
static double ln_near_1(double m)
{
    double t = (m - 1) / (m + 1), square = t * t, power = t, sum = 0;

    for (int i = 0; i < 9; i++) {
        sum += power / (2 * i + 1);
        power *= square;
    }
    return 2 * sum;
}

double stg_log10(double number)
{
    const double log10_2 = 0.30102999566398120, log10_e = 0.43429448190325183;
    const double root_2 = 1.4142135623730951;
    uint64_t bits;
    int exponent = 0;

    if (number < 0x1p-1022) { // subnormal
        number *= 0x1p54;
        exponent = -54;
    }
    memcpy(&bits, &number, sizeof bits);
    exponent += (int)(bits >> 52) - 1023;
    bits = (bits & 0xFFFFFFFFFFFFF) | (uint64_t)1023 << 52;
    memcpy(&number, &bits, sizeof bits);
    if (number > root_2) {
        number /= 2;
        exponent++;
    }
    return exponent * log10_2 + ln_near_1(number) * log10_e;
}

static double power_of_10(int exponent)
{
    double power = 1;

    for (; exponent > 0; exponent--)
        power *= 10;
    for (; exponent < 0; exponent++)
        power /= 10;
    return power;
}

/* Within the range of an int64_t: numbers here are in ticks or exponents. */
static double floor_of(double number)
{
    double whole = (double)(int64_t)number;

    return whole > number ? whole - 1 : whole;
}

/* -- what is shown */

/* x - x is 0 for finite numbers only. */
bool stg_axis_shows(const stg_chart_axis *axis, double number)
{
    return number - number == 0 && (!axis->is_log || number > 0);
}

void stg_extent_include(stg_extent *e, const stg_chart_axis *axis, double x)
{
    if (!stg_axis_shows(axis, x))
        return;
    if (e->is_empty || x < e->from)
        e->from = x;
    if (e->is_empty || x > e->to)
        e->to = x;
    e->is_empty = false;
}

/* The range with what the axis asks for, never empty: around a single value a
 * logarithmic axis goes from its half to its double, another from 0 (or one
 * less, of what is not above 0). */
static stg_extent widen(const stg_chart_axis *axis, stg_extent e)
{
    if (axis->from != 0 || axis->to != 0) {
        stg_extent_include(&e, axis, axis->from);
        stg_extent_include(&e, axis, axis->to);
    }
    if (axis->is_from_zero)
        stg_extent_include(&e, axis, 0);
    if (e.is_empty)
        e = (stg_extent){.from = axis->is_log ? 1 : 0, .to = 10};
    if (e.to > e.from)
        return e;
    if (axis->is_log) {
        e.from /= 2;
        e.to *= 2;
    } else {
        e.from = e.from > 0 ? 0 : e.from - 1;
        e.to = e.to > 0 ? e.to : e.from + 1;
    }
    return e;
}

/* -- times choose their unit */

static const struct {
    double ms;
    const char *name;
} units[] = {{1e-3, "us"},  {1, "ms"},     {1e3, "s"},
             {60e3, "min"}, {3600e3, "h"}, {86400e3, "d"}};

enum { UNITS = sizeof units / sizeof *units };

/* The largest of which the range has a few. */
static void choose_unit(stg_scale *s)
{
    const double few = 3;
    int i = UNITS - 1;

    while (i > 0 && s->to < few * units[i].ms)
        i--;
    s->unit = units[i].ms;
    s->unit_name = units[i].name;
}

/* -- ticks */

/* The round step that makes at most `room` ticks of the range. Seconds and
 * minutes have steps that divide 60, as long as one of them is large enough. */
static double step_of(double range, int room, bool is_sixty)
{
    static const double counts[] = {1, 2, 5};
    static const double sixty[] = {1, 2, 5, 10, 15, 30, 60};
    int exponent = (int)floor_of(stg_log10(range / room)) - 1;

    if (is_sixty)
        for (size_t i = 0; i < sizeof sixty / sizeof *sixty; i++)
            if (range / sixty[i] <= room)
                return sixty[i];
    for (;; exponent++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            if (range / (counts[i] * power_of_10(exponent)) <= room)
                return counts[i] * power_of_10(exponent);
}

static void add_tick(stg_scale *s, double number)
{
    if (s->tick_count < STG_TICKS_MAX)
        s->ticks[s->tick_count++] = number;
}

/* The slack keeps an end that is a multiple of the step from being rounded to the
 * next one. */
static void mark_linear(stg_scale *s, int room, bool is_tight)
{
    const double slack = 1e-9;
    double range = (s->to - s->from) / s->unit;
    bool is_sixty = s->unit >= 1e3 && s->unit <= 60e3 && range > 10;
    double step = step_of(range, room, is_sixty) * s->unit;
    double first = floor_of(s->from / step + slack);
    int count;

    if (!is_tight) {
        double last = floor_of(s->to / step - slack) + 1;

        s->from = first * step;
        s->to = last * step;
    } else if (first * step < s->from - slack * step) {
        first++;
    }
    count = (int)floor_of(s->to / step + slack - first) + 1;
    for (int i = 0; i < count; i++)
        add_tick(s, (first + i) * step);
}

/* Powers of ten, with 2 and 5 of each where few are in the range. The 3000
 * keeps operands of / and % positive: in C both round towards 0. */
static void mark_log(stg_scale *s, int room, bool is_tight)
{
    static const double counts[] = {1, 2, 5};
    double low = stg_log10(s->from), high = stg_log10(s->to);
    int first = (int)floor_of(low), last = (int)floor_of(high) + 1, skip = 1;
    bool is_fine = (high - low) * 3 <= room;

    while ((last - first) / skip > room)
        skip++;
    if (!is_tight) { // out to the next 1, 2 or 5
        for (int i = 3 * first; i <= 3 * last; i++) {
            double tick =
                counts[(i + 3000) % 3] * power_of_10((i + 3000) / 3 - 1000);

            if (tick <= s->from * (1 + 1e-9))
                low = tick;
            if (tick >= s->to * (1 - 1e-9)) {
                s->to = tick;
                break;
            }
        }
        s->from = low;
    }
    for (int e = first; e <= last; e += skip)
        for (int i = 0; i < (is_fine ? 3 : 1); i++) {
            double tick = counts[i] * power_of_10(e);

            if (tick >= s->from * (1 - 1e-9) && tick <= s->to * (1 + 1e-9))
                add_tick(s, tick);
        }
}

stg_scale stg_scale_make(const stg_chart_axis *axis, const stg_extent *extent,
                         int ticks, bool is_tight)
{
    stg_extent e = widen(axis, *extent);
    stg_scale s = {.is_log = axis->is_log,
                   .is_root = axis->is_root,
                   .is_time = axis->is_time,
                   .from = e.from,
                   .to = e.to,
                   .unit = 1,
                   .unit_name = axis->unit};

    if (axis->is_time)
        choose_unit(&s);
    if (axis->is_log)
        mark_log(&s, ticks, is_tight);
    else
        mark_linear(&s, ticks, is_tight);
    return s;
}

/* Of 0 to 1, by Newton's steps from above, with which each is nearer. */
static double root_of(double share)
{
    double root = 1;

    for (int i = 0; i < 40 && root * root - share > 1e-9; i++)
        root = (root + share / root) / 2;
    return root;
}

/* A logarithmic axis has no place for what is not above 0: callers leave it out
 * or put it on the edge themselves (svg_marks.c). */
double stg_scale_place(const stg_scale *s, double number)
{
    double share;

    if (s->is_log)
        share = (stg_log10(number) - stg_log10(s->from)) /
                (stg_log10(s->to) - stg_log10(s->from));
    else
        share = (number - s->from) / (s->to - s->from);
    if (share < 0)
        share = 0;
    if (share > 1)
        share = 1;
    if (s->is_root)
        share = root_of(share);
    return s->at_from + share * (s->at_to - s->at_from);
}

/* -- words */

void stg_scale_put_tick(const stg_scale *s, double number,
                        stg_text_buffer *buffer)
{
    const double second = 1e3;

    if (s->is_log && s->is_time && number >= second) {
        // 100 s, not 1.67 min: these ticks are decimal.
        stg_text_buffer_put_rounded(buffer, number / second);
        stg_text_buffer_put(buffer, " s");
    } else if (s->is_log && s->is_time) {
        stg_text_buffer_put_time(buffer, number);
    } else {
        stg_text_buffer_put_rounded(buffer, number / s->unit);
    }
}

void stg_axis_put(const stg_chart_axis *axis, double number,
                  stg_text_buffer *buffer)
{
    if (axis->is_time) {
        stg_text_buffer_put_time(buffer, number);
        return;
    }
    stg_text_buffer_put_rounded(buffer, number);
    if (axis->unit != NULL && axis->unit[0] != '\0') {
        if (axis->unit[0] != '%')
            stg_text_buffer_put_char(buffer, ' ');
        stg_text_buffer_put(buffer, axis->unit);
    }
}
