/* Any pattern and any body, against a naive match. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <stagger/stagger.h>

#include "filter/pattern.h"
#include "tests/harness.h"

/* A second definition of a match: choose one item of each list in the body, so
 * that every field has at most one value. A pattern matches if it matches some
 * choice. */

static stg_rng rng;

static uint32_t upto(uint32_t most)
{
    return (uint32_t)stg_rng_upto(&rng, most);
}

static json_t *random_scalar(void)
{
    static const char *const texts[] = {"", "a", "b", "ab", "aB", "ba", "aab"};

    switch (upto(5)) {
    case 0:
        return json_null();
    case 1:
        return json_boolean(upto(1));
    case 2:
        return json_integer(upto(3));
    case 3:
        return json_real(upto(6) / 2.0);
    default:
        return json_string(texts[upto(6)]);
    }
}

static const char *const names[] = {"a", "b", "c", "d", "e"};

static json_t *random_body(int depth);

static json_t *random_value(int depth)
{
    uint32_t what = upto(9), count = upto(2);
    bool has_maps = depth > 0 && upto(1) == 0;
    json_t *list;

    if (depth > 0 && what < 4)
        return random_body(depth - 1);
    if (what < 8)
        return random_scalar();
    list = json_array();
    // Of one kind: what a list of both has of a field is not a choice of one.
    for (uint32_t i = 0; i <= count; i++)
        json_array_append_new(list, has_maps ? random_body(depth - 1)
                                             : random_scalar());
    return list;
}

static json_t *random_body(int depth)
{
    json_t *map = json_object();

    for (int i = 0; i < 5; i++)
        if (upto(3) > 0)
            json_object_set_new(map, names[i], random_value(depth));
    return map;
}

static json_t *random_text(void)
{
    json_t *v = random_scalar();

    while (!json_is_string(v)) {
        json_decref(v);
        v = random_scalar();
    }
    return v;
}

static json_t *random_condition(void)
{
    static const char *const ends[] = {"prefix", "suffix",
                                       "equals-ignore-case"};
    static const char *const stars[] = {"*", "a*", "*b", "a*b", "*a*", "*a*b"};
    static const char *const signs[] = {"=", "<", "<=", ">", ">="};

    switch (upto(6)) {
    case 0:
        return json_pack("{sb}", "exists", (int)upto(1));
    case 1:
        return json_pack("{so}", ends[upto(2)], random_text());
    case 2:
        return json_pack("{s{so}}", ends[upto(1)], "equals-ignore-case",
                         random_text());
    case 3:
        return json_pack("{ss}", "wildcard", stars[upto(5)]);
    case 4:
        return json_pack("{s[sfsi]}", "numeric", signs[upto(4)], upto(4) / 2.0,
                         signs[upto(4)], (int)upto(3));
    case 5:
        return json_pack("{s[oo]}", "anything-but", random_text(),
                         random_text());
    default:
        return json_pack("{s{so}}", "anything-but", ends[upto(2)],
                         random_text());
    }
}

/* Fields of an $or have names that its map has not: else another item of a list
 * may be chosen for them. */
static json_t *random_pattern(int depth, int from, int to)
{
    json_t *map = json_object(), *list;

    for (int i = from; i < to || json_object_size(map) == 0; i++) {
        if (upto(2) > 0)
            continue;
        if (depth > 0 && upto(1) == 0) {
            json_object_set_new(map, names[i % to],
                                random_pattern(depth - 1, 0, 3));
            continue;
        }
        list = json_array();
        for (uint32_t k = upto(2) + 1; k > 0; k--)
            json_array_append_new(list, upto(2) > 0 ? random_condition()
                                                    : random_scalar());
        json_object_set_new(map, names[i % to < from ? from : i % to], list);
    }
    if (from == 0 && upto(2) == 0)
        json_object_set_new(map, "$or",
                            json_pack("[oo]", random_pattern(depth, 3, 5),
                                      random_pattern(depth, 3, 5)));
    return map;
}

static bool naive_glob(const char *p, const char *t)
{
    if (*p == '*')
        return naive_glob(p + 1, t) || (*t != '\0' && naive_glob(p, t + 1));
    return *p == *t && (*p == '\0' || naive_glob(p + 1, t + 1));
}

static bool naive_sign(const char *sign, double a, double b)
{
    return (strchr(sign, '=') != NULL && a == b) || (*sign == '<' && a < b) ||
           (*sign == '>' && a > b);
}

static bool naive_end(bool is_prefix, const json_t *end, const char *text)
{
    const json_t *folded = json_object_get(end, "equals-ignore-case");
    const char *e = json_string_value(folded != NULL ? folded : end);
    size_t size = strlen(e), all = strlen(text);
    const char *at = is_prefix ? text : text + (all - size);

    return all >= size && (folded != NULL ? strncasecmp(at, e, size)
                                          : strncmp(at, e, size)) == 0;
}

