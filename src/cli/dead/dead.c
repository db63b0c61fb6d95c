/* stagger dead: what ended badly. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/dead/dead.h"
#include "cli/options.h"
#include "cli/store_path.h"
#include "core/reader.h"
#include "host/instant.h"
#include "host/wall.h"

static const char help[] =
    "usage: stagger dead list [OPTIONS]\n"
    "       stagger dead show [OPTIONS] ID\n"
    "       stagger dead export [OPTIONS]\n"
    "       stagger dead replay [OPTIONS]\n"
    "       stagger dead drop [OPTIONS]\n"
    "\n"
    "The dead letters of a hub: what could not be delivered, why, and what was to\n"
    "be delivered. list, show and export read them in its store, change nothing,\n"
    "and work while it runs; with --hub list asks the hub. replay and drop ask the\n"
    "hub to do it, which runs.\n"
    "\n"
    "  list    a line each, the oldest first\n"
    "  show    one with all that is known of it, payload included\n"
    "  export  all of them to stdout, payloads included\n"
    "  replay  send them again, under the same message ids\n"
    "  drop    put them aside: they are not to be sent again\n"
    "\n"
    "  -s, --store FILE     list, show, export: the hub's store (STAGGER_STORE in\n"
    "                       the environment, or ./stagger.db); also a URL, as\n"
    "                       postgres://USER@HOST/DATABASE\n"
    "  -t, --target NAME    only those of a target\n"
    "  -c, --cause CAUSE    only those with a cause: HTTP_503 or 503, refused,\n"
    "                       5xx; or a category: A or connect\n"
    "                       connect, B server, C request, D overload\n"
    "      --state STATE    only dead, replayed, dropped, expired or cancelled\n"
    "      --since TIME     only those from then on: a time in UTC\n"
    "                       (2026-03-01T12:00), or how long ago (90m); a row for\n"
    "                       many messages by its newest\n"
    "      --until TIME     only those before then\n"
    "      --summary        list: a line for each target, cause and state\n"
    "  -n, --limit N        list: only the last N, the newest first\n"
    "      --json           list, show, replay, drop: as JSON\n"
    "      --csv            list: as CSV\n"
    "  -f, --format FORMAT  export: jsonl (a line of JSON each; the default) or\n"
    "                       csv\n"
    "      --raw            show: the payload alone, byte by byte\n"
    "      --id ID[,ID]     replay, drop: these; again for more, 1000 at most\n"
    "      --all            replay, drop: every one that is dead\n"
    "      --dry-run        replay, drop: only show what it would be\n"
    "  -y, --yes            replay, drop: do not show and ask first\n" STG_REMOTE_HELP
    "  -h, --help           this text\n"
    "\n"
    "Exit code: 0, also if none fits; 1 if there is no such dead letter, or no\n"
    "payload, if the hub is not there or refuses, if a replay ends before all are\n"
    "on their way, if nothing has the name of --target, or if the answer was no;\n"
    "2 for bad options, and for a store that cannot be read.\n"
    "\n"
    "  stagger dead list --summary --since 1h\n"
    "  stagger dead list --target billing --limit 20\n"
    "  stagger dead show 42\n"
    "  stagger dead export --cause HTTP_503 > failed.jsonl\n"
    "  stagger dead replay --target billing --since 2h\n";

typedef struct command {
    const char *name;
    int (*run)(const dead_options *o);
    const char *options; /* those of others are refused: letters as below */
} command;

