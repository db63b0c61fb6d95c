/* Maps of names: headers, properties of librdkafka, filters, tags.
 *
 * A target's own headers and tags are added to those of the defaults, and replace
 * those of the same name. A value that is a secret is never repeated in a
 * diagnostic; `{file: PATH}` keeps it out of the settings. */
#include <string.h>

#include "config/kinds/kinds.h"
#include "config/loading.h"
#include "http/header.h"
#include "kafka/kafka.h"
#include "kafka/topic.h"

/* Why a target cannot have a header of its own; NULL: it can. */
static const char *why_reserved(stg_span name)
{
    if (stg_header_is_framing(name))
        return "is about the connection, which is the hub's own";
    if (stg_header_is_hubs(name))
        return "is the hub's own";
    if (stg_header_matches("Content-Type", name))
        return "is the message's, as it was published";
    return NULL;
}

/* The value of one key of a map. */
static void refuse_part(stg_loading *l, const stg_setting *s,
                        const stg_yaml_node *key, const stg_yaml_node *n,
                        const char *expected)
{
    char shown[STG_KEY_SHOWN_MAX];

    stg_complain(l->c, n->place, "`%s`: %s for `%s`; expected %s", s->path,
                 n->kind == STG_NODE_MAP    ? "a map"
                 : n->kind == STG_NODE_LIST ? "a list"
                                            : "nothing",
                 stg_yaml_key_shown(key->text, shown), expected);
}

/* -- headers --------------------------------------------------------------- */

typedef struct header {
    const char *name, *value, *file;
} header;

/* Only a target's headers meet those that the hub sets; a receiver's request is
 * not a delivery. */
static bool is_header_name(stg_loading *l, const stg_setting *s,
                           const stg_yaml_node *key)
{
    stg_span name = {key->text, strlen(key->text)};
    char shown[STG_KEY_SHOWN_MAX];
    const char *why;

    if (!stg_header_is_name(name)) {
        stg_complain(l->c, key->place,
                     "`%s`: `%s` is not a header name; expected letters, "
                     "digits and hyphens",
                     s->path, stg_yaml_key_shown(key->text, shown));
        return false;
    }
    why = s->kind == &stg_kind_headers ? why_reserved(name) : NULL;
    if (why != NULL)
        stg_complain(l->c, key->place, "`%s`: `%.60s` %s; expected another",
                     s->path, key->text, why);
    return why == NULL;
}

static bool is_header_value(stg_loading *l, stg_file_place place,
                            const char *name, const char *value)
{
    stg_span text = {value, strlen(value)};

    if (stg_header_is_value(text))
        return true;
    // The value may be a secret.
    stg_complain(
        l->c, place,
        "the value of header `%.60s` cannot be sent; expected one line "
        "without control characters, and no blanks around it",
        name);
    return false;
}

const stg_yaml_node *stg_load_file_node(const stg_yaml_node *map)
{
    bool is_file = map->count == 2 && strcmp(map->at[0]->text, "file") == 0 &&
                   map->at[1]->kind == STG_NODE_TEXT &&
                   *map->at[1]->text != '\0';

    return is_file ? map->at[1] : NULL;
}

/* {file: PATH}; not yet checked. */
static bool read_header_file(stg_loading *l, const stg_setting *s,
                             const stg_yaml_node *n, header *h)
{
    if (stg_load_file_node(n) == NULL) {
        stg_complain(l->c, n->place,
                     "`%s`: a map; expected `%.60s: value`, or `%.60s: {file: "
                     "PATH}`",
                     s->path, h->name, h->name);
        return false;
    }
    if (l->is_call) {
        stg_complain(l->c, n->place,
                     "`%s`: a file of the hub's machine; expected "
                     "`%.60s: value`: a call cannot read files there",
                     s->path, h->name);
        return false;
    }
    h->file = stg_load_keep_path(l, n->at[1]->text);
    if (h->file == NULL)
        return false;
    stg_load_note_file(l, s, n->at[1]->place, h->file);
    h->value = stg_load_secret(l, n->at[1]->place, h->name, h->file);
    return h->value != NULL;
}

/* The name is checked before the value: a value that landed in the name may be a
 * secret, and is shown cut. */
