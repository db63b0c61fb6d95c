#include "cli/hub_options.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/store_path.h"
#include "core/reader.h"
#include "hub/lane_policy.h"

static const char who[] = "stagger hub";

const char stg_hub_help[] =
    "usage: stagger hub --to [NAME=]URL [OPTIONS]\n"
    "\n"
    "Takes messages by HTTP, keeps them in a store, and sends every message to\n"
    "every target, again as its policy says: at least once, nothing lost. What\n"
    "ends badly is a dead letter, in the store's table failed_broadcast_logs.\n"
    "\n"
    "  -t, --to [NAME=]URL   a target; once for each. The name finds the lane\n"
    "                        again when the URL changes (default: host-port)\n"
    "  -p, --policy P        a preset or a policy text, for every target\n"
    "                        (broadcast; broadcast-wide from 50 targets on)\n"
    "  -l, --listen A:P      where producers publish (127.0.0.1:8080); port 0 is\n"
    "                        any, and the line event=ready says which\n"
    "      --token-file F    who may publish, look and operate: the lines of\n"
    "                        stagger token new\n"
    "  -f, --from -          messages from standard input, a line each. Without\n"
    "                        --listen the hub ends when all is settled\n"
    "  -s, --store FILE      the store (STAGGER_STORE in the environment, else\n"
    "                        stagger.db); made if missing\n"
    "      --quota SIZE      the most it grows to (8G)\n"
    "      --retention D     what waits longer than that is given up (24h)\n"
    "      --dead-letters file:FILE\n"
    "                        a copy of each dead letter, as JSON lines\n"
    "      --order WHAT      none, key or strict (none)\n"
    "      --in-flight N     requests at once, to a target (64)\n"
    "      --rate N/s        requests a second, to a target\n"
    "      --hold D          what a target that is down keeps waiting, before\n"
    "                        messages are given up (10m); none: for ever\n"
    "      --memory SIZE     for messages in memory (128M); a message is a\n"
    "                        thirty-second of it at most\n"
    "      --drain D         what requests under way have at the end (10s)\n"
    "      --ca FILE         certificates to trust, of targets with https\n"
    "      --log FORMAT      logfmt or json, on standard error (logfmt)\n"
    "  -v, --verbose         log each delivery, too\n"
    "  -q, --quiet           log warnings and errors only\n"
    "  -h, --help            this text\n"
    "\n"
    "SIGTERM and SIGINT end it in order; a second one at once.\n"
    "\n"
    "Exit code: 0; 1 after --from - if there were dead letters; 2 for an option\n"
    "that cannot be used; 3 if requests were cut at the end, rows could not be\n"
    "stored, or lines of the input were not taken; 4 if the store failed, or the\n"
    "store or the address cannot be used now: another start may help.\n"
    "\n"
    "  stagger hub --to http://127.0.0.1:9000/hook\n"
    "  stagger hub --to a=https://a.example/in --to b=https://b.example/in \\\n"
    "      --policy 'broadcast attempts=5' --store /var/lib/stagger/hub.db\n"
    "  journalctl -f | stagger hub --from - --to http://127.0.0.1:9000/\n";

enum {
    TOKEN_FILE = 256,
    QUOTA,
    RETENTION,
    LETTERS,
    ORDER,
    IN_FLIGHT,
    RATE,
    HOLD,
    MEMORY,
    DRAIN,
    CA,
    LOG
};

