/* Times in words: the largest unit that is not above them, with one decimal below 100
 * units. Rounding may carry into the next unit. */
#include <stagger/ns.h>

#include "core/writer.h"

typedef struct unit {
    stg_ns length;
    const char *name;
} unit;

/* Each unit is used from its own length on: 90 s reads as 1.5 min. */
static const unit units[] = {
    {STG_DAY, " d"}, {STG_HOUR, " h"}, {STG_MIN, " min"}, {STG_S, " s"},
    {STG_MS, " ms"}, {STG_US, " us"},  {1, " ns"}};

/* Tenths of the unit below 100 units, whole ones from there. */
static uint64_t round_to_tenths(stg_ns ns, stg_ns length)
{
    uint64_t whole = ns / length;
    stg_ns rest = ns % length;

    if (whole >= 100)
        return 10 * (whole + (rest >= length - length / 2));
    return 10 * whole + (10 * rest + length / 2) / length;
}

const char *stg_ns_text(stg_ns ns, char text[STG_NS_TEXT_MAX])
{
    stg_writer w = stg_writer_on(text, STG_NS_TEXT_MAX);
    size_t i = 0;
    uint64_t tenths;

    if (ns == 0 || ns == STG_NEVER) {
        stg_write_text(&w, ns == 0 ? "0" : "never");
        return text;
    }
    while (ns < units[i].length)
        i++;
    tenths = round_to_tenths(ns, units[i].length);
    // 59.96 s rounds to 60 s: say 1 min.
    if (i > 0 && tenths / 10 >= units[i - 1].length / units[i].length)
        tenths = round_to_tenths(ns, units[--i].length);
    stg_write_thousandths(&w, 100 * tenths);
    stg_write_text(&w, units[i].name);
    return text;
}
