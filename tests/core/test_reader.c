/* Numbers and durations out of text that is not terminated. */
#include "core/reader.h"

#include <stagger/rng.h>

#include "core/writer.h"
#include "tests/harness.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static stg_reader over(const char *text)
{
    return (stg_reader){text, text + strlen(text)};
}

TEST(reader, takes_pieces_up_to_a_letter)
{
    const char text[] = "a,,bc";
    stg_reader r = over(text), piece;

    piece = stg_read_until(&r, ',');
    CHECK(piece.at == text && piece.end == text + 1 && r.at == text + 2);
    piece = stg_read_until(&r, ',');
    CHECK(piece.at == text + 2 && piece.end == text + 2 && r.at == text + 3);
    piece = stg_read_until(&r, ',');
    CHECK(piece.at == text + 3 && piece.end == text + 5);
    CHECK(stg_reader_is_empty(&r));
    // A comma at the very end and no comma look alike but for where they end.
    piece = stg_read_until(&r, ',');
    CHECK(piece.at == text + 5 && piece.end == text + 5);
}

TEST(reader, takes_a_text_or_moves_nothing)
{
    const char text[] = "retry=5xx";
    stg_reader r = over(text);

    CHECK(!stg_read_text(&r, "once=") && r.at == text);
    CHECK(!stg_read_text(&r, "retry=5xxx") && r.at == text);
    CHECK(stg_read_text(&r, "") && r.at == text);
    CHECK(stg_read_text(&r, "retry=") && r.at == text + 6);
    CHECK(stg_reader_equals(&r, "5xx") && r.at == text + 6);
    CHECK(!stg_reader_equals(&r, "5x"));
    CHECK(!stg_reader_equals(&r, "5xx "));
    CHECK(stg_read_text(&r, "5xx") && stg_reader_is_empty(&r));
    CHECK(stg_reader_equals(&r, "") && !stg_read_text(&r, "5"));
}

TEST(reader, knows_blanks_and_digits)
{
    for (int c = -128; c < 256; c++) {
        bool is_blank = c == ' ' || c == '\t';
        bool is_digit =
            c != 0 && c < 128 && c > 0 && strchr("0123456789", c) != NULL;

        CHECK_FROM(c, stg_is_blank((char)c) == is_blank);
        CHECK_FROM(c, stg_is_digit((char)c) == is_digit);
    }
}

/* What is understood, as a number; and what is left behind it. rest is NULL
 * where nothing is understood. */
typedef struct row {
    const char *text;
    uint64_t number;
    const char *rest;
} row;

static void check_left(const row *r, bool is_read, const stg_reader *left)
{
    if (!is_read)
        CHECK_STR(NULL, r->rest);
    else if (r->rest == NULL)
        CHECK_STR(r->text, "refused");
    else
        CHECK_STR(left->at, r->rest);
}

