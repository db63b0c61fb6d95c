/* Texts that are one word or one line: a word of several, true and false, names,
 * methods, files and texts of any content. A text is kept where it was read:
 * the setting points to it. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"
#include "config/kinds/kinds.h"
#include "config/loading.h"
#include "config/targets.h"
#include "core/reader.h"

/* -- one of several -------------------------------------------------------- */

/* What is stored is the place of the word in the list, which is the enum's
 * number (config/table.c). Those before `least` are not the setting's. */
static bool read_word(const stg_setting *s, const char *text, void *base,
                      stg_value_flaw *flaw)
{
    for (size_t i = s->least; s->words[i] != NULL; i++)
        if (strcmp(s->words[i], text) == 0) {
            stg_kind_put_number(s, base, i);
            return true;
        }
    stg_kind_suggest_word(text, s->words + s->least, flaw);
    return stg_kind_refuse(flaw, text, "is unknown");
}

static void want_words(const stg_setting *s, stg_writer *w)
{
    for (size_t i = s->least; s->words[i] != NULL; i++) {
        if (i > s->least)
            stg_write_text(w, s->words[i + 1] != NULL ? ", " : " or ");
        stg_write_text(w, s->words[i]);
    }
}

static json_t *schema_of_word(const stg_setting *s)
{
    json_t *array = json_array();

    for (size_t i = s->least; s->words[i] != NULL; i++)
        json_array_append_new(array, json_string(s->words[i]));
    return json_pack("{so}", "enum", array);
}

const stg_kind stg_kind_word = {
    .print_expected = want_words,
    .read = read_word,
    .schema = schema_of_word,
};

/* -- true and false -------------------------------------------------------- */

static void suggest_flag(const char *text, char *suggestion, size_t size)
{
    static const char *const yes[] = {"yes", "on", "true", "1", "y"},
                             *const no[] = {"no", "off", "false", "0", "n"};

    suggestion[0] = '\0';
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (strcasecmp(text, yes[i]) == 0)
            snprintf(suggestion, size, "true");
        else if (strcasecmp(text, no[i]) == 0)
            snprintf(suggestion, size, "false");
}

/* true and false only. What YAML 1.1 also takes (yes, on) is refused, with a
 * suggestion, because another parser would take it for a text. */
static bool read_flag(const stg_setting *s, const char *text, void *base,
                      stg_value_flaw *flaw)
{
    bool is_true = strcmp(text, "true") == 0;

    if (!is_true && strcmp(text, "false") != 0) {
        suggest_flag(text, flaw->suggestion, sizeof flaw->suggestion);
        return stg_kind_refuse(flaw, text, "is not valid");
    }
    if (s->kind == &stg_kind_flag_not)
        is_true = !is_true;
    memcpy((char *)base + s->at, &is_true, sizeof is_true);
    return true;
}

static json_t *schema_of_flag(const stg_setting *s)
{
    (void)s;
    return json_pack("{ss}", "type", "boolean");
}

static json_t *standard_flag(const stg_setting *s)
{
    return json_boolean(strcmp(s->standard, "true") == 0);
}

#define FLAG                                                                 \
    {                                                                        \
        .expected = "true or false", .read = read_flag,                      \
        .schema = schema_of_flag, .standard = standard_flag, .is_bare = true \
    }
const stg_kind stg_kind_flag = FLAG;
const stg_kind stg_kind_flag_not = FLAG;

/* -- names and methods ----------------------------------------------------- */

/* The same with hyphens. */
static void suggest_name(const char *text, char *suggestion, size_t size)
{
    size_t length = strlen(text);
    bool has_letter = false;

    suggestion[0] = '\0';
    if (length == 0 || length > 64 || length >= size)
        return;
    for (size_t i = 0; i <= length; i++) {
        char c = text[i];
        bool is_letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || stg_is_digit(c);

        has_letter = has_letter || is_letter;
        suggestion[i] =
            is_letter || c == '.' || c == '_' || c == '\0' ? c : '-';
    }
    if (!has_letter)
        suggestion[0] = '\0';
}

