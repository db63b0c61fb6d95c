#include "cli/options.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/reader.h"

void stg_options_complain(const char *who, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s: ", who);
    va_start(args, format);
    vfprintf(stderr, format, args);
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
        fputc(text[i] >= ' ' && text[i] <= '~' ? text[i]
              : text[i] == '\t'                ? ' '
                                               : '?',
              stderr);
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

int stg_options_walk(int argc, char **argv, const char *letters,
                     const struct option *options,
                     int (*read)(void *ctx, int option), void *ctx)
{
    int option, code;

    optind = 1;
    while ((option = getopt_long(argc, argv, letters, options, NULL)) != -1) {
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
