/* Spans of attempts, for an OpenTelemetry collector: OTLP/HTTP in JSON.
 *
 * A span is written as soon as its attempt has ended, and waits with the others
 * for its batch: until there are BATCH, or for `pause`. One request is under way
 * at a time, retried as the protocol says. What comes while QUEUE wait is dropped
 * and counted: no delivery waits for a span.
 *
 * Source: OpenTelemetry Protocol 1.5, OTLP/HTTP; semantic conventions of HTTP and
 * of messaging. Numbers of 64 bits are strings, and ids are hexadecimal, as the
 * protocol has them in JSON. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <stagger/retry.h>
#include <stagger/stagger.h>
#include <stagger/text.h>

#include "base/refuse.h"
#include "base/visible.h"
#include "host/wall.h"
#include "http/url.h"
#include "hub/hub_internal.h"

enum { BATCH = 512, QUEUE = STG_SPANS_QUEUE, CLIENT = 3, ERROR = 2 };

static const stg_ns pause = 5 * STG_S, timeout = 10 * STG_S;

/* -- JSON ------------------------------------------------------------------ */

/* What is no UTF-8 has a question mark for each byte that is not ASCII. */
static void put_string(stg_text *to, const char *text)
{
    size_t size = strlen(text);
    bool is_text = stg_utf8_is_text(text, size);
    char escape[8];

    stg_text_put(to, "\"");
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c == '"' || c == '\\' || c < ' ' || c == 0x7f) {
            snprintf(escape, sizeof escape, "\\u%04x", c);
            stg_text_put(to, escape);
        } else {
            stg_text_add(to, c < 0x80 || is_text ? text + i : "?", 1);
        }
    }
    stg_text_put(to, "\"");
}

static void put_attribute(stg_text *to, const char *name, const char *text)
{
    stg_text_put(to,
                 to->at[to->size - 1] == '[' ? "{\"key\":\"" : ",{\"key\":\"");
    stg_text_put(to, name);
    stg_text_put(to, "\",\"value\":{\"stringValue\":");
    put_string(to, text);
    stg_text_put(to, "}}");
}

static void put_count(stg_text *to, const char *name, uint64_t count)
{
    stg_text_put(to, ",{\"key\":\"");
    stg_text_put(to, name);
    stg_text_put(to, "\",\"value\":{\"intValue\":\"");
    stg_text_put_number(to, count);
    stg_text_put(to, "\"}}");
}

/* -- a span ---------------------------------------------------------------- */

static void put_ids(stg_text *to, const stg_attempt_end *e)
{
    const stg_trace *t = e->trace;
    char text[160];

    snprintf(text, sizeof text,
             "{\"traceId\":\"%016" PRIx64 "%016" PRIx64
             "\",\"spanId\":\"%016" PRIx64 "\"",
             t->high, t->low, t->span);
    stg_text_put(to, text);
    if (t->parent != 0) {
        snprintf(text, sizeof text, ",\"parentSpanId\":\"%016" PRIx64 "\"",
                 t->parent);
        stg_text_put(to, text);
    }
    // Flags 8 and 9: whether the parent is another process' is known, and so.
    stg_text_put(to, ",\"flags\":");
    stg_text_put_number(to, (t->is_sampled ? 0x1u : 0x0u) | 0x100u |
                                (t->parent != 0 ? 0x200u : 0x0u));
}

static void put_times(stg_text *to, const stg_attempt_end *e)
{
    stg_ns ended_at = stg_wall_now();

    stg_text_put(to, ",\"startTimeUnixNano\":\"");
    stg_text_put_number(to, stg_ns_sub(ended_at, e->took));
    stg_text_put(to, "\",\"endTimeUnixNano\":\"");
    stg_text_put_number(to, ended_at);
    stg_text_put(to, "\"");
}

/* Values of the query may be secrets, and what is of the environment may be one. */
static void put_server(stg_text *to, const stg_target_settings *s)
{
    char *shown = stg_url_mask(stg_target_url_shown(s)), host[STG_URL_MAX];
    stg_url parts;

    if (shown != NULL)
        put_attribute(to, "url.full", shown);
    if (stg_url_parse(&parts, s->url, NULL) == STG_OK) {
        snprintf(host, sizeof host, "%.*s", (int)parts.host.size,
                 parts.host.at);
        put_attribute(to, "server.address", host);
        put_count(to, "server.port", parts.port);
    }
    free(shown);
}

static void put_message(stg_text *to, const stg_hub *h,
                        const stg_attempt_end *e)
{
    char id[STG_MESSAGE_ID_MAX];

    put_attribute(to, "messaging.system", "stagger");
    put_attribute(to, "messaging.message.id",
                  stg_store_id(h->store, e->partition, e->position, id));
    put_attribute(to, "stagger.target", e->target->name);
    put_count(to, "stagger.attempt", e->number);
}

