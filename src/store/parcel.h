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

#include <stagger/ns.h>

#include "base/span.h"
#include "host/wall.h"

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

/* -- ids ----------------------------------------------------------------- */

/* The id of a message of the queue as text: "<epoch, 16 hex
 * digits>-<position>"; stg_store_id() has that of any message.
 *
 * The epoch is of the start that accepted the message (store/ids.h), so an id
 * names one message for all time. */

#define STG_ID_TEXT_MAX 40 /* with the '\0' */

/* Returns text: "00c0ffee00c0ffee-42". */
const char *stg_id_print(uint64_t epoch, uint64_t position,
                         char text[STG_ID_TEXT_MAX]);

/* Reads what print writes, and nothing else: lower case, no leading zeros. */
bool stg_id_parse(const char *text, size_t size, uint64_t *epoch,
                  uint64_t *position);

/* -- times --------------------------------------------------------------- */

/* When a message may be sent: its headers Stagger-Not-Before and
 * Stagger-Expires.
 *
 * Each is an instant, 2026-03-01T12:00:00Z, or how long after the message was
 * accepted, 10m. A parcel has instants only, as the first lines of its headers,
 * behind Stagger-Hops. */

#define STG_NOT_BEFORE "Stagger-Not-Before"
#define STG_EXPIRES "Stagger-Expires"

#define STG_NOT_BEFORE_MAX (30 * STG_DAY) /* ahead */

typedef struct stg_times {
    stg_ns not_before, expires_at; /* by the wall clock; 0: none */
} stg_times;

/* Reads an instant, or a time of up to 365 days after `from` (0: not known, and
 * then this is none). */
bool stg_times_read(stg_span text, stg_ns from, stg_ns *at);

/* Reads both as they were published at `now`; one that is not there has at NULL.
 * NULL: done. Else what is expected, and *is_expires says of which. */
const char *stg_times_read_both(stg_times *t, stg_span not_before,
                                stg_span expires, stg_ns now, bool *is_expires);

/* Writes an instant as a parcel has it. */
stg_span stg_times_print(stg_ns at, char text[STG_UTC_TEXT_MAX]);

enum { STG_TIMES_ROOM = 96 };

/* Writes the lines, STG_TIMES_ROOM bytes at most. Returns the end. */
char *stg_times_put(char *to, const stg_times *t);

/* The times of a parcel's headers. Where they cannot be read not_before is
 * STG_NEVER. */
stg_times stg_times_find(stg_span headers);

/* *headers, behind Stagger-Hops, moves behind what no target is sent:
 * Stagger-Not-Before. */
void stg_times_skip(stg_span *headers);

#endif
