/* options.h - what commands share: complaints, hints, and the end.
 *
 * Messages go to stderr and start with who speaks ("stagger plan"). */
#ifndef STAGGER_CLI_OPTIONS_H
#define STAGGER_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bad words, a bad policy, or a file or an output that fails. */
enum { STG_EXIT_USAGE = 2 };

/* "who: message", a line; a word that is longer than a line is cut. */
__attribute__((format(printf, 2, 3))) void
stg_options_complain(const char *who, const char *format, ...);

/* Shows the line of text (from `text` to an end of line) and a caret under
 * column, which counts bytes from 1. What is too long is cut around it. */
void stg_options_point(const char *text, uint32_t column);

/* A whole number from least to most and nothing else. */
bool stg_options_read_int(const char *text, uint32_t least, uint32_t most,
                          uint32_t *number);

/* As getopt_long(), which it asks; a word that is no option is complained of,
 * with the option that it is most like, and is '?'. argv[0] is "stagger COMMAND".
 */
struct option;
int stg_options_next(int argc, char **argv, const char *letters,
                     const struct option *options);

/* "; did you mean NAME?" by base/suggest.h, or "", in hint, which it returns. */
enum { STG_SUGGESTION_MAX = 96 };
const char *stg_options_hint(char hint[STG_SUGGESTION_MAX], const char *word,
                             const char *const *names);

/* Takes the options of argv one by one: read is told each, and optarg is its
 * value. Stops where it returns something else than 0, and returns that; a word
 * that is no option is complained of, and is STG_EXIT_USAGE. argv[0] is "stagger
 * COMMAND". Words that are no options are left from optind on. */
int stg_options_walk(int argc, char **argv, const char *letters,
                     const struct option *options,
                     int (*read)(void *ctx, int option), void *ctx);

/* Writes stdout out. Returns code, or complains and returns STG_EXIT_USAGE if
 * that failed: half a table must not pass for a whole one. */
int stg_options_finish(const char *who, int code);

#endif
