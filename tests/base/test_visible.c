#include <stdio.h>
#include <string.h>

#include "base/visible.h"
#include "tests/harness.h"

static const char *clean(const char *text, stg_visible_in in)
{
    static char cleaned[128];

    snprintf(cleaned, sizeof cleaned, "%s", text);
    return stg_visible_string(cleaned, in);
}

TEST(visible, leaves_text_as_it_is)
{
    const char *text =
        "gr\xc3\xb6\xc3\x9f"
        "er \xe2\x82\xac \xf0\x9f\x91\xa9"
        "\xe2\x80\x8d\xf0\x9f\x92\xbb";

    CHECK_STR(clean(text, STG_VISIBLE_IN_LINE), text);
    CHECK_STR(clean("a\n\tb", STG_VISIBLE_IN_TEXT), "a\n\tb");
}

TEST(visible, hides_what_a_terminal_obeys)
{
    CHECK_STR(clean("\033[2J\x7f\r", STG_VISIBLE_IN_TEXT), "?[2J??");
    // U+0085, U+009B, of C1.
    CHECK_STR(clean("\xc2\x85\xc2\x9b"
                    "31m",
                    STG_VISIBLE_IN_TEXT),
              "??31m");
    CHECK_STR(clean("a\n\tb", STG_VISIBLE_IN_LINE), "a??b");
}

TEST(visible, hides_what_turns_text_round_or_cannot_be_seen)
{
    static const char *const hidden[] = {
        "\xd8\x9c",     "\xe2\x80\x8b", "\xe2\x80\x8e",    "\xe2\x80\x8f",
        "\xe2\x80\xa8", "\xe2\x80\xaa", "\xe2\x80\xae",    "\xe2\x81\xa6",
        "\xe2\x81\xa9", "\xef\xbb\xbf", "\xf3\xa0\x81\x81"};

    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        CHECK_STR(clean(hidden[i], STG_VISIBLE_IN_TEXT), "?");
}

TEST(visible, hides_bytes_that_are_no_utf8_one_by_one)
{
    CHECK_STR(clean("a\xff\x9b"
                    "b",
                    STG_VISIBLE_IN_TEXT),
              "a??b");
    // Cut off, too long for its value, a surrogate.
    CHECK_STR(clean("\xe2\x82", STG_VISIBLE_IN_TEXT), "??");
    CHECK_STR(clean("\xc0\x9b\xed\xa0\x80", STG_VISIBLE_IN_TEXT), "?????");
}

TEST(visible, ends_lines_of_text_in_one_way)
{
    CHECK_STR(clean("a\r\nb\rc", STG_VISIBLE_IN_TEXT), "a\nb?c");
}

TEST(visible, has_ascii_alone_in_columns)
{
    CHECK_STR(clean("a \xc3\xb6 \xe2\x82\xac", STG_VISIBLE_IN_COLUMN), "a ? ?");
}

TEST(visible, escapes_as_json_does)
{
    char text[STG_VISIBLE_ESCAPE_MAX + 1] = "";

    CHECK(stg_visible_escape(0x9b, text) == 6);
    CHECK_STR(text, "\\u009b");
    CHECK(stg_visible_escape(0xe0041, text) == 12);
    CHECK_STR(text, "\\udb40\\udc41");
}
