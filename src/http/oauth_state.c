/* The times of a token. */
#include "http/oauth_state.h"

#include <stagger/backoff.h>

static const stg_ns unknown_lifetime = STG_HOUR, margin_min = 2 * STG_S,
                    margin_max = 10 * STG_S, refused_pause = 10 * STG_S,
                    delay_max = STG_HOUR;

/* 1 s, 2 s, 4 s ... up to a minute, each from half of that on. */
static stg_backoff backoff(void)
{
    stg_backoff b = stg_backoff_default();

    b.base = STG_S;
    b.cap = STG_MIN;
    b.jitter = STG_JITTER_EQUAL;
    return b;
}

void stg_oauth_state_init(stg_oauth_state *s, stg_ns now, uint64_t seed)
{
    *s = (stg_oauth_state){.ask_at = now,
                           .number = seed,
                           .wait = STG_S,
                           .rng = stg_rng_seed(seed)};
}

bool stg_oauth_state_ask(stg_oauth_state *s, stg_ns now)
{
    if (s->is_asking || now < s->ask_at)
        return false;
    s->is_asking = true;
    s->asked_at = now;
    return true;
}

/* How long a token is used: servers count in whole seconds, and a request is under
 * way for a while. */
static stg_ns use_of(stg_ns lifetime)
{
    stg_ns margin = stg_ns_max(lifetime / 10, margin_min);

    return lifetime - stg_ns_min(stg_ns_min(margin, margin_max), lifetime / 2);
}

/* A token lives from when it was asked for: the server may have made it then. One
 * whose life was over before it came is asked for again with the backoff. */
void stg_oauth_state_take(stg_oauth_state *s, stg_ns lifetime, stg_ns now)
{
    stg_ns use = lifetime > 0 ? use_of(lifetime) : unknown_lifetime;

    s->number++;
    s->until_at = lifetime > 0 ? stg_ns_add(s->asked_at, use) : STG_NEVER;
    if (now >= s->until_at) {
        stg_oauth_state_fail(s, 0, now);
        return;
    }
    s->is_asking = false;
    s->failures = 0;
    s->wait = STG_S;
    s->ask_at =
        stg_ns_add(s->asked_at, use / 10 * 7 + stg_rng_upto(&s->rng, use / 10));
}

void stg_oauth_state_fail(stg_oauth_state *s, stg_ns delay, stg_ns now)
{
    stg_backoff b = backoff();
    stg_ns wait;

    s->is_asking = false;
    s->failures += s->failures < UINT32_MAX;
    wait =
        stg_backoff_wait_after(&b, s->failures, &s->wait,
                               delay < delay_max ? delay : delay_max, &s->rng);
    s->ask_at = stg_ns_add(now, wait);
}

/* A server that is failing is not asked earlier for it. */
bool stg_oauth_state_refuse(stg_oauth_state *s, uint64_t number, stg_ns now)
{
    if (number != s->number || !stg_oauth_state_is_usable(s, now))
        return true;
    if (s->refused_at != 0 && now < stg_ns_add(s->refused_at, refused_pause))
        return false;
    s->refused_at = now;
    s->until_at = 0;
    if (s->failures == 0)
        s->ask_at = now;
    return true;
}

stg_ns stg_oauth_state_wake_at(const stg_oauth_state *s, stg_ns now)
{
    stg_ns ask_at = s->is_asking ? STG_NEVER : s->ask_at;

    if (stg_oauth_state_is_usable(s, now))
        return ask_at < s->until_at ? ask_at : s->until_at;
    return ask_at;
}
