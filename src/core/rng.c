/* Random numbers by xoshiro256**, seeded by splitmix64 as its authors say, so that
 * seeds that are alike give streams that are not; and keys made of random bytes. */
#include <stagger/rng.h>

#include <stddef.h>

#include <stagger/key.h>

#include "core/rng_draw.h"

stg_rng stg_rng_seed(uint64_t seed)
{
    stg_rng rng;

    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        rng.s[i] = z ^ z >> 31;
    }
    return rng;
}

uint64_t stg_rng_next(stg_rng *rng)
{
    return stg_rng_draw(rng);
}

uint64_t stg_rng_upto(stg_rng *rng, uint64_t limit)
{
    return stg_rng_draw_upto(rng, limit);
}

/* -- keys: version 7 of UUIDs, RFC 9562, section 5.7 */

const char *stg_key_make(char text[STG_KEY_MAX], uint64_t unix_ms,
                         const uint8_t random[10])
{
    uint8_t bytes[16];
    int at = 0;

    if (text == NULL || random == NULL) {
        if (text != NULL)
            text[0] = '\0';
        return text;
    }
    for (int i = 0; i < 6; i++)
        bytes[i] = (uint8_t)(unix_ms >> (40 - 8 * i));
    for (int i = 0; i < 10; i++)
        bytes[6 + i] = random[i];
    bytes[6] = (uint8_t)(0x70 | (bytes[6] & 0x0f)); // version 7
    bytes[8] = (uint8_t)(0x80 | (bytes[8] & 0x3f)); // the variant of RFC 9562
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            text[at++] = '-';
        text[at++] = "0123456789abcdef"[bytes[i] >> 4];
        text[at++] = "0123456789abcdef"[bytes[i] & 15];
    }
    text[at] = '\0';
    return text;
}
