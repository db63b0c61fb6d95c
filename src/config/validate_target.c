/* One target: what contradicts in it, or against the rest of the settings, and
 * what is risky. A policy is checked by what the target's lane will have, with the
 * hub's budget and the target's own timeout and rate; a mistake in the text of a
 * policy was told when that was read, and is not told again. */
#include <inttypes.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/loading.h"
#include "config/targets.h"
#include "core/backoff_draw.h"
#include "core/rule.h"
#include "core/writer.h"
#include "http/url.h"

enum { MANY_TARGETS = 50 };

static stg_file_place place_of(const stg_loading *l, size_t target,
                               const char *path)
{
    return stg_load_target_place(l, target, path);
}

/* To the second, or above an hour to the minute: this is for people. */
static const char *print_time(stg_ns time, char text[STG_DURATION_TEXT_MAX])
{
    if (time > STG_HOUR)
        time -= time % STG_MIN;
    else if (time > STG_S)
        time -= time % STG_S;
    return stg_duration_text(time, text);
}

/* -- policies -------------------------------------------------------------- */

/* The longest that an operation may take until its last attempt: all waits, and
 * the attempts before; saturating. Stops when it is more than `most`. */
static stg_ns retry_total(const stg_policy *p, stg_ns most)
{
    stg_ns timeout = p->attempt_timeout != STG_NEVER ? p->attempt_timeout : 0;
    stg_ns total = 0, base = stg_base_longest(p), wait, last = base;

    for (uint64_t n = 1; n < p->attempts_max && total <= most; n++) {
        wait = stg_backoff_longest(
            &p->backoff,
            stg_backoff_interval(&p->backoff, base, (uint32_t)n, last));
        last = stg_backoff_last_of(&p->backoff, wait);
        total = stg_ns_add(total, stg_ns_add(wait, timeout));
        if (wait == 0 && timeout == 0 && n > 100000)
            break; // it may go on for ever without getting on
    }
    return p->deadline != STG_NEVER ? stg_ns_min(total, p->deadline) : total;
}

/* Where a target's policy is written: its name's own place, or the text. */
static stg_file_place policy_place(const stg_loading *l, size_t target)
{
    const char *text = l->s->targets[target].common->policy_text;
    size_t number;

    if (text != NULL && stg_text_table_find(&l->policies, text, &number) &&
        number < l->s->policy_count)
        return l->s->policies[number].place;
    return place_of(l, target, "policy");
}

/* The policy as the lane will have it. False: its text has a mistake, which was
 * told when it was loaded. */
static bool read_policy(const stg_loading *l, const stg_target_settings *t,
                        stg_policy *p)
{
    const char *text = t->common->policy_text;
    size_t number;

    if (text != NULL && stg_text_table_find(&l->policies, text, &number)) {
        if (number >= l->s->policy_count)
            return false;
        text = l->s->policies[number].text;
    }
    return stg_lane_policy_read(p, text, l->target_total,
                                t->common->attempt_timeout, t->common->rate,
                                NULL) == STG_OK;
}

/* A parked delivery outlives the retention of the log: its policy has to end it
 * before what it was made of is gone. */
static void check_total(stg_loading *l, size_t target, const stg_policy *p)
{
    stg_ns retention = l->s->store.retention;
    char kept[STG_DURATION_TEXT_MAX];
    stg_file_place place = policy_place(l, target);

    if (p->attempts_max == STG_UNLIMITED && p->deadline == STG_NEVER) {
        stg_warn(l->c, place,
                 "the policy has deadline=none and attempts without a limit: "
                 "what always fails is tried again for ever");
        return;
    }
    // What is parked outlives the retention; what waits for it in order does
    // not.
    if (l->s->targets[target].common->order != STG_ORDER_NONE &&
        retry_total(p, retention) > retention)
        stg_warn(l->c, place,
                 "a message may be retried for longer than `store.retention` "
                 "(%s): what waits behind it in order is given up then",
                 print_time(retention, kept));
}

/* The mean of a wait, which does not depend on those before it. */
static stg_ns mean_wait(const stg_backoff *b, uint32_t n)
{
    stg_interval i = stg_backoff_interval(b, b->base, n, 0);

    return i.low + (i.high - i.low) / 2;
}

