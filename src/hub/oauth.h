/* oauth.h - the access tokens of targets: got from their servers, replaced ahead of
 * their end, and shared by all targets with the same `oauth2`.
 *
 * While there is no token that can be used, the lanes of its targets are gated: see
 * stg_flow_gate(). http/oauth_state.h says when a server is asked. All on the
 * loop's thread; a fetch goes by the hub's client, and so by its rules of
 * egress. */
#ifndef STAGGER_HUB_OAUTH_H
#define STAGGER_HUB_OAUTH_H

#include "base/list.h"
#include "base/span.h"
#include "http/oauth.h"

struct stg_hub;
struct stg_target;

typedef struct stg_oauth_token stg_oauth_token;

/* Of a hub. Zeroed, and its list made, before it is used. */
typedef struct stg_oauth {
    stg_list tokens;
    uint64_t fetches, failures; /* of fetches that have ended; and of them */
    uint64_t refused;           /* tokens that a 401 has replaced */
    uint64_t gated;   /* targets that cannot be sent to, for want of a token */
    size_t under_way; /* fetches */
    void (*closed)(void *ctx); /* NULL: it is not closing */
    void *ctx;
} stg_oauth;

/* The token of these options, NULL: none is wanted, and *token is NULL. One that is
 * there already is shared; nothing is fetched before a target has it. To be given
 * to stg_oauth_use(), or to stg_oauth_drop(). Returns STG_INVALID with words for
 * a server's certificates that cannot be read; STG_IO without memory. */
stg_status stg_oauth_take(struct stg_hub *h, const stg_oauth_options *o,
                          stg_oauth_token **token, stg_error *err);
void stg_oauth_drop(stg_oauth_token *k); /* NULL is none */

/* The target has this token from now on, and no other; given; NULL: none. */
void stg_oauth_use(struct stg_target *t, stg_oauth_token *k);

/* Both at once, of the target's own settings: what stg_oauth_take() returns. */
stg_status stg_oauth_give(struct stg_hub *h, struct stg_target *t,
                          stg_error *err);

/* Whether nothing can be sent to it for want of a token. */
bool stg_oauth_is_gated(const struct stg_target *t);

/* Why there is no token for the target; lent until the next event. NULL: it needs
 * none, has one, or waits for the first answer. */
const char *stg_oauth_why(const struct stg_target *t);

/* Writes "Authorization: Bearer TOKEN\r\n" to `to`, which has that room, and
 * returns its end; nothing before the first token came. *number: of the token. No
 * message brings a line of its own: the intake keeps none (http/header.c). */
size_t stg_oauth_room(const stg_oauth_token *k);
char *stg_oauth_put(const stg_oauth_token *k, char *to, uint64_t *number);

/* A request with token `number` was answered with this status. Whether it is a 401
 * and the attempt is to be made again, with another token. */
bool stg_oauth_refuses(struct stg_target *t, uint64_t number, int status);

/* Nothing is fetched from here on. closed is called when nothing is under way any
 * more, perhaps from within; the tokens are there until their targets go. */
void stg_oauth_close(struct stg_hub *h, void (*closed)(void *ctx), void *ctx);

/* -- for people ------------------------------------------------------------ */

enum { STG_OAUTH_CAUSE_MAX = 640 };

typedef struct stg_oauth_view {
    bool is_usable;
    stg_ns until_at; /* is_usable: it is used before; STG_NEVER: no end */
    const char
        *cause; /* of the last fetch, which has failed; "": it has not, or
                          there was none. Lent */
} stg_oauth_view;

void stg_oauth_look(const stg_oauth_token *k, stg_oauth_view *view);

#endif
