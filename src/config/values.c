#include "config/values.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <stagger/text.h>

#include "config/from.h"
#include "config/suggestions.h"
#include "config/target_name.h"
#include "core/parser.h"
#include "core/reader.h"
#include "core/writer.h"
#include "http/url.h"
#include "ingress/address.h"
#include "kafka/topic.h"

/* -- values ---------------------------------------------------------------- */

static void *field(const stg_setting *s, void *base)
{
    return (char *)base + s->at;
}

static void put_number(const stg_setting *s, void *base, uint64_t number)
{
    uint32_t small = (uint32_t)number;
    bool is_true = number != 0;

    if (s->size == sizeof number)
        memcpy(field(s, base), &number, sizeof number);
    else if (s->size == sizeof small)
        memcpy(field(s, base), &small, sizeof small);
    else // an enum of two words that is a bool
        memcpy(field(s, base), &is_true, sizeof is_true);
}

static void put_text(const stg_setting *s, void *base, const char *text)
{
    memcpy(field(s, base), &text, sizeof text);
}

/* A longer one is cut, and its cut is told. */
#define SHOWN "`%.60s%s`"
#define SHOW(text) (text), strlen(text) > 60 ? "..." : ""

static bool refuse(stg_value_flaw *flaw, const char *text, const char *why)
{
    snprintf(flaw->what, sizeof flaw->what, SHOWN " %.300s", SHOW(text), why);
    return false;
}

/* In words of another, who names the text or the place itself. */
static bool refuse_by(stg_value_flaw *flaw, const char *words)
{
    snprintf(flaw->what, sizeof flaw->what, "%s", words);
    return false;
}

static bool read_number(const char *text, uint64_t *number)
{
    return stg_is_digit(*text) && stg_read_count(text, number) &&
           strspn(text, "0123456789") == strlen(text);
}

static bool put_in_range(const stg_setting *s, const char *text,
                         uint64_t number, void *base, stg_value_flaw *flaw)
{
    if (number < s->least)
        return refuse(flaw, text, "is too small");
    if (number > s->most)
        return refuse(flaw, text, "is too large");
    put_number(s, base, number);
    return true;
}

static bool read_count(const stg_setting *s, const char *text, void *base,
                       stg_value_flaw *flaw)
{
    uint64_t number;

    if (s->none != NULL && strcmp(text, s->none) == 0) {
        put_number(s, base, UINT64_MAX);
        return true;
    }
    if (!read_number(text, &number))
        return refuse(flaw, text, "is no whole number");
    return put_in_range(s, text, number, base, flaw);
}

static bool read_percent(const stg_setting *s, const char *text, void *base,
                         stg_value_flaw *flaw)
{
    size_t size = strlen(text);
    uint64_t number;
    char digits[8];

    if (size < 2 || size > sizeof digits || text[size - 1] != '%')
        return refuse(flaw, text, "is no percentage");
    memcpy(digits, text, size - 1);
    digits[size - 1] = '\0';
    if (!read_number(digits, &number))
        return refuse(flaw, text, "is no percentage");
    return put_in_range(s, text, number, base, flaw);
}

static bool read_time(const stg_setting *s, const char *text, void *base,
                      stg_value_flaw *flaw)
{
    stg_reader r = {text, text + strlen(text)};
    uint64_t number;
    stg_ns time;

    if (s->none != NULL && strcmp(text, s->none) == 0) {
        put_number(s, base, STG_NEVER);
        return true;
    }
    stg_suggestion_time(s, text, flaw->hint, sizeof flaw->hint);
    if (!stg_read_duration(&r, &time) || !stg_reader_is_empty(&r))
        return refuse(flaw, text,
                      read_number(text, &number)             ? "has no unit"
                      : stg_suggestion_is_unit_of_time(text) ? "is too long"
                                                             : "is no time");
    if (time < s->least)
        return refuse(flaw, text, "is too short");
    if (time > s->most)
        return refuse(flaw, text, "is too long");
    put_number(s, base, time);
    return true;
}

/* 512K, 64M, 1.5G, 64MiB, 64MB: powers of 1024; a number alone: bytes. */
static bool parse_size(const char *text, uint64_t *size)
{
    static const char units[] = "KMGT";
    stg_reader r = {text, text + strlen(text)};
    uint32_t thousandths;
    const char *unit;
    uint64_t scale;

    if (read_number(text, size))
        return true;
    if (!stg_read_decimal(&r, &thousandths) || stg_reader_is_empty(&r))
        return false;
    unit = memchr(units, *r.at, sizeof units - 1);
    if (unit == NULL)
        return false;
    r.at++;
    if (!stg_read_text(&r, "iB"))
        (void)stg_read_text(&r, "B");
    scale = UINT64_C(1) << 10 * (unit - units + 1);
    *size = thousandths / 1000 * scale + thousandths % 1000 * scale / 1000;
    return stg_reader_is_empty(&r);
}

