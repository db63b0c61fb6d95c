#include <stagger/text.h>

#include <string.h>

#include "base/suggest.h"
#include "core/rule.h"
#include "core/text_internal.h"
#include "core/writer.h"

/* Reads a policy's text word by word: a growth, settings `key=value`
 * (text_settings.c), lists of faults (text_rules.c). A preset is a text of the
 * same language. It is read first, and each of its words may be said again
 * behind it.
 *
 * p->words[] has the place of each key, for two uses: a key may stand once,
 * and an error of stg_policy_check(), which knows no text, is reported at the
 * word that it names (find_place). The enum of keys below counts rows of
 * stg_parser_settings: who moves rows there changes it. */

/* Not all settings: a word of 40 bytes and this fit the text of an error. */
static const char expected_word[] =
    "expected a preset as the first word, fixed, linear, exponential, polynomial, "
    "list=, or a setting such as attempts= base= cap= jitter= deadline= "
    "attempt-timeout= retry= never= budget= breaker= rate= hedge=";

/* "source:line:column: ", and remembers the place. */
static stg_writer place(const stg_parser *p, const char *at)
{
    stg_writer w = stg_writer_on_error(p->err);
    uint64_t column = p->column + (uint64_t)(at - p->text);

    if (p->err != NULL) {
        p->err->line = p->line;
        p->err->column = (uint32_t)column;
    }
    stg_write_path(&w, p->source);
    stg_write_char(&w, ':');
    stg_write_number(&w, p->line);
    stg_write_char(&w, ':');
    stg_write_number(&w, column);
    stg_write_text(&w, ": ");
    return w;
}

bool stg_parser_refuse(const stg_parser *p, const char *at, const char *end,
                       const char *expected)
{
    stg_writer w = place(p, at);

    if (at == end)
        stg_write_text(&w, "nothing");
    stg_write_word(&w, at, (size_t)(end - at));
    stg_write_text(&w, ": ");
    stg_write_text(&w, expected);
    return false;
}

bool stg_parser_refuse_word(const stg_parser *p, const stg_reader *word,
                            const char *name, const char *expected)
{
    char text[64];
    stg_writer w = stg_writer_on(text, sizeof text);

    stg_write_text(&w, "did you mean ");
    stg_write_text(&w, name == NULL ? "" : name);
    stg_write_char(&w, '?');
    return stg_parser_refuse(p, word->at, word->end,
                             name == NULL ? expected : text);
}

enum {
    BASE_FOR = 1, // among stg_parser_settings
    LIST = STG_PARSER_SETTINGS - 1,
    BREAKER_CONNECT = LIST - 4,
    RETRY = STG_PARSER_SETTINGS, /* keys that stand in no table */
    ONCE,
    NEVER,
    GROWTH,
    KEYS,
};
_Static_assert((int)KEYS == (int)STG_PARSER_KEYS, "a place for each key");

static const char *const rule_keys[] = {
    "retry=", "once=", "never=", "at-most="};

/* Each key once, but those with a list of their own; a preset's words may all
 * be said again. */
static bool note(stg_parser *p, unsigned key, const stg_reader *word)
{
    if (p->is_preset)
        return true;
    if (p->words[key] != NULL && key != BASE_FOR)
        return stg_parser_refuse(p, word->at, word->end,
                                 "stands here a second time, expected once");
    p->words[key] = word->at;
    return true;
}

static bool set_growth(stg_parser *p, const stg_reader *word, stg_growth growth)
{
    if (!note(p, GROWTH, word))
        return false;
    p->policy.backoff.growth = growth;
    p->policy.backoff.list_count = 0;
    memset(p->policy.backoff.list, 0, sizeof p->policy.backoff.list);
    return true;
}

static bool read_at_most(stg_parser *p, stg_reader value,
                         const stg_reader *word)
{
    uint32_t retries_max;

    if (!stg_read_int(&value, &retries_max) || retries_max < 1 ||
        retries_max > STG_RETRIES_MAX || !stg_read_text(&value, ":"))
        return stg_parser_refuse(p, word->at, word->end,
                                 "expected 1 to 255 and faults, like "
                                 "at-most=2:timeout,reset");
    return stg_parser_add_rules(p, value, (uint16_t)retries_max, false);
}

