/* suggestions.h - what a value that cannot be used was meant to be: "5sec" 5s, "yes"
 * true. Each writes a hint, or "" where it has none. Private to the settings. */
#ifndef STAGGER_CONFIG_SUGGESTIONS_H
#define STAGGER_CONFIG_SUGGESTIONS_H

#include "config/table.h"

void stg_suggestion_time(const stg_setting *s, const char *text, char *hint,
                         size_t size);
/* Whole digits and a unit: if it is no time, then for its size. */
bool stg_suggestion_is_unit_of_time(const char *text);

/* The word that another one begins with, or begins. */
void stg_suggestion_word(const char *text, const char *const *words, char *hint,
                         size_t size);

/* The word that the text, as far as its first ':', is most like. */
void stg_suggestion_beginning(const char *text, const char *const *words,
                              char *hint, size_t size);

void stg_suggestion_size(const stg_setting *s, const char *text, char *hint,
                         size_t size);
void stg_suggestion_rate(const char *text, char *hint, size_t size);
void stg_suggestion_flag(const char *text, char *hint, size_t size);
void stg_suggestion_name(const char *text, char *hint, size_t size);
void stg_suggestion_url(const char *text, char *hint, size_t size);
void stg_suggestion_address(const char *text, char *hint, size_t size);

/* One of the words in other letters. */
void stg_suggestion_case(const char *text, const char *const *words, char *hint,
                         size_t size);

#endif
