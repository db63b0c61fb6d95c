/* Names of header fields, and lines of them. */
#include <string.h>

#include "http/header.h"
#include "tests/harness.h"

static stg_span span(const char *text)
{
    return (stg_span){text, strlen(text)};
}

TEST(header, names_are_the_same_in_any_case_and_with_either_dash)
{
    CHECK(stg_header_same(span("X-Api-Key"), span("x_API-key")));
    CHECK(!stg_header_same(span("X-Api-Key"), span("X-Api-Key2")));
    CHECK(!stg_header_same(span("X-Api-Key"), span("X-Api.Key")));
    CHECK(stg_header_matches("X-*", span("x_a")));
    CHECK(!stg_header_matches("X-*", span("X")));
    CHECK(stg_header_is_framing(span("content_length")));
    CHECK(!stg_header_is_framing(span("content_lengths")));
    CHECK(stg_header_is_hubs(span("stagger_attempt")));
    CHECK(stg_header_is_hubs(span("Webhook-Id")));
    CHECK(stg_header_is_hubs(span("Traceparent")));
    CHECK(!stg_header_is_hubs(span("X-Stagger")));
}

/* Folds the lines one by one, as they come. */
static void check_folded(const char *lines, const char *folded)
{
    stg_span left = span(lines), line;
    char text[200];
    size_t size = 0;

    while ((line = stg_header_next(&left)).size > 0) {
        memcpy(text + size, line.at, line.size);
        size = stg_header_fold(text, size + line.size, size);
    }
    text[size] = '\0';
    CHECK_STR(text, folded);
}

TEST(header, lines_of_one_name_become_one)
{
    check_folded("", "");
    check_folded("A: 1\r\n", "A: 1\r\n");
    check_folded("A: 1\r\nB: 2\r\n", "A: 1\r\nB: 2\r\n");
    check_folded("A: 1\r\na: 2\r\n", "A: 1, 2\r\n");
    check_folded("X-A: one\r\nB: 2\r\nx_a: three\r\nB: \r\nX-a: 4\r\n",
                 "X-A: one, three, 4\r\nB: 2\r\n");
    check_folded("A: \r\nA: \r\n", "A: \r\n");
    check_folded("A: \r\nB: 1\r\nA: 2\r\nA: \r\nA: 3\r\n",
                 "A: 2, 3\r\nB: 1\r\n");
}