/* The words that hold rules. *is_one says whether this is one of them. */
static bool read_rules(stg_parser *p, const stg_reader *word, bool *is_one)
{
    stg_reader value = *word;

    *is_one = true;
    if (stg_read_text(&value, "retry="))
        return note(p, RETRY, word) &&
               stg_parser_add_rules(p, value, STG_ALWAYS, true);
    if (stg_read_text(&value, "once="))
        return note(p, ONCE, word) && stg_parser_add_rules(p, value, 1, false);
    if (stg_read_text(&value, "never="))
        return note(p, NEVER, word) && stg_parser_add_rules(p, value, 0, false);
    if (stg_read_text(&value, "at-most="))
        return read_at_most(p, value, word);
    *is_one = false;
    return true;
}

/* Begins a suggestion for a word up to its first c, which is included. */
static stg_suggestion begin_suggestion(stg_reader word, char c)
{
    const char *start = word.at;
    stg_reader piece = stg_read_until(&word, c);

    return stg_suggestion_begin(start, (size_t)(piece.end - start) +
                                           (piece.end != word.end));
}

/* "1s:connect,overlod": for the first category that is none. */
static const char *suggest_category(stg_reader value)
{
    const char *name = NULL;

    (void)stg_read_until(&value, ':');
    while (name == NULL && !stg_reader_is_empty(&value)) {
        stg_reader piece = stg_read_until(&value, ',');
        stg_suggestion s =
            stg_suggestion_begin(piece.at, (size_t)(piece.end - piece.at));

        for (int i = STG_CATEGORY_CONNECT; i <= STG_CATEGORY_LOCAL; i++)
            stg_suggestion_try(&s, stg_category_name((stg_category)i));
        name = s.name;
    }
    return name;
}

static bool refuse_value(const stg_parser *p, const stg_reader *word,
                         stg_reader value, const stg_parser_setting *of)
{
    stg_suggestion s = begin_suggestion(value, ':');

    for (unsigned i = 0; of->words != NULL && of->words[i] != NULL; i++)
        stg_suggestion_try(&s, of->words[i]);
    if (of == &stg_parser_settings[BASE_FOR])
        s.name = suggest_category(value);
    return stg_parser_refuse_word(p, word, s.name, of->expected);
}

static bool read_setting(stg_parser *p, const stg_reader *word, bool *is_one)
{
    stg_reader value = *word, text;
    unsigned i = 0;

    while (i < STG_PARSER_SETTINGS &&
           !stg_read_text(&value, stg_parser_settings[i].key))
        i++;
    *is_one = i < STG_PARSER_SETTINGS;
    if (!*is_one)
        return true;
    if (i == LIST ? !set_growth(p, word, STG_LIST) : !note(p, i, word))
        return false;
    text = value;
    if (stg_parser_settings[i].read(p, &value))
        return true;
    return refuse_value(p, word, text, &stg_parser_settings[i]);
}

const char *stg_parser_key_at(size_t i)
{
    enum { RULE_KEYS = sizeof rule_keys / sizeof *rule_keys };

    if (i < STG_PARSER_SETTINGS)
        return stg_parser_settings[i].key;
    return i < STG_PARSER_SETTINGS + RULE_KEYS
               ? rule_keys[i - STG_PARSER_SETTINGS]
               : NULL;
}

/* A setting's word is known by its key. */
static bool refuse_word(const stg_parser *p, const stg_reader *word)
{
    stg_suggestion s = begin_suggestion(*word, '=');
    const stg_preset *preset;
    const char *key;

    for (size_t i = 0; (key = stg_parser_key_at(i)) != NULL; i++)
        stg_suggestion_try(&s, key);
    for (unsigned i = 0; stg_growth_name(i) != NULL; i++)
        stg_suggestion_try(&s, stg_growth_name(i));
    for (size_t i = 0; word->at == p->first && (preset = stg_preset_at(i)); i++)
        stg_suggestion_try(&s, preset->name);
    return stg_parser_refuse_word(p, word, s.name, expected_word);
}

/* A growth is a word by itself; all others have a '='. */
static bool read_word(stg_parser *p, const stg_reader *word)
{
    bool is_one;

    for (unsigned i = 0; stg_growth_name(i) != NULL; i++)
        if (i != STG_LIST && stg_reader_equals(word, stg_growth_name(i)))
            return set_growth(p, word, (stg_growth)i);
    if (!read_setting(p, word, &is_one))
        return false;
    if (!is_one && !read_rules(p, word, &is_one))
        return false;
    if (is_one)
        return true;
    return refuse_word(p, word);
}

const stg_preset *stg_preset_find(const stg_reader *word)
{
    const stg_preset *preset;

    for (size_t i = 0; (preset = stg_preset_at(i)) != NULL; i++)
        if (stg_reader_equals(word, preset->name))
            return preset;
    return NULL;
}

