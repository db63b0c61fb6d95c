#include "base/hash.h"

#include <string.h>

#include "tests/harness.h"

/* The key is 00 01 ... 0f, and the message of n bytes 00 01 ...; n = 15 is the
 * example of the paper, the others are of its authors' vectors.h. */
TEST(hash, is_siphash)
{
    static const struct {
        size_t size;
        uint64_t hash;
    } vectors[] = {
        {0, UINT64_C(0x726fdb47dd0e0e31)},  {1, UINT64_C(0x74f839c593dc67fd)},
        {2, UINT64_C(0x0d6c8009d9a94f5a)},  {7, UINT64_C(0xab0200f58b01d137)},
        {8, UINT64_C(0x93f5f5799a932462)},  {9, UINT64_C(0x9e0082df0ba9e4b0)},
        {15, UINT64_C(0xa129ca6149be45e5)}, {63, UINT64_C(0x958a324ceb064572)},
    };
    const stg_hash_seed seed = {
        {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};
    unsigned char bytes[64];

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        CHECK_U64(stg_hash(&seed, bytes, vectors[i].size), vectors[i].hash);
    CHECK_U64(stg_hash(&seed, NULL, 0), vectors[0].hash);
}

TEST(hash, depends_on_all_of_its_seed)
{
    stg_hash_seed seed = {{1, 2}};
    uint64_t hash = stg_hash(&seed, "key", 3);

    for (unsigned i = 0; i < 128; i++) {
        seed.at[i / 64] ^= UINT64_C(1) << i % 64;
        CHECK_FROM(i, stg_hash(&seed, "key", 3) != hash);
        seed.at[i / 64] ^= UINT64_C(1) << i % 64;
    }
}
