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

/* The end of a rule says whether it is a beginning, and not what is before it. */
TEST(header, rules_that_are_empty_match_no_name)
{
    static const char text[] = "*";

    CHECK(stg_header_matches(text, span("a")));
    CHECK(!stg_header_matches(text + 1, span("a")));
    CHECK(stg_header_matches(text + 1, span("")));
}

TEST(header, hops_are_taken_from_where_lines_begin)
{
    stg_span lines = span("Stagger-Hops: 3\r\nA: 1\r\n");

    CHECK_INT(stg_header_take_hops(&lines), 3);
    CHECK_U64(lines.size, 6);
    CHECK_STR(lines.at, "A: 1\r\n");
    CHECK_INT(stg_header_take_hops(&lines), 0);
    CHECK_U64(lines.size, 6);
    lines = span("Stagger-Hops: 8\r\n");
    CHECK_INT(stg_header_take_hops(&lines), 8);
    CHECK_U64(lines.size, 0);
    lines = span("A: 1\r\nStagger-Hops: 3\r\n");
    CHECK_INT(stg_header_take_hops(&lines), 0);
    CHECK_U64(lines.size, 23);
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

/* Each byte at each place, among others that are close to what is forbidden. */
TEST(header, values_have_no_control_characters)
{
    static const char around[] = {' ', '!', '~', '\x80', '\xff', 'a', '\t'};
    char text[33];

    for (size_t size = 3; size <= sizeof text; size++)
        for (size_t at = 1; at + 1 < size; at++)
            for (int byte = 0; byte < 256; byte++) {
                bool is_good = (byte >= ' ' && byte != 0x7f) || byte == '\t';

                memset(text, around[(size + at) % sizeof around], size);
                text[0] = text[size - 1] = 'x';
                text[at] = (char)byte;
                CHECK(stg_header_is_value((stg_span){text, size}) == is_good);
            }
    CHECK(stg_header_is_value(span("")));
    CHECK(!stg_header_is_value(span(" a")));
    CHECK(!stg_header_is_value(span("a\t")));
    CHECK(!stg_header_is_value(span("\x7f")));
}

TEST(header, names_are_tokens)
{
    static const char marks[] = "!#$%&'*+-.^_`|~";

    for (int byte = 0; byte < 256; byte++) {
        const char text[] = {'a', (char)byte, 'b'};
        bool is_letter =
            (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        bool is_good = is_letter || (byte >= '0' && byte <= '9') ||
                       (byte != 0 && strchr(marks, byte) != NULL);

        CHECK(stg_header_is_name((stg_span){text, sizeof text}) == is_good);
    }
    CHECK(!stg_header_is_name(span("")));
}
