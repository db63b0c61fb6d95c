/* options.h - the options of a command: one table, of which getopt's arrays,
 * --help and, made of that, the completions of the shells come.
 *
 *     static const stg_option options[] = {
 *         {"-s, --store FILE", "The hub's store."},
 *         {"--json[=FILE]", "Every number, for programs.", JSON},
 *         {"--raw", "The payload alone.", RAW, "show"},
 *         {.flag = NULL}};
 *
 * -h, --help is added to each table. Messages go to stderr and start with the
 * command ("stagger plan"), which is argv[0]. */
#ifndef STAGGER_CLI_OPTIONS_H
#define STAGGER_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stagger/ns.h>

/* Bad options, a bad policy, or a file or an output that fails. */
enum { STG_EXIT_USAGE = 2 };

/* What a command returns after --help was printed; main makes 0 of it. */
enum { STG_HELPED = -1 };

typedef struct stg_option {
    /* "-s, --store FILE", "--json[=FILE]" where the value may be left out, or
     * "--all". NULL: `says` is a heading ("": a blank line); with neither, the
     * table ends. */
    const char *flag;
    const char *says; /* for --help, which wraps it and leaves out `; a line
                         after '\n' is printed as it is */
    int value;        /* what the reader gets; 0: its letter, or without one
                         STG_OPTION_ROW and the number of the row */
    const char *of;   /* "list, show": subcommands that it is for; NULL: all.
                       Of a heading: those of all options below it */
} stg_option;

enum { STG_OPTION_ROW = 4096 };

/* "list" of `stagger dead list`. */
typedef struct stg_subcommand {
    const char *name, *says;
    int arguments_max;
} stg_subcommand;

typedef struct stg_usage {
    const char *head; /* of --help, from "usage:" to the options */
    const stg_subcommand *subcommands; /* to one without a name; NULL: none */
    const stg_option *options;
    const char *tail;         /* exit codes and examples */
    void (*print_tail)(void); /* what comes before the tail; NULL: nothing */
    int arguments_max;        /* limit for a command without subcommands */
    bool has_default;         /* the first subcommand need not be named */
    bool stops_at_word;       /* options after an argument are not read */
} stg_usage;

/* The subcommand, and the arguments that are not options. */
typedef struct stg_arguments {
    size_t subcommand; /* its number in the table */
    int count;
    char **at;
} stg_arguments;

/* Calls read with the value of each option, whose argument is in getopt's
 * optarg, until it returns something else than 0, which is returned. STG_HELPED
 * where --help was among them and has been printed. Complains of an option, a
 * subcommand or an argument that there is none of, with the one that it is most
 * like, and returns STG_EXIT_USAGE. */
int stg_options_read(const stg_usage *u, int argc, char **argv,
                     int (*read)(void *ctx, int value), void *ctx,
                     stg_arguments *left);

/* --help */
void stg_options_print(const stg_usage *u);

/* "store" of an option, in name. */
enum { STG_OPTION_NAME_MAX = 32 };
const char *stg_option_name(const stg_option *o,
                            char name[STG_OPTION_NAME_MAX]);

/* "who: message", a line; a word that is longer than a line is cut. */
__attribute__((format(printf, 2, 3))) void
stg_options_complain(const char *who, const char *format, ...);

/* The same, and where the help is. Returns STG_EXIT_USAGE. */
__attribute__((format(printf, 2, 3))) int
stg_options_refuse(const char *who, const char *format, ...);

/* Shows the line of text (from `text` to an end of line) and a caret under
 * column, which counts bytes from 1. What is too long is cut around it. */
void stg_options_point(const char *text, uint32_t column);

/* A whole number from least to most and nothing else. */
bool stg_options_read_int(const char *text, uint32_t least, uint32_t most,
                          uint32_t *number);

/* A duration, such as 30s, and nothing else. */
bool stg_options_read_duration(const char *text, stg_ns *duration);

/* "; did you mean NAME?" by base/suggest.h, or "", in suggestion, which it
 * returns. */
enum { STG_SUGGESTION_MAX = 96 };
const char *stg_options_suggest(char suggestion[STG_SUGGESTION_MAX],
                                const char *word, const char *const *names);

/* Writes stdout out. Returns code, or complains and returns STG_EXIT_USAGE if
 * that failed: half a table must not pass for a whole one. */
int stg_options_finish(const char *who, int code);

#endif
