/* Values that are lists. */
#include <string.h>

#include "base/suggest.h"
#include "config/from.h"
#include "config/loading.h"
#include "http/forwarding.h"
#include "kafka/topic.h"

void stg_load_put_list(const stg_setting *s, void *base, const void *list,
                       size_t count)
{
    memcpy((char *)base + s->at, &list, sizeof list);
    memcpy((char *)base + s->count_at, &count, sizeof count);
}

const char *stg_load_text(stg_loading *l, const stg_setting *s,
                          const stg_yaml_node *n)
{
    if (n->kind != STG_NODE_TEXT || stg_node_is_null(n)) {
        stg_load_refuse_kind(l, s, n);
        return NULL;
    }
    if (*n->text == '\0') {
        stg_complain(l->c, n->place,
                     "`%s`: an empty text; wanted one that is "
                     "not",
                     s->path);
        return NULL;
    }
    return stg_load_keep_text(l, n->text);
}

/* The parts of a list, or one text as a list of one. */
static const stg_yaml_node *const *
parts_of(const stg_yaml_node *n, const stg_yaml_node *const *one, size_t *count)
{
    *count = n->kind == STG_NODE_LIST ? n->count : 1;
    return n->kind == STG_NODE_LIST ? (const stg_yaml_node *const *)n->at : one;
}

/* -- lists of texts -------------------------------------------------------- */

static bool is_rule(stg_loading *l, const stg_setting *s,
                    const stg_yaml_node *n)
{
    const char *const rules[] = {n->text, NULL};
    stg_error err;

    if (stg_headers_check(rules, &err) == STG_OK)
        return true;
    stg_complain(l->c, n->place, "`%s`: %s", s->path, err.text);
    return false;
}

static bool is_topic(stg_loading *l, const stg_setting *s,
                     const stg_yaml_node *n)
{
    stg_error err;

    if (stg_topic_check(n->text, &err) == STG_OK)
        return true;
    stg_complain(l->c, n->place, "`%s`: %s", s->path, err.text);
    return false;
}

/* What a text of a list of this kind must be. */
static bool is_of_kind(stg_loading *l, const stg_setting *s,
                       const stg_yaml_node *n)
{
    char wanted[STG_EXPECTED_MAX];
    stg_span text = {n->text, strlen(n->text)};
    bool is_fit;

    if (s->kind == STG_KIND_RULES)
        return is_rule(l, s, n);
    if (s->kind == STG_KIND_TOPICS)
        return is_topic(l, s, n);
    is_fit = s->kind != STG_KIND_BROKERS || stg_from_is_broker(text);
    if (!is_fit)
        stg_complain(l->c, n->place, "`%s`: `%.60s` is none; wanted %s",
                     s->path, n->text, stg_setting_expected(s, wanted));
    return is_fit;
}

stg_texts stg_load_texts(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n)
{
    const stg_yaml_node *const one[] = {n};
    stg_texts texts = {.at = NULL};
    size_t count;
    const stg_yaml_node *const *parts = parts_of(n, one, &count);
    const char **at = stg_load_keep(l, (count + 1) * sizeof(char *));

    for (size_t i = 0; at != NULL && i < count; i++) {
        const char *text = stg_load_text(l, s, parts[i]);

        if (text != NULL && is_of_kind(l, s, parts[i]))
            at[texts.count++] = text;
    }
    texts.at = at;
    return texts;
}

static void load_texts(stg_loading *l, const stg_setting *s,
                       const stg_yaml_node *n, void *base)
{
    stg_texts texts;

    if (n->kind == STG_NODE_MAP || stg_node_is_null(n)) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    texts = stg_load_texts(l, s, n);
    if (n->kind == STG_NODE_LIST && n->count == 0)
        stg_complain(l->c, n->place, "`%s`: an empty list; wanted one at least",
                     s->path);
    else if (s->most > 0 && texts.count > s->most)
        stg_complain(l->c, n->place, "`%s`: %zu of them; wanted %u at most",
                     s->path, texts.count, (unsigned)s->most);
    else if (texts.at != NULL)
        stg_load_put_list(s, base, texts.at, texts.count);
}

/* -- networks -------------------------------------------------------------- */

static void load_cidrs(stg_loading *l, const stg_setting *s,
                       const stg_yaml_node *n, void *base)
{
    const stg_yaml_node *const one[] = {n};
    size_t count, used = 0;
    const stg_yaml_node *const *parts = parts_of(n, one, &count);
    stg_cidr *cidrs;
    stg_error err;

    if (n->kind == STG_NODE_MAP || stg_node_is_null(n)) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    cidrs = stg_load_keep(l, (count + 1) * sizeof *cidrs);
    for (size_t i = 0; cidrs != NULL && i < count; i++)
        if (stg_load_text(l, s, parts[i]) == NULL)
            continue;
        else if (stg_cidr_parse(&cidrs[used], parts[i]->text, &err) == STG_OK)
            used++;
        else
            stg_complain(l->c, parts[i]->place, "`%s`: %s", s->path, err.text);
    if (cidrs != NULL)
        stg_load_put_list(s, base, cidrs, used);
}

/* -- alerts ---------------------------------------------------------------- */

static const char *suggest_alert(const char *word)
{
    stg_suggestion s = stg_suggestion_begin(word, strlen(word));

    for (int i = 0; i < STG_ALERT_COUNT; i++)
        stg_suggestion_try(&s, stg_alert_name((stg_alert)i));
    return s.name;
}

static uint32_t read_alert(stg_loading *l, const stg_setting *s,
                           const stg_yaml_node *n)
{
    char wanted[STG_EXPECTED_MAX];
    const char *near;
    stg_alert a;

    if (stg_load_text(l, s, n) == NULL)
        return 0;
    if (stg_alert_find(n->text, &a) == STG_OK)
        return STG_ALERT_BIT(a);
    near = suggest_alert(n->text);
    stg_complain(l->c, n->place, "`%s`: `%.40s` is no alert; wanted %s%s%s%s",
                 s->path, n->text, stg_setting_expected(s, wanted),
                 near ? "; did you mean " : "", near ? near : "",
                 near ? "?" : "");
    return 0;
}

static void load_alerts(stg_loading *l, const stg_setting *s,
                        const stg_yaml_node *n, void *base)
{
    uint32_t bits = 0;

    if (n->kind != STG_NODE_LIST || n->count == 0) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    for (size_t i = 0; i < n->count; i++)
        bits |= read_alert(l, s, n->at[i]);
    memcpy((char *)base + s->at, &bits, sizeof bits);
}

/* -- all of them ----------------------------------------------------------- */

void stg_load_list(stg_loading *l, const stg_setting *s, const stg_yaml_node *n,
                   void *base)
{
    switch (s->kind) {
    case STG_KIND_TEXTS:
    case STG_KIND_RULES:
    case STG_KIND_BROKERS:
    case STG_KIND_TOPICS:
        load_texts(l, s, n, base);
        break;
    case STG_KIND_CIDRS:
        load_cidrs(l, s, n, base);
        break;
    case STG_KIND_ALERTS:
        load_alerts(l, s, n, base);
        break;
    default:
        stg_load_pairs(l, s, n, base);
    }
}
