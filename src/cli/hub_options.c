/* The options of the hub become settings: those of the file or the defaults, then
 * each option in its place, as the file would say it, then the targets, which are
 * made of the defaults. Options of the hub itself override the file; those of
 * targets are refused beside one, because it is not clear which they mean. */
#include "cli/internal.h"

#include <assert.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "config/from.h"
#include "config/load.h"
#include "config/table.h"
#include "config/targets.h"

static const char who[] = "stagger hub";

/* -- the table ------------------------------------------------------------- */

static const char head[] =
    "usage: stagger hub --to [NAME=]URL [OPTIONS]\n"
    "       stagger hub -c FILE [OPTIONS]\n"
    "\n"
    "Takes messages by HTTP or from Kafka and sends each to every target, with\n"
    "retries as the policy says: at least once, nothing lost. The store keeps what\n"
    "is waiting. Messages that it gives up are dead letters, in the store's table\n"
    "failed_broadcast_logs.\n"
    "\n";

static const char tail[] =
    "\n"
    "Options of targets (--to, --policy, --order and the like) apply to all of\n"
    "them, and only without -c.\n"
    "\n"
    "SIGTERM and SIGINT stop the hub in order; a second one stops it at once. SIGHUP\n"
    "makes it read the settings again.\n"
    "\n"
    "Exit code: 0; 2 for bad options, settings or paths; 3 if requests were cut at\n"
    "the end, or rows could not be stored; 4 if the store failed, or it or the\n"
    "port cannot be used now.\n"
    "\n"
    "  stagger hub --to http://127.0.0.1:9000/hook\n"
    "  stagger hub -c /etc/stagger/stagger.yaml\n"
    "  stagger hub --to a=https://a.example/in --to b=https://b.example/in \\\n"
    "      --policy 'broadcast attempts=5' --store /var/lib/stagger/hub.db\n"
    "  stagger hub --from 'kafka://127.0.0.1:9092/orders?group=hub&start=earliest' "
    "\\\n"
    "      --to http://127.0.0.1:9000/hook\n"
    "\n"
    "A pipe is published line by line by stagger send.\n";

enum { ROWS_MAX = 48, SETTING = 256, NAME_SIZE = 32 };

/* The table of options, made of that of the settings. */
typedef struct table {
    stg_option rows[ROWS_MAX];
    char says[ROWS_MAX][STG_FLAG_TEXT_MAX];
    size_t count;
} table;

static void add_row(table *t, stg_option row)
{
    assert(t->count + 1 < ROWS_MAX);
    t->rows[t->count++] = row;
}

/* An option of a setting is known by the setting's number, so that the table of
 * settings is the only list of them. */
static void make_table(table *t)
{
    const stg_setting *s;

    add_row(t, (stg_option){"-c, --config FILE",
                            "Settings from a file: see stagger.yaml(5), and "
                            "stagger check.",
                            0, NULL});
    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++)
        if (s->flag != NULL)
            add_row(t,
                    (stg_option){s->flag,
                                 stg_settings_flag_text(s, t->says[t->count]),
                                 SETTING + (int)i, NULL});
    add_row(t,
            (stg_option){"-v, --verbose",
                         "Log each delivery, too, and fold nothing.", 0, NULL});
    add_row(t, (stg_option){"-q, --quiet", "Log warnings and errors only.", 0,
                            NULL});
}

static int fail(const char *words)
{
    stg_options_complain(who, "%s", words);
    return STG_EXIT_USAGE;
}

/* Options are only noted while they are read: -c may stand behind them, and the
 * file is loaded with them in the place of its own values. */
static int note_flag(hub_options *o, const stg_setting *s, const char *text)
{
    hub_flag *flags = realloc(o->flags, (o->flag_count + 1) * sizeof *flags);

    if (flags == NULL)
        return fail("out of memory");
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
    default:
        return note_flag(o, stg_setting_at((size_t)option - SETTING), optarg);
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
    if (f->setting->kind == &stg_kind_store)
        stg_options_complain(who, "%s: %s", name, words);
    else
        stg_options_complain(who, "%s=%s: %s", name, f->text, words);
    return STG_EXIT_USAGE;
}

/* Only to point into the text: the policy itself is read with the other
 * values. */
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
        (s->in == STG_IN_TARGET || s->kind == &stg_kind_targets))
        return refuse(f, "with -c this belongs into the file");
    if (s->kind == &stg_kind_targets)
        return 0; // later: they are made of the defaults
    if (s->kind == &stg_kind_policy && check_policy(f) != 0)
        return STG_EXIT_USAGE;
    if (s->kind == &stg_kind_store && !stg_store_path_check(who, text))
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

/* After all other options, for a target is a copy of the defaults. None: calls
 * add them. */