static bool read_header(stg_loading *l, const stg_setting *s,
                        const stg_yaml_node *key, const stg_yaml_node *n,
                        header *h)
{
    *h = (header){.name = stg_load_keep_text(l, key->text)};
    if (h->name == NULL || !is_header_name(l, s, key))
        return false;
    if (n->kind == STG_NODE_MAP)
        return read_header_file(l, s, n, h) &&
               is_header_value(l, n->at[1]->place, h->name, h->value);
    if (n->kind != STG_NODE_TEXT || stg_node_is_null(n)) {
        refuse_part(l, s, key, n, "a value, or {file: PATH}");
        return false;
    }
    h->value = stg_load_keep_text(l, n->text);
    return h->value != NULL && is_header_value(l, n->place, h->name, h->value);
}

/* 0: they are the same. */
static int differ_headers(const char *a, const char *b)
{
    return !stg_header_same((stg_span){a, strlen(a)}, (stg_span){b, strlen(b)});
}

/* `X-A`, `x-a` and `X_A` are the same header. */
static bool is_repeated(stg_loading *l, const stg_yaml_node *n, size_t i)
{
    char shown[STG_KEY_SHOWN_MAX];

    for (size_t k = 0; k < i; k += 2)
        if (differ_headers(n->at[k]->text, n->at[i]->text) == 0) {
            stg_complain(l->c, n->at[i]->place,
                         "header `%s` comes twice; expected it once (see line "
                         "%u)",
                         stg_yaml_key_shown(n->at[i]->text, shown),
                         (unsigned)n->at[k]->place.line);
            return true;
        }
    return false;
}

static bool read_target_header(stg_loading *l, const stg_setting *s,
                               const stg_yaml_node *n, size_t i, void *part)
{
    header h;

    if (is_repeated(l, n, i) || !read_header(l, s, n->at[i], n->at[i + 1], &h))
        return false;
    *(stg_header_setting *)part = (stg_header_setting){h.name, h.value, h.file};
    return true;
}

/* A receiver reads its files itself: a token may change while the hub runs. */
static bool read_receiver_header(stg_loading *l, const stg_setting *s,
                                 const stg_yaml_node *n, size_t i, void *part)
{
    header h;

    if (is_repeated(l, n, i) || !read_header(l, s, n->at[i], n->at[i + 1], &h))
        return false;
    *(stg_alert_header *)part =
        (stg_alert_header){h.name, h.file != NULL ? NULL : h.value, h.file};
    return true;
}

/* -- properties of librdkafka ---------------------------------------------- */

/* Whether the value is the name of a file that librdkafka reads. */
static bool maps_names_file(const char *name)
{
    static const char *const ends[] = {".location", ".keytab"};
    size_t size = strlen(name);

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (size > strlen(ends[i]) &&
            strcmp(name + size - strlen(ends[i]), ends[i]) == 0)
            return true;
    return false;
}

/* librdkafka checks name and value itself: a property that this version does
 * not have is a mistake here, and not when the hub starts. */
static bool read_property(stg_loading *l, const stg_setting *s,
                          const stg_yaml_node *n, size_t i, void *part)
{
    const stg_yaml_node *key = n->at[i], *value = n->at[i + 1];
    header h = {.name = stg_load_keep_text(l, key->text)};
    const char *why = stg_kafka_reserved(key->text);
    char shown[STG_KEY_SHOWN_MAX];
    stg_error err;

    if (h.name == NULL)
        return false;
    if (strcmp(stg_yaml_key_shown(key->text, shown), key->text) != 0)
        why = "is not a property name; expected `NAME: VALUE`";
    if (why != NULL) {
        stg_complain(l->c, key->place, "`%s`: `%s` %s", s->path, shown, why);
        return false;
    }
    if (value->kind == STG_NODE_MAP) {
        if (!read_header_file(l, s, value, &h))
            return false;
    } else if (value->kind != STG_NODE_TEXT || stg_node_is_null(value)) {
        refuse_part(l, s, key, value, "a value, or {file: PATH}");
        return false;
    } else {
        h.value = stg_load_keep_text(l, value->text);
        if (h.value != NULL && maps_names_file(h.name))
            stg_load_note_file(l, s, value->place, h.value);
    }
    if (stg_kafka_check_property(h.name, h.value, &err) != STG_OK) {
        stg_complain(l->c, key->place, "%s", err.text);
        return false;
    }
    *(stg_property_setting *)part =
        (stg_property_setting){h.name, h.value, h.file};
    return h.value != NULL;
}

