/* stagger check: the mistakes and the risks of a settings file, and what a hub
 * would do with it: where messages come from, what is kept, and a table of the
 * targets; or who would get a message (check_try.c). No header's value is printed:
 * it may be a secret. */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include <stagger/text.h>

#include "cli/commands.h"
#include "cli/internal.h"
#include "cli/options.h"
#include "cli/plan/internal.h"
#include "cli/say.h"
#include "cli/terminal.h"
#include "config/from.h"
#include "config/load.h"
#include "config/table.h"
#include "config/targets.h"
#include "core/writer.h"
#include "http/url.h"
#include "hub/hub.h"
#include "kafka/topic.h"

enum { STRICT = 256, USER, DOCS, MANUAL, SCHEMA, TRY, TOPIC, JSON };
enum { EXIT_WARNINGS = 1 };

static const stg_option options[] = {
    {"-c, --config FILE", "the settings file", 0, NULL},
    {"--strict", "exit with 1 if there are warnings", STRICT, NULL},
    {"--user NAME",
     "as root: check as this user, who reads and writes what the user may",
     USER, NULL},
    {"--try FILE",
     "say which targets would get a message with this file as its body (-: "
     "standard input), and why the others would not",
     TRY, NULL},
    {"-H, --header 'N: V'",
     "with --try: a header of the message; again for more", 0, NULL},
    {"-t, --type TYPE", "with --try: its content type", 0, NULL},
    {"-k, --key KEY", "with --try: its ordering key", 0, NULL},
    {"--topic TOPIC", "with --try: the topic of Kafka that it is of", TOPIC,
     NULL},
    {"--json", "with --try: as JSON", JSON, NULL},
    {"--docs", "print docs/configuration.md", DOCS, NULL},
    {"--manual", "print stagger.yaml(5)", MANUAL, NULL},
    {"--schema", "print a JSON Schema of the file, for editors", SCHEMA, NULL},
    {.flag = NULL},
};

static const stg_usage usage = {
    .head =
        "usage: stagger check [-c] FILE [--strict] [--user NAME]\n"
        "       stagger check [-c] FILE --try MESSAGE [-H 'N: V']... [--json]\n"
        "       stagger check --docs | --manual | --schema\n"
        "\n"
        "Reads a settings file of the hub and prints every mistake, and a warning for\n"
        "what is valid but risky, as file:line:column, what was found, and what was\n"
        "expected; then all that a start or a reload would prepare is prepared, by the\n"
        "hub's own code. Without a mistake it prints what a hub would do, and for each\n"
        "policy what `stagger plan` warns of. It starts, writes and sends nothing.\n"
        "With --try it says instead who would get a message by its filters (`match`).\n"
        "\n",
    .options = options,
    .tail =
        "\n"
        "Exit code: 0; 1 with --strict if there are warnings; 2 for a mistake, and for\n"
        "a file that cannot be read.\n"
        "\n"
        "  stagger check /etc/stagger/stagger.yaml --user stagger\n"
        "  stagger check stagger.yaml --try order.json -H 'X-Event: order.paid'\n"
        "  stagger check --schema > stagger.schema.json\n",
    .arguments_max = 1,
};

typedef struct check_options {
    const char *file;
    const char *user; /* NULL: whoever calls */
    bool is_strict;
    int print; /* DOCS, MANUAL, SCHEMA; 0: none of them */
    stg_try try;
    bool has_message; /* an option that says what it is like */
} check_options;

/* -- what a hub would do --------------------------------------------------- */

enum { COLUMNS = 7, CELL = 32, URL = COLUMNS - 1 };

typedef char cell[CELL];

static const stg_grid_column columns[COLUMNS] = {
    {"target", 0, false}, {"policy", 0, false}, {"in flight", 0, false},
    {"rate", 0, false},   {"order", 0, false},  {"shed after", 0, false},
    {"url", 0, false},
};

