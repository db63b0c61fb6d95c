/* Requests for tokens, and their answers. */
#include "http/oauth.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>
#include <openssl/crypto.h>

#include "base/refuse.h"
#include "base/visible.h"
#include "http/url.h"

/* -- the options ----------------------------------------------------------- */

static bool is_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

bool stg_oauth_same(const stg_oauth_options *a, const stg_oauth_options *b)
{
    return is_same(a->token_url, b->token_url) &&
           is_same(a->client_id, b->client_id) &&
           is_same(a->client_secret, b->client_secret) &&
           is_same(a->private_key, b->private_key) &&
           is_same(a->key_id, b->key_id) &&
           is_same(a->assertion_audience, b->assertion_audience) &&
           is_same(a->scope, b->scope) && is_same(a->audience, b->audience) &&
           a->auth == b->auth && is_same(a->ca_file, b->ca_file);
}

/* scope-token of RFC 6749, section 3.3, with blanks between them. */
static bool is_scope(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~' || *text == '"' || *text == '\\')
            return false;
    return true;
}

static stg_status check_client(const stg_oauth_options *o, stg_error *err)
{
    EVP_PKEY *key;

    if (o->client_id == NULL)
        return stg_hub_refuse(
            err, STG_INVALID,
            "client-id: there is none; expected the name that "
            "the authorization server has for the hub");
    if ((o->client_secret == NULL) == (o->private_key == NULL))
        return stg_hub_refuse(
            err, STG_INVALID,
            o->client_secret == NULL
                ? "client-secret: there is none, and no `private-key`; expected "
                  "one of them"
                : "private-key: there is a `client-secret`, too; expected one "
                  "of them");
    if (o->private_key == NULL && o->key_id != NULL)
        return stg_hub_refuse(err, STG_INVALID,
                              "key-id: it is that of a key; expected a "
                              "`private-key`, too");
    if (o->private_key == NULL && o->assertion_audience != NULL)
        return stg_hub_refuse(err, STG_INVALID,
                              "assertion-audience: it is for a JWT; expected a "
                              "`private-key`, too");
    if (o->private_key == NULL)
        return STG_OK;
    if (stg_oauth_key_read(&key, o->private_key, err) != STG_OK)
        return STG_INVALID;
    EVP_PKEY_free(key);
    return STG_OK;
}

stg_status stg_oauth_check(const stg_oauth_options *o, stg_error *err)
{
    stg_url url;
    stg_error why;

    if (stg_url_parse(&url, o->token_url, &why) != STG_OK)
        return stg_hub_refuse(err, STG_INVALID, "token-url: %.300s", why.text);
    if (o->scope != NULL && !is_scope(o->scope))
        return stg_hub_refuse(err, STG_INVALID,
                              "scope: a character that no scope has; expected "
                              "visible ASCII without \" and \\");
    return check_client(o, err);
}

/* -- a request ------------------------------------------------------------- */

/* As application/x-www-form-urlencoded: RFC 6749, appendix B. */
static void put_encoded(stg_text *to, const char *text)
{
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                        (c >= 'a' && c <= 'z') || strchr("*-._", c) != NULL;

        if (is_plain || c == ' ')
            stg_text_add(to, is_plain ? text : "+", 1);
        else
            stg_text_put_escape(to, *text);
    }
}

static void put_parameter(stg_text *body, const char *name, const char *value)
{
    if (value == NULL)
        return;
    if (body->size > 0)
        stg_text_put(body, "&");
    stg_text_put(body, name);
    stg_text_put(body, "=");
    put_encoded(body, value);
}

/* Both are encoded before the colon stands between them, since they may have one:
 * RFC 6749, section 2.3.1. */
static void put_basic(stg_text *headers, const stg_oauth_options *o)
{
    stg_text both = {.at = NULL};

    put_encoded(&both, o->client_id);
    stg_text_put(&both, ":");
    put_encoded(&both, o->client_secret);
    stg_text_put(headers, "Authorization: Basic ");
    stg_text_put_base64(headers, (stg_span){both.at, both.size});
    headers->is_short = headers->is_short || both.is_short;
    stg_text_put(headers, "\r\n");
    if (both.at != NULL)
        OPENSSL_cleanse(both.at, both.size);
    stg_text_free(&both);
}

