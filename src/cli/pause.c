/* stagger pause, stagger resume: nothing is sent to a target, and again. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/remote.h"
#include "cli/say.h"

static const char pause_help[] =
    "usage: stagger pause [OPTIONS] TARGET...\n"
    "\n"
    "Nothing more is sent to these targets; attempts under way end. What comes\n"
    "for them waits in the log, as long as the hub keeps messages. They stay\n"
    "paused until stagger resume, also over a reload and a restart of the hub.\n"
    "\n" STG_REMOTE_HELP
    "  -h, --help           this text\n"
    "\n"
    "Exit code: 0; 1 if the hub is not there or refuses; 2 for bad options.\n"
    "\n"
    "  stagger pause billing\n";

static const char resume_help[] =
    "usage: stagger resume [OPTIONS] TARGET...\n"
    "\n"
    "These targets are sent to again, with what has waited for them. One that is\n"
    "paused in the settings is resumed there, and by a reload.\n"
    "\n" STG_REMOTE_HELP
    "  -h, --help           this text\n"
    "\n"
    "Exit code: 0; 1 if the hub is not there or refuses; 2 for bad options.\n"
    "\n"
    "  stagger resume billing\n";

typedef struct command {
    const char *who, *name, *help;
} command;

static const command pause_command = {"stagger pause", "pause", pause_help};
static const command resume_command = {"stagger resume", "resume", resume_help};

/* All of them are tried; the code is that of the last that failed. */
static int change(const command *v, stg_remote *r, char **names, int count)
{
    char name[256], path[300];
    int code = 0;

    for (int i = 0; i < count; i++) {
        json_t *target = NULL;

        snprintf(path, sizeof path, "/v1/targets/%s/%s",
                 stg_remote_escape(names[i], name, sizeof name), v->name);
        if (stg_remote_call(r, "POST", path, NULL, &target))
            stg_say(stdout, "%s: %s\n", names[i],
                    stg_json_text_of(target, "state"));
        else
            code = stg_remote_complain(r);
        json_decref(target);
    }
    return code;
}

static int run(const command *v, int argc, char **argv)
{
    stg_remote_options o = {.hub = NULL};
    stg_remote *r;
    int code = stg_remote_walk(argc, argv, v->help, &o);

    if (code != 0)
        return code == STG_REMOTE_HELPED ? stg_options_finish(v->who, 0) : code;
    if (optind == argc) {
        stg_options_complain(v->who, "no target, wanted the name of one");
        return STG_EXIT_USAGE;
    }
    r = stg_remote_open(v->who, &o);
    if (r == NULL)
        return STG_EXIT_USAGE;
    code = change(v, r, argv + optind, argc - optind);
    stg_remote_close(r);
    return stg_options_finish(v->who, code);
}

int stg_cli_pause(int argc, char **argv)
{
    return run(&pause_command, argc, argv);
}

int stg_cli_resume(int argc, char **argv)
{
    return run(&resume_command, argc, argv);
}