/* The name of a policy, or its first word. */
static void print_policy(cell text, const stg_settings *s,
                         const stg_target_settings *t)
{
    const char *policy = t->common->policy_text;

    if (policy == NULL)
        policy = stg_lane_policy_preset(s->target_count);
    snprintf(text, CELL, "%.*s%s", (int)strcspn(policy, " "), policy,
             strchr(policy, ' ') != NULL ? " ..." : "");
}

/* A name that is too long for its cell ends in dots. */
static void fill(cell row[URL], const stg_settings *s,
                 const stg_target_settings *t)
{
    const stg_target_common *c = t->common;
    static const char *const orders[] = {"none", "key", "strict"};
    stg_writer w = stg_writer_on(row[3], CELL);

    snprintf(row[0], CELL, "%s", t->name);
    if (strlen(t->name) >= CELL)
        memcpy(row[0] + CELL - 4, "...", 4);
    print_policy(row[1], s, t);
    snprintf(row[2], CELL, "%" PRIu32, c->in_flight_max);
    if (c->policy->rate > 0) {
        stg_write_thousandths(&w, c->policy->rate);
        stg_write_text(&w, "/s");
    } else {
        stg_write_text(&w, "-");
    }
    snprintf(row[4], CELL, "%s", orders[c->order]);
    if (c->policy->breaker.rule != STG_BREAKER_NONE)
        stg_duration_text(c->shed_after, row[5]);
    else // only an open circuit breaker sheds
        snprintf(row[5], CELL, "-");
}

/* Without its query, which may be a secret. */
static void print_url(char *text, size_t size, const stg_target_settings *t)
{
    const char *url = stg_target_url_shown(t);
    size_t shown = strcspn(url, "?");

    snprintf(text, size, "%.*s%s%s%s%s", (int)shown, url,
             url[shown] != '\0' ? "?..." : "", t->is_paused ? "  paused" : "",
             t->match_count > 0 ? "  filtered" : "",
             t->common->start == STG_TARGET_START_EARLIEST ? "  start earliest"
                                                           : "");
}

/* Two passes, as the widths are those of all rows. The URL is the last column
 * and is never cut. */
static void print_targets(const stg_settings *s)
{
    stg_grid grid = stg_grid_make(columns, COLUMNS);
    char url[STG_URL_MAX + 64];
    const char *cells[COLUMNS];
    cell row[URL];

    for (int i = 0; i < COLUMNS; i++)
        stg_grid_widen(&grid, i, 0);
    for (size_t t = 0; t < s->target_count; t++) {
        fill(row, s, &s->targets[t]);
        for (int i = 0; i < URL; i++)
            if (strlen(row[i]) > (size_t)grid.widths[i])
                stg_grid_widen(&grid, i, strlen(row[i]));
    }
    grid.widths[URL] = sizeof url;
    stg_grid_put_titles(&grid);
    for (size_t t = 0; t < s->target_count; t++) {
        fill(row, s, &s->targets[t]);
        print_url(url, sizeof url, &s->targets[t]);
        for (int i = 0; i < URL; i++)
            cells[i] = row[i];
        cells[URL] = url;
        stg_grid_put(&grid, cells);
    }
}

static void print_kafka(const stg_settings *s, FILE *to)
{
    char group[STG_SHARD_GROUP_MAX];

    fputs("reads    from Kafka,", to);
    for (size_t i = 0; i < s->kafka.topics.count; i++)
        stg_say(to, "%s %s%s", i > 0 ? "," : "", s->kafka.topics.at[i],
                stg_topic_is_pattern(s->kafka.topics.at[i])
                    ? " (a pattern: all topics that it matches)"
                    : "");
    stg_say(to, ", as a member of the group %s\n", stg_shard_group(s, group));
}

/* What is read, beside what comes in by HTTP. A kind of source has its row. */
static void (*const sources[])(const stg_settings *s, FILE *to) = {
    [STG_SOURCE_QUEUE] = NULL,
    [STG_SOURCE_KAFKA] = print_kafka,
};

