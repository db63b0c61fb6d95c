#include "base/text.h"

#include <string.h>

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
