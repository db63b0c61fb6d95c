#include "chart/text_buffer.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#include "tests/harness.h"
#include "tests/sim/memory.h"

#include <stagger/rng.h>

static test_memory told;

/* The text of the buffer, which is empty then; lent until the next call. */
static const char *take(stg_text_buffer *p)
{
    static char text[400];

    snprintf(text, sizeof text, "%s", p->text == NULL ? "" : p->text);
    stg_text_buffer_free(p);
    CHECK_INT(told.held, 0);
    return text;
}

static const char *people(double number)
{
    stg_memory memory = test_memory_of(&told);
    stg_text_buffer p = stg_text_buffer_on(&memory);

    stg_text_buffer_put_rounded(&p, number);
    return take(&p);
}

static const char *fixed(double number, int places)
{
    stg_memory memory = test_memory_of(&told);
    stg_text_buffer p = stg_text_buffer_on(&memory);

    stg_text_buffer_put_fixed(&p, number, places);
    return take(&p);
}

static const char *number(double x, int digits)
{
    stg_memory memory = test_memory_of(&told);
    stg_text_buffer p = stg_text_buffer_on(&memory);

    stg_text_buffer_put_number(&p, x, digits);
    return take(&p);
}

static const char *time_of(double ms)
{
    stg_memory memory = test_memory_of(&told);
    stg_text_buffer p = stg_text_buffer_on(&memory);

    stg_text_buffer_put_time(&p, ms);
    return take(&p);
}

TEST(text_buffer, writes_numbers_as_people_do)
{
    CHECK_STR(people(0), "0");
    CHECK_STR(people(7), "7");
    CHECK_STR(people(-12.5), "-12.5");
    CHECK_STR(people(0.00449), "0.00449");
    CHECK_STR(people(1.006), "1.01");
    CHECK_STR(people(99.96), "100");
    CHECK_STR(people(999.6), "1,000");
    CHECK_STR(people(1802.4), "1,802");
    CHECK_STR(people(25e6), "25,000,000");
    CHECK_STR(people(2.5e17), "2.5e+17");
    CHECK_STR(people(0.000001234), "1.23e-6");
    CHECK_STR(people(INFINITY), "none");
    CHECK_STR(people(NAN), "none");
}

TEST(text_buffer, writes_coordinates)
{
    CHECK_STR(fixed(12.34, 1), "12.3");
    CHECK_STR(fixed(12.96, 1), "13");
    CHECK_STR(fixed(-0.04, 1), "0");
    CHECK_STR(fixed(-0.06, 1), "-0.1");
    CHECK_STR(fixed(123456.789, 3), "123456.789");
    CHECK_STR(fixed(100, 0), "100");
    CHECK_STR(fixed(-NAN, 1), "none");
}

TEST(text_buffer, writes_numbers_for_machines)
{
    CHECK_STR(number(0, 6), "0");
    CHECK_STR(number(1802.5, 6), "1802.5");
    CHECK_STR(number(999999.7, 6), "1000000");
    CHECK_STR(number(0.0125, 6), "0.0125");
    CHECK_STR(number(-0.000123456, 3), "-0.000123");
    CHECK_STR(number(1e15, 3), "1e+15");
    CHECK_STR(number(9.996e20, 3), "1e+21");
    CHECK_STR(number(DBL_MAX, 6), "1.79769e+308");
    CHECK_STR(number(DBL_MIN, 6), "2.22507e-308");
}

TEST(text_buffer, agrees_with_the_c_library_on_nine_digits)
{
    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        double x = (double)(stg_rng_next(&rng) >> 11), read;

        x = ldexp(x, (int)stg_rng_upto(&rng, 200) - 150);
        CHECK_FROM(seed, sscanf(number(x, 9), "%lf", &read) == 1);
        CHECK_FROM(seed, fabs(read - x) <= x * 0.500001e-8);
    }
}

TEST(text_buffer, says_times_in_a_unit_that_fits)
{
    CHECK_STR(time_of(0), "0 ms");
    CHECK_STR(time_of(12.34), "12.3 ms");
    CHECK_STR(time_of(1802), "1.8 s");
    CHECK_STR(time_of(60e3), "1 min");
    CHECK_STR(time_of(9000e3), "2.5 h");
    CHECK_STR(time_of(86400e3 * 3), "3 d");
    CHECK_STR(time_of(0.25), "250 us");
    CHECK_STR(time_of(0.000025), "25 ns");
    CHECK_STR(time_of(-1500), "-1.5 s");
    CHECK_STR(time_of(INFINITY), "none");
}

static const char *counted(double number)
{
    stg_memory memory = test_memory_of(&told);
    stg_text_buffer p = stg_text_buffer_on(&memory);

    stg_text_buffer_put_counted(&p, number, " call", " calls");
    return take(&p);
}

TEST(text_buffer, says_one_of_what_is_printed_as_one)
{
    CHECK_STR(counted(1), "1 call");
    CHECK_STR(counted(1.004), "1 call");
    CHECK_STR(counted(1.01), "1.01 calls");
    CHECK_STR(counted(0), "0 calls");
    CHECK_STR(counted(5000), "5,000 calls");
}

static const char *percent(double share)
{
    stg_memory memory = test_memory_of(&told);
    stg_text_buffer p = stg_text_buffer_on(&memory);

    stg_text_buffer_put_percent(&p, share);
    return take(&p);
}

TEST(text_buffer, says_shares_in_percent)
{
    CHECK_STR(percent(0), "0 %");
    CHECK_STR(percent(0.00005), "less than 0.01 %");
    CHECK_STR(percent(0.125), "12.5 %");
    CHECK_STR(percent(1), "100 %");
}

TEST(text_buffer, escapes_what_xml_reads)
{
    stg_memory memory = test_memory_of(&told);
    stg_text_buffer p = stg_text_buffer_on(&memory);

    stg_text_buffer_put_escaped(&p, "a<b & \"c\">\001\xc3\xa4");
    CHECK_STR(take(&p), "a&lt;b &amp; &quot;c&quot;&gt;?\xc3\xa4");
}

TEST(text_buffer, fills_forms)
{
    stg_memory memory = test_memory_of(&told);
    stg_text_buffer p = stg_text_buffer_on(&memory);

    stg_text_buffer_form(&p, "%s|%e|%d|%f|100%%", "<", "<", -7, 2.25);
    CHECK_STR(take(&p), "<|&lt;|-7|2.3|100%");
}

TEST(text_buffer, grows_and_says_when_it_could_not)
{
    stg_memory memory = test_memory_of(&told);
    stg_text_buffer p = stg_text_buffer_on(&memory);

    told.left = 3;
    for (int i = 0; i < 5000; i++)
        stg_text_buffer_put(&p, "0123456789");
    CHECK(p.is_short);
    CHECK_INT(p.length, 16380); // three allocations: 4, 8 and 16 KiB
    CHECK_INT(strlen(p.text), p.length);
    stg_text_buffer_clear(&p);
    CHECK(!p.is_short && p.length == 0);
    stg_text_buffer_free(&p);
}
