/* The metrics of the hub as a whole and of its parts, printed from a snapshot
 * by a thread of the pool.
 *
 * Names, labels and units are an interface: docs/metrics.md, the dashboard and
 * the rules in packaging/ use them, and a test compares them. A part that a hub
 * does not have (no ingress, no receivers) prints no families, instead of
 * zeros. */
#include <stagger/policy.h>
#include <stagger/stagger.h>

#include "metrics/snapshot.h"

/* -- families of one sample ------------------------------------------------ */

static void put(stg_exposition *page, const char *name, const char *type,
                const char *help, uint64_t value)
{
    stg_page_family(page, name, type, help);
    stg_page_sample(page, "", NULL, 0, value);
}

static void put_gauge(stg_exposition *page, const char *name, const char *help,
                      uint64_t value)
{
    put(page, name, "gauge", help, value);
}

static void put_counter(stg_exposition *page, const char *name,
                        const char *help, uint64_t value)
{
    put(page, name, "counter", help, value);
}

static void put_seconds(stg_exposition *page, const char *name,
                        const char *type, const char *help, stg_ns value)
{
    stg_page_family(page, name, type, help);
    stg_page_seconds(page, "", NULL, 0, value);
}

static void put_histogram(stg_exposition *page, const char *name,
                          const char *help, const stg_histogram *h)
{
    stg_page_family(page, name, "histogram", help);
    stg_page_histogram(page, NULL, 0, h);
}

static void put_as(stg_exposition *page, const char *label, const char *as,
                   uint64_t value)
{
    stg_label labels[] = {{label, as}};

    stg_page_sample(page, "", labels, 1, value);
}

/* -- the parts ------------------------------------------------------------- */

static void print_hub(const stg_snapshot *p, stg_exposition *page)
{
    stg_label version = {"version", STG_VERSION};

    stg_page_family(page, "stagger_build_info", "gauge",
                    "Always 1; the version is its label.");
    stg_page_sample(page, "", &version, 1, 1);
    put_gauge(page, "stagger_stopping", "1 when the hub was told to stop.",
              p->is_stopping);
    put_gauge(page, "stagger_uplink_down",
              "1 when no connection can be made to any target, for want of a "
              "network or a name server.",
              p->flow.is_uplink_down);
    put_gauge(page, "stagger_proxies_down",
              "Proxies of targets that cannot be reached, or refuse the hub.",
              p->flow.proxies_down);
    stg_page_family(page, "stagger_targets", "gauge",
                    "Targets of the settings, and those that only the store "
                    "knows.");
    put_as(page, "known_to", "settings", p->known);
    put_as(page, "known_to", "store", p->unknown);
    put_counter(page, "stagger_messages_accepted_total",
                "Messages that were taken in, from wherever they come.",
                p->accepted);
    stg_page_family(page, "stagger_filtered_messages_total", "counter",
                    "Messages whose body was read for the filters of targets, "
                    "which match no body that is not JSON.");
    put_as(page, "body", "json", p->filtered.json);
    put_as(page, "body", "not-json", p->filtered.not_json);
    put_gauge(page, "stagger_attempts_in_flight",
              "Attempts that are under way, to all targets.",
              p->flow.in_flight);
    put_gauge(page, "stagger_attempts_in_flight_limit",
              "The most of them; each target may have one besides.",
              p->flow.in_flight_max);
    if (p->flow.budget_left != UINT64_MAX) {
        stg_page_family(page, "stagger_shared_budget_left_retries", "gauge",
                        "Retries that the budget of all targets can afford "
                        "now.");
        stg_page_thousandths(page, NULL, 0, p->flow.budget_left);
    }
    put_counter(page, "stagger_shared_budget_refused_total",
                "Retries that the budget of all targets has refused or put "
                "off.",
                p->flow.budget_refused);
    put_counter(page, "stagger_log_lines_dropped_total",
                "Lines of the log that nobody read in time.", p->log_dropped);
}

static void print_receipts(const stg_snapshot *p, stg_exposition *page)
{
    put_counter(page, "stagger_receipts_stored_total",
                "Receipts of attempts that the store has taken.",
                p->receipts.stored);
    put_counter(page, "stagger_receipts_dropped_total",
                "Receipts of attempts that the store had no room or time for.",
                p->receipts.dropped);
    put_counter(page, "stagger_receipts_copied_total",
                "Receipts of attempts that are where receipts.copy says.",
                p->receipts.copied);
    put_counter(page, "stagger_receipts_uncopied_total",
                "Receipts of attempts that could not be written there.",
                p->receipts.uncopied);
}

static void print_tokens(const stg_snapshot *p, stg_exposition *page)
{
    put_counter(page, "stagger_token_fetches_total",
                "Access tokens that were asked for.", p->tokens.fetches);
    put_counter(page, "stagger_token_failures_total",
                "Access tokens that were asked for, and did not come.",
                p->tokens.failures);
    put_counter(page, "stagger_tokens_refused_total",
                "Access tokens that a 401 of a target has replaced.",
                p->tokens.refused);
    put_gauge(page, "stagger_targets_without_token",
              "Targets that nothing can be sent to for want of a token.",
              p->tokens.gated);
}