/* -- parts of a map -------------------------------------------------------- */

/* How a part is read into a struct, which begins with its name. */
typedef struct parts {
    size_t size;
    bool (*read)(stg_loading *l, const stg_setting *s, const stg_yaml_node *n,
                 size_t i, void *part);
    int (*compare)(const char *a, const char *b); /* of names */
} parts;

/* Reads the parts of map n into structs behind which there is room for `more`,
 * and counts those that are right. NULL: no memory. */
static char *read_parts(stg_loading *l, const stg_setting *s,
                        const stg_yaml_node *n, const parts *p, size_t more,
                        size_t *count)
{
    char *all = stg_load_keep(l, (n->count / 2 + more + 1) * p->size);

    *count = 0;
    for (size_t i = 0; all != NULL && i < n->count; i += 2)
        *count += p->read(l, s, n, i, all + *count * p->size);
    return all;
}

/* -- filters --------------------------------------------------------------- */

static bool is_kept_inbound(const stg_settings *s, stg_span name)
{
    for (size_t i = 0; i < s->inbound_count; i++)
        if (s->inbound[i].keep.count > 0 &&
            stg_headers_keep(s->inbound[i].keep.at, name))
            return true;
    return false;
}

/* Headers that are not kept of a message can never be asked for. */
static void check_match_header(stg_loading *l, const stg_yaml_node *key)
{
    stg_span name = {key->text, strlen(key->text)};
    bool is_kafka = l->s->source == STG_SOURCE_KAFKA;
    char shown[STG_KEY_SHOWN_MAX];
    const stg_texts *rules =
        is_kafka ? &l->s->kafka.headers : &l->s->listen.headers;

    if (stg_header_equal(name, "Content-Type") ||
        stg_header_equal(name, "Stagger-Key") ||
        stg_header_equal(name, STG_WEBHOOK_HEADER))
        return;
    if (!stg_header_is_name(name))
        stg_complain(l->c, key->place,
                     "`match`: `%s` is not a header name; expected letters, "
                     "digits and hyphens",
                     stg_yaml_key_shown(key->text, shown));
    else if (!stg_headers_keep(
                 rules->count > 0 ? rules->at : stg_headers_default, name) &&
             (is_kafka || !is_kept_inbound(l->s, name)))
        stg_complain(l->c, key->place,
                     "`match`: header `%.60s` is not kept of a message, so "
                     "that nothing would match; expected it in `%s`",
                     key->text, is_kafka ? "kafka.headers" : "listen.headers");
}

/* `body`, which no header is but by another case. */
static bool read_match_body(stg_loading *l, const stg_setting *s,
                            const stg_yaml_node *n, size_t i, void *part)
{
    const stg_yaml_node *value = n->at[i + 1];
    stg_pattern *pattern = NULL;

    if (value->kind == STG_NODE_MAP)
        pattern = stg_load_pattern(l, value);
    else
        stg_complain(l->c, value->place,
                     "`%s.body`: %s; expected a map of fields, a pattern of "
                     "EventBridge (docs/filters.md)",
                     s->path, stg_load_kind(value));
    *(stg_match_setting *)part = (stg_match_setting){.body = pattern};
    return pattern != NULL;
}

/* A header by its name, with one value, a list, or conditions; `body` has a pattern. */
static bool read_match(stg_loading *l, const stg_setting *s,
                       const stg_yaml_node *n, size_t i, void *part)
{
    const stg_yaml_node *value = n->at[i + 1];
    stg_match_setting m = {.header = NULL};

    if (strcmp(n->at[i]->text, "body") == 0)
        return read_match_body(l, s, n, i, part);
    m.header = stg_load_keep_text(l, n->at[i]->text);
    check_match_header(l, n->at[i]);
    if (is_repeated(l, n, i) || m.header == NULL)
        return false;
    if (value->kind == STG_NODE_LIST && value->count == 0)
        stg_complain(l->c, value->place,
                     "`match`: an empty list; expected a value at least");
    else if (value->kind == STG_NODE_MAP || stg_node_is_null(value))
        refuse_part(l, s, n->at[i], value,
                    "a value, or a list of values and conditions");
    else if (stg_load_has_conditions(value))
        m.conditions = stg_load_conditions(l, m.header, value);
    else
        m.values = stg_load_texts(l, s, value);
    m.is_attribute =
        stg_cloud_event_is_header((stg_span){m.header, strlen(m.header)});
    *(stg_match_setting *)part = m;
    return m.values.count > 0 || m.conditions != NULL;
}

