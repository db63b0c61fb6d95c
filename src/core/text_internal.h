/* text_internal.h - what the parser and the printer of policies share. Private.
 *
 * text_parse.c reads words, text_settings.c the values of settings, text_rules.c
 * the lists of faults; text_print.c writes the canonical text. */
#ifndef STAGGER_CORE_TEXT_INTERNAL_H
#define STAGGER_CORE_TEXT_INTERNAL_H

#include <stagger/policy.h>
#include <stagger/text.h>

#include "core/reader.h"

enum {
    STG_PARSER_KEYS = 33,
    STG_PARSER_SETTINGS =
        STG_PARSER_KEYS - 4, /* without those of rules and growth */
};

typedef struct stg_parser {
    const char *source; /* for errors: "policy", or a file's name */
    uint32_t line;
    uint32_t column; /* of text, from 1 */
    const char *text;
    const char *first; /* its first word, or NULL where that is a preset */
    stg_error *err;
    stg_policy policy;
    bool is_preset; /* inside a preset's own text */
    bool has_cap;
    const char *places[STG_RULES_MAX];  /* where each rule stands, or NULL */
    const char *words[STG_PARSER_KEYS]; /* where each key stands, or NULL */
} stg_parser;

/* A setting of the text. */
typedef struct stg_parser_setting {
    const char *key;                                /* "attempts=" */
    bool (*read)(stg_parser *p, stg_reader *value); /* the whole value, or
                                                       false */
    const char *expected;
    const char *const *words; /* those that the value may be, or NULL */
} stg_parser_setting;

extern const stg_parser_setting stg_parser_settings[STG_PARSER_SETTINGS];

/* Parses size bytes that stand at line and column of source. */
stg_status stg_parser_run(stg_policy *policy, const char *source, uint32_t line,
                          uint32_t column, const char *text, size_t size,
                          stg_error *err);

/* The preset with this name, or NULL. */
const stg_preset *stg_preset_find(const stg_reader *word);

/* The keys that a text may have: "attempts=" and the others, those of rules
 * behind; NULL after the last. Static. */
const char *stg_parser_key_at(size_t i);

/* What a budget= may begin with. Ends with NULL. */
extern const char *const stg_budget_words[];

/* Writes "source:line:column: found: expected" about the piece that starts at
 * `at`. Returns false, as what calls it does. */
bool stg_parser_refuse(const stg_parser *p, const char *at, const char *end,
                       const char *expected);

/* The same about a word, or a piece of it, that was meant to be `name`; with
 * what is expected where that is NULL. */
bool stg_parser_refuse_word(const stg_parser *p, const stg_reader *word,
                            const char *name, const char *expected);

/* Adds a rule with this limit for each fault of the list; may_default: the
 * words "default" and "none" may stand in it. */
bool stg_parser_add_rules(stg_parser *p, stg_reader list, uint16_t retries_max,
                          bool may_default);

/* -- the canonical text */

/* Writes the text, cut to size, and returns its whole length. */
size_t stg_policy_write(const stg_policy *p, char *text, size_t size);

/* "exponential"; a list's is "list=", which goes on. NULL behind the last. */
const char *stg_growth_name(unsigned growth);

/* Whether a text of this length is the name of a growth, list= but begun. */
bool stg_growth_is_word(const char *text, size_t length);

/* What stands behind "retry-after=". */
const char *stg_retry_after_name(stg_retry_after how);

/* What stands behind "jitter=". */
struct stg_writer;
void stg_jitter_write(struct stg_writer *w, const stg_backoff *b);

#endif
