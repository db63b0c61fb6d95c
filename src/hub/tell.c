/* The lines of the hub's log: events, their fields and their words, in one
 * place.
 *
 * Names of events and fields are an interface: docs/logs.md lists them, and a
 * test compares that page with this source. A line says what happened, what the
 * hub does about it, and in `next` what an operator can do.
 *
 * Lines that may come with every attempt go through stg_log_repeat(), which
 * counts repetitions by the first fields instead of printing them. Lines with the
 * same event and cause are folded over all targets; a result of the operator's own
 * acts goes through stg_log_always(), and never is. */
#include <stdio.h>
#include <string.h>

#include <stagger/text.h>

#include "core/writer.h"
#include "hub/hub_internal.h"

static const char *name_of(const stg_hub *h, uint32_t lane)
{
    const stg_target *t = stg_targets_at(&h->targets, lane);

    return t != NULL ? t->name : NULL;
}

/* Each policy as it is applied, once. */
static void tell_policies(const stg_hub *h)
{
    const stg_settings *s = h->settings;
    char text[STG_POLICY_TEXT_MAX];

    for (size_t i = 0; i < s->target_count; i++) {
        const stg_policy *policy = s->targets[i].common->policy;
        size_t first = 0, count = 1;

        while (s->targets[first].common->policy != policy)
            first++;
        if (first < i || stg_policy_print(policy, text) != STG_OK)
            continue;
        for (size_t k = i + 1; k < s->target_count; k++)
            count += s->targets[k].common->policy == policy;
        STG_LOG_ALWAYS(h->log, STG_LOG_INFO, "policy",
                       stg_field_text("first", s->targets[i].name),
                       stg_field_number("targets", count),
                       stg_field_text("policy", text));
    }
}

void stg_tell_ready(const stg_hub *h, const char *store)
{
    const char *address =
        h->intake.address[0] != '\0' ? h->intake.address : NULL;

    STG_LOG_ALWAYS(h->log, STG_LOG_INFO, "ready",
                   stg_field_text("listen", address),
                   stg_field_text("store", store),
                   stg_field_number("targets", h->targets.known));
    if (h->targets.known == 0)
        STG_LOG_ALWAYS(
            h->log, STG_LOG_INFO, "no-targets",
            stg_field_text("next", "stagger targets add NAME --url URL"));
    tell_policies(h);
}

void stg_tell_unknown(const stg_hub *h, const stg_target *t)
{
    STG_LOG(h->log, STG_LOG_WARN, "target-unknown",
            stg_field_text("target", t->name),
            stg_field_text("detail",
                           "the store knows it and the settings do "
                           "not: it keeps what it has, and sends "
                           "nothing"));
}

void stg_tell_dead_room(const stg_hub *h, stg_store_trouble what,
                        const stg_error *why)
{
    const char *of = what == STG_STORE_DEAD_HALF     ? "half"
                     : what == STG_STORE_DEAD_NEARLY ? "nine tenths"
                                                     : "no copy";

    if (why == NULL)
        STG_LOG(h->log, STG_LOG_INFO, "dead-letters-room",
                stg_field_text("what", of));
    else
        STG_LOG(h->log, STG_LOG_WARN, "dead-letters-filling",
                stg_field_text("what", of), stg_field_text("detail", why->text),
                stg_field_text("next",
                               what == STG_STORE_UNCOPIED
                                   ? "mend the place of the copy"
                                   : "at the end of it the oldest are evicted: "
                                     "replay or drop some"));
}

void stg_tell_released(const stg_hub *h, const stg_target *t)
{
    char text[512];

    snprintf(text, sizeof text,
             "the settings do not have it, and what waits for it is older than "
             "`store.retention`: that becomes a dead letter, and holds the "
             "group's offset no more. `stagger targets forget %s` ends the "
             "target, `stagger dead replay --target %s` sends it when the "
             "target is back",
             t->name, t->name);
    STG_LOG(h->log, STG_LOG_WARN, "target-released",
            stg_field_text("target", t->name), stg_field_text("detail", text));
}

/* -- attempts -------------------------------------------------------------- */

/* What became of the delivery. A wait without a failure is one that was put
 * back, uncounted. */
static const char *decision_of(const stg_verdict *v)
{
    if (v->decision.next != STG_WAIT)
        return "dead";
    return v->failure != NULL ? "parked" : "put-back";
}

/* Failures of one target with one cause are one line a window: the first three fields
 * say which are the same. */
