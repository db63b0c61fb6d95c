#include <stdlib.h>

#include <stagger/rng.h>

#include "store/parcel.h"
#include "tests/harness.h"

static stg_span span(const char *text)
{
    return (stg_span){text, strlen(text)};
}

static bool is_same(stg_span a, stg_span b)
{
    return a.size == b.size && (a.size == 0 || !memcmp(a.at, b.at, a.size));
}

static void check_round(const stg_parcel *p, uint64_t seed)
{
    size_t size = stg_parcel_size(p);
    char *bytes = malloc(size);
    stg_parcel found;

    CHECK(bytes != NULL);
    memset(bytes, 0x5a, size);
    stg_parcel_pack(p, bytes);
    CHECK_FROM(seed, stg_parcel_unpack(&found, bytes, size));
    CHECK_FROM(seed, is_same(found.content_type, p->content_type));
    CHECK_FROM(seed, is_same(found.headers, p->headers));
    CHECK_FROM(seed, is_same(found.key, p->key));
    CHECK_FROM(seed, is_same(found.body, p->body));
    CHECK_FROM(seed, is_same(found.source_key, p->source_key));
    CHECK_FROM(seed, is_same(found.source_headers, p->source_headers));
    CHECK_FROM(seed,
               (found.source_key.at == NULL) == (p->source_key.at == NULL));
    CHECK_FROM(seed, (found.source_headers.at == NULL) ==
                         (p->source_headers.at == NULL));
    CHECK_FROM(seed, stg_parcel_size(&found) == size);
    free(bytes);
}

TEST(parcel, unpacks_what_was_packed)
{
    stg_parcel p = {.content_type = span("application/json"),
                    .headers = span("A: 1\r\nB: 2\r\n"),
                    .key = span("user-7"),
                    .body = {"a\0b", 3}};

    check_round(&p, 0);
    check_round(&(stg_parcel){.body = {NULL, 0}}, 0);
    // What was not kept of the source is not what is empty.
    p.source_key = span("");
    check_round(&p, 0);
    p.source_headers = span("");
    check_round(&p, 0);
    p.source_key = (stg_span){NULL, 0};
    check_round(&p, 0);
}

TEST(parcel, unpacks_spans_of_any_size)
{
    static char bytes[70000];

    for (uint64_t seed = 0; seed < seeds(200); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        stg_span spans[6];

        for (int i = 0; i < 6; i++) {
            uint64_t most = (uint64_t)1 << stg_rng_upto(&rng, 16);

            spans[i] = (stg_span){bytes, (size_t)stg_rng_upto(&rng, most)};
        }
        check_round(&(stg_parcel){spans[0], spans[1], spans[2], spans[3],
                                  spans[4], spans[5]},
                    seed);
    }
}

/* Whatever is cut off, it is no parcel, or one whose body is shorter. */
TEST(parcel, is_none_when_its_spans_are_cut)
{
    stg_parcel p = {span("text/plain"), span("A: 1\r\n"), span("k"),
                    span("body"),       span("raw"),      span("headers")};
    size_t size = stg_parcel_size(&p);

    for (size_t cut = 0; cut <= size; cut++) {
        // Exactly as many bytes, for the sanitizer to see a step beyond.
        char *bytes = malloc(size), *part = malloc(cut + 1);
        stg_parcel found = {.body = {NULL, 99}};
        bool is_one;

        CHECK(bytes != NULL && part != NULL);
        stg_parcel_pack(&p, bytes);
        part = realloc(part, cut > 0 ? cut : 1);
        memcpy(part, bytes, cut);
        is_one = stg_parcel_unpack(&found, part, cut);
        CHECK_FROM(cut, is_one == (cut >= size - p.body.size));
        CHECK_FROM(cut, is_one ? found.body.size == cut - (size - 4)
                               : found.body.size == 99);
        free(bytes);
        free(part);
    }
}

TEST(parcel, is_none_of_another_version_or_with_sizes_beyond_the_end)
{
    stg_parcel p = {span("t"),    span("A: 1\r\n"), span("k"),
                    span("body"), span("raw"),      span("headers")};
    char bytes[64];
    size_t size = stg_parcel_size(&p);
    stg_parcel found;

    CHECK(size <= sizeof bytes);
    stg_parcel_pack(&p, bytes);
    CHECK(stg_parcel_unpack(&found, bytes, size));
    bytes[0]++;
    CHECK(!stg_parcel_unpack(&found, bytes, size));
    bytes[0]--;
    for (int at = 1; at < 13; at++) {
        char was = bytes[at];

        bytes[at] = (char)0xff;
        CHECK_FROM(at, !stg_parcel_unpack(&found, bytes, size));
        bytes[at] = was;
    }
    CHECK(stg_parcel_unpack(&found, bytes, size));
}

/* The vectors of the function's authors. */
TEST(parcel, hashes_keys_as_fnv_1a)
{
    CHECK_U64(stg_parcel_hash(span("a")), UINT64_C(0xaf63dc4c8601ec8c));
    CHECK_U64(stg_parcel_hash(span("foobar")), UINT64_C(0x85944171f73967e8));
    CHECK_U64(stg_parcel_hash(span("")), 0);
    CHECK_U64(stg_parcel_hash((stg_span){NULL, 0}), 0);
    // A key whose hash would be 0, which means no key.
    CHECK_U64(
        stg_parcel_hash((stg_span){"\xd5\x6b\xb9\x53\x42\x87\x08\x36", 8}), 1);
}

/* -- ids --------------------------------------------------------------------- */

TEST(id, is_read_as_it_was_printed)
{
    for (uint64_t seed = 0; seed < seeds(1000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint64_t epoch = stg_rng_next(&rng), e;
        uint64_t position = stg_rng_next(&rng) >> stg_rng_upto(&rng, 63), p;
        char text[STG_ID_TEXT_MAX];

        stg_id_print(epoch, position, text);
        CHECK_FROM(seed, stg_id_parse(text, strlen(text), &e, &p));
        CHECK_FROM(seed, e == epoch && p == position);
    }
}

TEST(id, is_sixteen_hex_digits_and_a_number)
{
    char text[STG_ID_TEXT_MAX];

    CHECK_STR(stg_id_print(0, 0, text), "0000000000000000-0");
    CHECK_STR(stg_id_print(UINT64_C(0xfedcba9876543210), 1234567890, text),
              "fedcba9876543210-1234567890");
    CHECK_STR(stg_id_print(UINT64_MAX, UINT64_MAX, text),
              "ffffffffffffffff-18446744073709551615");
}

TEST(id, is_nothing_else)
{
    static const char *const wrong[] = {
        "",
        "0123456789abcdef",
        "0123456789abcdef-",
        "0123456789abcdef-01",
        "0123456789abcdef--1",
        "0123456789abcdef-1 ",
        "0123456789ABCDEF-1",
        "0123456789abcde-12",
        "0123456789abcdef0-1",
        "0123456789abcdef-18446744073709551616",
    };
    uint64_t e, p;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK(!stg_id_parse(wrong[i], strlen(wrong[i]), &e, &p));
    CHECK(stg_id_parse("0123456789abcdef-18446744073709551615", 37, &e, &p));
    CHECK_U64(p, UINT64_MAX);
}
