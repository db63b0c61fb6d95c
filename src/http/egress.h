/* egress.h - which addresses the hub may connect to.
 *
 * Pure: no resolver, no socket; only a shared copy is allocated. The address that is about to be
 * connected to is judged, after resolution, each time; a name is not.
 *
 * Of all networks that hold an address the smallest one decides: those of
 * `allow` and `deny`, and what is refused unless it is said otherwise:
 * link-local and metadata addresses, multicast, broadcast and "this host"
 * (0.0.0.0/8 and ::). Of two of one size `deny` goes before `allow`, and both go
 * before what is built in. An address that no network holds is allowed: private
 * ones and loopback are. So `allow: [0.0.0.0/0]` opens nothing that is refused
 * by itself, `allow: [169.254.0.0/16]` opens link-local addresses but not the
 * metadata address among them, and `deny: [0.0.0.0/0, "::/0"]` leaves only what
 * `allow` names.
 *
 * An IPv6 address that carries one of IPv4 (mapped, translated, compatible,
 * NAT64, 6to4, Teredo) is judged by both. */
#ifndef STAGGER_HTTP_EGRESS_H
#define STAGGER_HTTP_EGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stagger/status.h>

struct sockaddr;

/* A network, or one address. Plain data. */
typedef struct stg_cidr {
    bool is_v6;
    uint8_t bits;        /* of the prefix: 0 to 32, or to 128 */
    uint8_t address[16]; /* v4 in the first four; 0 behind the prefix */
} stg_cidr;

#define STG_CIDR_TEXT_MAX 52 /* the terminator included */

/* Reads "10.0.0.0/8", "fd00::/8", or an address alone, which is a network of
 * one. A mapped one ("::ffff:10.0.0.0/104") is IPv4. Returns STG_INVALID with
 * words (which do not name the setting) for what is none, a prefix out of range
 * and bits set behind it: "10.1.2.3/8 has bits behind its prefix, did you mean
 * 10.0.0.0/8?". */
stg_status stg_cidr_parse(stg_cidr *c, const char *text, stg_error *err);

/* The inverse, always with its prefix; returns text. */
const char *stg_cidr_print(const stg_cidr *c, char text[STG_CIDR_TEXT_MAX]);

typedef struct stg_egress {
    const stg_cidr *allow, *deny; /* borrowed; NULL where there are none */
    size_t allow_count, deny_count;
    bool is_open; /* everything is allowed: for a person's own command */
} stg_egress;

#define STG_EGRESS_WHY_MAX 96

/* Whether `to` may be connected to. If not, why says it in words (it may be
 * NULL): "a metadata address (169.254.169.254/32)", "denied by 10.0.0.0/8". An
 * address that is neither of IPv4 nor of IPv6 is refused. Looks at each
 * network of the lists: cheap beside a connection, not free. */
bool stg_egress_allows(const stg_egress *e, const struct sockaddr *to,
                       char why[STG_EGRESS_WHY_MAX]);

/* -- a copy that is shared --------------------------------------------------- */

/* A copy with its lists, which lives as long as its last user: the client, the
 * mailer, and each mail that is under way. Users are counted on the loop's thread;
 * a thread may read what its mail holds. */
typedef struct stg_egress_rule {
    stg_egress is;
    size_t users;
    stg_cidr networks[]; /* lists of `is`: allow, then deny */
} stg_egress_rule;

/* Returns a copy with one user, the caller; e may be NULL: what is allowed without
 * lists. NULL: out of memory. */
stg_egress_rule *stg_egress_rule_new(const stg_egress *e);

/* Returns r, which has one user more. */
stg_egress_rule *stg_egress_rule_hold(stg_egress_rule *r);

void stg_egress_rule_release(stg_egress_rule *r); /* NULL is none */

#endif
