/* Lists of texts, of networks and of secrets. A text alone stands for a list of
 * one, so that `topics: orders` needs no brackets. Each item is checked by itself,
 * and all that are wrong are told. */
#include <string.h>

#include "config/from.h"
#include "config/kinds/kinds.h"
#include "config/loading.h"
#include "http/header.h"
#include "kafka/topic.h"

const char *stg_load_text(stg_loading *l, const stg_setting *s,
                          const stg_yaml_node *n)
{
    if (n->kind != STG_NODE_TEXT || stg_node_is_null(n)) {
        stg_load_refuse_kind(l, s, n);
        return NULL;
    }
    if (*n->text == '\0') {
        stg_complain(l->c, n->place,
                     "`%s`: an empty text; expected one that is "
                     "not",
                     s->path);
        return NULL;
    }
    return stg_load_keep_text(l, n->text);
}

/* How an item is read. False: it is wrong, which was told, and for texts, whose
 * list ends with NULL, item is as it was. */
typedef bool read_item(stg_loading *l, const stg_setting *s,
                       const stg_yaml_node *n, void *item);

/* Reads a list, or one text as a list of one, into items of `size` bytes, and
 * counts those that are right. NULL: no memory. */
static void *read_items(stg_loading *l, const stg_setting *s,
                        const stg_yaml_node *n, size_t size, read_item *read,
                        size_t *count)
{
    bool is_list = n->kind == STG_NODE_LIST;
    size_t parts = is_list ? n->count : 1;
    char *items = stg_load_keep(l, (parts + 1) * size);

    *count = 0;
    for (size_t i = 0; items != NULL && i < parts; i++)
        *count += read(l, s, is_list ? n->at[i] : n, items + *count * size);
    return items;
}

/* -- lists of texts -------------------------------------------------------- */

/* The rule is checked as a list of one, so that the mistake is told at its own
 * place. */
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
    char expected[STG_EXPECTED_MAX];
    stg_span text = {n->text, strlen(n->text)};
    bool is_fit;

    if (s->kind == &stg_kind_rules)
        return is_rule(l, s, n);
    if (s->kind == &stg_kind_topics)
        return is_topic(l, s, n);
    is_fit = s->kind != &stg_kind_brokers || stg_from_is_broker(text);
    if (!is_fit)
        stg_complain(l->c, n->place, "`%s`: `%.60s` is none; expected %s",
                     s->path, n->text, stg_setting_expected(s, expected));
    return is_fit;
}

static bool read_text(stg_loading *l, const stg_setting *s,
                      const stg_yaml_node *n, void *item)
{
    const char *text = stg_load_text(l, s, n);

    if (text == NULL || !is_of_kind(l, s, n))
        return false;
    *(const char **)item = text;
    return true;
}

/* Keeps those that are right: each wrong item was complained of by itself. */
stg_texts stg_load_texts(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n)
{
    stg_texts texts;

    texts.at = read_items(l, s, n, sizeof *texts.at, read_text, &texts.count);
    return texts;
}

/* Reads all items first, so that each wrong one is told, and the number of them
 * after that. */
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
        stg_complain(l->c, n->place,
                     "`%s`: an empty list; expected one at least", s->path);
    else if (s->most > 0 && texts.count > s->most)
        stg_complain(l->c, n->place, "`%s`: %zu of them; expected %u at most",
                     s->path, texts.count, (unsigned)s->most);
    else if (texts.at != NULL)
        stg_kind_put_list(s, base, texts.at, texts.count);
}

const stg_kind stg_kind_texts = {
    .expected = "a text, or a list of texts",
    .load = load_texts,
    .texts = 1,
    .schema = stg_schema_one_or_list,
};

const stg_kind stg_kind_rules = {
    .expected = "a list of names of headers, like [traceparent, X-*]",
    .load = load_texts,
    .texts = 1,
    .schema = stg_schema_one_or_list,
};

const stg_kind stg_kind_brokers = {
    .expected = "a list of brokers, like [k1:9092, k2:9092]",
    .load = load_texts,
    .texts = 1,
    .schema = stg_schema_one_or_list,
};

const stg_kind stg_kind_topics = {
    .expected =
        "a list of topics, each 1 to 249 of A-Z a-z 0-9 . _ -, or a "
        "pattern: ^ and the rest of a regular expression",
    .load = load_texts,
    .texts = 1,
    .schema = stg_schema_one_or_list,
};

/* -- networks -------------------------------------------------------------- */

