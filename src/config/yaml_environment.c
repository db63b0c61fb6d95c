/* `${NAME}` in the values of a settings file: replaced in the tree, after YAML
 * was read, so that a value of the environment stays one text whatever it has in
 * it. Keys, comments and what a call has sent are left alone.
 *
 * A node that several aliases share is copied, and each copy is replaced once:
 * what `$${` leaves is not read again. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/visible.h"
#include "config/yaml_internal.h"

/* Of a text with all that is put into it. */
enum { EXPANDED_MAX = 1 << 20 };

static bool complain_of_form(stg_yaml *y, const stg_yaml_node *n)
{
    stg_complain(y->diagnostics, n->place,
                 "`${` without a name; expected ${NAME} or ${NAME:-default}, "
                 "or $${ for the two characters themselves");
    return false;
}

/* A digit cannot be the first of a name. */
static size_t name_length(const char *text)
{
    return strspn(text, "0123456789") > 0
               ? 0
               : strspn(text,
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstu"
                        "vwxyz_0123456789");
}

/* Adds what stands for `name` with its default, which is NULL or ends at its
 * brace. */
static bool put_value(stg_yaml *y, const stg_yaml_node *n, const char *name,
                      const char *standard, stg_text *to)
{
    const char *value = getenv(name);

    if (standard != NULL && (value == NULL || *value == '\0')) {
        stg_text_add(to, standard, strcspn(standard, "}"));
        return true;
    }
    if (value == NULL)
        stg_complain(y->diagnostics, n->place,
                     "`${%.100s}`: there is no such variable in the "
                     "environment; set it, or write ${%.100s:-default}",
                     name, name);
    else if (!stg_utf8_is_text(value, strlen(value)))
        stg_complain(y->diagnostics, n->place,
                     "`${%.100s}`: its value is not UTF-8; expected text in "
                     "UTF-8",
                     name);
    else if (strlen(value) > EXPANDED_MAX - to->size)
        stg_complain(y->diagnostics, n->place,
                     "`${%.100s}`: its value is too long; expected 1 MiB at "
                     "most",
                     name);
    else if (!stg_diagnostics_hide(y->diagnostics, name, value))
        to->is_short = true;
    else {
        stg_text_put(to, value);
        return true;
    }
    return false;
}

/* *at is behind `${`, and then behind its `}`. */
static bool put_variable(stg_yaml *y, const stg_yaml_node *n, const char **at,
                         stg_text *to)
{
    size_t size = name_length(*at);
    const char *end = *at + size, *standard = NULL;
    char *name;
    bool is_put;

    if (size > 0 && strncmp(end, ":-", 2) == 0) {
        standard = end + 2;
        end = standard + strcspn(standard, "}");
    }
    // A `${` in the default would end at the first brace.
    if (size == 0 || *end != '}' ||
        (standard != NULL && strstr(standard, "${") != NULL &&
         strstr(standard, "${") < end))
        return complain_of_form(y, n);
    name = strndup(*at, size);
    to->is_short = to->is_short || name == NULL;
    is_put = name != NULL && put_value(y, n, name, standard, to);
    free(name);
    *at = end + 1;
    return is_put;
}

/* The whole text of n; false: complained. */
static bool put_text(stg_yaml *y, const stg_yaml_node *n, stg_text *to)
{
    bool is_put = true;

    for (const char *at = n->text; *at != '\0' && is_put;) {
        size_t plain = strcspn(at, "$");

        stg_text_add(to, at, plain);
        at += plain;
        if (strncmp(at, "$${", 3) == 0) {
            stg_text_put(to, "${");
            at += 3;
        } else if (strncmp(at, "${", 2) == 0) {
            at += 2;
            is_put = put_variable(y, n, &at, to);
        } else if (*at != '\0') {
            stg_text_add(to, at++, 1);
        }
    }
    return is_put;
}

/* The node with its text replaced; NULL: complained. */
static stg_yaml_node *expand_text(stg_yaml *y, const stg_yaml_node *n)
{
    stg_text text = {.at = NULL};
    stg_yaml_node *copy = NULL;
    char *kept = NULL;
    bool is_put = put_text(y, n, &text);

    if (text.is_short)
        stg_complain(y->diagnostics, n->place, "there is no memory to read it");
    else if (is_put && (copy = stg_yaml_keep(y, sizeof *copy)) != NULL &&
             (kept = stg_yaml_keep(y, text.size + 1)) != NULL) {
        if (text.size > 0)
            memcpy(kept, text.at, text.size);
        *copy = *n;
        copy->text = kept;
        copy->written = n->text;
        copy->is_verbatim = false;
    }
    stg_text_free(&text);
    return kept != NULL ? copy : NULL;
}

/* All that cannot be replaced are told. */
bool stg_yaml_expand(stg_yaml *y, const stg_yaml_node *top)
{
    bool is_map = top->kind == STG_NODE_MAP, is_good = true;

    for (size_t i = is_map; i < top->count; i += is_map ? 2 : 1) {
        stg_yaml_node *n = top->at[i];

        if (n->kind != STG_NODE_TEXT) {
            is_good = stg_yaml_expand(y, n) && is_good;
        } else if (n->written == NULL && strstr(n->text, "${") != NULL) {
            stg_yaml_node *expanded = expand_text(y, n);

            if (expanded != NULL)
                top->at[i] = expanded;
            is_good = is_good && expanded != NULL;
        }
    }
    return is_good;
}
