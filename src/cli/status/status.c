/* stagger status: state of each target, those in trouble first. A pipe gets one
 * table; a terminal gets one after another, drawn over the last. Rates are made
 * of two readings, which are an interval apart. */
#include "cli/status/status.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/remote.h"

/* -- JSON ------------------------------------------------------------------- */

static json_t *target_of(const status_row *row)
{
    json_t *target = json_copy((json_t *)row->target);
    json_t *rate = row->rate == STATUS_NONE
                       ? json_null()
                       : json_real((double)row->rate / 1000);

    if (json_object_set_new(target, "delivered_per_s", rate) == 0)
        return target;
    json_decref(target);
    return NULL;
}

/* Indented, or in one line. */
static void print_json(const status_look *look, bool is_line)
{
    json_t *targets = json_array();
    json_t *all = json_pack("{s:O, s:o}", "hub", look->hub, "targets", targets);

    for (size_t i = 0; i < look->count; i++)
        (void)json_array_append_new(targets, target_of(&look->rows[i]));
    stg_say_json(stdout, all, is_line);
    json_decref(all);
}

/* -- the command ------------------------------------------------------------ */

static const char who[] = "stagger status";

enum { ONCE = STG_REMOTE_NEXT, WATCH, ALL, JSON };

static const stg_option options[] = {
    STG_REMOTE_OPTIONS(NULL),
    {"--once", "print one table (the default in a pipe)", ONCE, NULL},
    {"--watch", "print table after table (the default on a terminal)", WATCH,
     NULL},
    {"--all",
     "every target, also where they do not fit the screen; with --once "
     "also each policy as the hub applies it",
     ALL, NULL},
    {"--json", "for programs: an object, and with --watch a line each", JSON,
     NULL},
    {"-n, --interval TIME", "between two readings, 10ms to 1h (1s)", 0, NULL},
    {.flag = NULL},
};

static const stg_usage usage = {
    .head =
        "usage: stagger status [OPTIONS]\n"
        "\n"
        "A table of a hub's targets, those in trouble first. On a terminal the table is\n"
        "refreshed until you interrupt it.\n"
        "\n"
        "  state      live: messages are sent; throttled: Retry-After, a rate, the\n"
        "             number of parked deliveries, a full store or the want of a\n"
        "             token delays it;\n"
        "             circuit-open: its circuit breaker is open, messages wait;\n"
        "             shedding: open for longer than shed-after, messages become dead\n"
        "             letters; paused: by a call or the settings, messages wait;\n"
        "             disabled: by its disable-after, messages wait until a resume;\n"
        "             orphaned: not in the settings, messages wait; removing: it is\n"
        "             being forgotten\n"
        "  failing    (above the table) so many had a fault in the last minute,\n"
        "             whatever their state\n"
        "  delivered  messages that it accepted since it exists (from 118 columns on)\n"
        "  per s      deliveries a second, since the last reading\n"
        "  fly        attempts in flight, and the limit that the hub found for them\n"
        "  parked     deliveries that were tried, and wait for their next attempt\n"
        "  lag        messages that wait for their first attempt; oldest: the age of\n"
        "             the first that is not settled\n"
        "  dead       messages that the hub gave up on: stagger dead list\n"
        "  p50, p99   duration of attempts that succeed\n"
        "  left       retries that its budget still allows (from 118 columns on)\n"
        "\n",
    .options = options,
    .tail =
        "\n"
        "Exit code: 0; 1 if the hub does not answer or refuses; 2 for bad options.\n"
        "\n"
        "  stagger status\n"
        "  stagger status --once --all\n"
        "  stagger status --json | jq '.targets[] |\n"
        "      select(.state != \"live\" or (.last_failure_ms_ago // 6e4) < 6e4)'\n",
};

typedef struct settings {
    stg_remote_options remote;
    bool is_once, is_watch, is_all, is_json;
    stg_ns interval;
} settings;

/* -- options --------------------------------------------------------------- */

static int read_interval(settings *s, const char *text)
{
    if (stg_options_read_duration(text, &s->interval) &&
        s->interval >= 10 * STG_MS && s->interval <= STG_HOUR)
        return 0;
    return stg_options_refuse(
        who, "--interval=%s: expected a time from 10ms to 1h, such as 2s",
        text);
}

static int read_option(void *ctx, int option)
{
    settings *s = ctx;

    switch (option) {
    case ONCE:
        s->is_once = true;
        return 0;
    case WATCH:
        s->is_watch = true;
        return 0;
    case ALL:
        s->is_all = true;
        return 0;
    case JSON:
        s->is_json = true;
        return 0;
    case 'n':
        return read_interval(s, optarg);
    default:
        return stg_remote_take(&s->remote, option, optarg) ? 0 : STG_EXIT_USAGE;
    }
}

