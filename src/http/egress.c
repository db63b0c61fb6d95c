/* Which network decides about an address: the smallest one that holds it, of the
 * rule's and of those that are built in. An IPv6 address may lead to an IPv4 one
 * (mapped, translated, tunnelled): all readings of it must be allowed. */
#include "http/egress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netinet/in.h>
#include <uv.h>

#include "core/writer.h"

enum { V4_BITS = 32, V6_BITS = 128 };

/* -- networks -------------------------------------------------------------- */

static bool has_bit(const uint8_t *address, unsigned bit)
{
    return (address[bit / 8] >> (7 - bit % 8) & 1) != 0;
}

static void clear_behind(uint8_t *address, unsigned bits)
{
    for (unsigned bit = bits; bit < V6_BITS; bit++)
        address[bit / 8] &= (uint8_t) ~(1U << (7 - bit % 8));
}

static bool holds(const stg_cidr *c, const stg_cidr *address)
{
    if (c->is_v6 != address->is_v6 || c->bits > address->bits)
        return false;
    for (unsigned bit = 0; bit < c->bits; bit++)
        if (has_bit(c->address, bit) != has_bit(address->address, bit))
            return false;
    return true;
}

static bool read_address(stg_cidr *c, const char *text, size_t size)
{
    char address[64];

    if (size >= sizeof address)
        return false;
    memcpy(address, text, size);
    address[size] = '\0';
    *c = (stg_cidr){.bits = V4_BITS};
    if (uv_inet_pton(AF_INET, address, c->address) == 0)
        return true;
    *c = (stg_cidr){.is_v6 = true, .bits = V6_BITS};
    // A zone ("%eth0") is no part of an address.
    return memchr(address, '%', size) == NULL &&
           uv_inet_pton(AF_INET6, address, c->address) == 0;
}

/* One to three digits, without a zero in front. */
static bool read_bits(const char *text, unsigned max, uint8_t *bits)
{
    unsigned number = 0;
    size_t size = strlen(text);

    if (size == 0 || size > 3 || (size > 1 && *text == '0'))
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        number = 10 * number + (unsigned)(*text - '0');
    }
    *bits = (uint8_t)number;
    return number <= max;
}

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

/* ::ffff:10.0.0.0/104 is 10.0.0.0/8. */
static void unmap(stg_cidr *c)
{
    stg_cidr v4 = {.bits = (uint8_t)(c->bits - 96)};

    if (!c->is_v6 || c->bits < 96 ||
        memcmp(c->address, mapped, sizeof mapped) != 0)
        return;
    memcpy(v4.address, c->address + 12, 4);
    *c = v4;
}

static stg_status refuse_part(stg_error *err, const char *text,
                              const char *words)
{
    enum { SHOWN_MAX = 100 };
    stg_writer w = stg_writer_on_error(err);
    size_t size = strlen(text);

    stg_write_part(&w, text, size < SHOWN_MAX ? size : SHOWN_MAX);
    stg_write_text(&w, words);
    return STG_INVALID;
}

/* Bits behind the prefix are refused and not cleared: they are more often a
 * slip than meant. */
stg_status stg_cidr_parse(stg_cidr *c, const char *text, stg_error *err)
{
    const char *slash = strchr(text, '/');
    stg_cidr found, clean;

    if (!read_address(&found, text,
                      slash != NULL ? (size_t)(slash - text) : strlen(text)))
        return refuse_part(err, text,
                           " is no network, expected an address and a prefix, "
                           "as in 10.0.0.0/8 or fd00::/8");
    if (slash != NULL && !read_bits(slash + 1, found.bits, &found.bits))
        return refuse_part(err, text,
                           found.is_v6 ? " has no prefix of 0 to 128"
                                       : " has no prefix of 0 to 32");
    clean = found;
    clear_behind(clean.address, clean.bits);
    if (memcmp(clean.address, found.address, sizeof clean.address) != 0) {
        char meant[STG_CIDR_TEXT_MAX], words[128];

        (void)snprintf(words, sizeof words,
                       " has bits behind its prefix, did you mean %s?",
                       stg_cidr_print(&clean, meant));
        return refuse_part(err, text, words);
    }
    unmap(&found);
    *c = found;
    return STG_OK;
}

