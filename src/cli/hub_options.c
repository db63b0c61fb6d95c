#include "cli/hub_options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/store_path.h"
#include "config/diff.h"
#include "config/from.h"
#include "config/lane_policy.h"
#include "config/load.h"
#include "config/print.h"

static const char who[] = "stagger hub";

/* -- help ------------------------------------------------------------------ */

static const char head[] =
    "usage: stagger hub --to [NAME=]URL [OPTIONS]\n"
    "       stagger hub -c FILE [OPTIONS]\n"
    "\n"
    "Takes messages by HTTP or from Kafka, keeps what is to be kept in a store,\n"
    "and sends every message to every target, again as its policy says: at least\n"
    "once, nothing lost. What ends badly is a dead letter, in the store's table\n"
    "failed_broadcast_logs.\n"
    "\n";

static const char tail[] =
    "\n"
    "Options of targets (--to, --policy, --order and the like) are for all of\n"
    "them, and without -c only. SIGTERM and SIGINT end the hub in order; a\n"
    "second one at once. SIGHUP has it read the settings again.\n"
    "\n"
    "Exit code: 0; 1 after --from - if there were dead letters; 2 for an option,\n"
    "a setting or a path that is wrong; 3 if requests were cut at the end, rows\n"
    "could not be stored, or lines of the input were not taken; 4 if the store\n"
    "failed, or it or the port cannot be used now.\n"
    "\n"
    "  stagger hub --to http://127.0.0.1:9000/hook\n"
    "  stagger hub -c /etc/stagger/stagger.yaml\n"
    "  stagger hub --to a=https://a.example/in --to b=https://b.example/in \\\n"
    "      --policy 'broadcast attempts=5' --store /var/lib/stagger/hub.db\n"
    "  stagger hub --from 'kafka://127.0.0.1:9092/orders?group=hub&start=earliest' "
    "\\\n"
    "      --to http://127.0.0.1:9000/hook\n"
    "  journalctl -f | stagger hub --from - --to http://127.0.0.1:9000/\n";

void stg_hub_options_help(void)
{
    const stg_setting *s;

    fputs(head, stdout);
    stg_settings_print_option(stdout, "-c, --config FILE",
                              "Settings from a file: see stagger.yaml(5), and "
                              "stagger check.");
    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++)
        if (s->flag != NULL)
            stg_settings_print_flag(stdout, s);
    stg_settings_print_option(stdout, "-v, --verbose",
                              "Log each delivery, too.");
    stg_settings_print_option(stdout, "-q, --quiet",
                              "Log warnings and errors only.");
    stg_settings_print_option(stdout, "-h, --help", "This text.");
    fputs(tail, stdout);
}

/* -- options out of the table ---------------------------------------------- */

enum { OPTIONS_MAX = 40, LETTERS_MAX = 2 * OPTIONS_MAX, NAME_SIZE = 32 };

/* What getopt_long() wants. */
typedef struct parser {
    struct option options[OPTIONS_MAX + 1];
    char names[OPTIONS_MAX][NAME_SIZE];
    char letters[LETTERS_MAX + 1];
    size_t count;
} parser;

/* "-s, --store FILE": its letter, or 256 and the number of the setting. */
static void add_option(parser *p, const stg_setting *s)
{
    const char *name = strstr(s->flag, "--") + 2;
    bool has_letter = s->flag[1] != '-';
    int value = has_letter ? s->flag[1] : 256 + (int)stg_setting_number(s);
    char *letters = p->letters + strlen(p->letters);

    snprintf(p->names[p->count], NAME_SIZE, "%.*s", (int)strcspn(name, " "),
             name);
    p->options[p->count] =
        (struct option){p->names[p->count], required_argument, NULL, value};
    if (has_letter) {
        letters[0] = s->flag[1];
        letters[1] = ':';
    }
    p->count++;
}

