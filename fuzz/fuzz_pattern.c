/* Any bytes as a pattern and a body: a pattern that can be used, or a flaw with its
 * place; and a match that says the same as its explanation, as the pattern printed
 * and read again, and as verdicts.
 *
 * The input is a line, the pattern, and behind it the body. */
#include <string.h>

#include "filter/verdicts.h"
#include "fuzz/fuzz.h"

/* The place is one that there is. */
static void check_flaw(const stg_pattern_flaw *f, json_t *at)
{
    HOLDS(*f->what != '\0' && f->depth <= STG_PATTERN_DEPTH);
    for (const char *c = f->path; *c != '\0'; c++)
        HOLDS((unsigned char)*c >= ' ' && *c != 0x7f);
    for (size_t i = 0; i < f->depth; i++) {
        size_t count = json_array_size(at) + json_object_size(at);
        void *part = json_object_iter(at);

        HOLDS(f->at[i] < count);
        for (size_t k = 0; part != NULL && k < f->at[i]; k++)
            part = json_object_iter_next(at, part);
        at = part != NULL ? json_object_iter_value(part)
                          : json_array_get(at, f->at[i]);
    }
}

/* As one of many, and again. */
static void check_verdict(stg_pattern *p, stg_span body, bool matches)
{
    stg_verdicts *v = stg_verdicts_new();
    uint32_t number = stg_verdicts_add(v, p);

    HOLDS(number != 0 && stg_verdicts_add(v, p) == number);
    for (uint64_t i = 0; i < 4; i++)
        HOLDS(stg_verdicts_ask(v, number,
                               &(stg_asked){.position = 7 - i / 2 * 3,
                                            .body = body}) == matches);
    stg_verdicts_free(v);
}

static void check_reprinted(const stg_pattern *p, json_t *source, json_t *body,
                            bool matches)
{
    char *text = json_dumps(source, JSON_SORT_KEYS);
    json_t *read = json_loads(text, 0, NULL);
    stg_pattern_flaw flaw;
    stg_pattern *again;

    HOLDS(read != NULL && stg_pattern_new(&again, read, &flaw) == STG_OK);
    HOLDS(stg_pattern_equal(p, again));
    HOLDS(stg_pattern_matches(again, body) == matches);
    stg_pattern_unref(again);
    json_decref(read);
    free(text);
}

static void check_pattern(stg_pattern *p, json_t *source, stg_span body)
{
    json_t *json = stg_pattern_parse(body);
    bool matches = stg_pattern_matches(p, json);
    stg_text why = {.size = 0};

    HOLDS(json != NULL || !matches);
    stg_pattern_explain(p, json, "body", &why);
    HOLDS(!why.is_short && (why.size == 0) == matches);
    for (size_t i = 0; i < why.size; i++)
        HOLDS((unsigned char)why.at[i] >= ' ');
    stg_text_free(&why);
    check_reprinted(p, source, json, matches);
    check_verdict(p, body, matches);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
    size_t first = end != NULL ? (size_t)(end - data) : size;
    size_t rest = end != NULL ? size - first - 1 : 0;
    char *body = malloc(rest + (rest == 0)); // exact: a read past it is seen
    json_t *source = json_loadb((const char *)data, first, 0, NULL);
    stg_pattern_flaw flaw;
    stg_pattern *p;

    if (rest > 0)
        memcpy(body, end + 1, rest);
    if (source != NULL && stg_pattern_new(&p, source, &flaw) == STG_OK) {
        check_pattern(p, source, (stg_span){body, rest});
        stg_pattern_unref(p);
    } else if (source != NULL) {
        check_flaw(&flaw, source);
    }
    json_decref(source);
    free(body);
    return 0;
}
