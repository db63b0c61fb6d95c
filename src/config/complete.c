/* Completes settings: every target gets a name of its own, a policy, a signer if its
 * requests are signed, and what it needs for a token; the hub keeps its share of the
 * targets.
 *
 * For settings of a file and of the command's options alike. What can be wrong with a
 * target alone, or beside the others, is found here at the latest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "config/loading.h"
#include "config/targets.h"
#include "http/url.h"
#include "ingress/address.h"

static stg_status refuse_memory(stg_error *err)
{
    return stg_hub_refuse(err, STG_IO, "out of memory");
}

/* -- names ----------------------------------------------------------------- */

/* A target without a name gets one that is made of its URL. */
static stg_status name_target(stg_settings *s, stg_target_settings *t,
                              stg_error *err)
{
    char name[STG_TARGET_NAME_MAX];

    if (t->url == NULL)
        return stg_hub_refuse(err, STG_INVALID, "it has no URL");
    if (t->name == NULL) {
        if (stg_target_name(t->url, name, err) != STG_OK)
            return STG_INVALID;
        t->name = stg_settings_keep_text(s, name, strlen(name));
        return t->name != NULL ? STG_OK : refuse_memory(err);
    }
    if (stg_target_is_name(t->name))
        return STG_OK;
    return stg_hub_refuse(
        err, STG_INVALID,
        "this is no name of a target, expected 1 to 64 of A-Z a-z 0-9 "
        ". _ -");
}

/* Names made of URLs count, too: two targets of one URL need names. */
static stg_status check_unique(stg_text_table *names, const stg_settings *s,
                               size_t i, stg_error *err)
{
    size_t first;

    if (!stg_text_table_add(names, s->targets[i].name, i, &first))
        return refuse_memory(err);
    if (first == i)
        return STG_OK;
    return stg_hub_refuse(
        err, STG_INVALID,
        "two targets have this name; give one of them another");
}

/* -- policies -------------------------------------------------------------- */

/* The text that a target's policy is made of: a name is looked up, and all else
 * is a text. */
static const char *text_of(const stg_settings *s, const char *text)
{
    for (size_t i = 0; text != NULL && i < s->policy_count; i++)
        if (strcmp(s->policies[i].name, text) == 0)
            return s->policies[i].text;
    return text;
}

static stg_status compile(stg_settings *s, const char *text,
                          stg_target_common *c, stg_error *err)
{
    stg_policy *made, read;

    if (stg_lane_policy_read(&read, text, s->target_count, c->attempt_timeout,
                             c->rate, err) != STG_OK)
        return STG_INVALID;
    made = stg_settings_keep(s, sizeof *made);
    if (made == NULL)
        return refuse_memory(err);
    *made = read;
    c->policy = made;
    return STG_OK;
}

/* NULL: no settings had that key so far. */
static const stg_policy *find_policy(const struct stg_settings_inside *in,
                                     const char *key)
{
    size_t address;

    return in != NULL && stg_text_table_find(&in->compiled, key, &address)
               ? (const stg_policy *)(uintptr_t)address
               : NULL;
}

/* Targets that say the same share one policy, because it is large; so does one that
 * a call has added, with those of the settings. The key is all that
 * stg_lane_policy_read() depends on, but for the number of targets, which is the same
 * for all of them. */
static stg_status give_policy(stg_settings *s, stg_target_common *c,
                              stg_error *err)
{
    struct stg_settings_inside *in = s->inside;
    const char *text = text_of(s, c->policy_text);
    size_t size = (text != NULL ? strlen(text) : 0) + 48;
    char *key = malloc(size), *kept;
    stg_status status = STG_OK;

    if (key == NULL)
        return refuse_memory(err);
    snprintf(key, size, "%llu %lu %s", (unsigned long long)c->attempt_timeout,
             (unsigned long)c->rate, text != NULL ? text : "");
    c->policy = find_policy(in, key);
    if (c->policy == NULL)
        c->policy = find_policy(in->base, key);
    if (c->policy == NULL) {
        kept = stg_settings_keep_text(s, key, strlen(key));
        status = compile(s, text, c, err);
        if (status == STG_OK &&
            (kept == NULL ||
             !stg_text_table_add(&in->compiled, kept,
                                 (size_t)(uintptr_t)c->policy, NULL)))
            status = refuse_memory(err);
    }
    free(key);
    return status;
}

