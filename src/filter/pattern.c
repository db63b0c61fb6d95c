/* A pattern in JSON, compiled: each field and each condition becomes a struct in
 * an array whose size is known before, for there are no more of them than values
 * in the source. A mistake is told by its path, what stands there, and what was
 * expected. */
#include "filter/pattern.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/visible.h"
#include "filter/internal.h"

typedef struct compiling {
    stg_pattern *p;
    stg_pattern_flaw *flaw;
    size_t at[STG_PATTERN_DEPTH + 1];
    size_t depth;
} compiling;

/* -- what is wrong --------------------------------------------------------- */

static const char *kind_of(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        return json_object_size(v) > 0 ? "a map" : "an empty map";
    case JSON_ARRAY:
        return json_array_size(v) > 0 ? "a list" : "an empty list";
    case JSON_STRING:
        return "a text";
    case JSON_INTEGER:
    case JSON_REAL:
        return "a number";
    case JSON_NULL:
        return "nothing";
    default:
        return "true or false";
    }
}

/* found: what stands there. Always false. */
static bool refuse(compiling *c, const char *found, const char *expected)
{
    stg_pattern_flaw *f = c->flaw;

    snprintf(f->what, sizeof f->what, "%s; expected %s", found, expected);
    memcpy(f->at, c->at, sizeof f->at);
    f->depth = c->depth;
    return false;
}

static bool refuse_kind(compiling *c, const json_t *v, const char *expected)
{
    return refuse(c, kind_of(v), expected);
}

/* The part number i of v, whose key is *key, or NULL in a list. */
static json_t *part_of(json_t *v, size_t i, const char **key)
{
    void *at = json_object_iter(v);

    *key = NULL;
    if (json_is_array(v))
        return json_array_get(v, i);
    while (at != NULL && i-- > 0)
        at = json_object_iter_next(v, at);
    if (at == NULL)
        return NULL;
    *key = json_object_iter_key(at);
    return json_object_iter_value(at);
}

/* The way to a flaw is kept as the numbers of members and items, which cost nothing
 * while all is well: their names are looked up here. */
static void print_path(stg_pattern_flaw *f, json_t *v)
{
    const char *key;

    f->path[0] = '\0';
    for (size_t i = 0, size = 0; i < f->depth && v != NULL; i++) {
        v = part_of(v, f->at[i], &key);
        if (key != NULL)
            snprintf(f->path + size, sizeof f->path - size, "%s%.60s",
                     size > 0 ? "." : "", key);
        else
            snprintf(f->path + size, sizeof f->path - size, "[%zu]", f->at[i]);
        size = strlen(f->path);
    }
    stg_visible_string(f->path, STG_VISIBLE_IN_LINE);
}

/* -- conditions ------------------------------------------------------------ */

static bool read_text(compiling *c, const json_t *v, stg_span *text)
{
    if (!json_is_string(v))
        return refuse_kind(c, v, "a text");
    *text = (stg_span){json_string_value(v), json_string_length(v)};
    return true;
}

/* Pieces between stars, each with a zero behind it, which no source has. */
static bool read_wildcard(compiling *c, const json_t *v, stg_pattern_test *t)
{
    stg_span text = {NULL, 0};
    char *to = c->p->texts + c->p->text_size;

    t->kind = STG_TEST_WILDCARD;
    if (!read_text(c, v, &text))
        return false;
    t->text.at = to;
    t->count = 1;
    for (size_t i = 0; i < text.size; i++) {
        char at = text.at[i], next = i + 1 < text.size ? text.at[i + 1] : '\0';

        if (at == '*' && next == '*')
            return refuse(c, "two `*` in a row", "one, or `\\*` for a star");
        if (at == '\\' && next != '*' && next != '\\')
            return refuse(c, "a lone backslash", "`\\*` or `\\\\`");
        t->count += at == '*';
        i += at == '\\';
        *to++ = at == '*' ? '\0' : at == '\\' ? next : at;
    }
    *to++ = '\0';
    t->text.size = (size_t)(to - t->text.at);
    c->p->text_size += t->text.size;
    return true;
}

