/* A token is a state of http/oauth_state.h, an endpoint of its server, and the line
 * that requests carry. It is there as long as somebody holds it: a target, or a
 * reload that may give it to one. One that goes while it is fetched goes with the
 * end of that exchange. */
#include "hub/oauth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include "host/wall.h"
#include "http/oauth_state.h"
#include "http/url.h"
#include "hub/hub_internal.h"

static const stg_ns fetch_timeout = 10 * STG_S;

struct stg_oauth_token {
    stg_link link; /* h->oauth.tokens */
    stg_hub *hub;
    unsigned holds; /* of targets, and of those who will give it to one; 0: it
                       waits for its exchange only */
    stg_list targets;
    bool is_usable; /* as the lanes know it */
    stg_oauth_options o;
    stg_text texts; /* of o */
    char *url;      /* that may be shown: its query may have a secret */
    EVP_PKEY *key;  /* NULL: a secret */
    stg_endpoint *endpoint;
    stg_oauth_state state;
    stg_deadline due;
    stg_exchange *exchange; /* NULL: none is under way */
    stg_text body;          /* of it */
    stg_text line;
    char cause[STG_OAUTH_CAUSE_MAX];
};

/* -- made, and gone -------------------------------------------------------- */

static void wipe(stg_text *t)
{
    if (t->at != NULL)
        OPENSSL_cleanse(t->at, t->room);
    stg_text_free(t);
}

static void free_token(stg_oauth_token *k)
{
    wipe(&k->texts);
    wipe(&k->body);
    wipe(&k->line);
    EVP_PKEY_free(k->key);
    free(k->url);
    free(k);
}

/* Settings go with a reload, and a token may stay. */
static bool copy_options(stg_oauth_token *k, const stg_oauth_options *o)
{
    const char **const texts[] = {
        &k->o.token_url,       &k->o.client_id, &k->o.client_secret,
        &k->o.private_key,     &k->o.key_id,    &k->o.assertion_audience,
        &k->o.scope,           &k->o.audience,  &k->o.ca_file,
        &k->o.token_url_shown,
    };
    size_t count = sizeof texts / sizeof *texts, at = 0;

    k->o = *o;
    for (size_t i = 0; i < count; i++)
        if (*texts[i] != NULL)
            stg_text_add(&k->texts, *texts[i], strlen(*texts[i]) + 1);
    for (size_t i = 0; i < count && !k->texts.is_short; i++)
        if (*texts[i] != NULL) {
            *texts[i] = k->texts.at + at;
            at += strlen(*texts[i]) + 1;
        }
    return !k->texts.is_short;
}

static stg_endpoint_options endpoint_options(const stg_oauth_options *o)
{
    stg_endpoint_options e = stg_endpoint_options_default(o->token_url);

    e.ca_file = o->ca_file;
    e.answer_max = STG_OAUTH_ANSWER_MAX;
    e.excerpt_max = STG_OAUTH_ANSWER_MAX;
    e.idle_count_max = 1;
    return e;
}

static void pass(stg_deadline *d);

static stg_status make(stg_hub *h, const stg_oauth_options *o,
                       stg_oauth_token **token, stg_error *err)
{
    stg_endpoint_options e = endpoint_options(o);
    stg_oauth_token *k = calloc(1, sizeof *k);
    stg_status status = STG_OK;
    uint64_t seed = 0;

    if (k == NULL)
        return stg_target_refuse_memory(err);
    k->url = stg_url_mask(o->token_url_shown != NULL ? o->token_url_shown
                                                     : o->token_url);
    if (!copy_options(k, o) || k->url == NULL)
        status = stg_target_refuse_memory(err);
    if (status == STG_OK && o->private_key != NULL)
        status = stg_oauth_key_read(&k->key, o->private_key, err);
    if (status == STG_OK)
        status = stg_endpoint_new(&k->endpoint, h->client, &e, err);
    if (status != STG_OK) {
        free_token(k);
        return status;
    }
    (void)uv_random(NULL, NULL, &seed, sizeof seed, 0, NULL);
    stg_oauth_state_init(&k->state, stg_deadlines_now(), seed);
    stg_list_init(&k->targets);
    k->due.passed = pass;
    k->hub = h;
    stg_list_push(&h->oauth.tokens, &k->link);
    *token = k;
    return STG_OK;
}

