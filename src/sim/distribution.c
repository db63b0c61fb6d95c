#include "sim/distribution.h"

#include <string.h>

#include "core/reader.h"
#include "core/writer.h"

/* Times that are drawn, and their text. The table `kinds` has the name and the
 * number of times of each kind for reader and writer, so that what is printed
 * can be read back. `count` has two meanings: stages of an Erlang distribution
 * (1 to 1000), and the share of the first mean of a mix, in thousandths.
 *
 * How many random numbers a draw takes belongs to the results: one more or
 * less changes every run after it with the same seed. */

static const struct {
    const char *name; /* "" for a bare time */
    int times;
} kinds[] = {
    [STG_DISTRIBUTION_FIXED] = {"", 1},
    [STG_DISTRIBUTION_UNIFORM] = {"uniform:", 2},
    [STG_DISTRIBUTION_NORMAL] = {"normal:", 2},
    [STG_DISTRIBUTION_EXPONENTIAL] = {"exponential:", 1},
    [STG_DISTRIBUTION_ERLANG] = {"erlang:", 1},
    [STG_DISTRIBUTION_MIX] = {"mix:", 2},
};

const char *const stg_distribution_words[] = {
    "uniform:", "normal:", "exponential:", "erlang:", "mix:", NULL};

/* Whole ns; x is not negative. */
static stg_ns round_ns(double x)
{
    return x < 0x1p62 ? (stg_ns)(x + 0.5) : (stg_ns)1 << 62;
}

/* Erlang: the sum of `count` exponential stages, scaled to the mean a. */
static double draw_stages(const stg_distribution *distribution, stg_rng *rng)
{
    double sum = 0;

    for (uint32_t i = 0; i < distribution->count; i++)
        sum += stg_random_exponential(rng);
    return sum * ((double)distribution->a / distribution->count);
}

/* Hyperexponential: mean a with a chance of count / 1000, else mean b. The
 * choice is drawn first. */
static double draw_mix(const stg_distribution *distribution, stg_rng *rng)
{
    stg_ns mean = stg_rng_upto(rng, 999) < distribution->count
                      ? distribution->a
                      : distribution->b;

    return (double)mean * stg_random_exponential(rng);
}

stg_ns stg_distribution_draw_other(const stg_distribution *distribution,
                                   stg_rng *rng)
{
    switch (distribution->kind) {
    case STG_DISTRIBUTION_FIXED:
    case STG_DISTRIBUTION_NORMAL: // drawn where it is called
        return distribution->a;
    case STG_DISTRIBUTION_UNIFORM:
        return distribution->a +
               stg_rng_upto(rng, distribution->b - distribution->a);
    case STG_DISTRIBUTION_EXPONENTIAL:
        return round_ns((double)distribution->a * stg_random_exponential(rng));
    case STG_DISTRIBUTION_ERLANG:
        return round_ns(draw_stages(distribution, rng));
    case STG_DISTRIBUTION_MIX:
        return round_ns(draw_mix(distribution, rng));
    }
    return distribution->a;
}

/* The generator is a copy whose address is not taken, so that registers hold
 * it. */
static void draw_normals(const stg_distribution *distribution, stg_rng *rng,
                         stg_ns *times, size_t count)
{
    const double mean = (double)(int64_t)distribution->a;
    const double deviation = (double)(int64_t)distribution->b;
    stg_rng state = *rng;

    for (size_t i = 0; i < count; i++) {
        uint64_t draw = stg_rng_draw(&state);
        double z, x;

        if (!stg_random_normal_inside(draw, &z)) {
            *rng = state;
            z = stg_random_normal_edge(rng, draw);
            state = *rng;
        }
        x = mean + deviation * z;
        times[i] = (stg_ns)(int64_t)(__builtin_fabs(x) + 0.5); // below 2^59
    }
    *rng = state;
}

void stg_distribution_draw_many(const stg_distribution *distribution,
                                stg_rng *rng, stg_ns *times, size_t count)
{
    if (distribution->kind == STG_DISTRIBUTION_NORMAL)
        draw_normals(distribution, rng, times, count);
    else
        for (size_t i = 0; i < count; i++)
            times[i] = stg_distribution_draw_other(distribution, rng);
}

