#include "sim/law.h"

#include <string.h>

#include "core/reader.h"
#include "core/writer.h"
#include "sim/random.h"

static const struct {
    const char *name; /* "" for a bare time */
    int times;
} kinds[] = {
    [STG_LAW_FIXED] = {"", 1},
    [STG_LAW_UNIFORM] = {"uniform:", 2},
    [STG_LAW_NORMAL] = {"normal:", 2},
    [STG_LAW_EXPONENTIAL] = {"exponential:", 1},
};

/* Whole ns; x is not negative. */
static stg_ns round_ns(double x)
{
    return x < 0x1p62 ? (stg_ns)(x + 0.5) : (stg_ns)1 << 62;
}

stg_ns stg_law_draw(const stg_law *law, stg_rng *rng)
{
    double x;

    switch (law->kind) {
    case STG_LAW_FIXED:
        return law->a;
    case STG_LAW_UNIFORM:
        return law->a + stg_rng_upto(rng, law->b - law->a);
    case STG_LAW_NORMAL:
        x = (double)law->a + (double)law->b * stg_random_normal(rng);
        return round_ns(x < 0 ? -x : x);
    case STG_LAW_EXPONENTIAL:
        return round_ns((double)law->a * stg_random_exponential(rng));
    }
    return law->a;
}

stg_ns stg_law_mean(const stg_law *law)
{
    return law->kind == STG_LAW_UNIFORM ? law->a / 2 + law->b / 2 : law->a;
}

static stg_status refuse_law(const char *text, stg_error *err)
{
    stg_writer w = stg_writer_on_error(err);

    stg_write_part(&w, text, 60);
    stg_write_text(&w,
                   ": wanted a time as 10ms, uniform:5ms:15ms, "
                   "normal:10ms:2ms or exponential:10ms, up to 365d");
    return STG_INVALID;
}

static stg_law_kind find_kind(stg_reader *r)
{
    for (int kind = STG_LAW_UNIFORM; kind <= STG_LAW_EXPONENTIAL; kind++)
        if (stg_read_text(r, kinds[kind].name))
            return (stg_law_kind)kind;
    return STG_LAW_FIXED;
}

stg_status stg_law_parse(stg_law *law, const char *text, stg_error *err)
{
    stg_reader r = {text, text + strlen(text)};
    stg_law found = {.kind = find_kind(&r)};
    bool is_ok = stg_read_duration(&r, &found.a);

    if (is_ok && kinds[found.kind].times == 2)
        is_ok = stg_read_text(&r, ":") && stg_read_duration(&r, &found.b);
    if (!is_ok || !stg_reader_is_empty(&r) ||
        (found.kind == STG_LAW_UNIFORM && found.b < found.a))
        return refuse_law(text, err);
    *law = found;
    return STG_OK;
}

const char *stg_law_print(const stg_law *law, char text[STG_LAW_TEXT_MAX])
{
    stg_writer w = stg_writer_on(text, STG_LAW_TEXT_MAX);

    stg_write_text(&w, kinds[law->kind].name);
    stg_write_duration(&w, law->a);
    if (kinds[law->kind].times == 2) {
        stg_write_char(&w, ':');
        stg_write_duration(&w, law->b);
    }
    return text;
}