/* Who names a number of attempts wants them made. */
static void check_deadline(stg_loading *l, size_t target, const stg_policy *p)
{
    const char *text = l->s->targets[target].common->policy_text;
    char deadline[STG_DURATION_TEXT_MAX];
    stg_ns total = 0;
    size_t number;

    if (stg_text_table_find(&l->policies, text, &number) &&
        number < l->s->policy_count)
        text = l->s->policies[number].text;
    if (p->deadline == STG_NEVER || p->attempts_max == STG_UNLIMITED ||
        stg_backoff_keeps_last(&p->backoff) ||
        strstr(text, "attempts=") == NULL)
        return;
    for (uint64_t n = 1; n < p->attempts_max && total < p->deadline; n++) {
        stg_ns wait = mean_wait(&p->backoff, (uint32_t)n);

        if (wait == 0)
            return;
        total = stg_ns_add(total, wait);
        if (total >= p->deadline)
            stg_warn(l->c, policy_place(l, target),
                     "the policy's deadline, %s, ends it after %" PRIu64
                     " of its %" PRIu64
                     " attempts, more or less; expected a "
                     "longer deadline=",
                     print_time(p->deadline, deadline), n, p->attempts_max);
    }
}

/* Reads the policy anew with the target's timeout and rate, since targets are
 * not completed yet. The default policy is ours and is not checked, but for its
 * sum. */
static void check_policy(stg_loading *l, size_t target)
{
    const stg_target_settings *t = &l->s->targets[target];
    stg_policy p;

    if (!read_policy(l, t, &p))
        return;
    check_total(l, target, &p);
    if (t->common->policy_text == NULL)
        return; // the default is ours
    if (p.backoff.jitter == STG_JITTER_NONE && p.attempts_max > 1 &&
        l->target_total >= MANY_TARGETS)
        stg_warn(l->c, policy_place(l, target),
                 "the policy has no jitter, and there are %zu targets: those "
                 "that fail together are tried again together; jitter=50%% "
                 "spreads them",
                 l->target_total);
    check_deadline(l, target, &p);
    if (p.attempt_timeout == STG_NEVER)
        stg_warn(l->c, policy_place(l, target),
                 "an attempt has no limit of time%s: a target that hangs keeps "
                 "its requests for %s; expected attempt-timeout=, or "
                 "`timeouts.attempt`",
                 p.deadline == STG_NEVER ? "" : " of its own",
                 p.deadline == STG_NEVER ? "ever"
                                         : "all of the policy's deadline");
}

/* -- where it is ----------------------------------------------------------- */

void stg_validate_egress(stg_loading *l, stg_file_place place, const char *name,
                         const stg_url *url)
{
    stg_error err;

    if (stg_settings_check_egress(l->s, url, &err) != STG_OK)
        stg_complain(l->c, place, "`%s`: %s", name, err.text);
}

static bool is_in(const char *text, const struct sockaddr_storage *to)
{
    stg_cidr one;
    stg_egress only = {.deny = &one, .deny_count = 1};

    return stg_cidr_parse(&one, text, NULL) == STG_OK &&
           !stg_egress_allows(&only, (const struct sockaddr *)to, NULL);
}

bool stg_validate_is_private(const stg_url *url)
{
    static const char *const nets[] = {
        "127.0.0.0/8",    "10.0.0.0/8", "172.16.0.0/12",
        "192.168.0.0/16", "::1/128",    "fc00::/7",
    };
    struct sockaddr_storage to;

    if (!stg_url_read_address(url, &to))
        // A name without a dot is one of the network's own.
        return memchr(url->host.at, '.', url->host.size) == NULL ||
               (url->host.size == 9 &&
                strncasecmp(url->host.at, "localhost", 9) == 0);
    for (size_t i = 0; i < sizeof nets / sizeof *nets; i++)
        if (is_in(nets[i], &to))
            return true;
    return false;
}

/* A header from a file counts whatever its name is: that is where secrets
 * are. */
static bool is_credential(const stg_header_setting *h)
{
    return h->file != NULL || strcasecmp(h->name, "Authorization") == 0 ||
           strcasecmp(h->name, "Proxy-Authorization") == 0 ||
           strcasecmp(h->name, "Cookie") == 0 ||
           strcasecmp(h->name, "X-Api-Key") == 0;
}