/* -- signatures ------------------------------------------------------------ */

static bool has_sign_of(const stg_target_settings *t,
                        const stg_target_settings *other)
{
    return t->secrets == other->secrets &&
           t->secret_count == other->secret_count &&
           stg_sign_same(&t->common->sign, &other->common->sign);
}

/* It goes with the settings. */
static stg_status make_signer(stg_settings *s, stg_target_settings *t,
                              stg_error *err)
{
    const stg_sign_options *sign = &t->common->sign;
    struct stg_settings_inside *in = s->inside;
    size_t count = t->secret_count, most = stg_sign_secrets_max(sign->scheme);
    const char **secrets = stg_sign_secret_texts(t->secrets, count);
    stg_signer *signer = NULL,
               **grown = realloc(in->signers,
                                 (in->signer_count + 1) * sizeof(stg_signer *));
    stg_status status = stg_sign_check(sign, err);

    if (grown != NULL)
        in->signers = grown;
    if (secrets == NULL || grown == NULL)
        status = refuse_memory(err);
    else if (status == STG_OK && (count == 0 || count > most))
        status = stg_hub_refuse(err, STG_INVALID,
                                "%zu secrets to sign with; expected 1 to %zu",
                                count, most);
    if (status == STG_OK)
        status = stg_signer_new(&signer, sign, secrets, count, err);
    free(secrets);
    if (status == STG_OK)
        in->signers[in->signer_count++] = signer;
    t->signer = signer;
    return status;
}

/* Targets that sign as the defaults do share one signer. */
static stg_status give_signer(stg_settings *s, stg_target_settings *t,
                              stg_error *err)
{
    bool is_default = has_sign_of(t, &s->defaults);
    stg_status status = STG_OK;

    t->signer = is_default ? s->defaults.signer : NULL;
    if (t->common->sign.scheme == STG_SIGN_NONE || t->signer != NULL)
        return STG_OK;
    status = make_signer(s, t, err);
    if (is_default)
        s->defaults.signer = t->signer;
    return status;
}

/* -- tokens ------------------------------------------------------------------ */

/* Scopes with blanks between them; NULL: no memory. */
static const char *join_scope(stg_settings *s, const stg_texts *scope)
{
    size_t size = 1;
    char *text, *at;

    for (size_t i = 0; i < scope->count; i++)
        size += strlen(scope->at[i]) + 1;
    at = text = stg_settings_keep(s, size);
    for (size_t i = 0; text != NULL && i < scope->count; i++)
        at += snprintf(at, size - (size_t)(at - text), i > 0 ? " %s" : "%s",
                       scope->at[i]);
    return text;
}

/* The texts stay the settings'; only the scopes are joined. */
stg_status stg_settings_make_token(stg_settings *s, stg_target_common *c,
                                   stg_error *err)
{
    const stg_oauth_settings *from = &c->oauth;
    stg_oauth_options *o;

    c->token = NULL;
    if (from->token_url == NULL || from->grant == STG_GRANT_NONE)
        return STG_OK;
    o = stg_settings_keep(s, sizeof *o);
    if (o == NULL)
        return refuse_memory(err);
    *o = (stg_oauth_options){
        .token_url = from->token_url,
        .token_url_shown = from->token_url_written,
        .client_id = from->client_id,
        .client_secret = from->secret_count > 0 ? from->secrets[0].value : NULL,
        .private_key = from->key_count > 0 ? from->keys[0].value : NULL,
        .key_id = from->key_id,
        .assertion_audience = from->assertion_audience,
        .audience = from->audience,
        .auth = from->auth,
        .ca_file = from->ca_file};
    if (from->scope.count > 0 &&
        (o->scope = join_scope(s, &from->scope)) == NULL)
        return refuse_memory(err);
    c->token = o;
    return stg_oauth_check(o, err);
}

