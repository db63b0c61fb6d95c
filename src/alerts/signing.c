/* Signatures of alerts: checks the settings of a receiver, makes its signer, and puts
 * the lines of a signature behind the headers. The signing is http/sign.c's. */
#include "alerts/receiver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "host/wall.h"

/* Settings that have no effect are a mistake. */
static stg_status check_unused(const stg_alert_receiver_options *o,
                               const char **field, stg_error *err)
{
    const stg_sign_options *s = &o->sign;
    const struct {
        const char *path;
        const void *value;
        stg_sign_scheme scheme;
    } custom[] = {{"sign.header", s->header, STG_SIGN_CUSTOM},
                  {"sign.timestamp-header", s->time_header, STG_SIGN_CUSTOM},
                  {"sign.signs", s->signs, STG_SIGN_CUSTOM},
                  {"sign.prefix", s->prefix, STG_SIGN_CUSTOM},
                  {"sign.algorithm", s->algorithm == STG_SIGN_SHA256 ? NULL : s,
                   stg_sign_algorithm_scheme(s->algorithm)},
                  {"sign.covers", s->covers, STG_SIGN_MESSAGE},
                  {"sign.key-id", s->key_id, STG_SIGN_MESSAGE}};

    *field = "sign.secrets";
    if (s->scheme == STG_SIGN_NONE && o->secret_count > 0)
        return stg_hub_refuse(err, STG_INVALID,
                              "without `sign.scheme`; expected both");
    for (size_t i = 0; i < sizeof custom / sizeof *custom; i++)
        if (s->scheme != custom[i].scheme && custom[i].value != NULL) {
            *field = custom[i].path;
            return stg_hub_refuse(err, STG_INVALID,
                                  "it is for another scheme; expected it with "
                                  "`sign.scheme: %s`",
                                  stg_sign_schemes[custom[i].scheme]);
        }
    return STG_OK;
}

static stg_status check_secrets(const stg_alert_receiver_options *o,
                                stg_error *err)
{
    size_t most = stg_sign_secrets_max(o->sign.scheme);
    stg_status status = STG_OK;

    if (o->secret_count < 1 || o->secret_count > most)
        return stg_hub_refuse(err, STG_INVALID, "%zu of them; expected 1%s",
                              o->secret_count, most > 1 ? " to 8" : "");
    for (size_t i = 0; i < o->secret_count && status == STG_OK; i++)
        status = stg_sign_check_secret(&o->sign, o->secrets[i].value, err);
    return status;
}

/* A request would have the header twice. */
static stg_status check_headers(const stg_alert_receiver_options *o,
                                stg_error *err)
{
    for (size_t i = 0; i < o->header_count; i++) {
        const char *name = o->headers[i].name;

        if (stg_sign_sets(&o->sign, (stg_span){name, strlen(name)}))
            return stg_hub_refuse(err, STG_INVALID,
                                  "`%.60s` is that of the signature", name);
    }
    return STG_OK;
}

stg_status stg_alert_signing_check(const stg_alert_receiver_options *o,
                                   const char **field, stg_error *err)
{
    stg_status status = check_unused(o, field, err);
    stg_error why;

    if (status != STG_OK || o->sign.scheme == STG_SIGN_NONE)
        return status;
    *field = "sign.scheme";
    if (o->type != STG_RECEIVER_WEBHOOK)
        return stg_hub_refuse(err, STG_INVALID, "only a webhook is signed");
    if (stg_sign_check(&o->sign, &why) != STG_OK)
        return stg_hub_refuse(err, STG_INVALID, "%s", why.text);
    *field = "sign.secrets";
    status = check_secrets(o, err);
    if (status != STG_OK)
        return status;
    *field = "headers";
    return check_headers(o, err);
}

stg_status stg_alert_signing_open(const stg_alert_receiver_options *o,
                                  stg_signer **signer, stg_error *err)
{
    const char **values = stg_sign_secret_texts(o->secrets, o->secret_count);
    stg_status status = STG_OK;

    *signer = NULL;
    if (values == NULL)
        return stg_hub_refuse(err, STG_IO, "no memory for a key");
    if (o->sign.scheme != STG_SIGN_NONE)
        status = stg_signer_new(signer, &o->sign, values, o->secret_count, err);
    free(values);
    return status;
}

char *stg_alert_signing_put(const stg_signer *s, const char *headers,
                            const char *url, const char *type, const char *id,
                            const char *body)
{
    stg_sign_request r = {.id = {id, strlen(id)},
                          .seconds = stg_wall_now() / STG_S,
                          .body = {body, strlen(body)},
                          .content_type = {type, strlen(type)},
                          .method = "POST",
                          .url = url};
    char *lines = malloc(strlen(headers) + stg_signer_room(s, r.id.size) + 1);
    char *end;

    if (lines == NULL)
        return NULL;
    end = stg_signer_put(s, stpcpy(lines, headers), &r);
    if (end == NULL) {
        free(lines);
        return NULL;
    }
    *end = '\0';
    return lines;
}
