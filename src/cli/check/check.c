/* stagger check: what is wrong with a settings file, and what is unwise. */
#include <getopt.h>
#include <stdio.h>

#include "cli/check/check.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "config/load.h"

static const char who[] = "stagger check";

static const char help[] =
    "usage: stagger check -c FILE [--strict]\n"
    "       stagger check --docs | --manual | --schema\n"
    "\n"
    "Reads a settings file of the hub, and says every mistake that is in it, and\n"
    "what is legal but unwise: file:line:column, what it is, and what was wanted.\n"
    "If there is no mistake, it says what a hub would do. Nothing is started, and\n"
    "no target is asked.\n"
    "\n"
    "  -c, --config FILE  the settings file\n"
    "      --strict       what is unwise is a failure, too\n"
    "      --docs         print docs/configuration.md\n"
    "      --manual       print stagger.yaml(5)\n"
    "      --schema       print a JSON Schema of the file, for editors\n"
    "  -h, --help         this text\n"
    "\n"
    "Exit code: 0; 1 with --strict if something is unwise; 2 for a mistake, and\n"
    "for a file that cannot be read.\n"
    "\n"
    "  stagger check -c /etc/stagger/stagger.yaml\n"
    "  stagger check --schema > stagger.schema.json\n";

enum { STRICT = 256, DOCS, MANUAL, SCHEMA };
enum { EXIT_UNWISE = 1 };

typedef struct check_options {
    const char *file;
    bool is_strict;
    int print; /* DOCS, MANUAL, SCHEMA; 0: none of them */
} check_options;

static int complain_of(const char *what, const char *words)
{
    stg_options_complain(who, "%s: %s", what, words);
    fputs("See stagger check --help.\n", stderr);
    return STG_EXIT_USAGE;
}

/* -1: the help was asked for. */
static int read_option(void *ctx, int option)
{
    check_options *o = ctx;

    if (option == 'h')
        return -1;
    if (option == 'c')
        o->file = optarg;
    else if (option == STRICT)
        o->is_strict = true;
    else
        o->print = option;
    return 0;
}

static int read_options(check_options *o, int argc, char **argv)
{
    static const struct option options[] = {
        {"config", required_argument, NULL, 'c'},
        {"strict", no_argument, NULL, STRICT},
        {"docs", no_argument, NULL, DOCS},
        {"manual", no_argument, NULL, MANUAL},
        {"schema", no_argument, NULL, SCHEMA},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int code = stg_options_walk(argc, argv, "c:h", options, read_option, o);

    if (code != 0)
        return code;
    if (optind < argc)
        return complain_of(argv[optind], "wanted options only: -c FILE");
    if (o->file == NULL && o->print == 0)
        return complain_of("no file", "name one, as -c FILE");
    return 0;
}

static int judge(const check_options *o, stg_status status,
                 const stg_settings *s, const stg_diagnostics *c)
{
    stg_diagnostics_print(c, o->file, stdout);
    if (status == STG_OK)
        stg_check_summary(s, stdout);
    else if (c->mistakes > 1)
        printf("%zu mistakes\n", c->mistakes);
    if (status != STG_OK)
        return STG_EXIT_USAGE;
    return o->is_strict && c->warnings > 0 ? EXIT_UNWISE : 0;
}

static int check(const check_options *o)
{
    stg_diagnostics c = {.all = NULL};
    stg_settings *s = NULL;
    stg_status status = stg_settings_load(o->file, &s, &c);
    int code = judge(o, status, s, &c);

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

int stg_cli_check(int argc, char **argv)
{
    check_options o = {.file = NULL};
    int code = read_options(&o, argc, argv);

    if (code > 0)
        return code;
    if (code < 0) {
        fputs(help, stdout);
        code = 0;
    } else if (o.print != 0) {
        print(o.print);
    } else {
        code = check(&o);
    }
    return stg_options_finish(who, code);
}
