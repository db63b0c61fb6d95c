/* Signatures of one target: whether scheme, secrets and the rest fit each other. A
 * secret is checked here and not when it is read, for its scheme may be in the
 * defaults, or further below. No diagnostic repeats one. */
#include <stdio.h>
#include <string.h>

#include "config/loading.h"

static void complain(stg_loading *l, size_t target, const char *path,
                     const char *what, const stg_error *err)
{
    stg_complain(l->c, stg_load_target_place(l, target, path), "`%s`%s: %s",
                 path, what, err->text);
}

/* -- secrets --------------------------------------------------------------- */

static void check_secret(stg_loading *l, size_t target, size_t i)
{
    const stg_target_settings *t = &l->s->targets[target];
    const stg_sign_secret *secret = &t->secrets[i];
    char which[200];
    stg_error err;

    if (secret->file == NULL && l->is_exposed)
        stg_warn(l->c, stg_load_target_place(l, target, "sign.secrets"),
                 "secret %zu of `sign.secrets` is in a file that others may "
                 "read; expected it in one of its own: {file: PATH}",
                 i + 1);
    if (stg_sign_check_secret(&t->common->sign, secret->value, &err) == STG_OK)
        return;
    if (secret->file != NULL)
        snprintf(which, sizeof which, ", the file %.120s", secret->file);
    else
        snprintf(which, sizeof which, ", number %zu", i + 1);
    complain(l, target, "sign.secrets", which, &err);
}

/* Those of the defaults are checked with the first target that has them. */
static void check_secrets(stg_loading *l, size_t target)
{
    const stg_target_settings *t = &l->s->targets[target];
    const stg_sign_options *sign = &t->common->sign,
                           *d = &l->s->defaults.common->sign;
    static const char path[] = "sign.secrets";
    size_t most = stg_sign_secrets_max(sign->scheme);
    bool is_default = t->secrets == l->s->defaults.secrets &&
                      sign->scheme == d->scheme &&
                      sign->algorithm == d->algorithm;

    if (t->secret_count == 0 && !stg_load_is_written(l, target, path))
        stg_complain(l->c, stg_load_target_place(l, target, "sign.scheme"),
                     "`sign.scheme` without `sign.secrets`; expected both: "
                     "`stagger secret new` makes a secret");
    if (t->secret_count == 0) // or the list was complained of
        return;
    if (is_default && l->has_checked_sign)
        return;
    l->has_checked_sign = l->has_checked_sign || is_default;
    if (t->secret_count > most)
        stg_complain(l->c, stg_load_target_place(l, target, path),
                     "`sign.secrets`: %zu of them; expected %zu%s",
                     t->secret_count, most,
                     most == 1 ? ", for a request has one signature of this "
                                 "scheme"
                               : " at most");
    for (size_t i = 0; i < t->secret_count; i++)
        check_secret(l, target, i);
}

/* -- the rest -------------------------------------------------------------- */

static const char *const custom[] = {
    "sign.header",    "sign.timestamp-header", "sign.signs",  "sign.prefix",
    "sign.algorithm", "sign.encoding",         "sign.covers", "sign.key-id",
};

enum { CUSTOM = sizeof custom / sizeof *custom, OF_MESSAGES = 2 };

/* The scheme that a setting is of; the last ones are of messages, and algorithms of
 * RSA. */
static stg_sign_scheme scheme_of(const stg_sign_options *o, size_t i)
{
    if (strcmp(custom[i], "sign.algorithm") == 0)
        return stg_sign_algorithm_scheme(o->algorithm);
    return i < CUSTOM - OF_MESSAGES ? STG_SIGN_CUSTOM : STG_SIGN_MESSAGE;
}

/* The words of stg_sign_check() begin with the last part of a path. */
static void check_custom(stg_loading *l, size_t target)
{
    const stg_target_settings *t = &l->s->targets[target];
    const stg_sign_options *sign = &t->common->sign;
    char path[64] = "sign.scheme";
    size_t size;
    stg_error err;

    if (stg_sign_check(sign, &err) == STG_OK)
        return;
    size = strcspn(err.text, ":");
    for (size_t i = 0;
         (sign->header != NULL || sign->scheme == STG_SIGN_MESSAGE) &&
         i < CUSTOM;
         i++)
        if (strncmp(custom[i] + strlen("sign."), err.text, size) == 0 &&
            strlen(custom[i]) == strlen("sign.") + size)
            snprintf(path, sizeof path, "%s", custom[i]);
    stg_complain(l->c, stg_load_target_place(l, target, path), "`sign.%.*s`%s",
                 (int)size, err.text, err.text + size);
}

/* Settings that have no effect are a mistake, for what was meant is another
 * scheme. */
static void check_unused(stg_loading *l, size_t target)
{
    const stg_target_settings *t = &l->s->targets[target];
    const stg_sign_options *sign = &t->common->sign;

    for (size_t i = 0; i < CUSTOM; i++)
        if (sign->scheme != scheme_of(sign, i) &&
            stg_load_is_own(l, target, custom[i]))
            stg_complain(l->c, stg_load_target_place(l, target, custom[i]),
                         "`%s` is for another scheme; expected it with "
                         "`sign.scheme: %s`",
                         custom[i], stg_sign_schemes[scheme_of(sign, i)]);
    if (sign->scheme == STG_SIGN_NONE &&
        stg_load_is_own(l, target, "sign.secrets") &&
        !stg_load_is_own(l, target, "sign.scheme"))
        stg_complain(
            l->c, stg_load_target_place(l, target, "sign.secrets"),
            "`sign.secrets` without `sign.scheme`; expected both, such "
            "as `scheme: standard-webhooks`");
}

/* A request would have the header twice. */
static void check_headers(stg_loading *l, size_t target)
{
    const stg_target_settings *t = &l->s->targets[target];

    for (size_t i = 0; i < t->header_count; i++) {
        const char *name = t->headers[i].name;

        if (stg_sign_sets(&t->common->sign, (stg_span){name, strlen(name)}))
            stg_complain(
                l->c, stg_load_target_place(l, target, "headers"),
                "`headers`: `%.60s` is that of the signature; expected "
                "another, or no `sign`",
                name);
    }
}

void stg_validate_sign(stg_loading *l, size_t target)
{
    const stg_target_settings *t = &l->s->targets[target];
    const stg_sign_options *sign = &t->common->sign;

    check_unused(l, target);
    if (sign->scheme == STG_SIGN_NONE)
        return;
    check_secrets(l, target);
    check_custom(l, target);
    if (sign->scheme != STG_SIGN_CUSTOM || sign->header != NULL)
        check_headers(l, target);
}
