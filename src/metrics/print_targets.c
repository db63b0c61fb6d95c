/* The metrics of targets: each family over all rows of the snapshot, because
 * the format wants the samples of a family together.
 *
 * Rows are the targets with a label of their own and, last, the sum of the
 * others. Samples of a cause, decision or state are printed only if they are
 * not 0, which bounds the page for ten thousand targets. */
#include <stagger/policy.h>

#include "metrics/snapshot.h"
#include "store/cause.h"

typedef void print_fn(stg_exposition *page, const stg_snapshot_row *row);

typedef struct family {
    const char *name, *type, *help;
    print_fn *print;
} family;

/* -- samples of a row ------------------------------------------------------ */

static void put(stg_exposition *page, const stg_snapshot_row *row,
                uint64_t value)
{
    stg_label label = {"target", row->name};

    stg_page_sample(page, "", &label, 1, value);
}

static void put_as(stg_exposition *page, const stg_snapshot_row *row,
                   const char *name, const char *as, uint64_t value)
{
    stg_label labels[] = {{"target", row->name}, {name, as}};

    stg_page_sample(page, "", labels, 2, value);
}

static void put_histogram(stg_exposition *page, const stg_snapshot_row *row,
                          const stg_histogram *h)
{
    stg_label label = {"target", row->name};

    stg_page_histogram(page, &label, 1, h);
}

typedef struct causes {
    stg_exposition *page;
    const stg_snapshot_row *row;
} causes;

static void put_cause(void *ctx, const char *cause, stg_category category,
                      uint64_t count)
{
    const causes *c = ctx;
    const char *letter = stg_category_letter(category);
    stg_label labels[] = {{"target", c->row->name},
                          {"cause", cause},
                          {"category", letter != NULL ? letter : "none"}};

    stg_page_sample(c->page, "", labels, 3, count);
}

/* -- attempts -------------------------------------------------------------- */

static void print_started(stg_exposition *page, const stg_snapshot_row *row)
{
    put(page, row, row->counters.started);
}

static void print_retries(stg_exposition *page, const stg_snapshot_row *row)
{
    put(page, row, row->counters.retries);
}

static void print_attempts(stg_exposition *page, const stg_snapshot_row *row)
{
    causes c = {page, row};

    stg_causes_each(&row->counters.ended, put_cause, &c);
}

static void print_took(stg_exposition *page, const stg_snapshot_row *row)
{
    put_histogram(page, row, &row->counters.took);
}

static void print_latency(stg_exposition *page, const stg_snapshot_row *row)
{
    put_histogram(page, row, &row->counters.latency);
}

/* -- decisions and ends ---------------------------------------------------- */

static void put_decision(stg_exposition *page, const stg_snapshot_row *row,
                         const char *decision, const char *reason,
                         uint64_t count)
{
    stg_label labels[] = {
        {"target", row->name}, {"decision", decision}, {"reason", reason}};

    if (count > 0)
        stg_page_sample(page, "", labels, 3, count);
}

static void print_decisions(stg_exposition *page, const stg_snapshot_row *row)
{
    const stg_counters *c = &row->counters;

    put_decision(page, row, "delivered", stg_why_name(STG_WHY_DONE),
                 c->delivered);
    put_decision(page, row, "put-back", stg_why_name(STG_WHY_CIRCUIT_OPEN),
                 c->put_back);
    for (int i = 0; i < STG_WHY_COUNT; i++) {
        const char *why = stg_why_name((stg_why)i);

        put_decision(page, row, "parked", why, c->parked[i]);
        put_decision(page, row, "dead", why, c->dead[i]);
    }
    for (int i = 0; i < STG_SHED_HOWS; i++)
        put_decision(page, row, "dead", stg_shed_how_name((stg_shed_how)i),
                     c->shed[i]);
}

/* Of no fault: those of a fault are among the letters. */
static uint64_t sum_of_shed(const stg_counters *c)
{
    uint64_t sum = 0;

    for (int i = 0; i < STG_SHED_CAUSES; i++)
        sum += c->shed_causes[i];
    return sum;
}

/* Dead is what the store has as dead: letters of their own, and those counted
 * in bulk rows. */
static void print_ends(stg_exposition *page, const stg_snapshot_row *row)
{
    const stg_counters *c = &row->counters;

    put_as(page, row, "end", "delivered", c->delivered);
    put_as(page, row, "end", "dead",
           stg_causes_sum(&c->letters) + sum_of_shed(c));
}

static void print_replayed(stg_exposition *page, const stg_snapshot_row *row)
{
    put(page, row, row->counters.replayed);
}

static void print_letters(stg_exposition *page, const stg_snapshot_row *row)
{
    causes c = {page, row};

    stg_causes_each(&row->counters.letters, put_cause, &c);
    for (int i = 0; i < STG_SHED_CAUSES; i++)
        if (row->counters.shed_causes[i] > 0)
            put_cause(&c, stg_shed_cause_name((stg_shed_cause)i),
                      STG_CATEGORY_NONE, row->counters.shed_causes[i]);
}

/* -- lanes ----------------------------------------------------------------- */

