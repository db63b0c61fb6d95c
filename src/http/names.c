/* Names, who waits for them, and answers that are kept: see names.h. How the
 * resolver is asked is in resolve.c. A name lives as long as somebody holds it;
 * one question is under way for it at most, and its answer goes to all that wait.
 * Addresses of the two families take turns, and each dial begins with the next
 * one, so that no address of a name has all connections. */
#include "http/names.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "host/process.h"

enum {
    ASKED_MAX = 32, /* in a turn of the loop: a socket's buffer has room */
    RETRY_MS = 100,
};

/* -- names ----------------------------------------------------------------- */

static stg_list *slot_of(stg_names *all, const char *host)
{
    uint64_t hash = stg_hash(&all->seed, host, strlen(host));

    return &all->slots[hash & (STG_NAME_SLOTS - 1)];
}

static stg_name *find(const stg_list *slot, const char *host)
{
    for (stg_link *at = stg_list_first(slot); at != NULL;
         at = stg_list_next(slot, at)) {
        stg_name *n = STG_HOLDER(at, stg_name, link);

        if (strcmp(n->host, host) == 0)
            return n;
    }
    return NULL;
}

stg_name *stg_name_take(stg_names *all, const char *host)
{
    stg_list *slot = slot_of(all, host);
    stg_name *n = find(slot, host);
    size_t size = strlen(host) + 1;

    if (n == NULL) {
        n = calloc(1, sizeof *n + size);
        if (n == NULL)
            return NULL;
        n->names = all;
        stg_list_init(&n->waiting);
        memcpy(n->host, host, size);
        stg_list_push(slot, &n->link);
    }
    n->users++;
    return n;
}

void stg_name_give_back(stg_name *n)
{
    if (--n->users > 0)
        return;
    stg_list_remove(&n->turn);
    stg_list_remove(&n->link);
    free(n);
}

/* -- questions ------------------------------------------------------------- */

static void set_turn(stg_names *all, stg_ns at)
{
    if (at < stg_deadline_at(&all->turn))
        stg_deadline_set(all->deadlines, &all->turn, at);
}

/* Names that are to be asked about have their turn now, in a moment, or when
 * there is a thread for them. */
static void plan(stg_names *all)
{
    bool has_slot =
        all->by == STG_RESOLVER_DNS || all->under_way < all->threads;

    if (!all->is_closed && has_slot && !stg_list_is_empty(&all->to_ask))
        set_turn(all, all->rest_until);
}

/* True: a kept answer is good, and nothing waits. A failure that is kept is
 * told in another turn, like one that has just come, so that nobody is called
 * back from within. */
bool stg_name_ask(stg_name *n, stg_link *waiting, stg_ns now)
{
    stg_names *all = n->names;
    bool is_first = stg_list_is_empty(&n->waiting);

    if (now < n->until_at && n->error == 0)
        return true;
    stg_list_push(&n->waiting, waiting);
    if (n->is_asked) {
        all->hooks.asked(waiting, true);
    } else if (is_first && !stg_list_has(&n->turn)) {
        bool is_known = now < n->until_at;

        stg_list_push(is_known ? &all->to_tell : &all->to_ask, &n->turn);
        if (is_known)
            set_turn(all, 0);
        plan(all);
    }
    return false;
}

/* Who is told may ask again, close others that wait, and give n back. */
static void tell(stg_name *n)
{
    stg_names *all = n->names;
    stg_list waiting;
    stg_link *at;

    stg_list_init(&waiting);
    // To a list of their own: who asks again from within waits for the next
    // answer.
    while ((at = stg_list_shift(&n->waiting)) != NULL)
        stg_list_push(&waiting, at);
    n->users++;
    while ((at = stg_list_shift(&waiting)) != NULL)
        all->hooks.told(at, n);
    stg_name_give_back(n);
}

void stg_names_tell(stg_names *all)
{
    stg_link *at;

    while (!all->is_closed && (at = stg_list_shift(&all->to_tell)) != NULL)
        tell(STG_HOLDER(at, stg_name, turn));
}

void stg_name_add(stg_name *n, const struct sockaddr *address)
{
    stg_address *to = &n->addresses[n->count];

    if (n->count == STG_ADDRESSES_MAX)
        return;
    if (address->sa_family == AF_INET)
        memcpy(&to->v4, address, sizeof to->v4);
    else if (address->sa_family == AF_INET6)
        memcpy(&to->v6, address, sizeof to->v6);
    else
        return;
    n->count++;
}

/* May free n, where nobody but the question held it. */
static void end_question(stg_name *n)
{
    stg_names *all = n->names;

    n->is_asked = false;
    all->under_way--;
    stg_list_remove(&n->slow);
    stg_name_give_back(n);
    plan(all);
}

/* To those that wait. */
static void tell_asked(stg_name *n, bool is_under_way)
{
    for (stg_link *at = stg_list_first(&n->waiting); at != NULL;
         at = stg_list_next(&n->waiting, at))
        n->names->hooks.asked(at, is_under_way);
}