static void check_headers(stg_loading *l, size_t target, const stg_url *url)
{
    const stg_target_settings *t = &l->s->targets[target];

    for (size_t i = 0; i < t->header_count; i++) {
        const stg_header_setting *h = &t->headers[i];

        if (!is_credential(h))
            continue;
        if (!url->is_tls && !stg_validate_is_private(url))
            stg_warn(l->c, place_of(l, target, "url"),
                     "header `%.60s` is sent in the clear, by http:// to a "
                     "host that is not private; expected https://",
                     h->name);
        if (h->file == NULL && l->is_exposed)
            stg_warn(l->c, place_of(l, target, "headers"),
                     "the value of header `%.60s` is in a file that others may "
                     "read; expected it in one of its own: {file: PATH}",
                     h->name);
    }
}

/* Each of its messages would come back, as a new one. */
static void check_loop(stg_loading *l, size_t target)
{
    stg_error err;

    if (stg_settings_check_loop(l->s, l->s->targets[target].url, &err) !=
        STG_OK)
        stg_complain(l->c, place_of(l, target, "url"), "`url`: %s", err.text);
}

static void check_url(stg_loading *l, size_t target)
{
    const stg_target_settings *t = &l->s->targets[target];
    stg_url url;

    if (t->url == NULL || stg_url_parse(&url, t->url, NULL) != STG_OK)
        return;
    stg_validate_egress(l, place_of(l, target, "url"), "url", &url);
    check_loop(l, target);
    check_headers(l, target, &url);
    if (!url.is_tls && stg_load_is_written(l, target, "tls.certificate"))
        stg_warn(l->c, place_of(l, target, "tls.certificate"),
                 "a certificate, and the target's `url` is http://: it is of "
                 "no use");
    if (url.is_tls && t->common->is_unverified)
        stg_warn(
            l->c, place_of(l, target, "tls.verify"),
            "the target's certificate is not checked: somebody in the network "
            "path can pose as the target; expected `tls.ca` with the right "
            "one");
}

/* -- the lane -------------------------------------------------------------- */

static void check_rate(stg_loading *l, size_t target)
{
    const stg_target_settings *t = &l->s->targets[target];
    const stg_target_common *c = t->common;
    stg_policy p;

    if (!read_policy(l, t, &p))
        return;
    if (p.rate == 0 && c->burst > 0)
        stg_complain(l->c, place_of(l, target, "burst"),
                     "`burst` without `rate`; expected both");
    // As many at once would be ten seconds' worth.
    if (p.rate > 0 && stg_load_is_written(l, target, "in-flight") &&
        c->in_flight_max > 1 &&
        (uint64_t)c->in_flight_max * 1000 > (uint64_t)p.rate * 10)
        stg_warn(l->c, place_of(l, target, "in-flight"),
                 "`in-flight` is %" PRIu32
                 ", far more than `rate` lets "
                 "through: it will not be reached",
                 c->in_flight_max);
}

/* A `shed-after` of the defaults is meant for the defaults' policy: a target with
 * a policy of its own is not told of it. */
static bool is_shed_written(const stg_loading *l, size_t target)
{
    size_t number = stg_setting_number(
        stg_setting_find(STG_IN_TARGET, "policy", strlen("policy")));

    if (l->targets[target][number].line == 0)
        return stg_load_is_written(l, target, "shed-after");
    number = stg_setting_number(
        stg_setting_find(STG_IN_TARGET, "shed-after", strlen("shed-after")));
    return l->targets[target][number].line > 0;
}

static bool has_breaker(const stg_loading *l, const stg_target_settings *t)
{
    stg_policy p;

    // A policy with a mistake was told of already.
    return !read_policy(l, t, &p) || p.breaker.rule != STG_BREAKER_NONE;
}

static void check_shed(stg_loading *l, size_t target)
{
    const stg_target_settings *t = &l->s->targets[target];
    char text[STG_DURATION_TEXT_MAX];

    if (!has_breaker(l, t)) {
        if (is_shed_written(l, target))
            stg_warn(l->c, place_of(l, target, "shed-after"),
                     "`shed-after` has no effect: the target's policy has no "
                     "breaker; expected breaker= in the policy, such as "
                     "breaker=5");
    } else if (t->common->shed_after == STG_NEVER)
        stg_warn(
            l->c, place_of(l, target, "shed-after"),
            "`shed-after` is none: a target that is down keeps its messages "
            "until `store.retention`, and the store may fill up");
    else if (t->common->shed_after > l->s->store.retention)
        stg_warn(
            l->c, place_of(l, target, "shed-after"),
            "`shed-after` is longer than `store.retention` (%s), which ends "
            "first",
            print_time(l->s->store.retention, text));
}