/* -- where they are -------------------------------------------------------- */

/* A URL with a name is not resolved here: it is found by its hops then. */
stg_status stg_settings_check_loop(const stg_settings *s, const char *url,
                                   stg_error *err)
{
    const char *listens =
        s->listen.bound != NULL ? s->listen.bound : s->listen.address;
    stg_listen_address address;
    stg_url u;
    char host[64];

    if (listens == NULL || url == NULL ||
        stg_address_parse(&address, listens, NULL) != STG_OK ||
        stg_url_parse(&u, url, NULL) != STG_OK || u.host.size >= sizeof host)
        return STG_OK;
    snprintf(host, sizeof host, "%.*s", (int)u.host.size, u.host.at);
    if (!stg_address_reaches(&address, host, u.port))
        return STG_OK;
    return stg_hub_refuse(err, STG_INVALID,
                          "the hub itself listens there (on %s), and each "
                          "message would come back as a new one; expected "
                          "another",
                          listens);
}

/* Only addresses can be checked here: what a name resolves to is checked when
 * the hub connects. */
stg_status stg_settings_check_egress(const stg_settings *s, const stg_url *url,
                                     stg_error *err)
{
    struct sockaddr_storage to;
    char why[STG_EGRESS_WHY_MAX];

    if (!stg_url_read_address(url, &to) ||
        stg_egress_allows(&s->egress, (const struct sockaddr *)&to, why))
        return STG_OK;
    return stg_hub_refuse(
        err, STG_INVALID,
        "the hub may not connect to its address: %s; expected "
        "another, or one that `egress.allow` has",
        why);
}

/* Whether messages may be sent there. A URL that is none is found elsewhere. */
static stg_status check_url(const stg_settings *s, const char *text,
                            stg_error *err)
{
    stg_status status = stg_settings_check_loop(s, text, err);
    stg_url url;

    if (status != STG_OK || stg_url_parse(&url, text, NULL) != STG_OK)
        return status;
    return stg_settings_check_egress(s, &url, err);
}

/* -- templates ------------------------------------------------------------- */

/* Values from a file are secrets, and are sent as they are. */
bool stg_header_is_template(const stg_header_setting *h)
{
    return h->file == NULL && stg_template_is(h->value);
}

/* Whether the URL or one of the headers is made of each message. */
static bool are_templates(const stg_target_settings *t)
{
    bool is_any = stg_template_is(t->url);

    for (size_t i = 0; i < t->header_count; i++)
        is_any |= stg_header_is_template(&t->headers[i]);
    return is_any;
}

/* Only what is made of each message: the host of a URL cannot be, since the
 * connection is shared. */
const char *stg_settings_check_templates(const stg_target_settings *t,
                                         const char **key,
                                         char flaw[STG_TEMPLATE_FLAW_MAX])
{
    stg_url url;

    *key = "url";
    if (stg_url_parse(&url, t->url, NULL) == STG_OK &&
        !stg_template_check(url.path.at, flaw))
        return flaw;
    *key = "headers";
    for (size_t i = 0; i < t->header_count; i++)
        if (stg_header_is_template(&t->headers[i]) &&
            !stg_template_check(t->headers[i].value, flaw))
            return flaw;
    *key = "sign.scheme";
    if (t->common->sign.scheme == STG_SIGN_MESSAGE && stg_template_is(t->url))
        return "rfc9421 signs where a request goes, and each has a `url` of its "
               "own; expected another scheme, or no {...} in `url`";
    *key = "batch.max";
    return t->common->batch.max > 1 && are_templates(t)
               ? "a batch is one request; expected 1, or no {...} in `url` and "
                 "`headers`"
               : NULL;
}

