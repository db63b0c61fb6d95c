/* Message ids as text, and back: "<epoch>-<position>" of the queue, and
 * "TOPIC.PARTITION.OFFSET" of a log, with ".EPOCH" behind it unless that is 0.
 *
 * What is read is printed again and compared: so an id has one spelling, and an
 * epoch that was never that position's names nothing. A topic's name may have
 * dots and numbers of its own: so an id is not taken apart, but tried against
 * each partition that the store knows.
 *
 * stg_id_print() and stg_id_parse() at the end know the first form alone. */
#include "store/ids.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "store/parcel.h"

/* Digits and no more than those behind a prefix. */
static bool read_number(const char *text, size_t size, uint64_t *number)
{
    char *end;

    if (size == 0 || strspn(text, "0123456789") < size)
        return false;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && end == text + size;
}

/* -- the queue ------------------------------------------------------------- */

/* The position is read first, for it decides which epoch the id must have. */
static bool parse_queue(const stg_ids *ids, const char *id, uint64_t *position)
{
    char same[STG_MESSAGE_ID_MAX];

    return strspn(id, "0123456789abcdef") == 16 && id[16] == '-' &&
           read_number(id + 17, strlen(id + 17), position) &&
           stg_epochs_have(ids->epochs, *position) &&
           strcmp(stg_ids_print(ids, 0, *position, same), id) == 0;
}

/* -- topics ---------------------------------------------------------------- */

/* 249 characters are the longest name that Kafka lets a topic have; with the
 * numbers and the epoch the text stays below STG_MESSAGE_ID_MAX. */
const char *stg_ids_print_record(const stg_partition_row *p, uint64_t position,
                                 char text[STG_MESSAGE_ID_MAX])
{
    int size = snprintf(text, STG_MESSAGE_ID_MAX, "%.249s.%" PRIu32 ".%" PRIu64,
                        p->topic, p->partition, position);

    if (p->epoch != 0)
        snprintf(text + size, STG_MESSAGE_ID_MAX - (size_t)size, ".%016" PRIx64,
                 p->epoch);
    return text;
}

/* Topics have dots in their names, and so are looked for, not cut out. */
static bool parse_topic(const stg_partition_row *p, const char *id,
                        uint64_t *position)
{
    char same[STG_MESSAGE_ID_MAX];
    size_t size = strlen(p->topic);
    char *end;

    if (strncmp(id, p->topic, size) != 0 || id[size] != '.')
        return false;
    id += size + 1;
    size = strspn(id, "0123456789");
    if (strtoull(id, &end, 10) != p->partition || *end != '.')
        return false;
    id += size + 1;
    if (!read_number(id, strspn(id, "0123456789"), position))
        return false;
    (void)stg_ids_print_record(p, *position, same);
    return strcmp(same + strlen(p->topic) + 1 + size + 1, id) == 0;
}

/* -- both ------------------------------------------------------------------ */

const char *stg_ids_print(const stg_ids *ids, uint32_t number,
                          uint64_t position, char text[STG_MESSAGE_ID_MAX])
{
    const stg_partition_row *p =
        number == 0 ? NULL : stg_partitions_get(ids->partitions, number);

    if (p != NULL)
        return stg_ids_print_record(p, position, text);
    if (number == 0)
        (void)stg_id_print(stg_epochs_at(ids->epochs, position), position,
                           text);
    else
        snprintf(text, STG_MESSAGE_ID_MAX, "%" PRIu32 "-%" PRIu64, number,
                 position);
    return text;
}

bool stg_ids_parse(const stg_ids *ids, const char *id, uint32_t *number,
                   uint64_t *position)
{
    *number = 0;
    if (parse_queue(ids, id, position))
        return true;
    for (uint32_t i = 1; i < ids->partitions->count; i++) {
        const stg_partition_row *p = stg_partitions_get(ids->partitions, i);

        if (p != NULL && parse_topic(p, id, position)) {
            *number = i;
            return true;
        }
    }
    return false;
}

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

/* Rejects leading zeros and what does not fit into 64 bits. */
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
