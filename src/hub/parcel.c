#include "hub/parcel.h"

#include <string.h>

/* The layout: a byte for the version, the sizes of the first three spans in 32
 * bits each, little end first, and the four spans; the body is the rest. */
enum { VERSION = 1, SIZES = 3, HEAD = 1 + 4 * SIZES };

static void put_size(unsigned char *at, size_t size)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(size >> (8 * i));
}

static size_t get_size(const unsigned char *at)
{
    size_t size = 0;

    for (int i = 0; i < 4; i++)
        size |= (size_t)at[i] << (8 * i);
    return size;
}

static unsigned char *put_span(unsigned char *at, stg_span span)
{
    if (span.size > 0)
        memcpy(at, span.at, span.size);
    return at + span.size;
}

size_t stg_parcel_size(const stg_parcel *p)
{
    return HEAD + p->content_type.size + p->headers.size + p->key.size +
           p->body.size;
}

void stg_parcel_pack(const stg_parcel *p, void *bytes)
{
    unsigned char *at = bytes;

    at[0] = VERSION;
    put_size(at + 1, p->content_type.size);
    put_size(at + 5, p->headers.size);
    put_size(at + 9, p->key.size);
    at = put_span(at + HEAD, p->content_type);
    at = put_span(at, p->headers);
    at = put_span(at, p->key);
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

bool stg_parcel_unpack(stg_parcel *p, const void *bytes, size_t size)
{
    const unsigned char *head = bytes;
    stg_span left;
    stg_parcel found;

    if (size < HEAD || head[0] != VERSION)
        return false;
    left = (stg_span){(const char *)bytes + HEAD, size - HEAD};
    if (!take(&left, get_size(head + 1), &found.content_type) ||
        !take(&left, get_size(head + 5), &found.headers) ||
        !take(&left, get_size(head + 9), &found.key))
        return false;
    found.body = left;
    *p = found;
    return true;
}

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
