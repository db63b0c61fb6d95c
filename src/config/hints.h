/* hints.h - what a value that cannot be used was meant to be: "5sec" 5s, "yes"
 * true. Each writes a hint, or "" where it has none. Private to the settings. */
#ifndef STAGGER_CONFIG_HINTS_H
#define STAGGER_CONFIG_HINTS_H

#include "config/table.h"

void stg_hint_time(const stg_setting *s, const char *text, char *hint,
                   size_t size);
/* Whole digits and a unit: if it is no time, then for its size. */
bool stg_hint_is_unit_of_time(const char *text);

/* The word that another one begins with, or begins. */
void stg_hint_word(const char *text, const char *const *words, char *hint,
                   size_t size);

/* The word that the text, as far as its first ':', is most like. */
void stg_hint_beginning(const char *text, const char *const *words, char *hint,
                        size_t size);

void stg_hint_size(const stg_setting *s, const char *text, char *hint,
                   size_t size);
void stg_hint_rate(const char *text, char *hint, size_t size);
void stg_hint_flag(const char *text, char *hint, size_t size);
void stg_hint_name(const char *text, char *hint, size_t size);
void stg_hint_url(const char *text, char *hint, size_t size);
void stg_hint_address(const char *text, char *hint, size_t size);

/* One of the words in other letters. */
void stg_hint_case(const char *text, const char *const *words, char *hint,
                   size_t size);

#endif