/* A policy may be broken into lines, as documents and shells do. */
static bool is_between_words(char c)
{
    return stg_is_blank(c) || c == '\n' || c == '\r';
}

/* The next word, or an empty one at the end. */
static stg_reader next_word(stg_reader *rest)
{
    stg_reader word;

    while (!stg_reader_is_empty(rest) && is_between_words(*rest->at))
        rest->at++;
    word = (stg_reader){rest->at, rest->at};
    while (word.end != rest->end && !is_between_words(*word.end))
        word.end++;
    rest->at = word.end;
    return word;
}

/* retry= says all: wherever it stands, what was there before is gone. */
static void forget_rules(stg_policy *policy, stg_reader rest)
{
    stg_reader word;

    while (word = next_word(&rest), !stg_reader_is_empty(&word))
        if (stg_read_text(&word, "retry=")) {
            memset(policy->rules, 0, sizeof policy->rules);
            policy->rule_count = 0;
            policy->default_rules = false;
        }
}

static bool read_words(stg_parser *p, stg_reader rest)
{
    stg_reader word;

    forget_rules(&p->policy, rest);
    while (word = next_word(&rest), !stg_reader_is_empty(&word))
        if (!read_word(p, &word))
            return false;
    return true;
}

/* Presets are texts; a text of ours has no error. */
static void start_from(stg_parser *p, const stg_preset *preset)
{
    p->is_preset = true;
    (void)read_words(
        p, (stg_reader){preset->text, preset->text + strlen(preset->text)});
    p->is_preset = false;
}

/* The check names settings: it is told at the first of them that the text
 * has. */
static const char *find_place(const stg_parser *p, const char *sentence)
{
    for (const char *at = sentence; *at != '\0'; at++) {
        if (at > sentence && at[-1] != ' ')
            continue;
        for (unsigned i = 0; i < STG_PARSER_SETTINGS; i++) {
            const char *key = stg_parser_settings[i].key;

            if (p->words[i] != NULL && strncmp(at, key, strlen(key) - 1) == 0)
                return p->words[i];
        }
    }
    return p->text;
}

/* Fills in what the text leaves open, before the check: a cap that no base or
 * floor exceeds, and a power. */
static bool finish(stg_parser *p)
{
    stg_backoff *b = &p->policy.backoff;
    stg_error err;
    stg_writer w;

    if (!p->has_cap)
        b->cap = stg_ns_max(b->cap, stg_cap_least(&p->policy));
    if (b->growth == STG_POLYNOMIAL && b->power == 0)
        b->power = 2;
    // breaker=none switches off what the preset has beside it, too.
    if (p->policy.breaker.rule == STG_BREAKER_NONE &&
        p->words[BREAKER_CONNECT] == NULL)
        p->policy.breaker.connects = 0;
    if (stg_policy_check(&p->policy, &err) == STG_OK)
        return true;
    w = place(p, find_place(p, err.text));
    stg_write_text(&w, err.text);
    return false;
}

/* *policy is written only where all was read. */
stg_status stg_parser_run(stg_policy *policy, const char *source, uint32_t line,
                          uint32_t column, const char *text, size_t size,
                          stg_error *err)
{
    stg_parser p = {
        .source = source,
        .line = line,
        .column = column,
        .text = text,
        .err = err,
        .policy = stg_policy_default(),
    };
    stg_reader rest = {text, text + size}, first;
    const stg_preset *preset;

    if (size >= STG_POLICY_TEXT_MAX) {
        stg_parser_refuse(&p, rest.at, rest.end,
                          "too long, expected at most 1023 bytes");
        return STG_INVALID;
    }
    first = next_word(&rest);
    preset = stg_preset_find(&first);
    if (stg_reader_is_empty(&first)) {
        stg_parser_refuse(&p, first.at, first.end, expected_word);
        return STG_INVALID;
    }
    if (preset != NULL) {
        start_from(&p, preset);
    } else {
        rest.at = text;
        p.first = first.at;
    }
    if (!read_words(&p, rest) || !finish(&p))
        return STG_INVALID;
    *policy = p.policy;
    return STG_OK;
}

stg_status stg_policy_parse(stg_policy *policy, const char *text,
                            stg_error *err)
{
    if (policy == NULL || text == NULL)
        return stg_refuse(err, policy == NULL
                                   ? "policy is NULL, expected a place for it"
                                   : "policy text is NULL");
    return stg_parser_run(policy, "policy", 1, 1, text, strlen(text), err);
}
