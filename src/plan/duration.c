#include "plan/duration.h"

#include <stdio.h>

#include <stagger/text.h>

/* In tenths of the unit, or hundredths of a second and less, if these are whole
 * and few. */
static bool write_exact(stg_ns ns, stg_ns unit, const char *name,
                        char text[STG_NS_TEXT_MAX])
{
    enum { LONGEST = 8 };
    stg_ns hundredth = unit < 100 ? 1 : unit / 100;
    unsigned whole, part;
    int length = LONGEST + 1;

    if (ns < unit || ns % hundredth != 0 || ns / unit >= 1000)
        return false;
    whole = (unsigned)(ns / unit);
    part = (unsigned)(ns % unit / hundredth);
    if (part == 0)
        length = snprintf(text, STG_NS_TEXT_MAX, "%u %s", whole, name);
    else if (part % 10 == 0)
        length =
            snprintf(text, STG_NS_TEXT_MAX, "%u.%u %s", whole, part / 10, name);
    else if (unit <= STG_S)
        length =
            snprintf(text, STG_NS_TEXT_MAX, "%u.%02u %s", whole, part, name);
    return length <= LONGEST;
}

const char *stg_time_text(stg_ns ns, char text[STG_NS_TEXT_MAX])
{
    static const struct {
        stg_ns length;
        const char *name;
    } units[] = {
        {STG_DAY, "d"}, {STG_HOUR, "h"}, {STG_MIN, "min"}, {STG_S, "s"},
        {STG_MS, "ms"}, {STG_US, "us"},  {1, "ns"},
    };

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (write_exact(ns, units[i].length, units[i].name, text))
            return text;
    return stg_ns_text(ns, text);
}
