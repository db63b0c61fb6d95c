/* oauth_state.h - when to ask for a token, and which one is to be used.
 *
 * Pure: time and chance are arguments. One state is one token, whoever uses it:
 *
 *     no token    requests wait; it is asked for at once, and after a failure with
 *                 exponential backoff, no earlier than Retry-After says
 *     a token     used until a tenth of its life is left: 2 s at least (of a short
 *                 life a half), 10 s at most; after 70 to 80 % of that time the
 *                 next one is asked for, while this one is still used. One without
 *                 an end is replaced within an hour
 *     refused     a target answered 401 to it: it is used no more, and the next one
 *                 is asked for; but no more than once in 10 s, so that a target
 *                 that refuses every token does not make a storm of them
 *
 * Tokens are numbered on from the seed, so that the answer to an older one, or to one
 * of another state, is known. */
#ifndef STAGGER_HTTP_OAUTH_STATE_H
#define STAGGER_HTTP_OAUTH_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include <stagger/ns.h>
#include <stagger/rng.h>

typedef struct stg_oauth_state {
    bool is_asking;
    uint64_t number;   /* of the last token, or the seed */
    stg_ns until_at;   /* it is used before then; 0: not any more */
    stg_ns ask_at;     /* for the next one, unless is_asking */
    stg_ns asked_at;   /* is_asking: since then */
    stg_ns refused_at; /* when a 401 made it ask last; 0: never */
    stg_ns wait;       /* the last one of the backoff */
    uint32_t failures; /* since the last token */
    stg_rng rng;
} stg_oauth_state;

/* It is due to ask. */
void stg_oauth_state_init(stg_oauth_state *s, stg_ns now, uint64_t seed);

/* Whether requests may go on with the token that there is. */
static inline bool stg_oauth_state_is_usable(const stg_oauth_state *s,
                                             stg_ns now)
{
    return now < s->until_at;
}

/* Whether to ask now; if so, it counts as asked, and is answered by one of the
 * next two. */
bool stg_oauth_state_ask(stg_oauth_state *s, stg_ns now);

/* There is a new token. lifetime: from when it was asked for; 0: not known. */
void stg_oauth_state_take(stg_oauth_state *s, stg_ns lifetime, stg_ns now);

/* There is none. delay: what the server asked to wait; 0: nothing. */
void stg_oauth_state_fail(stg_oauth_state *s, stg_ns delay, stg_ns now);

/* A target answered 401 to a request with token `number`. Whether the request is
 * to be made again, with another one, which there is or which is waited for. */
bool stg_oauth_state_refuse(stg_oauth_state *s, uint64_t number, stg_ns now);

/* When something changes by itself: it is to ask, or the token ends. STG_NEVER. */
stg_ns stg_oauth_state_wake_at(const stg_oauth_state *s, stg_ns now);

#endif