/* Not merged with the defaults: a filter is one condition, and half of another
 * one would be in it. */
static void load_match(stg_loading *l, const stg_setting *s,
                       const stg_yaml_node *n, void *base)
{
    static const parts p = {sizeof(stg_match_setting), read_match, NULL};
    stg_match_setting *parts_of_event;
    size_t count;
    char *all;

    if (n->kind != STG_NODE_MAP) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    if (n->count == 0)
        stg_complain(
            l->c, n->place,
            "`match`: an empty map; expected a header or `body`, or no "
            "such key: then every message is sent");
    all = read_parts(l, s, n, &p, 1, &count);
    if (all == NULL)
        return;
    parts_of_event = (stg_match_setting *)(void *)all;
    if (stg_load_event(l, n->place, parts_of_event, count,
                       &parts_of_event[count]))
        count++;
    stg_kind_put_list(s, base, all, count);
}

/* -- tags ------------------------------------------------------------------ */

/* "" for what is none. */
static const char *read_word(stg_loading *l, const stg_setting *s,
                             const stg_yaml_node *key, const stg_yaml_node *n)
{
    const char *word = NULL;

    if (n->kind != STG_NODE_TEXT || stg_node_is_null(n))
        refuse_part(l, s, key, n, "a word");
    else
        word = stg_load_text(l, s, n);
    return word != NULL ? word : "";
}

/* The same shape for a target's tags and for those that a receiver asks for, in
 * two types. */
static bool read_tag(stg_loading *l, const stg_setting *s,
                     const stg_yaml_node *n, size_t i, void *part)
{
    const char *name = stg_load_keep_text(l, n->at[i]->text),
               *value = read_word(l, s, n->at[i], n->at[i + 1]);

    if (name == NULL || *name == '\0' || strlen(name) > 64) {
        stg_complain(l->c, n->at[i]->place,
                     "`%s`: a tag's name has 1 to 64 bytes; expected another",
                     s->path);
        return false;
    }
    if (s->kind == &stg_kind_tags)
        *(stg_tag_setting *)part = (stg_tag_setting){name, value};
    else
        *(stg_alert_tag *)part = (stg_alert_tag){name, value};
    return *value != '\0';
}

/* -- maps that are added to the defaults ----------------------------------- */

static bool has_name(const char *all, size_t count, const parts *p,
                     const char *part)
{
    const char *name, *other;

    memcpy(&name, part, sizeof name);
    for (size_t i = 0; i < count; i++) {
        memcpy(&other, all + i * p->size, sizeof other);
        if (p->compare(name, other) == 0)
            return true;
    }
    return false;
}

/* Its own parts, and behind them those that are there, of the defaults, if they
 * have other names. */
static void load_parts(stg_loading *l, const stg_setting *s,
                       const stg_yaml_node *n, void *base, const parts *p)
{
    size_t old_count, count, own;
    const char *old;
    char *all;

    if (n->kind != STG_NODE_MAP) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    memcpy(&old, (const char *)base + s->at, sizeof old);
    memcpy(&old_count, (const char *)base + s->count_at, sizeof old_count);
    all = read_parts(l, s, n, p, old_count, &own);
    if (all == NULL)
        return;
    count = own;
    for (size_t i = 0; i < old_count; i++)
        if (!has_name(all, own, p, old + i * p->size))
            memcpy(all + count++ * p->size, old + i * p->size, p->size);
    stg_kind_put_list(s, base, all, count);
}

#define LOADER(kind, part, read_part, compare)                     \
    static void load_##kind(stg_loading *l, const stg_setting *s,  \
                            const stg_yaml_node *n, void *base)    \
    {                                                              \
        static const parts p = {sizeof(part), read_part, compare}; \
                                                                   \
        load_parts(l, s, n, base, &p);                             \
    }