/* Each of the times for which something is kept, with what it is of. */
static void check_print_kept(const stg_settings *s, FILE *to)
{
    bool has_keep = s->store.keep != STG_NEVER,
         has_receipts = s->receipts.keep != STG_NEVER;
    char time[STG_DURATION_TEXT_MAX];

    stg_say(to, has_keep || has_receipts ? ": what waits for %s" : ", for %s",
            stg_duration_text(s->store.retention, time));
    if (has_keep)
        stg_say(to, ", what is delivered for %s",
                stg_duration_text(s->store.keep, time));
    if (has_receipts)
        stg_say(to, ", receipts for %s",
                stg_duration_text(s->receipts.keep, time));
    stg_say(to, "\n");
}

/* A database has no quota of ours. */
static void print_ways(const stg_settings *s, FILE *to)
{
    if (sources[s->source] != NULL)
        sources[s->source](s, to);
    stg_say(to, "listens  on %s%s, %s\n",
            s->listen.certificate_file != NULL ? "https://" : "",
            s->listen.address,
            s->listen.token_file != NULL ? "with tokens" : "without tokens");
    stg_say(to, "keeps    %s", s->store.path);
    if (!stg_from_is_postgres(s->store.path))
        stg_say(to, ", up to %" PRIu64 " MiB", s->store.quota >> 20);
    check_print_kept(s, to);
    if (s->alerts.receiver_count > 0)
        fprintf(to, "tells    %zu receiver%s\n", s->alerts.receiver_count,
                s->alerts.receiver_count > 1 ? "s" : "");
}

/* By pointer: targets that say the same share one policy
 * (config/complete.c). */
static bool has_same_policy(const void *settings, size_t a, size_t b)
{
    const stg_settings *s = settings;

    return s->targets[a].common->policy == s->targets[b].common->policy;
}

/* Prints the warnings of `stagger plan -c FILE` about a target's policy. The
 * default policy is ours and is not judged. Returns the number of warnings. */
static size_t print_warnings(const stg_target_settings *t)
{
    const stg_terminal terminal = stg_terminal_look();
    stg_plan *plan =
        t->common->policy_text != NULL ? calloc(1, sizeof *plan) : NULL;
    size_t count;

    if (plan == NULL)
        return 0;
    plan->policy = *t->common->policy;
    plan->is_of_target = true;
    stg_plan_work_out(plan, 0);
    count = plan->lint.count;
    for (size_t i = 0; i < count; i++)
        stg_plan_show_warning(&plan->lint.warnings[i],
                              "  warning: ", &terminal);
    free(plan);
    return count;
}

static size_t print_policies(const stg_settings *s, FILE *to)
{
    size_t warnings = 0;
    char text[STG_POLICY_TEXT_MAX], words[STG_JITTER_WORDS_MAX];

    for (size_t i = 0; i < s->target_count; i++) {
        const stg_policy *p = s->targets[i].common->policy;
        size_t count = stg_count_same(i, s->target_count, has_same_policy, s);

        if (count == 0 || stg_policy_print(p, text) != STG_OK)
            continue;
        stg_say_policy(to, s->targets[i].name, text, count);
        if (stg_say_jitter(p, words) != NULL)
            fprintf(to, "  waits: %s\n", words);
        warnings += print_warnings(&s->targets[i]);
    }
    return warnings;
}

static const char *show(stg_settings *s, const stg_diagnostics *c,
                        const char *text)
{
    char *shown = text != NULL ? stg_diagnostics_show(c, text) : NULL,
         *kept = shown != NULL ? stg_settings_keep_text(s, shown, strlen(shown))
                               : NULL;

    free(shown);
    return text == NULL || kept != NULL ? kept : "";
}