static void put_failure(stg_text *to, const stg_attempt_end *e,
                        const stg_outcome *outcome)
{
    char text[STG_CAUSE_MAX];

    put_attribute(to, "error.type", stg_outcome_name(outcome, text));
    put_attribute(to, "stagger.cause", stg_outcome_cause(outcome, text));
    put_attribute(to, "stagger.decision",
                  e->verdict->decision.next == STG_WAIT ? "retry" : "dead");
    put_attribute(to, "stagger.why", stg_why_name(e->verdict->decision.why));
}

static void put_status(stg_text *to, const stg_attempt_end *e,
                       const stg_outcome *outcome)
{
    char text[STG_CAUSE_MAX];

    if (outcome->fault == STG_FAULT_NONE) {
        stg_text_put(to, "],\"status\":{}}");
        return;
    }
    stg_text_put(to, "],\"status\":{\"code\":");
    stg_text_put_number(to, ERROR);
    stg_text_put(to, ",\"message\":");
    put_string(to, e->detail != NULL && e->detail[0] != '\0'
                       ? e->detail
                       : stg_outcome_cause(outcome, text));
    stg_text_put(to, "}}");
}

/* By the semantic conventions of OpenTelemetry for HTTP clients, and those for
 * messaging where they say what the others cannot. */
static void put_span(stg_text *to, const stg_hub *h, const stg_attempt_end *e,
                     const stg_outcome *outcome)
{
    const char *method = e->target->settings->common->method;
    char name[STG_TARGET_NAME_MAX + 24];

    snprintf(name, sizeof name, "%s %s", method, e->target->name);
    put_ids(to, e);
    stg_text_put(to, ",\"name\":");
    put_string(to, name);
    stg_text_put(to, ",\"kind\":");
    stg_text_put_number(to, CLIENT);
    put_times(to, e);
    stg_text_put(to, ",\"attributes\":[");
    if (to->is_short)
        return;
    put_attribute(to, "http.request.method", method);
    put_server(to, e->target->settings);
    if (e->status != 0)
        put_count(to, "http.response.status_code", (uint64_t)e->status);
    if (e->number > 1)
        put_count(to, "http.request.resend_count", e->number - 1);
    put_message(to, h, e);
    if (outcome->fault != STG_FAULT_NONE)
        put_failure(to, e, outcome);
    put_status(to, e, outcome);
}

/* -- a batch --------------------------------------------------------------- */

static void begin(stg_spans *s);

static void count_dropped(stg_spans *s, stg_spans_drop why, uint64_t count)
{
    s->dropped[why] += count;
}

/* The last: what was not sent is counted, and the hub may go on to close. */
static void finish(stg_spans *s)
{
    void (*closed)(void *ctx) = s->closed;

    stg_deadline_clear(&s->hub->deadlines, &s->due);
    count_dropped(s, STG_SPANS_UNSENT, s->count);
    stg_text_free(&s->waiting);
    stg_text_free(&s->body);
    free(s->head);
    s->head = NULL;
    s->count = 0;
    s->is_on = false;
    if (s->endpoint != NULL)
        stg_endpoint_free(s->endpoint);
    s->endpoint = NULL;
    s->closed = NULL;
    closed(s->closed_ctx);
}

/* Told once until it is over. */
static void tell(stg_spans *s, const char *detail)
{
    stg_log *log = s->hub->log;
    const char *to = s->hub->fixed->traces.endpoint;

    if (detail != NULL && !s->is_troubled)
        STG_LOG(log, STG_LOG_WARN, "spans-unsent", stg_field_text("to", to),
                stg_field_text("detail", detail));
    else if (detail == NULL && s->is_troubled)
        STG_LOG(log, STG_LOG_INFO, "spans-sent", stg_field_text("to", to));
    s->is_troubled = detail != NULL;
}

/* The batch under way has ended; s may be closed when this returns. */
static void end(stg_spans *s, bool is_sent)
{
    s->sending = 0;
    if (s->closed != NULL && (!is_sent || s->count == 0)) {
        finish(s);
        return;
    }
    if (s->count >= BATCH || s->closed != NULL)
        begin(s);
    else if (s->count > 0)
        stg_deadline_set(&s->hub->deadlines, &s->due,
                         stg_ns_add(stg_deadlines_now(), pause));
}

/* A collector may take some and refuse the others: 200 with how many. */
static uint64_t read_rejected(stg_span answer)
{
    json_t *json = json_loadb(answer.at, answer.size, 0, NULL), *count;
    json_t *partial = json_object_get(json, "partialSuccess");
    uint64_t rejected = 0;

    count = json_object_get(partial, "rejectedSpans");
    if (json_is_integer(count) && json_integer_value(count) > 0)
        rejected = (uint64_t)json_integer_value(count);
    else if (json_is_string(count))
        rejected = strtoull(json_string_value(count), NULL, 10);
    json_decref(json);
    return rejected;
}