/* An endpoint that would be another now is that of a file that has changed. */
static bool is_of(const stg_oauth_token *k, const stg_oauth_options *o)
{
    stg_endpoint_options e = endpoint_options(o);

    return stg_oauth_same(&k->o, o) && stg_endpoint_matches(k->endpoint, &e);
}

stg_status stg_oauth_take(stg_hub *h, const stg_oauth_options *o,
                          stg_oauth_token **token, stg_error *err)
{
    stg_status status = STG_OK;

    *token = NULL;
    if (o == NULL)
        return STG_OK;
    for (stg_link *at = stg_list_first(&h->oauth.tokens);
         at != NULL && *token == NULL;
         at = stg_list_next(&h->oauth.tokens, at)) {
        stg_oauth_token *k = STG_HOLDER(at, stg_oauth_token, link);

        if (is_of(k, o))
            *token = k;
    }
    if (*token == NULL)
        status = make(h, o, token, err);
    if (*token != NULL)
        (*token)->holds++;
    return status;
}

void stg_oauth_drop(stg_oauth_token *k)
{
    if (k == NULL || --k->holds > 0)
        return;
    stg_list_remove(&k->link);
    stg_deadline_clear(&k->hub->deadlines, &k->due);
    stg_endpoint_retire(k->endpoint);
    if (k->exchange != NULL)
        stg_exchange_cancel(k->exchange);
    else
        free_token(k);
}

/* -- its targets ----------------------------------------------------------- */

/* Flow has its lane: it may be on its way into the hub. */
static bool has_lane(const stg_hub *h, const stg_target *t)
{
    return h->flow != NULL && stg_targets_at(&h->targets, t->lane) == t;
}

bool stg_oauth_is_gated(const stg_target *t)
{
    return t->token != NULL && !t->token->is_usable;
}

const char *stg_oauth_why(const stg_target *t)
{
    return stg_oauth_is_gated(t) && t->token->cause[0] != '\0' ? t->token->cause
                                                               : NULL;
}

/* Makes true for the lane of a target, and tells people, what is known of its
 * token. */
static void apply(stg_hub *h, const stg_target *t)
{
    stg_ns now = stg_deadlines_now();

    if (!has_lane(h, t))
        return;
    stg_flow_gate(h->flow, t->lane, stg_oauth_is_gated(t), now);
    stg_watch_token(&h->watch, t, stg_oauth_why(t), now);
    stg_shell_note(h);
}

static void set_due(stg_oauth_token *k, stg_ns now)
{
    stg_hub *h = k->hub;
    bool is_idle = stg_list_is_empty(&k->targets) || h->oauth.closed != NULL;

    stg_deadline_set(&h->deadlines, &k->due,
                     is_idle ? STG_NEVER
                             : stg_oauth_state_wake_at(&k->state, now));
}

/* The state has changed, or may have. While there is no token, targets hear of
 * each failure: its cause may be another. */
static void update(stg_oauth_token *k)
{
    stg_hub *h = k->hub;
    stg_ns now = stg_deadlines_now();
    bool was_usable = k->is_usable;

    k->is_usable = stg_oauth_state_is_usable(&k->state, now);
    for (stg_link *at = stg_list_first(&k->targets);
         at != NULL && !(was_usable && k->is_usable);
         at = stg_list_next(&k->targets, at)) {
        apply(h, STG_HOLDER(at, stg_target, token_link));
        h->oauth.gated += (uint64_t)was_usable - k->is_usable;
    }
    set_due(k, now);
}