/* Also a password that is too short to be hidden wherever it stands. */
static const char *show_store(stg_settings *s, const stg_diagnostics *c)
{
    char *masked = stg_from_has_password(s->store.path)
                       ? stg_url_mask(s->store.path)
                       : NULL;
    const char *shown = show(s, c, masked != NULL ? masked : s->store.path);

    free(masked);
    return shown;
}

/* The names and addresses of a summary: what came from the environment is shown
 * by its name. */
static void hide_texts(stg_settings *s, const stg_diagnostics *c)
{
    size_t count = s->kafka.topics.count;
    const char **topics = stg_settings_keep(s, (count + 1) * sizeof *topics);

    s->store.path = show_store(s, c);
    s->listen.address = show(s, c, s->listen.address);
    s->kafka.group = show(s, c, s->kafka.group);
    for (size_t i = 0; topics != NULL && i < count; i++)
        topics[i] = show(s, c, s->kafka.topics.at[i]);
    s->kafka.topics = (stg_texts){topics, topics != NULL ? count : 0};
    for (size_t i = 0; i < s->target_count; i++) {
        stg_target_settings *t = &s->targets[i];

        t->name = show(s, c, t->name);
        t->common->policy_text = show(s, c, t->common->policy_text);
    }
}

/* Root may read what the hub's user may not. */
static void check_print_root(const stg_settings *s)
{
    if (s->root_file == NULL)
        return;
    stg_say(stdout,
            "note     only root can read %s%s: a hub of another user does not "
            "start (see --user)\n",
            s->root_file, s->root_file_count > 0 ? " and others" : "");
}

/* Returns how many warnings it has of policies. */
static size_t print_summary(const stg_settings *s, FILE *to)
{
    print_ways(s, to);
    check_print_root(s);
    fprintf(to, "sends    to %zu target%s:\n\n", s->target_count,
            s->target_count > 1 ? "s" : "");
    print_targets(s);
    return print_policies(s, to);
}

/* -- the command ----------------------------------------------------------- */

static int read_message(check_options *o, int option)
{
    o->has_message = true;
    if (option == 'H')
        return stg_try_add_header(&o->try, optarg);
    if (option == 't')
        o->try.type = optarg;
    else if (option == 'k')
        o->try.key = optarg;
    else if (option == TOPIC)
        o->try.topic = optarg;
    else
        o->try.is_json = true;
    return 0;
}

static int read_option(void *ctx, int option)
{
    check_options *o = ctx;

    if (option == 'c')
        o->file = optarg;
    else if (option == STRICT)
        o->is_strict = true;
    else if (option == USER)
        o->user = optarg;
    else if (option == TRY)
        o->try.file = optarg;
    else if (option == DOCS || option == MANUAL || option == SCHEMA)
        o->print = option;
    else
        return read_message(o, option);
    return 0;
}

/* --strict counts the warnings of policies, too, not only those of the file. */
static int report(const check_options *o, stg_status status, stg_settings *s,
                  const stg_diagnostics *c)
{
    size_t warnings = c->warnings;

    stg_diagnostics_print(c, o->file, stdout);
    if (status == STG_OK && c->hidden != NULL)
        hide_texts(s, c);
    if (status == STG_OK)
        warnings += print_summary(s, stdout);
    else if (c->mistakes > 1)
        printf("%zu mistakes\n", c->mistakes);
    if (status != STG_OK)
        return STG_EXIT_USAGE;
    return o->is_strict && warnings > 0 ? EXIT_WARNINGS : 0;
}

/* Checks files as the hub does at its start, whose store may be named by the
 * environment. */
static stg_status check_written(const stg_settings *s, stg_diagnostics *c)
{
    bool is_named = stg_settings_place(s, "store.path").line > 0;

    stg_settings_check_files(s, is_named ? s->store.path : stg_store_path(NULL),
                             c);
    stg_diagnostics_sort(c);
    return c->mistakes == 0 ? STG_OK : STG_INVALID;
}

/* -- what a start would refuse --------------------------------------------- */

