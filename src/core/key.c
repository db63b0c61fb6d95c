#include <stagger/key.h>

#include <stddef.h>

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
