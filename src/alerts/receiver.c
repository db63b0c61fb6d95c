/* One receiver: the digest that is being sent (`current`), the one that waits,
 * and the retries of the first.
 *
 * begin() moves the waiting digest to `current`; attempt() sends it;
 * attempted() asks the policy what the outcome means; end() finishes it and
 * begins the next one. There is one deadline, `again`: the next attempt of
 * `current`, or, where there is no `current`, the next try of a digest that was
 * put off.
 *
 * The trap: end() calls out (world->ended, world->idle), and idle() may free
 * the receiver. Nothing follows a call of end(), attempt() or begin(), except
 * in stg_alert_receiver_inherit(), whose s is not one that ends. */
#include "alerts/receiver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/retry.h>
#include <stagger/text.h>

#include "alerts/event.h"
#include "alerts/options.h"
#include "alerts/text.h"
#include "base/hash.h"

struct stg_alert_receiver {
    stg_alert_world *world;
    stg_alert_receiver_options o; /* a reload may end what they were made of */
    stg_receiver_kept kept;       /* what they point to */
    char *password;               /* mail */
    char *url;                    /* of a file; NULL: the options have it */
    char *content_type;           /* likewise, where it signs */
    stg_endpoint *endpoint;       /* the others */
    char *key;                    /* pagerduty, opsgenie */
    stg_signer *signer;           /* NULL: it does not sign */

    stg_digest *waiting; /* NULL: nothing */
    stg_events events;   /* in its place, where each alert goes by itself */
    stg_digest *current; /* what is sent, or to be tried again */
    char *text;          /* as it is sent */
    char id[20];         /* of its text */
    char headers[128];
    stg_retry retry;
    stg_deadline again; /* the next attempt, or of what was put off */
    stg_exchange *exchange;
    stg_mail *mail;
    bool is_ending;

    uint64_t sent, failed, given_up, merged;
};

static const char *url_of(const stg_alert_receiver *s)
{
    return s->url != NULL ? s->url : s->o.url;
}

/* The Content-Type of the receiver's requests. */
static const char *type_of(const stg_alert_receiver *s)
{
    const stg_alert_header *h = stg_receiver_header(&s->o, "Content-Type");

    if (s->content_type != NULL)
        return s->content_type;
    return h != NULL ? h->value : "application/json";
}

static bool is_under_way(const stg_alert_receiver *s)
{
    return s->exchange != NULL || s->mail != NULL;
}

bool stg_alert_receiver_is_idle(const stg_alert_receiver *s)
{
    return s->current == NULL && s->waiting == NULL && s->events.count == 0 &&
           !is_under_way(s);
}

/* Whether a digest that failed waits for the next one. Not in a trial (its
 * interval is 0), and not while the hub ends or the receiver is being
 * replaced. */
static bool puts_off(const stg_alert_receiver *s)
{
    return s->world->interval > 0 && !s->is_ending;
}

/* -- the log --------------------------------------------------------------- */

static void tell_failure(const stg_alert_receiver *s,
                         const stg_outcome *outcome,
                         const stg_decision *decision, const char *detail)
{
    bool is_over = decision->next != STG_WAIT;
    stg_ns wait = is_over ? s->world->interval
                          : stg_ns_sub(decision->due_at, stg_deadlines_now());
    char cause[STG_CAUSE_MAX];
    stg_field fields[7];
    size_t count = 0;

    fields[count++] = stg_field_text("receiver", s->o.name);
    fields[count++] =
        stg_field_text("cause", stg_outcome_cause(outcome, cause));
    fields[count++] = stg_field_text("decision", !is_over      ? "again"
                                                 : puts_off(s) ? "put-off"
                                                               : "lost");
    fields[count++] = stg_field_text("why", stg_why_name(decision->why));
    fields[count++] = stg_field_number("attempt", s->retry.attempts);
    if (!is_over || puts_off(s))
        fields[count++] = stg_field_time("wait", wait);
    fields[count++] = stg_field_text("detail", detail);
    stg_log_event(s->world->log, is_over ? STG_LOG_ERROR : STG_LOG_WARN,
                  "alert-failed", fields, count);
}