void stg_oauth_request(const stg_oauth_options *o, const char *assertion,
                       stg_text *headers, stg_text *body)
{
    bool is_basic = assertion == NULL && o->auth == STG_OAUTH_BASIC;

    stg_text_put(headers,
                 "Accept: application/json\r\n"
                 "Content-Type: application/x-www-form-urlencoded\r\n");
    put_parameter(body, "grant_type", "client_credentials");
    put_parameter(body, "scope", o->scope);
    put_parameter(body, "audience", o->audience);
    if (is_basic) {
        put_basic(headers, o);
        return;
    }
    put_parameter(body, "client_id", o->client_id);
    if (assertion == NULL) {
        put_parameter(body, "client_secret", o->client_secret);
        return;
    }
    put_parameter(body, "client_assertion_type",
                  "urn:ietf:params:oauth:client-assertion-type:jwt-bearer");
    put_parameter(body, "client_assertion", assertion);
}

/* -- an answer ------------------------------------------------------------- */

/* b64token of RFC 6750, section 2.1: nothing that could end a line of a head. */
static bool is_token(const char *text)
{
    size_t size = strspn(text,
                         "abcdefghijklmnopqrstuvwxyz"
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/");

    return size > 0 && text[size + strspn(text + size, "=")] == '\0';
}

/* Seconds as a number, or as text, as some servers write it. False: it is
 * neither, or not above 0. */
static bool read_lifetime(const json_t *json, stg_ns *lifetime)
{
    static const double seconds_max = 365.0 * 24 * 3600;
    double seconds = json_number_value(json);

    *lifetime = 0;
    if (json == NULL || json_is_null(json))
        return true;
    if (json_is_string(json)) {
        const char *text = json_string_value(json);

        if (*text == '\0' || text[strspn(text, "0123456789")] != '\0' ||
            strlen(text) > 15)
            return false;
        seconds = strtod(text, NULL);
    } else if (!json_is_number(json)) {
        return false;
    }
    if (!(seconds >= 0.001))
        return false;
    if (seconds > seconds_max)
        seconds = seconds_max;
    *lifetime = (stg_ns)(seconds * 1000) * STG_MS;
    return true;
}

static stg_status refuse(stg_error *err, int status, const char *what)
{
    return stg_hub_refuse(err, STG_INVALID, "answered %d %s", status, what);
}

/* `error` and `error_description` of RFC 6749, section 5.2, which are texts of the
 * server's choice. */
static stg_status refuse_error(stg_error *err, int status, const json_t *json)
{
    const char *error = json_string_value(json_object_get(json, "error")),
               *words = json_string_value(
                   json_object_get(json, "error_description"));
    char text[240];

    if (error == NULL)
        return stg_hub_refuse(err, STG_INVALID, "answered %d", status);
    snprintf(text, sizeof text, words == NULL ? "%.60s" : "%.60s (%.160s)",
             error, words);
    return refuse(err, status, stg_visible_string(text, STG_VISIBLE_IN_LINE));
}

static stg_status take(stg_oauth_answer *a, int status, const json_t *json,
                       stg_error *err)
{
    const char *token =
                   json_string_value(json_object_get(json, "access_token")),
               *type = json_string_value(json_object_get(json, "token_type"));

    if (token == NULL)
        return refuse(err, status, "without an access_token");
    if (strlen(token) > STG_OAUTH_TOKEN_MAX)
        return refuse(err, status, "with an access_token above 16 KiB");
    if (!is_token(token))
        return refuse(err, status,
                      "with an access_token that no header may have");
    if (type == NULL || strcasecmp(type, "Bearer") != 0)
        return refuse(err, status, "with a token_type that is not Bearer");
    if (!read_lifetime(json_object_get(json, "expires_in"), &a->lifetime))
        return refuse(err, status,
                      "with an expires_in that is no number of seconds");
    a->token = strdup(token);
    return a->token != NULL
               ? STG_OK
               : stg_hub_refuse(err, STG_IO, "there is no memory for a token");
}

stg_status stg_oauth_answer_read(stg_oauth_answer *a, int status, stg_span body,
                                 stg_error *err)
{
    json_t *json;
    stg_status result;

    *a = (stg_oauth_answer){.token = NULL};
    if (body.size >= STG_OAUTH_ANSWER_MAX)
        return refuse(err, status, "with more than 64 KiB");
    json = json_loadb(body.at, body.size, JSON_REJECT_DUPLICATES, NULL);
    if (status < 200 || status > 299)
        result = refuse_error(err, status, json);
    else if (!json_is_object(json))
        result = refuse(err, status, "without an object of JSON");
    else
        result = take(a, status, json, err);
    json_decref(json);
    return result;
}