static bool read_size(const stg_setting *s, const char *text, void *base,
                      stg_value_flaw *flaw)
{
    uint64_t size;

    stg_suggestion_size(s, text, flaw->hint, sizeof flaw->hint);
    if (!parse_size(text, &size))
        return refuse(flaw, text, "is no size");
    if (size < s->least)
        return refuse(flaw, text, "is too small");
    if (size > s->most)
        return refuse(flaw, text, "is too large");
    put_number(s, base, size);
    return true;
}

static bool read_rate(const stg_setting *s, const char *text, void *base,
                      stg_value_flaw *flaw)
{
    stg_reader r = {text, text + strlen(text)};
    uint32_t rate;

    stg_suggestion_rate(text, flaw->hint, sizeof flaw->hint);
    if (!stg_read_decimal(&r, &rate) || !stg_read_text(&r, "/s") ||
        !stg_reader_is_empty(&r))
        return refuse(flaw, text, "is no rate");
    if (rate == 0)
        return refuse(flaw, text, "is no rate");
    put_number(s, base, rate);
    return true;
}

static bool read_flag(const stg_setting *s, const char *text, void *base,
                      stg_value_flaw *flaw)
{
    bool is_true = strcmp(text, "true") == 0;

    if (!is_true && strcmp(text, "false") != 0) {
        stg_suggestion_flag(text, flaw->hint, sizeof flaw->hint);
        return refuse(flaw, text, "is neither");
    }
    if (s->kind == STG_KIND_FLAG_NOT)
        is_true = !is_true;
    memcpy(field(s, base), &is_true, sizeof is_true);
    return true;
}

static bool read_word(const stg_setting *s, const char *text, void *base,
                      stg_value_flaw *flaw)
{
    for (size_t i = 0; s->words[i] != NULL; i++)
        if (strcmp(s->words[i], text) == 0) {
            put_number(s, base, i);
            return true;
        }
    stg_suggestion_word(text, s->words, flaw->hint, sizeof flaw->hint);
    return refuse(flaw, text, "is none of them");
}