static int add_targets(const hub_options *o)
{
    for (size_t i = 0; i < o->flag_count; i++)
        if (o->flags[i].setting->kind == &stg_kind_targets &&
            !add_target(o->settings, o->flags[i].text))
            return fail("out of memory");
    return 0;
}

/* Loads the file with the options in their place. Warnings are kept for the log;
 * mistakes end it here. */
static int load(hub_options *o)
{
    stg_diagnostics c = {.all = NULL};
    stg_settings *options = o->settings;
    stg_status status;

    o->settings = NULL;
    status = stg_settings_load_over(o->file, options, &o->settings, &c);
    stg_settings_free(options);
    o->warnings = c;
    if (status == STG_OK)
        return 0;
    stg_diagnostics_print(&c, o->file, stderr);
    return STG_EXIT_USAGE;
}

static bool hub_options_have(const hub_options *o, const stg_setting *s)
{
    for (size_t i = 0; i < o->flag_count; i++)
        if (o->flags[i].setting == s)
            return true;
    return false;
}

/* Where the store is, if neither file nor option says so. */
static int set_store(hub_options *o)
{
    const stg_setting *s = stg_setting_find(STG_IN_HUB, "store.path", 10);
    stg_error err;

    if (stg_settings_place(o->settings, "store.path").line > 0 ||
        hub_options_have(o, s) ||
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

/* Checks the options for the mistakes that are found in a file when it is
 * loaded. */
static int check(const stg_settings *s)
{
    const stg_listen_settings *l = &s->listen;

    if ((l->certificate_file == NULL) != (l->key_file == NULL))
        return fail("--tls-cert and --tls-key need each other");
    if (s->source != STG_SOURCE_KAFKA && stg_from_is_postgres(s->store.path))
        return fail(
            "--store is a database, which hubs that read from Kafka share: "
            "expected a file, or --from kafka://HOST:PORT/TOPIC");
    if (s->source != STG_SOURCE_KAFKA && s->letters.topic != NULL)
        return fail(
            "--dead-letters is a topic, and messages do not come from Kafka: "
            "expected file:FILE, or --from kafka://HOST:PORT/TOPIC");
    if (s->source == STG_SOURCE_KAFKA &&
        (s->kafka.brokers.count == 0 || s->kafka.topics.count == 0))
        return fail(
            "--from kafka without brokers and topics: expected "
            "--from kafka://HOST:PORT/TOPIC, or `kafka` in a settings file");
    return 0;
}

/* Checks what the file and the options name together. */
static int hub_options_check_files(const hub_options *o)
{
    stg_diagnostics c = {.all = NULL};
    size_t mistakes;

    stg_settings_check_files(o->settings, o->settings->store.path, &c);
    mistakes = c.mistakes;
    if (o->file != NULL)
        stg_diagnostics_print(&c, o->file, stderr);
    for (size_t i = 0; o->file == NULL && i < c.count; i++)
        stg_options_complain(who, "%s", c.all[i].text);
    stg_diagnostics_free(&c);
    return mistakes == 0 ? 0 : STG_EXIT_USAGE;
}

/* The order is the rule: level and options, the file with them in the place of its
 * values, the store, targets, which copy the defaults; and at last the checks that
 * need all of it. */
static int make_settings(hub_options *o)
{
    int code;

    o->settings = stg_settings_new();
    if (o->settings == NULL)
        return fail("out of memory");
    code = set_level(o);
    for (size_t i = 0; code == 0 && i < o->flag_count; i++)
        code = take_flag(o, &o->flags[i]);
    if (code == 0 && o->file != NULL)
        code = load(o);
    if (code == 0)
        code = set_store(o);
    if (code == 0 && o->file == NULL)
        code = add_targets(o);
    if (code != 0)
        return code;
    // Of one that the file names it was told already.
    if (stg_settings_place(o->settings, "store.path").line == 0)
        stg_settings_check_store(&o->warnings, (stg_file_place){0, 0},
                                 o->settings->store.path);
    code = check(o->settings);
    return code != 0 ? code : hub_options_check_files(o);
}

/* The table of options is needed only while they are read; the texts that
 * settings keep are in argv. */
int stg_hub_options_read(hub_options *o, int argc, char **argv)
{
    table *t = calloc(1, sizeof *t);
    stg_usage usage = {.head = head, .tail = tail};
    stg_arguments none;
    int code;

    *o = (hub_options){.settings = NULL};
    if (t == NULL)
        return fail("out of memory");
    make_table(t);
    usage.options = t->rows;
    code = stg_options_read(&usage, argc, argv, read_option, o, &none);
    free(t);
    return code != 0 ? code : make_settings(o);
}

void stg_hub_options_close(hub_options *o)
{
    stg_settings_free(o->settings);
    stg_diagnostics_free(&o->warnings);
    free(o->flags);
}