TEST(reader, reads_whole_numbers_of_32_bits)
{
    static const row rows[] = {
        {"0", 0, ""},
        {"7", 7, ""},
        {"007", 7, ""},
        {"12x", 12, "x"},
        {"1.5", 1, ".5"},
        {"4294967295", UINT32_MAX, ""},
        {"00000000004294967295", UINT32_MAX, ""},
        {"4294967296", 0, NULL},
        {"18446744073709551616", 0, NULL},
        {"18446744073709551617", 0, NULL},
        {"99999999999999999999999999999999", 0, NULL},
        {"", 0, NULL},
        {"x", 0, NULL},
        {"-1", 0, NULL},
        {"+1", 0, NULL},
        {" 1", 0, NULL},
        {"/", 0, NULL},
        {":", 0, NULL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        stg_reader r = over(rows[i].text);
        uint32_t number = 0;

        check_left(&rows[i], stg_read_int(&r, &number), &r);
        CHECK_U64(number, rows[i].number);
    }
}

TEST(reader, reads_decimals_of_three_places)
{
    static const row rows[] = {
        {"0", 0, ""},
        {"1", 1000, ""},
        {"2.5", 2500, ""},
        {"2.05", 2050, ""},
        {"2.005", 2005, ""},
        {"2.500", 2500, ""},
        {"0.999", 999, ""},
        {"2.5004", 2500, "4"},
        {"2.5x", 2500, "x"},
        {"2.5.5", 2500, ".5"},
        {"10/s", 10000, "/s"},
        {"4294967", UINT64_C(4294967000), ""},
        {"4294967.295", UINT32_MAX, ""},
        {"4294968", 0, NULL},
        {"99999999999999999999999999999999", 0, NULL},
        {"1.", 0, NULL},
        {"1.x", 0, NULL},
        {".5", 0, NULL},
        {"-1", 0, NULL},
        {"", 0, NULL},
    };
    stg_reader r = over("4294967.999");
    uint32_t number = 0;

    for (size_t i = 0; i < COUNT(rows); i++) {
        r = over(rows[i].text);
        number = 0;
        check_left(&rows[i], stg_read_decimal(&r, &number), &r);
        CHECK_U64(number, rows[i].number);
    }
    // Past the border it does not wrap.
    r = over("4294967.999");
    CHECK(!stg_read_decimal(&r, &number) || number == UINT32_MAX);
}

TEST(reader, reads_durations_of_whole_nanoseconds)
{
    static const row rows[] = {
        {"0", 0, ""},
        {"0s", 0, ""},
        {"0.000ns", 0, ""},
        {"1ns", 1, ""},
        {"1us", STG_US, ""},
        {"1ms", STG_MS, ""},
        {"1s", STG_S, ""},
        {"1m", STG_MIN, ""},
        {"1h", STG_HOUR, ""},
        {"1d", STG_DAY, ""},
        {"1.5s", 1500 * STG_MS, ""},
        {"0.5d", 12 * STG_HOUR, ""},
        {"0.001d", 86400 * STG_MS, ""},
        {"0.001us", 1, ""},
        {"1.001us", 1001, ""},
        {"5ms,3", 5 * STG_MS, ",3"},
        {"1m30s", STG_MIN, "30s"},
        {"1min", STG_MIN, "in"},
        {"365d", 365 * STG_DAY, ""},
        {"364.999d", 365 * STG_DAY - 86400 * STG_MS, ""},
        {"8760h", 365 * STG_DAY, ""},
        {"525600m", 365 * STG_DAY, ""},
        {"31536000s", 365 * STG_DAY, ""},
        {"31536000000ms", 365 * STG_DAY, ""},
        {"31536000000000us", 365 * STG_DAY, ""},
        {"31536000000000000ns", 365 * STG_DAY, ""},
        {"365.001d", 0, NULL},
        {"366d", 0, NULL},
        {"8761h", 0, NULL},
        {"525601m", 0, NULL},
        {"31536001s", 0, NULL},
        {"31536000001ms", 0, NULL},
        {"31536000000001us", 0, NULL},
        {"31536000000000001ns", 0, NULL},
        {"213504d", 0, NULL},
        {"18446744073709551616ns", 0, NULL},
        {"99999999999999999999999999999999d", 0, NULL},
        {"0.001ns", 0, NULL},
        {"1.5ns", 0, NULL},
        {"0.0001us", 0, NULL},
        {"1", 0, NULL},
        {"00", 0, NULL},
        {"0.5", 0, NULL},
        {"1.s", 0, NULL},
        {".5s", 0, NULL},
        {"1 s", 0, NULL},
        {" 1s", 0, NULL},
        {"-1s", 0, NULL},
        {"1S", 0, NULL},
        {"1w", 0, NULL},
        {"1n", 0, NULL},
        {"s", 0, NULL},
        {"none", 0, NULL},
        {"", 0, NULL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        stg_reader r = over(rows[i].text);
        stg_ns ns = 0;
        bool is_read = stg_read_duration(&r, &ns);

        check_left(&rows[i], is_read, &r);
        if (is_read)
            CHECK_U64(ns, rows[i].number);
    }
}

/* Each reader gets a text that goes on behind its end, and must not look. */
TEST(reader, stops_where_the_piece_ends)
{
    static const char digits[] = "123.456ms";
    uint32_t number;
    stg_ns ns;
    stg_reader r = {digits, digits + 2};

    CHECK(stg_read_int(&r, &number) && number == 12);
    r = (stg_reader){digits, digits};
    CHECK(!stg_read_int(&r, &number));
    r = (stg_reader){digits, digits + 3};
    CHECK(stg_read_decimal(&r, &number) && number == 123000);
    r = (stg_reader){digits, digits + 4};
    CHECK(!stg_read_decimal(&r, &number));
    r = (stg_reader){digits, digits + 5};
    CHECK(stg_read_decimal(&r, &number) && number == 123400);
    r = (stg_reader){digits, digits + 7};
    CHECK(!stg_read_duration(&r, &ns));
    r = (stg_reader){digits, digits + 8};
    CHECK(stg_read_duration(&r, &ns) && ns == 7407360 * STG_MS);
    r = (stg_reader){digits, digits + 3};
    CHECK(!stg_read_text(&r, "123."));
    CHECK(stg_reader_equals(&r, "123"));
    CHECK(stg_read_until(&r, '4').end == digits + 3);
}

TEST(reader, reads_a_headers_count)
{
    static const struct {
        const char *text;
        bool is_read;
        uint64_t count;
    } rows[] = {
        {"0", true, 0},
        {"120", true, 120},
        {"007", true, 7},
        {" 1", true, 1},
        {"\t 1 \t", true, 1},
        {"18446744073709551615", true, UINT64_MAX},
        {"18446744073709551616", true, UINT64_MAX},
        {"99999999999999999999999999999999", true, UINT64_MAX},
        {"", false, 5},
        {"   ", false, 5},
        {"x", false, 5},
        {"12x", false, 5},
        {"12 x", false, 5},
        {"1 2", false, 5},
        {"-1", false, 5},
        {"+1", false, 5},
        {"1.5", false, 5},
        {"1,2", false, 5},
        {"\n1", false, 5},
        {"1\r", false, 5},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t count = 5;

        CHECK_STR(stg_read_count(rows[i].text, &count) ? rows[i].text : NULL,
                  rows[i].is_read ? rows[i].text : NULL);
        if (rows[i].is_read)
            CHECK_U64(count, rows[i].count);
    }
}

TEST(reader, knows_a_word_in_any_case)
{
    stg_reader r = over("Dns_Temporary");

    CHECK(stg_reader_spells(&r, "dns-temporary"));
    CHECK(stg_reader_spells(&r, "DNS_TEMPORARY"));
    CHECK(!stg_reader_spells(&r, "dns temporary"));
    CHECK(!stg_reader_spells(&r, "dns-temporar"));
    CHECK(!stg_reader_spells(&r, "dns-temporary1"));
    r = over("AZaz@[");
    CHECK(stg_reader_spells(&r, "azAZ@["));
    CHECK(!stg_reader_spells(&r, "azAZ`{"));
    r = over("");
    CHECK(stg_reader_spells(&r, "") && !stg_reader_spells(&r, "a"));
}

TEST(reader, reads_what_the_writer_writes)
{
    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint64_t scale = stg_rng_upto(&rng, 63);
        stg_ns ns = (stg_rng_next(&rng) >> scale) % (365 * STG_DAY + 1),
               ns_back;
        uint32_t number = (uint32_t)(stg_rng_next(&rng) >> scale), number_back;
        char text[32];
        stg_writer w = stg_writer_on(text, sizeof text);
        stg_reader r;

        stg_write_duration(&w, ns);
        r = over(text);
        CHECK_FROM(seed, stg_read_duration(&r, &ns_back) && ns_back == ns &&
                             stg_reader_is_empty(&r));

        w = stg_writer_on(text, sizeof text);
        stg_write_thousandths(&w, number);
        r = over(text);
        CHECK_FROM(seed, stg_read_decimal(&r, &number_back) &&
                             number_back == number && stg_reader_is_empty(&r));

        w = stg_writer_on(text, sizeof text);
        stg_write_number(&w, number);
        r = over(text);
        CHECK_FROM(seed, stg_read_int(&r, &number_back) &&
                             number_back == number && stg_reader_is_empty(&r));
    }
}
