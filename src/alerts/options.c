/* Options of alerts: names, defaults, the text of a threshold, and one check of
 * all.
 *
 * The check is here and not in the settings, so that alerts can rely on it
 * whoever made the options: the path of a flaw names the field, and the
 * settings find its line by that.
 *
 * Whatever goes into a header, a mail's address or a command line is limited to
 * characters that cannot end the line or the argument. */
#include "alerts/options.h"

#include <string.h>
#include <strings.h>

#include "alerts/event.h"
#include "alerts/receiver.h"
#include "core/reader.h"
#include "core/writer.h"
#include "http/url.h"

static const uint32_t FAILURES_MOST = 1000000000;

static const char *const names[STG_ALERT_COUNT] = {
    [STG_ALERT_DEAD] = "dead-letters",
    [STG_ALERT_BREAKER] = "breaker",
    [STG_ALERT_GONE] = "gone",
    [STG_ALERT_DISABLED] = "disabled",
    [STG_ALERT_TOKEN] = "token",
    [STG_ALERT_STORE] = "store",
    [STG_ALERT_LAG] = "lag",
    [STG_ALERT_CERTIFICATE] = "certificate",
    [STG_ALERT_RETENTION] = "retention",
};

const char *stg_alert_name(stg_alert a)
{
    return names[a];
}

stg_status stg_alert_find(const char *name, stg_alert *a)
{
    for (int i = 0; i < STG_ALERT_COUNT; i++)
        if (strcmp(names[i], name) == 0) {
            *a = (stg_alert)i;
            return STG_OK;
        }
    return STG_NOT_FOUND;
}

/* -- the threshold --------------------------------------------------------- */

static void skip_blanks(stg_reader *r)
{
    while (!stg_reader_is_empty(r) && stg_is_blank(*r->at))
        r->at++;
}

/* A word between blanks. */
static bool read_word(stg_reader *r, const char *word)
{
    const char *before = r->at;

    skip_blanks(r);
    if (r->at == before || !stg_read_text(r, word))
        return false;
    before = r->at;
    skip_blanks(r);
    return r->at != before;
}

static bool read_threshold(stg_reader r, stg_alert_threshold *t)
{
    *t = (stg_alert_threshold){.failures = 0};
    if (stg_reader_equals(&r, "off"))
        return true;
    if (!stg_read_int(&r, &t->failures))
        return false;
    if (!read_word(&r, t->failures == 1 ? "failure" : "failures") ||
        !stg_read_text(&r, "in") || stg_reader_is_empty(&r) ||
        !stg_is_blank(*r.at))
        return false;
    skip_blanks(&r);
    return stg_read_duration(&r, &t->window) && stg_reader_is_empty(&r);
}

static bool is_threshold(const stg_alert_threshold *t)
{
    return t->failures == 0 || (t->failures <= FAILURES_MOST &&
                                t->window >= STG_S && t->window <= STG_DAY);
}

static stg_status refuse_threshold(stg_error *err, const char *text)
{
    stg_writer w = stg_writer_on_error(err);

    if (text != NULL) {
        stg_write_char(&w, '"');
        stg_write_part(&w, text, strlen(text) < 60 ? strlen(text) : 60);
        stg_write_text(&w, "\": ");
    }
    stg_write_text(&w,
                   "expected `N failures in TIME`, with N of 1 to "
                   "1000000000 and a time of 1s to 1d, or `off`");
    return STG_INVALID;
}

stg_status stg_alert_threshold_read(const char *text, stg_alert_threshold *t,
                                    stg_error *err)
{
    stg_reader r = {text, text + strlen(text)};
    stg_alert_threshold found;
    bool is_off = stg_reader_equals(&r, "off");

    if (!read_threshold(r, &found) || !is_threshold(&found) ||
        (found.failures == 0 && !is_off))
        return refuse_threshold(err, text);
    *t = found;
    return STG_OK;
}

/* -- defaults -------------------------------------------------------------- */

stg_alert_receiver_options
stg_alert_receiver_options_default(stg_receiver_type type)
{
    return (stg_alert_receiver_options){
        .type = type,
        .timeout = 10 * STG_S,
        .starttls = STG_STARTTLS_REQUIRED,
        .alerts = STG_ALERT_ALL,
    };
}

stg_alert_options stg_alert_options_default(void)
{
    stg_alert_threshold threshold = {.failures = 10, .window = 5 * STG_MIN};

    return (stg_alert_options){
        .threshold = threshold,
        .threshold_all = threshold,
        .alerts = STG_ALERT_ALL,
        .lag_messages = 100000,
        .lag_time = 10 * STG_MIN,
        .certificate = 14 * STG_DAY,
        .interval = 15 * STG_MIN,
        .repeat_interval = 4 * STG_HOUR,
        .group_wait = 5 * STG_S,
        .min_interval = STG_MIN,
        .resolve_after = STG_MIN,
        .send_resolved = true,
    };
}

