/* say.h - prints what came from outside (a hub's answer, a row of its store, a
 * file) so that a terminal shows it and obeys nothing in it: base/visible.h.
 *
 * Whatever a command prints for people goes through here, into a pipe too:
 * somebody reads it in the end. What is for programs keeps its meaning: JSON
 * escapes such characters, and --raw and CSV keep their bytes, but where stdout
 * is a terminal. The command's own colours are printed beside it. */
#ifndef STAGGER_CLI_SAY_H
#define STAGGER_CLI_SAY_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <stagger/policy.h>

#include "base/visible.h"

/* As printf() does; lines stay lines. */
__attribute__((format(printf, 2, 3))) void stg_say(FILE *to, const char *format,
                                                   ...);

/* The same on one line, for diagnostics, which repeat what was said: a word of
 * more than 120 bytes is cut, and so is a line of more than 1500. */
__attribute__((format(printf, 2, 0))) void
stg_say_brief_args(FILE *to, const char *format, va_list args);

/* The `size` bytes at `at`. */
void stg_say_text(FILE *to, const char *at, size_t size, stg_visible_in in);

/* The bytes as they are; as text where `to` is a terminal. */
void stg_say_bytes(FILE *to, const char *at, size_t size);

/* Of `count` targets, how many are as number i is; 0: an earlier one is, too.
 * is_same: whether two are. */
size_t stg_count_same(size_t i, size_t count,
                      bool (*is_same)(const void *all, size_t a, size_t b),
                      const void *all);

/* A policy as the hub applies it, by the first of the `count` targets that have
 * it; nothing for 0. */
void stg_say_policy(FILE *to, const char *target, const char *policy,
                    size_t count);

#define STG_JITTER_WORDS_MAX 120

/* That each wait of a fixed growth, or of a list, is drawn (full jitter), for
 * the word "fixed" seems to say otherwise. Returns words, or NULL where it does
 * not. */
const char *stg_say_jitter(const stg_policy *p,
                           char words[STG_JITTER_WORDS_MAX]);

#endif