void stg_oauth_use(stg_target *t, stg_oauth_token *k)
{
    stg_oauth_token *old = t->token;

    if (old != NULL) {
        stg_list_remove(&t->token_link);
        old->hub->oauth.gated -= !old->is_usable;
    }
    t->token = k;
    if (k != NULL) {
        stg_list_push(&k->targets, &t->token_link);
        k->hub->oauth.gated += !k->is_usable;
        set_due(k, stg_deadlines_now());
    }
    if (k != NULL || old != NULL)
        apply(k != NULL ? k->hub : old->hub, t);
    stg_oauth_drop(old);
}

stg_status stg_oauth_give(stg_hub *h, stg_target *t, stg_error *err)
{
    stg_oauth_token *token;
    stg_status status =
        stg_oauth_take(h, t->settings->common->token, &token, err);

    if (status == STG_OK)
        stg_oauth_use(t, token);
    return status;
}

/* -- a fetch --------------------------------------------------------------- */

/* There is no new token. */
static void tell_failure(stg_oauth_token *k, const char *words, stg_ns now)
{
    const stg_hub *h = k->hub;

    snprintf(k->cause, sizeof k->cause, "token: %.240s: %.380s", k->url, words);
    STG_LOG(
        h->log, k->is_usable ? STG_LOG_WARN : STG_LOG_ERROR, "token-failed",
        stg_field_text("detail", k->cause),
        stg_field_text("client", k->o.client_id),
        stg_field_bool("is_usable", stg_oauth_state_is_usable(&k->state, now)),
        stg_field_time("wait", stg_ns_sub(k->state.ask_at, now)));
}

static void fail(stg_oauth_token *k, const char *words, stg_ns delay)
{
    stg_ns now = stg_deadlines_now();

    k->hub->oauth.failures++;
    stg_oauth_state_fail(&k->state, delay, now);
    tell_failure(k, words, now);
}

/* The line is made before the old one goes: without memory that stays. */
static void take(stg_oauth_token *k, stg_oauth_answer *a)
{
    stg_text line = {.at = NULL};
    stg_hub *h = k->hub;
    stg_ns now = stg_deadlines_now();

    stg_text_put(&line, "Authorization: Bearer ");
    stg_text_put(&line, a->token);
    stg_text_put(&line, "\r\n");
    OPENSSL_cleanse(a->token, strlen(a->token));
    free(a->token);
    if (line.is_short) {
        fail(k, "there is no memory for a token", 0);
        return;
    }
    wipe(&k->line);
    k->line = line;
    stg_oauth_state_take(&k->state, a->lifetime, now);
    if (!stg_oauth_state_is_usable(&k->state, now)) {
        h->oauth.failures++;
        tell_failure(k, "gave a token that had ended when it came", now);
        return;
    }
    STG_LOG(h->log, k->cause[0] == '\0' ? STG_LOG_DEBUG : STG_LOG_INFO,
            "token-fetched", stg_field_text("url", k->url),
            stg_field_text("client", k->o.client_id),
            stg_field_time("lifetime", a->lifetime));
    k->cause[0] = '\0';
}

static void note(stg_oauth_token *k, const stg_reply *reply)
{
    stg_oauth_answer a;
    stg_error err;

    k->hub->oauth.fetches++;
    if (reply->status == 0)
        fail(k, reply->detail, 0);
    else if (stg_oauth_answer_read(&a, reply->status, reply->answer, &err) ==
             STG_OK)
        take(k, &a);
    else
        fail(k, err.text, reply->outcome.delay);
    update(k);
}

/* The last one lets a closing hub go on, which frees the token. */
static void answered(void *ctx, const stg_reply *reply)
{
    stg_oauth_token *k = ctx;
    stg_oauth *all = &k->hub->oauth;

    k->exchange = NULL;
    wipe(&k->body);
    all->under_way--;
    if (k->holds == 0)
        free_token(k);
    else if (all->closed == NULL)
        note(k, reply);
    if (all->under_way == 0 && all->closed != NULL)
        all->closed(all->ctx);
}

