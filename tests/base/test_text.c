#include "base/text.h"

#include <string.h>

#include <stagger/rng.h>

#include "tests/harness.h"

TEST(text, grows_by_what_is_added)
{
    stg_text t = {.size = 0};

    for (uint64_t i = 0; i < 1000; i++) {
        stg_text_put_number(&t, i);
        stg_text_add(&t, ",", 1);
    }
    stg_text_put_number(&t, UINT64_MAX);
    CHECK(!t.is_short && t.size == 10 + 180 + 2700 + 1000 + 20);
    CHECK(memcmp(t.at, "0,1,2,3,", 8) == 0);
    CHECK(memcmp(t.at + t.size - 24, "999,18446744073709551615", 24) == 0);
    stg_text_free(&t);
    CHECK(t.at == NULL && t.size == 0 && t.room == 0);
}

TEST(text, counts_reserved_room_when_its_size_is_raised)
{
    stg_text t = {.size = 0};
    char *to = stg_text_reserve(&t, 5000);

    CHECK(to != NULL && t.size == 0 && t.room >= 5000);
    memcpy(to, "abc", 3);
    t.size += 3;
    stg_text_put(&t, "d");
    CHECK(t.size == 4 && memcmp(t.at, "abcd", 4) == 0);
    stg_text_free(&t);
}

TEST(text, stays_short_until_it_is_cleared)
{
    stg_text t = {.size = 0};

    stg_text_put(&t, "a");
    CHECK(stg_text_reserve(&t, SIZE_MAX) == NULL);
    CHECK(t.is_short);
    stg_text_put(&t, "b");
    CHECK(t.is_short && t.size == 1);
    stg_text_clear(&t);
    stg_text_put(&t, "c");
    CHECK(!t.is_short && t.size == 1 && t.at[0] == 'c');
    stg_text_free(&t);
}

static stg_span span_of(const char *text)
{
    return (stg_span){text, strlen(text)};
}

/* The vectors of RFC 4648, section 10, and the two digits that are neither
 * letters nor numbers. */
static const struct {
    const char *bytes, *text;
} vectors[] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xfb\xef\xbe", "++++"},
    {"\xff\xff\xff", "////"},
};

TEST(base64, is_that_of_the_rfc_in_both_directions)
{
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        char text[16] = "", bytes[16] = "";
        size_t size = 99;

        *stg_base64_put(text, span_of(vectors[i].bytes)) = '\0';
        CHECK_STR(text, vectors[i].text);
        CHECK_U64(stg_base64_size(strlen(vectors[i].bytes)), strlen(text));
        CHECK(stg_base64_read(bytes, span_of(vectors[i].text), &size));
        CHECK_U64(size, strlen(vectors[i].bytes));
        CHECK(memcmp(bytes, vectors[i].bytes, size) == 0);
    }
}

TEST(base64, any_bytes_come_back_also_in_place)
{
    char bytes[64], text[88];
    stg_rng rng = stg_rng_seed(7);

    for (size_t size = 0; size <= sizeof bytes; size++) {
        size_t length = stg_base64_size(size), back = 0;

        for (size_t i = 0; i < size; i++)
            bytes[i] = (char)stg_rng_next(&rng);
        CHECK(stg_base64_put(text, (stg_span){bytes, size}) == text + length);
        CHECK(stg_base64_read(text, (stg_span){text, length}, &back));
        CHECK_U64(back, size);
        CHECK(memcmp(text, bytes, size) == 0);
    }
}

TEST(base64, what_is_none_is_refused)
{
    static const char *const texts[] = {
        "Z",    "Zg",    "Zg=",  "Zg==Z", "Z===", "====", "Zm=v", "Zh==",
        "Zm9=", "Zm9\n", "Zm9-", "Zm9_",  "Zm9:", "Zm9@", "Zm9[", "Zm9{",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char bytes[16];
        size_t size;

        CHECK(!stg_base64_read(bytes, span_of(texts[i]), &size));
    }
}