static bool read_text(const stg_setting *s, const char *text, void *base,
                      stg_value_flaw *flaw)
{
    size_t size = strlen(text);

    if (size == 0)
        return refuse_by(flaw, "it is empty");
    if (s->kind == STG_KIND_TEXT && size > s->most)
        return refuse(flaw, text, "is too long");
    for (const char *at = text; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return refuse_by(flaw,
                             "it has an end of line, or another control "
                             "character");
    put_text(s, base, text);
    return true;
}

static bool read_name(const stg_setting *s, const char *text, void *base,
                      stg_value_flaw *flaw)
{
    if (!stg_target_is_name(text)) {
        stg_suggestion_name(text, flaw->hint, sizeof flaw->hint);
        return *text == '\0' ? refuse_by(flaw, "it is empty")
                             : refuse(flaw, text, "is no such name");
    }
    put_text(s, base, text);
    return true;
}

/* Words of core and hub begin with the setting's name, which is said already. */
static const char *without(const char *prefix, const char *text)
{
    size_t size = strlen(prefix);

    return strncmp(text, prefix, size) == 0 ? text + size : text;
}

static bool read_url(const stg_setting *s, const char *text, void *base,
                     stg_value_flaw *flaw)
{
    stg_url url;
    stg_error err;

    if (stg_url_parse(&url, text, &err) != STG_OK) {
        stg_suggestion_url(text, flaw->hint, sizeof flaw->hint);
        return refuse_by(flaw, without("url: ", err.text));
    }
    put_text(s, base, text);
    return true;
}

static bool read_method(const stg_setting *s, const char *text, void *base,
                        stg_value_flaw *flaw)
{
    static const char *const methods[] = {"POST",   "PUT", "PATCH",
                                          "DELETE", "GET", NULL};
    size_t size = strlen(text);

    if (size == 0 || size > 32 ||
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_") != size ||
        strcmp(text, "CONNECT") == 0 || strcmp(text, "HEAD") == 0) {
        stg_suggestion_case(text, methods, flaw->hint, sizeof flaw->hint);
        return refuse(flaw, text, "is none that can be used");
    }
    put_text(s, base, text);
    return true;
}

static bool read_address(const stg_setting *s, const char *text, void *base,
                         stg_value_flaw *flaw)
{
    stg_listen_address address;
    stg_error err;

    if (stg_address_parse(&address, text, &err) != STG_OK) {
        stg_suggestion_address(text, flaw->hint, sizeof flaw->hint);
        return refuse(flaw, text, "is no address to listen on");
    }
    put_text(s, base, text);
    return true;
}

static bool read_letters(const stg_setting *s, const char *text, void *base,
                         stg_value_flaw *flaw)
{
    static const char *const beginnings[] = {"file:", "kafka:", NULL};
    stg_letters_settings letters = {.path = NULL};

    if (strncmp(text, "kafka:", 6) == 0) {
        letters.topic = text + 6;
        if (!stg_topic_is_name((stg_span){text + 6, strlen(text + 6)}))
            return refuse(flaw, text, "names no topic");
    } else if (strncmp(text, "file:", 5) == 0 && text[5] != '\0') {
        letters.path = text + 5;
    } else {
        stg_suggestion_beginning(text, beginnings, flaw->hint,
                                 sizeof flaw->hint);
        if (strchr(text, ':') == NULL && *text != '\0')
            snprintf(flaw->hint, sizeof flaw->hint, "file:%.70s", text);
        return refuse(flaw, text, "does not begin with file: or kafka:");
    }
    memcpy(field(s, base), &letters, sizeof letters);
    return true;
}

/* It is the hub's, and base all of its settings. */
static bool read_source(const stg_setting *s, const char *text, void *base,
                        stg_value_flaw *flaw)
{
    static const char *const words[] = {"queue", "stdin", "kafka", NULL};
    static const char *const schemes[] = {"kafka:", NULL};
    stg_error err;

    (void)s;
    if (stg_from_read(base, text, &err) == STG_OK)
        return true;
    stg_suggestion_beginning(text, schemes, flaw->hint, sizeof flaw->hint);
    if (strchr(text, ':') == NULL)
        stg_suggestion_word(text, words, flaw->hint, sizeof flaw->hint);
    return refuse_by(flaw, err.text);
}

/* As `budget=` of a policy. */
static bool read_budget(const stg_setting *s, const char *text, void *base,
                        stg_value_flaw *flaw)
{
    char policy[128] = "broadcast budget=";
    size_t size = strlen(policy);
    stg_policy read;
    stg_error err;

    if (strlen(text) >= sizeof policy - size || strpbrk(text, " \t\n") != NULL)
        return refuse(flaw, text, "is no budget");
    memcpy(policy + size, text, strlen(text) + 1);
    if (stg_policy_parse(&read, policy, &err) != STG_OK) {
        stg_suggestion_beginning(text, stg_budget_words, flaw->hint,
                                 sizeof flaw->hint);
        return refuse(flaw, text, "is no budget");
    }
    memcpy(field(s, base), &read.budget, sizeof read.budget);
    return true;
}

static bool read_threshold(const stg_setting *s, const char *text, void *base,
                           stg_value_flaw *flaw)
{
    stg_alert_threshold read;

    if (stg_alert_threshold_read(text, &read, NULL) != STG_OK)
        return refuse(flaw, text, "is no threshold");
    memcpy(field(s, base), &read, sizeof read);
    return true;
}

/* Only as a word by itself can be a name; what it says is read later, when all
 * names are known. */
static bool read_policy(const stg_setting *s, const char *text, void *base,
                        stg_value_flaw *flaw)
{
    if (*text == '\0')
        return refuse_by(flaw, "it is empty");
    put_text(s, base, text);
    return true;
}

typedef bool read_fn(const stg_setting *s, const char *text, void *base,
                     stg_value_flaw *flaw);

static read_fn *const readers[STG_KIND_SINKS + 1] = {
    [STG_KIND_TEXT] = read_text,           [STG_KIND_FILE] = read_text,
    [STG_KIND_NAME] = read_name,           [STG_KIND_URL] = read_url,
    [STG_KIND_METHOD] = read_method,       [STG_KIND_ADDRESS] = read_address,
    [STG_KIND_LETTERS] = read_letters,     [STG_KIND_POLICY] = read_policy,
    [STG_KIND_FLAG] = read_flag,           [STG_KIND_FLAG_NOT] = read_flag,
    [STG_KIND_COUNT] = read_count,         [STG_KIND_SIZE] = read_size,
    [STG_KIND_TIME] = read_time,           [STG_KIND_RATE] = read_rate,
    [STG_KIND_WORD] = read_word,           [STG_KIND_BUDGET] = read_budget,
    [STG_KIND_THRESHOLD] = read_threshold, [STG_KIND_SOURCE] = read_source,
    [STG_KIND_STORE] = read_text,          [STG_KIND_PERCENT] = read_percent,
};

bool stg_setting_is_scalar(const stg_setting *s)
{
    return readers[s->kind] != NULL;
}

bool stg_value_read(const stg_setting *s, const char *text, void *base,
                    stg_value_flaw *flaw)
{
    assert(readers[s->kind] != NULL);
    *flaw = (stg_value_flaw){.column = 0};
    if (readers[s->kind](s, text, base, flaw))
        return true;
    stg_setting_expected(s, flaw->wanted);
    return false;
}