/* -- tables ---------------------------------------------------------------- */

static void pause_for(stg_ns time)
{
    struct timespec rest = {(time_t)(time / STG_S), (long)(time % STG_S)};

    while (nanosleep(&rest, &rest) != 0) {
    }
}

/* Lines of the screen but one, which the cursor is in. */
static unsigned screen_lines(void)
{
    struct winsize size = {0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0)
        return 23;
    return size.ws_row > 6 ? size.ws_row - 1U : 5;
}

/* Over the table that was drawn last, of `drawn` lines: the cursor goes up by
 * so many, and each line is cleared behind its end. Wrapping is off meanwhile,
 * as a wrapped line would make the count wrong. Into a pipe, tables follow each
 * other with an empty line between them. */
static unsigned draw(const settings *s, const stg_remote *r,
                     const status_look *look, const char *notice,
                     unsigned drawn)
{
    bool is_screen = isatty(STDOUT_FILENO) == 1;
    status_print_options print = {.terminal = stg_terminal_look(), .end = "\n"};

    if (is_screen && !s->is_all)
        print.lines = screen_lines();
    if (is_screen && s->is_watch) {
        // What does not fit is cut: a line that wraps would be two.
        print.end = "\033[K\n";
        fputs("\033[?7l", stdout);
        if (drawn > 0)
            printf("\033[%uA", drawn);
    }
    drawn = status_table_print(&print, stg_remote_hub(r), look, notice);
    if (is_screen && s->is_watch)
        fputs("\033[J\033[?7h", stdout);
    else if (s->is_watch)
        putchar('\n');
    return drawn;
}

/* -- once, or again and again ---------------------------------------------- */

/* Rates are of two looks. */
static int show_once(const settings *s, stg_remote *r)
{
    status_look before, look;
    bool is_well = status_look_take(&before, r, NULL);

    if (!is_well)
        return stg_remote_complain(r);
    pause_for(s->interval);
    is_well = status_look_take(&look, r, &before);
    status_look_free(&before);
    if (!is_well)
        return stg_remote_complain(r);
    status_look_sort(&look);
    if (s->is_json)
        print_json(&look, false);
    else
        draw(s, r, &look, NULL, 0);
    if (!s->is_json && s->is_all)
        status_policies_print(&look);
    status_look_free(&look);
    return stg_options_finish(who, 0);
}

/* A look that was not answered leaves the last table, with a line that says
 * why; a hub that is started again is found again. Only a failure of the first
 * look ends it. Between looks the rows are in order of name, as find_rates()
 * searches them by it. */
static int watch(const settings *s, stg_remote *r)
{
    status_look last = {.hub = NULL}, look;
    unsigned drawn = 0;
    char notice[1100];

    do {
        bool is_new =
            status_look_take(&look, r, last.hub != NULL ? &last : NULL);

        if (!is_new && last.hub == NULL)
            return stg_remote_complain(r);
        if (is_new) {
            status_look_free(&last);
            last = look;
        }
        snprintf(notice, sizeof notice, "%.*s; trying again",
                 (int)strcspn(stg_remote_why(r), "\n"), stg_remote_why(r));
        status_look_sort(&last);
        if (!s->is_json)
            drawn = draw(s, r, &last, is_new ? NULL : notice, drawn);
        else if (is_new)
            print_json(&last, true);
        status_look_order(&last);
        if (fflush(stdout) == 0)
            pause_for(s->interval);
    } while (!ferror(stdout));
    status_look_free(&last);
    return stg_options_finish(who, 0);
}

static int run(const settings *s)
{
    stg_remote *r = stg_remote_open(who, &s->remote);
    int code;

    if (r == NULL)
        return STG_EXIT_USAGE;
    code = s->is_watch ? watch(s, r) : show_once(s, r);
    stg_remote_close(r);
    return code;
}

/* On a terminal the table is refreshed unless --once or --json says otherwise;
 * in a pipe one table is enough. */
int stg_cli_status(int argc, char **argv)
{
    settings s = {.interval = STG_S};
    stg_arguments none;
    int code = stg_options_read(&usage, argc, argv, read_option, &s, &none);

    if (code != 0)
        return code;
    if (s.is_once && s.is_watch)
        return stg_options_refuse(who, "--once and --watch exclude each other");
    if (!s.is_once && !s.is_json && isatty(STDOUT_FILENO) == 1)
        s.is_watch = true;
    return run(&s);
}
