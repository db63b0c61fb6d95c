/* kinds.h - the kinds of values that settings have: how one is read, what is
 * expected of it, what a wrong one was meant to be, when two are equal, and how
 * a JSON Schema has it.
 *
 *     numbers.c   counts, percentages, sizes, times, rates
 *     words.c     one word of several, true and false, texts, names, files
 *     places.c    URLs, addresses, sources, stores, copies of dead letters
 *     routes.c    how requests go out: proxies, addresses of this machine
 *     policies.c  policies by name and by text, budgets
 *     alerts.c    alerts and their thresholds
 *     lists.c     texts, rules of headers, brokers, topics, networks, secrets
 *     maps.c      headers, properties, filters, tags
 *     patterns.c  conditions of filters, and patterns of bodies
 *     sections.c  maps of settings: sections, defaults, targets, receivers,
 *                 inbound webhooks
 *
 * A new kind is a row in the file of its family, and its line here. All are
 * static and const. */
#ifndef STAGGER_CONFIG_KINDS_KINDS_H
#define STAGGER_CONFIG_KINDS_KINDS_H

#include <jansson.h>

#include "config/table.h"
#include "core/writer.h"

typedef struct stg_loading stg_loading;     /* config/loading.h */
typedef struct stg_yaml_node stg_yaml_node; /* config/yaml.h */

/* What is wrong with a value: "`5` has no unit", "a time from 1m to 365d, like
 * 24h", "5m". */
typedef struct stg_value_flaw {
    char what[400];
    char expected[240];
    char suggestion[80]; /* what was meant; "": no idea */
} stg_value_flaw;

struct stg_kind {
    /* What is expected, in words; or written, where that is the setting's. */
    const char *expected;
    void (*print_expected)(const stg_setting *s, stg_writer *w);

    /* Reads text into the setting's value in base, the struct that it is a part
     * of. Texts are kept, not copied. False: flaw->what says why,
     * flaw->suggestion may say what was meant, and nothing has changed. NULL:
     * no scalar. */
    bool (*read)(const stg_setting *s, const char *text, void *base,
                 stg_value_flaw *flaw);

    /* Reads what is no scalar, and complains. */
    void (*load)(stg_loading *l, const stg_setting *s, const stg_yaml_node *n,
                 void *base);

    /* Of a scalar in a file: keeps its text, NULL: as it is; and complains of
     * what only a file makes wrong, after it was read. */
    const char *(*keep)(stg_loading *l, const char *text);
    void (*check)(stg_loading *l, const stg_setting *s, const stg_yaml_node *n,
                  void *base);

    /* Whether a and b, structs as above, have the same. NULL: their texts are,
     * `texts` in each item, or where there are none the counts of lists, or the
     * bytes. */
    bool (*equal)(const stg_setting *s, const void *a, const void *b);
    size_t texts;

    json_t *(*schema)(const stg_setting *s);   /* NULL: a text with */
    const char *pattern;                       /* NULL: any */
    json_t *(*standard)(const stg_setting *s); /* the default; NULL: a string */

    bool is_bare; /* in quotes it is a mistake, as "64" in JSON */
    int turn;     /* what others build on is loaded first: 0, then 1 and 2 */
};

extern const stg_kind stg_kind_count, stg_kind_percent, stg_kind_size,
    stg_kind_time, stg_kind_rate;
extern const stg_kind stg_kind_word, stg_kind_flag, stg_kind_flag_not,
    stg_kind_text, stg_kind_lines, stg_kind_file, stg_kind_name,
    stg_kind_method;
extern const stg_kind stg_kind_url, stg_kind_address, stg_kind_source,
    stg_kind_store, stg_kind_letters;
extern const stg_kind stg_kind_proxy, stg_kind_ip;
extern const stg_kind stg_kind_policy, stg_kind_budget, stg_kind_policies;
extern const stg_kind stg_kind_threshold, stg_kind_alerts;
extern const stg_kind stg_kind_texts, stg_kind_rules, stg_kind_brokers,
    stg_kind_topics, stg_kind_cidrs, stg_kind_secrets;
extern const stg_kind stg_kind_headers, stg_kind_receiver_headers,
    stg_kind_properties, stg_kind_match, stg_kind_tags, stg_kind_receiver_tags;
extern const stg_kind stg_kind_section, stg_kind_defaults, stg_kind_targets,
    stg_kind_receivers, stg_kind_inbounds;

/* -- of any setting -------------------------------------------------------- */

enum { STG_EXPECTED_MAX = 240 };

/* What is expected of it, for people: "true or false". Returns text. */
const char *stg_setting_expected(const stg_setting *s,
                                 char text[STG_EXPECTED_MAX]);

/* Whether stg_value_read() reads its kind: the same for a settings file and for
 * the options of the command. */
bool stg_setting_is_scalar(const stg_setting *s);

/* The kind's read(), with flaw->expected. */
bool stg_value_read(const stg_setting *s, const char *text, void *base,
                    stg_value_flaw *flaw);

/* Whether it has the same value in two structs of its kind. */
bool stg_setting_equal(const stg_setting *s, const void *a, const void *b);

/* -- for the families ------------------------------------------------------ */

/* Of 8, 4 or 1 bytes, as the setting has it. */
void stg_kind_put_number(const stg_setting *s, void *base, uint64_t number);
void stg_kind_put_text(const stg_setting *s, void *base, const char *text);
void stg_kind_put_list(const stg_setting *s, void *base, const void *list,
                       size_t count);

/* "`TEXT` why", with a text that is long cut; or in words that name the text or
 * its place themselves. Both return false. */
bool stg_kind_refuse(stg_value_flaw *flaw, const char *text, const char *why);
bool stg_kind_refuse_by(stg_value_flaw *flaw, const char *words);

/* A text that is not empty and one line. */
bool stg_kind_read_text(const stg_setting *s, const char *text, void *base,
                        stg_value_flaw *flaw);

/* Hints: the word that another one begins with, or begins; and the one that the
 * text, as far as its first ':', is most like. */
void stg_kind_suggest_word(const char *text, const char *const *words,
                           stg_value_flaw *flaw);
void stg_kind_suggest_beginning(const char *text, const char *const *words,
                                stg_value_flaw *flaw);

/* The items that a list in base points to. */
const void *stg_kind_items(const stg_setting *s, const void *base);

/* Whether two lists have as many items. */
bool stg_kind_same_count(const stg_setting *s, const void *a, const void *b);

/* schema(): a text of a pattern, NULL: any; a whole number; what may be written
 * without quotes; a file; one of two; lists, one or a list, and maps of others; what
 * $defs has; and the keys of a section. */
json_t *stg_schema_text(const char *pattern);
json_t *stg_schema_number(uint64_t least, uint64_t most);
json_t *stg_schema_scalar(void);
json_t *stg_schema_file(void); /* {file: PATH} */
json_t *stg_schema_either(json_t *a, json_t *b);
json_t *stg_schema_array(json_t *items); /* that may be empty */
json_t *stg_schema_list(json_t *items);
json_t *stg_schema_one_or_list(const stg_setting *s);
json_t *stg_schema_map(json_t *values);
json_t *stg_schema_reference(const char *name);
json_t *stg_schema_section(const stg_setting *s);

/* $defs of patterns, of bodies: a map, and a condition in a list. */
json_t *stg_schema_pattern(void);
json_t *stg_schema_condition(void);

#endif
