/* Secrets, headers and endpoints of receivers. No text of an error has a secret
 * in it. */
#include "alerts/receiver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

#include <stagger/text.h>

#include "alerts/event.h"
#include "alerts/options.h"
#include "alerts/text.h"
#include "http/tls.h"

/* -- copies of options ----------------------------------------------------- */

static bool keep(stg_receiver_kept *k, const char **text)
{
    if (*text == NULL)
        return true;
    *text = k->texts[k->count] = strdup(*text);
    k->count += *text != NULL;
    return *text != NULL;
}

/* Room for all texts is made at once; a text that was not there stays NULL. */
bool stg_receiver_keep(stg_receiver_kept *k, stg_alert_receiver_options *o)
{
    const char **const plain[] = {&o->name, &o->url,   &o->url_file,
                                  &o->body, &o->proxy, &o->ca_file,
                                  &o->user, &o->from};
    size_t count = sizeof plain / sizeof *plain;
    bool is_kept;

    k->texts =
        calloc(count + 3 * o->header_count + o->to_count, sizeof *k->texts);
    k->headers = calloc(o->header_count + 1, sizeof *k->headers);
    k->to = calloc(o->to_count + 1, sizeof *k->to);
    is_kept = k->texts != NULL && k->headers != NULL && k->to != NULL;
    for (size_t i = 0; is_kept && i < count; i++)
        is_kept = keep(k, plain[i]);
    for (size_t i = 0; is_kept && i < o->header_count; i++) {
        stg_alert_header *h = &k->headers[i];

        *h = o->headers[i];
        is_kept = keep(k, &h->name) && keep(k, &h->value) && keep(k, &h->file);
    }
    for (size_t i = 0; is_kept && i < o->to_count; i++) {
        k->to[i] = o->to[i];
        is_kept = keep(k, &k->to[i]);
    }
    o->headers = k->headers;
    o->to = k->to;
    return is_kept;
}

void stg_receiver_kept_free(stg_receiver_kept *k)
{
    for (size_t i = 0; i < k->count; i++)
        free(k->texts[i]);
    free(k->texts);
    free(k->headers);
    free(k->to);
}

/* -- retries --------------------------------------------------------------- */

/* Retries for an hour. A redirect or a 4xx is a mistake of the settings: it is
 * given up at once, except for 408, 425 and 429. */
stg_policy stg_alert_policy(void)
{
    stg_policy p = {.attempts_max = 0};

    (void)stg_policy_parse(
        &p,
        "exponential base=2s cap=5m jitter=full attempts=unlimited "
        "deadline=1h retry-after-max=15m retry=any,408,425,429 "
        "never=3xx,4xx",
        NULL);
    return p;
}

/* -- secrets, headers, endpoints ------------------------------------------- */

stg_status stg_receiver_refuse(stg_error *err, stg_status status,
                               const char *name, const char *words)
{
    stg_error found = {.line = 0};

    snprintf(found.text, sizeof found.text, "alerts: receiver %.64s: %.280s",
             name, words);
    if (err != NULL)
        *err = found;
    return status;
}

stg_status stg_receiver_read_secret(const char *name, const char *path,
                                    char **secret, stg_error *err)
{
    stg_error why;
    stg_status status = stg_secret_read(path, secret, &why);

    return status == STG_OK ? STG_OK
                            : stg_receiver_refuse(err, status, name, why.text);
}

/* One header as a line. False: no memory. */
static bool add_header(char **lines, const char *name, const char *value)
{
    size_t size = strlen(*lines), more = strlen(name) + strlen(value) + 5;
    char *text = realloc(*lines, size + more);

    if (text == NULL)
        return false;
    snprintf(text + size, more, "%s: %s\r\n", name, value);
    *lines = text;
    return true;
}

static stg_status read_headers(const stg_alert_receiver_options *o,
                               char **lines, stg_error *err)
{
    for (size_t i = 0; i < o->header_count; i++) {
        const stg_alert_header *h = &o->headers[i];
        char *secret = NULL;
        bool is_added;

        if (h->file != NULL) {
            stg_status status =
                stg_receiver_read_secret(o->name, h->file, &secret, err);

            if (status != STG_OK)
                return status;
        }
        is_added = add_header(lines, h->name, secret ? secret : h->value);
        stg_secret_free(secret);
        if (!is_added)
            return stg_receiver_refuse(err, STG_IO, o->name,
                                       "no memory for its headers");
    }
    return STG_OK;
}