/* -- the check ------------------------------------------------------------- */

/* Where a flaw is: "FIELD" or "receivers[I].FIELD". */
typedef struct place {
    stg_alert_flaw *flaw; /* may be NULL */
    const stg_alert_receiver_options *receiver;
    size_t i;
} place;

static stg_status fail(const place *p, const char *field, const char *words)
{
    stg_writer w;

    if (p->flaw == NULL)
        return STG_INVALID;
    w = stg_writer_on(p->flaw->path, sizeof p->flaw->path);
    if (p->receiver != NULL) {
        stg_write_text(&w, "receivers[");
        stg_write_number(&w, p->i);
        stg_write_text(&w, "].");
    }
    stg_write_text(&w, field);
    return stg_refuse(&p->flaw->error, words);
}

static bool is_name_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

/* As names of targets: a name may be a part of a path, so that `.` and `..` are
 * none. */
static bool is_name(const char *name)
{
    size_t size = name == NULL ? 0 : strlen(name);

    for (size_t i = 0; i < size; i++)
        if (!is_name_letter(name[i]))
            return false;
    return size >= 1 && size <= 64 && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

/* No blank, no control byte: whatever it is put into stays one line. */
static bool is_visible(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text <= ' ' || *text == '\x7f')
            return false;
    return true;
}

static bool is_visible_ascii(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

/* local@domain, as it can stand between < and > without quotes. */
static bool is_address(const char *text)
{
    const char *at = strrchr(text, '@');

    return strlen(text) <= 254 && is_visible_ascii(text) && at != NULL &&
           at != text && at[1] != '\0' &&
           strcspn(text, "<>()[]\\,;:\"") == strlen(text) &&
           strchr(text, '@') == at;
}

/* Parsed as an http:// URL of the same host and port. No path, and no user:
 * user and password have settings of their own. */
static bool is_mail_url(const char *text)
{
    size_t scheme = strncmp(text, "smtps://", 8) == 0  ? 8
                    : strncmp(text, "smtp://", 7) == 0 ? 7
                                                       : 0;
    char as_http[STG_URL_MAX];
    stg_writer w = stg_writer_on(as_http, sizeof as_http);
    stg_url url;

    stg_write_text(&w, "http://");
    stg_write_text(&w, text + scheme);
    return scheme > 0 && w.length < sizeof as_http &&
           stg_url_parse(&url, as_http, NULL) == STG_OK && url.path.size == 0;
}

static stg_status check_sign(const place *p)
{
    const char *field;
    stg_error why;

    return stg_alert_signing_check(p->receiver, &field, &why) == STG_OK
               ? STG_OK
               : fail(p, field, why.text);
}

/* A password is not sent without TLS: with a login STARTTLS must be `required`,
 * because `optional` falls back to plain text if somebody in the path removes
 * the offer. */
static stg_status check_mail(const place *p)
{
    const stg_alert_receiver_options *s = p->receiver;

    if (s->url_file != NULL || s->url == NULL || !is_mail_url(s->url))
        return fail(p, "url",
                    "expected smtp://HOST[:PORT] or smtps://HOST[:PORT]");
    if (s->from == NULL || !is_address(s->from))
        return fail(p, "from", "expected an address, as hub@example.org");
    if (s->to_count < 1 || s->to_count > 100)
        return fail(p, "to", "expected 1 to 100 addresses");
    for (size_t i = 0; i < s->to_count; i++)
        if (!is_address(s->to[i]))
            return fail(p, "to", "expected addresses, as ops@example.org");
    if ((s->user != NULL) != (s->password_file != NULL))
        return fail(p, s->user != NULL ? "password-file" : "user",
                    "a login needs both user and password-file");
    if (s->user != NULL && (*s->user == '\0' || !is_visible(s->user)))
        return fail(p, "user", "it has a blank or a control byte, or nothing");
    if (s->user != NULL && s->starttls != STG_STARTTLS_REQUIRED &&
        strncmp(s->url, "smtps:", 6) != 0)
        return fail(p, "starttls",
                    "a password is sent over TLS only: expected "
                    "required, or smtps://");
    if (s->header_count > 0)
        return fail(p, "headers", "a mail has none of its own");
    if (s->key_file != NULL)
        return fail(p, "key-file", "only pagerduty and opsgenie have it");
    if (s->body != NULL)
        return fail(p, "body", "only a template has it");
    if (s->proxy != NULL)
        return fail(p, "proxy", "a mail goes through none");
    return check_sign(p);
}

static bool is_http_url(const char *url)
{
    return strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
}

/* A token of RFC 9110. */
static bool is_header_name(const char *name)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    if (*name == '\0')
        return false;
    for (; *name != '\0'; name++)
        if (!(is_name_letter(*name) || strchr(others, *name) != NULL))
            return false;
    return true;
}