static bool read_cidr(stg_loading *l, const stg_setting *s,
                      const stg_yaml_node *n, void *item)
{
    stg_error err;

    if (stg_load_text(l, s, n) == NULL)
        return false;
    if (stg_cidr_parse(item, n->text, &err) == STG_OK)
        return true;
    stg_complain(l->c, n->place, "`%s`: %s", s->path, err.text);
    return false;
}

static void load_cidrs(stg_loading *l, const stg_setting *s,
                       const stg_yaml_node *n, void *base)
{
    size_t count;
    stg_cidr *cidrs;

    if (n->kind == STG_NODE_MAP || stg_node_is_null(n)) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    cidrs = read_items(l, s, n, sizeof *cidrs, read_cidr, &count);
    if (cidrs != NULL)
        stg_kind_put_list(s, base, cidrs, count);
}

static bool same_cidrs(const stg_setting *s, const void *a, const void *b)
{
    const stg_cidr *x = stg_kind_items(s, a), *y = stg_kind_items(s, b);
    size_t count;

    if (!stg_kind_same_count(s, a, b))
        return false;
    memcpy(&count, (const char *)a + s->count_at, sizeof count);
    return count == 0 || memcmp(x, y, count * sizeof *x) == 0;
}

const stg_kind stg_kind_cidrs = {
    .expected = "a list of networks, like [10.0.0.0/8, 'fd00::/8']",
    .load = load_cidrs,
    .equal = same_cidrs,
    .schema = stg_schema_one_or_list,
};

/* -- secrets --------------------------------------------------------------- */

_Static_assert(sizeof(stg_sign_secret) == 2 * sizeof(char *), "two texts");

/* A call may not name files: who may change targets is not to read what the hub can. */
static bool read_secret_file(stg_loading *l, const stg_setting *s,
                             const stg_yaml_node *n, stg_sign_secret *secret)
{
    const stg_yaml_node *file = stg_load_file_node(n);

    if (file == NULL) {
        stg_complain(l->c, n->place,
                     "`%s`: a map; expected `{file: PATH}` for each secret",
                     s->path);
        return false;
    }
    if (l->is_call) {
        stg_complain(l->c, n->place,
                     "`%s`: a file of the hub's machine; expected the secret "
                     "itself: a call cannot read files there",
                     s->path);
        return false;
    }
    secret->file = stg_load_keep_path(l, file->text);
    if (secret->file == NULL)
        return false;
    stg_load_note_file(l, s, file->place, secret->file);
    secret->value = stg_load_secret(l, file->place, s->path, secret->file);
    return secret->value != NULL;
}

bool stg_load_secret_value(stg_loading *l, const stg_setting *s,
                           const stg_yaml_node *n, stg_sign_secret *secret)
{
    *secret = (stg_sign_secret){.file = NULL};
    if (n->kind == STG_NODE_MAP)
        return read_secret_file(l, s, n, secret);
    secret->value = stg_load_text(l, s, n);
    return secret->value != NULL;
}

/* Whether it is a secret of its scheme is seen when that is known
 * (validate_sign.c). */
static bool read_secret(stg_loading *l, const stg_setting *s,
                        const stg_yaml_node *n, void *item)
{
    stg_sign_secret secret;
    bool is_read = stg_load_secret_value(l, s, n, &secret);

    if (is_read)
        *(stg_sign_secret *)item = secret;
    return is_read;
}

static void load_secrets(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n, void *base)
{
    size_t count, parts = n->kind == STG_NODE_LIST ? n->count : 1;
    stg_sign_secret *secrets;

    if (stg_node_is_null(n)) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    secrets = read_items(l, s, n, sizeof *secrets, read_secret, &count);
    if (n->kind == STG_NODE_LIST && n->count == 0)
        stg_complain(l->c, n->place,
                     "`%s`: an empty list; expected one at least", s->path);
    // Where one is wrong the others have lost their numbers.
    if (secrets != NULL)
        stg_kind_put_list(s, base, secrets, count == parts ? count : 0);
}

static json_t *schema_of_secret(void)
{
    return stg_schema_either(stg_schema_scalar(), stg_schema_file());
}

static json_t *schema_of_secrets(const stg_setting *s)
{
    (void)s;
    return stg_schema_either(schema_of_secret(),
                             stg_schema_list(schema_of_secret()));
}

const stg_kind stg_kind_secrets = {
    .expected = "a list of secrets: {file: PATH}, or SECRET",
    .load = load_secrets,
    .texts = 2,
    .schema = schema_of_secrets,
};
