/* leaf.h - a server that follows a script, byte by byte: for tests of what
 * speaks to servers.
 *
 * It lives in the loop of its test. Each step takes a turn of the loop of its
 * own, so what is said in two steps is read in two pieces. The first
 * connection follows the first script, and so on; those after the last script
 * follow the last. */
#ifndef TESTS_HTTP_LEAF_H
#define TESTS_HTTP_LEAF_H

#include <stdbool.h>
#include <stddef.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <uv.h>

typedef enum leaf_act {
    LEAF_END,   /* nothing more; the connection stays open */
    LEAF_HEAR,  /* a whole request */
    LEAF_SAY,   /* bytes */
    LEAF_LAST,  /* says bytes and closes, in one turn */
    LEAF_CLOSE, /* in order, of TLS too */
    LEAF_CUT,   /* in order of TCP alone */
    LEAF_RESET, /* at once */
    LEAF_DEAF,  /* reads no more */
} leaf_act;

typedef struct leaf_step {
    leaf_act act;
    const char *bytes;
    size_t size;
} leaf_step;

#define HEAR ((leaf_step){LEAF_HEAR, NULL, 0})
#define SAY(text) ((leaf_step){LEAF_SAY, text, sizeof(text) - 1})
#define LAST(text) ((leaf_step){LEAF_LAST, text, sizeof(text) - 1})
#define CLOSE ((leaf_step){LEAF_CLOSE, NULL, 0})
#define CUT ((leaf_step){LEAF_CUT, NULL, 0})
#define RESET ((leaf_step){LEAF_RESET, NULL, 0})
#define DEAF ((leaf_step){LEAF_DEAF, NULL, 0})
#define SCRIPT(...) ((const leaf_step[]){__VA_ARGS__, {LEAF_END, NULL, 0}})

enum { LEAF_GUESTS_MAX = 64, LEAF_HEARD_MAX = 8192 };

typedef struct leaf_guest leaf_guest;

typedef struct leaf {
    uv_tcp_t listener;
    uv_idle_t turn;
    SSL_CTX *tls; /* NULL: plain */
    const leaf_step *const *scripts;
    size_t scripts_count;
    int port;
    unsigned accepted;          /* connections, since the start */
    unsigned requests;          /* whole ones, since the start */
    unsigned open;              /* connections */
    char from[64];              /* where the last one came from, of IPv4 */
    char heard[LEAF_HEARD_MAX]; /* what came last, as far as it fits */
    size_t heard_size;
    leaf_guest *guests[LEAF_GUESTS_MAX];
} leaf;

/* address: "127.0.0.1" or "::1". False: no such address here. */
bool leaf_open(leaf *l, uv_loop_t *loop, const char *address, SSL_CTX *tls,
               const leaf_step *const *scripts, size_t count);

/* A turn right now, which the loop does not see before its next one. */
void leaf_turn(leaf *l);

/* All handles close in the loop's next turns. */
void leaf_close(leaf *l);

#endif
