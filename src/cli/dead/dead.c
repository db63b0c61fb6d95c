/* stagger dead: its options, for five subcommands. All of them ask the hub. list,
 * show and export read its store instead where --store names it, so that they
 * work without a hub; replay and drop cannot, as the hub alone writes it. The
 * hub's filter is used for both (store/query.h), so that a list shows what a
 * replay would send. */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/dead/dead.h"
#include "cli/internal.h"
#include "cli/options.h"
#include "core/reader.h"
#include "host/wall.h"

static const char who[] = "stagger dead";

static const stg_subcommand subcommands[] = {
    {"list", "a line each, the oldest first", 0},
    {"show", "one of them with all that is known of it, payload included", 1},
    {"export", "all of them to stdout, payloads included", 0},
    {"replay", "send them again, under the same message ids", INT_MAX},
    {"drop", "mark them as dropped: they need not be sent again", INT_MAX},
    {NULL, NULL, 0},
};

/* In the order of the subcommands. */
static int (*const runs[])(const dead_options *o) = {
    dead_list, dead_show, dead_export, dead_replay, dead_drop};

#define MANY "list, export, replay, drop"
#define CHANGES "replay, drop"
#define LOOKS "list, show, export"

enum {
    STATE = STG_REMOTE_NEXT,
    SINCE,
    UNTIL,
    SUMMARY,
    JSON,
    CSV,
    RAW,
    IDS,
    ALL,
    DRY_RUN,
};

static const stg_option options[] = {
    {NULL, "Which dead letters, for list, export, replay and drop:", 0, MANY},
    {"-t, --target NAME", "only those of a target", 0, MANY},
    {"-c, --cause CAUSE",
     "only those with a cause: HTTP_503 or 503, refused, 5xx; or a category: A "
     "or connect, B or server, C or request, D or overload",
     0, MANY},
    {"--since TIME",
     "only those from then on: a time in UTC (2026-03-01T12:00), or how long "
     "ago (90m); a bulk dead letter counts by its newest message",
     SINCE, MANY},
    {"--until TIME", "only those before then", UNTIL, MANY},
    {"--state STATE", "only dead, replayed, dropped, expired or cancelled",
     STATE, "list, export"},
    {NULL, "What is printed:", 0, NULL},
    {"--summary", "one line for each target, cause and state", SUMMARY, "list"},
    {"-n, --limit N", "only the last N, the newest first", 0, "list"},
    {"--json", "as JSON", JSON, "list, show, replay, drop"},
    {"--csv", "as CSV", CSV, "list"},
    {"-f, --format FORMAT",
     "jsonl (one JSON object a line; the default) or csv", 0, "export"},
    {"--raw", "the payload alone, byte by byte", RAW, "show"},
    {NULL, "What is replayed or dropped:", 0, CHANGES},
    {"--id ID[,ID]", "these; may be repeated, 1000 at most", IDS, CHANGES},
    {"--all", "every one that is dead", ALL, CHANGES},
    {"--dry-run", "only show what would change", DRY_RUN, CHANGES},
    {"-y, --yes", "change without showing and asking first", 0, CHANGES},
    {NULL, "The hub:", 0, NULL},
    STG_REMOTE_OPTIONS(NULL),
    {NULL, "Its store instead, for list, show and export:", 0, LOOKS},
    {"-s, --store FILE",
     "read the hub's store, and ask no hub; also a URL, such as "
     "postgres://USER@HOST/DATABASE",
     0, LOOKS},
    {.flag = NULL},
};

static const stg_usage usage = {
    .head =
        "usage: stagger dead list [OPTIONS]\n"
        "       stagger dead show [OPTIONS] ID\n"
        "       stagger dead export [OPTIONS]\n"
        "       stagger dead replay [OPTIONS]\n"
        "       stagger dead drop [OPTIONS]\n"
        "\n"
        "The dead letters of a hub: what it could not deliver, why, and the payloads.\n"
        "All subcommands ask the running hub. list, show and export, which change\n"
        "nothing, also work without one: with --store they read its store instead.\n"
        "\n",
    .subcommands = subcommands,
    .options = options,
    .tail =
        "\n"
        "Exit code: 0, also if none is found; 1 if there is no such dead letter,\n"
        "payload or target, if the hub does not answer or refuses, if a replay ends\n"
        "before all are on their way, or if you answered no; 2 for bad options, and\n"
        "for a store that cannot be read.\n"
        "\n"
        "  stagger dead list --summary --since 1h\n"
        "  stagger dead list --target billing --limit 20\n"
        "  stagger dead show 42\n"
        "  stagger dead export --cause HTTP_503 > failed.jsonl\n"
        "  stagger dead replay --target billing --since 2h\n",
};

static int refuse(const char *what, const char *found, const char *expected)
{
    return stg_options_refuse(who, "%s%s: %s", what, found, expected);
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
    stg_ns ago;

    if (stg_options_read_duration(text, &ago))
        *wall = stg_ns_sub(stg_wall_now(), ago);
    else if (!read_instant(text, wall))
        return false;
    // 0 would mean no bound. 1 ns finds the same letters: none is from 1970.
    *wall += *wall == 0;
    return true;
}

/* -- options --------------------------------------------------------------- */

static int refuse_word(const char *option, const char *word,
                       const char *expected, const char *const *names)
{
    char suggestion[STG_SUGGESTION_MAX], text[200];

    snprintf(text, sizeof text, "expected %s%s", expected,
             stg_options_suggest(suggestion, word, names));
    return refuse(option, word, text);
}

