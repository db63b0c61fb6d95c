/* stagger targets: the list of them, the subcommands of target_change.c and
 * rewind.c, and forget, which removes one for good. Forget asks before it cancels
 * messages, with what is lost, and only for targets that the settings no longer
 * have: the hub would add another one again. */
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/internal.h"
#include "cli/options.h"
#include "cli/remote.h"
#include "cli/say.h"
#include "cli/status/status.h"
#include "cli/terminal.h"
#include "http/url.h"

static const char who[] = "stagger targets";

enum { JSON = STG_REMOTE_NEXT, URL, FILE_NAME, DRY_RUN, TO, CANCEL };

enum { EXIT_NO = 1 };

enum {
    LIST,
    SHOW,
    ADD,
    SET,
    REWIND,
    REMOVE,
    FORGET
}; /* in the order of their table */

static const stg_subcommand subcommands[] = {
    {"list",
     "a line each: state, who knows it (the settings, a call, only the store), "
     "counts, URL",
     0},
    {"show", "the settings of a target that a call has added, as JSON", 1},
    {"add", "add a target; KEY=VALUE as in the settings file, rate=50/s",
     INT_MAX},
    {"set", "change settings of such a target; KEY= takes one out", INT_MAX},
    {"rewind",
     "send the messages of the log from a moment on to a target again; without "
     "--to, how far that is",
     1},
    {"remove", "remove such targets: their waiting messages are cancelled",
     INT_MAX},
    {"forget",
     "remove targets that the settings no longer have: their waiting "
     "messages are cancelled, and their dead letters cannot be sent again",
     INT_MAX},
    {NULL, NULL, 0},
};

static const stg_option options[] = {
    STG_REMOTE_OPTIONS(NULL),
    {"--url URL", "url=URL", URL, "add, set"},
    {"-f, --file F",
     "all settings, a map of YAML or JSON (-: standard input); KEY=VALUE goes "
     "before it",
     FILE_NAME, "add, set"},
    {"--dry-run", "only say what would change", DRY_RUN,
     "add, set, remove, forget"},
    {"--to WHEN",
     "a time in UTC, earliest, a message's id, or a position of the hub's queue",
     TO, "rewind"},
    {"--cancel", "end the rewind that is under way", CANCEL, "rewind"},
    {"-y, --yes", "do not ask", 0, "forget, remove, rewind"},
    {"--json", "as JSON, all that the hub says", JSON, "list, rewind, show"},
    {.flag = NULL},
};

static const stg_usage usage = {
    .head =
        "usage: stagger targets [OPTIONS] [list]\n"
        "       stagger targets [OPTIONS] show NAME\n"
        "       stagger targets [OPTIONS] add NAME --url URL [KEY=VALUE...]\n"
        "       stagger targets [OPTIONS] set NAME KEY=VALUE...\n"
        "       stagger targets [OPTIONS] rewind NAME [--to WHEN | --cancel]\n"
        "       stagger targets [OPTIONS] remove NAME...\n"
        "       stagger targets [OPTIONS] forget NAME...\n"
        "\n"
        "The targets of a hub: those of its settings file, those that calls have added\n"
        "while it runs (add, set and remove are for these), and those that only its\n"
        "store still has. The hub keeps the latter, and what waits for them, until you\n"
        "forget them.\n"
        "\n",
    .subcommands = subcommands,
    .options = options,
    .tail =
        "\n"
        "Exit code: 0; 1 if the hub does not answer or refuses, or you answered no;\n"
        "2 for bad options.\n"
        "\n"
        "  stagger targets\n"
        "  stagger targets add shop --url https://shop.example/hook rate=50/s\n"
        "  stagger targets set shop rate= timeouts.connect=2s\n"
        "  stagger targets rewind shop --to 2026-03-01T12:00:00Z\n"
        "  stagger targets remove shop\n"
        "  stagger targets forget old-billing\n",
    .has_default = true,
};

typedef struct settings {
    stg_remote_options remote;
    target_change change;
    target_rewind rewind;
    bool is_json, is_sure;
} settings;

/* -- list ------------------------------------------------------------------ */

static void print_json(const status_look *look)
{
    json_t *targets = json_array();
    json_t *all = json_pack("{s:o}", "targets", targets);

    for (size_t i = 0; i < look->count; i++)
        (void)json_array_append(targets, (json_t *)look->rows[i].target);
    stg_say_json(stdout, all, false);
    json_decref(all);
}

static const char *known_by(const status_row *row)
{
    const char *by = stg_json_text_of(row->target, "added_by");

    return *by != '\0' ? by : row->is_known ? "settings" : "store";
}

/* Names and URLs are never cut, so that the list can be read by a program. */
static void print_table(const status_look *look)
{
    static const stg_grid_column columns[] = {
        {"target", 0, false},   {"state", 0, false}, {"known by", 0, false},
        {"delivered", 0, true}, {"parked", 0, true}, {"dead", 0, true},
        {"url", 0, false},
    };
    enum { COLUMNS = sizeof columns / sizeof *columns };
    stg_grid grid = stg_grid_make(columns, COLUMNS);
    char delivered[8], parked[8], dead[8];
    size_t name = 0, state = 0;

    for (size_t i = 0; i < look->count; i++) {
        const status_row *row = &look->rows[i];

        name = strlen(row->name) > name ? strlen(row->name) : name;
        state = strlen(row->state) > state ? strlen(row->state) : state;
    }
    for (int i = 0; i < COLUMNS; i++)
        stg_grid_widen(&grid, i, i == 0 ? name : i == 1 ? state : 0);
    grid.widths[COLUMNS - 1] = STG_URL_MAX;
    if (look->count > 0)
        stg_grid_put_titles(&grid);
    for (size_t i = 0; i < look->count; i++) {
        const status_row *row = &look->rows[i];

        stg_grid_put(&grid, (const char *const[]){
                                row->name, row->state, known_by(row),
                                status_count(row->delivered, delivered),
                                status_count(row->parked, parked),
                                status_count(row->dead, dead),
                                stg_json_text_of(row->target, "url")});
    }
}

