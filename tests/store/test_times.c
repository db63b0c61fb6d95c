#include <stdlib.h>

#include "store/parcel.h"
#include "tests/harness.h"

static stg_span span(const char *text)
{
    return (stg_span){text, strlen(text)};
}

static const stg_ns NOW = UINT64_C(1772366400) * STG_S; /* 2026-03-01T12:00Z */

TEST(times, reads_an_instant_or_how_long_from_now)
{
    stg_ns at = 0;

    CHECK(stg_times_read(span("2026-03-01T12:00:00Z"), 0, &at));
    CHECK_U64(at, NOW);
    CHECK(stg_times_read(span("2026-03-01T12:00:00.25Z"), 0, &at));
    CHECK_U64(at, NOW + 250 * STG_MS);
    CHECK(stg_times_read(span("10m"), NOW, &at));
    CHECK_U64(at, NOW + 10 * STG_MIN);
    CHECK(!stg_times_read(span("10m"), 0, &at)); // from when?
}

TEST(times, reads_nothing_else)
{
    static const char *const wrong[] = {
        "",
        "tomorrow",
        "10",
        "-5m",
        "10m ",
        "1m30",
        "400d",
        "2026-03-01",
        "2026-03-01T12:00:00",
        "2026-03-01T12:00:00+01:00",
        "2026-02-30T12:00:00Z",
        "Sun, 01 Mar 2026 12:00:00 GMT",
        "2026-03-01T12:00:00.000000000000000Z",
    };
    stg_ns at;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_FROM(i, !stg_times_read(span(wrong[i]), NOW, &at));
    CHECK(!stg_times_read((stg_span){"1m\0", 3}, NOW, &at));
}

TEST(times, reads_both_and_says_what_is_wrong)
{
    const stg_span none = {NULL, 0};
    bool is_expires;
    stg_times t;

    CHECK(stg_times_read_both(&t, none, none, NOW, &is_expires) == NULL);
    CHECK(t.not_before == 0 && t.expires_at == 0);
    CHECK(stg_times_read_both(&t, span("30d"), span("31d"), NOW, &is_expires) ==
          NULL);
    CHECK_U64(t.not_before, NOW + 30 * STG_DAY);
    CHECK_U64(t.expires_at, NOW + 31 * STG_DAY);
    CHECK(stg_times_read_both(&t, span("31d"), none, NOW, &is_expires) != NULL);
    CHECK(!is_expires);
    CHECK(stg_times_read_both(&t, none, span("x"), NOW, &is_expires) != NULL);
    CHECK(is_expires);
    CHECK(stg_times_read_both(&t, span("2m"), span("2m"), NOW, &is_expires) !=
          NULL);
    CHECK(is_expires);
    // What is over may be published: the hub before this one held it up.
    CHECK(stg_times_read_both(&t, span("2020-01-01T00:00:00Z"),
                              span("2020-01-02T00:00:00Z"), NOW,
                              &is_expires) == NULL);
}

static void check_lines(const stg_times *t, const char *before)
{
    char lines[STG_TIMES_ROOM + 64], *end = lines;
    stg_times found;

    memcpy(end, before, strlen(before));
    end = stg_times_put(end + strlen(before), t);
    CHECK((size_t)(end - lines) <= strlen(before) + STG_TIMES_ROOM);
    memcpy(end, "X-A: b\r\n", 8);
    found = stg_times_find((stg_span){lines, (size_t)(end - lines) + 8});
    CHECK_U64(found.not_before, t->not_before);
    CHECK_U64(found.expires_at, t->expires_at);
}

TEST(times, finds_what_it_has_written)
{
    check_lines(&(stg_times){0, 0}, "");
    check_lines(&(stg_times){NOW, 0}, "");
    check_lines(&(stg_times){0, NOW}, "Stagger-Hops: 2\r\n");
    check_lines(&(stg_times){NOW + STG_MS, NOW + STG_DAY},
                "Stagger-Hops: 2\r\n");
}

TEST(times, does_not_send_what_it_cannot_read)
{
    CHECK_U64(stg_times_find(span("Stagger-Expires: ? 5\r\n")).not_before,
              STG_NEVER);
    CHECK_U64(stg_times_find(span("Stagger-Not-Before: \r\n")).not_before,
              STG_NEVER);
    CHECK_U64(stg_times_find(span("Stagger-Not-Before: x")).not_before,
              STG_NEVER);
    CHECK_U64(stg_times_find(span("X-A: b\r\n")).not_before, 0);
    CHECK_U64(stg_times_find((stg_span){NULL, 0}).not_before, 0);
}

/* Where the message goes on to another hub it expires there, too. */
TEST(times, passes_on_when_it_expires)
{
    stg_span headers = span(
        "Stagger-Not-Before: 2026-03-01T12:00:00.000Z\r\n"
        "Stagger-Expires: 2026-03-02T12:00:00.000Z\r\n");

    stg_times_skip(&headers);
    CHECK_U64(stg_times_find(headers).not_before, 0);
    CHECK_U64(stg_times_find(headers).expires_at, NOW + STG_DAY);
    stg_times_skip(&headers);
    CHECK_U64(stg_times_find(headers).expires_at, NOW + STG_DAY);
}