static void make_parser(parser *p)
{
    static const struct option others[] = {
        {"config", required_argument, NULL, 'c'},
        {"verbose", no_argument, NULL, 'v'},
        {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},
    };
    const stg_setting *s;

    *p = (parser){.letters = "c:vqh"};
    memcpy(p->options, others, sizeof others);
    p->count = sizeof others / sizeof *others;
    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++)
        if (s->flag != NULL && p->count < OPTIONS_MAX)
            add_option(p, s);
}

static const stg_setting *setting_of(int option)
{
    char flag[4] = {'-', (char)option, ',', '\0'};
    const stg_setting *s;

    if (option >= 256)
        return stg_setting_at((size_t)option - 256);
    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++)
        if (s->flag != NULL && strncmp(s->flag, flag, 3) == 0)
            return s;
    return NULL;
}

static int fail(const char *words)
{
    stg_options_complain(who, "%s", words);
    return STG_EXIT_USAGE;
}

static int note_flag(hub_options *o, const stg_setting *s, const char *text)
{
    hub_flag *flags = realloc(o->flags, (o->flag_count + 1) * sizeof *flags);

    if (flags == NULL)
        return fail("there is no memory for the options");
    o->flags = flags;
    o->flags[o->flag_count++] = (hub_flag){s, text};
    return 0;
}

static int read_option(void *ctx, int option)
{
    hub_options *o = ctx;

    switch (option) {
    case 'c':
        o->file = optarg;
        return 0;
    case 'v':
        o->level = "debug";
        return 0;
    case 'q':
        o->level = "warn";
        return 0;
    case 'h':
        return -1;
    default:
        return note_flag(o, setting_of(option), optarg);
    }
}

/* -- settings -------------------------------------------------------------- */

/* "store" of "-s, --store FILE". */
static void name_flag(const stg_setting *s, char name[NAME_SIZE])
{
    const char *at = strstr(s->flag, "--");

    snprintf(name, NAME_SIZE, "%.*s", (int)strcspn(at, " "), at);
}

static int refuse(const hub_flag *f, const char *words)
{
    char name[NAME_SIZE];

    name_flag(f->setting, name);
    // A database's URL may have a password in it.
    if (f->setting->kind == STG_KIND_STORE)
        stg_options_complain(who, "%s: %s", name, words);
    else
        stg_options_complain(who, "%s=%s: %s", name, f->text, words);
    return STG_EXIT_USAGE;
}

static int check_policy(const hub_flag *f)
{
    stg_policy policy;
    stg_error err;

    if (stg_lane_policy_read(&policy, f->text, 1, 0, 0, &err) == STG_OK)
        return 0;
    stg_options_complain(who, "%s", err.text);
    stg_options_point(f->text, err.column);
    return STG_EXIT_USAGE;
}

