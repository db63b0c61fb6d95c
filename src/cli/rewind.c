/* Sending messages of the log again: stagger targets rewind, for all from a moment
 * on, and stagger resend, for one. The hub does it by itself; these ask for it, and
 * show how far it is. */
#include "cli/internal.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/say.h"
#include "cli/terminal.h"

enum { EXIT_NO = 1, PATH_SIZE = 400 };

static void make_path(char path[PATH_SIZE], const char *name)
{
    char escaped[256];

    snprintf(path, PATH_SIZE, "/v1/targets/%s/rewind",
             stg_remote_escape(name, escaped, sizeof escaped));
}

/* -- rewind ---------------------------------------------------------------- */

static int begin(const target_rewind *o, stg_remote *r, const char *name,
                 const char *path)
{
    char question[300];
    json_t *body, *answer = NULL;
    bool is_done;

    snprintf(question, sizeof question,
             "%.64s: what the log has from %.80s on is sent to it again. "
             "Begin?",
             name, o->to);
    if (!o->is_sure && !stg_confirm(question))
        return EXIT_NO;
    body = json_pack("{s:s}", "to", o->to);
    is_done = stg_remote_call(r, "POST", path, body, &answer);
    json_decref(body);
    if (!is_done)
        return stg_remote_complain(r);
    stg_say(stdout, "%s: rewind %" PRIu64 " begins\n", name,
            stg_json_count_of(answer, "number"));
    json_decref(answer);
    return 0;
}

static int cancel(stg_remote *r, const char *name, const char *path)
{
    json_t *answer = NULL;

    if (!stg_remote_call(r, "DELETE", path, NULL, &answer))
        return stg_remote_complain(r);
    json_decref(answer);
    stg_say(stdout, "%s: cancelled; what waits by now is still sent\n", name);
    return 0;
}

/* "shop: rewind 2: done, 1200 of 1200 positions passed, 1198 messages sent again,
 * 2026-03-01T12:00:00.000Z to 2026-03-01T12:00:04.000Z" */
static void print_one(const char *name, const json_t *rewind)
{
    const char *ended = stg_json_text_of(rewind, "ended_at");

    stg_say(stdout, "%s: rewind %" PRIu64 ": %s, ", name,
            stg_json_count_of(rewind, "number"),
            stg_json_text_of(rewind, "state"));
    if (!json_is_null(json_object_get(rewind, "messages")))
        stg_say(stdout, "%" PRIu64 " of %" PRIu64 " positions passed, ",
                stg_json_count_of(rewind, "passed"),
                stg_json_count_of(rewind, "messages"));
    stg_say(stdout, "%" PRIu64 " messages sent again, %s to %s\n",
            stg_json_count_of(rewind, "sent"),
            stg_json_text_of(rewind, "started_at"),
            *ended == '\0' ? "now" : ended);
}

static int show(const target_rewind *o, stg_remote *r, const char *name,
                const char *path)
{
    json_t *answer = NULL;
    const json_t *all;

    if (!stg_remote_call(r, "GET", path, NULL, &answer))
        return stg_remote_complain(r);
    all = json_object_get(answer, "rewinds");
    if (o->is_json)
        stg_say_json(stdout, answer, false);
    else if (json_array_size(all) == 0)
        stg_say(stdout, "%s: there was no rewind; --to begins one\n", name);
    for (size_t i = 0; !o->is_json && i < json_array_size(all); i++)
        print_one(name, json_array_get(all, i));
    json_decref(answer);
    return 0;
}

int target_rewind_run(const target_rewind *o, stg_remote *r, const char *name)
{
    char path[PATH_SIZE];

    make_path(path, name);
    if (o->is_cancel)
        return cancel(r, name, path);
    return o->to != NULL ? begin(o, r, name, path) : show(o, r, name, path);
}

/* -- resend ---------------------------------------------------------------- */

enum { TARGET = STG_REMOTE_NEXT };

static const stg_option options[] = {
    STG_REMOTE_OPTIONS(NULL),
    {"-t, --target NAME", "the target that is to get it", TARGET, NULL},
    {.flag = NULL},
};

static const stg_usage usage = {
    .head =
        "usage: stagger resend [OPTIONS] --target NAME ID\n"
        "\n"
        "The hub sends a message to a target again, under the same id, though the\n"
        "target has got it: as long as the topic, or the hub's own queue (store.keep),\n"
        "has it. Dead letters are sent again by stagger dead replay.\n"
        "\n",
    .options = options,
    .tail =
        "\n"
        "Exit code: 0; 1 if the hub does not answer or refuses; 2 for bad options.\n"
        "\n"
        "  stagger resend --target shop 4a046f3946a59e13-1\n",
    .arguments_max = 1,
};

typedef struct settings {
    stg_remote_options remote;
    const char *target;
} settings;

static int read_option(void *ctx, int option)
{
    settings *s = ctx;

    if (option == TARGET)
        s->target = optarg;
    else if (!stg_remote_take(&s->remote, option, optarg))
        return STG_EXIT_USAGE;
    return 0;
}

static int resend(stg_remote *r, const char *target, const char *id)
{
    char path[PATH_SIZE], escaped[256];
    json_t *body = json_pack("{s:s}", "target", target), *answer = NULL;
    const char *result;
    bool is_done;

    snprintf(path, sizeof path, "/v1/messages/%s/resend",
             stg_remote_escape(id, escaped, sizeof escaped));
    is_done = stg_remote_call(r, "POST", path, body, &answer);
    json_decref(body);
    if (!is_done)
        return stg_remote_complain(r);
    result = stg_json_text_of(answer, "result");
    stg_say(stdout, "%s: %s\n", target,
            strcmp(result, "waits") == 0 ? "it waits for this target already"
            : strcmp(result, "asked") == 0
                ? "another hub has its partition, and "
                  "sends it"
                : "it is sent again");
    json_decref(answer);
    return 0;
}

int stg_cli_resend(int argc, char **argv)
{
    settings s = {.target = NULL};
    stg_arguments left;
    stg_remote *r;
    int code = stg_options_read(&usage, argc, argv, read_option, &s, &left);

    if (code != 0)
        return code;
    if (left.count == 0)
        return stg_options_refuse(argv[0], "expected the id of a message");
    if (s.target == NULL)
        return stg_options_refuse(argv[0], "expected --target NAME");
    r = stg_remote_open(argv[0], &s.remote);
    if (r == NULL)
        return STG_EXIT_USAGE;
    code = resend(r, s.target, left.at[0]);
    stg_remote_close(r);
    return stg_options_finish(argv[0], code);
}
