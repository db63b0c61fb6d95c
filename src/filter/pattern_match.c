/* A body in JSON against a compiled pattern. Each part of the pattern looks once at
 * each value of the body that lies on its path, so that a match is linear in
 * pattern times body; texts are searched by memmem(), piece by piece, without going
 * back. */
#include <arpa/inet.h>
#include <string.h>

#include "filter/internal.h"

/* -- texts ----------------------------------------------------------------- */

static char fold(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool same(const char *a, const char *b, size_t size, bool ignores_case)
{
    if (!ignores_case)
        return memcmp(a, b, size) == 0;
    for (size_t i = 0; i < size; i++)
        if (fold(a[i]) != fold(b[i]))
            return false;
    return true;
}

/* The leftmost place of each piece in the middle leaves the most for the next. */
static bool fits_wildcard(const stg_pattern_test *t, stg_span text)
{
    const char *piece = t->text.at;
    size_t size = strlen(piece);

    if (text.size < size || memcmp(text.at, piece, size) != 0)
        return false;
    text = (stg_span){text.at + size, text.size - size};
    for (size_t i = 1; i < t->count; i++) {
        const char *found;

        piece += size + 1;
        size = strlen(piece);
        if (i == t->count - 1)
            return text.size >= size &&
                   memcmp(text.at + text.size - size, piece, size) == 0;
        found = memmem(text.at, text.size, piece, size);
        if (found == NULL)
            return false;
        text.size -= (size_t)(found + size - text.at);
        text.at = found + size;
    }
    return text.size == 0;
}

/* Whole bytes first, then the bits that are left. */
static bool is_in_network(const stg_pattern_test *t, stg_span text)
{
    stg_pattern_address a;
    size_t bytes = t->bits / 8;
    unsigned rest = t->bits % 8;

    if (!stg_pattern_address_read(&a, text.at, text.size) ||
        a.family != t->address.family ||
        memcmp(a.bytes, t->address.bytes, bytes) != 0)
        return false;
    return rest == 0 ||
           (a.bytes[bytes] ^ t->address.bytes[bytes]) >> (8 - rest) == 0;
}

static bool passes_text(const stg_pattern_test *t, stg_span text)
{
    size_t size = t->text.size;

    switch (t->kind) {
    case STG_TEST_EQUALS:
        return text.size == size &&
               same(text.at, t->text.at, size, t->ignores_case);
    case STG_TEST_PREFIX:
        return text.size >= size &&
               same(text.at, t->text.at, size, t->ignores_case);
    case STG_TEST_SUFFIX:
        return text.size >= size && same(text.at + text.size - size, t->text.at,
                                         size, t->ignores_case);
    case STG_TEST_WILDCARD:
        return fits_wildcard(t, text);
    case STG_TEST_CIDR:
        return is_in_network(t, text);
    default:
        return false;
    }
}

/* -- numbers --------------------------------------------------------------- */

/* Integers are compared as such, all others as doubles. */
static int order(const json_t *a, const json_t *b)
{
    double x, y;

    if (json_is_integer(a) && json_is_integer(b)) {
        json_int_t i = json_integer_value(a), k = json_integer_value(b);

        return (i > k) - (i < k);
    }
    x = json_number_value(a);
    y = json_number_value(b);
    return (x > y) - (x < y);
}

static bool is_met(stg_pattern_numeric is, int order)
{
    switch (is) {
    case STG_NUMERIC_EQUAL:
        return order == 0;
    case STG_NUMERIC_LESS:
        return order < 0;
    case STG_NUMERIC_LESS_EQUAL:
        return order <= 0;
    case STG_NUMERIC_GREATER:
        return order > 0;
    default:
        return order >= 0;
    }
}

static bool passes_number(const stg_pattern_test *t, const json_t *v)
{
    if (t->kind == STG_TEST_EQUALS)
        return json_is_number(t->value) && order(v, t->value) == 0;
    if (t->kind != STG_TEST_NUMERIC)
        return false;
    for (size_t i = 0; i < t->count; i++)
        if (!is_met(t->numeric[i].is, order(v, t->numeric[i].than)))
            return false;
    return true;
}

/* -- values ---------------------------------------------------------------- */

static bool passes_any(const stg_pattern_test *tests, size_t count,
                       const json_t *v)
{
    for (size_t i = 0; i < count; i++)
        if (stg_pattern_passes(&tests[i], v))
            return true;
    return false;
}

bool stg_pattern_passes(const stg_pattern_test *t, const json_t *v)
{
    if (t->kind == STG_TEST_BUT)
        return !passes_any(t->tests, t->count, v);
    if (t->kind == STG_TEST_EQUALS && json_typeof(v) != json_typeof(t->value) &&
        !(json_is_number(v) && json_is_number(t->value)))
        return false;
    if (json_is_string(v))
        return passes_text(
            t, (stg_span){json_string_value(v), json_string_length(v)});
    if (json_is_number(v))
        return passes_number(t, v);
    return t->kind == STG_TEST_EQUALS; // true, false, null: of one type
}

/* tests: NULL asks whether there is any value. */
static bool has_value(const stg_pattern_field *list, const json_t *v)
{
    if (v == NULL || json_is_object(v))
        return false;
    if (!json_is_array(v))
        return list == NULL || passes_any(list->tests, list->count, v);
    for (size_t i = 0; i < json_array_size(v); i++)
        if (has_value(list, json_array_get(v, i)))
            return true;
    return false;
}

bool stg_pattern_has(const stg_pattern_field *list, const json_t *v)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->tests[i].kind == STG_TEST_EXISTS &&
            has_value(NULL, v) == list->tests[i].exists)
            return true;
    return has_value(list, v);
}

