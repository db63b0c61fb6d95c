/* origin.h - clients, and what each of them has of the server: I32.
 *
 * A client is an address, IPv4 or an IPv6 /64, which one customer of a provider
 * has whole; or whoever has shown who it is, wherever it connects from. Private
 * to the server and its users. */
#ifndef STAGGER_HTTP_ORIGIN_H
#define STAGGER_HTTP_ORIGIN_H

#include <netinet/in.h>

#include "base/hash.h"
#include "base/list.h"

enum { STG_ORIGIN_SLOTS = 1024 }; /* a power of two */

typedef struct stg_origin {
    stg_link link;
    unsigned char prefix[16]; /* IPv4 as ::ffff:a.b.c.d; 0xff...: of a key */
    uint32_t uses;            /* of whoever holds it */
    uint32_t connections;
    stg_list heading, idle; /* of stg_inbound.origin_queue, the longest first */
    uint32_t waiting;       /* a user's: messages, */
    size_t pending;         /* and bytes */
} stg_origin;

typedef struct stg_origins {
    stg_list slots[STG_ORIGIN_SLOTS];
    stg_hash_seed seed;
} stg_origins;

void stg_origins_init(stg_origins *all);

/* The one of an address, which is NULL or of another family for a socket of this
 * machine; held once more. NULL: no memory. */
stg_origin *stg_origin_hold(stg_origins *all, const struct sockaddr *from);
void stg_origin_release(stg_origin *o);

/* The same of one that has shown who it is: by a pointer, which is never read. */
stg_origin *stg_origin_hold_key(stg_origins *all, const void *key);

/* The address for people. Returns text. */
const char *stg_origin_print(const stg_origin *o, char text[INET6_ADDRSTRLEN]);

#endif