static void tell_failure(const stg_hub *h, const stg_attempt_end *e,
                         const char *message, stg_ns now)
{
    const stg_verdict *v = e->verdict;
    bool has_max = e->number_max != STG_UNLIMITED;
    char cause[STG_CAUSE_MAX];
    char trace[STG_TRACE_TEXT_MAX];
    stg_field fields[11];
    size_t count = 0;

    fields[count++] = stg_field_text("target", e->target->name);
    fields[count++] = stg_field_text(
        "cause", stg_outcome_cause(v->failure != NULL ? &v->failure->outcome
                                                      : &e->target->last,
                                   cause));
    fields[count++] = stg_field_text("decision", decision_of(v));
    fields[count++] = stg_field_text("why", stg_why_name(v->decision.why));
    fields[count++] = stg_field_text("message", message);
    fields[count++] = stg_field_text("trace", stg_trace_print(e->trace, trace));
    fields[count++] = stg_field_number("attempt", e->number);
    if (has_max)
        fields[count++] = stg_field_number("attempts_max", e->number_max);
    if (v->decision.next == STG_WAIT)
        fields[count++] =
            stg_field_time("wait", stg_ns_sub(v->decision.due_at, now));
    fields[count++] = stg_field_time("took", e->took);
    fields[count++] = stg_field_text("detail", e->detail);
    stg_log_repeat(h->log, STG_LOG_WARN, "attempt-failed", fields, count, 3);
}

void stg_tell_attempt(const stg_hub *h, const stg_attempt_end *e, stg_ns now)
{
    char id[STG_MESSAGE_ID_MAX], trace[STG_TRACE_TEXT_MAX];

    stg_store_id(h->store, e->partition, e->position, id);
    if (e->verdict->decision.next != STG_DONE) {
        tell_failure(h, e, id, now);
        return;
    }
    STG_LOG(h->log, STG_LOG_DEBUG, "delivered",
            stg_field_text("target", e->target->name),
            stg_field_text("message", id),
            stg_field_text("trace", stg_trace_print(e->trace, trace)),
            stg_field_number("attempt", e->number),
            stg_field_number("status", (uint64_t)e->status),
            stg_field_time("took", e->took));
}

/* -- what flow tells ------------------------------------------------------- */

static void tell(const stg_hub *h, const stg_action *a, stg_log_level level,
                 const char *event, const char *detail)
{
    STG_LOG(h->log, level, event, stg_field_text("target", name_of(h, a->lane)),
            stg_field_text("detail", detail));
}

static void tell_opened(const stg_hub *h, const stg_action *a, stg_ns now)
{
    const stg_target *t = stg_targets_at(&h->targets, a->lane);
    char cause[STG_CAUSE_MAX];

    STG_LOG(h->log, STG_LOG_WARN, "breaker-opened",
            stg_field_text("target", name_of(h, a->lane)),
            stg_field_text(
                "cause", stg_target_cause(t != NULL ? &t->last : NULL, cause)),
            stg_field_time("probe_in", stg_ns_sub(a->tell.until_at, now)),
            stg_field_text("detail",
                           "circuit open: its messages wait in the log until a "
                           "probe succeeds"));
}

static void tell_shed(const stg_hub *h, const stg_action *a)
{
    STG_LOG(h->log, STG_LOG_INFO, "shedding-ended",
            stg_field_text("target", name_of(h, a->lane)),
            stg_field_number("messages", a->tell.count),
            stg_field_text("detail", "they are dead letters, in a bulk row"));
}

static void tell_lost(const stg_hub *h, const stg_action *a)
{
    STG_LOG(h->log, STG_LOG_ERROR, "messages-lost",
            stg_field_text("target", name_of(h, a->lane)),
            stg_field_number("messages", a->tell.count),
            stg_field_text("detail",
                           "the log had dropped them, so many at "
                           "most, before they were read; they are a "
                           "dead letter, in a bulk row"));
}

static void tell_uplink_down(const stg_hub *h, const stg_action *a)
{
    const stg_target *t = stg_targets_at(&h->targets, a->lane);
    char cause[STG_CAUSE_MAX];

    STG_LOG(h->log, STG_LOG_ERROR, "uplink-down",
            stg_field_number("targets", a->tell.count),
            stg_field_text(
                "cause", stg_target_cause(t != NULL ? &t->last : NULL, cause)),
            stg_field_text("detail",
                           "no connection can be made, to any target: it is "
                           "the network or the name server of this machine"),
            stg_field_text("next",
                           "deliveries wait, uncounted; one connection a "
                           "second is tried"));
}

void stg_tell_shortage(const stg_hub *h, const stg_error *why)
{
    if (why != NULL)
        STG_LOG(h->log, STG_LOG_ERROR, "store-full",
                stg_field_text("detail", why->text));
    else
        STG_LOG(h->log, STG_LOG_INFO, "store-space-ok",
                stg_field_text("detail", "the store takes messages and rows"));
}

/* Tells of the machine's own network, which no target has alone. The store tells
 * by itself what it is short of. */
static void tell_of_all(const stg_hub *h, const stg_action *a, stg_ns now)
{
    switch (a->tell.what) {
    case STG_TELL_UPLINK_DOWN:
        tell_uplink_down(h, a);
        break;
    case STG_TELL_UPLINK_UP:
        STG_LOG(h->log, STG_LOG_INFO, "uplink-up",
                stg_field_number("targets", a->tell.count),
                stg_field_time("took", stg_ns_sub(now, a->tell.until_at)),
                stg_field_text("detail", "a connection was made: all go on"));
        break;
    default:
        break; // of a target
    }
}