/* -- maps ------------------------------------------------------------------ */

static bool fits_part(const stg_pattern_field *part, const json_t *map)
{
    if (part->kind == STG_FIELD_LIST)
        return stg_pattern_has(part, json_object_get(map, part->name));
    if (part->kind == STG_FIELD_MAP)
        return stg_pattern_fits_within(part, json_object_get(map, part->name));
    for (size_t i = 0; i < part->count; i++)
        if (stg_pattern_fits(&part->parts[i], map))
            return true;
    return false;
}

bool stg_pattern_fits(const stg_pattern_field *map, const json_t *v)
{
    for (size_t i = 0; i < map->count; i++)
        if (!fits_part(&map->parts[i], v))
            return false;
    return true;
}

/* One of the maps in a list; *has: there is one at all. */
static bool fits_item(const stg_pattern_field *map, const json_t *list,
                      bool *has)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);

        *has = *has || json_is_object(item);
        if (json_is_object(item) ? stg_pattern_fits(map, item)
                                 : fits_item(map, item, has))
            return true;
    }
    return false;
}

/* What is no map has no fields. */
bool stg_pattern_fits_within(const stg_pattern_field *map, const json_t *v)
{
    bool has = false;

    if (json_is_object(v))
        return stg_pattern_fits(map, v);
    return fits_item(map, v, &has) || (!has && stg_pattern_fits(map, NULL));
}

/* -- the whole ------------------------------------------------------------- */

bool stg_pattern_matches(const stg_pattern *p, const json_t *body)
{
    return body != NULL && stg_pattern_fits_within(&p->top, body);
}

bool stg_pattern_takes_nothing(const stg_pattern *p)
{
    return stg_pattern_fits(&p->top, NULL);
}

/* A text has no kinds: 5 is a number, too. */
static bool takes_number(const stg_pattern_test *t, stg_span text)
{
    json_t *v = json_loadb(text.at, text.size, JSON_DECODE_ANY, NULL);
    bool is_taken = json_is_number(v) && passes_number(t, v);

    json_decref(v);
    return is_taken;
}

/* As stg_pattern_passes() of a string of JSON. */
static bool takes(const stg_pattern_test *t, stg_span text)
{
    if (t->kind == STG_TEST_EXISTS)
        return t->exists;
    if (t->kind == STG_TEST_NUMERIC)
        return takes_number(t, text);
    if (t->kind != STG_TEST_BUT)
        return (t->kind != STG_TEST_EQUALS || json_is_string(t->value)) &&
               passes_text(t, text);
    for (size_t i = 0; i < t->count; i++)
        if (takes(&t->tests[i], text))
            return false;
    return true;
}

bool stg_pattern_takes_text(const stg_pattern *p, stg_span text)
{
    const stg_pattern_field *list = &p->top.parts[0];

    for (size_t i = 0; list->kind == STG_FIELD_LIST && i < list->count; i++)
        if (takes(&list->tests[i], text))
            return true;
    return false;
}

/* The end of a string that begins at `at`, behind its closing quote. */
static const char *skip_string(const char *at, const char *end)
{
    while (++at < end && *at != '"')
        at += *at == '\\';
    return at < end ? at + 1 : end;
}

/* A tree takes a hundred times the bytes of "[{},{}]": what begins a value is counted
 * before there is one. */
bool stg_pattern_is_too_many(stg_span body)
{
    const char *at = body.at, *end = at + body.size;
    size_t count = 0;

    if (body.size <= STG_PATTERN_BODY_MAX)
        return false;
    while (at < end && count <= STG_PATTERN_BODY_MAX) {
        count += *at == '{' || *at == '[' || *at == ',';
        at = *at == '"' ? skip_string(at, end) : at + 1;
    }
    return count > STG_PATTERN_BODY_MAX;
}

/* Integers that no 64 bits hold are read as doubles, all of them in that body. */
json_t *stg_pattern_parse(stg_span body)
{
    size_t flags = JSON_DECODE_ANY | JSON_ALLOW_NUL;
    json_error_t why;
    json_t *v;

    if (stg_pattern_is_too_many(body))
        return NULL;
    v = json_loadb(body.at, body.size, flags, &why);
    if (v == NULL && json_error_code(&why) == json_error_numeric_overflow)
        v = json_loadb(body.at, body.size, flags | JSON_DECODE_INT_AS_REAL,
                       &why);
    return v;
}
