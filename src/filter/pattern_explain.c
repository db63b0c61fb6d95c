/* Why a body does not match, for people: the first field that does not, what
 * stands there, and what the pattern has. */
#include <stdlib.h>
#include <string.h>

#include "base/visible.h"
#include "filter/internal.h"

enum { SHOWN = 60, TESTS_SHOWN = 6 };

/* Of the path to where the search is; whole is the line so far. */
typedef struct search {
    stg_text *why;
    char path[200];
} search;

static bool explain_map(search *s, const stg_pattern_field *map,
                        const json_t *v);

/* A value as JSON, cut behind whole characters. */
static void put_value(stg_text *to, const json_t *v)
{
    char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
    size_t size = 0;

    if (text == NULL)
        return;
    while (size < SHOWN && text[size] != '\0')
        size += stg_utf8_length(text + size, strlen(text + size));
    stg_text_add(to, text, size);
    if (text[size] != '\0')
        stg_text_put(to, "...");
    free(text);
}

static void put_tests(stg_text *to, const stg_pattern_field *list)
{
    for (size_t i = 0; i < list->count && i < TESTS_SHOWN; i++) {
        stg_text_put(to, i > 0 ? ", " : "");
        put_value(to, list->tests[i].source);
    }
    if (list->count > TESTS_SHOWN)
        stg_text_put(to, ", ...");
}

/* "detail.state" below the path so far; returns its size before. */
static size_t push(search *s, const char *name)
{
    size_t size = strlen(s->path), room = sizeof s->path - 1 - size;
    size_t more = strnlen(name, room > 0 ? room - 1 : 0);

    if (room > 1) {
        s->path[size] = '.';
        memcpy(s->path + size + 1, name, more);
        s->path[size + 1 + more] = '\0';
    }
    return size;
}

/* False, as all that add a reason. */
static bool put_list(search *s, const stg_pattern_field *list, const json_t *v)
{
    if (stg_pattern_has(list, v))
        return true;
    stg_text_put(s->why, s->path);
    if (v == NULL) {
        stg_text_put(s->why, list->count > 1 ? " is not there; expected one of "
                                             : " is not there; expected ");
    } else {
        stg_text_put(s->why, ": ");
        put_value(s->why, v);
        stg_text_put(s->why, json_is_object(v) ? ", a map; expected "
                             : list->count > 1 ? " is none of "
                                               : " is not ");
    }
    put_tests(s->why, list);
    return false;
}

static bool put_or(search *s, const stg_pattern_field *or_, const json_t *map)
{
    for (size_t i = 0; i < or_->count; i++)
        if (stg_pattern_fits(&or_->parts[i], map))
            return true;
    stg_text_put(s->why, s->path);
    stg_text_put(s->why, ".$or: none of ");
    stg_text_put_number(s->why, or_->count);
    stg_text_put(s->why, "; the first: ");
    return explain_map(s, &or_->parts[0], map);
}

static const json_t *first_map(const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);
        const json_t *found = json_is_object(item) ? item : first_map(item);

        if (found != NULL)
            return found;
    }
    return NULL;
}

/* Tells whether a map fits, or one in a list of maps. If not, says why: for a
 * list by its first map, as an example. */
static bool explain_within(search *s, const stg_pattern_field *map,
                           const json_t *v)
{
    if (stg_pattern_fits_within(map, v))
        return true;
    if (json_array_size(v) > 1) {
        stg_text_put(s->why, s->path);
        stg_text_put(s->why, ": none of ");
        stg_text_put_number(s->why, json_array_size(v));
        stg_text_put(s->why, " items; the first: ");
    }
    return explain_map(s, map, json_is_object(v) ? v : first_map(v));
}

static bool explain_part(search *s, const stg_pattern_field *part,
                         const json_t *map)
{
    const json_t *v = json_object_get(map, part->name);
    size_t size;
    bool fits;

    if (part->kind == STG_FIELD_OR)
        return put_or(s, part, map);
    size = push(s, part->name);
    fits = part->kind == STG_FIELD_LIST ? put_list(s, part, v)
                                        : explain_within(s, part, v);
    s->path[size] = '\0';
    return fits;
}

static bool explain_map(search *s, const stg_pattern_field *map,
                        const json_t *v)
{
    for (size_t i = 0; i < map->count; i++)
        if (!explain_part(s, &map->parts[i], v))
            return false;
    return true;
}

/* Values of a message may have what a terminal obeys: the words are cleaned as a
 * whole. */
void stg_pattern_explain(const stg_pattern *p, const json_t *body,
                         const char *name, stg_text *why)
{
    search s = {.why = why};
    size_t before = why->size;

    strncpy(s.path, name, sizeof s.path - 1);
    if (body == NULL) {
        stg_text_put(why, name);
        stg_text_put(why, " is not JSON");
    } else {
        (void)explain_within(&s, &p->top, body);
    }
    if (why->size > before)
        why->size =
            before + stg_visible_clean(why->at + before, why->size - before,
                                       STG_VISIBLE_IN_LINE);
}