/* Beside a file, a target is in it. */
static int take_flag(hub_options *o, const hub_flag *f)
{
    const stg_setting *s = f->setting;
    const char *text = f->text;
    stg_error err;

    if (o->file != NULL &&
        (s->in == STG_IN_TARGET || s->kind == STG_KIND_TARGETS))
        return refuse(f, "with -c, wanted it in the file");
    if (s->kind == STG_KIND_TARGETS)
        return 0; // later: they are made of the defaults
    if (s->kind == STG_KIND_POLICY && check_policy(f) != 0)
        return STG_EXIT_USAGE;
    if (s->kind == STG_KIND_STORE && !stg_store_path_check(who, text))
        return STG_EXIT_USAGE;
    if (!stg_settings_override(o->settings, s, text, &err))
        return refuse(f, err.text);
    return 0;
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

static int add_targets(const hub_options *o)
{
    for (size_t i = 0; i < o->flag_count; i++)
        if (o->flags[i].setting->kind == STG_KIND_TARGETS &&
            !add_target(o->settings, o->flags[i].text))
            return fail("there is no memory for the targets");
    if (o->settings->target_count > 0)
        return 0;
    stg_options_complain(who, "no target: name one, as --to URL");
    fputs("See stagger hub --help.\n", stderr);
    return STG_EXIT_USAGE;
}

static int load(hub_options *o)
{
    stg_diagnostics c = {.all = NULL};
    stg_status status = stg_settings_load(o->file, &o->settings, &c);

    o->unwise = c;
    if (status == STG_OK)
        return 0;
    stg_diagnostics_print(&c, o->file, stderr);
    return STG_EXIT_USAGE;
}

/* Where the store is, if neither file nor option says so. */
static int set_store(hub_options *o)
{
    const stg_setting *s = stg_setting_find(STG_IN_HUB, "store.path", 10);
    stg_error err;

    if (stg_settings_place(o->settings, "store.path").line > 0 ||
        stg_settings_override(o->settings, s, stg_store_path(NULL), &err))
        return 0;
    return fail(err.text);
}

static int set_level(hub_options *o)
{
    const stg_setting *s = stg_setting_find(STG_IN_HUB, "log.level", 9);
    stg_error err;

    if (o->level == NULL ||
        stg_settings_override(o->settings, s, o->level, &err))
        return 0;
    return fail(err.text);
}

static int check(const stg_settings *s)
{
    const stg_listen_settings *l = &s->listen;

    if ((l->certificate_file == NULL) != (l->key_file == NULL))
        return fail(
            "--tls-cert without --tls-key, or the other way round: "
            "wanted both");
    if (s->listen.token_file != NULL && s->listen.address == NULL)
        return fail(
            "--token-file without --listen: there is nobody to ask "
            "for a token");
    if (s->source != STG_SOURCE_KAFKA && stg_from_is_postgres(s->store.path))
        return fail(
            "--store is a database, which hubs that read from Kafka share: "
            "wanted a file, or --from kafka://HOST:PORT/TOPIC");
    if (s->source != STG_SOURCE_KAFKA && s->letters.topic != NULL)
        return fail(
            "--dead-letters is a topic, and messages do not come from Kafka: "
            "wanted file:FILE, or --from kafka://HOST:PORT/TOPIC");
    if (s->source == STG_SOURCE_KAFKA &&
        (s->kafka.brokers.count == 0 || s->kafka.topics.count == 0))
        return fail(
            "--from kafka without brokers and topics: wanted "
            "--from kafka://HOST:PORT/TOPIC, or `kafka` in a settings file");
    return 0;
}

static int make_settings(hub_options *o)
{
    int code = o->file != NULL ? load(o) : 0;

    if (code == 0 && o->file == NULL)
        o->settings = stg_settings_new();
    if (code == 0 && o->settings == NULL)
        return fail("there is no memory for the settings");
    if (code == 0)
        code = set_store(o);
    if (code == 0)
        code = set_level(o);
    for (size_t i = 0; code == 0 && i < o->flag_count; i++)
        code = take_flag(o, &o->flags[i]);
    if (code == 0 && o->file == NULL)
        code = add_targets(o);
    if (code != 0)
        return code;
    // Of one that the file names it was told already.
    if (stg_settings_place(o->settings, "store.path").line == 0)
        stg_settings_check_store(&o->unwise, (stg_file_place){0, 0},
                                 o->settings->store.path);
    if (o->settings->listen.address == NULL &&
        o->settings->source != STG_SOURCE_STDIN)
        o->settings->listen.address = "127.0.0.1:8080";
    return check(o->settings);
}

int stg_hub_options_read(hub_options *o, int argc, char **argv)
{
    parser p;
    int code;

    *o = (hub_options){.settings = NULL};
    make_parser(&p);
    code = stg_options_walk(argc, argv, p.letters, p.options, read_option, o);
    if (code != 0)
        return code;
    if (optind < argc) {
        stg_options_complain(who,
                             "%s: wanted options only; a target is "
                             "--to URL",
                             argv[optind]);
        return STG_EXIT_USAGE;
    }
    return make_settings(o);
}

void stg_hub_options_close(hub_options *o)
{
    stg_settings_free(o->settings);
    stg_diagnostics_free(&o->unwise);
    free(o->flags);
}
