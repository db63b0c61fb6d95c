#include "filter/verdicts.h"

#include <stdio.h>
#include <string.h>

#include <stagger/stagger.h>

#include "tests/harness.h"

static stg_pattern *compile(const char *text)
{
    json_t *source = json_loads(text, 0, NULL);
    stg_pattern_flaw flaw;
    stg_pattern *p = NULL;

    CHECK(source != NULL);
    CHECK_INT(stg_pattern_new(&p, source, &flaw), STG_OK);
    json_decref(source);
    return p;
}

static bool ask(stg_verdicts *v, uint32_t number, uint64_t position,
                const char *body)
{
    return stg_verdicts_ask(v, number,
                            &(stg_asked){.partition = 1,
                                         .position = position,
                                         .body = {body, strlen(body)}});
}

TEST(verdicts, are_found_once_a_message)
{
    stg_verdicts *v = stg_verdicts_new();
    stg_pattern *a = compile("{\"a\": [1]}"), *b = compile("{\"a\": [2]}");
    uint32_t first = stg_verdicts_add(v, a), second = stg_verdicts_add(v, b);

    CHECK(first != second);
    CHECK(ask(v, first, 7, "{\"a\": 1}"));
    // It is not parsed again.
    CHECK(!ask(v, second, 7, "{\"a\": 2}"));
    CHECK(ask(v, first, 7, "none"));
    CHECK(!ask(v, first, 8, "none"));
    CHECK(!ask(v, second, 8, "none"));
    CHECK_U64(stg_verdicts_look(v).json, 1);
    CHECK_U64(stg_verdicts_look(v).not_json, 1);
    // An older one is parsed for who asks.
    CHECK(ask(v, second, 3, "{\"a\": 2}"));
    CHECK(ask(v, first, 3, "{\"a\": 1}"));
    CHECK_U64(stg_verdicts_look(v).json, 1);
    stg_pattern_unref(a);
    stg_pattern_unref(b);
    stg_verdicts_free(v);
}

TEST(verdicts, share_what_equal_patterns_say)
{
    stg_verdicts *v = stg_verdicts_new();
    stg_pattern *a = compile("{\"a\": [1]}"), *same = compile("{\"a\": [1]}");
    uint32_t first = stg_verdicts_add(v, a);

    CHECK_INT(stg_verdicts_add(v, same), first);
    stg_verdicts_remove(v, first);
    stg_pattern_unref(a);
    stg_pattern_unref(same);
    CHECK(ask(v, first, 1, "{\"a\": 1}"));
    stg_verdicts_remove(v, first);
    stg_verdicts_free(v);
}

TEST(verdicts, are_of_the_patterns_that_are_there)
{
    stg_verdicts *v = stg_verdicts_new();
    stg_pattern *a = compile("{\"a\": [1]}"), *b = compile("{\"a\": [2]}");
    uint32_t number = stg_verdicts_add(v, a);

    CHECK(ask(v, number, 1, "{\"a\": 1}"));
    stg_verdicts_remove(v, number);
    CHECK_INT(stg_verdicts_add(v, b), number);
    CHECK(!ask(v, number, 1, "{\"a\": 1}"));
    // It counts once, however often it was looked at.
    CHECK_U64(stg_verdicts_look(v).json, 1);
    stg_pattern_unref(a);
    stg_pattern_unref(b);
    stg_verdicts_free(v);
}

/* Many patterns, asked in the order of lanes: each far into the messages. */
TEST(verdicts, are_the_same_for_many_as_for_one)
{
    enum { PATTERNS = 100, MESSAGES = 3000, ASKED = 300000 };
    stg_verdicts *v = stg_verdicts_new();
    uint32_t numbers[PATTERNS], next[PATTERNS] = {0};
    stg_rng rng = stg_rng_seed(1);
    char text[80];

    for (int i = 0; i < PATTERNS; i++) {
        stg_pattern *p;

        snprintf(text, sizeof text, "{\"a\": [{\"numeric\": [\">\", %d]}, %d]}",
                 i, i - 50);
        p = compile(text);
        numbers[i] = stg_verdicts_add(v, p);
        stg_pattern_unref(p);
    }
    for (int turn = 0; turn < ASKED / 100; turn++) {
        uint32_t lane = (uint32_t)stg_rng_upto(&rng, PATTERNS - 1);

        for (uint64_t k = stg_rng_upto(&rng, 199);
             k > 0 && next[lane] < MESSAGES; k--) {
            int a = (int)(next[lane] * 7 % 131) - 60;

            snprintf(text, sizeof text, "{\"a\": %d}", a);
            CHECK(ask(v, numbers[lane], 10 + 3 * (uint64_t)next[lane]++,
                      text) == (a > (int)lane || a == (int)lane - 50));
        }
    }
    CHECK_U64(stg_verdicts_look(v).json, MESSAGES);
    stg_verdicts_free(v);
}