/* Names are in URLs, in file names and in labels of metrics: nothing that one of
 * them would escape. */
static bool read_name(const stg_setting *s, const char *text, void *base,
                      stg_value_flaw *flaw)
{
    if (!stg_target_is_name(text)) {
        suggest_name(text, flaw->suggestion, sizeof flaw->suggestion);
        return *text == '\0'
                   ? stg_kind_refuse_by(flaw, "it is empty")
                   : stg_kind_refuse(flaw, text, "is not a valid name");
    }
    stg_kind_put_text(s, base, text);
    return true;
}

const stg_kind stg_kind_name = {
    .expected = "a name of 1 to 64 of A-Z a-z 0-9 . _ -, but not . or ..",
    .read = read_name,
    .texts = 1,
    .pattern = "^(?![.]{1,2}$)[A-Za-z0-9._-]{1,64}$",
};

static void suggest_case(const char *text, const char *const *words,
                         char *suggestion, size_t size)
{
    suggestion[0] = '\0';
    for (; *words != NULL; words++)
        if (strcasecmp(text, *words) == 0 && strcmp(text, *words) != 0)
            snprintf(suggestion, size, "%s", *words);
}

/* CONNECT would make a tunnel, and an answer to HEAD has no body to keep. */
static bool read_method(const stg_setting *s, const char *text, void *base,
                        stg_value_flaw *flaw)
{
    static const char *const methods[] = {"POST",   "PUT", "PATCH",
                                          "DELETE", "GET", NULL};
    size_t size = strlen(text);

    if (size == 0 || size > 32 ||
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-_") != size ||
        strcmp(text, "CONNECT") == 0 || strcmp(text, "HEAD") == 0) {
        suggest_case(text, methods, flaw->suggestion, sizeof flaw->suggestion);
        return stg_kind_refuse(flaw, text, "cannot be used");
    }
    stg_kind_put_text(s, base, text);
    return true;
}

const stg_kind stg_kind_method = {
    .expected = "a method of HTTP, like POST or PUT",
    .read = read_method,
    .texts = 1,
    .pattern = "^[A-Z_-]{1,32}$",
};

/* -- texts and files ------------------------------------------------------- */

static bool read_text(const stg_setting *s, const char *text, void *base,
                      stg_value_flaw *flaw)
{
    if (strlen(text) > s->most)
        return stg_kind_refuse(flaw, text, "is too long");
    return stg_kind_read_text(s, text, base, flaw);
}

static void expect_text(const stg_setting *s, stg_writer *w)
{
    stg_write_text(w, "a text of 1 to ");
    stg_write_number(w, s->most);
    stg_write_text(w, " bytes");
}

const stg_kind stg_kind_text = {
    .print_expected = expect_text,
    .read = read_text,
    .texts = 1,
};

/* Ends of lines are a part of it. */
static bool read_lines(const stg_setting *s, const char *text, void *base,
                       stg_value_flaw *flaw)
{
    if (strlen(text) > s->most)
        return stg_kind_refuse(flaw, text, "is too long");
    if (*text == '\0')
        return stg_kind_refuse_by(flaw, "it is empty");
    stg_kind_put_text(s, base, text);
    return true;
}

const stg_kind stg_kind_lines = {
    .print_expected = expect_text,
    .read = read_lines,
    .texts = 1,
};

/* Relative to the settings file that names it. */
static const char *keep_path(stg_loading *l, const char *text)
{
    return *text != '\0' ? stg_load_keep_path(l, text)
                         : stg_load_keep_text(l, text);
}

const stg_kind stg_kind_file = {
    .expected = "the name of a file",
    .read = stg_kind_read_text,
    .keep = keep_path,
    .texts = 1,
};
