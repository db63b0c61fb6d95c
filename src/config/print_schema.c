/* A JSON Schema of the settings file, of the draft 2020-12: the table gives the
 * objects and the descriptions, each setting's kind what its value may be. */
#include <string.h>

#include <jansson.h>

#include "config/kinds/kinds.h"
#include "config/table.h"

static json_t *object_of(stg_setting_in in, const char *prefix,
                         bool is_default);

/* -- pieces ---------------------------------------------------------------- */

json_t *stg_schema_text(const char *pattern)
{
    return pattern != NULL
               ? json_pack("{ss ss}", "type", "string", "pattern", pattern)
               : json_pack("{ss si}", "type", "string", "minLength", 1);
}

json_t *stg_schema_number(uint64_t least, uint64_t most)
{
    return json_pack("{ss sI sI}", "type", "integer", "minimum",
                     (json_int_t)least, "maximum", (json_int_t)most);
}

/* YAML gives a number or true where a text was meant; the hub takes both as
 * texts. */
json_t *stg_schema_scalar(void)
{
    return json_pack("{s[sss]}", "type", "string", "number", "boolean");
}

json_t *stg_schema_file(void)
{
    return json_pack("{ss s{s{ss si}} s[s] sb}", "type", "object", "properties",
                     "file", "type", "string", "minLength", 1, "required",
                     "file", "additionalProperties", 0);
}

json_t *stg_schema_either(json_t *a, json_t *b)
{
    return json_pack("{s[oo]}", "anyOf", a, b);
}

json_t *stg_schema_array(json_t *items)
{
    return json_pack("{ss so}", "type", "array", "items", items);
}

json_t *stg_schema_list(json_t *items)
{
    return json_pack("{ss so si}", "type", "array", "items", items, "minItems",
                     1);
}

json_t *stg_schema_one_or_list(const stg_setting *s)
{
    (void)s;
    return stg_schema_either(stg_schema_scalar(),
                             stg_schema_list(stg_schema_scalar()));
}

json_t *stg_schema_map(json_t *values)
{
    return json_pack("{ss so}", "type", "object", "additionalProperties",
                     values);
}

json_t *stg_schema_reference(const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "#/$defs/%s", name);
    return json_pack("{ss}", "$ref", path);
}

/* Nested by path: what begins with "store." and has no further dot. */
json_t *stg_schema_section(const stg_setting *s)
{
    char prefix[128];

    snprintf(prefix, sizeof prefix, "%s.", s->path);
    return object_of(s->in, prefix, false);
}

/* -- a setting ------------------------------------------------------------- */

/* As an editor would put it in; lists are left to the documentation. */
static json_t *standard_of(const stg_setting *s)
{
    if (s->standard == NULL || s->standard[0] == '[')
        return NULL;
    return s->kind->standard != NULL ? s->kind->standard(s)
                                     : json_string(s->standard);
}

/* `${NAME}` may stand where a number, a word or a text of a form is wanted. */
static json_t *or_variable(const stg_setting *s, json_t *value)
{
    bool is_any = json_object_get(value, "minLength") != NULL;

    return stg_setting_is_scalar(s) && !is_any
               ? stg_schema_either(value, stg_schema_reference("variable"))
               : value;
}

/* An editor shows the sentence of the table as the help of the key. */
static json_t *property_of(const stg_setting *s)
{
    json_t *standard = standard_of(s),
           *property = s->kind->schema != NULL
                           ? s->kind->schema(s)
                           : stg_schema_text(s->kind->pattern);

    property = or_variable(s, property);
    json_object_set_new(property, "description", json_string(s->says));
    if (standard != NULL)
        json_object_set_new(property, "default", standard);
    return property;
}

/* `defaults` has the settings of a target, without those that each target must
 * have for itself (is_own). */
static json_t *object_of(stg_setting_in in, const char *prefix, bool is_default)
{
    json_t *properties = json_object(), *needed = json_array();
    size_t size = strlen(prefix);
    const stg_setting *s;
    json_t *object;

    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++) {
        if (s->in != in || strncmp(s->path, prefix, size) != 0 ||
            strchr(s->path + size, '.') != NULL || (is_default && s->is_own))
            continue;
        json_object_set_new(properties, s->path + size, property_of(s));
        if (s->is_needed)
            json_array_append_new(needed, json_string(s->path + size));
    }
    object = json_pack("{ss so sb}", "type", "object", "properties", properties,
                       "additionalProperties", 0);
    if (json_array_size(needed) > 0)
        json_object_set(object, "required", needed);
    json_decref(needed);
    return object;
}

/* What a receiver of a type needs, and cannot have. */
static json_t *rule_of_types(const char *types, const char *needed,
                             const char *refused)
{
    json_t *rule = json_object(), *properties = json_object(),
           *then = json_object();

    json_object_set_new(rule, "if",
                        json_pack("{s:{s:{s:o}}, s:[s]}", "properties", "type",
                                  "enum", json_loads(types, 0, NULL),
                                  "required", "type"));
    for (const char *at = refused; *at != '\0'; at += strlen(at) + 1)
        json_object_set_new(properties, at, json_false());
    json_object_set_new(then, "properties", properties);
    if (*needed != '\0')
        json_object_set_new(then, "required", json_pack("[s]", needed));
    json_object_set_new(rule, "then", then);
    return rule;
}

static json_t *receiver_of(void)
{
    json_t *receiver = object_of(STG_IN_RECEIVER, "", false);

    json_object_set_new(
        receiver, "allOf",
        json_pack(
            "[oooo]",
            rule_of_types("[\"slack\", \"teams\"]", "url-file",
                          "url\0key-file\0body\0headers\0"),
            rule_of_types("[\"pagerduty\", \"opsgenie\"]", "key-file",
                          "url-file\0body\0headers\0"),
            rule_of_types("[\"mail\", \"webhook\"]", "", "key-file\0body\0"),
            rule_of_types("[\"template\"]", "body", "key-file\0")));
    return receiver;
}

void stg_settings_print_schema(FILE *to)
{
    json_t *schema = object_of(STG_IN_HUB, "", false);

    json_object_set_new(
        schema, "$schema",
        json_string("https://json-schema.org/draft/2020-12/schema"));
    json_object_set_new(schema, "title",
                        json_string("Settings of the stagger hub"));
    json_object_set_new(
        schema, "$defs",
        json_pack("{so so so so so so so}", "variable",
                  stg_schema_text("\\$\\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\\}"),
                  "target", object_of(STG_IN_TARGET, "", false), "defaults",
                  object_of(STG_IN_TARGET, "", true), "receiver", receiver_of(),
                  "inbound", object_of(STG_IN_INBOUND, "", false), "pattern",
                  stg_schema_pattern(), "condition", stg_schema_condition()));
    (void)json_dumpf(schema, to, JSON_INDENT(2));
    fputc('\n', to);
    json_decref(schema);
}
