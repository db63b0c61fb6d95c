/* base * (factor / 1000)^exponent, against a slow and wide model. */
#include "core/wide.h"

#include <stdbool.h>

#include <stagger/rng.h>

#include "tests/harness.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* -- the model: fixed point, 64 bits before the point and 320 behind it, one
 * multiplication and one division a step. Each rounds down by less than
 * 2^-320; all of them together, grown by 2^64 at most, by less than 2^-239. */

enum { LIMBS = 12, WHOLE = 10 }; /* limb[WHOLE] is the first before the point */

typedef struct model {
    uint32_t limb[LIMBS]; /* the lowest first */
    bool is_exact;        /* nothing was rounded yet */
    bool is_past;         /* 2^64 or more */
} model;

static model model_of(uint64_t base)
{
    model m = {.is_exact = true};

    m.limb[WHOLE] = (uint32_t)base;
    m.limb[WHOLE + 1] = (uint32_t)(base >> 32);
    return m;
}

/* Divides after it multiplied, with a limb to spare. */
static void model_step(model *m, uint32_t factor)
{
    uint32_t limb[LIMBS + 1];
    uint64_t carry = 0;

    for (int i = 0; i < LIMBS; i++) {
        carry += (uint64_t)m->limb[i] * factor;
        limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    limb[LIMBS] = (uint32_t)carry;
    carry = 0;
    for (int i = LIMBS; i >= 0; i--) {
        carry = carry << 32 | limb[i];
        limb[i] = (uint32_t)(carry / 1000);
        carry %= 1000;
    }
    memcpy(m->limb, limb, sizeof m->limb);
    m->is_exact = m->is_exact && carry == 0;
    m->is_past = m->is_past || limb[LIMBS] != 0;
}

static uint64_t model_whole(const model *m)
{
    return (uint64_t)m->limb[WHOLE + 1] << 32 | m->limb[WHOLE];
}

/* What stands behind the point, in 2^-64, rounded down. */
static uint64_t model_rest(const model *m)
{
    return (uint64_t)m->limb[WHOLE - 1] << 32 | m->limb[WHOLE - 2];
}

static bool model_is_whole(const model *m)
{
    for (int i = 0; i < WHOLE; i++)
        if (m->limb[i] != 0)
            return false;
    return m->is_exact;
}

/* Whether a result is the power within the promise: exact where it is a whole
 * number, else low by at most 1 + power / 2^70; and never above the limit. */
static bool is_right(const model *m, uint64_t result, uint64_t limit)
{
    uint64_t whole = model_whole(m);

    if (m->is_past || whole >= limit)
        // A power just above the limit may be low by 1, unless it is whole.
        return result == limit ||
               (!m->is_past && whole == limit && !model_is_whole(m) &&
                result + 1 == limit && model_rest(m) <= whole >> 6);
    if (result == whole)
        return true;
    return result + 1 == whole && !model_is_whole(m) &&
           model_rest(m) <= whole >> 6;
}

/* One in four is near 1, where it takes many steps. */
static uint32_t any_factor(stg_rng *rng)
{
    unsigned shift =
        stg_rng_upto(rng, 3) == 0 ? (unsigned)stg_rng_upto(rng, 12) : 0;

    return (uint32_t)(1001 + stg_rng_upto(rng, UINT64_C(98999) >> shift));
}

/* A round number, or any. */
static uint64_t any_base(stg_rng *rng)
{
    static const uint64_t round[] = {1,         1000,      1000000,
                                     100000000, 200000000, 1000000000};

    if (stg_rng_upto(rng, 1) == 0)
        return round[stg_rng_upto(rng, COUNT(round) - 1)];
    return stg_rng_next(rng) >> stg_rng_upto(rng, 63);
}

static uint64_t any_limit(stg_rng *rng)
{
    return stg_rng_next(rng) >> stg_rng_upto(rng, 63);
}

static void check_past(uint64_t seed, uint64_t base, uint32_t factor,
                       uint32_t exponent)
{
    const uint32_t later[] = {exponent,       exponent + 1,
                              2 * exponent,   exponent | 1u << 31,
                              UINT32_MAX - 1, UINT32_MAX};

    for (size_t i = 0; i < COUNT(later); i++) {
        CHECK_FROM(seed,
                   stg_power(base, factor, later[i], UINT64_MAX) == UINT64_MAX);
        CHECK_FROM(seed, stg_power(base, factor, later[i], UINT64_MAX - 1) ==
                             UINT64_MAX - 1);
        CHECK_FROM(seed, stg_power(base, factor, later[i], base) == base);
    }
}

/* Every exponent up to saturation. */
static void check_all(uint64_t seed, uint64_t base, uint32_t factor,
                      stg_rng *rng)
{
    uint64_t limit = any_limit(rng);
    uint32_t exponent = 0;

    for (model m = model_of(base); !m.is_past; model_step(&m, factor)) {
        CHECK_FROM(seed,
                   is_right(&m, stg_power(base, factor, exponent, UINT64_MAX),
                            UINT64_MAX));
        CHECK_FROM(seed, is_right(&m, stg_power(base, factor, exponent, limit),
                                  limit));
        exponent++;
    }
    check_past(seed, base, factor, exponent);
}

TEST(power, is_right_for_every_exponent)
{
    for (uint64_t seed = 0; seed < seeds(4000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint32_t factor = any_factor(&rng);
        uint64_t base = any_base(&rng);

        if (base > 0)
            check_all(seed, base, factor, &rng);
    }
}

/* 1.001^44383 is still below 2^64: the longest way there is. */
TEST(power, is_right_for_the_smallest_factor)
{
    stg_rng rng = stg_rng_seed(1);

    check_all(1, 1, 1001, &rng);
}

/* A power that is a whole number is that number, however it came about. */
TEST(power, is_exact_where_the_result_is_whole)
{
    static const struct {
        uint64_t base;
        uint32_t factor, exponent;
        uint64_t power;
    } rows[] = {
        {1, 2000, 63, UINT64_C(1) << 63},
        {1, 2000, 64, UINT64_MAX},
        {3, 2000, 62, UINT64_C(3) << 62},
        {1, 3000, 40, UINT64_C(12157665459056928801)},
        {1, 3000, 41, UINT64_MAX},
        {1, 10000, 19, UINT64_C(10000000000000000000)},
        {1, 100000, 9, UINT64_C(1000000000000000000)},
        {3, 999000, 2, 2994003},
        {1024, 1500, 10, 59049},
        {UINT64_C(1) << 40, 1500, 40, UINT64_C(12157665459056928801)},
        {1000000, 1001, 2, 1002001},
        {UINT64_C(1000000000000000000), 1001, 6, UINT64_C(1006015020015006001)},
        {UINT64_C(1) << 63, 1500, 1, UINT64_C(13835058055282163712)},
        {UINT64_MAX / 3 * 2, 1500, 1, UINT64_MAX},
        {UINT64_MAX / 3 * 2 - 2, 1500, 1, UINT64_MAX - 3},
        {1, 1500, 1, 1},
        {1, 1500, 2, 2},
        {1, 1500, 4, 5},
        {1000000, 1999, 2, 3996001},
        {1000000, 2001, 2, 4004001},
        {3, 1001, 1, 3},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        CHECK_U64(stg_power(rows[i].base, rows[i].factor, rows[i].exponent,
                            UINT64_MAX),
                  rows[i].power);
}

TEST(power, stops_at_the_limit)
{
    static const struct {
        uint64_t base, limit;
        uint32_t factor, exponent;
        uint64_t power;
    } rows[] = {
        {1000, 40000, 2000, 5, 32000},
        {1000, 40000, 2000, 6, 40000},
        {1000, 32000, 2000, 5, 32000},
        {1000, 31999, 2000, 5, 31999},
        {1000, 32001, 2000, 5, 32000},
        {1000, 999, 2000, 0, 999},
        {1000, 1000, 2000, 0, 1000},
        {1000, 0, 2000, 7, 0},
        {0, 0, 2000, 7, 0},
        {0, 5, 2000, UINT32_MAX, 0},
        {1001, 1501, 1500, 1, 1501},
        {1001, 1500, 1500, 1, 1500},
        {4, 7, 1500, 1, 6},
        {2, 7, 3000, 1, 6},
        {1, UINT64_MAX - 1, 2000, 64, UINT64_MAX - 1},
        {UINT64_MAX, UINT64_MAX, 100000, UINT32_MAX, UINT64_MAX},
        {UINT64_MAX - 1, UINT64_MAX, 1001, 1, UINT64_MAX},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        CHECK_U64(stg_power(rows[i].base, rows[i].factor, rows[i].exponent,
                            rows[i].limit),
                  rows[i].power);
}

TEST(power, leaves_the_base_with_a_factor_of_one_or_less)
{
    static const uint32_t factors[] = {0, 1, 500, 999, 1000};
    static const uint32_t exponents[] = {0, 1, 2, 1000, UINT32_MAX};

    for (size_t i = 0; i < COUNT(factors); i++)
        for (size_t j = 0; j < COUNT(exponents); j++) {
            CHECK_U64(stg_power(777, factors[i], exponents[j], UINT64_MAX),
                      777);
            CHECK_U64(stg_power(777, factors[i], exponents[j], 776), 776);
            CHECK_U64(stg_power(0, factors[i], exponents[j], 776), 0);
        }
}

/* Factors that no policy can have do no harm. */
TEST(power, takes_any_factor)
{
    for (uint64_t seed = 0; seed < seeds(2000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint32_t factor = (uint32_t)(stg_rng_next(&rng) >> 32) | 1u << 17;
        uint64_t base = any_base(&rng);

        if (base > 0)
            check_all(seed, base, factor, &rng);
    }
    CHECK_U64(stg_power(1, UINT32_MAX, 1, UINT64_MAX), 4294967);
    CHECK_U64(stg_power(1000, UINT32_MAX, 1, UINT64_MAX), UINT32_MAX);
    CHECK_U64(stg_power(1, UINT32_MAX, UINT32_MAX, UINT64_MAX), UINT64_MAX);
}