const char *stg_cidr_print(const stg_cidr *c, char text[STG_CIDR_TEXT_MAX])
{
    char address[48] = "";

    (void)uv_inet_ntop(c->is_v6 ? AF_INET6 : AF_INET, c->address, address,
                       sizeof address);
    (void)snprintf(text, STG_CIDR_TEXT_MAX, "%.45s/%u", address,
                   (unsigned)c->bits);
    return text;
}

/* -- what is refused by itself --------------------------------------------- */

typedef struct reserved {
    stg_cidr network;
    const char *what;
} reserved;

/* clang-format off */
#define V4(bits, ...) {false, bits, {__VA_ARGS__}}
#define V6(bits, ...) {true, bits, {__VA_ARGS__}}

/* Metadata: what the documents of the clouds name. Most are link-local as
 * well; those of Oracle, Alibaba, Azure, Amazon's over IPv6, Google's and
 * Scaleway's are not. */
static const reserved refused[] = {
    {V4(8, 0), "an address of this host"},
    {V4(16, 169, 254), "a link-local address"},
    {V4(32, 169, 254, 169, 254), "a metadata address"},
    {V4(32, 169, 254, 170, 2), "a metadata address"},
    {V4(32, 169, 254, 170, 23), "a metadata address"},
    {V4(32, 169, 254, 0, 23), "a metadata address"},
    {V4(32, 192, 0, 0, 192), "a metadata address"},
    {V4(32, 100, 100, 100, 200), "a metadata address"},
    {V4(32, 168, 63, 129, 16), "a metadata address"},
    {V4(4, 224), "a multicast address"},
    {V4(32, 255, 255, 255, 255), "the broadcast address"},
    {V6(128, 0), "an address of this host"},
    {V6(10, 0xfe, 0x80), "a link-local address"},
    {V6(128, 0xfe, 0x80, [12] = 169, 254, 169, 254), "a metadata address"},
    {V6(32, 0xfd, 0x00, 0x0e, 0xc2), "a metadata address"},
    {V6(128, 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, 0x54), "a metadata address"},
    {V6(128, 0xfd, 0x00, 0x00, 0x42, [15] = 0x42), "a metadata address"},
    {V6(8, 0xff), "a multicast address"},
};
/* clang-format on */

/* -- the verdict ----------------------------------------------------------- */

/* The network that decides, so far. */
typedef struct choice {
    const stg_cidr *by; /* NULL: none holds it */
    bool is_refused;
    const char *what; /* NULL: a network of the rule's own */
} choice;

static void consider(choice *c, const stg_cidr *network,
                     const stg_cidr *address, bool is_refused, const char *what)
{
    if (holds(network, address) &&
        (c->by == NULL || network->bits > c->by->bits))
        *c = (choice){network, is_refused, what};
}

/* At one size the first one stays: the order is the rule's. So a network that
 * is built in can be allowed by naming it, or a part of it. */
static choice decide(const stg_egress *e, const stg_cidr *address)
{
    choice c = {.by = NULL};

    for (size_t i = 0; i < e->deny_count; i++)
        consider(&c, &e->deny[i], address, true, NULL);
    for (size_t i = 0; i < e->allow_count; i++)
        consider(&c, &e->allow[i], address, false, NULL);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        consider(&c, &refused[i].network, address, true, refused[i].what);
    return c;
}

static bool allows(const stg_egress *e, const stg_cidr *address,
                   char why[STG_EGRESS_WHY_MAX])
{
    choice c = decide(e, address);
    char network[STG_CIDR_TEXT_MAX];

    if (c.by == NULL || !c.is_refused)
        return true;
    if (why == NULL)
        return false;
    (void)stg_cidr_print(c.by, network);
    if (c.what != NULL)
        (void)snprintf(why, STG_EGRESS_WHY_MAX, "%s (%s)", c.what, network);
    else
        (void)snprintf(why, STG_EGRESS_WHY_MAX, "denied by %s", network);
    return false;
}

/* -- addresses within addresses -------------------------------------------- */

enum { READINGS_MAX = 6 };

typedef struct readings {
    stg_cidr all[READINGS_MAX];
    size_t count;
} readings;

static void add_v4(readings *r, const uint8_t *four)
{
    stg_cidr *c = &r->all[r->count++];

    *c = (stg_cidr){.bits = V4_BITS};
    memcpy(c->address, four, 4);
}

static bool begins(const uint8_t *address, const uint8_t *with, size_t size)
{
    return memcmp(address, with, size) == 0;
}

/* One of several places where an address may be. What begins with 0 is none,
 * or leads nowhere. */
