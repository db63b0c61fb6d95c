/* Text into a buffer that may be too small. */
#include "core/writer.h"

#include <inttypes.h>
#include <stdio.h>

#include <stagger/rng.h>

#include "tests/harness.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* A little of everything: 58 letters. */
static void write_all(stg_writer *w)
{
    stg_write_text(w, "text");
    stg_write_char(w, ' ');
    stg_write_part(w, "a\nb\tc", 5);
    stg_write_char(w, ' ');
    stg_write_number(w, UINT64_MAX);
    stg_write_char(w, ' ');
    stg_write_thousandths(w, 1205);
    stg_write_char(w, ' ');
    stg_write_duration(w, 1500 * STG_MS);
    stg_write_text(w, "");
    stg_write_text(w, " behind it all");
}

static const char all[] =
    "text a?b?c 18446744073709551615 1.205 1500ms "
    "behind it all";

TEST(writer, cuts_at_any_size_and_counts_on)
{
    for (size_t size = 0; size < sizeof all + 3; size++) {
        char text[sizeof all + 4];
        size_t kept = size == 0 ? 0 : size - 1;
        stg_writer w;

        memset(text, '#', sizeof text);
        w = stg_writer_on(size == 0 ? NULL : text, size);
        CHECK_FROM(size, size == 0 || text[0] == '\0');
        write_all(&w);
        if (kept > sizeof all - 1)
            kept = sizeof all - 1;
        CHECK_FROM(size, w.length == sizeof all - 1);
        CHECK_FROM(size, memcmp(text, size == 0 ? "#" : all, kept) == 0);
        CHECK_FROM(size, size == 0 || text[kept] == '\0');
        for (size_t i = size; i < sizeof text; i++)
            CHECK_FROM(size, text[i] == '#');
    }
}

TEST(writer, counts_where_there_is_no_place)
{
    stg_writer w = stg_writer_on(NULL, 10);

    write_all(&w);
    CHECK_U64(w.length, sizeof all - 1);
}

TEST(writer, is_terminated_after_each_letter)
{
    char text[8] = "#######";
    stg_writer w = stg_writer_on(text, sizeof text);

    for (size_t length = 1; length < 20; length++) {
        stg_write_char(&w, 'a');
        CHECK_FROM(length, strlen(text) == (length < 7 ? length : 7));
        CHECK_FROM(length, w.length == length);
    }
}

TEST(writer, shows_what_is_not_printable_as_a_question_mark)
{
    for (int c = 0; c < 256; c++) {
        char byte = (char)c, text[4];
        stg_writer w = stg_writer_on(text, sizeof text);

        stg_write_part(&w, &byte, 1);
        CHECK_FROM(c, w.length == 1 && text[1] == '\0');
        CHECK_FROM(c, text[0] == (c >= 32 && c < 127 ? byte : '?'));
    }
}

