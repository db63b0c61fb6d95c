/* Numbers with units: "24h", "64MiB", "25%", "100/s".
 *
 * A number without the unit that its kind has is a mistake, and so is another's
 * unit: what was meant is guessed from the range and the default of the setting,
 * and never used. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"
#include "config/kinds/kinds.h"
#include "core/reader.h"

/* The whole text, and digits only: no sign, no blank. */
static bool read_number(const char *text, uint64_t *number)
{
    return stg_is_digit(*text) && stg_read_count(text, number) &&
           strspn(text, "0123456789") == strlen(text);
}

/* Too small and too large are told apart: the one is often a unit left out, the
 * other one too many. */
static bool put_in_range(const stg_setting *s, const char *text,
                         uint64_t number, void *base, stg_value_flaw *flaw)
{
    if (number < s->least)
        return stg_kind_refuse(flaw, text, "is too small");
    if (number > s->most)
        return stg_kind_refuse(flaw, text, "is too large");
    stg_kind_put_number(s, base, number);
    return true;
}

/* "5 sec" is 5000 and "sec". */
static bool split(const char *text, uint32_t *thousandths, const char **unit)
{
    stg_reader r = {text, text + strlen(text)};

    if (!stg_read_decimal(&r, thousandths))
        return false;
    *unit = r.at + strspn(r.at, " _");
    return true;
}

static const char *decimal(uint32_t thousandths, char text[16])
{
    size_t size = (size_t)snprintf(text, 16, "%" PRIu32 ".%03" PRIu32,
                                   thousandths / 1000, thousandths % 1000);

    while (text[size - 1] == '0')
        text[--size] = '\0';
    if (text[size - 1] == '.')
        text[size - 1] = '\0';
    return text;
}

/* In the largest unit that it is whole in. */
static const char *print_size(uint64_t size, char text[24])
{
    static const char *const units[] = {"", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;

    while (unit < 4 && size >= 1024 && size % 1024 == 0) {
        size /= 1024;
        unit++;
    }
    snprintf(text, 24, "%" PRIu64 "%s", size, units[unit]);
    return text;
}

/* The example is the default, unless that is the word for none. */
static void want_range(const stg_setting *s, stg_writer *w)
{
    const char *example =
        s->standard != NULL && s->standard != s->none &&
                (s->none == NULL || strcmp(s->standard, s->none) != 0)
            ? s->standard
            : s->example;
    bool is_time = s->kind == &stg_kind_time;
    char least[24], most[24];

    stg_write_text(w, is_time ? "a time from " : "a size from ");
    stg_write_text(w,
                   (is_time ? stg_duration_text : print_size)(s->least, least));
    stg_write_text(w, " to ");
    stg_write_text(w,
                   (is_time ? stg_duration_text : print_size)(s->most, most));
    stg_write_text(w, ", like ");
    stg_write_text(w, example);
    if (s->none != NULL) {
        stg_write_text(w, ", or ");
        stg_write_text(w, s->none);
    }
}

/* -- counts and percentages ------------------------------------------------ */

/* Digits only: 1e6, 1_000 and 0x10 mean different things in different
 * programs. */
static bool read_count(const stg_setting *s, const char *text, void *base,
                       stg_value_flaw *flaw)
{
    uint64_t number;

    if (s->none != NULL && strcmp(text, s->none) == 0) {
        stg_kind_put_number(s, base, UINT64_MAX);
        return true;
    }
    if (!read_number(text, &number))
        return stg_kind_refuse(flaw, text, "is not a whole number");
    return put_in_range(s, text, number, base, flaw);
}

static void expect_count(const stg_setting *s, stg_writer *w)
{
    stg_write_text(w, "a number from ");
    stg_write_number(w, s->least);
    stg_write_text(w, " to ");
    stg_write_number(w, s->most);
    stg_write_text(w, s->none != NULL ? ", or " : "");
    stg_write_text(w, s->none != NULL ? s->none : "");
}

static json_t *schema_of_count(const stg_setting *s)
{
    json_t *number = stg_schema_number(s->least, s->most);

    return s->none == NULL
               ? number
               : stg_schema_either(number, json_pack("{ss}", "const", s->none));
}

/* A count with a word for none has a default that may be that word, so it is a
 * text in the schema. */
static json_t *standard_count(const stg_setting *s)
{
    return s->none != NULL
               ? json_string(s->standard)
               : json_integer((json_int_t)strtoull(s->standard, NULL, 10));
}

const stg_kind stg_kind_count = {
    .print_expected = expect_count,
    .read = read_count,
    .schema = schema_of_count,
    .standard = standard_count,
    .is_bare = true,
};

/* Whole percent only; eight bytes hold any that is in a range. */
static bool read_percent(const stg_setting *s, const char *text, void *base,
                         stg_value_flaw *flaw)
{
    size_t size = strlen(text);
    uint64_t number;
    char digits[8];

    if (size < 2 || size > sizeof digits || text[size - 1] != '%')
        return stg_kind_refuse(flaw, text, "is not a percentage");
    memcpy(digits, text, size - 1);
    digits[size - 1] = '\0';
    if (!read_number(digits, &number))
        return stg_kind_refuse(flaw, text, "is not a percentage");
    return put_in_range(s, text, number, base, flaw);
}

static void expect_percent(const stg_setting *s, stg_writer *w)
{
    stg_write_number(w, s->least);
    stg_write_text(w, "% to ");
    stg_write_number(w, s->most);
    stg_write_text(w, "%");
}

const stg_kind stg_kind_percent = {
    .print_expected = expect_percent,
    .read = read_percent,
    .pattern = "^[0-9]{1,3}%$",
};

/* -- times ----------------------------------------------------------------- */

static bool is_time(const stg_setting *s, const char *text)
{
    stg_reader r = {text, text + strlen(text)};
    stg_ns time;

    return stg_read_duration(&r, &time) && stg_reader_is_empty(&r) &&
           time >= s->least && time <= s->most;
}

/* Units that people write, for the suggestion: "30 seconds" was meant as 30s. */
static const char *unit_of_time(const char *word)
{
    static const char *const words[][2] = {
        {"sec", "s"},
        {"secs", "s"},
        {"second", "s"},
        {"seconds", "s"},
        {"min", "m"},
        {"mins", "m"},
        {"minute", "m"},
        {"minutes", "m"},
        {"hour", "h"},
        {"hours", "h"},
        {"hr", "h"},
        {"hrs", "h"},
        {"day", "d"},
        {"days", "d"},
        {"msec", "ms"},
        {"millis", "ms"},
        {"milliseconds", "ms"},
        {"usec", "us"},
        {"s", "s"},
        {"m", "m"},
        {"h", "h"},
        {"d", "d"},
        {"ms", "ms"},
    };

    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(words[i][0], word) == 0)
            return words[i][1];
    return NULL;
}

