/* A parcel's bytes: the sizes of its parts ahead, and the parts one behind the other, so
 * that unpacking copies nothing. */
#include "store/parcel.h"

#include <string.h>

#include "base/digits.h"
#include "http/header.h"

/* The layout: a byte for the version, the sizes of all spans but the body in 32
 * bits each, little end first, and the spans; the body is the rest. Version 2
 * has what was kept of the source: a span that is NULL has the size ABSENT. */
enum { PLAIN = 1, WITH_SOURCE = 2, SIZES = 3, SOURCE_SIZES = 5 };

static const size_t ABSENT = UINT32_MAX;

static bool has_source(const stg_parcel *p)
{
    return p->source_key.at != NULL || p->source_headers.at != NULL;
}

static size_t head_size(bool has_source)
{
    return 1 + 4 * (size_t)(has_source ? SOURCE_SIZES : SIZES);
}

static unsigned char *put_span(unsigned char *at, stg_span span)
{
    if (span.size > 0)
        memcpy(at, span.at, span.size);
    return at + span.size;
}

static size_t stored_size(stg_span span)
{
    return span.at == NULL ? ABSENT : span.size;
}

size_t stg_parcel_size(const stg_parcel *p)
{
    return head_size(has_source(p)) + p->content_type.size + p->headers.size +
           p->key.size + p->source_key.size + p->source_headers.size +
           p->body.size;
}

/* Writes version 1 where it is enough, so that messages without a source cost
 * no byte more. The caller has stg_parcel_size() bytes. */
void stg_parcel_pack(const stg_parcel *p, void *bytes)
{
    unsigned char *at = bytes;
    bool is_wide = has_source(p);

    at[0] = is_wide ? WITH_SOURCE : PLAIN;
    stg_little_put(at + 1, (uint32_t)p->content_type.size);
    stg_little_put(at + 5, (uint32_t)p->headers.size);
    stg_little_put(at + 9, (uint32_t)p->key.size);
    if (is_wide) {
        stg_little_put(at + 13, (uint32_t)stored_size(p->source_key));
        stg_little_put(at + 17, (uint32_t)stored_size(p->source_headers));
    }
    at = put_span(at + head_size(is_wide), p->content_type);
    at = put_span(at, p->headers);
    at = put_span(at, p->key);
    at = put_span(at, p->source_key);
    at = put_span(at, p->source_headers);
    (void)put_span(at, p->body);
}

/* Takes size bytes from what is left, if there are as many. */
static bool take(stg_span *left, size_t size, stg_span *span)
{
    if (size > left->size)
        return false;
    *span = (stg_span){left->at, size};
    left->at += size;
    left->size -= size;
    return true;
}

static bool take_source(stg_span *left, size_t size, stg_span *span)
{
    return size == ABSENT || take(left, size, span);
}

/* Checks every size; where it fails, *p is left as it was. */
bool stg_parcel_unpack(stg_parcel *p, const void *bytes, size_t size)
{
    const unsigned char *head = bytes;
    stg_span left;
    stg_parcel found = {.body = {NULL, 0}};
    bool is_wide = size > 0 && head[0] == WITH_SOURCE;
    size_t first = head_size(is_wide);

    if (size < first || (!is_wide && head[0] != PLAIN))
        return false;
    left = (stg_span){(const char *)bytes + first, size - first};
    if (!take(&left, stg_little_get(head + 1), &found.content_type) ||
        !take(&left, stg_little_get(head + 5), &found.headers) ||
        !take(&left, stg_little_get(head + 9), &found.key))
        return false;
    if (is_wide &&
        (!take_source(&left, stg_little_get(head + 13), &found.source_key) ||
         !take_source(&left, stg_little_get(head + 17), &found.source_headers)))
        return false;
    found.body = left;
    *p = found;
    return true;
}

bool stg_parcel_is_key(stg_span key)
{
    return key.size > 0 && key.size <= STG_KEY_SIZE_MAX &&
           stg_header_is_value(key);
}

/* 0 means "no key", and so a key whose hash is 0 has 1. Stored rows rely on the
 * function: it cannot be changed. */
uint64_t stg_parcel_hash(stg_span key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    if (key.size == 0)
        return 0;
    for (size_t i = 0; i < key.size; i++) {
        hash ^= (unsigned char)key.at[i];
        hash *= UINT64_C(0x100000001b3);
    }
    return hash == 0 ? 1 : hash;
}