/* Not an answer: those that wait go on waiting, and on our time. */
void stg_name_repeat(stg_name *n, bool is_at_once)
{
    stg_names *all = n->names;

    if (!all->is_closed && !stg_list_is_empty(&n->waiting)) {
        tell_asked(n, false);
        stg_list_push(&all->to_ask, &n->turn);
        all->rest_until =
            is_at_once ? 0 : stg_ns_add(stg_deadlines_now(), RETRY_MS * STG_MS);
    }
    end_question(n);
}

void stg_name_keep(stg_name *n, int error, const char *why, stg_ns hold)
{
    n->error = error;
    n->why = why;
    n->until_at = hold > 0 ? stg_ns_add(stg_deadlines_now(), hold) : 0;
    n->family = 0;
}

void stg_name_answer(stg_name *n, int error, const char *why, stg_ns hold)
{
    stg_names *all = n->names;

    stg_name_keep(n, error, why, hold);
    if (!stg_list_is_empty(&n->waiting))
        stg_list_push(&all->to_tell, &n->turn);
    end_question(n);
}

/* The question holds the name until end_question(). */
static void ask(stg_name *n)
{
    n->users++;
    n->is_asked = true;
    n->count = 0;
    n->until_at = 0;
    n->names->under_way++;
    tell_asked(n, true);
    stg_resolve_ask(n);
}

static bool may_ask(const stg_names *all)
{
    return !stg_list_is_empty(&all->to_ask) &&
           stg_deadlines_now() >= all->rest_until &&
           (all->by == STG_RESOLVER_DNS || all->under_way < all->threads);
}

static void ask_some(stg_names *all)
{
    for (int i = 0; i < ASKED_MAX && may_ask(all); i++) {
        stg_name *n = STG_HOLDER(stg_list_shift(&all->to_ask), stg_name, turn);

        if (!stg_list_is_empty(&n->waiting))
            ask(n);
    }
    plan(all);
}

static void set_retry(stg_names *all)
{
    if (all->under_way > 0 || all->queries > 0)
        stg_deadline_set(all->deadlines, &all->retry,
                         stg_ns_add(stg_deadlines_now(), RETRY_MS * STG_MS));
}

static void pass_turn(stg_deadline *d)
{
    stg_names *all = STG_HOLDER((void *)d, stg_names, turn);

    stg_resolve_look(all, stg_deadlines_now());
    ask_some(all);
    if (stg_deadline_at(&all->retry) == STG_NEVER)
        set_retry(all);
    stg_names_tell(all);
}

/* c-ares looks at the time only when it is told to. */
static void pass_retry(stg_deadline *d)
{
    stg_names *all = STG_HOLDER((void *)d, stg_names, retry);

    stg_resolve_look(all, stg_deadlines_now());
    set_retry(all);
    stg_names_tell(all);
}

/* -- addresses ------------------------------------------------------------- */

/* The i-th of the family from the first one whose turn it is; NULL: none is
 * left. */
static const stg_address *address_of(const stg_name *n, int family, uint8_t i)
{
    uint8_t indices[STG_ADDRESSES_MAX], count = 0;

    for (uint8_t at = 0; at < n->count; at++)
        if (n->addresses[at].any.sa_family == family)
            indices[count++] = at;
    return i < count ? &n->addresses[indices[(n->first + i) % count]] : NULL;
}

/* The system's resolver has sorted its addresses (RFC 6724), and their order
 * stays. c-ares is asked not to sort: there the families alternate, the one
 * that has worked first, and RFC 8305 wants IPv6 first where none has. */
uint8_t stg_name_order(stg_name *n, stg_address to[STG_ADDRESSES_MAX])
{
    int first = n->family != 0 ? n->family : AF_INET6, count = 0;
    int second = first == AF_INET ? AF_INET6 : AF_INET;

    if (!n->is_in_turn) {
        memcpy(to, n->addresses, n->count * sizeof *to);
        return n->count;
    }
    for (uint8_t i = 0; i < n->count; i++) {
        const stg_address *a = address_of(n, first, i);
        const stg_address *b = address_of(n, second, i);

        if (a != NULL)
            to[count++] = *a;
        if (b != NULL)
            to[count++] = *b;
    }
    n->first++;
    return n->count;
}

/* -- all ------------------------------------------------------------------- */

void stg_names_init(stg_names *all, uv_loop_t *loop, stg_deadlines *deadlines,
                    const stg_names_hooks *hooks)
{
    *all = (stg_names){.loop = loop,
                       .deadlines = deadlines,
                       .hooks = *hooks,
                       .by = STG_RESOLVER_SYSTEM,
                       // libuv keeps half of them, rounded down, free
                       .threads = (stg_process_pool() + 1) / 2,
                       .path = "/etc/resolv.conf",
                       .port = 53,
                       .seed = stg_hash_seed_draw(stg_env_system())};
    all->turn.passed = pass_turn;
    all->retry.passed = pass_retry;
    stg_list_init(&all->sockets);
    stg_list_init(&all->to_ask);
    stg_list_init(&all->to_tell);
    stg_list_init(&all->slow);
    for (size_t i = 0; i < STG_NAME_SLOTS; i++)
        stg_list_init(&all->slots[i]);
}

void stg_names_close(stg_names *all)
{
    all->is_closed = true;
    stg_deadline_clear(all->deadlines, &all->turn);
    stg_deadline_clear(all->deadlines, &all->retry);
    stg_resolve_close(all);
    stg_names_tell(all);
}