static void add_guess(readings *r, uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
    const uint8_t four[] = {a, b, c, d};

    if (a != 0)
        add_v4(r, four);
}

/* RFC 6052: where the prefix of a translator ends is the network's choice; byte
 * 8 is left out, and what comes behind the address is 0. */
static void add_translated(readings *r, const uint8_t *a)
{
    static const uint8_t zeros[4];

    if (memcmp(a + 12, zeros, 4) == 0) {
        add_guess(r, a[6], a[7], a[9], a[10]);
        add_guess(r, a[7], a[9], a[10], a[11]);
    }
    if (memcmp(a + 13, zeros, 3) == 0)
        add_guess(r, a[9], a[10], a[11], a[12]);
    add_guess(r, a[12], a[13], a[14], a[15]);
}

/* The IPv4 addresses that one of IPv6 leads to, as far as its form says. */
static void add_embedded(readings *r, const uint8_t *a)
{
    static const uint8_t zeros[12];
    static const uint8_t translated[12] = {[8] = 0xff, [9] = 0xff};
    static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};
    static const uint8_t nat64_local[] = {0x00, 0x64, 0xff, 0x9b, 0x00, 0x01};
    static const uint8_t six_to_four[] = {0x20, 0x02};
    static const uint8_t teredo[] = {0x20, 0x01, 0x00, 0x00};
    const uint8_t inverted[] = {(uint8_t)~a[12], (uint8_t)~a[13],
                                (uint8_t)~a[14], (uint8_t)~a[15]};
    // :: and ::1 look like it.
    bool is_compatible =
        begins(a, zeros, 12) && !(begins(a + 12, zeros, 3) && a[15] <= 1);

    if (is_compatible || begins(a, translated, 12) || begins(a, nat64, 12))
        add_v4(r, a + 12);
    else if (begins(a, nat64_local, sizeof nat64_local))
        add_translated(r, a);
    else if (begins(a, six_to_four, sizeof six_to_four))
        add_v4(r, a + 2);
    else if (begins(a, teredo, sizeof teredo))
        add_v4(r, inverted);
}

/* A mapped address has one reading, that of IPv4: the system connects by
 * that. */
static void read_v6(readings *r, const uint8_t *address)
{
    if (begins(address, mapped, sizeof mapped)) {
        add_v4(r, address + 12);
        return;
    }
    r->all[0] = (stg_cidr){.is_v6 = true, .bits = V6_BITS};
    memcpy(r->all[0].address, address, 16);
    r->count = 1;
    add_embedded(r, address);
}

/* All readings of the address must be allowed. An address of another family is
 * refused. */
bool stg_egress_allows(const stg_egress *e, const struct sockaddr *to,
                       char why[STG_EGRESS_WHY_MAX])
{
    readings r = {.count = 0};

    if (e->is_open)
        return true;
    if (to->sa_family == AF_INET)
        add_v4(&r,
               (const uint8_t *)&((const struct sockaddr_in *)to)->sin_addr);
    else if (to->sa_family == AF_INET6)
        read_v6(&r,
                (const uint8_t *)&((const struct sockaddr_in6 *)to)->sin6_addr);
    for (size_t i = 0; i < r.count; i++)
        if (!allows(e, &r.all[i], why))
            return false;
    if (r.count == 0 && why != NULL)
        (void)snprintf(why, STG_EGRESS_WHY_MAX, "no address of IP");
    return r.count > 0;
}

/* -- a copy that is shared ------------------------------------------------- */

stg_egress_rule *stg_egress_rule_new(const stg_egress *e)
{
    const stg_egress none = {.allow = NULL};
    stg_egress_rule *r;

    if (e == NULL)
        e = &none;
    r = malloc(sizeof *r + (e->allow_count + e->deny_count) * sizeof(stg_cidr));
    if (r == NULL)
        return NULL;
    r->users = 1;
    r->is = *e;
    r->is.allow = r->networks;
    r->is.deny = r->networks + e->allow_count;
    if (e->allow_count > 0)
        memcpy(r->networks, e->allow, e->allow_count * sizeof(stg_cidr));
    if (e->deny_count > 0)
        memcpy(r->networks + e->allow_count, e->deny,
               e->deny_count * sizeof(stg_cidr));
    return r;
}

stg_egress_rule *stg_egress_rule_hold(stg_egress_rule *r)
{
    r->users++;
    return r;
}

void stg_egress_rule_release(stg_egress_rule *r)
{
    if (r != NULL && --r->users == 0)
        free(r);
}
