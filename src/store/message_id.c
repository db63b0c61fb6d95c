#include "store/message_id.h"

#include <string.h>

#include "base/digits.h"
#include "base/hex.h"

enum { EPOCH_DIGITS = 16 };

const char *stg_id_print(uint64_t epoch, uint64_t position,
                         char text[STG_ID_TEXT_MAX])
{
    for (int i = 0; i < EPOCH_DIGITS; i++)
        text[i] = "0123456789abcdef"[epoch >> (60 - 4 * i) & 15];
    text[EPOCH_DIGITS] = '-';
    *stg_digits_put(text + EPOCH_DIGITS + 1, position) = '\0';
    return text;
}

static bool read_epoch(const char *text, uint64_t *epoch)
{
    *epoch = 0;
    for (int i = 0; i < EPOCH_DIGITS; i++) {
        int digit = stg_hex_lower(text[i]);

        if (digit < 0)
            return false;
        *epoch = *epoch << 4 | (uint64_t)digit;
    }
    return true;
}

static bool read_position(const char *text, size_t size, uint64_t *position)
{
    *position = 0;
    if (size == 0 || (text[0] == '0' && size > 1))
        return false;
    for (size_t i = 0; i < size; i++) {
        uint64_t digit = (uint64_t)(unsigned char)text[i] - '0';

        if (digit > 9 || *position > (UINT64_MAX - digit) / 10)
            return false;
        *position = *position * 10 + digit;
    }
    return true;
}

bool stg_id_parse(const char *text, size_t size, uint64_t *epoch,
                  uint64_t *position)
{
    return size > EPOCH_DIGITS && text[EPOCH_DIGITS] == '-' &&
           read_epoch(text, epoch) &&
           read_position(text + EPOCH_DIGITS + 1, size - EPOCH_DIGITS - 1,
                         position);
}
