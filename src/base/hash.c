#include "base/hash.h"

static uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static void mix(uint64_t v[4], unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

/* Little-endian, 8 bytes at most. */
static uint64_t read_word(const unsigned char *at, size_t size)
{
    uint64_t word = 0;

    for (size_t i = 0; i < size; i++)
        word |= (uint64_t)at[i] << 8 * i;
    return word;
}

static void add_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    mix(v, 2);
    v[0] ^= word;
}

stg_hash_seed stg_hash_seed_draw(const stg_env *env)
{
    stg_hash_seed seed;

    seed.at[0] = env->random(env->ctx);
    seed.at[1] = env->random(env->ctx);
    return seed;
}

uint64_t stg_hash(const stg_hash_seed *seed, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    size_t left = size;
    // "somepseudorandomlygeneratedbytes"
    uint64_t v[4] = {seed->at[0] ^ UINT64_C(0x736f6d6570736575),
                     seed->at[1] ^ UINT64_C(0x646f72616e646f6d),
                     seed->at[0] ^ UINT64_C(0x6c7967656e657261),
                     seed->at[1] ^ UINT64_C(0x7465646279746573)};

    for (; left >= 8; left -= 8, at += 8)
        add_word(v, read_word(at, 8));
    add_word(v, read_word(at, left) | (uint64_t)size << 56);
    v[2] ^= 0xff;
    mix(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
