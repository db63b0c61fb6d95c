/* The last fault of a target: what it was, and how long ago. While a breaker is
 * open the next probe is what somebody waits for. */
#include "cli/status/status.h"

#include <stdio.h>
#include <string.h>

bool status_is_failing(const status_row *row)
{
    return row->failed_ago < STG_MIN;
}

/* "12s", "4m": whole ones, of 4 letters at most up to 999 d. */
static const char *age_text(stg_ns age, char text[16])
{
    static const struct {
        stg_ns least, unit;
        char name;
    } units[] = {
        {48 * STG_HOUR, STG_DAY, 'd'},
        {100 * STG_MIN, STG_HOUR, 'h'},
        {STG_MIN, STG_MIN, 'm'},
        {0, STG_S, 's'},
    };
    size_t i = 0;

    while (age < units[i].least)
        i++;
    snprintf(text, 16, "%u%c", (unsigned)(age / units[i].unit % 100000),
             units[i].name);
    return text;
}

/* The states in which probes are sent. */
static bool is_probed(const status_row *row)
{
    return strcmp(row->state, "circuit-open") == 0 ||
           strcmp(row->state, "shedding") == 0;
}

/* What stands behind the name of the fault; "": nothing is known. */
static const char *when_text(const status_row *row, int width, char text[32])
{
    enum { ROOMY = 26 };
    char age[16];

    text[0] = '\0';
    if (is_probed(row) && strcmp(row->breaker, "half-open") == 0)
        snprintf(text, 32, "probing");
    else if (is_probed(row) && row->probe_in != STATUS_NONE)
        snprintf(text, 32, "probe %s%s", width < ROOMY ? "" : "in ",
                 age_text(row->probe_in, age));
    else if (row->failed_ago != STATUS_NONE)
        snprintf(text, 32, "%s ago", age_text(row->failed_ago, age));
    return text;
}

const char *status_fault(const status_row *row, int width,
                         char text[STATUS_FAULT_MAX])
{
    enum { LEAST = 4 }; /* of a name that is worth something */
    const char *cause = row->is_known ? row->cause : "not in settings";
    char when[32] = "";
    int left = width, size = (int)strlen(cause);

    if (row->is_known)
        when_text(row, width, when);
    if (size == 0) {
        snprintf(text, STATUS_FAULT_MAX, "%s", when[0] != '\0' ? when : "-");
        return text;
    }
    if (when[0] != '\0')
        left -= (int)strlen(when) + 1;
    if (left < LEAST) {
        left = width;
        when[0] = '\0';
    }
    snprintf(text, STATUS_FAULT_MAX, "%.*s%s%s%s",
             size > left ? left - 2 : size, cause, size > left ? ".." : "",
             when[0] != '\0' ? " " : "", when);
    return text;
}