/* Of the default, or else of the example: most mean that one. */
static const char *own_unit(const stg_setting *s)
{
    const char *text = s->standard != NULL && is_time(s, s->standard)
                           ? s->standard
                           : s->example;

    return text + strspn(text, "0123456789.");
}

/* A word for `none`, the unit in another spelling, or for a number alone the
 * first unit that is in the range: the setting's own one first. */
static void suggest_time(const stg_setting *s, const char *text,
                         char *suggestion, size_t size)
{
    static const char *const units[] = {"s", "m", "h", "d", "ms"};
    uint32_t number;
    const char *unit;
    char digits[16];

    const char *const words[] = {s->none, NULL};

    suggestion[0] = '\0';
    if (s->none != NULL &&
        (strcasecmp(text, "never") == 0 || strcasecmp(text, "none") == 0 ||
         strcasecmp(text, "off") == 0 || strcasecmp(text, "infinite") == 0 ||
         stg_suggest(text, words) != NULL)) {
        snprintf(suggestion, size, "%s", s->none);
        return;
    }
    if (is_time(s, text) || !split(text, &number, &unit))
        return;
    decimal(number, digits);
    if (*unit != '\0') {
        if (strcasecmp(unit, "w") == 0 || strncasecmp(unit, "week", 4) == 0)
            snprintf(suggestion, size, "%" PRIu32 "d", number * 7 / 1000);
        else if (unit_of_time(unit) != NULL)
            snprintf(suggestion, size, "%s%s", digits, unit_of_time(unit));
        if (!is_time(s, suggestion))
            suggestion[0] = '\0';
        return;
    }
    for (size_t i = 0; i <= sizeof units / sizeof *units; i++) {
        snprintf(suggestion, size, "%s%s", digits,
                 i == 0 ? own_unit(s) : units[i - 1]);
        if (is_time(s, suggestion))
            return;
    }
    suggestion[0] = '\0';
}

/* Whole digits and a unit: if it is no time, then for its size. */
static bool is_unit_of_time(const char *text)
{
    static const char *const units[] = {"ns", "us", "ms", "s", "m", "h", "d"};
    size_t digits = strspn(text, "0123456789");

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (digits > 0 && strcmp(text + digits, units[i]) == 0)
            return true;
    return false;
}

/* The suggestion is made first, for each of the refusals below. */
static bool read_time(const stg_setting *s, const char *text, void *base,
                      stg_value_flaw *flaw)
{
    stg_reader r = {text, text + strlen(text)};
    uint64_t number;
    stg_ns time;

    if (s->none != NULL && strcmp(text, s->none) == 0) {
        stg_kind_put_number(s, base, STG_NEVER);
        return true;
    }
    suggest_time(s, text, flaw->suggestion, sizeof flaw->suggestion);
    if (!stg_read_duration(&r, &time) || !stg_reader_is_empty(&r))
        return stg_kind_refuse(flaw, text,
                               read_number(text, &number) ? "has no unit"
                               : is_unit_of_time(text)    ? "is too long"
                                                          : "is not a time");
    if (time < s->least)
        return stg_kind_refuse(flaw, text, "is too short");
    if (time > s->most)
        return stg_kind_refuse(flaw, text, "is too long");
    stg_kind_put_number(s, base, time);
    return true;
}

