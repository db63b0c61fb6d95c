/* Patterns of bodies, which are JSON: a tree of YAML becomes one. What is in quotes
 * is a text; what is not is a number, true, false or null where JSON has it so, and
 * else a text. Numbers that YAML has and JSON has not (012, 0x1f, .5) are refused:
 * who writes one may mean either. */
#include <stdlib.h>
#include <string.h>

#include "base/visible.h"
#include "config/loading.h"
#include "http/header.h"

static json_t *json_of(stg_loading *l, const stg_yaml_node *n);

/* NULL: it is none, as JSON has them. */
static json_t *number_of(const char *text)
{
    bool is_number = strchr("-0123456789", *text) != NULL && *text != '\0';

    return is_number ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
}

/* Whether YAML, or C, would read it as a number. */
static bool is_like_number(const char *text)
{
    char *end;

    (void)strtod(text, &end);
    return end != text && *end == '\0' && strpbrk(text, "0123456789") != NULL;
}

/* YAML has one kind of scalar, JSON has four: quotes make a text, and what only looks
 * like a number is refused rather than guessed. */
static json_t *json_of_text(stg_loading *l, const stg_yaml_node *n)
{
    json_t *number;
    char shown[STG_KEY_SHOWN_MAX];

    if (!n->is_plain)
        return json_string(n->text);
    if (stg_node_is_null(n))
        return json_null();
    if (strcmp(n->text, "true") == 0 || strcmp(n->text, "false") == 0)
        return json_boolean(*n->text == 't');
    number = number_of(n->text);
    if (number != NULL)
        return number;
    if (!is_like_number(n->text))
        return json_string(n->text);
    stg_complain(l->c, n->place,
                 "`match.body`: `%s` is a text or a number; expected quotes "
                 "around a text, or a number as JSON has it",
                 stg_yaml_key_shown(n->text, shown));
    return NULL;
}

/* Takes the part. False: there is none, or no memory. */
static bool add(json_t *to, const char *key, json_t *part)
{
    return part != NULL && (key != NULL ? json_object_set_new(to, key, part)
                                        : json_array_append_new(to, part)) == 0;
}

static json_t *json_of_parts(stg_loading *l, const stg_yaml_node *n)
{
    bool is_map = n->kind == STG_NODE_MAP;
    json_t *all = is_map ? json_object() : json_array();

    for (size_t i = 0; all != NULL && i < n->count; i += is_map ? 2 : 1) {
        const char *key = is_map ? n->at[i]->text : NULL;

        if (!add(all, key, json_of(l, n->at[is_map ? i + 1 : i]))) {
            json_decref(all);
            return NULL;
        }
    }
    return all;
}

/* NULL: complained, or there is no memory. The tree is 32 levels deep at most. */
static json_t *json_of(stg_loading *l, const stg_yaml_node *n)
{
    return n->kind == STG_NODE_TEXT ? json_of_text(l, n) : json_of_parts(l, n);
}

/* Where the flaw is: at the key of a map's part, at the item of a list. n: of the
 * pattern, or where that is of a header, of the list of its one field. */
static stg_file_place place_of(const stg_yaml_node *n,
                               const stg_pattern_flaw *f)
{
    stg_file_place place = n->place;

    for (size_t i = n->kind == STG_NODE_LIST; i < f->depth; i++) {
        bool is_map = n->kind == STG_NODE_MAP;

        place = n->at[is_map ? 2 * f->at[i] : f->at[i]]->place;
        n = n->at[is_map ? 2 * f->at[i] + 1 : f->at[i]];
    }
    return place;
}

static void complain(stg_loading *l, const stg_yaml_node *n,
                     const stg_pattern_flaw *f)
{
    stg_complain(l->c, place_of(n, f), "`match%s%s%s`: %s",
                 n->kind == STG_NODE_LIST ? "" : ".body",
                 *f->path == '\0' ? "" : ".", f->path, f->what);
}

/* False: no memory, and the pattern is gone. */
static bool own(struct stg_settings_inside *in, stg_pattern *p)
{
    stg_pattern **grown =
        realloc(in->patterns, (in->pattern_count + 1) * sizeof(stg_pattern *));

    if (grown == NULL) {
        stg_pattern_unref(p);
        return false;
    }
    in->patterns = grown;
    in->patterns[in->pattern_count++] = p;
    return true;
}

/* Takes source. NULL: complained, of a flaw at n or in it, or of no memory. */
static stg_pattern *compile(stg_loading *l, json_t *source,
                            const stg_yaml_node *n, stg_file_place place)
{
    size_t before = l->c->mistakes;
    stg_pattern *p = NULL;
    stg_pattern_flaw flaw;
    stg_status status =
        source == NULL ? STG_IO : stg_pattern_new(&p, source, &flaw);

    json_decref(source);
    if (status == STG_INVALID && n != NULL)
        complain(l, n, &flaw);
    else if (status == STG_INVALID)
        stg_complain(l->c, place, "`match`: %s", flaw.what);
    if (status == STG_OK && own(l->s->inside, p))
        return p;
    if (l->c->mistakes == before) {
        l->c->is_memory_short = true;
        stg_complain(l->c, place, "out of memory");
    }
    return NULL;
}

