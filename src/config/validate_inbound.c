/* Inbound webhooks: whether scheme, secrets and the rest of each fit each other, and
 * the source. No diagnostic repeats a secret. */
#include <stdio.h>
#include <string.h>

#include "config/loading.h"
#include "kafka/topic.h"

enum { SECRETS_MAX = 8 };

static bool is_written(const stg_loading *l, size_t i, const char *path)
{
    return l->inbounds[i][stg_load_number(STG_IN_INBOUND, path)].line > 0;
}

/* Where it was written, else the webhook. */
static stg_file_place place_of(const stg_loading *l, size_t i, const char *path)
{
    return l->inbounds[i][is_written(l, i, path)
                              ? stg_load_number(STG_IN_INBOUND, path)
                              : 0];
}

static bool has_needed(stg_loading *l, size_t i)
{
    static const char *const needed[][2] = {
        {"name", "name: NAME, the last part of its path"},
        {"scheme",
         "scheme: standard-webhooks, github, stripe, rfc9421 or custom"},
        {"secrets", "secrets: {file: PATH}"},
    };
    bool has_all = true;

    for (size_t k = 0; k < sizeof needed / sizeof *needed; k++)
        if (!is_written(l, i, needed[k][0])) {
            stg_complain(l->c, l->inbounds[i][0],
                         "a webhook of `inbound` without `%s`; expected `%s`",
                         needed[k][0], needed[k][1]);
            has_all = false;
        }
    return has_all;
}

static void check_name(stg_loading *l, size_t i)
{
    const char *name = l->s->inbound[i].hook.name;

    for (size_t k = 0; name != NULL && k < i; k++)
        if (l->s->inbound[k].hook.name != NULL &&
            strcmp(l->s->inbound[k].hook.name, name) == 0)
            stg_complain(l->c, place_of(l, i, "name"),
                         "two webhooks of `inbound` have the name `%s`; "
                         "expected a `name` of its own (see line %u)",
                         name, (unsigned)place_of(l, k, "name").line);
}

/* -- secrets --------------------------------------------------------------- */

static void check_secret(stg_loading *l, size_t i, size_t k)
{
    const stg_inbound_settings *o = &l->s->inbound[i];
    const stg_sign_secret *secret = &o->secrets[k];
    stg_error err;

    if (secret->file == NULL && l->is_exposed &&
        strncmp(secret->value, "whpk_", 5) != 0)
        stg_warn(l->c, place_of(l, i, "secrets"),
                 "secret %zu of `secrets` is in a file that others may read; "
                 "expected it in one of its own: {file: PATH}",
                 k + 1);
    if (stg_verify_check_secret(&o->hook.sign, secret->value, &err) == STG_OK)
        return;
    if (secret->file != NULL)
        stg_complain(l->c, place_of(l, i, "secrets"),
                     "`secrets`, the file %.120s: %s", secret->file, err.text);
    else
        stg_complain(l->c, place_of(l, i, "secrets"),
                     "`secrets`, number %zu: %s", k + 1, err.text);
}

static void check_secrets(stg_loading *l, size_t i)
{
    const stg_inbound_settings *o = &l->s->inbound[i];

    if (o->secret_count > SECRETS_MAX)
        stg_complain(l->c, place_of(l, i, "secrets"),
                     "`secrets`: %zu of them; expected %d at most",
                     o->secret_count, SECRETS_MAX);
    for (size_t k = 0; k < o->secret_count; k++)
        check_secret(l, i, k);
}

/* -- the rest -------------------------------------------------------------- */

/* The words of the check begin with the setting. */
static void check_custom(stg_loading *l, size_t i)
{
    static const char *const custom[] = {
        "header", "timestamp-header", "id-header", "signs",
        "prefix", "algorithm",        "encoding",  "covers",
    };
    const stg_sign_options *o = &l->s->inbound[i].hook.sign;
    const stg_sign_scheme schemes[][2] = {
        {STG_SIGN_CUSTOM},
        {STG_SIGN_CUSTOM},
        {STG_SIGN_CUSTOM, STG_SIGN_MESSAGE},
        {STG_SIGN_CUSTOM},
        {STG_SIGN_CUSTOM},
        {stg_sign_algorithm_scheme(o->algorithm)},
        {STG_SIGN_CUSTOM},
        {STG_SIGN_MESSAGE},
    };
    char path[32];
    stg_error err;

    for (size_t k = 0; k < sizeof custom / sizeof *custom; k++)
        if (o->scheme != schemes[k][0] && o->scheme != schemes[k][1] &&
            is_written(l, i, custom[k]))
            stg_complain(l->c, place_of(l, i, custom[k]),
                         "`%s` is for another scheme; expected it with "
                         "`scheme: %s`",
                         custom[k], stg_sign_schemes[schemes[k][0]]);
    if (stg_verify_check(o, &err) == STG_OK)
        return;
    snprintf(path, sizeof path, "%.*s", (int)strcspn(err.text, ":"), err.text);
    stg_complain(l->c, place_of(l, i, path), "`%s`%s", path,
                 err.text + strlen(path));
}

static void check_topic(stg_loading *l, size_t i)
{
    const char *topic = l->s->inbound[i].hook.topic;
    const stg_texts *topics = &l->s->kafka.topics;

    if (l->s->source != STG_SOURCE_KAFKA) {
        if (topic != NULL)
            stg_complain(l->c, place_of(l, i, "topic"),
                         "`topic`, and messages do not go to Kafka; expected "
                         "`source: kafka`");
        return;
    }
    if (topic != NULL && !stg_validate_has_topic(topics, topic))
        stg_complain(l->c, place_of(l, i, "topic"),
                     "`topic`: %.60s is none of `kafka.topics`, so that "
                     "nobody would get its messages; expected one of them",
                     topic);
    if (topic == NULL &&
        (topics->count > 1 ||
         (topics->count == 1 && stg_topic_is_pattern(topics->at[0]))))
        stg_complain(l->c, l->inbounds[i][0],
                     "the hub reads several topics, and a webhook of `inbound` "
                     "has no `topic`; expected one of them");
}

void stg_validate_inbound(stg_loading *l)
{
    for (size_t i = 0; i < l->inbound_count; i++) {
        check_name(l, i);
        check_topic(l, i);
        if (!has_needed(l, i) ||
            l->s->inbound[i].hook.sign.scheme == STG_SIGN_NONE)
            continue; // a word that was refused
        check_secrets(l, i);
        check_custom(l, i);
    }
}