/* -- a digest begins and ends ---------------------------------------------- */

static void attempt(stg_alert_receiver *s);

static uint64_t random_number(stg_alert_world *w)
{
    return stg_rng_next(&w->rng);
}

/* Prints once a digest, so that each attempt sends the same bytes and the same
 * Idempotency-Key or Message-ID. False: there is no memory. */
static bool print(stg_alert_receiver *s)
{
    uint64_t id = random_number(s->world);

    s->text = stg_receiver_print(&s->o, s->key, s->current, id);
    snprintf(s->id, sizeof s->id, "%016llx", (unsigned long long)id);
    snprintf(s->headers, sizeof s->headers, "%sIdempotency-Key: %s\r\n",
             stg_receiver_header(&s->o, "Content-Type") != NULL
                 ? ""
                 : "Content-Type: application/json\r\n",
             s->id);
    return s->text != NULL;
}

/* Takes the next one, if there is one whose time it is. */
static void begin(stg_alert_receiver *s)
{
    if (s->current != NULL)
        return;
    s->current = s->waiting != NULL
                     ? s->waiting
                     : stg_events_take(&s->events, stg_deadlines_now());
    s->waiting = NULL;
    if (s->current == NULL && s->events.count > 0)
        stg_deadline_set(s->world->deadlines, &s->again, s->events.again_at);
    if (s->current == NULL)
        return;
    (void)stg_retry_start(&s->retry, &s->world->policy, NULL,
                          stg_deadlines_now());
    attempt(s);
}

static void drop_current(stg_alert_receiver *s)
{
    free(s->current);
    s->current = NULL;
    stg_secret_free(s->text);
    s->text = NULL;
    stg_deadline_clear(s->world->deadlines, &s->again);
}

static void put_off_event(stg_alert_receiver *s, stg_digest *untold)
{
    stg_ns now = stg_deadlines_now();

    if (s->events.again_at <= now)
        s->events.again_at = stg_ns_add(now, s->world->interval);
    (void)stg_events_put_off(&s->events, untold);
    free(untold);
    begin(s);
}

/* Keeps a digest that failed: merged into the one that waits, which is sent at
 * once, or alone until the interval has passed. It counts as given up all the
 * same. */
static void put_off(stg_alert_receiver *s)
{
    stg_digest *untold = s->current;

    s->given_up++;
    s->current = NULL;
    drop_current(s);
    if (stg_receiver_is_of_events(s->o.type)) {
        put_off_event(s, untold);
        return;
    }
    if (s->waiting != NULL) {
        stg_digest_merge(s->waiting, untold);
        free(untold);
        s->merged++;
        begin(s);
        return;
    }
    s->waiting = untold;
    stg_deadline_set(s->world->deadlines, &s->again,
                     stg_ns_add(stg_deadlines_now(), s->world->interval));
}

/* Ends `current`. s may be gone when this returns. */
static void end(stg_alert_receiver *s, bool is_sent, const char *detail)
{
    if (!is_sent && puts_off(s)) {
        put_off(s);
        return;
    }
    if (is_sent)
        s->sent++;
    else
        s->given_up++;
    if (is_sent && stg_receiver_is_of_events(s->o.type) &&
        stg_event_was(s->current))
        (void)stg_events_add_end(&s->events, s->current);
    drop_current(s);
    if (s->world->ended != NULL)
        s->world->ended(s->world->ctx, s, is_sent, detail);
    if (s->waiting != NULL || s->events.count > 0)
        begin(s); // it may end at once, and s be gone
    else if (s->world->idle != NULL)
        s->world->idle(s->world->ctx, s);
}

/* -- attempts -------------------------------------------------------------- */

/* The end of an attempt, of any type. A receiver that ends waits for no retry:
 * what failed now has failed. */