static bool read_same_case(compiling *c, const json_t *v, stg_pattern_test *t)
{
    t->kind = STG_TEST_EQUALS;
    t->value = v;
    t->ignores_case = true;
    return read_text(c, v, &t->text);
}

/* X of {"prefix": X}. */
static bool read_end(compiling *c, const json_t *v, stg_pattern_test *t)
{
    const json_t *text = json_object_get(v, "equals-ignore-case");
    bool is_read;

    t->ignores_case = text != NULL;
    if (!json_is_object(v))
        return read_text(c, v, &t->text);
    if (text == NULL || json_object_size(v) != 1)
        return refuse_kind(c, v, "a text, or {equals-ignore-case: TEXT}");
    c->at[c->depth++] = 0;
    is_read = read_text(c, text, &t->text);
    c->depth--;
    return is_read;
}

static bool read_prefix(compiling *c, const json_t *v, stg_pattern_test *t)
{
    t->kind = STG_TEST_PREFIX;
    return read_end(c, v, t);
}

static bool read_suffix(compiling *c, const json_t *v, stg_pattern_test *t)
{
    t->kind = STG_TEST_SUFFIX;
    return read_end(c, v, t);
}

static bool read_exists(compiling *c, const json_t *v, stg_pattern_test *t)
{
    t->kind = STG_TEST_EXISTS;
    t->exists = json_is_true(v);
    return json_is_boolean(v) || refuse_kind(c, v, "true or false");
}

/* Two conditions are a range. The numbers stay JSON's, so that integers of 64 bits
 * are compared exactly. */
static bool read_numeric(compiling *c, const json_t *v, stg_pattern_test *t)
{
    static const char *const signs[] = {"=", "<", "<=", ">", ">="};
    size_t size = json_array_size(v);

    t->kind = STG_TEST_NUMERIC;
    t->count = size / 2;
    if (size != 2 && size != 4)
        return refuse_kind(c, v,
                           "a sign and a number, or two of both, such as "
                           "[\">\", 0, \"<=\", 5]");
    for (size_t i = 0; i < size; i++) {
        const json_t *part = json_array_get(v, i);
        const char *sign = json_string_value(part);
        size_t is = 0;

        c->at[c->depth++] = i;
        if (i % 2 == 1 && !json_is_number(part))
            return refuse_kind(c, part, "a number");
        while (i % 2 == 0 && sign != NULL && is < 5 &&
               strcmp(sign, signs[is]) != 0)
            is++;
        if (i % 2 == 0 && (sign == NULL || is == 5))
            return refuse_kind(c, part, "one of = < <= > >=, in quotes");
        if (i % 2 == 0)
            t->numeric[i / 2].is = (stg_pattern_numeric)is;
        else
            t->numeric[i / 2].than = part;
        c->depth--;
    }
    return true;
}

bool stg_pattern_address_read(stg_pattern_address *a, const char *text,
                              size_t size)
{
    char copy[INET6_ADDRSTRLEN];

    if (size >= sizeof copy || memchr(text, '\0', size) != NULL)
        return false;
    memcpy(copy, text, size);
    copy[size] = '\0';
    a->family = memchr(text, ':', size) != NULL ? AF_INET6 : AF_INET;
    return inet_pton(a->family, copy, a->bytes) == 1;
}

/* The bits that do not count may be anything: 10.0.0.7/24 is a network, too. */
static bool read_cidr(compiling *c, const json_t *v, stg_pattern_test *t)
{
    static const char expected[] =
        "an address and how many of its bits count, such as 10.0.0.0/24";
    const char *text = json_string_value(v);
    const char *slash = text != NULL ? strchr(text, '/') : NULL, *digit;
    unsigned most;

    t->kind = STG_TEST_CIDR;
    if (slash == NULL)
        return refuse_kind(c, v, expected);
    if (!stg_pattern_address_read(&t->address, text, (size_t)(slash - text)))
        return refuse(c, "no address", expected);
    most = t->address.family == AF_INET ? 32 : 128;
    for (digit = slash + 1; *digit >= '0' && *digit <= '9' && t->bits <= most;)
        t->bits = t->bits * 10 + (unsigned)(*digit++ - '0');
    if (digit == slash + 1 || *digit != '\0' || t->bits > most)
        return refuse(c, "no number of bits", expected);
    return true;
}

