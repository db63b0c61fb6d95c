/* Maps of names: headers, filters, tags. */
#include <string.h>
#include <strings.h>

#include "hub/ops/ingress_headers.h"
#include "hub/settings/loading.h"
#include "hub/settings/reserved.h"

/* The value of one key of a map. */
static void refuse_part(stg_loading *l, const stg_setting *s,
                        const stg_yaml_node *key, const stg_yaml_node *n,
                        const char *wanted)
{
    stg_complain(l->c, n->place, "`%s`: %s for `%.60s`; wanted %s", s->path,
                 n->kind == STG_NODE_MAP    ? "a map"
                 : n->kind == STG_NODE_LIST ? "a list"
                                            : "nothing",
                 key->text, wanted);
}

/* -- headers --------------------------------------------------------------- */

typedef struct header {
    const char *name, *value, *file;
} header;

static bool is_header_name(stg_loading *l, const stg_setting *s,
                           const stg_yaml_node *key)
{
    stg_span name = {key->text, strlen(key->text)};
    const char *why;

    if (!stg_header_is_name(name)) {
        stg_complain(l->c, key->place,
                     "`%s`: `%.60s` is no name of a header; wanted letters, "
                     "digits and hyphens",
                     s->path, key->text);
        return false;
    }
    why = s->kind == STG_KIND_HEADERS ? stg_reserved_header(name) : NULL;
    if (why != NULL)
        stg_complain(l->c, key->place, "`%s`: `%.60s` %s; wanted another",
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
    stg_complain(l->c, place,
                 "the value of header `%.60s` cannot be sent; wanted one line "
                 "without control characters, and no blanks around it",
                 name);
    return false;
}

/* {file: PATH} */
static bool read_header_file(stg_loading *l, const stg_setting *s,
                             const stg_yaml_node *n, header *h)
{
    if (n->count != 2 || strcmp(n->at[0]->text, "file") != 0 ||
        n->at[1]->kind != STG_NODE_TEXT || *n->at[1]->text == '\0') {
        stg_complain(l->c, n->place,
                     "`%s`: a map; wanted `%.60s: value`, or `%.60s: {file: "
                     "PATH}`",
                     s->path, h->name, h->name);
        return false;
    }
    h->file = stg_load_keep_path(l, n->at[1]->text);
    if (h->file == NULL)
        return false;
    h->value = stg_load_secret(l, n->at[1]->place, h->name, h->file);
    return h->value != NULL &&
           is_header_value(l, n->at[1]->place, h->name, h->value);
}

static bool read_header(stg_loading *l, const stg_setting *s,
                        const stg_yaml_node *key, const stg_yaml_node *n,
                        header *h)
{
    *h = (header){.name = stg_load_keep_text(l, key->text)};
    if (h->name == NULL || !is_header_name(l, s, key))
        return false;
    if (n->kind == STG_NODE_MAP)
        return read_header_file(l, s, n, h);
    if (n->kind != STG_NODE_TEXT || stg_node_is_null(n)) {
        refuse_part(l, s, key, n, "a value, or {file: PATH}");
        return false;
    }
    h->value = stg_load_keep_text(l, n->text);
    return h->value != NULL && is_header_value(l, n->place, h->name, h->value);
}

/* `X-A` and `x-a` are the same header. */
static bool is_repeated(stg_loading *l, const stg_yaml_node *n, size_t i)
{
    for (size_t k = 0; k < i; k += 2)
        if (strcasecmp(n->at[k]->text, n->at[i]->text) == 0) {
            stg_complain(l->c, n->at[i]->place,
                         "header `%.60s` comes twice; wanted it once (see line "
                         "%u)",
                         n->at[i]->text, (unsigned)n->at[k]->place.line);
            return true;
        }
    return false;
}

/* Whether the target's own headers have one of that name. */
static bool has_header(const stg_header_setting *all, size_t count,
                       const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(all[i].name, name) == 0)
            return true;
    return false;
}

/* Those of the defaults, and then its own, which replace them. */
static void load_headers(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n, void *base)
{
    stg_target_settings *t = base;
    const stg_header_setting *old = t->headers;
    size_t old_count = t->header_count, count = 0;
    stg_header_setting *all =
        stg_load_keep(l, (n->count / 2 + old_count + 1) * sizeof *all);
    header h;

    for (size_t i = 0; all != NULL && i < n->count; i += 2)
        if (!is_repeated(l, n, i) &&
            read_header(l, s, n->at[i], n->at[i + 1], &h))
            all[count++] = (stg_header_setting){h.name, h.value, h.file};
    for (size_t i = 0, own = count; all != NULL && i < old_count; i++)
        if (!has_header(all, own, old[i].name))
            all[count++] = old[i];
    if (all != NULL)
        stg_load_put_list(s, base, all, count);
}

static void load_sink_headers(stg_loading *l, const stg_setting *s,
                              const stg_yaml_node *n, void *base)
{
    stg_alert_header *all = stg_load_keep(l, (n->count + 1) * sizeof *all);
    size_t count = 0;
    header h;

    // A sink reads its files itself: a token may change while the hub runs.
    for (size_t i = 0; all != NULL && i < n->count; i += 2)
        if (!is_repeated(l, n, i) &&
            read_header(l, s, n->at[i], n->at[i + 1], &h))
            all[count++] = (stg_alert_header){
                h.name, h.file != NULL ? NULL : h.value, h.file};
    if (all != NULL)
        stg_load_put_list(s, base, all, count);
}

