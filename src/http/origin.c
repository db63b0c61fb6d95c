/* Where connections come from: an address of IPv4, a /64 of IPv6, a socket of Unix, or a
 * key of the caller's; each is there while somebody holds it. */
#include "http/server.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

void stg_origins_init(stg_origins *all)
{
    all->seed = stg_hash_seed_draw(stg_env_system());
    for (size_t i = 0; i < STG_ORIGIN_SLOTS; i++)
        stg_list_init(&all->slots[i]);
}

/* Reads the part of an address that stands for one caller: the /64 of an IPv6
 * address, since one caller may have all of it; the whole of an IPv4 address,
 * as a mapped one. A Unix socket has no address, and is `::`. */
static void read_prefix(const struct sockaddr *from, unsigned char prefix[16])
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

    memset(prefix, 0, 16);
    if (from == NULL)
        return;
    if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)from;
        bool is_mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);

        memcpy(prefix, &v6->sin6_addr, is_mapped ? 16 : 8);
    } else if (from->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)from;

        memcpy(prefix, mapped, sizeof mapped);
        memcpy(prefix + sizeof mapped, &v4->sin_addr, 4);
    }
}

/* Callers choose their addresses, and must not know which share a slot. */
static stg_list *slot_of(stg_origins *all, const unsigned char prefix[16])
{
    uint64_t hash = stg_hash(&all->seed, prefix, 16);

    return &all->slots[hash & (STG_ORIGIN_SLOTS - 1)];
}

static stg_origin *find(const stg_list *slot, const unsigned char prefix[16])
{
    for (stg_link *at = stg_list_first(slot); at != NULL;
         at = stg_list_next(slot, at)) {
        stg_origin *o = STG_HOLDER(at, stg_origin, link);

        if (memcmp(o->prefix, prefix, sizeof o->prefix) == 0)
            return o;
    }
    return NULL;
}

static stg_origin *hold(stg_origins *all, const unsigned char prefix[16])
{
    stg_list *slot = slot_of(all, prefix);
    stg_origin *o = find(slot, prefix);

    if (o == NULL) {
        o = calloc(1, sizeof *o);
        if (o == NULL)
            return NULL;
        memcpy(o->prefix, prefix, sizeof o->prefix);
        stg_list_init(&o->heading);
        stg_list_init(&o->idle);
        stg_list_push(slot, &o->link);
    }
    o->uses++;
    return o;
}

stg_origin *stg_origin_hold(stg_origins *all, const struct sockaddr *from)
{
    unsigned char prefix[16];

    read_prefix(from, prefix);
    return hold(all, prefix);
}

/* Nobody connects from ff00::/8, which is multicast. */
stg_origin *stg_origin_hold_key(stg_origins *all, const void *key)
{
    unsigned char prefix[16] = {0xff};

    memcpy(prefix + 8, &key, sizeof key);
    return hold(all, prefix);
}

void stg_origin_release(stg_origin *o)
{
    if (--o->uses > 0)
        return;
    stg_list_remove(&o->link);
    free(o);
}

const char *stg_origin_print(const stg_origin *o, char text[INET6_ADDRSTRLEN])
{
    struct in6_addr address;

    memcpy(&address, o->prefix, sizeof address);
    if (IN6_IS_ADDR_UNSPECIFIED(&address))
        memcpy(text, "unix", sizeof "unix"); // nobody connects from ::
    else if (IN6_IS_ADDR_V4MAPPED(&address))
        inet_ntop(AF_INET, o->prefix + 12, text, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, o->prefix, text, INET6_ADDRSTRLEN);
    return text;
}