/* The part of the settings that words of a start speak of. */
static stg_file_place check_place_of(const stg_settings *s, const char *words)
{
    static const struct {
        const char *begins, *setting;
    } parts[] = {{"alerts: ", "alerts.receivers"},
                 {"kafka", "kafka"},
                 {"traces", "traces.endpoint"},
                 {"listen", "listen.address"}};

    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strncmp(words, parts[i].begins, strlen(parts[i].begins)) == 0)
            return stg_settings_place(s, parts[i].setting);
    return (stg_file_place){0, 0};
}

/* Prepares what a start would prepare, by the hub's own code, so that the two cannot
 * differ; nothing is written, listened to or sent. */
static stg_status check_rehearse(stg_settings *s, stg_diagnostics *c)
{
    const stg_hub_options o = {.settings = s};
    stg_error err = {.text = ""};
    uv_loop_t loop;
    stg_status status;

    if (uv_loop_init(&loop) != 0) {
        stg_complain(c, (stg_file_place){0, 0}, "out of memory");
        return STG_INVALID;
    }
    status = stg_hub_rehearse(&loop, &o, &err);
    if (status != STG_OK)
        stg_complain(c, check_place_of(s, err.text), "%s", err.text);
    (void)uv_loop_close(&loop);
    return status;
}

/* -- as another user --------------------------------------------------------- */

/* From here on the process may no more than the user may. */
static int check_become(const char *name)
{
    const struct passwd *user = getpwnam(name);

    if (user == NULL)
        return stg_options_refuse("stagger check",
                                  "--user=%s: there is no such user", name);
    if (user->pw_uid == geteuid())
        return 0;
    if (initgroups(name, user->pw_gid) == 0 && setgid(user->pw_gid) == 0 &&
        setuid(user->pw_uid) == 0)
        return 0;
    return stg_options_refuse("stagger check",
                              "--user=%s: %s; expected root, or that user",
                              name, strerror(errno));
}

/* After a mistake s is NULL: there is no summary of half a file. */
static int check(const check_options *o)
{
    stg_diagnostics c = {.all = NULL};
    stg_settings *s = NULL;
    stg_status status = stg_settings_load(o->file, &s, &c);
    int code;

    if (status == STG_OK)
        status = check_written(s, &c);
    if (status == STG_OK && o->try.file == NULL)
        status = check_rehearse(s, &c);
    code = status == STG_OK && o->try.file != NULL ? stg_try_run(&o->try, s, &c)
                                                   : report(o, status, s, &c);
    stg_diagnostics_free(&c);
    stg_settings_free(s);
    return code;
}

static void print(int what)
{
    if (what == DOCS)
        stg_settings_print_docs(stdout);
    else if (what == MANUAL)
        stg_settings_print_manual(stdout);
    else
        stg_settings_print_schema(stdout);
}

/* --docs, --manual and --schema need no file. */
static int run(check_options *o, const stg_arguments *files)
{
    int code = 0;

    if (files->count > 0 && (o->file != NULL || o->print != 0))
        return stg_options_refuse("stagger check", "unexpected argument %s",
                                  files->at[0]);
    if (files->count > 0)
        o->file = files->at[0];
    if (o->file == NULL && o->print == 0)
        return stg_options_refuse("stagger check", "expected a settings file");
    if (o->has_message && o->try.file == NULL)
        return stg_options_refuse("stagger check",
                                  "--header, --type, --key, --topic and --json "
                                  "are of a message: expected --try");
    if (o->user != NULL)
        code = check_become(o->user);
    if (code != 0)
        return code;
    if (o->print != 0)
        print(o->print);
    else
        code = check(o);
    return stg_options_finish("stagger check", code);
}

int stg_cli_check(int argc, char **argv)
{
    check_options o = {.file = NULL};
    stg_arguments files;
    int code = stg_options_read(&usage, argc, argv, read_option, &o, &files);

    if (code == 0)
        code = run(&o, &files);
    stg_try_free(&o.try);
    return code;
}