LOADER(headers, stg_header_setting, read_target_header, differ_headers)
LOADER(receiver_headers, stg_alert_header, read_receiver_header, differ_headers)
LOADER(properties, stg_property_setting, read_property, strcmp)
LOADER(tags, stg_tag_setting, read_tag, strcmp)
LOADER(receiver_tags, stg_alert_tag, read_tag, strcmp)

/* -- what is equal --------------------------------------------------------- */

/* Structs of so many texts and nothing else. */
_Static_assert(sizeof(stg_header_setting) == 3 * sizeof(char *), "three texts");
_Static_assert(sizeof(stg_property_setting) == 3 * sizeof(char *), "the same");
_Static_assert(sizeof(stg_tag_setting) == 2 * sizeof(char *), "two texts");

/* The order counts: a list in another order is taken for a change. */
static bool same_values(const stg_texts *a, const stg_texts *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++)
        if (strcmp(a->at[i], b->at[i]) != 0)
            return false;
    return a->count == b->count;
}

static bool same_pattern(const stg_pattern *a, const stg_pattern *b)
{
    return a == b || (a != NULL && b != NULL && stg_pattern_equal(a, b));
}

static bool same_part(const stg_match_setting *a, const stg_match_setting *b)
{
    if (a->header == NULL || b->header == NULL)
        return a->header == b->header && same_pattern(a->body, b->body) &&
               same_pattern(a->event, b->event);
    return strcmp(a->header, b->header) == 0 &&
           same_pattern(a->conditions, b->conditions) &&
           same_values(&a->values, &b->values);
}

static bool same_match(const stg_setting *s, const void *a, const void *b)
{
    const stg_match_setting *x = stg_kind_items(s, a);
    const stg_match_setting *y = stg_kind_items(s, b);
    size_t count;

    if (!stg_kind_same_count(s, a, b))
        return false;
    memcpy(&count, (const char *)a + s->count_at, sizeof count);
    for (size_t i = 0; i < count; i++)
        if (!same_part(&x[i], &y[i]))
            return false;
    return true;
}

/* -- schemas --------------------------------------------------------------- */

static json_t *schema_of_headers(const stg_setting *s)
{
    (void)s;
    return stg_schema_map(
        stg_schema_either(stg_schema_scalar(), stg_schema_file()));
}

static json_t *schema_of_match(const stg_setting *s)
{
    json_t *one = stg_schema_either(stg_schema_scalar(),
                                    stg_schema_reference("condition"));
    json_t *map = stg_schema_map(
        stg_schema_either(stg_schema_scalar(), stg_schema_list(one)));

    (void)s;
    json_object_set_new(map, "minProperties", json_integer(1));
    json_object_set_new(
        map, "properties",
        json_pack("{so}", "body", stg_schema_reference("pattern")));
    return map;
}

static json_t *schema_of_tags(const stg_setting *s)
{
    (void)s;
    return stg_schema_map(stg_schema_scalar());
}

/* -- the kinds ------------------------------------------------------------- */

const stg_kind stg_kind_headers = {
    .expected = "a map of headers: `Name: value`, or `Name: {file: PATH}`",
    .load = load_headers,
    .texts = 3,
    .schema = schema_of_headers,
};

/* Receivers are compared by the alerts. */
const stg_kind stg_kind_receiver_headers = {
    .expected = "a map of headers: `Name: value`, or `Name: {file: PATH}`",
    .load = load_receiver_headers,
    .schema = schema_of_headers,
};

const stg_kind stg_kind_properties = {
    .expected =
        "a map of librdkafka's properties: `name: value`, or `name: "
        "{file: PATH}`",
    .load = load_properties,
    .texts = 3,
    .schema = schema_of_headers,
};

const stg_kind stg_kind_match = {
    .expected =
        "a map of headers: `Name: value`, or `Name: [value, value]`; "
        "and `body: PATTERN`",
    .load = load_match,
    .equal = same_match,
    .schema = schema_of_match,
};

const stg_kind stg_kind_tags = {
    .expected = "a map of words: `name: value`",
    .load = load_tags,
    .texts = 2,
    .schema = schema_of_tags,
};

const stg_kind stg_kind_receiver_tags = {
    .expected = "a map of words: `name: value`",
    .load = load_receiver_tags,
    .schema = schema_of_tags,
};
