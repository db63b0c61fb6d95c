/* parcel.h - a message as the hub packs it: what a delivery needs, in one run
 * of bytes that flow carries and does not read.
 *
 * Headers are whole lines as they go out, "Name: value\r\n" each, without
 * Content-Type. Strings are not terminated. */
#ifndef STAGGER_STORE_PARCEL_H
#define STAGGER_STORE_PARCEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

enum {
    STG_KEY_SIZE_MAX = 256, /* bytes of an ordering or idempotency key */
    STG_HEADERS_SIZE_MAX = 16 * 1024, /* of a message's headers, as lines */
};

typedef struct stg_parcel {
    stg_span content_type; /* empty: none was given */
    stg_span headers;
    stg_span key; /* the ordering key; empty: none */
    stg_span body;
    /* Of a record of another log, for a copy of its dead letter; at is NULL: it
     * was not kept, and an empty one is another thing. */
    stg_span source_key;     /* where `key` is not its bytes, or no UTF-8 */
    stg_span source_headers; /* all of them: see kafka/headers.c */
} stg_parcel;

/* The bytes that stg_parcel_pack() writes. */
size_t stg_parcel_size(const stg_parcel *p);
void stg_parcel_pack(const stg_parcel *p, void *bytes);

/* Points into bytes. False: they are no parcel. */
bool stg_parcel_unpack(stg_parcel *p, const void *bytes, size_t size);

/* Whether a key may be used: 1 to STG_KEY_SIZE_MAX bytes that could stand in a
 * header. */
bool stg_parcel_is_key(stg_span key);

/* The hash of an ordering key, FNV-1a in 64 bits; never 0 but for no key. It is
 * stored, and the same in every hub; tables whose keys come from outside use
 * base/hash.h. */
uint64_t stg_parcel_hash(stg_span key);

#endif