/* The names of conditions. Those that anything-but may have come first. */
static const struct condition {
    const char *name;
    bool (*read)(compiling *c, const json_t *v, stg_pattern_test *t);
} conditions[] = {
    {"prefix", read_prefix},
    {"suffix", read_suffix},
    {"equals-ignore-case", read_same_case},
    {"wildcard", read_wildcard},
    {"numeric", read_numeric},
    {"cidr", read_cidr},
    {"exists", read_exists},
};

enum { CONDITIONS = sizeof conditions / sizeof *conditions, OF_BUT = 4 };

static const struct condition *find_condition(const char *name, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(conditions[i].name, name) == 0)
            return &conditions[i];
    return NULL;
}

static bool is_condition(const char *name)
{
    return find_condition(name, CONDITIONS) != NULL ||
           strcmp(name, "anything-but") == 0;
}

/* -- anything but ---------------------------------------------------------- */

/* Room for the tests of a list; there is as much as the source has values. */
static stg_pattern_test *take_tests(compiling *c, size_t count)
{
    stg_pattern_test *tests = c->p->tests + c->p->test_count;

    c->p->test_count += count;
    return tests;
}

static bool read_equals(compiling *c, const json_t *v, stg_pattern_test *t)
{
    t->kind = STG_TEST_EQUALS;
    t->value = v;
    if (json_is_string(v))
        return read_text(c, v, &t->text);
    return json_is_number(v) || refuse_kind(c, v, "a text or a number");
}

/* One text or number, or a list of one kind; each is read by `read`. */
static bool read_each(compiling *c, json_t *v, stg_pattern_test *t,
                      bool (*read)(compiling *c, const json_t *v,
                                   stg_pattern_test *t))
{
    bool is_list = json_is_array(v);
    size_t count = is_list ? json_array_size(v) : 1;
    stg_pattern_test *tests = take_tests(c, count);
    bool is_read = count > 0 || refuse_kind(c, v, "a value at least");

    t->tests = tests;
    t->count = count;
    for (size_t i = 0; is_read && i < count; i++) {
        json_t *part = is_list ? json_array_get(v, i) : v;

        if (is_list)
            c->at[c->depth++] = i;
        tests[i].source = part;
        is_read = read(c, part, &tests[i]);
        if (is_read && i > 0 &&
            json_is_string(part) != json_is_string(tests[0].source))
            is_read = refuse_kind(c, part,
                                  "texts alone, or numbers alone, in one list");
        c->depth -= is_list;
    }
    return is_read;
}

/* Values as they are, or the values of one condition on texts. */
static bool read_but(compiling *c, json_t *v, stg_pattern_test *t)
{
    void *first = json_object_iter(v);
    const struct condition *of;
    bool is_read;

    t->kind = STG_TEST_BUT;
    if (!json_is_object(v))
        return read_each(c, v, t, read_equals);
    of = json_object_size(v) != 1
             ? NULL
             : find_condition(json_object_iter_key(first), OF_BUT);
    if (of == NULL)
        return refuse_kind(c, v,
                           "one of prefix, suffix, equals-ignore-case "
                           "and wildcard, and no more in this map");
    c->at[c->depth++] = 0;
    is_read = read_each(c, json_object_iter_value(first), t, of->read);
    c->depth--;
    return is_read;
}

/* -- lists ----------------------------------------------------------------- */