static void attempted(stg_alert_receiver *s, const stg_outcome *outcome,
                      const char *detail)
{
    stg_decision d =
        stg_retry_step(&s->retry, outcome, stg_deadlines_now(), &s->world->rng);

    s->exchange = NULL;
    s->mail = NULL;
    if (d.next == STG_DONE) {
        end(s, true, detail);
        return;
    }
    s->failed++;
    if (d.next == STG_WAIT && s->is_ending) {
        (void)stg_retry_cancel(&s->retry, stg_deadlines_now());
        d = (stg_decision){.next = STG_GIVE_UP, .why = STG_WHY_CANCELLED};
    }
    tell_failure(s, outcome, &d, detail);
    if (d.next == STG_WAIT)
        stg_deadline_set(s->world->deadlines, &s->again, d.due_at);
    else
        end(s, false, detail);
}

/* A word, as Slack says it ("no_service"). What else an answer has may repeat
 * the URL, which is a secret if it came from a file. */
static bool is_word(stg_span answer)
{
    for (size_t i = 0; i < answer.size; i++) {
        char c = answer.at[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'))
            return false;
    }
    return answer.size > 0 && answer.size <= 40;
}

static bool repeats_key(const stg_alert_receiver *s, stg_span answer)
{
    size_t size = s->key != NULL ? strlen(s->key) : 0;

    for (size_t i = 0; size > 0 && i + size <= answer.size; i++)
        if (memcmp(answer.at + i, s->key, size) == 0)
            return true;
    return false;
}

/* An answer goes into the detail, for it says what is wrong ("no_service"): at
 * most SHOWN_MAX printable bytes of it, and only a word where the URL is
 * secret. */
static void answered(void *ctx, const stg_reply *reply)
{
    enum { SHOWN_MAX = 100 };
    stg_alert_receiver *s = ctx;
    stg_span answer = reply->answer;
    char detail[512];
    bool has_answer = reply->outcome.fault != STG_FAULT_NONE &&
                      answer.size > 0 &&
                      (stg_receiver_url(&s->o) != NULL || is_word(answer)) &&
                      !repeats_key(s, answer);

    if (answer.size > SHOWN_MAX)
        answer.size = SHOWN_MAX;
    snprintf(detail, sizeof detail, "%.300s%s%.*s", reply->detail,
             has_answer ? ": " : "", has_answer ? (int)answer.size : 0,
             has_answer ? answer.at : "");
    for (char *c = detail; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    attempted(s, &reply->outcome, detail);
}

static void mailed(void *ctx, const stg_outcome *outcome, const char *detail)
{
    attempted(ctx, outcome, detail);
}

/* Of Opsgenie an alert is closed at a URL of its own, by an endpoint that ends
 * with its request. */
static bool send_http(stg_alert_receiver *s)
{
    bool is_closing =
        s->o.type == STG_RECEIVER_OPSGENIE && stg_event_is_resolved(s->current);
    stg_endpoint *endpoint = s->endpoint;
    char *more = s->signer == NULL
                     ? NULL
                     : stg_alert_signing_put(s->signer, s->headers, url_of(s),
                                             type_of(s), s->id, s->text);
    const char *headers = more != NULL ? more : s->headers;

    if ((s->signer != NULL && more == NULL) ||
        (is_closing && stg_receiver_open(s->world, &s->o, s->key, s->current,
                                         &endpoint, NULL) != STG_OK)) {
        free(more);
        return false;
    }
    s->exchange = stg_endpoint_send(
        endpoint, (stg_span){headers, strlen(headers)},
        (stg_span){s->text, strlen(s->text)}, s->o.timeout, answered, s);
    free(more);
    if (is_closing)
        stg_endpoint_retire(endpoint);
    return s->exchange != NULL;
}

static bool send_mail(stg_alert_receiver *s)
{
    stg_mail_order order = {.receiver = &s->o,
                            .password = s->password,
                            .text = s->text,
                            .is_strict = s->world->is_strict};

    s->mail = stg_mailer_send(s->world->mailer, &order, mailed, s);
    return s->mail != NULL;
}

static bool start(stg_alert_receiver *s)
{
    if (s->text == NULL && !print(s))
        return false;
    return s->o.type == STG_RECEIVER_MAIL ? send_mail(s) : send_http(s);
}

static void attempt(stg_alert_receiver *s)
{
    stg_decision d =
        stg_retry_admit(&s->retry, stg_deadlines_now(), &s->world->rng);
    stg_outcome none = stg_failed(STG_FAULT_ERROR);

    if (d.next == STG_WAIT)
        stg_deadline_set(s->world->deadlines, &s->again, d.due_at);
    else if (d.next != STG_GO)
        end(s, false, "its time is over");
    else if (!start(s))
        attempted(s, &none, "there is no memory for it");
}

/* Either meaning of the deadline: see the top. */
static void again(stg_deadline *d)
{
    stg_alert_receiver *s = STG_HEAP_HOLDER(d, stg_alert_receiver, again);

    if (s->current != NULL)
        attempt(s);
    else
        begin(s);
}

/* -- from outside ---------------------------------------------------------- */

/* What waits already is older and is merged into the new digest, so that a
 * receiver holds two digests at most, however long its server is down. */
void stg_alert_receiver_push(stg_alert_receiver *s, const stg_digest *d)
{
    stg_digest *copy;

    if (stg_receiver_is_of_events(s->o.type)) {
        s->given_up += stg_events_add(&s->events, d);
        begin(s);
        return;
    }
    copy = malloc(sizeof *copy);
    if (copy == NULL) {
        s->given_up++;
        return;
    }
    *copy = *d;
    if (s->waiting != NULL) {
        stg_digest_merge(copy, s->waiting);
        free(s->waiting);
        s->merged++;
    }
    s->waiting = copy;
    begin(s);
}

static void inherit_digest(stg_alert_receiver *s, stg_digest **from)
{
    if (*from == NULL)
        return;
    stg_alert_receiver_push(s, *from);
    free(*from);
    *from = NULL;
}

/* What waits, or waits for a retry, is sent by s. An attempt under way cannot
 * move: it ends with `from`, and if it fails its digest is lost, as `from` is
 * ending. */
void stg_alert_receiver_inherit(stg_alert_receiver *s, stg_alert_receiver *from)
{
    s->sent += from->sent;
    s->failed += from->failed;
    s->given_up += from->given_up;
    s->merged += from->merged;
    from->sent = from->failed = from->given_up = from->merged = 0;
    from->is_ending = true;
    if (!is_under_way(from)) {
        inherit_digest(s, &from->current);
        drop_current(from);
    }
    inherit_digest(s, &from->waiting);
    while (from->events.count > 0) {
        stg_digest *d = stg_events_take(&from->events, STG_NEVER);

        if (d == NULL) {
            s->given_up += from->events.count;
            stg_events_clear(&from->events);
        }
        inherit_digest(s, &d);
    }
}

/* Begins what waits for a retry or was put off now. */
void stg_alert_receiver_end_soon(stg_alert_receiver *s)
{
    s->is_ending = true;
    s->events.again_at = 0;
    if (!is_under_way(s) && !stg_alert_receiver_is_idle(s))
        stg_deadline_set(s->world->deadlines, &s->again, stg_deadlines_now());
}

/* Nothing is put off any more. */
static void end_put_off(stg_alert_receiver *s)
{
    stg_deadline_clear(s->world->deadlines, &s->again);
    if (s->world->idle != NULL)
        s->world->idle(s->world->ctx, s);
}

/* What is under way ends in its callback, within this call or later; all else
 * ends here. */
void stg_alert_receiver_cancel(stg_alert_receiver *s)
{
    bool is_waiting = s->waiting != NULL || s->events.count > 0;

    s->is_ending = true;
    s->given_up += s->events.count + (s->waiting != NULL);
    stg_events_clear(&s->events);
    free(s->waiting);
    s->waiting = NULL;
    if (s->exchange != NULL)
        stg_exchange_cancel(s->exchange);
    else if (s->mail != NULL)
        stg_mail_cancel(s->mail);
    else if (s->current != NULL)
        end(s, false, "cancelled");
    else if (is_waiting)
        end_put_off(s);
}

void stg_alert_receiver_look(const stg_alert_receiver *s,
                             stg_alert_receiver_view *view)
{
    *view = (stg_alert_receiver_view){
        .name = s->o.name,
        .type = s->o.type,
        .sent = s->sent,
        .failed = s->failed,
        .given_up = s->given_up,
        .merged = s->merged,
        .waiting = (uint32_t)s->events.count + (s->current != NULL ? 1u : 0u) +
                   (s->waiting != NULL ? 1u : 0u)};
}

const stg_alert_receiver_options *
stg_alert_receiver_options_of(const stg_alert_receiver *s)
{
    return &s->o;
}

/* A text and its end, so that two texts are not one. */
static uint64_t receiver_add_text(uint64_t sum, const char *text)
{
    const stg_hash_seed seed = {{sum, 0}};

    return text == NULL ? sum : stg_hash(&seed, text, strlen(text) + 1);
}

uint64_t stg_alert_receiver_destination(const stg_alert_receiver *s)
{
    uint64_t sum = (uint64_t)s->o.type + 1;

    sum = receiver_add_text(sum, url_of(s));
    sum = receiver_add_text(sum, s->key);
    for (size_t i = 0; i < s->o.to_count; i++)
        sum = receiver_add_text(sum, s->o.to[i]);
    return sum;
}

/* -- open and close -------------------------------------------------------- */

/* Reads the URL, which says where the receiver is, and of a signed message the
 * header Content-Type. */
static stg_status receiver_read_texts(stg_alert_receiver *s, stg_error *err)
{
    const stg_alert_header *type = stg_receiver_header(&s->o, "Content-Type");
    stg_status status = STG_OK;

    if (s->o.url_file != NULL)
        status =
            stg_receiver_read_secret(s->o.name, s->o.url_file, &s->url, err);
    if (status == STG_OK && s->signer != NULL && type != NULL &&
        type->file != NULL)
        status = stg_receiver_read_secret(s->o.name, type->file,
                                          &s->content_type, err);
    return status;
}

/* All files are read here, so that a reload finds what is wrong with them, and no
 * alert later. */
stg_status stg_alert_receiver_new(stg_alert_receiver **receiver,
                                  stg_alert_world *w,
                                  const stg_alert_receiver_options *o,
                                  stg_error *err)
{
    stg_alert_receiver *s = calloc(1, sizeof *s);
    stg_status status = STG_OK;

    if (s != NULL)
        s->o = *o;
    if (s == NULL || !stg_receiver_keep(&s->kept, &s->o)) {
        if (s != NULL)
            stg_receiver_kept_free(&s->kept);
        free(s);
        return stg_receiver_refuse(err, STG_IO, o->name, "no memory for it");
    }
    s->world = w;
    s->again.passed = again;
    stg_events_init(&s->events);
    if (o->password_file != NULL)
        status = stg_receiver_read_secret(s->o.name, o->password_file,
                                          &s->password, err);
    if (o->key_file != NULL)
        status = stg_receiver_read_secret(s->o.name, o->key_file, &s->key, err);
    if (status == STG_OK && o->type != STG_RECEIVER_MAIL)
        status = stg_receiver_open(w, &s->o, s->key, NULL, &s->endpoint, err);
    if (status == STG_OK)
        status = stg_alert_signing_open(&s->o, &s->signer, err);
    if (status == STG_OK)
        status = receiver_read_texts(s, err);
    if (status != STG_OK) {
        stg_alert_receiver_free(s);
        return status;
    }
    *receiver = s;
    return STG_OK;
}

void stg_alert_receiver_free(stg_alert_receiver *s)
{
    if (s == NULL)
        return;
    if (s->endpoint != NULL)
        stg_endpoint_free(s->endpoint);
    stg_deadline_clear(s->world->deadlines, &s->again);
    stg_secret_free(s->password);
    stg_secret_free(s->key);
    stg_secret_free(s->url);
    stg_secret_free(s->content_type);
    stg_signer_free(s->signer);
    stg_receiver_kept_free(&s->kept);
    free(s);
}
