/* Headers of records: made of lines of HTTP; and all headers of a record as one
 * run of bytes, for a copy of its dead letter: with their order, those that are
 * there twice, and values of any bytes, or null.
 *
 * The run is: how many have no room in it; then of each header the size of its name and of
 * its value (NO_VALUE: it is null), the name and the value. Numbers have 32
 * bits, little end first. */
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "http/header.h"
#include "kafka/internal.h"

enum { NUMBER = 4, HEAD = 2 * NUMBER, CE_NAME_MAX = 64 };

static const uint32_t NO_VALUE = UINT32_MAX;

typedef struct header {
    const char *name;
    size_t name_size;
    const void *value; /* NULL: it is null */
    size_t value_size;
} header;

static char *put_number(char *to, uint32_t number)
{
    stg_little_put(to, number);
    return to + NUMBER;
}

static char *put_bytes(char *to, const void *bytes, size_t size)
{
    if (size > 0)
        memcpy(to, bytes, size);
    return to + size;
}

static bool read_header(const rd_kafka_headers_t *all, size_t i, header *h)
{
    if (all == NULL ||
        rd_kafka_header_get_all(all, i, &h->name, &h->value, &h->value_size) !=
            RD_KAFKA_RESP_ERR_NO_ERROR)
        return false;
    h->name_size = strlen(h->name);
    if (h->value == NULL)
        h->value_size = 0;
    return true;
}

static char *put_header(char *to, const header *h)
{
    to = put_number(to, (uint32_t)h->name_size);
    to = put_number(to, h->value == NULL ? NO_VALUE : (uint32_t)h->value_size);
    to = put_bytes(to, h->name, h->name_size);
    return put_bytes(to, h->value, h->value_size);
}

/* The size of all headers that fit into `most` bytes, from the first on.
 * *left_out: how many do not. */
static size_t measure(const rd_kafka_headers_t *all, size_t most,
                      uint32_t *left_out)
{
    size_t size = NUMBER;
    header h;

    *left_out = 0;
    for (size_t i = 0; read_header(all, i, &h); i++) {
        size_t more = HEAD + h.name_size + h.value_size;

        if (*left_out > 0 || size + more > most)
            ++*left_out;
        else
            size += more;
    }
    return size;
}

/* As many whole headers as fit, behind the number of those that did not. */
stg_span stg_kafka_headers_pack(const rd_kafka_message_t *m, size_t most)
{
    rd_kafka_headers_t *all = NULL;
    uint32_t left_out;
    size_t size;
    char *bytes, *to;
    header h;

    if (rd_kafka_message_headers(m, &all) != RD_KAFKA_RESP_ERR_NO_ERROR)
        all = NULL;
    size = measure(all, most, &left_out);
    bytes = malloc(size);
    if (bytes == NULL)
        abort();
    to = put_number(bytes, left_out);
    for (size_t i = 0; to < bytes + size && read_header(all, i, &h); i++)
        to = put_header(to, &h);
    return (stg_span){bytes, size};
}

/* Bytes come from the store, and are believed only as far as they are consistent. */
uint32_t stg_kafka_headers_unpack(stg_span packed, rd_kafka_headers_t *to)
{
    const char *at = packed.at, *end = at + packed.size;

    if (packed.size < NUMBER)
        return 0;
    for (at += NUMBER; end - at >= HEAD;) {
        size_t name = stg_little_get(at), value = stg_little_get(at + NUMBER);
        bool is_null = value == NO_VALUE;

        at += HEAD;
        if (is_null)
            value = 0;
        if (name + value > (size_t)(end - at))
            break;
        (void)rd_kafka_header_add(to, at, (ssize_t)name,
                                  is_null ? NULL : at + name, (ssize_t)value);
        at += name + value;
    }
    return stg_little_get(packed.at);
}

/* -- of lines -------------------------------------------------------------- */

void stg_kafka_headers_add(rd_kafka_headers_t *to, const char *name,
                           stg_span value)
{
    (void)rd_kafka_header_add(to, name, -1, value.at, (ssize_t)value.size);
}

/* An attribute of a CloudEvent is ce_NAME in Kafka, and ce-NAME in HTTP. Source:
 * CloudEvents 1.0.2, "Kafka Protocol Binding", 3.2.3.1. */
static stg_span name_in_kafka(stg_span name, char text[CE_NAME_MAX])
{
    if (stg_header_equal(name, STG_WEBHOOK_HEADER))
        return (stg_span){STG_KAFKA_WEBHOOK_HEADER,
                          sizeof STG_KAFKA_WEBHOOK_HEADER - 1};
    if (name.size > CE_NAME_MAX || !stg_header_matches("ce-*", name))
        return name;
    memcpy(text, name.at, name.size);
    text[2] = '_';
    return (stg_span){text, name.size};
}

void stg_kafka_headers_add_lines(rd_kafka_headers_t *to, stg_span lines)
{
    char text[CE_NAME_MAX];
    stg_span line;

    while ((line = stg_header_next(&lines)).size > 0) {
        stg_span name = stg_header_name(line);
        size_t before = name.size + 2, around = before + 2; // ": ", "\r\n"
        stg_span as = name_in_kafka(name, text);

        if (name.size > 0 && line.size >= around)
            (void)rd_kafka_header_add(to, as.at, (ssize_t)as.size,
                                      line.at + before,
                                      (ssize_t)(line.size - around));
    }
}

stg_span stg_kafka_id_print(const stg_record_id *id,
                            char text[STG_KAFKA_ID_TEXT_MAX])
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < STG_RECORD_ID_SIZE; i++) {
        text[2 * i] = digits[id->at[i] >> 4];
        text[2 * i + 1] = digits[id->at[i] & 15];
    }
    return (stg_span){text, STG_KAFKA_ID_TEXT_MAX};
}

bool stg_kafka_id_read(stg_span text, stg_record_id *id)
{
    if (text.at == NULL || text.size != STG_KAFKA_ID_TEXT_MAX)
        return false;
    for (size_t i = 0; i < STG_RECORD_ID_SIZE; i++) {
        int high = stg_hex_lower(text.at[2 * i]),
            low = stg_hex_lower(text.at[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        id->at[i] = (unsigned char)(high << 4 | low);
    }
    return !stg_record_id_is_none(id);
}