static stg_status check_header(const place *p, const stg_alert_header *h)
{
    if (h->name == NULL || !is_header_name(h->name))
        return fail(p, "headers", "expected a name of letters, digits and '-'");
    if ((h->value != NULL) == (h->file != NULL))
        return fail(p, "headers", "each has a value, or a file that has it");
    for (const char *c = h->value; c != NULL && *c != '\0'; c++)
        if ((*c < ' ' && *c != '\t') || *c == '\x7f')
            return fail(p, "headers", "a value has a control byte");
    return STG_OK;
}

static stg_status check_no_mail(const place *p)
{
    const stg_alert_receiver_options *s = p->receiver;

    if (s->user != NULL || s->password_file != NULL)
        return fail(p, "user", "only mail has a login");
    if (s->from != NULL)
        return fail(p, "from", "only mail has it");
    if (s->to_count > 0)
        return fail(p, "to", "only mail has it");
    return STG_OK;
}

/* How receivers by HTTP differ, by type. */
typedef struct http_type {
    const char *url;    /* the service's own; NULL: there is none */
    bool is_url_secret; /* whoever has it may write there */
    bool has_headers, has_key, has_body;
} http_type;

static const http_type http_types[STG_RECEIVER_TYPES] = {
    [STG_RECEIVER_SLACK] = {.is_url_secret = true},
    [STG_RECEIVER_WEBHOOK] = {.has_headers = true},
    [STG_RECEIVER_TEAMS] = {.is_url_secret = true},
    [STG_RECEIVER_PAGERDUTY] = {.has_key = true,
                                .url =
                                    "https://events.pagerduty.com/v2/enqueue"},
    [STG_RECEIVER_OPSGENIE] = {.has_key = true,
                               .url = "https://api.opsgenie.com"},
    [STG_RECEIVER_TEMPLATE] = {.has_headers = true, .has_body = true},
};

const char *stg_receiver_url(const stg_alert_receiver_options *o)
{
    return o->url != NULL ? o->url : http_types[o->type].url;
}

const stg_alert_header *stg_receiver_header(const stg_alert_receiver_options *o,
                                            const char *name)
{
    for (size_t i = 0; i < o->header_count; i++)
        if (strcasecmp(o->headers[i].name, name) == 0)
            return &o->headers[i];
    return NULL;
}

bool stg_receiver_is_json(const stg_alert_receiver_options *o)
{
    const stg_alert_header *h = stg_receiver_header(o, "Content-Type");

    return h == NULL || h->value == NULL || strstr(h->value, "json") != NULL;
}

/* A URL that is a secret must be in a file. */
static stg_status check_url(const place *p)
{
    const stg_alert_receiver_options *s = p->receiver;
    const http_type *type = &http_types[s->type];

    if (type->is_url_secret && s->url != NULL)
        return fail(p, "url",
                    "whoever has it can write to the channel: "
                    "expected url-file, a file that has it");
    if (type->is_url_secret && s->url_file == NULL)
        return fail(p, "url-file",
                    "expected a file that has the URL of the "
                    "incoming webhook");
    if (type->url != NULL && s->url_file != NULL)
        return fail(p, "url-file", "its URL is no secret: expected url");
    if (type->url == NULL && (s->url != NULL) == (s->url_file != NULL))
        return fail(p, "url", "expected url, or url-file, a file that has it");
    if (s->url != NULL && !is_http_url(s->url))
        return fail(p, "url", "expected http:// or https://");
    return STG_OK;
}

static stg_status check_key(const place *p)
{
    const stg_alert_receiver_options *s = p->receiver;

    if (http_types[s->type].has_key && s->key_file == NULL)
        return fail(p, "key-file",
                    s->type == STG_RECEIVER_PAGERDUTY
                        ? "expected a file that has the routing key"
                        : "expected a file that has the API key");
    if (!http_types[s->type].has_key && s->key_file != NULL)
        return fail(p, "key-file", "only pagerduty and opsgenie have it");
    return STG_OK;
}

static stg_status check_body(const place *p)
{
    const stg_alert_receiver_options *s = p->receiver;
    stg_error why;

    if (!http_types[s->type].has_body)
        return s->body == NULL ? STG_OK
                               : fail(p, "body", "only a template has it");
    if (s->body == NULL)
        return fail(p, "body", "expected a text with {field}s, as {title}");
    if (stg_alert_template_check(s->body, stg_receiver_is_json(s), &why) !=
        STG_OK)
        return fail(p, "body", why.text);
    return STG_OK;
}