static void print_books(stg_exposition *page, const stg_snapshot_row *row)
{
    const stg_lane_view *l = &row->lane;

    put_as(page, row, "state", "routed", l->routed);
    put_as(page, row, "state", "delivered", l->delivered);
    put_as(page, row, "state", "dead", l->dead);
    put_as(page, row, "state", "cancelled", l->cancelled);
    put_as(page, row, "state", "parked", l->parked);
    put_as(page, row, "state", "waiting", l->waiting);
    put_as(page, row, "state", "in_flight", l->in_flight);
}

static void print_replays(stg_exposition *page, const stg_snapshot_row *row)
{
    put(page, row, row->lane.replays);
}

static void print_state(stg_exposition *page, const stg_snapshot_row *row)
{
    for (unsigned i = 0; i < STG_TARGET_STATES; i++)
        if (row->states[i] > 0)
            put_as(page, row, "state", stg_target_state_name(i),
                   row->states[i]);
}

static void print_limit(stg_exposition *page, const stg_snapshot_row *row)
{
    put(page, row, row->lane.limit);
}

static void print_catching_up(stg_exposition *page, const stg_snapshot_row *row)
{
    put(page, row, row->catching_up);
}

static void print_lag(stg_exposition *page, const stg_snapshot_row *row)
{
    put(page, row, row->lane.lag);
}

static void print_lag_time(stg_exposition *page, const stg_snapshot_row *row)
{
    stg_label label = {"target", row->name};

    stg_page_seconds(page, "", &label, 1, row->lag_time);
}

/* -- breaker, budget, sockets ---------------------------------------------- */

static void print_open(stg_exposition *page, const stg_snapshot_row *row)
{
    put(page, row, row->breakers_open);
}

static void print_openings(stg_exposition *page, const stg_snapshot_row *row)
{
    put(page, row, row->counters.openings);
}

static void print_budget_left(stg_exposition *page, const stg_snapshot_row *row)
{
    stg_label label = {"target", row->name};

    // Those of many cannot be added up to anything.
    if (row->lane.budget_left != UINT64_MAX &&
        row->name[0] != STG_OTHER_TARGETS[0])
        stg_page_thousandths(page, &label, 1, row->lane.budget_left);
}

static void print_budget_refused(stg_exposition *page,
                                 const stg_snapshot_row *row)
{
    put(page, row, row->counters.budget_refused);
}

static void print_connections(stg_exposition *page, const stg_snapshot_row *row)
{
    put_as(page, row, "state", "idle", row->sockets.idle);
    put_as(page, row, "state", "busy", row->sockets.busy);
}

static void print_connects(stg_exposition *page, const stg_snapshot_row *row)
{
    put(page, row, row->counters.connects);
}

/* -- all of them ----------------------------------------------------------- */

static const family families[] = {
    {"stagger_attempts_started_total", "counter",
     "Attempts (HTTP requests) that were started.", print_started},
    {"stagger_retries_total", "counter",
     "Attempts that were started and were not the first of their delivery.",
     print_retries},
    {"stagger_attempts_total", "counter",
     "Attempts that have ended, by what they came to; OK is a success.",
     print_attempts},
    {"stagger_attempt_duration_seconds", "histogram",
     "How long attempts took, whatever they came to.", print_took},
    {"stagger_delivery_latency_seconds", "histogram",
     "From a message's acceptance to its delivery to the target.",
     print_latency},
    {"stagger_deliveries_total", "counter",
     "Deliveries that have ended: delivered, or durably dead.", print_ends},
    {"stagger_decisions_total", "counter",
     "What was decided about deliveries, and why.", print_decisions},
    {"stagger_dead_letters_total", "counter",
     "Deliveries that became dead letters, durably, by cause.", print_letters},
    {"stagger_replayed_total", "counter",
     "Deliveries that were dead and are sent again.", print_replayed},
    {"stagger_lane_deliveries", "gauge",
     "The books of a lane, as its store has them: routed is the sum of the "
     "others.",
     print_books},
    {"stagger_lane_replays", "gauge",
     "Rows of replays that wait, among the parked.", print_replays},
    {"stagger_lane_state", "gauge", "Lanes in a state.", print_state},
    {"stagger_lane_attempts_limit", "gauge",
     "Attempts at once that a lane may have now, as adapted.", print_limit},
    {"stagger_lane_catching_up", "gauge",
     "Lanes behind the window of recent messages.", print_catching_up},
    {"stagger_lag_messages", "gauge",
     "Messages of the log that a lane has not taken yet.", print_lag},
    {"stagger_lag_seconds", "gauge",
     "Age of the oldest message that a lane has not settled.", print_lag_time},
    {"stagger_breaker_open", "gauge", "Breakers that are open, or try a probe.",
     print_open},
    {"stagger_breaker_openings_total", "counter",
     "How often a breaker has opened.", print_openings},
    {"stagger_budget_left_retries", "gauge",
     "Retries that a target's budget can afford now.", print_budget_left},
    {"stagger_budget_refused_total", "counter",
     "Retries that a budget has refused or put off.", print_budget_refused},
    {"stagger_connections", "gauge", "Connections to a target.",
     print_connections},
    {"stagger_connects_total", "counter",
     "Connections to a target that were begun.", print_connects},
};

void stg_snapshot_print_targets(const stg_snapshot *p, stg_exposition *page)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        stg_page_family(page, families[i].name, families[i].type,
                        families[i].help);
        for (size_t row = 0; row < p->count; row++)
            families[i].print(page, &p->rows[row]);
    }
}