/* A text of the endpoint's own may repeat a URL that came from a file, which is
 * a secret: it is replaced. */
static stg_status make_endpoint(const stg_alert_world *w,
                                const stg_alert_receiver_options *o,
                                const char *url, const char *headers,
                                stg_endpoint **endpoint, stg_error *err)
{
    static const stg_tls_names names = {"certificate", "key", "ca"};
    stg_endpoint_options e = stg_endpoint_options_default(url);
    stg_error why;
    stg_status status;

    e.headers = headers;
    e.tls_names = &names;
    e.ca_file = o->ca_file;
    e.proxy = o->proxy;
    e.idle_count_max = 1;
    e.answer_max = 4096;
    status = stg_endpoint_new(endpoint, w->client, &e, &why);
    if (status == STG_OK)
        return STG_OK;
    // Words of a URL that is a secret are none to be shown.
    return stg_receiver_refuse(
        err, status, o->name,
        o->url_file != NULL && strncmp(why.text, "url", 3) == 0
            ? "url-file: it has no URL of http:// or https://"
            : why.text);
}

static stg_status read_url(const stg_alert_receiver_options *o,
                           const stg_digest *event, char **url, stg_error *err)
{
    const stg_digest begins = {.item_count = 1};

    if (o->url_file != NULL)
        return stg_receiver_read_secret(o->name, o->url_file, url, err);
    *url = o->type == STG_RECEIVER_OPSGENIE
               ? stg_opsgenie_url(event != NULL ? event : &begins,
                                  stg_receiver_url(o))
               : strdup(stg_receiver_url(o));
    return *url != NULL ? STG_OK
                        : stg_receiver_refuse(err, STG_IO, o->name,
                                              "no memory for its URL");
}

/* Of Opsgenie the key is a header, of PagerDuty a part of the body. */
static bool add_key(const stg_alert_receiver_options *o, const char *key,
                    char **headers)
{
    char value[STG_SECRET_MAX + 16];
    bool is_added;

    if (o->type != STG_RECEIVER_OPSGENIE)
        return true;
    snprintf(value, sizeof value, "GenieKey %s", key);
    is_added = add_header(headers, "Authorization", value);
    OPENSSL_cleanse(value, sizeof value);
    return is_added;
}

stg_status stg_receiver_open(const stg_alert_world *w,
                             const stg_alert_receiver_options *o,
                             const char *key, const stg_digest *event,
                             stg_endpoint **endpoint, stg_error *err)
{
    char *url = NULL, *headers = calloc(1, 1);
    stg_status status;

    if (headers == NULL || !add_key(o, key, &headers))
        status = stg_receiver_refuse(err, STG_IO, o->name, "no memory for it");
    else
        status = read_url(o, event, &url, err);
    if (status == STG_OK)
        status = read_headers(o, &headers, err);
    if (status == STG_OK)
        status = make_endpoint(w, o, url, headers, endpoint, err);
    stg_secret_free(url);
    stg_secret_free(headers);
    return status;
}

/* -- what is sent ---------------------------------------------------------- */

char *stg_receiver_print(const stg_alert_receiver_options *o, const char *key,
                         const stg_digest *d, uint64_t id)
{
    stg_mail_head head = {
        .from = o->from, .to = o->to, .to_count = o->to_count, .id = id};

    switch (o->type) {
    case STG_RECEIVER_MAIL:
        return stg_mail_print(d, &head);
    case STG_RECEIVER_SLACK:
        return stg_payload_slack(d);
    case STG_RECEIVER_WEBHOOK:
        return stg_payload_webhook(d);
    case STG_RECEIVER_TEAMS:
        return stg_payload_teams(d);
    case STG_RECEIVER_PAGERDUTY:
        return stg_payload_pagerduty(d, key);
    case STG_RECEIVER_OPSGENIE:
        return stg_payload_opsgenie(d);
    case STG_RECEIVER_TEMPLATE:
        return stg_alert_template_print(d, o->body, stg_receiver_is_json(o));
    }
    return NULL;
}