static void print_spans(const stg_snapshot *p, stg_exposition *page)
{
    put_counter(page, "stagger_spans_exported_total",
                "Spans of attempts that the collector of traces has taken.",
                p->spans.exported);
    stg_page_family(page, "stagger_spans_dropped_total", "counter",
                    "Spans of attempts that it has not.");
    put_as(page, "reason", "full", p->spans.full);
    put_as(page, "reason", "refused", p->spans.refused);
    put_as(page, "reason", "unsent", p->spans.unsent);
    put_gauge(page, "stagger_spans_waiting",
              "Spans of attempts that wait for it.", p->spans.waiting);
}

static void print_memory(const stg_snapshot *p, stg_exposition *page)
{
    put_gauge(page, "stagger_window_messages",
              "Recent messages that are held in memory.", p->flow.window);
    put_gauge(page, "stagger_memory_held_bytes",
              "Memory that messages and answers take.", p->flow.held);
    put_gauge(page, "stagger_memory_limit_bytes",
              "The most of it that they may take; at it reading stops.",
              p->flow.memory_max);
    put_gauge(page, "stagger_memory_setting_bytes",
              "The limit of the settings, the intake's part included.",
              p->memory_max);
}

static void print_store(const stg_store_view *s, const stg_histogram *groups,
                        stg_exposition *page)
{
    put_gauge(page, "stagger_store_used_bytes",
              "Bytes of the store's file and of its WAL that are in use.",
              s->used);
    put_gauge(page, "stagger_store_quota_bytes",
              "Bytes that it may have; at 80 % of them intake stops.",
              s->quota);
    put_gauge(page, "stagger_store_wal_bytes",
              "Bytes of the write-ahead log beside it.", s->wal);
    put_gauge(page, "stagger_store_messages_bytes",
              "Bytes of the store that messages take, about.",
              s->message_bytes);
    put_gauge(page, "stagger_store_dead_letters_bytes",
              "Bytes of the store that rows of dead letters take, about.",
              s->letter_bytes);
    put_gauge(page, "stagger_store_idempotency_keys",
              "Idempotency keys that are kept.", s->keys);
    put_gauge(page, "stagger_log_first_position",
              "The position of the first message that the log has.", s->first);
    put_gauge(page, "stagger_log_next_position",
              "The position that the next message gets.", s->next);
    put_histogram(page, "stagger_checkpoint_duration_seconds",
                  "Rows and cursors: from asked to durable.", groups);
}

static void print_times(const stg_store_view *s, stg_exposition *page)
{
    put_histogram(page, "stagger_store_commit_duration_seconds",
                  "Transactions of the store: from their begin until durable.",
                  &s->commits);
    put_histogram(page, "stagger_store_wal_checkpoint_duration_seconds",
                  "Checkpoints of the write-ahead log.", &s->checkpoints);
}

static void print_ingress(const stg_ingress_view *g, stg_exposition *page)
{
    static const char *const results[] = {
        [STG_SIGNATURE_RIGHT] = "right",
        [STG_SIGNATURE_MISSING] = "missing",
        [STG_SIGNATURE_STALE] = "stale",
        [STG_SIGNATURE_WRONG] = "wrong",
    };

    put_counter(page, "stagger_ingress_requests_total",
                "Requests that were answered, whatever their path.",
                g->requests);
    stg_page_family(page, "stagger_ingress_messages_total", "counter",
                    "Messages that came by HTTP: accepted, or there before by "
                    "their key.");
    put_as(page, "result", "accepted", g->accepted);
    put_as(page, "result", "repeat", g->repeats);
    stg_page_family(page, "stagger_ingress_refused_total", "counter",
                    "Requests that were refused, by the class of the answer.");
    put_as(page, "code", "4xx", g->refused_4xx);
    put_as(page, "code", "5xx", g->refused_5xx);
    stg_page_family(page, "stagger_ingress_signatures_total", "counter",
                    "Requests of inbound webhooks, by what their signature "
                    "came to.");
    for (size_t i = 0; i < sizeof g->signatures / sizeof *g->signatures; i++)
        put_as(page, "result", results[i], g->signatures[i]);
    put_counter(page, "stagger_ingress_cut_total",
                "Requests that were too slow.", g->cut);
    put_counter(page, "stagger_ingress_handshakes_failed_total",
                "Handshakes of TLS that failed.", g->handshakes_failed);
    if (g->certificate_until > 0)
        put_gauge(page, "stagger_ingress_certificate_expiry_timestamp_seconds",
                  "Until when the hub's certificate is valid, since 1970.",
                  (uint64_t)g->certificate_until);
    put_gauge(page, "stagger_ingress_connections", "Connections that are open.",
              g->connections);
    put_gauge(page, "stagger_ingress_waiting_messages",
              "Messages that wait for their commit.", g->waiting);
    put_gauge(page, "stagger_ingress_pending_bytes",
              "Bytes of requests that are read, or wait.", g->pending);
}

