#include "hub/batch.h"

#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"

static stg_span span_of(const char *text)
{
    return (stg_span){text, strlen(text)};
}

static const char *body_of(stg_batch_format format, const char *const *bodies)
{
    static char text[256];
    char *to = text;

    for (size_t i = 0; bodies[i] != NULL; i++)
        to = stg_batch_put(format, to, span_of(bodies[i]), i == 0);
    *stg_batch_end(format, to) = '\0';
    return text;
}

TEST(batch_text, is_an_array_of_what_came)
{
    CHECK_STR(body_of(STG_BATCH_ARRAY, (const char *[]){"1.50", NULL}),
              "[1.50]");
    CHECK_STR(body_of(STG_BATCH_ARRAY,
                      (const char *[]){"{\"a\": 1}", " 2\n", "\"x\"", NULL}),
              "[{\"a\": 1}, 2\n,\"x\"]");
}

TEST(batch_text, is_a_line_each)
{
    CHECK_STR(body_of(STG_BATCH_LINES,
                      (const char *[]){"{\r\n\"a\":\n1}", "2", NULL}),
              "{  \"a\": 1}\n2\n");
}

static const char *refuses(const char *body)
{
    const char *why = NULL;

    return stg_batch_takes(span_of(body), &why) ? "" : why;
}

/* What could be taken for two messages, or for none, is refused. */
TEST(batch_text, takes_one_value_of_json)
{
    CHECK_STR(refuses(" {\"a\": [1, null]} "), "");
    CHECK_STR(refuses("0"), "");
    CHECK_STR(refuses("1,2"), "something behind the value");
    CHECK_STR(refuses("1] [2"), "something behind the value");
    CHECK_STR(refuses("1\n2"), "something behind the value");
    CHECK(refuses("")[0] != '\0');
    CHECK(refuses("[1")[0] != '\0');
    CHECK(refuses("\"\n\"")[0] != '\0');
    CHECK(refuses("\xff")[0] != '\0');
}

/* The ids are hashed, and are known by the first half of SHA-256. */
TEST(batch_text, has_an_id_of_its_messages)
{
    char one[STG_BATCH_ID_MAX], two[STG_BATCH_ID_MAX];

    CHECK(stg_batch_id(span_of("abc"), one));
    CHECK_STR(one, "batch-ba7816bf8f01cfea414140de5dae2223");
    CHECK(stg_batch_id(span_of("abd"), two));
    CHECK(strcmp(one, two) != 0);
}

static bool reads(const char *answer, stg_outcome *o, size_t count)
{
    return stg_batch_results(span_of(answer), o, count);
}

TEST(batch_text, reads_a_result_for_each)
{
    stg_outcome o[3];

    CHECK(
        reads("{\"results\": [{\"status\": 204}, {\"status\": 404},"
              " {\"status\": 429, \"retry-after\": 5, \"more\": []}]}",
              o, 3));
    CHECK(o[0].fault == STG_FAULT_NONE);
    CHECK(o[1].fault == STG_FAULT_4XX && o[1].code == 404);
    CHECK(o[2].fault == STG_FAULT_OVERLOAD && o[2].delay == 5 * STG_S);
}

TEST(batch_text, takes_nothing_else_for_results)
{
    static const char *const wrong[] = {
        "",
        "[]",
        "{}",
        "{\"results\": []}",
        "{\"results\": {\"status\": 200}}",
        "{\"results\": [200]}",
        "{\"results\": [{\"status\": 200}, {\"status\": 200}]}",
        "{\"results\": [{\"status\": \"200\"}]}",
        "{\"results\": [{\"status\": 199}]}",
        "{\"results\": [{\"status\": 600}]}",
        "{\"results\": [{\"status\": 4294967496}]}",
        "{\"results\": [{\"status\": 429, \"retry-after\": -1}]}",
        "{\"results\": [{\"status\": 429, \"retry-after\": \"1\"}]}",
        "{\"results\": [{\"status\": 200}]} x",
    };
    stg_outcome o[1];

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_FROM(i, !reads(wrong[i], o, 1));
}