/* One condition a map, so that none of two is overlooked. */
static bool read_condition(compiling *c, json_t *map, stg_pattern_test *t)
{
    void *first = json_object_iter(map);
    const char *name = json_object_iter_key(first);
    json_t *v = json_object_iter_value(first);
    const struct condition *of = NULL;
    bool is_read;

    if (json_object_size(map) != 1)
        return refuse_kind(c, map,
                           "a condition, such as {prefix: TEXT}, and "
                           "one a map");
    c->at[c->depth++] = 0;
    if (strcmp(name, "anything-but") == 0)
        is_read = read_but(c, v, t);
    else if ((of = find_condition(name, CONDITIONS)) != NULL)
        is_read = of->read(c, v, t);
    else
        is_read = refuse(c, "no such condition",
                         "prefix, suffix, equals-ignore-case, wildcard, "
                         "numeric, cidr, exists or anything-but");
    c->depth--;
    return is_read;
}

static bool read_test(compiling *c, json_t *v, stg_pattern_test *t)
{
    t->source = v;
    if (json_is_object(v))
        return read_condition(c, v, t);
    if (json_is_array(v))
        return refuse_kind(c, v,
                           "a value, or a condition such as {prefix: "
                           "TEXT}");
    t->kind = STG_TEST_EQUALS;
    t->value = v;
    return !json_is_string(v) || read_text(c, v, &t->text);
}

static bool read_list(compiling *c, json_t *v, stg_pattern_field *f)
{
    size_t count = json_array_size(v);
    stg_pattern_test *tests = take_tests(c, count);
    bool is_read =
        count > 0 || refuse_kind(c, v, "a value or a condition at least");

    f->kind = STG_FIELD_LIST;
    f->tests = tests;
    f->count = count;
    for (size_t i = 0; is_read && i < count; i++) {
        c->at[c->depth++] = i;
        is_read = read_test(c, json_array_get(v, i), &tests[i]);
        c->depth--;
    }
    return is_read;
}

/* -- maps ------------------------------------------------------------------ */

static stg_pattern_field *take_fields(compiling *c, size_t count)
{
    stg_pattern_field *fields = c->p->fields + c->p->field_count;

    c->p->field_count += count;
    return fields;
}

static bool read_map(compiling *c, json_t *map, stg_pattern_field *f);

static bool read_or(compiling *c, json_t *v, stg_pattern_field *f)
{
    size_t count = json_array_size(v);
    stg_pattern_field *ways = take_fields(c, count);
    bool is_read = count > 0 || refuse_kind(c, v, "a list of maps");

    f->kind = STG_FIELD_OR;
    f->parts = ways;
    f->count = count;
    for (size_t i = 0; is_read && i < count; i++) {
        json_t *way = json_array_get(v, i);

        c->at[c->depth++] = i;
        is_read = json_is_object(way) ? read_map(c, way, &ways[i])
                                      : refuse_kind(c, way, "a map of fields");
        c->depth--;
    }
    return is_read;
}

/* A value without its list is the usual mistake; so is a condition without it,
 * which reads as a field. */
static bool read_field(compiling *c, const char *name, json_t *v,
                       stg_pattern_field *f)
{
    f->name = name;
    if (strcmp(name, "$or") == 0)
        return read_or(c, v, f);
    if (json_is_object(v))
        return read_map(c, v, f);
    if (json_is_array(v))
        return read_list(c, v, f);
    return refuse_kind(c, v,
                       is_condition(name)
                           ? "conditions in a list, such as [{prefix: "
                             "TEXT}]"
                           : "a list of values, such as [a, b], or a map "
                             "of fields");
}

static bool read_map(compiling *c, json_t *map, stg_pattern_field *f)
{
    size_t count = json_object_size(map), i = 0;
    stg_pattern_field *parts = take_fields(c, count);
    bool is_read = count > 0 || refuse_kind(c, map, "a field at least");

    f->kind = STG_FIELD_MAP;
    f->parts = parts;
    f->count = count;
    for (void *at = json_object_iter(map); is_read && at != NULL;
         at = json_object_iter_next(map, at), i++) {
        c->at[c->depth++] = i;
        is_read = read_field(c, json_object_iter_key(at),
                             json_object_iter_value(at), &parts[i]);
        c->depth--;
    }
    return is_read;
}

