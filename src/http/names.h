/* names.h - names to addresses, on the loop. Private to the client.
 *
 * Each name has one question under way at a time, however many connections of
 * however many endpoints wait for its answer, and no name waits for another's:
 * c-ares asks the name servers of /etc/resolv.conf about all of them at once. It
 * reads /etc/hosts before, and knows search domains. An answer is kept for its
 * TTL (5 s to 5 min), that there is no such name for 5 s. Who waits has a timer
 * of its own; an answer that comes later is kept all the same. When
 * /etc/resolv.conf was written anew, what is under way is asked anew.
 *
 * Instead of all that getaddrinfo() can be asked (STG_RESOLVER_SYSTEM), for its
 * nsswitch.conf: in the threads of the loop, few names at a time, and nothing is
 * kept. */
#ifndef STAGGER_HTTP_NAMES_H
#define STAGGER_HTTP_NAMES_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <uv.h>

#include "base/hash.h"
#include "base/list.h"
#include "host/deadlines.h"
#include "http/client.h"

enum {
    STG_ADDRESSES_MAX = 16, /* of a name; more are not used */
    STG_NAME_SLOTS = 1024,  /* a power of two */
};

typedef union stg_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} stg_address;

typedef struct stg_names stg_names;

typedef struct stg_name {
    stg_link link; /* place in names.slots */
    stg_names *names;
    uint32_t users;   /* endpoints, and the question */
    stg_list waiting; /* links of who waits */
    stg_link turn;    /* in names.to_ask or names.to_tell */
    stg_link slow;    /* in names.slow */
    stg_ns asked_at;
    bool is_asked;   /* a question is under way */
    stg_ns until_at; /* how long the answer holds; 0: there is none */
    int error;       /* libuv's error of the answer; 0: there are addresses */
    const char *why; /* the error in words; static */
    uint8_t count;
    uint8_t first;   /* which address of a family is the first to be tried */
    int family;      /* which one connected last; 0: none did */
    bool is_in_turn; /* addresses may be tried in another order */
    stg_address addresses[STG_ADDRESSES_MAX];
    char host[];
} stg_name;

/* Tell a name's state; both may do anything but close the names. */
typedef struct stg_names_hooks {
    /* Whether the question for what waits is under way: its time runs, or does
     * not, for something of ours is short. */
    void (*asked)(stg_link *waiting, bool is_under_way);
    /* It waits no more: n has the answer. */
    void (*told)(stg_link *waiting, stg_name *n);
    /* Something of names is open; or closed. */
    void (*held)(void *ctx);
    void (*released)(void *ctx);
    void *ctx;
} stg_names_hooks;

struct stg_names {
    uv_loop_t *loop;
    stg_deadlines *deadlines;
    stg_names_hooks hooks;
    stg_resolver by;
    bool is_closed;
    void *channel;      /* of c-ares; NULL: nothing was asked yet */
    stg_list sockets;   /* of it */
    stg_list to_ask;    /* names: so many in a turn of the loop */
    stg_list to_tell;   /* names that were answered */
    stg_list slow;      /* names that were not, the longest asked first */
    stg_deadline turn;  /* when there are such */
    stg_deadline retry; /* while questions are under way */
    stg_ns rest_until;  /* nothing is asked before, for want of something */
    uint32_t under_way; /* names that are asked about */
    uint32_t queries;   /* of c-ares */
    uint32_t threads;   /* questions at once, to the system */
    const char *path;   /* /etc/resolv.conf */
    struct stat file;   /* of it, when the channel was made */
    stg_ns looked_at;   /* at the file */
    uint16_t port;      /* of name servers */
    stg_hash_seed seed;
    stg_list slots[STG_NAME_SLOTS]; /* by host */
};

void stg_names_init(stg_names *all, uv_loop_t *loop, stg_deadlines *deadlines,
                    const stg_names_hooks *hooks);

/* After all names were given back. No hook but `released` is called then. */
void stg_names_close(stg_names *all);

/* The name of a host, for an endpoint: one that is there, or a new one. NULL: no
 * memory. */
stg_name *stg_name_take(stg_names *all, const char *host);
void stg_name_give_back(stg_name *n);

/* Whether n has addresses that hold. If not, `waiting` waits for them until it
 * is told, or leaves the list; never from within this call. */
bool stg_name_ask(stg_name *n, stg_link *waiting, stg_ns now);

/* The addresses in the order in which they are to be tried now; returns how
 * many. Those of a name that may be tried in any order take turns, and of two
 * families the one that connected last begins, else IPv6, one after the other
 * (RFC 8305, section 4). */
uint8_t stg_name_order(stg_name *n, stg_address to[STG_ADDRESSES_MAX]);

/* The outcome of an attempt whose name has this error. */
stg_outcome stg_name_outcome(int error);

/* -- names.c and resolve.c ------------------------------------------------- */

/* The answer in n holds for `hold`; 0: for those who wait only. */
void stg_name_keep(stg_name *n, int error, const char *why, stg_ns hold);

/* n was answered: with the addresses that stg_name_add() put there, or with an
 * error, and how long that holds. */
void stg_name_answer(stg_name *n, int error, const char *why, stg_ns hold);
void stg_name_add(stg_name *n, const struct sockaddr *address);

/* Nothing came of the question, by no fault of a name server: it is asked
 * again, at once or in a moment. */
void stg_name_repeat(stg_name *n, bool is_at_once);

/* Asks about n. It ends by stg_name_answer() or stg_name_repeat(), maybe from
 * within. */
void stg_resolve_ask(stg_name *n);

/* A second may have passed: what timed out is asked again, and what a new
 * resolv.conf says is used. */
void stg_resolve_look(stg_names *all, stg_ns now);
void stg_resolve_close(stg_names *all);

/* Answers are told from outside of c-ares, where anything may be done. */
void stg_names_tell(stg_names *all);

#endif