/* The JWT of a request; NULL: no memory, or no random numbers. */
static char *make_assertion(const stg_oauth_token *k)
{
    enum { BYTES = 16 };
    unsigned char bytes[BYTES];
    char id[2 * BYTES + 1];

    if (uv_random(NULL, NULL, bytes, sizeof bytes, 0, NULL) != 0)
        return NULL;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(id + 2 * i, 3, "%02x", bytes[i]);
    return stg_oauth_assertion(&k->o, k->key, stg_wall_now() / STG_S, id);
}

static void fetch(stg_oauth_token *k)
{
    char *assertion = k->key != NULL ? make_assertion(k) : NULL;
    stg_text headers = {.at = NULL};

    if (k->key == NULL || assertion != NULL)
        stg_oauth_request(&k->o, assertion, &headers, &k->body);
    if (headers.size > 0 && !headers.is_short && !k->body.is_short)
        k->exchange = stg_endpoint_send(
            k->endpoint, (stg_span){headers.at, headers.size},
            (stg_span){k->body.at, k->body.size}, fetch_timeout, answered, k);
    free(assertion);
    wipe(&headers);
    if (k->exchange != NULL) {
        k->hub->oauth.under_way++;
        return;
    }
    wipe(&k->body);
    fail(k, "there is no memory to ask it", 0);
}

static void pass(stg_deadline *d)
{
    stg_oauth_token *k = STG_HEAP_HOLDER(d, stg_oauth_token, due);

    if (stg_oauth_state_ask(&k->state, stg_deadlines_now()))
        fetch(k);
    update(k);
}

/* -- a request ------------------------------------------------------------- */

size_t stg_oauth_room(const stg_oauth_token *k)
{
    return k->line.size;
}

char *stg_oauth_put(const stg_oauth_token *k, char *to, uint64_t *number)
{
    *number = k->state.number;
    if (k->line.size > 0)
        memcpy(to, k->line.at, k->line.size);
    return to + k->line.size;
}

static bool refuse(stg_target *t, uint64_t number)
{
    stg_oauth_token *k = t->token;
    stg_hub *h = k->hub;
    stg_ns now = stg_deadlines_now();
    bool was_usable = stg_oauth_state_is_usable(&k->state, now),
         is_again = stg_oauth_state_refuse(&k->state, number, now);

    if (was_usable && !stg_oauth_state_is_usable(&k->state, now)) {
        h->oauth.refused++;
        STG_LOG(h->log, STG_LOG_WARN, "token-refused",
                stg_field_text("target", t->name),
                stg_field_text("url", k->url),
                stg_field_text("next",
                               "another one is fetched, and the attempt "
                               "is made again"));
        update(k);
    }
    return is_again;
}

bool stg_oauth_refuses(stg_target *t, uint64_t number, int status)
{
    enum { UNAUTHORIZED = 401 };

    return status == UNAUTHORIZED && t->token != NULL && refuse(t, number);
}

/* -- the end, and a look --------------------------------------------------- */

void stg_oauth_close(stg_hub *h, void (*closed)(void *ctx), void *ctx)
{
    h->oauth.closed = closed;
    h->oauth.ctx = ctx;
    for (stg_link *at = stg_list_first(&h->oauth.tokens); at != NULL;
         at = stg_list_next(&h->oauth.tokens, at)) {
        stg_oauth_token *k = STG_HOLDER(at, stg_oauth_token, link);

        stg_deadline_clear(&h->deadlines, &k->due);
        if (k->exchange != NULL)
            stg_exchange_cancel(k->exchange);
    }
    if (h->oauth.under_way == 0)
        closed(ctx);
}

void stg_oauth_look(const stg_oauth_token *k, stg_oauth_view *view)
{
    *view = (stg_oauth_view){.is_usable = k->is_usable,
                             .until_at = k->state.until_at,
                             .cause = k->cause};
}