stg_ns stg_distribution_mean(const stg_distribution *distribution)
{
    if (distribution->kind == STG_DISTRIBUTION_UNIFORM)
        return distribution->a / 2 + distribution->b / 2;
    if (distribution->kind == STG_DISTRIBUTION_MIX)
        return (distribution->a * distribution->count +
                distribution->b * (1000 - distribution->count)) /
               1000;
    return distribution->a;
}

static stg_status refuse_distribution(const char *text, stg_error *err)
{
    stg_writer w = stg_writer_on_error(err);

    stg_write_part(&w, text, strlen(text) < 60 ? strlen(text) : 60);
    stg_write_text(&w,
                   ": expected a time as 10ms, uniform:5ms:15ms, "
                   "normal:10ms:2ms or exponential:10ms, up to 365d");
    return STG_INVALID;
}

static stg_distribution_kind find_kind(stg_reader *r)
{
    for (int kind = STG_DISTRIBUTION_UNIFORM; kind <= STG_DISTRIBUTION_MIX;
         kind++)
        if (stg_read_text(r, kinds[kind].name))
            return (stg_distribution_kind)kind;
    return STG_DISTRIBUTION_FIXED;
}

/* How many stages, or what share: what stands before the times. */
static bool read_count(stg_reader *r, stg_distribution *distribution)
{
    uint32_t percent; // in thousandths

    if (distribution->kind == STG_DISTRIBUTION_ERLANG)
        return stg_read_int(r, &distribution->count) && stg_read_text(r, ":") &&
               distribution->count >= 1 && distribution->count <= 1000;
    if (distribution->kind != STG_DISTRIBUTION_MIX)
        return true;
    if (!stg_read_decimal(r, &percent) || !stg_read_text(r, "%:"))
        return false;
    distribution->count = percent / 100;
    return percent % 100 == 0 && distribution->count >= 1 &&
           distribution->count <= 999;
}

/* A time; 0 without a unit before another time, too, as it is printed. */
static bool read_time(stg_reader *r, stg_ns *ns)
{
    if (r->end - r->at < 2 || r->at[0] != '0' || r->at[1] != ':')
        return stg_read_duration(r, ns);
    r->at++;
    *ns = 0;
    return true;
}

stg_status stg_distribution_parse(stg_distribution *distribution,
                                  const char *text, stg_error *err)
{
    stg_reader r = {text, text + strlen(text)};
    stg_distribution found = {.kind = find_kind(&r)};
    bool is_ok = read_count(&r, &found) && read_time(&r, &found.a);

    if (is_ok && kinds[found.kind].times == 2)
        is_ok = stg_read_text(&r, ":") && stg_read_duration(&r, &found.b);
    if (!is_ok || !stg_reader_is_empty(&r) ||
        (found.kind == STG_DISTRIBUTION_UNIFORM && found.b < found.a))
        return refuse_distribution(text, err);
    *distribution = found;
    return STG_OK;
}

const char *stg_distribution_print(const stg_distribution *distribution,
                                   char text[STG_DISTRIBUTION_TEXT_MAX])
{
    stg_writer w = stg_writer_on(text, STG_DISTRIBUTION_TEXT_MAX);

    stg_write_text(&w, kinds[distribution->kind].name);
    if (distribution->kind == STG_DISTRIBUTION_ERLANG)
        stg_write_number(&w, distribution->count);
    if (distribution->kind == STG_DISTRIBUTION_MIX)
        stg_write_thousandths(&w, (uint64_t)distribution->count * 100);
    if (distribution->count > 0)
        stg_write_text(&w,
                       distribution->kind == STG_DISTRIBUTION_MIX ? "%:" : ":");
    stg_write_duration(&w, distribution->a);
    if (kinds[distribution->kind].times == 2) {
        stg_write_char(&w, ':');
        stg_write_duration(&w, distribution->b);
    }
    return text;
}