static stg_status check_http(const place *p)
{
    const stg_alert_receiver_options *s = p->receiver;
    stg_status status = check_no_mail(p);

    if (status == STG_OK)
        status = check_url(p);
    if (status == STG_OK)
        status = check_key(p);
    if (status == STG_OK && !http_types[s->type].has_headers &&
        s->header_count > 0)
        return fail(p, "headers", "only a webhook and a template have them");
    for (size_t i = 0; i < s->header_count && status == STG_OK; i++)
        status = check_header(p, &s->headers[i]);
    if (status == STG_OK)
        status = check_body(p);
    return status == STG_OK ? check_sign(p) : status;
}

static stg_status check_receiver(const stg_alert_options *o, const place *p)
{
    const stg_alert_receiver_options *s = p->receiver;

    if (!is_name(s->name))
        return fail(p, "name", "expected 1 to 64 of A-Z a-z 0-9 . _ -");
    for (size_t i = 0; i < p->i; i++)
        if (strcmp(o->receivers[i].name, s->name) == 0)
            return fail(p, "name", "another receiver has it");
    if (s->timeout < STG_S || s->timeout > STG_MIN)
        return fail(p, "timeout", "expected 1s to 1m");
    if (s->alerts == 0 || s->alerts > STG_ALERT_ALL)
        return fail(p, "alerts", "expected one at least");
    for (size_t i = 0; i < s->target_count; i++)
        if (!is_name(s->targets[i]))
            return fail(p, "targets", "expected names of targets");
    return s->type == STG_RECEIVER_MAIL ? check_mail(p) : check_http(p);
}

static stg_status check_times(const stg_alert_options *o, const place *p)
{
    if (o->interval < STG_MIN || o->interval > 7 * STG_DAY)
        return fail(p, "interval", "expected 1m to 7d");
    if (o->repeat_interval != STG_NEVER && (o->repeat_interval < o->interval ||
                                            o->repeat_interval > 365 * STG_DAY))
        return fail(p, "repeat-interval",
                    "expected the interval to 365d, or never");
    if (o->group_wait > 10 * STG_MIN)
        return fail(p, "group-wait", "expected 10m at most");
    if (o->min_interval > STG_HOUR || o->min_interval > o->interval)
        return fail(p, "min-interval", "expected 1h and the interval at most");
    if (o->resolve_after > STG_DAY)
        return fail(p, "resolve-after", "expected 1d at most");
    if (o->lag_time != STG_NEVER &&
        (o->lag_time < STG_S || o->lag_time > 365 * STG_DAY))
        return fail(p, "lag.time", "expected 1s to 365d, or never");
    if (o->certificate > 365 * STG_DAY)
        return fail(p, "certificate", "expected 365d at most");
    return STG_OK;
}

/* Stops at the first flaw. */
stg_status stg_alert_options_check(const stg_alert_options *o,
                                   stg_alert_flaw *flaw)
{
    place p = {.flaw = flaw};
    stg_status status;

    if (!is_threshold(&o->threshold))
        return fail(&p, "threshold",
                    "expected 1 to 1000000000 failures in 1s "
                    "to 1d");
    if (!is_threshold(&o->threshold_all))
        return fail(&p, "threshold-all",
                    "expected 1 to 1000000000 failures in "
                    "1s to 1d");
    if (o->alerts > STG_ALERT_ALL)
        return fail(&p, "alerts", "expected alerts that there are");
    status = check_times(o, &p);
    if (status == STG_OK && o->receiver_count > STG_ALERT_RECEIVERS_MAX)
        return fail(&p, "receivers", "expected 32 at most");
    for (size_t i = 0; i < o->receiver_count && status == STG_OK; i++) {
        p.receiver = &o->receivers[i];
        p.i = i;
        status = check_receiver(o, &p);
    }
    return status;
}

stg_status stg_alert_owner_options(const stg_alert_options *o,
                                   const char *owner,
                                   stg_alert_receiver_options *made,
                                   stg_error *err)
{
    *made = stg_alert_receiver_options_default(STG_RECEIVER_WEBHOOK);
    made->url = owner;
    if (is_http_url(owner) && is_visible(owner))
        return STG_OK;
    if (!is_address(owner))
        return stg_refuse(err,
                          "expected a mail address, as ops@example.org, or "
                          "http:// or https://");
    for (size_t i = 0; i < o->receiver_count; i++)
        if (o->receivers[i].type == STG_RECEIVER_MAIL) {
            *made = o->receivers[i];
            made->to_count = made->target_count = made->tag_count = 0;
            return STG_OK;
        }
    return stg_refuse(err,
                      "a mail goes by the server of the first receiver of type "
                      "mail; expected one in `alerts.receivers`, or an http(s) "
                      "URL");
}
