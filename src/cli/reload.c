/* stagger reload: the hub reads its settings again. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/remote.h"

static const char who[] = "stagger reload";

static const char help[] =
    "usage: stagger reload [OPTIONS]\n"
    "\n"
    "The hub reads its settings and its tokens again, all or nothing: where they\n"
    "are wrong nothing changes, and what is wrong is told. SIGHUP does the same.\n"
    "\n" STG_REMOTE_HELP
    "  -h, --help           this text\n"
    "\n"
    "Exit code: 0; 1 if the hub is not there, or the settings are wrong; 2 for\n"
    "bad options.\n"
    "\n"
    "  stagger check -c /etc/stagger/hub.yaml && stagger reload\n";

static void print_warnings(const json_t *answer)
{
    const json_t *all = json_object_get(answer, "warnings");

    for (size_t i = 0; i < json_array_size(all); i++)
        if (json_is_string(json_array_get(all, i)))
            stg_options_complain(who, "warning: %s",
                                 json_string_value(json_array_get(all, i)));
}

static int reload(stg_remote *r)
{
    json_t *answer = NULL;
    uint64_t added, gone;

    if (!stg_remote_call(r, "POST", "/v1/reload", NULL, &answer))
        return stg_remote_complain(r);
    added = stg_json_count_of(answer, "added");
    gone = stg_json_count_of(answer, "gone");
    printf("reloaded: %" PRIu64 " target%s new, %" PRIu64 " changed, %" PRIu64
           " %s gone, %" PRIu64 " as before\n",
           added, added == 1 ? " is" : "s are",
           stg_json_count_of(answer, "changed"), gone, gone == 1 ? "is" : "are",
           stg_json_count_of(answer, "same"));
    print_warnings(answer);
    json_decref(answer);
    return stg_options_finish(who, 0);
}

int stg_cli_reload(int argc, char **argv)
{
    stg_remote_options o = {.hub = NULL};
    stg_remote *r;
    int code = stg_remote_walk(argc, argv, help, &o);

    if (code == STG_REMOTE_HELPED)
        return stg_options_finish(who, 0);
    if (code == 0 && optind < argc) {
        stg_options_complain(who, "%s: is a word too many", argv[optind]);
        code = STG_EXIT_USAGE;
    }
    if (code != 0)
        return code;
    r = stg_remote_open(who, &o);
    if (r == NULL)
        return STG_EXIT_USAGE;
    code = reload(r);
    stg_remote_close(r);
    return code;
}