/* The range is not in the schema, as JSON Schema cannot compare texts. */
static json_t *schema_of_time(const stg_setting *s)
{
    json_t *all = json_array();

    json_array_append_new(
        all, stg_schema_text("^[0-9]+(\\.[0-9]{1,3})?(ns|us|ms|s|m|h|d)$"));
    if (s->least == 0)
        json_array_append_new(all, json_pack("{si}", "const", 0));
    if (s->none != NULL)
        json_array_append_new(all, json_pack("{ss}", "const", s->none));
    return json_pack("{so}", "anyOf", all);
}

const stg_kind stg_kind_time = {
    .print_expected = want_range,
    .read = read_time,
    .schema = schema_of_time,
};

/* -- sizes ----------------------------------------------------------------- */

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

/* A number alone that is too small was meant in MiB or GiB: at least 16 is
 * taken for MiB. */
static void suggest_size(const stg_setting *s, const char *text,
                         char *suggestion, size_t size)
{
    static const char letters[] = "KMGT";
    uint32_t number;
    const char *unit, *letter = NULL;
    char digits[16];

    suggestion[0] = '\0';
    if (!split(text, &number, &unit))
        return;
    decimal(number, digits);
    if (*unit != '\0')
        letter = strchr(letters, *unit & 0x5f);
    else if (s->least > 0 && number / 1000 < s->least)
        letter = &letters[number / 1000 >= 16 ? 1 : 2]; // bytes: meant more
    if (letter == NULL || *letter == '\0' || strlen(unit) > 9)
        return;
    snprintf(suggestion, size, "%s%ciB", digits, *letter);
    if (strcmp(suggestion, text) == 0)
        suggestion[0] = '\0';
}

static bool read_size(const stg_setting *s, const char *text, void *base,
                      stg_value_flaw *flaw)
{
    uint64_t size;

    suggest_size(s, text, flaw->suggestion, sizeof flaw->suggestion);
    if (!parse_size(text, &size))
        return stg_kind_refuse(flaw, text, "is not a size");
    if (size < s->least)
        return stg_kind_refuse(flaw, text, "is too small");
    if (size > s->most)
        return stg_kind_refuse(flaw, text, "is too large");
    stg_kind_put_number(s, base, size);
    return true;
}

static json_t *schema_of_size(const stg_setting *s)
{
    return stg_schema_either(
        stg_schema_number(s->least, s->most),
        stg_schema_text("^[0-9]+(\\.[0-9]{1,3})?[KMGT](i?B)?$"));
}

const stg_kind stg_kind_size = {
    .print_expected = want_range,
    .read = read_size,
    .schema = schema_of_size,
};

/* -- rates ----------------------------------------------------------------- */

/* A rate of a minute or an hour, as one of a second. */
static void suggest_rate(const char *text, char *suggestion, size_t size)
{
    uint32_t number;
    const char *unit;
    char digits[16];

    suggestion[0] = '\0';
    if (!split(text, &number, &unit) || number == 0)
        return;
    decimal(number, digits);
    if (*unit == '\0' || strcasecmp(unit, "/sec") == 0 ||
        strcasecmp(unit, "/second") == 0 || strcasecmp(unit, "/ s") == 0 ||
        strcasecmp(unit, "rps") == 0 || strcasecmp(unit, "per second") == 0)
        snprintf(suggestion, size, "%s/s", digits);
    else if (strncasecmp(unit, "/m", 2) == 0 && number / 60 > 0)
        snprintf(suggestion, size, "%s/s", decimal(number / 60, digits));
    else if (strncasecmp(unit, "/h", 2) == 0 && number / 3600 > 0)
        snprintf(suggestion, size, "%s/s", decimal(number / 3600, digits));
}

/* In thousandths a second. 0/s is refused: a target that must not get anything
 * is paused. */
static bool read_rate(const stg_setting *s, const char *text, void *base,
                      stg_value_flaw *flaw)
{
    stg_reader r = {text, text + strlen(text)};
    uint32_t rate;

    suggest_rate(text, flaw->suggestion, sizeof flaw->suggestion);
    if (!stg_read_decimal(&r, &rate) || !stg_read_text(&r, "/s") ||
        !stg_reader_is_empty(&r))
        return stg_kind_refuse(flaw, text, "is not a rate");
    if (rate == 0)
        return stg_kind_refuse(flaw, text, "is not a rate");
    stg_kind_put_number(s, base, rate);
    return true;
}

const stg_kind stg_kind_rate = {
    .expected = "requests a second, like 100/s or 0.5/s",
    .read = read_rate,
    .pattern = "^[0-9]+(\\.[0-9]{1,3})?/s$",
};
