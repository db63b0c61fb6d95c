/* Webhooks that others send: found by name, verified, and what of a request is its
 * message.
 *
 * A request is verified twice: its headers, before any of its body is kept, and all
 * of it when it is whole. In between the settings may have changed, so it is looked
 * up each time. */
#include "ingress/webhook.h"

#include <string.h>

#include "base/json.h"
#include "host/wall.h"
#include "http/header.h"
#include "ingress/internal.h"

/* NULL: there is none of the request's path. */
static const stg_webhook *find(const stg_caller *c)
{
    const stg_ingress *g = stg_ingress_of(c);
    char name[STG_WORD_MAX] = "";

    (void)stg_request_read_path(c);
    (void)stg_route_word(c->match.route->path, g->path, 0, name, sizeof name);
    for (size_t i = 0; i < g->webhook_count; i++)
        if (strcmp(g->webhooks[i].name, name) == 0)
            return &g->webhooks[i];
    return NULL;
}

/* A signature that is right is counted once, when all of it is known. */
static bool judge(stg_caller *c, stg_signature how, bool is_whole,
                  const stg_error *why)
{
    stg_ingress *g = stg_ingress_of(c);

    if (how != STG_SIGNATURE_RIGHT || is_whole)
        g->view.signatures[how]++;
    return how == STG_SIGNATURE_RIGHT ||
           stg_problem_set(&c->problem, 401, 0, "%s", why->text);
}

bool stg_webhook_check(stg_caller *c, bool is_whole)
{
    stg_verify_request r = stg_verify_request_of(
        &c->in.request, is_whole ? stg_caller_body(c) : (stg_span){"", 0});
    uint64_t now = stg_wall_now() / STG_S;
    stg_signature how;
    stg_error why;

    c->webhook = find(c);
    if (c->webhook == NULL)
        return stg_problem_set(&c->problem, 404, 0,
                               "there is no such webhook: the setting inbound "
                               "names them");
    how = is_whole
              ? stg_verifier_check(c->webhook->verifier, &r, now, &why)
              : stg_verifier_check_head(c->webhook->verifier, &r, now, &why);
    return judge(c, how, is_whole, &why);
}

/* The delivery's id may go on: X-GitHub-Delivery does, too. */
bool stg_webhook_drops(const stg_webhook *w, stg_span name)
{
    if (w->sign.id_header != NULL &&
        stg_header_matches(w->sign.id_header, name))
        return false;
    return stg_sign_sets(&w->sign, name) ||
           (w->sign.scheme == STG_SIGN_GITHUB &&
            stg_header_matches("X-Hub-Signature", name)); // by SHA-1
}

/* -- the id of a delivery -------------------------------------------------- */

const char *stg_webhook_id_header(const stg_webhook *w)
{
    switch (w->sign.scheme) {
    case STG_SIGN_STANDARD:
        return "Webhook-Id";
    case STG_SIGN_GITHUB:
        return "X-GitHub-Delivery";
    case STG_SIGN_MESSAGE:
    case STG_SIGN_CUSTOM:
        return w->sign.id_header != NULL ? w->sign.id_header
                                         : "Idempotency-Key";
    default:
        return NULL;
    }
}

/* "id" of an event of Stripe. False: the body has none. */
static bool find_member(stg_span body, char *text, size_t room, stg_span *id)
{
    stg_scan s = stg_scan_of(body);
    bool is_first = true;
    stg_span name, value;

    while (stg_scan_member(&s, &is_first, &name, &value))
        if (name.size == 4 && memcmp(name.at, "\"id\"", 4) == 0 &&
            *value.at == '"' && value.size <= room) {
            *id = (stg_span){text, stg_scan_text(value, text)};
            return true;
        }
    return false;
}

/* "in/NAME/ID" behind a byte that no header has, so that no publisher has the same key.
 * One that is too long to be a key becomes its own problem. */
stg_span stg_webhook_key(const stg_caller *c, stg_span header,
                         char key[STG_WEBHOOK_KEY_MAX])
{
    const stg_webhook *w = c->webhook;
    char text[STG_WEBHOOK_KEY_MAX], *at = key;
    stg_span id = header;

    if (w->sign.scheme == STG_SIGN_STRIPE &&
        !find_member(stg_caller_body(c), text, STG_KEY_SIZE_MAX, &id))
        id.size = 0;
    if (id.size == 0 || id.size > STG_KEY_SIZE_MAX ||
        stg_ingress_of(c)->options.is_keyless)
        return (stg_span){"", 0};
    at = stpcpy(stpcpy(at, "\001in/"), w->name);
    *at++ = '/';
    memcpy(at, id.at, id.size);
    return (stg_span){key, (size_t)(at - key) + id.size};
}