static void print_firing(const stg_alerts_view *v, stg_exposition *page)
{
    stg_page_family(page, "stagger_alerts_firing", "gauge",
                    "Alerts of the hub's own that hold now.");
    for (int i = 0; i < STG_ALERT_COUNT; i++)
        put_as(page, "alert", stg_alert_name((stg_alert)i), v->firing[i]);
}

typedef uint64_t receiver_fn(const stg_alert_receiver_view *v);

static uint64_t sent_of(const stg_alert_receiver_view *v)
{
    return v->sent;
}

static uint64_t failed_of(const stg_alert_receiver_view *v)
{
    return v->failed;
}

static uint64_t given_up_of(const stg_alert_receiver_view *v)
{
    return v->given_up;
}

static uint64_t merged_of(const stg_alert_receiver_view *v)
{
    return v->merged;
}

static uint64_t waiting_of(const stg_alert_receiver_view *v)
{
    return v->waiting;
}

/* Where there are receivers; else nobody is told. */
static void print_alerts(const stg_snapshot *p, stg_exposition *page)
{
    static const struct {
        const char *name, *type, *help;
        receiver_fn *of;
    } families[] = {
        {"stagger_alert_digests_sent_total", "counter",
         "Digests of alerts that a receiver has accepted.", sent_of},
        {"stagger_alert_attempts_failed_total", "counter",
         "Attempts to send one that have failed.", failed_of},
        {"stagger_alert_digests_given_up_total", "counter",
         "Digests that a receiver did not take in an hour, or ever: put off.",
         given_up_of},
        {"stagger_alert_digests_merged_total", "counter",
         "Digests that went in another one, to say less.", merged_of},
        {"stagger_alert_digests_waiting", "gauge",
         "Digests that wait for a receiver.", waiting_of},
    };

    if (p->receiver_count == 0)
        return;
    print_firing(&p->alerts, page);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        stg_page_family(page, families[i].name, families[i].type,
                        families[i].help);
        for (size_t s = 0; s < p->receiver_count; s++)
            put_as(page, "receiver", p->receivers[s].name,
                   families[i].of(&p->receivers[s].view));
    }
}

static void print_process(const stg_snapshot *p, const stg_process_view *v,
                          stg_exposition *page)
{
    put_seconds(page, "process_cpu_seconds_total", "counter",
                "Time of processors that was used.", v->cpu);
    put_seconds(page, "process_start_time_seconds", "gauge",
                "When the hub was opened, since 1970.", p->started_at);
    if (v->resident > 0)
        put_gauge(page, "process_resident_memory_bytes", "Resident memory.",
                  v->resident);
    if (v->files > 0)
        put_gauge(page, "process_open_fds", "Open file descriptors.", v->files);
    if (v->files_max != STG_UNLIMITED)
        put_gauge(page, "process_max_fds", "The most that there may be.",
                  v->files_max);
}

/* Printed on any thread: nothing here is the loop's. */
void stg_snapshot_print(const stg_snapshot *p, const stg_process_view *process,
                        stg_exposition *page)
{
    print_hub(p, page);
    stg_snapshot_print_targets(p, page);
    print_receipts(p, page);
    print_tokens(p, page);
    print_spans(p, page);
    print_memory(p, page);
    print_store(&p->store, &p->groups, page);
    print_times(&p->store, page);
    stg_snapshot_print_source(p, page);
    if (p->has_ingress)
        print_ingress(&p->ingress, page);
    print_alerts(p, page);
    print_process(p, process, page);
}

/* -- rows ------------------------------------------------------------------ */

static void add_lane(stg_lane_view *all, const stg_lane_view *one)
{
    all->limit += one->limit;
    all->in_flight += one->in_flight;
    all->waiting += one->waiting;
    all->routed += one->routed;
    all->delivered += one->delivered;
    all->dead += one->dead;
    all->cancelled += one->cancelled;
    all->parked += one->parked;
    all->replays += one->replays;
    all->lag += one->lag;
}

void stg_snapshot_add(stg_snapshot_row *row, const stg_snapshot_row *one,
                      const stg_counters *counters)
{
    row->targets += one->targets;
    add_lane(&row->lane, &one->lane);
    for (int i = 0; i < STG_TARGET_STATES; i++)
        row->states[i] += one->states[i];
    row->catching_up += one->catching_up;
    row->breakers_open += one->breakers_open;
    row->sockets.idle += one->sockets.idle;
    row->sockets.busy += one->sockets.busy;
    row->lag_time = stg_ns_max(row->lag_time, one->lag_time);
    if (counters != NULL)
        stg_counters_merge(&row->counters, counters);
}