/* The strings of options stay in argv: the filter only points to them. */
static int read_state(dead_options *o)
{
    o->filter.state = optarg;
    if (stg_letter_is_state(optarg))
        return 0;
    return refuse_word("--state=", optarg, STG_LETTER_STATES_EXPECTED,
                       stg_letter_states);
}

/* "90m" counts back from now, by the clock of this machine. */
static int read_instant_option(const char *name, stg_ns *wall)
{
    if (read_time(optarg, wall))
        return 0;
    return refuse(
        name, optarg,
        "expected a time such as 2026-03-01T12:00, or how long ago, such "
        "as 90m");
}

static int read_format(dead_options *o)
{
    static const char *const formats[] = {"jsonl", "csv", NULL};
    bool is_csv = strcmp(optarg, "csv") == 0;

    o->form = is_csv ? DEAD_CSV : DEAD_JSON;
    if (is_csv || strcmp(optarg, "jsonl") == 0)
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
                          "expected ids from stagger dead list, such as "
                          "42 or 42,43");
        if (o->id_count == DEAD_IDS_MAX)
            return refuse("--id=", text, "at most 1000 ids");
        o->ids[o->id_count++] = id;
        if (*end == '\0')
            return 0;
        at = end;
    }
}

/* Nine digits at most, so that the number cannot overflow; 0 is refused as it
 * would mean all. */
static int read_limit(dead_options *o)
{
    size_t length = strlen(optarg);

    if (length > 0 && length < 10 && strspn(optarg, "0123456789") == length)
        o->limit = strtoull(optarg, NULL, 10);
    return o->limit > 0
               ? 0
               : refuse("--limit=", optarg, "expected a number from 1");
}

/* A word is either a cause (HTTP_503, 5xx) or a category (A, connect); the
 * filter has one of both. */
static int read_cause(dead_options *o)
{
    char near[STG_CAUSE_MAX], expected[STG_CAUSE_MAX + 80];
    bool is_one;

    o->cause_word = optarg;
    if (stg_cause_read(&o->cause, optarg, near)) {
        is_one = o->cause.category[0] == '\0';
        o->filter.cause = is_one ? o->cause.pattern : NULL;
        o->filter.category = is_one ? NULL : o->cause.category;
        return 0;
    }
    snprintf(expected, sizeof expected, "there is no such cause; %s%s%s",
             near[0] == '\0' ? "stagger dead list --summary shows some"
                             : "did you mean ",
             near, near[0] == '\0' ? "" : "?");
    return refuse("--cause=", optarg, expected);
}

static int read_option(void *ctx, int option)
{
    dead_options *o = ctx;

    switch (option) {
    case 's':
        o->store = optarg;
        return 0;
    case 't':
        o->filter.target = optarg;
        return 0;
    case 'c':
        return read_cause(o);
    case STATE:
        return read_state(o);
    case SINCE:
        return read_instant_option("--since=", &o->filter.since);
    case UNTIL:
        return read_instant_option("--until=", &o->filter.until);
    case 'f':
        return read_format(o);
    case IDS:
        return read_ids(o, optarg);
    case 'n':
        return read_limit(o);
    case JSON:
        o->form = DEAD_JSON;
        return 0;
    case CSV:
        o->form = DEAD_CSV;
        return 0;
    case RAW:
        o->form = DEAD_RAW;
        return 0;
    case ALL:
        o->is_all = true;
        return 0;
    case SUMMARY:
        o->is_summary = true;
        return 0;
    case DRY_RUN:
        o->is_dry_run = true;
        return 0;
    case 'y':
        o->is_sure = true;
        return 0;
    default:
        return stg_remote_take(&o->remote, option, optarg) ? 0 : STG_EXIT_USAGE;
    }
}

/* Letters are read from one place. */
static int check_source(const dead_options *o)
{
    if (o->store != NULL && stg_remote_is_named(&o->remote))
        return refuse("--store", "",
                      "reads the store and asks no hub: expected no --hub, "
                      "--token-file, --ca, --client-cert or --client-key");
    return stg_store_path_check(who, o->store) ? 0 : STG_EXIT_USAGE;
}

/* 0 passes here and is answered as an id that no letter has. */
static int take_id(dead_options *o, const stg_arguments *words)
{
    if (words->count == 0)
        return refuse("show: expected an id from stagger dead list", "",
                      "such as 42");
    o->id = words->at[0];
    if (*o->id != '\0' && strspn(o->id, "0123456789") == strlen(o->id))
        return 0;
    return refuse(o->id, "", "expected an id, which is a number");
}

/* replay and drop take ids by an option only, as other conditions: a word that
 * slipped in among the options must not choose letters. */
static int refuse_words(const stg_arguments *words)
{
    const char *word = words->at[0];
    bool is_id = *word != '\0' && strspn(word, "0123456789") == strlen(word);

    return stg_options_refuse(who, "unexpected argument %s%s%s%s", word,
                              is_id ? "; did you mean --id " : "",
                              is_id ? word : "", is_id ? "?" : "");
}

int stg_cli_dead(int argc, char **argv)
{
    dead_options o = {.store = NULL};
    stg_arguments words;
    int code = stg_options_read(&usage, argc, argv, read_option, &o, &words);

    if (code == 0)
        code = check_source(&o);
    if (code == 0 && o.is_summary && o.limit > 0)
        code = refuse("--summary", "", "has no --limit: it is short");
    if (code == 0 && runs[words.subcommand] == dead_show)
        code = take_id(&o, &words);
    else if (code == 0 && words.count > 0)
        code = refuse_words(&words);
    if (code != 0)
        return code;
    return runs[words.subcommand](&o);
}
