/* stagger pause, stagger resume, stagger reload: calls to a hub that runs, each
 * of which it answers when the change is stored or has taken effect. Nothing is
 * changed without a hub: it alone writes its store. So exit code 0 means that
 * the change is there, and scripts need not wait. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/remote.h"
#include "cli/say.h"

static const stg_option options[] = {STG_REMOTE_OPTIONS(NULL), {.flag = NULL}};

/* -- pause, resume --------------------------------------------------------- */

static const stg_usage pause_usage = {
    .head =
        "usage: stagger pause [OPTIONS] TARGET...\n"
        "\n"
        "The hub sends nothing more to these targets; attempts under way end. New\n"
        "messages for them wait in the log, as long as the hub keeps messages. The\n"
        "targets stay paused until stagger resume, also after a reload or a restart\n"
        "of the hub.\n"
        "\n",
    .options = options,
    .tail =
        "\n"
        "Exit code: 0; 1 if the hub does not answer or refuses; 2 for bad options.\n"
        "\n"
        "  stagger pause billing\n",
    .arguments_max = INT_MAX,
};

static const stg_usage resume_usage = {
    .head =
        "usage: stagger resume [OPTIONS] TARGET...\n"
        "\n"
        "The hub sends to these targets again, first the messages that waited. To\n"
        "resume a target that its settings pause, change them, then stagger reload.\n"
        "\n",
    .options = options,
    .tail =
        "\n"
        "Exit code: 0; 1 if the hub does not answer or refuses; 2 for bad options.\n"
        "\n"
        "  stagger resume billing\n",
    .arguments_max = INT_MAX,
};

/* All of them are tried; the code is that of the last that failed. Each call is
 * answered when its change is stored. */
static int change(const char *action, stg_remote *r, const stg_arguments *names)
{
    char name[256], path[300];
    int code = 0;

    for (int i = 0; i < names->count; i++) {
        json_t *target = NULL;

        snprintf(path, sizeof path, "/v1/targets/%s/%s",
                 stg_remote_escape(names->at[i], name, sizeof name), action);
        if (stg_remote_call(r, "POST", path, NULL, &target))
            stg_say(stdout, "%s: %s\n", names->at[i],
                    stg_json_text_of(target, "state"));
        else
            code = stg_remote_complain(r);
        json_decref(target);
    }
    return code;
}

static int run(const stg_usage *u, const char *action, int argc, char **argv)
{
    stg_remote_options o = {.hub = NULL};
    stg_arguments names;
    stg_remote *r;
    int code = stg_remote_read(u, argc, argv, &o, &names);

    if (code != 0)
        return code;
    if (names.count == 0)
        return stg_options_refuse(argv[0], "expected the name of a target");
    r = stg_remote_open(argv[0], &o);
    if (r == NULL)
        return STG_EXIT_USAGE;
    code = change(action, r, &names);
    stg_remote_close(r);
    return stg_options_finish(argv[0], code);
}

int stg_cli_pause(int argc, char **argv)
{
    return run(&pause_usage, "pause", argc, argv);
}

int stg_cli_resume(int argc, char **argv)
{
    return run(&resume_usage, "resume", argc, argv);
}

/* -- reload ---------------------------------------------------------------- */

static const stg_usage reload_usage = {
    .head =
        "usage: stagger reload [OPTIONS]\n"
        "\n"
        "The hub reads its settings and its tokens again, all or nothing: where there\n"
        "is a mistake it prints that and changes nothing. SIGHUP does the same.\n"
        "\n",
    .options = options,
    .tail =
        "\n"
        "Exit code: 0; 1 if the hub does not answer, or the settings have a mistake;\n"
        "2 for bad options.\n"
        "\n"
        "  stagger check -c /etc/stagger/hub.yaml && stagger reload\n",
};

/* Settings that are valid but risky are in effect, and told. */
static void print_warnings(const char *who, const json_t *answer)
{
    const json_t *all = json_object_get(answer, "warnings");

    for (size_t i = 0; i < json_array_size(all); i++)
        if (json_is_string(json_array_get(all, i)))
            stg_options_complain(who, "warning: %s",
                                 json_string_value(json_array_get(all, i)));
}

/* " (a, b and 3 more)" of those that are gone. */
static void print_gone(const json_t *answer, uint64_t gone)
{
    const json_t *names = json_object_get(answer, "gone_targets");
    size_t count = json_array_size(names);

    for (size_t i = 0; i < count; i++) {
        const char *name = json_string_value(json_array_get(names, i));

        stg_say(stdout, "%s%s", i == 0 ? " (" : ", ",
                name == NULL ? "?" : name);
    }
    if (count > 0 && gone > count)
        printf(" and %" PRIu64 " more", gone - count);
    fputs(count > 0 ? ")" : "", stdout);
}

/* A refused reload changes nothing; the hub's errors are printed, a line
 * each. */
static int reload(const char *who, stg_remote *r)
{
    json_t *answer = NULL;
    uint64_t added, gone;

    if (!stg_remote_call(r, "POST", "/v1/reload", NULL, &answer))
        return stg_remote_complain(r);
    added = stg_json_count_of(answer, "added");
    gone = stg_json_count_of(answer, "gone");
    printf("reloaded: %" PRIu64 " target%s new, %" PRIu64 " changed, %" PRIu64
           " %s gone",
           added, added == 1 ? " is" : "s are",
           stg_json_count_of(answer, "changed"), gone,
           gone == 1 ? "is" : "are");
    print_gone(answer, gone);
    printf(", %" PRIu64 " as before\n", stg_json_count_of(answer, "same"));
    print_warnings(who, answer);
    json_decref(answer);
    return stg_options_finish(who, 0);
}

int stg_cli_reload(int argc, char **argv)
{
    stg_remote_options o = {.hub = NULL};
    stg_arguments none;
    stg_remote *r;
    int code = stg_remote_read(&reload_usage, argc, argv, &o, &none);

    if (code != 0)
        return code;
    r = stg_remote_open(argv[0], &o);
    if (r == NULL)
        return STG_EXIT_USAGE;
    code = reload(argv[0], r);
    stg_remote_close(r);
    return code;
}
