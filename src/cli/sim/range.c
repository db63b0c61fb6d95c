/* Ranges are cut into pieces first; they are times if all of the pieces are. */
#include "cli/sim/sweep.h"

#include <string.h>

#include "core/reader.h"
#include "core/writer.h"

enum { FROM, TO, STEP, PIECES };

/* "1/s..9/s/2/s": the step is behind a slash with a digit. */
static bool cut(const char *text, stg_reader pieces[PIECES])
{
    const char *end = text + strlen(text), *between = strstr(text, "..");

    if (between == NULL)
        return false;
    pieces[FROM] = (stg_reader){text, between};
    pieces[TO] = (stg_reader){between + 2, end};
    pieces[STEP] = (stg_reader){end, end};
    for (const char *at = between + 2; at + 1 < end; at++)
        if (at[0] == '/' && stg_is_digit(at[1])) {
            pieces[TO].end = at;
            pieces[STEP].at = at + 1;
            break;
        }
    return true;
}

static bool read_time(stg_reader piece, uint64_t *value)
{
    stg_ns ns;

    if (!stg_read_duration(&piece, &ns) || !stg_reader_is_empty(&piece))
        return false;
    *value = ns;
    return true;
}

/* The unit may be left out but once. */
static bool read_number(stg_reader piece, uint64_t *value,
                        char unit[STG_RANGE_UNIT_MAX])
{
    uint32_t thousandths;
    size_t length;

    if (!stg_read_decimal(&piece, &thousandths))
        return false;
    length = (size_t)(piece.end - piece.at);
    *value = thousandths;
    if (length == 0)
        return true;
    if (length >= STG_RANGE_UNIT_MAX ||
        (unit[0] != '\0' &&
         (strlen(unit) != length || memcmp(unit, piece.at, length) != 0)))
        return false;
    memcpy(unit, piece.at, length);
    unit[length] = '\0';
    return true;
}

bool stg_range_read(stg_range *r, const char *text)
{
    stg_reader pieces[PIECES];
    uint64_t *values[PIECES] = {&r->from, &r->to, &r->step};
    size_t count;

    *r = (stg_range){.is_time = true};
    if (!cut(text, pieces))
        return false;
    count = pieces[STEP].at == pieces[STEP].end ? STEP : PIECES;
    for (size_t i = 0; i < count; i++)
        r->is_time = r->is_time && read_time(pieces[i], values[i]);
    for (size_t i = 0; i < count && !r->is_time; i++)
        if (!read_number(pieces[i], values[i], r->unit))
            return false;
    return r->from < r->to && (count == STEP || r->step > 0);
}

const char *stg_range_print(const stg_range *r, uint64_t value,
                            char text[STG_RANGE_TEXT_MAX])
{
    stg_writer w = stg_writer_on(text, STG_RANGE_TEXT_MAX);

    if (r->is_time && value >= STG_S && value % STG_MS == 0) {
        stg_write_thousandths(&w, value / STG_MS);
        stg_write_text(&w, "s");
    } else if (r->is_time)
        stg_write_duration(&w, value);
    else
        stg_write_thousandths(&w, value);
    stg_write_text(&w, r->unit);
    return text;
}

uint64_t stg_range_divide(const stg_range *r, uint64_t parts)
{
    // Between whole numbers there are whole numbers only.
    bool is_whole = !r->is_time && r->from % 1000 == 0 && r->to % 1000 == 0;
    uint64_t length = (r->to - r->from) / parts, unit = is_whole ? 1000 : 1;

    if (length < unit)
        return unit;
    while (unit <= length / 10)
        unit *= 10;
    return length >= 5 * unit ? 5 * unit : length >= 2 * unit ? 2 * unit : unit;
}