static void succeed(stg_spans *s, stg_span answer)
{
    uint64_t rejected = read_rejected(answer);

    if (rejected > s->sending)
        rejected = s->sending;
    s->exported += s->sending - rejected;
    count_dropped(s, STG_SPANS_REFUSED, rejected);
    tell(s, rejected > 0 ? "the collector rejects some of them" : NULL);
    end(s, true);
}

/* With the beginning of what the collector says. */
static void tell_failure(stg_spans *s, const stg_reply *reply)
{
    char detail[400];

    if (reply == NULL) {
        tell(s, "there is no memory");
        return;
    }
    snprintf(detail, sizeof detail, "%.250s%s%.*s", reply->detail,
             reply->answer.size > 0 ? ": " : "",
             (int)(reply->answer.size < 100 ? reply->answer.size : 100),
             reply->answer.size > 0 ? reply->answer.at : "");
    stg_visible_string(detail, STG_VISIBLE_IN_LINE);
    tell(s, detail);
}

/* What a collector refuses for good is dropped, as are spans that were tried long
 * enough: they are for looking, and must not fill memory. */
static void attempted(stg_spans *s, const stg_outcome *outcome,
                      const stg_reply *reply)
{
    stg_ns now = stg_deadlines_now();
    stg_decision d =
        stg_retry_step(&s->retry, outcome, now, &s->hub->attempts.rng);
    bool is_refused;

    if (d.next == STG_DONE && reply != NULL) {
        succeed(s, reply->answer);
        return;
    }
    tell_failure(s, reply);
    if (d.next == STG_WAIT && s->closed == NULL) {
        stg_deadline_set(&s->hub->deadlines, &s->due, d.due_at);
        return;
    }
    is_refused =
        d.why == STG_WHY_PERMANENT && reply != NULL && reply->status != 0;
    count_dropped(s, is_refused ? STG_SPANS_REFUSED : STG_SPANS_UNSENT,
                  s->sending);
    end(s, false);
}

static void answered(void *ctx, const stg_reply *reply)
{
    stg_spans *s = ctx;

    s->exchange = NULL;
    attempted(s, &reply->outcome, reply);
}

/* At the end of the hub there is only so much time left. */
static void attempt(stg_spans *s)
{
    static const char headers[] = "Content-Type: application/json\r\n";
    stg_outcome none = stg_failed(STG_FAULT_NO_BUFFERS);
    stg_ns now = stg_deadlines_now(), most = timeout;

    (void)stg_retry_admit(&s->retry, now, &s->hub->attempts.rng);
    if (s->closed != NULL)
        most = stg_ns_min(most, stg_ns_sub(s->close_at, now));
    if (!s->body.is_short && most > 0)
        s->exchange = stg_endpoint_send(
            s->endpoint, (stg_span){headers, sizeof headers - 1},
            (stg_span){s->body.at, s->body.size}, most, answered, s);
    if (s->exchange == NULL)
        attempted(s, &none, NULL);
}

/* The first spans that wait become the body of a request. */
static void begin(stg_spans *s)
{
    size_t count = s->count < BATCH ? s->count : BATCH, size;

    stg_deadline_clear(&s->hub->deadlines, &s->due);
    size = s->ends[count - 1];
    stg_text_clear(&s->body);
    stg_text_put(&s->body, s->head);
    stg_text_add(&s->body, s->waiting.at, size - 1); // but for the last comma
    stg_text_put(&s->body, "]}]}]}");
    memmove(s->waiting.at, s->waiting.at + size, s->waiting.size - size);
    s->waiting.size -= size;
    s->count -= count;
    for (size_t i = 0; i < s->count; i++)
        s->ends[i] = s->ends[i + count] - size;
    s->sending = count;
    (void)stg_retry_start(&s->retry, &s->policy, NULL, stg_deadlines_now());
    attempt(s);
}

/* The next attempt of a batch, or the next batch; or the end of what may still be
 * sent. */
static void due(stg_deadline *d)
{
    stg_spans *s = STG_HEAP_HOLDER(d, stg_spans, due);

    if (s->exchange != NULL)
        stg_exchange_cancel(s->exchange);
    else if (s->sending > 0)
        attempt(s);
    else if (s->count > 0)
        begin(s);
}

/* -- for the hub ----------------------------------------------------------- */