TEST(writer, writes_whole_numbers)
{
    for (uint64_t seed = 0; seed < seeds(10000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint64_t number = stg_rng_next(&rng) >> stg_rng_upto(&rng, 63);
        char text[24], expected[24];
        stg_writer w = stg_writer_on(text, sizeof text);

        stg_write_number(&w, number);
        snprintf(expected, sizeof expected, "%" PRIu64, number);
        CHECK_FROM(seed, strcmp(text, expected) == 0);
    }
}

TEST(writer, writes_thousandths_without_idle_zeros)
{
    static const struct {
        uint64_t thousandths;
        const char *text;
    } rows[] = {
        {0, "0"},
        {1, "0.001"},
        {10, "0.01"},
        {100, "0.1"},
        {101, "0.101"},
        {110, "0.11"},
        {999, "0.999"},
        {1000, "1"},
        {1001, "1.001"},
        {1010, "1.01"},
        {1100, "1.1"},
        {1500, "1.5"},
        {10000, "10"},
        {1000000000, "1000000"},
        {UINT32_MAX, "4294967.295"},
        {UINT64_MAX, "18446744073709551.615"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[24];
        stg_writer w = stg_writer_on(text, sizeof text);

        stg_write_thousandths(&w, rows[i].thousandths);
        CHECK_STR(text, rows[i].text);
    }
}

TEST(writer, writes_durations_exactly_in_the_largest_unit)
{
    static const struct {
        stg_ns ns;
        const char *text;
    } rows[] = {
        {0, "0"},
        {1, "1ns"},
        {999, "999ns"},
        {1000, "1us"},
        {1001, "1001ns"},
        {STG_MS - STG_US, "999us"},
        {STG_MS, "1ms"},
        {1500 * STG_US, "1500us"},
        {STG_S - STG_MS, "999ms"},
        {STG_S, "1s"},
        {1500 * STG_MS, "1500ms"},
        {59 * STG_S, "59s"},
        {STG_MIN, "1m"},
        {90 * STG_S, "90s"},
        {59 * STG_MIN, "59m"},
        {STG_HOUR, "1h"},
        {90 * STG_MIN, "90m"},
        {23 * STG_HOUR, "23h"},
        {STG_DAY, "1d"},
        {36 * STG_HOUR, "36h"},
        {STG_DAY + 1, "86400000000001ns"},
        {365 * STG_DAY, "365d"},
        {UINT64_MAX - 1, "18446744073709551614ns"},
        {STG_NEVER, "none"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[STG_DURATION_TEXT_MAX];

        CHECK_STR(stg_duration_text(rows[i].ns, text), rows[i].text);
    }
}

static stg_error used_error(void)
{
    stg_error err = {.line = 7, .column = 9};

    memset(err.text, '#', sizeof err.text);
    return err;
}

TEST(writer, puts_words_into_an_error_without_a_place)
{
    stg_error err = used_error();
    stg_writer w = stg_writer_on_error(&err);

    CHECK(err.line == 0 && err.column == 0);
    CHECK_STR(err.text, "");
    stg_write_text(&w, "words");
    CHECK_STR(err.text, "words");

    w = stg_writer_on_error(NULL);
    stg_write_text(&w, "words");
    CHECK_U64(w.length, 5);
}

TEST(writer, refuses_with_what_was_found_and_expected)
{
    stg_error err = used_error();

    CHECK(stg_refuse(&err, "policy is NULL") == STG_INVALID);
    CHECK_STR(err.text, "policy is NULL");
    CHECK(err.line == 0 && err.column == 0);

    CHECK(stg_refuse_number(&err, "attempts", 0, "1 to 9") == STG_INVALID);
    CHECK_STR(err.text, "attempts=0 is out of range, expected 1 to 9");
    CHECK(stg_refuse_thousandths(&err, "factor", 999, "1 to 100") ==
          STG_INVALID);
    CHECK_STR(err.text, "factor=0.999 is out of range, expected 1 to 100");
    CHECK(stg_refuse_duration(&err, "cap", 90 * STG_S, "less") == STG_INVALID);
    CHECK_STR(err.text, "cap=90s is out of range, expected less");
    CHECK(stg_refuse_duration(&err, "base", STG_NEVER, "0 to 365d") ==
          STG_INVALID);
    CHECK_STR(err.text, "base=none is out of range, expected 0 to 365d");

    CHECK(stg_refuse(NULL, "words") == STG_INVALID);
    CHECK(stg_refuse_number(NULL, "key", 1, "2") == STG_INVALID);
    CHECK(stg_refuse_thousandths(NULL, "key", 1, "2") == STG_INVALID);
    CHECK(stg_refuse_duration(NULL, "key", 1, "2") == STG_INVALID);
}

TEST(writer, cuts_a_long_error)
{
    struct {
        stg_error err;
        char behind;
    } guarded = {used_error(), '#'};
    char words[400];

    memset(words, 'w', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    CHECK(stg_refuse(&guarded.err, words) == STG_INVALID);
    CHECK_U64(strlen(guarded.err.text), sizeof guarded.err.text - 1);
    CHECK(guarded.behind == '#');
}