stg_pattern *stg_load_pattern(stg_loading *l, const stg_yaml_node *n)
{
    size_t before = l->c->mistakes;
    json_t *source = json_of(l, n);

    return source == NULL && l->c->mistakes > before
               ? NULL
               : compile(l, source, n, n->place);
}

/* -- headers --------------------------------------------------------------- */

bool stg_load_has_conditions(const stg_yaml_node *list)
{
    for (size_t i = 0; list->kind == STG_NODE_LIST && i < list->count; i++)
        if (list->at[i]->kind == STG_NODE_MAP)
            return true;
    return false;
}

/* As a pattern of a JSON object with one member, the header. */
stg_pattern *stg_load_conditions(stg_loading *l, const char *header,
                                 const stg_yaml_node *list)
{
    size_t before = l->c->mistakes;
    json_t *values = json_array(), *source;

    for (size_t i = 0; i < list->count; i++) {
        const stg_yaml_node *n = list->at[i];

        if (!add(values, NULL,
                 n->kind == STG_NODE_TEXT && !stg_node_is_null(n)
                     ? json_string(n->text)
                     : json_of(l, n)))
            break;
    }
    source = json_pack("{so}", header, values);
    if (l->c->mistakes == before)
        return compile(l, source, list, list->place);
    json_decref(source);
    return NULL;
}

/* -- events ---------------------------------------------------------------- */

/* As a header has it, and as JSON may: 5 and "5". */
static void add_value(json_t *to, const char *text)
{
    json_t *v = json_loads(text, JSON_DECODE_ANY, NULL);

    (void)add(to, NULL, json_string(text));
    if (json_is_integer(v) || json_is_boolean(v))
        (void)json_array_append(to, v);
    json_decref(v);
}

static json_t *values_of(const stg_match_setting *m)
{
    json_t *all = json_array();

    if (m->conditions != NULL) {
        json_decref(all);
        return json_deep_copy(
            json_object_get(stg_pattern_source(m->conditions), m->header));
    }
    for (size_t i = 0; i < m->values.count; i++)
        add_value(all, m->values.at[i]);
    return all;
}

/* The header's name without its ce-, in small letters. */
static const char *attribute_of(stg_loading *l, const char *header)
{
    char *name = stg_settings_keep_text(l->s, header + 3, strlen(header + 3));

    for (char *at = name; at != NULL && *at != '\0'; at++)
        *at = stg_header_fold_case(*at);
    return name;
}

/* Attributes of an event in structured mode are members of its body: the conditions
 * on headers ce-* hold there as well. */
bool stg_load_event(stg_loading *l, stg_file_place place,
                    const stg_match_setting *match, size_t count,
                    stg_match_setting *event)
{
    json_t *source = NULL;

    for (size_t i = 0; i < count; i++) {
        const char *header = match[i].header, *name;

        if (!match[i].is_attribute)
            continue;
        source = source != NULL ? source : json_object();
        name = attribute_of(l, header);
        if (name == NULL || !add(source, name, values_of(&match[i])))
            l->c->is_memory_short = true;
    }
    if (source == NULL)
        return false;
    *event = (stg_match_setting){.event = compile(l, source, NULL, place)};
    return event->event != NULL;
}

/* -- schemas --------------------------------------------------------------- */

/* They are too much of a tree for json_pack(). */
json_t *stg_schema_pattern(void)
{
    static const char text[] =
        "{\"type\": \"object\", \"minProperties\": 1,"
        " \"properties\": {\"$or\": {\"type\": \"array\", \"minItems\": 1,"
        "  \"items\": {\"$ref\": \"#/$defs/pattern\"}}},"
        " \"additionalProperties\": {\"anyOf\": ["
        "  {\"$ref\": \"#/$defs/pattern\"},"
        "  {\"type\": \"array\", \"minItems\": 1, \"items\": {\"anyOf\": ["
        "   {\"type\": [\"string\", \"number\", \"boolean\", \"null\"]},"
        "   {\"$ref\": \"#/$defs/condition\"}]}}]}}";

    return json_loads(text, 0, NULL);
}

json_t *stg_schema_condition(void)
{
    static const char text[] =
        "{\"type\": \"object\", \"minProperties\": 1, \"maxProperties\": 1,"
        " \"additionalProperties\": false, \"properties\": {"
        "  \"prefix\": {\"type\": [\"string\", \"object\"]},"
        "  \"suffix\": {\"type\": [\"string\", \"object\"]},"
        "  \"equals-ignore-case\": {\"type\": \"string\"},"
        "  \"wildcard\": {\"type\": \"string\"},"
        "  \"numeric\": {\"type\": \"array\", \"minItems\": 2, \"maxItems\": 4,"
        "   \"items\": {\"anyOf\": [{\"type\": \"number\"},"
        "    {\"enum\": [\"=\", \"<\", \"<=\", \">\", \">=\"]}]}},"
        "  \"cidr\": {\"type\": \"string\"},"
        "  \"exists\": {\"type\": \"boolean\"},"
        "  \"anything-but\": {\"type\":"
        "   [\"string\", \"number\", \"array\", \"object\"]}}}";

    return json_loads(text, 0, NULL);
}