/* A trace that its caller samples, one in the share, and what has failed. */
static bool is_wanted(const stg_spans *s, const stg_trace *t,
                      const stg_outcome *outcome)
{
    return stg_trace_is_there(t) && (t->is_sampled || t->low <= s->share ||
                                     outcome->fault != STG_FAULT_NONE);
}

void stg_spans_add(stg_spans *s, const stg_attempt_end *e,
                   const stg_outcome *outcome)
{
    size_t size = s->waiting.size;

    if (!is_wanted(s, e->trace, outcome) || e->target->settings == NULL)
        return;
    if (s->count == QUEUE || s->closed != NULL) {
        count_dropped(s, STG_SPANS_FULL, 1);
        return;
    }
    put_span(&s->waiting, s->hub, e, outcome);
    stg_text_put(&s->waiting, ",");
    if (s->waiting.is_short) { // the spans before it are there
        s->waiting.is_short = false;
        s->waiting.size = size;
        count_dropped(s, STG_SPANS_FULL, 1);
        return;
    }
    s->ends[s->count++] = s->waiting.size;
    if (s->sending > 0)
        return;
    if (s->count >= BATCH)
        stg_deadline_set(&s->hub->deadlines, &s->due, stg_deadlines_now());
    else if (stg_deadline_at(&s->due) == STG_NEVER)
        stg_deadline_set(&s->hub->deadlines, &s->due,
                         stg_ns_add(stg_deadlines_now(), pause));
}

uint64_t stg_spans_share(const stg_settings *o)
{
    if (o->traces.endpoint == NULL || o->traces.share >= 100)
        return UINT64_MAX;
    return UINT64_MAX / 100 * o->traces.share;
}

/* What each request begins with: who sends it. */
static char *make_head(void)
{
    char host[UV_MAXHOSTNAMESIZE] = "";
    size_t size = sizeof host;
    stg_text head = {.at = NULL};

    (void)uv_os_gethostname(host, &size);
    stg_text_put(&head, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    if (!head.is_short) {
        put_attribute(&head, "service.name", "stagger");
        put_attribute(&head, "service.version", STG_VERSION);
        put_attribute(&head, "host.name", host);
    }
    stg_text_put(&head,
                 "]},\"scopeSpans\":[{\"scope\":{\"name\":\"stagger\","
                 "\"version\":\"" STG_VERSION "\"},\"spans\":[");
    stg_text_add(&head, "", 1);
    if (head.is_short)
        stg_text_free(&head);
    return head.at;
}

static stg_status open_endpoint(stg_spans *s, const stg_trace_settings *o,
                                stg_error *err)
{
    static const stg_tls_names names = {"certificate", "key", "traces.ca"};
    char *headers = stg_target_join_headers(o->headers, o->header_count);
    stg_endpoint_options e = stg_endpoint_options_default(o->endpoint);
    stg_status status;

    if (headers == NULL)
        return stg_hub_refuse(err, STG_IO, "there is no memory for traces");
    e.headers = headers;
    e.ca_file = o->ca_file;
    e.tls_names = &names;
    e.idle_count_max = 1;
    e.excerpt_max = e.answer_max = 4096;
    status = stg_endpoint_new(&s->endpoint, s->hub->client, &e, err);
    free(headers);
    return status;
}

stg_status stg_spans_open(stg_spans *s, stg_hub *hub, stg_error *err)
{
    const stg_trace_settings *o = &hub->fixed->traces;
    stg_status status;

    *s = (stg_spans){.hub = hub, .due.passed = due};
    if (o->endpoint == NULL)
        return STG_OK;
    // Source: OTLP/HTTP, "Failures": these statuses, and no connection.
    status = stg_policy_parse(
        &s->policy,
        "exponential base=1s cap=30s jitter=full attempts=unlimited "
        "deadline=2m retry-after-max=1m "
        "retry=connect,timeout,reset,protocol,429,502,503,504",
        err);
    if (status == STG_OK)
        status = open_endpoint(s, o, err);
    if (status != STG_OK)
        return status;
    s->share = stg_spans_share(hub->fixed);
    s->head = make_head();
    if (s->head == NULL)
        return stg_hub_refuse(err, STG_IO, "there is no memory for traces");
    s->is_on = true;
    return STG_OK;
}

/* What waits for a retry is tried once more. */
void stg_spans_close(stg_spans *s, void (*closed)(void *ctx), void *ctx)
{
    stg_ns now = stg_deadlines_now();

    if (s->hub == NULL) {
        closed(ctx);
        return;
    }
    s->closed = closed;
    s->closed_ctx = ctx;
    s->close_at = stg_ns_add(now, s->hub->settings->drain);
    if (s->sending > 0)
        stg_deadline_set(&s->hub->deadlines, &s->due,
                         s->exchange != NULL ? s->close_at : now);
    else if (s->count > 0)
        begin(s);
    else
        finish(s);
}
