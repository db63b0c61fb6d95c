/* What the families share: values are put, compared and complained of by what
 * the table says of their setting (where it is, how large, where its count is),
 * so that a kind says only what is its own. */
#include "config/kinds/kinds.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/suggest.h"

/* -- of any setting -------------------------------------------------------- */

const char *stg_setting_expected(const stg_setting *s,
                                 char text[STG_EXPECTED_MAX])
{
    stg_writer w = stg_writer_on(text, STG_EXPECTED_MAX);

    if (s->kind->print_expected != NULL)
        s->kind->print_expected(s, &w);
    else
        stg_write_text(&w, s->kind->expected);
    return text;
}

bool stg_setting_is_scalar(const stg_setting *s)
{
    return s->kind->read != NULL;
}

/* An option of the command and a line of the file are read alike. */
bool stg_value_read(const stg_setting *s, const char *text, void *base,
                    stg_value_flaw *flaw)
{
    assert(s->kind->read != NULL);
    *flaw = (stg_value_flaw){.what = ""};
    if (s->kind->read(s, text, base, flaw))
        return true;
    stg_setting_expected(s, flaw->expected);
    return false;
}

/* -- values ---------------------------------------------------------------- */

/* An enum, a count and a time differ in size only, which the table has. */
void stg_kind_put_number(const stg_setting *s, void *base, uint64_t number)
{
    void *field = (char *)base + s->at;
    uint32_t small = (uint32_t)number;
    bool is_true = number != 0;

    if (s->size == sizeof number)
        memcpy(field, &number, sizeof number);
    else if (s->size == sizeof small)
        memcpy(field, &small, sizeof small);
    else // an enum of two words that is a bool
        memcpy(field, &is_true, sizeof is_true);
}

void stg_kind_put_text(const stg_setting *s, void *base, const char *text)
{
    memcpy((char *)base + s->at, &text, sizeof text);
}

void stg_kind_put_list(const stg_setting *s, void *base, const void *list,
                       size_t count)
{
    memcpy((char *)base + s->at, &list, sizeof list);
    memcpy((char *)base + s->count_at, &count, sizeof count);
}

/* What was found is cut: it may be a whole paragraph. */
bool stg_kind_refuse(stg_value_flaw *flaw, const char *text, const char *why)
{
    snprintf(flaw->what, sizeof flaw->what, "`%.60s%s` %.300s", text,
             strlen(text) > 60 ? "..." : "", why);
    return false;
}

bool stg_kind_refuse_by(stg_value_flaw *flaw, const char *words)
{
    snprintf(flaw->what, sizeof flaw->what, "%s", words);
    return false;
}

bool stg_kind_read_text(const stg_setting *s, const char *text, void *base,
                        stg_value_flaw *flaw)
{
    if (*text == '\0')
        return stg_kind_refuse_by(flaw, "it is empty");
    for (const char *at = text; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f)
            return stg_kind_refuse_by(flaw,
                                      "it has an end of line, or another "
                                      "control character");
    stg_kind_put_text(s, base, text);
    return true;
}

/* -- suggestions ----------------------------------------------------------- */

/* The nearest word; else one that the text begins with, or that begins with the
 * text: `err` for `error`. */
void stg_kind_suggest_word(const char *text, const char *const *words,
                           stg_value_flaw *flaw)
{
    const char *near = stg_suggest(text, words);

    for (; near == NULL && *words != NULL; words++)
        if (strlen(text) >= 3 && strlen(*words) >= 3 &&
            (strncasecmp(text, *words, strlen(*words)) == 0 ||
             strncasecmp(text, *words, strlen(text)) == 0))
            near = *words;
    snprintf(flaw->suggestion, sizeof flaw->suggestion, "%s",
             near != NULL ? near : "");
}

/* Compares up to the colon, since the rest is the value: "token:100" is near
 * "tokens:". */
void stg_kind_suggest_beginning(const char *text, const char *const *words,
                                stg_value_flaw *flaw)
{
    size_t end = strcspn(text, ":");
    stg_suggestion near = stg_suggestion_begin(text, end + (text[end] == ':'));

    for (; *words != NULL; words++)
        stg_suggestion_try(&near, *words);
    snprintf(flaw->suggestion, sizeof flaw->suggestion, "%s",
             near.name != NULL ? near.name : "");
}

/* -- what is equal --------------------------------------------------------- */

const void *stg_kind_items(const stg_setting *s, const void *base)
{
    const void *items;

    memcpy(&items, (const char *)base + s->at, sizeof items);
    return items;
}

bool stg_kind_same_count(const stg_setting *s, const void *a, const void *b)
{
    return memcmp((const char *)a + s->count_at, (const char *)b + s->count_at,
                  sizeof(size_t)) == 0;
}

static bool same_texts(const char *const *a, const char *const *b, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (a[i] != b[i] &&
            (a[i] == NULL || b[i] == NULL || strcmp(a[i], b[i]) != 0))
            return false;
    return true;
}

/* Texts in the struct itself, or in a list that it points to. */
static bool same_fields(const stg_setting *s, const void *a, const void *b)
{
    const void *x = (const char *)a + s->at, *y = (const char *)b + s->at;
    size_t count = 1;

    if (s->count_at > 0) {
        x = stg_kind_items(s, a);
        y = stg_kind_items(s, b);
        memcpy(&count, (const char *)a + s->count_at, sizeof count);
    }
    return same_texts(x, y, count * s->kind->texts);
}

/* The kind's own comparison, else texts by what they say, else the bytes of the
 * field. */
bool stg_setting_equal(const stg_setting *s, const void *a, const void *b)
{
    if (s->kind->equal != NULL)
        return s->kind->equal(s, a, b);
    if (s->count_at > 0 && !stg_kind_same_count(s, a, b))
        return false;
    if (s->kind->texts > 0)
        return same_fields(s, a, b);
    return memcmp((const char *)a + s->at, (const char *)b + s->at, s->size) ==
           0;
}