/* -- the whole ------------------------------------------------------------- */

typedef struct size {
    size_t values, texts; /* bytes, with a zero behind each */
} size;

static bool measure(compiling *c, json_t *v, size *s);

static bool measure_part(compiling *c, json_t *part, size_t i, size *s)
{
    bool is_right;

    c->at[c->depth++] = i;
    is_right = measure(c, part, s);
    c->depth--;
    return is_right;
}

/* Everything else may recurse, as this went before. */
static bool measure(compiling *c, json_t *v, size *s)
{
    size_t i = 0;
    bool is_right = true, is_inside = json_is_object(v) || json_is_array(v);

    if (++s->values > STG_PATTERN_VALUES)
        return refuse(c, "more than 4,096 values", "fewer");
    if (is_inside && c->depth == STG_PATTERN_DEPTH)
        return refuse(c, "more than 24 levels", "fewer");
    if (json_is_string(v) &&
        strlen(json_string_value(v)) != json_string_length(v))
        return refuse(c, "a zero in a text", "text without such");
    s->texts += json_is_string(v) ? json_string_length(v) + 1 : 0;
    for (void *at = json_object_iter(v); is_right && at != NULL;
         at = json_object_iter_next(v, at))
        is_right = measure_part(c, json_object_iter_value(at), i++, s);
    for (i = 0; is_right && i < json_array_size(v); i++)
        is_right = measure_part(c, json_array_get(v, i), i, s);
    return is_right;
}

/* FNV-1a of it as a text. False: no memory. */
static bool hash(stg_pattern *p)
{
    char *text =
        json_dumps(p->source, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

    if (text == NULL)
        return false;
    p->hash = UINT64_C(0xcbf29ce484222325);
    for (const char *at = text; *at != '\0'; at++)
        p->hash = (p->hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    free(text);
    return true;
}

static stg_pattern *make(json_t *source, const size *s)
{
    stg_pattern *p = calloc(1, sizeof *p);

    if (p == NULL)
        return NULL;
    p->users = 1;
    p->source = json_incref(source);
    p->fields = calloc(s->values, sizeof *p->fields);
    p->tests = calloc(s->values, sizeof *p->tests);
    p->texts = malloc(s->texts + 1);
    if (p->fields != NULL && p->tests != NULL && p->texts != NULL && hash(p))
        return p;
    stg_pattern_unref(p);
    return NULL;
}

/* Measured first: fields, tests and texts are in one piece of memory each, which
 * matching walks through. */
stg_status stg_pattern_new(stg_pattern **pattern, json_t *source,
                           stg_pattern_flaw *flaw)
{
    compiling c = {.flaw = flaw};
    size s = {0, 0};
    bool is_read = measure(&c, source, &s);

    *flaw = is_read ? (stg_pattern_flaw){.depth = 0} : *flaw;
    if (is_read && (c.p = make(source, &s)) == NULL)
        return STG_IO;
    if (is_read)
        is_read = json_is_object(source)
                      ? read_map(&c, source, &c.p->top)
                      : refuse_kind(&c, source, "a map of fields");
    if (is_read) {
        *pattern = c.p;
        return STG_OK;
    }
    print_path(flaw, source);
    stg_pattern_unref(c.p);
    return STG_INVALID;
}

stg_pattern *stg_pattern_ref(stg_pattern *p)
{
    p->users++;
    return p;
}

void stg_pattern_unref(stg_pattern *p)
{
    if (p == NULL || --p->users > 0)
        return;
    json_decref(p->source);
    free(p->fields);
    free(p->tests);
    free(p->texts);
    free(p);
}

bool stg_pattern_equal(const stg_pattern *a, const stg_pattern *b)
{
    return a->hash == b->hash && json_equal(a->source, b->source);
}

const json_t *stg_pattern_source(const stg_pattern *p)
{
    return p->source;
}
