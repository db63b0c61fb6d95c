/* A message of Kafka as a parcel: headers through the allow list, the key as
 * one that can stand in a header, the value as the body; and what dead letters
 * have of it beside these: the bytes of the key, and all headers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/evp.h>

#include "base/text.h"
#include "base/visible.h"
#include "http/header.h"
#include "kafka/internal.h"
#include "store/parcel.h"

enum {
    ENCODED_MAX = 180, /* bytes of a key that fit in base64 */
    HASH_SIZE = 32,
    UNREAD_MAX = 64, /* bytes that are kept of a time that cannot be read */
    TIME_MAX = UNREAD_MAX + 32,
};

typedef struct lines {
    char at[STG_HEADERS_SIZE_MAX + 2 * TIME_MAX];
    size_t size;
    uint32_t lost; /* headers that are none of HTTP's, or have no room */
} lines;

static char *put(char *to, const void *bytes, size_t size)
{
    if (size > 0)
        memcpy(to, bytes, size);
    return to + size;
}

/* A key that is no text cannot stand in a header: it is told in base64, or, if
 * it is too long for that, by its hash. Different keys stay different. */
static stg_span text_of_key(stg_span key, char text[STG_KEY_SIZE_MAX + 1])
{
    unsigned char hash[HASH_SIZE];

    if (key.size == 0 || stg_parcel_is_key(key))
        return key;
    if (key.size <= ENCODED_MAX) {
        char *end = stg_base64_put(put(text, "base64:", 7), key);

        return (stg_span){text, (size_t)(end - text)};
    }
    (void)put(text, "sha256:", 7);
    if (EVP_Digest(key.at, key.size, hash, NULL, EVP_sha256(), NULL) != 1)
        return (stg_span){NULL, 0};
    for (size_t i = 0; i < HASH_SIZE; i++)
        snprintf(text + 7 + 2 * i, 3, "%02x", hash[i]);
    return (stg_span){text, 7 + 2 * HASH_SIZE};
}

static void add_line(lines *l, stg_span name, stg_span value)
{
    size_t size = name.size + 2 + value.size + 2;
    char *to = l->at + l->size;

    if (size + l->size > sizeof l->at) {
        l->lost++;
        return;
    }
    to = put(put(to, name.at, name.size), ": ", 2);
    // An attribute of a CloudEvent: see kafka/headers.c.
    if (stg_header_matches("ce-*", name))
        l->at[l->size + 2] = '-';
    (void)put(put(to, value.at, value.size), "\r\n", 2);
    l->size = stg_header_fold(l->at, l->size + size, l->size);
}

/* Headers that the rules leave out are not lost: nobody wants them. */
static void add_header(const stg_kafka_options *o, stg_span name,
                       stg_span value, lines *l, stg_parcel *p)
{
    bool is_type = stg_header_equal(name, "Content-Type"),
         is_webhook = stg_header_equal(name, STG_KAFKA_WEBHOOK_HEADER);

    if (is_webhook)
        name = (stg_span){STG_WEBHOOK_HEADER, sizeof STG_WEBHOOK_HEADER - 1};
    else if (!is_type && !stg_headers_keep(o->headers, name))
        return;
    if (!stg_header_is_name(name) || !stg_header_is_value(value) ||
        (is_type && value.size > STG_KEY_SIZE_MAX))
        l->lost++;
    else if (!is_type)
        add_line(l, name, value);
    else if (value.size > 0)
        p->content_type = value;
}

/* A message that was posted to a hub says how many it has come through, ahead of
 * all others: see stg_header_take_hops(). */
static void read_hops(const rd_kafka_headers_t *headers, lines *l)
{
    static const char name[] = "Stagger-Hops";
    stg_span value;

    if (rd_kafka_header_get_last(headers, name, (const void **)&value.at,
                                 &value.size) == RD_KAFKA_RESP_ERR_NO_ERROR &&
        value.at != NULL && value.size == 1 && value.at[0] > '0' &&
        value.at[0] <= '0' + STG_HOPS_MAX)
        add_line(l, (stg_span){name, sizeof name - 1}, value);
}

static stg_ns created_at(const rd_kafka_message_t *m)
{
    rd_kafka_timestamp_type_t type;
    int64_t ms = rd_kafka_message_timestamp(m, &type);

    if (type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE || ms <= 0)
        return 0;
    return (uint64_t)ms > STG_NEVER / STG_MS ? 0 : (uint64_t)ms * STG_MS;
}

/* One that cannot be read, is there twice, or is too far ahead, is kept for people to see, as "? "
 * and what it was; the message is not sent. */
static stg_span tell_unread(stg_span text, char told[TIME_MAX])
{
    if (text.at == NULL || text.size > UNREAD_MAX || !stg_header_is_value(text))
        return (stg_span){"?", 1};
    (void)put(put(told, "? ", 2), text.at, text.size);
    return (stg_span){told, 2 + text.size};
}