void stg_tell_action(const stg_hub *h, const stg_action *a, stg_ns now)
{
    switch (a->tell.what) {
    case STG_TELL_OPENED:
        tell_opened(h, a, now);
        break;
    case STG_TELL_CLOSED:
        tell(h, a, STG_LOG_INFO, "breaker-closed", "recovered");
        break;
    case STG_TELL_SHEDDING:
        tell(h, a, STG_LOG_WARN, "shedding",
             "held for too long: what comes becomes a dead letter, in a range "
             "row, until a probe succeeds");
        break;
    case STG_TELL_SHED:
        tell_shed(h, a);
        break;
    case STG_TELL_PARKED_MAX:
        tell(h, a, STG_LOG_WARN, "parked-max",
             "as many parked rows as it may have: nothing untried is sent "
             "until there are fewer");
        break;
    case STG_TELL_PARKED_BELOW_MAX:
        tell(h, a, STG_LOG_INFO, "parked-below-max",
             "fewer parked rows than it may have: it goes on");
        break;
    case STG_TELL_CAUGHT_UP:
        tell(h, a, STG_LOG_INFO, "caught-up",
             "it has caught up with the window");
        break;
    case STG_TELL_CATCHING_UP:
        tell(h, a, STG_LOG_INFO, "catching-up",
             "behind the window: it reads the log by itself");
        break;
    case STG_TELL_LOST:
        tell_lost(h, a);
        break;
    case STG_TELL_EXPIRING:
        STG_LOG_REPEAT(h->log, STG_LOG_WARN, "expiring", 1,
                       stg_field_text("target", name_of(h, a->lane)),
                       stg_field_text("detail",
                                      "it is behind the retention: what is "
                                      "older becomes a dead letter, in a bulk "
                                      "row"));
        break;
    case STG_TELL_STORE_FULL:
    case STG_TELL_STORE_SPACE_OK:
    case STG_TELL_UPLINK_DOWN:
    case STG_TELL_UPLINK_UP:
        tell_of_all(h, a, now);
        break;
    case STG_TELL_PROXY_DOWN:
    case STG_TELL_PROXY_UP:
        break; // see proxies.c
    }
}

/* Each mistake has a line of its own. */
static void tell_refused(const stg_hub *h, const stg_reloaded *r)
{
    size_t count = 0;

    for (const char *at = r->detail; *at != '\0'; count++) {
        size_t size = strcspn(at, "\n");

        STG_LOG_ALWAYS(h->log, STG_LOG_ERROR, "reload-refused",
                       stg_field_span("detail", (stg_span){at, size}),
                       count == 0
                           ? stg_field_text("next", "the hub goes on as it was")
                           : stg_field_text("next", NULL));
        at += size + (at[size] != '\0');
    }
}

/* "a, b and 3 more" */
static void print_gone(const stg_reloaded *r, char *text, size_t size)
{
    stg_writer w = stg_writer_on(text, size);

    text[0] = '\0';
    for (size_t i = 0; i < r->gone && i < STG_GONE_NAMED_MAX; i++) {
        stg_write_text(&w, i == 0 ? "" : ", ");
        stg_write_text(&w, r->gone_names[i]);
    }
    if (r->gone > STG_GONE_NAMED_MAX) {
        stg_write_text(&w, " and ");
        stg_write_number(&w, r->gone - STG_GONE_NAMED_MAX);
        stg_write_text(&w, " more");
    }
}

/* Logs each warning of the file, as a start does. */
static void tell_reload_warnings(const stg_hub *h, const stg_reloaded *r)
{
    const stg_diagnostics *all = r->diagnostics;

    for (size_t i = 0; all != NULL && i < all->count; i++) {
        const stg_diagnostic *one = &all->all[i];

        if (!one->is_warning)
            continue;
        if (one->place.line > 0)
            STG_LOG(h->log, STG_LOG_WARN, "config-warning",
                    stg_field_text("file", r->file),
                    stg_field_number("line", one->place.line),
                    stg_field_text("detail", one->text));
        else
            STG_LOG(h->log, STG_LOG_WARN, "config-warning",
                    stg_field_text("detail", one->text));
    }
}

void stg_tell_reloaded(const stg_hub *h, const stg_reloaded *r)
{
    char gone[sizeof r->gone_names + 64];

    if (r->status != STG_OK) {
        tell_refused(h, r);
        return;
    }
    tell_reload_warnings(h, r);
    print_gone(r, gone, sizeof gone);
    STG_LOG_ALWAYS(h->log, STG_LOG_INFO, "reloaded",
                   stg_field_text("file", h->settings->file),
                   stg_field_number("added", r->added),
                   stg_field_number("changed", r->changed),
                   stg_field_number("gone", r->gone),
                   stg_field_text("gone_targets", r->gone == 0 ? NULL : gone),
                   stg_field_number("same", r->same));
    tell_policies(h);
}

void stg_tell_end(const stg_hub *h)
{
    stg_log_flush(h->log);
    STG_LOG_ALWAYS(h->log, h->end.is_clean ? STG_LOG_INFO : STG_LOG_WARN,
                   "stopped", stg_field_bool("clean", h->end.is_clean),
                   stg_field_number("dead", h->end.dead));
}