static void check_owner(stg_loading *l, size_t target)
{
    const stg_target_settings *t = &l->s->targets[target];
    stg_alert_receiver_options made;
    stg_error err;

    if (t->owner == NULL)
        return;
    if (stg_alert_owner_options(&l->s->alerts, t->owner, &made, &err) != STG_OK)
        stg_complain(l->c, place_of(l, target, "owner"), "`owner`: %s",
                     err.text);
    else if (t->common->disable_after == STG_NEVER)
        stg_warn(l->c, place_of(l, target, "owner"),
                 "`owner` has no effect without `disable-after`, which is what "
                 "the owner is told of");
}

static void check_templates(stg_loading *l, size_t target)
{
    const stg_target_settings *t = &l->s->targets[target];
    char flaw[STG_TEMPLATE_FLAW_MAX];
    const char *key, *why;

    if (t->url == NULL)
        return;
    why = stg_settings_check_templates(t, &key, flaw);
    if (why != NULL)
        stg_complain(l->c, place_of(l, target, key), "`%s`: %s", key, why);
}

static const char *const batch_settings[] = {"batch.bytes", "batch.linger",
                                             "batch.format", "batch.results"};

static void check_batch(stg_loading *l, size_t target)
{
    const stg_target_settings *t = &l->s->targets[target];
    const stg_target_common *c = t->common;

    if (c->batch.max > 1 && c->order == STG_ORDER_STRICT)
        stg_complain(l->c, place_of(l, target, "batch.max"),
                     "`batch.max` with `order: strict`, where one message is "
                     "under way at a time; expected `order: key` or none");
    if (c->batch.max > 1 && c->cloud_events == STG_CLOUD_EVENTS_BINARY)
        stg_complain(l->c, place_of(l, target, "cloudevents"),
                     "`cloudevents: binary` with `batch.max`, where no headers "
                     "of single messages are sent; expected `structured`");
    for (size_t i = 0; c->batch.max == 1 &&
                       i < sizeof batch_settings / sizeof *batch_settings;
         i++)
        if (stg_load_is_written(l, target, batch_settings[i]))
            stg_warn(l->c, place_of(l, target, batch_settings[i]),
                     "`%s` has no effect without `batch.max`, which is 1: a "
                     "request for each message",
                     batch_settings[i]);
}

/* Valid in HTTP, so it is only a warning. */
static void check_method(stg_loading *l, size_t target)
{
    const char *method = l->s->targets[target].common->method;

    if (strcmp(method, "GET") == 0 || strcmp(method, "DELETE") == 0)
        stg_warn(
            l->c, place_of(l, target, "method"),
            "a body with %s: many servers do not read it; expected POST or "
            "PUT",
            method);
}

/* A part that may take longer than the whole never ends by its own timeout. */
static void check_timeouts(stg_loading *l, size_t target)
{
    const stg_target_settings *t = &l->s->targets[target];
    const stg_target_common *c = t->common;
    const struct {
        const char *path;
        stg_ns time;
    } parts[] = {
        {"timeouts.resolve", c->resolve_timeout},
        {"timeouts.connect", c->connect_timeout},
        {"timeouts.tls", c->tls_timeout},
        {"timeouts.write", c->write_timeout},
        {"timeouts.first-byte", c->first_byte_timeout},
    };
    char whole[STG_DURATION_TEXT_MAX];
    stg_policy p;

    if (!read_policy(l, t, &p) || p.attempt_timeout == STG_NEVER)
        return;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (stg_load_is_written(l, target, parts[i].path) &&
            parts[i].time != STG_NEVER && parts[i].time > p.attempt_timeout)
            stg_warn(l->c, place_of(l, target, parts[i].path),
                     "`%s` is longer than all of an attempt may take (%s): it "
                     "never counts",
                     parts[i].path, print_time(p.attempt_timeout, whole));
}

void stg_validate_target(stg_loading *l, size_t target)
{
    check_policy(l, target);
    check_url(l, target);
    check_rate(l, target);
    check_shed(l, target);
    check_owner(l, target);
    check_batch(l, target);
    check_templates(l, target);
    check_method(l, target);
    check_timeouts(l, target);
    stg_validate_route(l, target);
    stg_validate_sign(l, target);
    stg_validate_oauth(l, target);
    stg_validate_topics(l, target);
    stg_load_check_tls(l, target);
}
