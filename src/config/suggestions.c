#include "config/suggestions.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"
#include "core/reader.h"
#include "http/url.h"

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

/* -- times ----------------------------------------------------------------- */

static bool is_time(const stg_setting *s, const char *text)
{
    stg_reader r = {text, text + strlen(text)};
    stg_ns time;

    return stg_read_duration(&r, &time) && stg_reader_is_empty(&r) &&
           time >= s->least && time <= s->most;
}

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

void stg_suggestion_time(const stg_setting *s, const char *text, char *hint,
                         size_t size)
{
    static const char *const units[] = {"s", "m", "h", "d", "ms"};
    uint32_t number;
    const char *unit;
    char digits[16];

    const char *const words[] = {s->none, NULL};

    hint[0] = '\0';
    if (s->none != NULL &&
        (strcasecmp(text, "never") == 0 || strcasecmp(text, "none") == 0 ||
         strcasecmp(text, "off") == 0 || strcasecmp(text, "infinite") == 0 ||
         stg_suggest(text, words) != NULL)) {
        snprintf(hint, size, "%s", s->none);
        return;
    }
    if (is_time(s, text) || !split(text, &number, &unit))
        return;
    decimal(number, digits);
    if (*unit != '\0') {
        if (strcasecmp(unit, "w") == 0 || strncasecmp(unit, "week", 4) == 0)
            snprintf(hint, size, "%" PRIu32 "d", number * 7 / 1000);
        else if (unit_of_time(unit) != NULL)
            snprintf(hint, size, "%s%s", digits, unit_of_time(unit));
        if (!is_time(s, hint))
            hint[0] = '\0';
        return;
    }
    for (size_t i = 0; i <= sizeof units / sizeof *units; i++) {
        snprintf(hint, size, "%s%s", digits,
                 i == 0 ? own_unit(s) : units[i - 1]);
        if (is_time(s, hint))
            return;
    }
    hint[0] = '\0';
}

bool stg_suggestion_is_unit_of_time(const char *text)
{
    static const char *const units[] = {"ns", "us", "ms", "s", "m", "h", "d"};
    size_t digits = strspn(text, "0123456789");

    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (digits > 0 && strcmp(text + digits, units[i]) == 0)
            return true;
    return false;
}

/* -- sizes and rates ------------------------------------------------------- */

void stg_suggestion_size(const stg_setting *s, const char *text, char *hint,
                         size_t size)
{
    static const char letters[] = "KMGT";
    uint32_t number;
    const char *unit, *letter = NULL;
    char digits[16];

    hint[0] = '\0';
    if (!split(text, &number, &unit))
        return;
    decimal(number, digits);
    if (*unit != '\0')
        letter = strchr(letters, *unit & 0x5f);
    else if (s->least > 0 && number / 1000 < s->least)
        letter = &letters[number / 1000 >= 16 ? 1 : 2]; // bytes: meant more
    if (letter == NULL || *letter == '\0' || strlen(unit) > 9)
        return;
    snprintf(hint, size, "%s%ciB", digits, *letter);
    if (strcmp(hint, text) == 0)
        hint[0] = '\0';
}

void stg_suggestion_rate(const char *text, char *hint, size_t size)
{
    uint32_t number;
    const char *unit;
    char digits[16];

    hint[0] = '\0';
    if (!split(text, &number, &unit) || number == 0)
        return;
    decimal(number, digits);
    if (*unit == '\0' || strcasecmp(unit, "/sec") == 0 ||
        strcasecmp(unit, "/second") == 0 || strcasecmp(unit, "/ s") == 0 ||
        strcasecmp(unit, "rps") == 0 || strcasecmp(unit, "per second") == 0)
        snprintf(hint, size, "%s/s", digits);
    else if (strncasecmp(unit, "/m", 2) == 0 && number / 60 > 0)
        snprintf(hint, size, "%s/s", decimal(number / 60, digits));
    else if (strncasecmp(unit, "/h", 2) == 0 && number / 3600 > 0)
        snprintf(hint, size, "%s/s", decimal(number / 3600, digits));
}

/* -- words ----------------------------------------------------------------- */

void stg_suggestion_flag(const char *text, char *hint, size_t size)
{
    static const char *const yes[] = {"yes", "on", "true", "1", "y"},
                             *const no[] = {"no", "off", "false", "0", "n"};

    hint[0] = '\0';
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (strcasecmp(text, yes[i]) == 0)
            snprintf(hint, size, "true");
        else if (strcasecmp(text, no[i]) == 0)
            snprintf(hint, size, "false");
}

/* The same with hyphens. */
void stg_suggestion_name(const char *text, char *hint, size_t size)
{
    size_t length = strlen(text);
    bool has_letter = false;

    hint[0] = '\0';
    if (length == 0 || length > 64 || length >= size)
        return;
    for (size_t i = 0; i <= length; i++) {
        char c = text[i];
        bool is_letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || stg_is_digit(c);

        has_letter = has_letter || is_letter;
        hint[i] = is_letter || c == '.' || c == '_' || c == '\0' ? c : '-';
    }
    if (!has_letter)
        hint[0] = '\0';
}

/* Without a scheme, or with another. */
void stg_suggestion_url(const char *text, char *hint, size_t size)
{
    const char *host = strstr(text, "://");
    stg_url url;

    hint[0] = '\0';
    // What may be a password is not repeated.
    if (strchr(text, '@') != NULL || strchr(text, '#') != NULL)
        return;
    if (host == NULL && *text == '/')
        return;
    if ((size_t)snprintf(hint, size, "http://%s",
                         host != NULL ? host + 3 : text) >= size ||
        stg_url_parse(&url, hint, NULL) != STG_OK)
        hint[0] = '\0';
}

void stg_suggestion_address(const char *text, char *hint, size_t size)
{
    size_t digits = strspn(text, "0123456789");

    hint[0] = '\0';
    if (digits > 0 && digits < 6 && text[digits] == '\0')
        snprintf(hint, size, "127.0.0.1:%s", text);
    else if (*text == ':' &&
             strspn(text + 1, "0123456789") == strlen(text + 1) &&
             text[1] != '\0')
        snprintf(hint, size, "127.0.0.1%s", text);
    else if (strspn(text, "0123456789.") == strlen(text) && *text != '\0')
        snprintf(hint, size, "%.40s:8080", text);
}

void stg_suggestion_word(const char *text, const char *const *words, char *hint,
                         size_t size)
{
    const char *near = stg_suggest(text, words);

    for (; near == NULL && *words != NULL; words++)
        if (strlen(text) >= 3 && strlen(*words) >= 3 &&
            (strncasecmp(text, *words, strlen(*words)) == 0 ||
             strncasecmp(text, *words, strlen(text)) == 0))
            near = *words;
    snprintf(hint, size, "%s", near != NULL ? near : "");
}

void stg_suggestion_beginning(const char *text, const char *const *words,
                              char *hint, size_t size)
{
    size_t end = strcspn(text, ":");
    stg_suggestion near = stg_suggestion_begin(text, end + (text[end] == ':'));

    for (; *words != NULL; words++)
        stg_suggestion_try(&near, *words);
    snprintf(hint, size, "%s", near.name != NULL ? near.name : "");
}

void stg_suggestion_case(const char *text, const char *const *words, char *hint,
                         size_t size)
{
    hint[0] = '\0';
    for (; *words != NULL; words++)
        if (strcasecmp(text, *words) == 0 && strcmp(text, *words) != 0)
            snprintf(hint, size, "%s", *words);
}
