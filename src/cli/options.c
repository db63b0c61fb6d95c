#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "cli/say.h"
#include "core/reader.h"

void stg_options_complain(const char *who, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s: ", who);
    va_start(args, format);
    stg_say_brief_args(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void stg_options_point(const char *text, uint32_t column)
{
    enum { SHOWN = 72, BEFORE = 48 };
    size_t length = strcspn(text, "\r\n");
    size_t at = column > 0 ? column - 1 : 0, start, end;

    if (at > length)
        at = length;
    start = length > SHOWN && at > BEFORE ? at - BEFORE : 0;
    end = length - start > SHOWN ? start + SHOWN : length;
    fputs(start > 0 ? "  ..." : "  ", stderr);
    // A byte is a column here, and a tab would be many.
    for (size_t i = start; i < end; i++)
        if (text[i] == '\t')
            fputc(' ', stderr);
        else
            stg_say_text(stderr, text + i, 1, STG_VISIBLE_IN_COLUMN);
    fputs(end < length ? "...\n" : "\n", stderr);
    fprintf(stderr, "%*s^\n", (int)(at - start) + (start > 0 ? 5 : 2), "");
}

bool stg_options_read_int(const char *text, uint32_t least, uint32_t most,
                          uint32_t *number)
{
    stg_reader r = {text, text + strlen(text)};

    return stg_read_int(&r, number) && stg_reader_is_empty(&r) &&
           *number >= least && *number <= most;
}

const char *stg_options_hint(char hint[STG_SUGGESTION_MAX], const char *word,
                             const char *const *names)
{
    const char *near = stg_suggest(word, names);

    snprintf(hint, STG_SUGGESTION_MAX, "%s%.64s%s",
             near != NULL ? "; did you mean " : "", near != NULL ? near : "",
             near != NULL ? "?" : "");
    return hint;
}

/* A long option, perhaps with its value: unknown, or short for several. */
static void refuse_long(const char *who, const char *word,
                        const struct option *options)
{
    const char *name = word + strspn(word, "-");
    size_t length = strcspn(name, "=");
    stg_suggestion s = stg_suggestion_begin(name, length);
    const struct option *begun = NULL;

    for (; options->name != NULL; options++) {
        if (begun == NULL && strncmp(options->name, name, length) == 0)
            begun = options;
        stg_suggestion_try(&s, options->name);
    }
    if (begun != NULL)
        stg_options_complain(who, "option '%.*s' is ambiguous",
                             (int)(name + length - word), word);
    else if (s.name != NULL)
        stg_options_complain(who,
                             "unrecognized option '%.*s', did you mean --%s?",
                             (int)(name + length - word), word, s.name);
    else
        stg_options_complain(who, "unrecognized option '%.*s'",
                             (int)(name + length - word), word);
}

static const struct option *find_option(const struct option *options, int value)
{
    while (options->name != NULL && options->val != value)
        options++;
    return options;
}

int stg_options_next(int argc, char **argv, const char *letters,
                     const struct option *options)
{
    const struct option *known;
    int option;

    opterr = 0;
    option = getopt_long(argc, argv, letters, options, NULL);
    if (option != '?')
        return option;
    known = find_option(options, optopt);
    if (optopt == 0)
        refuse_long(argv[0], argv[optind - 1], options);
    else if (strncmp(argv[optind - 1], "--", 2) == 0 && known->name != NULL)
        stg_options_complain(argv[0],
                             known->has_arg == required_argument
                                 ? "option '--%s' requires an argument"
                                 : "option '--%s' doesn't allow an "
                                   "argument",
                             known->name);
    else if (known->name != NULL || strchr(letters, optopt) != NULL)
        stg_options_complain(argv[0], "option requires an argument -- '%c'",
                             optopt);
    else
        stg_options_complain(argv[0], "invalid option -- '%c'", optopt);
    return option;
}

int stg_options_walk(int argc, char **argv, const char *letters,
                     const struct option *options,
                     int (*read)(void *ctx, int option), void *ctx)
{
    int option, code;

    optind = 1;
    while ((option = stg_options_next(argc, argv, letters, options)) != -1) {
        if (option == '?') {
            fprintf(stderr, "See %s --help.\n", argv[0]);
            return STG_EXIT_USAGE;
        }
        code = read(ctx, option);
        if (code != 0)
            return code;
    }
    return 0;
}

int stg_options_finish(const char *who, int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    stg_options_complain(who, "cannot write the output: %s", strerror(errno));
    return STG_EXIT_USAGE;
}