static const struct option options[] = {
    {"to", required_argument, NULL, 't'},
    {"policy", required_argument, NULL, 'p'},
    {"listen", required_argument, NULL, 'l'},
    {"token-file", required_argument, NULL, TOKEN_FILE},
    {"from", required_argument, NULL, 'f'},
    {"store", required_argument, NULL, 's'},
    {"quota", required_argument, NULL, QUOTA},
    {"retention", required_argument, NULL, RETENTION},
    {"dead-letters", required_argument, NULL, LETTERS},
    {"order", required_argument, NULL, ORDER},
    {"in-flight", required_argument, NULL, IN_FLIGHT},
    {"rate", required_argument, NULL, RATE},
    {"hold", required_argument, NULL, HOLD},
    {"memory", required_argument, NULL, MEMORY},
    {"drain", required_argument, NULL, DRAIN},
    {"ca", required_argument, NULL, CA},
    {"log", required_argument, NULL, LOG},
    {"verbose", no_argument, NULL, 'v'},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int refuse(const char *option, const char *wanted)
{
    stg_options_complain(who, "--%s=%s: %s", option, optarg, wanted);
    return STG_EXIT_USAGE;
}

/* -- values ---------------------------------------------------------------- */

/* 512K, 64M, 1.5G, 64MiB: powers of 1024. */
static bool read_size(const char *text, uint64_t *size)
{
    static const char units[] = "KMGT";
    stg_reader r = {text, text + strlen(text)};
    uint32_t thousandths;
    const char *unit;
    uint64_t scale;

    if (!stg_read_decimal(&r, &thousandths))
        return false;
    if (stg_reader_is_empty(&r)) { // bytes
        *size = thousandths / 1000;
        return thousandths % 1000 == 0;
    }
    unit = memchr(units, *r.at, sizeof units - 1);
    if (unit == NULL)
        return false;
    r.at++;
    if (!stg_read_text(&r, "iB"))
        (void)stg_read_text(&r, "B");
    scale = UINT64_C(1) << 10 * (unit - units + 1);
    *size = thousandths / 1000 * scale + thousandths % 1000 * scale / 1000;
    return stg_reader_is_empty(&r);
}

static int take_size(const char *option, uint64_t least, uint64_t most,
                     const char *wanted, uint64_t *size)
{
    uint64_t read;

    if (!read_size(optarg, &read) || read < least || read > most)
        return refuse(option, wanted);
    *size = read;
    return 0;
}

static int take_time(const char *option, stg_ns least, stg_ns most,
                     const char *wanted, stg_ns *time)
{
    stg_reader r = {optarg, optarg + strlen(optarg)};
    stg_ns read;

    if (!stg_read_duration(&r, &read) || !stg_reader_is_empty(&r) ||
        read < least || read > most)
        return refuse(option, wanted);
    *time = read;
    return 0;
}

static int take_hold(stg_ns *hold)
{
    if (strcmp(optarg, "none") == 0) {
        *hold = STG_NEVER;
        return 0;
    }
    return take_time("hold", 0, 365 * STG_DAY,
                     "wanted a duration up to 365d, like 10m, or none", hold);
}

/* 100/s, 0.5/s */
static int take_rate(uint32_t *rate)
{
    stg_reader r = {optarg, optarg + strlen(optarg)};

    if (!stg_read_decimal(&r, rate) || *rate == 0 || !stg_read_text(&r, "/s") ||
        !stg_reader_is_empty(&r))
        return refuse("rate", "wanted requests a second, like 100/s or 0.5/s");
    return 0;
}

static int take_order(stg_order *order)
{
    static const char *const names[] = {"none", "key", "strict"};

    for (int i = 0; i < 3; i++)
        if (strcmp(optarg, names[i]) == 0) {
            *order = (stg_order)i;
            return 0;
        }
    return refuse("order", "wanted none, key or strict");
}

static int take_format(bool *is_json)
{
    *is_json = strcmp(optarg, "json") == 0;
    return *is_json || strcmp(optarg, "logfmt") == 0
               ? 0
               : refuse("log", "wanted logfmt or json");
}

static int take_letters(const char **path)
{
    if (strncmp(optarg, "file:", 5) != 0 || optarg[5] == '\0')
        return refuse("dead-letters", "wanted file: and the name of a file");
    *path = optarg + 5;
    return 0;
}

static int take_policy(hub_options *o)
{
    stg_error err;
    stg_policy policy;

    o->settings->defaults.policy_text = optarg;
    if (stg_lane_policy_read(&policy, optarg, 1, &err) == STG_OK)
        return 0;
    stg_options_complain(who, "%s", err.text);
    stg_options_point(optarg, err.column);
    return STG_EXIT_USAGE;
}

static int take_target(hub_options *o)
{
    const char **targets =
        realloc(o->targets, (o->target_count + 1) * sizeof(char *));

    if (targets == NULL)
        return refuse("to", "there is no memory for it");
    o->targets = targets;
    o->targets[o->target_count++] = optarg;
    return 0;
}

static int take_input(stg_source *source)
{
    if (strcmp(optarg, "-") != 0)
        return refuse("from", "wanted -, which is standard input");
    *source = STG_SOURCE_STDIN;
    return 0;
}

/* -- options --------------------------------------------------------------- */

static int read_limit(hub_options *o, int option)
{
    stg_settings *s = o->settings;

    switch (option) {
    case QUOTA:
        return take_size("quota", UINT64_C(16) << 20, UINT64_C(1) << 44,
                         "wanted a size from 16M to 16T, like 8G",
                         &s->store.quota);
    case RETENTION:
        return take_time("retention", STG_MIN, 365 * STG_DAY,
                         "wanted a duration from 1m to 365d, like 24h",
                         &s->store.retention);
    case MEMORY:
        return take_size("memory", UINT64_C(8) << 20, UINT64_C(1) << 40,
                         "wanted a size from 8M to 1T, like 128M",
                         &s->memory_max);
    case DRAIN:
        return take_time("drain", 0, STG_DAY,
                         "wanted a duration up to 1d, like 10s", &s->drain);
    case HOLD:
        return take_hold(&s->defaults.hold);
    case RATE:
        return take_rate(&s->defaults.rate);
    default: // IN_FLIGHT
        if (stg_options_read_int(optarg, 1, 10000, &s->defaults.in_flight_max))
            return 0;
        return refuse("in-flight", "wanted 1 to 10000");
    }
}

/* Returns 0, an exit code, or -1 where the help was asked for. */
static int read_option(hub_options *o, int option)
{
    stg_settings *s = o->settings;

    switch (option) {
    case 't':
        return take_target(o);
    case 'p':
        return take_policy(o);
    case 'l':
        s->listen.address = optarg;
        return 0;
    case TOKEN_FILE:
        s->listen.token_file = optarg;
        return 0;
    case 'f':
        return take_input(&s->source);
    case 's':
        s->store.path = optarg;
        return 0;
    case LETTERS:
        return take_letters(&s->letters);
    case ORDER:
        return take_order(&s->defaults.order);
    case CA:
        s->defaults.ca_file = optarg;
        return 0;
    case LOG:
        return take_format(&s->log.is_json);
    case 'v':
        s->log.least = STG_LOG_DEBUG;
        return 0;
    case 'q':
        s->log.least = STG_LOG_WARN;
        return 0;
    case 'h':
        return -1;
    case '?':
        fputs("See stagger hub --help.\n", stderr);
        return STG_EXIT_USAGE;
    default:
        return read_limit(o, option);
    }
}

/* A name ends in '=' before there is anything of a URL. */
static bool add_target(stg_settings *s, const char *text)
{
    stg_target_settings *t = stg_settings_add_target(s);
    size_t size = strcspn(text, "=:/?");

    if (t == NULL)
        return false;
    t->url = text;
    if (text[size] != '=')
        return true;
    t->url = text + size + 1;
    t->name = stg_settings_keep_text(s, text, size);
    return t->name != NULL;
}

static int finish(hub_options *o)
{
    stg_settings *s = o->settings;

    if (o->target_count == 0) {
        stg_options_complain(who, "no target: name one, as --to URL");
        fputs("See stagger hub --help.\n", stderr);
        return STG_EXIT_USAGE;
    }
    for (size_t i = 0; i < o->target_count; i++)
        if (!add_target(s, o->targets[i])) {
            stg_options_complain(who, "there is no memory for the targets");
            return STG_EXIT_USAGE;
        }
    if (s->listen.address == NULL && s->source == STG_SOURCE_QUEUE)
        s->listen.address = "127.0.0.1:8080";
    if (s->listen.token_file != NULL && s->listen.address == NULL) {
        stg_options_complain(who,
                             "--token-file without --listen: there is "
                             "nobody to ask for a token");
        return STG_EXIT_USAGE;
    }
    return 0;
}

int stg_hub_options_read(hub_options *o, int argc, char **argv)
{
    int option, code;

    *o = (hub_options){.settings = stg_settings_new()};
    if (o->settings == NULL) {
        stg_options_complain(who, "there is no memory for the settings");
        return STG_EXIT_USAGE;
    }
    o->settings->store.path = stg_store_path(NULL);
    optind = 1;
    while ((option = getopt_long(argc, argv, "t:p:l:f:s:vqh", options, NULL)) !=
           -1)
        if ((code = read_option(o, option)) != 0)
            return code;
    if (optind < argc) {
        stg_options_complain(who,
                             "%s: wanted options only; a target is "
                             "--to URL",
                             argv[optind]);
        return STG_EXIT_USAGE;
    }
    return finish(o);
}

void stg_hub_options_close(hub_options *o)
{
    stg_settings_free(o->settings);
    free(o->targets);
}
