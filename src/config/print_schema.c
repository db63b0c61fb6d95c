#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "config/print.h"
#include "config/values.h"

#define TIME_PATTERN "^[0-9]+(\\.[0-9]{1,3})?(ns|us|ms|s|m|h|d)$"
#define SIZE_PATTERN "^[0-9]+(\\.[0-9]{1,3})?[KMGT](i?B)?$"
#define NAME_PATTERN "^(?![.]{1,2}$)[A-Za-z0-9._-]{1,64}$"

static json_t *object_of(stg_setting_in in, const char *prefix,
                         bool is_default);

/* -- pieces ---------------------------------------------------------------- */

static json_t *text(const char *pattern)
{
    return pattern != NULL
               ? json_pack("{ss ss}", "type", "string", "pattern", pattern)
               : json_pack("{ss si}", "type", "string", "minLength", 1);
}

static json_t *number(uint64_t least, uint64_t most)
{
    return json_pack("{ss sI sI}", "type", "integer", "minimum",
                     (json_int_t)least, "maximum", (json_int_t)most);
}

static json_t *either(json_t *a, json_t *b)
{
    return json_pack("{s[oo]}", "anyOf", a, b);
}

/* What a text may be written as without quotes. */
static json_t *scalar(void)
{
    return json_pack("{s[sss]}", "type", "string", "number", "boolean");
}

static json_t *list(json_t *items)
{
    return json_pack("{ss so si}", "type", "array", "items", items, "minItems",
                     1);
}

static json_t *one_or_list(json_t *(*item)(void))
{
    return either(item(), list(item()));
}

static json_t *words(const char *const *all)
{
    json_t *array = json_array();

    for (; *all != NULL; all++)
        json_array_append_new(array, json_string(*all));
    return json_pack("{so}", "enum", array);
}

static json_t *alerts(void)
{
    json_t *array = json_array();

    for (int i = 0; i < STG_ALERT_COUNT; i++)
        json_array_append_new(array, json_string(stg_alert_name((stg_alert)i)));
    return list(json_pack("{so}", "enum", array));
}

static json_t *map_of(json_t *values)
{
    return json_pack("{ss so}", "type", "object", "additionalProperties",
                     values);
}

static json_t *headers(void)
{
    return map_of(either(
        scalar(), json_pack("{ss s{s{ss si}} s[s] sb}", "type", "object",
                            "properties", "file", "type", "string", "minLength",
                            1, "required", "file", "additionalProperties", 0)));
}

static json_t *match(void)
{
    json_t *map = map_of(one_or_list(scalar));

    json_object_set_new(map, "minProperties", json_integer(1));
    return map;
}

static json_t *time_of(const stg_setting *s)
{
    json_t *all = json_array();

    json_array_append_new(all, text(TIME_PATTERN));
    if (s->least == 0)
        json_array_append_new(all, json_pack("{si}", "const", 0));
    if (s->none != NULL)
        json_array_append_new(all, json_pack("{ss}", "const", s->none));
    return json_pack("{so}", "anyOf", all);
}

static json_t *reference(const char *name)
{
    char path[64];

    snprintf(path, sizeof path, "#/$defs/%s", name);
    return json_pack("{ss}", "$ref", path);
}

/* -- a setting ------------------------------------------------------------- */

static json_t *section(const stg_setting *s)
{
    char prefix[128];

    snprintf(prefix, sizeof prefix, "%s.", s->path);
    return object_of(s->in, prefix, false);
}

static json_t *value_of(const stg_setting *s)
{
    switch (s->kind) {
    case STG_KIND_SECTION:
        return section(s);
    case STG_KIND_NAME:
        return text(NAME_PATTERN);
    case STG_KIND_URL:
        return text("^[Hh][Tt][Tt][Pp][Ss]?://");
    case STG_KIND_METHOD:
        return text("^[A-Z_-]{1,32}$");
    case STG_KIND_ADDRESS:
        return text("^unix:/|:[0-9]{1,5}$");
    case STG_KIND_LETTERS:
        return text("^(file|kafka):.");
    case STG_KIND_SOURCE:
        return text("^(queue|stdin|-|kafka|kafka://.*)$");
    case STG_KIND_FLAG:
    case STG_KIND_FLAG_NOT:
        return json_pack("{ss}", "type", "boolean");
    case STG_KIND_COUNT:
        return s->none == NULL ? number(s->least, s->most)
                               : either(number(s->least, s->most),
                                        json_pack("{ss}", "const", s->none));
    case STG_KIND_PERCENT:
        return text("^[0-9]{1,3}%$");
    case STG_KIND_SIZE:
        return either(number(s->least, s->most), text(SIZE_PATTERN));
    case STG_KIND_TIME:
        return time_of(s);
    case STG_KIND_RATE:
        return text("^[0-9]+(\\.[0-9]{1,3})?/s$");
    case STG_KIND_WORD:
        return words(s->words);
    case STG_KIND_ALERTS:
        return alerts();
    case STG_KIND_TEXTS:
    case STG_KIND_RULES:
    case STG_KIND_CIDRS:
    case STG_KIND_BROKERS:
    case STG_KIND_TOPICS:
        return one_or_list(scalar);
    case STG_KIND_HEADERS:
    case STG_KIND_SINK_HEADERS:
    case STG_KIND_PROPERTIES:
        return headers();
    case STG_KIND_MATCH:
        return match();
    case STG_KIND_TAGS:
    case STG_KIND_SINK_TAGS:
        return map_of(scalar());
    case STG_KIND_POLICIES:
        return map_of(text(NULL));
    case STG_KIND_DEFAULTS:
        return reference("defaults");
    case STG_KIND_TARGETS:
        return list(reference("target"));
    case STG_KIND_SINKS:
        return json_pack("{ss so si}", "type", "array", "items",
                         reference("sink"), "maxItems", STG_ALERT_SINKS_MAX);
    default: // texts: a policy, a file, ...
        return text(NULL);
    }
}

/* As an editor would put it in; lists are left to the documentation. */
static json_t *standard_of(const stg_setting *s)
{
    if (s->standard == NULL || s->standard[0] == '[')
        return NULL;
    if (s->kind == STG_KIND_COUNT && s->none == NULL)
        return json_integer((json_int_t)strtoull(s->standard, NULL, 10));
    if (s->kind == STG_KIND_FLAG || s->kind == STG_KIND_FLAG_NOT)
        return json_boolean(strcmp(s->standard, "true") == 0);
    return json_string(s->standard);
}

static json_t *property_of(const stg_setting *s)
{
    json_t *property = value_of(s), *standard = standard_of(s);

    json_object_set_new(property, "description", json_string(s->says));
    if (standard != NULL)
        json_object_set_new(property, "default", standard);
    return property;
}

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
        json_pack("{so so so}", "target", object_of(STG_IN_TARGET, "", false),
                  "defaults", object_of(STG_IN_TARGET, "", true), "sink",
                  object_of(STG_IN_SINK, "", false)));
    (void)json_dumpf(schema, to, JSON_INDENT(2));
    fputc('\n', to);
    json_decref(schema);
}