static bool naive_passes(json_t *test, const json_t *v)
{
    const char *text = json_string_value(v);
    json_t *to, *part;
    size_t i;

    if (!json_is_object(test))
        return json_is_number(test) && json_is_number(v)
                   ? json_number_value(test) == json_number_value(v)
                   : v != NULL && json_equal(test, v);
    if ((to = json_object_get(test, "exists")) != NULL)
        return json_is_true(to) == (v != NULL && !json_is_object(v));
    if (v == NULL || json_is_object(v))
        return false;
    if ((to = json_object_get(test, "anything-but")) != NULL) {
        json_array_foreach(to, i, part) if (naive_passes(part, v)) return false;
        return !json_is_object(to) || !naive_passes(to, v);
    }
    if ((to = json_object_get(test, "numeric")) != NULL)
        return json_is_number(v) &&
               naive_sign(json_string_value(json_array_get(to, 0)),
                          json_number_value(v),
                          json_number_value(json_array_get(to, 1))) &&
               naive_sign(json_string_value(json_array_get(to, 2)),
                          json_number_value(v),
                          json_number_value(json_array_get(to, 3)));
    if (text == NULL)
        return false;
    if ((to = json_object_get(test, "prefix")) != NULL)
        return naive_end(true, to, text);
    if ((to = json_object_get(test, "suffix")) != NULL)
        return naive_end(false, to, text);
    if ((to = json_object_get(test, "wildcard")) != NULL)
        return naive_glob(json_string_value(to), text);
    return strcasecmp(text, json_string_value(json_object_get(
                                test, "equals-ignore-case"))) == 0;
}

/* Of a body without lists. */
static bool naive_fits(json_t *pattern, const json_t *v)
{
    const char *name;
    json_t *part, *item;
    bool is_met;
    size_t i;

    json_object_foreach(pattern, name, part)
    {
        const json_t *there = json_object_get(v, name);

        is_met = json_is_object(part) && naive_fits(part, there);
        json_array_foreach(part, i, item) is_met |=
            strcmp(name, "$or") == 0 ? naive_fits(item, v)
                                     : naive_passes(item, there);
        if (!is_met)
            return false;
    }
    return true;
}

/* The body with one item in the place of each list, by digits of *choice. */
static json_t *choose(const json_t *v, uint32_t *choice)
{
    json_t *made, *part;
    const char *name;
    size_t count = json_array_size(v);

    if (count > 0) {
        part = json_array_get(v, *choice % count);
        *choice /= (uint32_t)count;
        return choose(part, choice);
    }
    if (!json_is_object(v))
        return json_incref((json_t *)(uintptr_t)v);
    made = json_object();
    json_object_foreach((json_t *)(uintptr_t)v, name, part)
        json_object_set_new(made, name, choose(part, choice));
    return made;
}

/* How many choices there are at most. */
static uint32_t choices_of(json_t *v)
{
    uint32_t all = json_array_size(v) > 0 ? (uint32_t)json_array_size(v) : 1;
    json_t *part;
    const char *name;
    size_t i;

    json_array_foreach(v, i, part) all *= choices_of(part);
    json_object_foreach(v, name, part) all *= choices_of(part);
    return all;
}

static bool naive(json_t *pattern, json_t *body)
{
    uint32_t count = choices_of(body);
    bool fits = false;

    for (uint32_t i = 0; i < count && !fits; i++) {
        uint32_t choice = i;
        json_t *flat = choose(body, &choice);

        fits = naive_fits(pattern, flat);
        json_decref(flat);
    }
    return fits;
}

TEST(pattern, matches_as_a_naive_one_does)
{
    enum { CHOICES = 5000 };
    uint32_t matched = 0, count = 0;

    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_pattern_flaw flaw;
        stg_text why = {.size = 0};
        stg_pattern *p = NULL;
        json_t *source, *body;
        bool does;

        rng = stg_rng_seed(seed);
        source = random_pattern(2, 0, 3);
        body = random_body(2);
        CHECK_FROM(seed, stg_pattern_new(&p, source, &flaw) == STG_OK);
        does = stg_pattern_matches(p, body);
        if (choices_of(body) <= CHOICES) {
            CHECK_FROM(seed, does == naive(source, body));
            matched += does;
            count++;
        }
        stg_pattern_explain(p, body, "body", &why);
        CHECK_FROM(seed, (why.size == 0) == does);
        stg_text_free(&why);
        json_decref(source);
        json_decref(body);
        stg_pattern_unref(p);
    }
    // Both are worth a test.
    CHECK(matched > count / 20 && matched < count - count / 20);
}