/* Finds the last header of that name, in any case. Returns how many there are. */
static unsigned find_header(const rd_kafka_headers_t *headers, const char *name,
                            stg_span *value)
{
    unsigned count = 0;
    const char *each;
    stg_span found;

    for (size_t i = 0;
         rd_kafka_header_get_all(headers, i, &each, (const void **)&found.at,
                                 &found.size) == RD_KAFKA_RESP_ERR_NO_ERROR;
         i++)
        if (strcasecmp(each, name) == 0) {
            *value = found;
            count++;
        }
    return count;
}

/* Behind the hops, and ahead of all others: see store/parcel.h. */
static void read_time(const rd_kafka_headers_t *headers, const char *name,
                      stg_ns from, stg_ns most, lines *l)
{
    char told[TIME_MAX];
    stg_span text = {NULL, 0};
    stg_ns at;
    unsigned count = find_header(headers, name, &text);

    if (count == 0)
        return;
    if (count == 1 && text.at != NULL && stg_times_read(text, from, &at) &&
        (from == 0 || at <= stg_ns_add(from, most)))
        text = stg_times_print(at, told);
    else
        text = tell_unread(text, told);
    add_line(l, (stg_span){name, strlen(name)}, text);
}

/* The hub's own come first in a parcel, in a fixed order, where attempts look for
 * them; then those that go on. */
static void read_headers(const stg_kafka_options *o,
                         const rd_kafka_message_t *m, lines *l, stg_parcel *p)
{
    stg_ns at = created_at(m);
    rd_kafka_headers_t *headers;
    const char *text;
    stg_span name, value;

    if (rd_kafka_message_headers(m, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    read_hops(headers, l);
    read_time(headers, STG_NOT_BEFORE, at, STG_NOT_BEFORE_MAX, l);
    read_time(headers, STG_EXPIRES, at, STG_NEVER, l);
    for (size_t i = 0;
         rd_kafka_header_get_all(headers, i, &text, (const void **)&value.at,
                                 &value.size) == RD_KAFKA_RESP_ERR_NO_ERROR;
         i++) {
        name = (stg_span){text, strlen(text)};
        if (value.at == NULL)
            value.size = 0;
        add_header(o, name, value, l, p);
    }
}

/* Whether a letter that has the text of the key has its bytes with it, wherever
 * it is printed. */
static bool is_told(stg_span key, stg_span text)
{
    return key.at == NULL || (key.size > 0 && key.at == text.at &&
                              stg_utf8_is_text(key.at, key.size));
}

/* The headers are the caller's to free. */
static void keep_source(const stg_kafka_options *o, const rd_kafka_message_t *m,
                        stg_parcel *p)
{
    stg_span key = {m->key, m->key_len};
    size_t most = o->message_max / 2;

    if (!is_told(key, p->key) && key.size <= most) {
        p->source_key = key;
        most -= key.size;
    }
    if (o->keeps_source)
        p->source_headers = stg_kafka_headers_pack(m, most);
}

/* A record that is too large goes on without its body, so that the position is there
 * to become a dead letter. */
bool stg_kafka_record(const stg_kafka_options *o, stg_kafka_batch *b,
                      const rd_kafka_message_t *m, stg_record *record,
                      uint32_t *lost)
{
    char key[STG_KEY_SIZE_MAX + 1];
    lines l;
    stg_parcel p = {.body = {m->payload, m->len}};
    bool is_large = m->len > o->message_max;
    stg_times times;
    void *bytes;

    if (m->payload == NULL && o->null == STG_KAFKA_NULL_SKIP)
        return false;
    l.size = l.lost = 0;
    if (o->content_type != NULL)
        p.content_type = (stg_span){o->content_type, strlen(o->content_type)};
    if (m->key != NULL)
        p.key = text_of_key((stg_span){m->key, m->key_len}, key);
    keep_source(o, m, &p);
    read_headers(o, m, &l, &p);
    *lost = l.lost;
    p.headers = (stg_span){l.at, l.size};
    times = stg_times_find(p.headers);
    if (is_large)
        p.body = (stg_span){NULL, 0};
    *record = (stg_record){
        .position = (uint64_t)m->offset,
        .key = stg_parcel_hash(p.key),
        .created_at = created_at(m),
        .not_before = times.not_before,
        .expires_at = times.expires_at,
        .size = stg_parcel_size(&p),
        .true_size = is_large ? m->len : 0,
        .headers_lost = o->keeps_headers ? l.lost : 0,
    };
    record->bytes = bytes = stg_kafka_batch_bytes(b, record->size);
    stg_parcel_pack(&p, bytes);
    free((char *)(uintptr_t)p.source_headers.at);
    return true;
}

void stg_kafka_identify(const stg_kafka_options *o, stg_kafka_batch *b,
                        size_t slot, const rd_kafka_message_t *m)
{
    rd_kafka_headers_t *headers;
    stg_record_id id;
    stg_span text;

    if (o->place != NULL &&
        rd_kafka_message_headers(m, &headers) == RD_KAFKA_RESP_ERR_NO_ERROR &&
        rd_kafka_header_get_last(headers, STG_KAFKA_ID_HEADER,
                                 (const void **)&text.at,
                                 &text.size) == RD_KAFKA_RESP_ERR_NO_ERROR &&
        stg_kafka_id_read(text, &id))
        stg_kafka_batch_identify(b, slot, &id);
}
