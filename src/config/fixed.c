/* Settings that only a restart changes: a copy that belongs to the process, and
 * what a reload says of a file that has other ones.
 *
 * A hub keeps the copy from its start to its end, and each set of settings that
 * it runs with points into it (stg_settings_use_fixed()). Parts that keep such a
 * text, as most do, can thus be sure of it over any number of reloads. Values are
 * copied row by row of the table, so that a new setting needs no change here. */
#include <string.h>

#include "config/kinds/kinds.h"
#include "config/load.h"
#include "config/loading.h"

/* A kind of texts that has a list, too, has items of texts alone. */
static size_t fixed_item_size(const stg_setting *s)
{
    return s->kind->texts * sizeof(const char *);
}

/* Copies `count` texts, of which any may be NULL. False: out of memory. */
static bool fixed_copy_texts(stg_settings *to, const char *const *from,
                             const char **copies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (from[i] == NULL)
            continue;
        copies[i] = stg_settings_keep_text(to, from[i], strlen(from[i]));
        if (copies[i] == NULL)
            return false;
    }
    return true;
}

/* Copies a list with the empty item at its end. */
static bool fixed_copy_list(const stg_setting *s, const stg_settings *from,
                            stg_settings *to)
{
    const char *const *items = stg_kind_items(s, from);
    const char **copies;
    size_t count;

    memcpy(&count, (const char *)from + s->count_at, sizeof count);
    if (items == NULL)
        return true;
    copies = stg_settings_keep(to, (count + 1) * fixed_item_size(s));
    if (copies == NULL ||
        !fixed_copy_texts(to, items, copies, count * s->kind->texts))
        return false;
    stg_kind_put_list(s, to, copies, count);
    return true;
}

static bool fixed_copy_setting(const stg_setting *s, const stg_settings *from,
                               stg_settings *to)
{
    const char *at = (const char *)from + s->at;

    if (s->count_at > 0)
        return fixed_copy_list(s, from, to);
    memcpy((char *)to + s->at, at, s->size);
    return fixed_copy_texts(to, (const void *)at, (void *)((char *)to + s->at),
                            s->kind->texts);
}

static bool fixed_is_row(const stg_setting *s)
{
    return s->in == STG_IN_HUB && s->is_fixed;
}

stg_settings *stg_settings_copy_fixed(const stg_settings *from)
{
    stg_settings *to = stg_settings_new();
    const stg_setting *s;
    bool is_whole = to != NULL;

    for (size_t i = 0; is_whole && (s = stg_setting_at(i)) != NULL; i++)
        if (fixed_is_row(s))
            is_whole = fixed_copy_setting(s, from, to);
    if (is_whole)
        return to;
    stg_settings_free(to);
    return NULL;
}

void stg_settings_use_fixed(stg_settings *s, const stg_settings *fixed)
{
    const stg_setting *row;

    for (size_t i = 0; (row = stg_setting_at(i)) != NULL; i++) {
        size_t count;

        if (!fixed_is_row(row))
            continue;
        if (row->count_at == 0) {
            memcpy((char *)s + row->at, (const char *)fixed + row->at,
                   row->size);
            continue;
        }
        memcpy(&count, (const char *)fixed + row->count_at, sizeof count);
        stg_kind_put_list(row, s, stg_kind_items(row, fixed), count);
    }
}

/* -- what a reload says ---------------------------------------------------- */

/* An item of headers, or of properties, as the settings have both. */
typedef struct fixed_item {
    const char *name, *value;
    const char *file; /* that the value came from; NULL: from the settings */
} fixed_item;

_Static_assert(sizeof(fixed_item) == sizeof(stg_header_setting) &&
                   sizeof(fixed_item) == sizeof(stg_property_setting),
               "three texts each");

static bool fixed_same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Whether two lists of a setting, which differ, differ by nothing but the contents
 * of files. */
static bool fixed_differs_by_files(const stg_setting *s,
                                   const stg_settings *fixed,
                                   const stg_settings *next)
{
    const fixed_item *a = stg_kind_items(s, fixed),
                     *b = stg_kind_items(s, next);
    size_t count;

    if ((s->kind != &stg_kind_headers && s->kind != &stg_kind_properties) ||
        !stg_kind_same_count(s, fixed, next))
        return false;
    memcpy(&count, (const char *)fixed + s->count_at, sizeof count);
    for (size_t i = 0; i < count; i++)
        if (!fixed_same_text(a[i].name, b[i].name) ||
            !fixed_same_text(a[i].file, b[i].file) ||
            (a[i].file == NULL && !fixed_same_text(a[i].value, b[i].value)))
            return false;
    return true;
}

/* A secret that was rotated does not keep the rest from being reloaded. */
static void fixed_warn_of_files(const stg_setting *s, const stg_settings *fixed,
                                const stg_settings *next, stg_diagnostics *c)
{
    const fixed_item *a = stg_kind_items(s, fixed),
                     *b = stg_kind_items(s, next);
    size_t count;

    memcpy(&count, (const char *)fixed + s->count_at, sizeof count);
    for (size_t i = 0; i < count; i++)
        if (!fixed_same_text(a[i].value, b[i].value))
            stg_warn(
                c, stg_settings_place(next, s->path),
                "`%s`: the content of %.200s has changed, and takes effect "
                "at a restart",
                s->path, b[i].file);
}

/* Compares every setting that is marked as fixed, also those whose line is gone:
 * their default has taken effect then. */
void stg_settings_check_reload(const stg_settings *fixed,
                               const stg_settings *next, stg_diagnostics *c)
{
    const stg_setting *s;

    stg_settings_check_files(next, fixed->store.path, c);
    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++) {
        stg_file_place place;

        if (!fixed_is_row(s) || stg_setting_equal(s, fixed, next))
            continue;
        if (fixed_differs_by_files(s, fixed, next)) {
            fixed_warn_of_files(s, fixed, next, c);
            continue;
        }
        // A line that is gone is as good as one that has changed.
        place = stg_settings_place(next, s->path);
        stg_complain(c, place,
                     "`%s` has changed%s, and only a restart can do that; "
                     "expected it as it was, or a restart",
                     s->path, place.line == 0 ? ": it is gone" : "");
    }
    stg_diagnostics_sort(c);
}