/* -- filters --------------------------------------------------------------- */

/* Headers that are not kept of a message can never be asked for. */
static void check_match_header(stg_loading *l, const stg_yaml_node *key)
{
    stg_span name = {key->text, strlen(key->text)};
    const stg_texts *rules = &l->s->listen.headers;

    if (stg_header_equal(name, "Content-Type") ||
        stg_header_equal(name, "Stagger-Key"))
        return;
    if (!stg_header_is_name(name))
        stg_complain(l->c, key->place,
                     "`match`: `%.60s` is no name of a header; wanted letters, "
                     "digits and hyphens",
                     key->text);
    else if (!stg_headers_keep(
                 rules->count > 0 ? rules->at : stg_headers_default, name))
        stg_complain(l->c, key->place,
                     "`match`: header `%.60s` is not kept of a message, so "
                     "that nothing would match; wanted it in `listen.headers`",
                     key->text);
}

static void load_match(stg_loading *l, const stg_setting *s,
                       const stg_yaml_node *n, void *base)
{
    stg_match_setting *all = stg_load_keep(l, (n->count + 1) * sizeof *all);
    size_t count = 0;

    if (n->count == 0)
        stg_complain(l->c, n->place,
                     "`match`: an empty map; wanted a header at least, or no "
                     "such key: then every message is sent");
    for (size_t i = 0; all != NULL && i < n->count; i += 2) {
        const stg_yaml_node *value = n->at[i + 1];
        stg_match_setting m = {.header = stg_load_keep_text(l, n->at[i]->text)};

        check_match_header(l, n->at[i]);
        if (is_repeated(l, n, i) || m.header == NULL)
            continue;
        if (value->kind == STG_NODE_LIST && value->count == 0)
            stg_complain(l->c, value->place,
                         "`match`: an empty list; wanted a value at least");
        else if (value->kind == STG_NODE_MAP || stg_node_is_null(value))
            refuse_part(l, s, n->at[i], value, "a value, or a list of values");
        else
            m.values = stg_load_texts(l, s, value);
        if (m.values.count > 0)
            all[count++] = m;
    }
    if (all != NULL)
        stg_load_put_list(s, base, all, count);
}

/* -- tags ------------------------------------------------------------------ */

typedef struct tag {
    const char *name, *value;
} tag;

static bool read_tag(stg_loading *l, const stg_setting *s,
                     const stg_yaml_node *n, size_t i, tag *t)
{
    *t = (tag){.name = stg_load_keep_text(l, n->at[i]->text)};
    if (*n->at[i]->text == '\0' || strlen(n->at[i]->text) > 64) {
        stg_complain(l->c, n->at[i]->place,
                     "`%s`: a tag's name has 1 to 64 bytes; wanted another",
                     s->path);
        return false;
    }
    if (n->at[i + 1]->kind != STG_NODE_TEXT || stg_node_is_null(n->at[i + 1])) {
        refuse_part(l, s, n->at[i], n->at[i + 1], "a word");
        return false;
    }
    t->value = stg_load_text(l, s, n->at[i + 1]);
    return t->name != NULL && t->value != NULL;
}

static bool has_tag(const stg_tag_setting *all, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i].name, name) == 0)
            return true;
    return false;
}

static void load_tags(stg_loading *l, const stg_setting *s,
                      const stg_yaml_node *n, void *base)
{
    stg_target_settings *target = base;
    const stg_tag_setting *old = target->tags;
    size_t old_count = target->tag_count, count = 0;
    stg_tag_setting *all =
        stg_load_keep(l, (n->count / 2 + old_count + 1) * sizeof *all);
    tag t;

    for (size_t i = 0; all != NULL && i < n->count; i += 2)
        if (read_tag(l, s, n, i, &t))
            all[count++] = (stg_tag_setting){t.name, t.value};
    for (size_t i = 0, own = count; all != NULL && i < old_count; i++)
        if (!has_tag(all, own, old[i].name))
            all[count++] = old[i];
    if (all != NULL)
        stg_load_put_list(s, base, all, count);
}

static void load_sink_tags(stg_loading *l, const stg_setting *s,
                           const stg_yaml_node *n, void *base)
{
    stg_alert_tag *all = stg_load_keep(l, (n->count + 1) * sizeof *all);
    size_t count = 0;
    tag t;

    for (size_t i = 0; all != NULL && i < n->count; i += 2)
        if (read_tag(l, s, n, i, &t))
            all[count++] = (stg_alert_tag){t.name, t.value};
    if (all != NULL)
        stg_load_put_list(s, base, all, count);
}

/* -- all of them ---------------------------------------------------------- */

void stg_load_pairs(stg_loading *l, const stg_setting *s,
                    const stg_yaml_node *n, void *base)
{
    if (n->kind != STG_NODE_MAP)
        stg_load_refuse_kind(l, s, n);
    else if (s->kind == STG_KIND_HEADERS)
        load_headers(l, s, n, base);
    else if (s->kind == STG_KIND_SINK_HEADERS)
        load_sink_headers(l, s, n, base);
    else if (s->kind == STG_KIND_MATCH)
        load_match(l, s, n, base);
    else if (s->kind == STG_KIND_TAGS)
        load_tags(l, s, n, base);
    else
        load_sink_tags(l, s, n, base);
}