static stg_status set_templates(stg_target_settings *t, stg_error *err)
{
    char flaw[STG_TEMPLATE_FLAW_MAX];
    const char *key, *why = stg_settings_check_templates(t, &key, flaw);

    t->is_templated = are_templates(t);
    return why == NULL ? STG_OK
                       : stg_hub_refuse(err, STG_INVALID, "%s: %s", key, why);
}

/* -- all ------------------------------------------------------------------- */

/* Says which target it is. Not by its URL, which may be what is wrong, and have
 * a password in it. */
static stg_status number_error(stg_error *err, size_t i,
                               const stg_target_settings *t, stg_status status,
                               const stg_error *why)
{
    bool has_name = t->name != NULL;

    if (err == NULL)
        return status;
    *err = (stg_error){.line = 0};
    snprintf(err->text, sizeof err->text, "target %zu%s%.64s%s: %.280s", i + 1,
             has_name ? " (" : "", has_name ? t->name : "", has_name ? ")" : "",
             why->text);
    return status;
}

/* Without a policy of its own it gets the preset for many targets by name, so that
 * its policy does not depend on how many there are. What the defaults want of a target
 * is found when one is added. */
static stg_status make_call(stg_settings *s, stg_error *err)
{
    stg_target_common *call = s->defaults.common;
    stg_status status;

    if (s->inside->base != NULL) // a call has added this one
        return STG_OK;
    if (call->policy_text == NULL) {
        call = stg_settings_keep_common(s, call);
        if (call == NULL)
            return refuse_memory(err);
        call->policy_text = stg_lane_policy_preset(SIZE_MAX);
    }
    s->inside->call = call;
    status = give_policy(s, call, err);
    if (status == STG_OK)
        status = stg_settings_make_token(s, call, err);
    return status == STG_INVALID ? STG_OK : status;
}

/* Only those of this hub's shard stay, in their order. */
static void take_share(stg_settings *s)
{
    size_t count = 0;

    for (size_t i = 0; i < s->target_count; i++)
        if (stg_shard_has(&s->shard, s->targets[i].name))
            s->targets[count++] = s->targets[i];
    s->targets_elsewhere = s->target_count - count;
    s->target_count = count;
}

/* Once, for options of the command and for a file alike. The share of this
 * shard is taken last, since policies depend on the number of all targets. */
stg_status stg_settings_complete(stg_settings *s, stg_error *err)
{
    stg_text_table names = {.at = NULL};
    stg_status status = STG_OK;
    stg_error why;

    if (s->inside->is_complete)
        return STG_OK;
    stg_text_table_free(&s->inside->compiled);
    for (size_t i = 0; status == STG_OK && i < s->target_count; i++) {
        stg_target_settings *t = &s->targets[i];

        status = name_target(s, t, &why);
        if (status == STG_OK)
            status = check_unique(&names, s, i, &why);
        if (status == STG_OK)
            status = check_url(s, t->url, &why);
        if (status == STG_OK)
            status = stg_settings_check_route(s, t, &why);
        if (status == STG_OK)
            status = set_templates(t, &why);
        if (status == STG_OK)
            status = give_policy(s, t->common, &why);
        if (status == STG_OK)
            status = give_signer(s, t, &why);
        if (status == STG_OK)
            status = stg_settings_make_token(s, t->common, &why);
        if (status != STG_OK)
            number_error(err, i, t, status, &why);
    }
    stg_text_table_free(&names);
    if (status == STG_OK)
        status = make_call(s, err);
    if (status == STG_OK)
        status = stg_settings_make_webhooks(s, err);
    if (status == STG_OK)
        take_share(s);
    s->inside->is_complete = status == STG_OK;
    return status;
}