static int list(const settings *s, stg_remote *r)
{
    status_look look;

    if (!status_look_take(&look, r, NULL))
        return stg_remote_complain(r);
    if (s->is_json)
        print_json(&look);
    else
        print_table(&look);
    status_look_free(&look);
    return stg_options_finish(who, 0);
}

/* -- forget ---------------------------------------------------------------- */

/* Says what would go, or asks a person who has seen it. */
static bool confirm(const settings *s, const char *name, const json_t *answer)
{
    char question[512], loss[TARGET_CHANGE_LOSS_MAX];

    target_change_loss(answer, loss);
    if (s->change.is_dry) {
        stg_say(stdout, "%s: would be forgotten: %s\n", name, loss);
        return false;
    }
    snprintf(question, sizeof question, "%.64s: %s, for good. Forget it?", name,
             loss);
    return stg_confirm(question);
}

/* With --yes nothing is looked at first: the hub alone decides. */
static int forget_one(const settings *s, stg_remote *r, const char *name)
{
    char escaped[256], path[320];
    json_t *answer = NULL;
    size_t size;

    size = (size_t)snprintf(path, sizeof path, "/v1/targets/%s/forget",
                            stg_remote_escape(name, escaped, sizeof escaped));
    if (s->change.is_dry || !s->is_sure) {
        bool is_to_be;

        snprintf(path + size, sizeof path - size, "?dry-run=true");
        if (!stg_remote_call(r, "POST", path, NULL, &answer))
            return stg_remote_complain(r);
        is_to_be = confirm(s, name, answer);
        json_decref(answer);
        if (!is_to_be)
            return s->change.is_dry ? 0 : EXIT_NO;
        path[size] = '\0';
        answer = NULL;
    }
    if (!stg_remote_call(r, "POST", path, NULL, &answer))
        return stg_remote_complain(r);
    json_decref(answer);
    stg_say(stdout, "%s: forgotten\n", name);
    return 0;
}

/* All of them are tried; the code is that of the last that failed. */
static int forget(const settings *s, stg_remote *r, char **names, int count)
{
    int code = 0;

    for (int i = 0; i < count; i++) {
        int one = forget_one(s, r, names[i]);

        code = one != 0 ? one : code;
    }
    return stg_options_finish(who, code);
}

/* -- options --------------------------------------------------------------- */

static int read_option(void *ctx, int option)
{
    settings *s = ctx;

    if (option == 'y')
        s->is_sure = true;
    else if (option == JSON)
        s->is_json = true;
    else if (option == URL)
        s->change.url = optarg;
    else if (option == FILE_NAME)
        s->change.file = optarg;
    else if (option == DRY_RUN)
        s->change.is_dry = true;
    else if (option == TO)
        s->rewind.to = optarg;
    else if (option == CANCEL)
        s->rewind.is_cancel = true;
    else if (!stg_remote_take(&s->remote, option, optarg))
        return STG_EXIT_USAGE;
    return 0;
}

/* What is missing, in words; NULL: nothing. */
static const char *missing(const settings *s, const stg_arguments *left)
{
    bool asks = ((left->subcommand == FORGET || left->subcommand == REMOVE) &&
                 !s->change.is_dry) ||
                (left->subcommand == REWIND && s->rewind.to != NULL);

    if (left->subcommand != LIST && left->count == 0)
        return "expected the name of a target";
    if (s->rewind.to != NULL && s->rewind.is_cancel)
        return "--to begins one, and --cancel ends it: only one of them";
    if (asks && !s->is_sure && !stg_confirm_can())
        return "not a terminal: add --yes to confirm";
    return NULL;
}

static int run(const settings *s, stg_remote *r, const stg_arguments *left)
{
    target_change change = s->change;
    target_rewind again = s->rewind;

    change.remote = r;
    change.is_sure = s->is_sure;
    change.is_json = again.is_json = s->is_json;
    again.is_sure = s->is_sure;
    switch (left->subcommand) {
    case SHOW:
        return target_change_show(&change, left->at[0]);
    case ADD:
        return target_change_write(&change, true, left);
    case SET:
        return target_change_write(&change, false, left);
    case REWIND:
        return target_rewind_run(&again, r, left->at[0]);
    case REMOVE:
        return target_change_remove(&change, left);
    case FORGET:
        return forget(s, r, left->at, left->count);
    default:
        return list(s, r);
    }
}

int stg_cli_targets(int argc, char **argv)
{
    settings s = {.is_json = false};
    stg_arguments left;
    stg_remote *r;
    int code = stg_options_read(&usage, argc, argv, read_option, &s, &left);
    const char *why;

    if (code != 0)
        return code;
    why = missing(&s, &left);
    if (why != NULL)
        return stg_options_refuse(who, "%s: %s",
                                  subcommands[left.subcommand].name, why);
    r = stg_remote_open(who, &s.remote);
    if (r == NULL)
        return STG_EXIT_USAGE;
    code = run(&s, r, &left);
    stg_remote_close(r);
    return code;
}
