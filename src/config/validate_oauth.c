/* `oauth2` of one target: whether its parts fit each other and the rest of the
 * target. No diagnostic repeats a secret. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/loading.h"
#include "http/url.h"

static const char *const parts[] = {
    "oauth2.client-id",   "oauth2.client-secret", "oauth2.auth",
    "oauth2.private-key", "oauth2.key-id",        "oauth2.assertion-audience",
    "oauth2.scope",       "oauth2.audience",      "oauth2.ca",
    "oauth2.grant",
};

/* The words of stg_oauth_check() begin with the last part of a path. */
static void complain(stg_loading *l, size_t target, const stg_error *err)
{
    size_t size = strcspn(err->text, ":");
    char path[64];
    const char *at = path;

    snprintf(path, sizeof path, "oauth2.%.*s", (int)size, err->text);
    if (!stg_load_is_written(l, target, path))
        at = "oauth2.token-url";
    stg_complain(l->c, stg_load_target_place(l, target, at), "`%s`%s", path,
                 err->text + size);
}

/* A list of several is possible by its kind, and of these two it is a mistake. */
static void check_one(stg_loading *l, size_t target, const char *path,
                      const stg_sign_secret *secrets, size_t count)
{
    if (count > 1)
        stg_complain(l->c, stg_load_target_place(l, target, path),
                     "`%s`: %zu of them; expected one", path, count);
    if (count > 0 && secrets[0].file == NULL && l->is_exposed)
        stg_warn(
            l->c, stg_load_target_place(l, target, path),
            "`%s` is in a file that others may read; expected it in one of "
            "its own: {file: PATH}",
            path);
}

/* Both would say who sends the request. */
static void check_headers(stg_loading *l, size_t target)
{
    const stg_target_settings *t = &l->s->targets[target];

    for (size_t i = 0; i < t->header_count; i++)
        if (strcasecmp(t->headers[i].name, "Authorization") == 0)
            stg_complain(l->c, stg_load_target_place(l, target, "headers"),
                         "`headers`: `Authorization` is that of the token; "
                         "expected another, or no `oauth2`");
    if (t->common->sign.header != NULL &&
        strcasecmp(t->common->sign.header, "Authorization") == 0)
        stg_complain(l->c, stg_load_target_place(l, target, "sign.header"),
                     "`sign.header`: `Authorization` is that of the token; "
                     "expected another, or no `oauth2`");
}

static void check_urls(stg_loading *l, size_t target)
{
    const stg_target_settings *t = &l->s->targets[target];
    stg_file_place place = stg_load_target_place(l, target, "oauth2.token-url");
    stg_url url;
    stg_error err;

    if (stg_url_parse(&url, t->common->oauth.token_url, NULL) != STG_OK)
        return;
    stg_validate_egress(l, place, "oauth2.token-url", &url);
    if (stg_settings_check_loop(l->s, t->common->oauth.token_url, &err) !=
        STG_OK)
        stg_complain(
            l->c, place,
            "`oauth2.token-url`: the hub itself listens there; expected "
            "that of an authorization server");
    if (!url.is_tls && !stg_validate_is_private(&url))
        stg_warn(l->c, place,
                 "the client's secret is sent in the clear, by http:// to a "
                 "host that is not private; expected https://");
    if (t->url != NULL && stg_url_parse(&url, t->url, NULL) == STG_OK &&
        !url.is_tls && !stg_validate_is_private(&url))
        stg_warn(l->c, stg_load_target_place(l, target, "url"),
                 "a token is sent in the clear, by http:// to a host that is "
                 "not private; expected https://");
}

/* Settings that have no effect are a mistake. */
static void check_unused(stg_loading *l, size_t target)
{
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (stg_load_is_own(l, target, parts[i]))
            stg_complain(l->c, stg_load_target_place(l, target, parts[i]),
                         "`%s` without `oauth2.token-url`; expected both",
                         parts[i]);
}

/* A list that is there and has no item was complained of. */
static bool was_refused(const stg_loading *l, size_t target, const char *path,
                        size_t count)
{
    return count == 0 && stg_load_is_written(l, target, path);
}

void stg_validate_oauth(stg_loading *l, size_t target)
{
    stg_target_settings *t = &l->s->targets[target];
    const stg_oauth_settings *o = &t->common->oauth;
    stg_error err;

    if (!stg_load_is_written(l, target, "oauth2.token-url") &&
        o->token_url == NULL)
        check_unused(l, target);
    if (o->token_url == NULL || o->grant == STG_GRANT_NONE)
        return;
    check_one(l, target, "oauth2.client-secret", o->secrets, o->secret_count);
    check_one(l, target, "oauth2.private-key", o->keys, o->key_count);
    check_headers(l, target);
    check_urls(l, target);
    if (was_refused(l, target, "oauth2.client-secret", o->secret_count) ||
        was_refused(l, target, "oauth2.private-key", o->key_count))
        return;
    if (stg_settings_make_token(l->s, t->common, &err) != STG_OK)
        complain(l, target, &err);
}