static const command commands[] = {
    {"list", dead_list, "stcSUTjCmnHKAEYh"},
    {"show", dead_show, "sjrh"},
    {"export", dead_export, "stcSUTfh"},
    {"replay", dead_replay, "tcTUjiaDyHKAEYh"},
    {"drop", dead_drop, "tcTUjiaDyHKAEYh"},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

static int refuse(const char *what, const char *found, const char *wanted)
{
    stg_options_complain("stagger dead", "%s%s: %s", what, found, wanted);
    fputs("See stagger dead --help.\n", stderr);
    return STG_EXIT_USAGE;
}

/* -- times ----------------------------------------------------------------- */

/* A time of the wall clock, or the beginning of one: of its day, its minute. A
 * blank may stand for the T. */
static bool read_instant(const char *text, stg_ns *wall)
{
    char whole[] = "0000-01-01T00:00:00.000Z";
    size_t size = strlen(text);

    if (size > 10 && text[size - 1] == 'Z')
        size--;
    if (size != 10 && size != 16 && size != 19 && size != 23)
        return false;
    for (size_t i = 0; i < size; i++)
        whole[i] = i == 10 && text[i] == ' ' ? 'T' : text[i];
    return stg_instant_read(whole, wall);
}

static bool read_time(const char *text, stg_ns *wall)
{
    stg_reader r = {text, text + strlen(text)};
    stg_ns ago;

    if (stg_read_duration(&r, &ago) && stg_reader_is_empty(&r))
        *wall = stg_ns_sub(stg_wall_now(), ago);
    else if (!read_instant(text, wall))
        return false;
    // 0 is no bound; and nothing is older than 1970.
    *wall += *wall == 0;
    return true;
}

/* -- options --------------------------------------------------------------- */

static int refuse_word(const char *option, const char *word, const char *wanted,
                       const char *const *names)
{
    char hint[STG_SUGGESTION_MAX], text[200];

    snprintf(text, sizeof text, "wanted %s%s", wanted,
             stg_options_hint(hint, word, names));
    return refuse(option, word, text);
}

static int read_state(dead_options *o)
{
    o->filter.state = optarg;
    if (stg_letter_is_state(optarg))
        return 0;
    return refuse_word("--state=", optarg, STG_LETTER_STATES_WANTED,
                       stg_letter_states);
}

static int read_instant_option(const char *name, stg_ns *wall)
{
    if (read_time(optarg, wall))
        return 0;
    return refuse(name, optarg,
                  "wanted a time like 2026-03-01T12:00, or like 90m: that long "
                  "ago");
}

static int read_format(dead_options *o)
{
    static const char *const formats[] = {"jsonl", "csv", NULL};

    o->is_csv = strcmp(optarg, "csv") == 0;
    if (o->is_csv || strcmp(optarg, "jsonl") == 0)
        return 0;
    return refuse_word("--format=", optarg, "jsonl or csv", formats);
}

/* Numbers with commas between them. */
static int read_ids(dead_options *o, const char *text)
{
    const char *at = text;

    for (;; at++) {
        char *end = NULL;
        unsigned long long id = 0;

        if (stg_is_digit(*at))
            id = strtoull(at, &end, 10);
        if (id == 0 || id > INT64_MAX || (*end != ',' && *end != '\0'))
            return refuse("--id=", text,
                          "wanted numbers, as stagger dead list "
                          "has them: 42 or 42,43");
        if (o->id_count == DEAD_IDS_MAX)
            return refuse("--id=", text, "1000 are the most");
        o->ids[o->id_count++] = id;
        if (*end == '\0')
            return 0;
        at = end;
    }
}

static int read_limit(dead_options *o)
{
    size_t length = strlen(optarg);

    if (length > 0 && length < 10 && strspn(optarg, "0123456789") == length)
        o->limit = strtoull(optarg, NULL, 10);
    return o->limit > 0 ? 0
                        : refuse("--limit=", optarg, "wanted a number from 1");
}

static int read_cause(dead_options *o)
{
    char near[STG_CAUSE_MAX], wanted[STG_CAUSE_MAX + 80];
    bool is_one;

    o->cause_word = optarg;
    if (stg_cause_read(&o->cause, optarg, near)) {
        is_one = o->cause.category[0] == '\0';
        o->filter.cause = is_one ? o->cause.pattern : NULL;
        o->filter.category = is_one ? NULL : o->cause.category;
        return 0;
    }
    snprintf(wanted, sizeof wanted, "there is no such cause; %s%s%s",
             near[0] == '\0' ? "stagger dead list --summary shows some"
                             : "did you mean ",
             near, near[0] == '\0' ? "" : "?");
    return refuse("--cause=", optarg, wanted);
}

static int read_option(dead_options *o, int option)
{
    switch (option) {
    case 's':
        o->store = optarg;
        return 0;
    case 't':
        o->filter.target = optarg;
        return 0;
    case 'c':
        return read_cause(o);
    case 'S':
        return read_state(o);
    case 'T':
        return read_instant_option("--since=", &o->filter.since);
    case 'U':
        return read_instant_option("--until=", &o->filter.until);
    case 'j':
        o->is_json = true;
        return 0;
    case 'C':
        o->is_csv = true;
        return 0;
    case 'f':
        return read_format(o);
    case 'r':
        o->is_raw = true;
        return 0;
    case 'i':
        return read_ids(o, optarg);
    case 'a':
        o->is_all = true;
        return 0;
    case 'm':
        o->is_summary = true;
        return 0;
    case 'n':
        return read_limit(o);
    case 'D':
        o->is_dry_run = true;
        return 0;
    case 'y':
        o->is_sure = true;
        return 0;
    case 'H':
        o->remote.hub = optarg;
        return 0;
    case 'K':
        o->remote.token_file = optarg;
        return 0;
    case 'A':
        o->remote.ca_file = optarg;
        return 0;
    case 'E':
        o->remote.certificate_file = optarg;
        return 0;
    case 'Y':
        o->remote.key_file = optarg;
        return 0;
    default:
        fputs("See stagger dead --help.\n", stderr);
        return STG_EXIT_USAGE;
    }
}

static const struct option options[] = {
    {"store", required_argument, NULL, 's'},
    {"target", required_argument, NULL, 't'},
    {"cause", required_argument, NULL, 'c'},
    {"state", required_argument, NULL, 'S'},
    {"since", required_argument, NULL, 'T'},
    {"until", required_argument, NULL, 'U'},
    {"json", no_argument, NULL, 'j'},
    {"csv", no_argument, NULL, 'C'},
    {"summary", no_argument, NULL, 'm'},
    {"limit", required_argument, NULL, 'n'},
    {"format", required_argument, NULL, 'f'},
    {"raw", no_argument, NULL, 'r'},
    {"id", required_argument, NULL, 'i'},
    {"all", no_argument, NULL, 'a'},
    {"dry-run", no_argument, NULL, 'D'},
    {"yes", no_argument, NULL, 'y'},
    {"hub", required_argument, NULL, 'H'},
    {"token-file", required_argument, NULL, 'K'},
    {"ca", required_argument, NULL, 'A'},
    {"client-cert", required_argument, NULL, 'E'},
    {"client-key", required_argument, NULL, 'Y'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static const char *long_name(int option)
{
    for (size_t i = 0; options[i].name != NULL; i++)
        if (options[i].val == option)
            return options[i].name;
    return "";
}

static const command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

/* An option that this command has no use for is a mistake. */
static int check_options(const command *v, const char *used)
{
    for (; *used != '\0'; used++)
        if (strchr(v->options, *used) == NULL) {
            char text[48];

            snprintf(text, sizeof text, "%s has no option --", v->name);
            return refuse(text, long_name(*used), "another command has it");
        }
    return 0;
}

static int check_words(dead_options *o, const command *v, int count,
                       char **words)
{
    bool wants_id = v->run == dead_show;

    if (wants_id && count == 0)
        return refuse("show without an id", "", "stagger dead list has them");
    if (count > (wants_id ? 1 : 0))
        return refuse(words[wants_id ? 1 : 0], "", "is a word too many");
    if (!wants_id)
        return 0;
    o->id = words[0];
    if (*o->id != '\0' && strspn(o->id, "0123456789") == strlen(o->id))
        return 0;
    return refuse(o->id, "", "is no id, wanted a number");
}

static int refuse_command(const char *word)
{
    const char *names[COMMANDS + 1] = {NULL};

    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    return refuse_word("", word, "list, show, export, replay or drop", names);
}

int stg_cli_dead(int argc, char **argv)
{
    dead_options o = {.store = NULL};
    char used[32] = "";
    const command *v;
    int option, code = 0;

    optind = 1;
    while ((option = stg_options_next(argc, argv, "s:t:c:f:n:yh", options)) !=
           -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return stg_options_finish("stagger dead", 0);
        }
        code = read_option(&o, option);
        if (code != 0)
            return code;
        if (strchr(used, option) == NULL)
            used[strlen(used)] = (char)option;
    }
    if (optind == argc)
        return refuse("no command", "",
                      "wanted list, show, export, replay or drop");
    v = find_command(argv[optind]);
    if (v == NULL)
        return refuse_command(argv[optind]);
    code = check_options(v, used);
    if (code == 0 && v->run == dead_list && o.remote.hub == NULL &&
        o.remote.token_file != NULL)
        code = refuse("--token-file", "", "wanted --hub, too");
    if (code == 0 && v->run == dead_list && o.remote.hub == NULL &&
        (o.remote.ca_file != NULL || o.remote.certificate_file != NULL ||
         o.remote.key_file != NULL))
        code = refuse("--ca, --client-cert and --client-key", "",
                      "wanted --hub, too");
    if (code == 0 && v->run == dead_list && o.remote.hub != NULL &&
        o.store != NULL)
        code = refuse("--store and --hub", "", "wanted one of them");
    if (code == 0 && o.is_summary && o.limit > 0)
        code = refuse("--summary", "", "has no --limit: it is short");
    if (code == 0)
        code = check_words(&o, v, argc - optind - 1, argv + optind + 1);
    if (code == 0 && o.remote.hub == NULL &&
        !stg_store_path_check("stagger dead", o.store))
        code = STG_EXIT_USAGE;
    o.store = stg_store_path(o.store);
    return code != 0 ? code : v->run(&o);
}
