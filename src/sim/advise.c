#include "sim/advise.h"

#include <string.h>

#include "core/writer.h"

/* From a question to a model, to candidates, to a verdict. The model is the
 * user's service made smaller by stg_question_scale(): rate, capacity,
 * processes and an explicit queue shrink together, times do not, so that a run
 * stays near OPERATIONS_MAX operations. A budget's rate and capacity are scaled
 * too, as one process of the model may stand for several.
 *
 * A candidate is in the user's numbers, which are what is pasted. The model
 * runs what stg_question_policy() makes of it. */

enum {
    OPERATIONS_MAX = 40000, // of a run: what takes some ten milliseconds
    BEFORE = 10,            // seconds until the trouble begins, at least
    ENOUGH = 800,           // operations, to know the goodput by
};

/* -- the question ---------------------------------------------------------- */

stg_question stg_question_default(void)
{
    return (stg_question){
        .clients = 5000,
        .processes = 5000,
        .capacity = 800 * 1000,
        .load = 700,
        .outage = 30 * STG_S,
        .patience = 10 * STG_S,
        .service = 20 * STG_MS,
        .queue = UINT32_MAX,
    };
}

stg_status stg_question_check(const stg_question *q, stg_error *err)
{
    if (q->clients < 1 || q->clients > 10000000)
        return stg_refuse_number(err, "clients", q->clients, "1 to 10000000");
    if (q->processes < 1 || q->processes > q->clients)
        return stg_refuse_number(err, "processes", q->processes,
                                 "1 to as many as there are clients");
    if (q->capacity < 1000 || q->capacity > 4000000000)
        return stg_refuse_thousandths(err, "capacity", q->capacity,
                                      "1 to 4000000 requests a second");
    if (q->load < 10 || q->load > 950)
        return stg_refuse_percent(err, "load", q->load / 10, "1% to 95%");
    if (q->outage < 100 * STG_MS || q->outage > STG_HOUR)
        return stg_refuse_duration(err, "outage", q->outage, "100ms to 1h");
    if (q->patience < 10 * STG_MS || q->patience > STG_HOUR)
        return stg_refuse_duration(err, "patience", q->patience, "10ms to 1h");
    if (q->service < STG_US || q->service > STG_MIN ||
        q->service >= q->patience)
        return stg_refuse_duration(err, "service", q->service,
                                   "1us to 1m, and less than the patience");
    return STG_OK;
}

uint32_t stg_scenario_load(const stg_question *q, stg_scenario scenario)
{
    uint32_t more = q->load + q->load / 6; // 70 % becomes 81 %

    if (scenario < STG_SCENARIO_OUTAGE_MORE)
        return q->load;
    return more > 950 ? 950 : more;
}

/* How long the model goes on after the trouble. */
static stg_ns rest_of(const stg_question *q)
{
    return stg_ns_max(stg_ns_max(30 * STG_S, 2 * q->patience), q->outage);
}

/* Of operations a second, when all is well. */
static double rate_requested(const stg_question *q)
{
    return (double)q->capacity / 1000 * (q->load / 1000.0);
}

uint32_t stg_question_scale(const stg_question *q)
{
    double seconds = (double)(BEFORE * STG_S + q->outage + rest_of(q)) / 1e9;
    double scale = rate_requested(q) * seconds / OPERATIONS_MAX;
    double most = (double)q->capacity / 1000; // one request a second is left

    scale = scale > most ? most : scale;
    return scale <= 1 ? 1 : (uint32_t)scale + 1;
}

/* How long enough operations take to begin, in whole seconds. */
static stg_ns enough_of(const stg_question *q)
{
    double seconds = ENOUGH / (rate_requested(q) / stg_question_scale(q));

    return ((stg_ns)seconds + 1) * STG_S;
}

/* The first half of it is the warm-up. */
static stg_ns before_of(const stg_question *q)
{
    return stg_ns_max(BEFORE * STG_S, 2 * enough_of(q));
}

static stg_ns end_of(const stg_question *q)
{
    stg_ns rest = stg_ns_max(rest_of(q), enough_of(q));

    return (before_of(q) + q->outage + rest) / STG_S * STG_S;
}

stg_ns stg_question_run(const stg_question *q)
{
    return end_of(q) - before_of(q) / 2;
}

/* Of the model, in thousandths of a request a second. */
static uint64_t capacity_of(const stg_question *q)
{
    uint64_t capacity = q->capacity / stg_question_scale(q);

    return capacity < 1 ? 1 : capacity;
}

/* By Little's law: as many as are busy at full capacity. */
static uint32_t workers_of(const stg_question *q)
{
    double busy = (double)capacity_of(q) / 1000 * ((double)q->service / 1e9);

    return busy < 1 ? 1 : busy > 100000 ? 100000 : (uint32_t)(busy + 0.5);
}

/* What a request takes, so that all workers together have the capacity. */
static stg_ns service_of(const stg_question *q)
{
    return (stg_ns)(workers_of(q) * 1e12 / (double)capacity_of(q) + 0.5);
}

/* How long a client waits for one attempt: a quarter of its patience, within
 * what a service that is well takes, and two seconds. */
static stg_ns timeout_of(const stg_question *q)
{
    stg_ns timeout = stg_ns_min(q->patience / 4, 2 * STG_S);

    timeout = stg_ns_max(timeout, 10 * stg_ns_max(q->service, service_of(q)));
    return stg_ns_min(timeout, q->patience);
}

static uint32_t processes_of(const stg_question *q)
{
    uint32_t processes = q->processes / stg_question_scale(q);

    return processes < 1 ? 1 : processes > 1000000 ? 1000000 : processes;
}

/* The queue where the question names none. Few services bound their queue by
 * what their clients wait for. So it has places for twice that, which is where
 * a storm may stay. */
static uint32_t usual_queue(const stg_question *q, uint64_t capacity)
{
    double places = 2 * (double)timeout_of(q) / 1e9 * (double)capacity / 1000;

    return places < 10 ? 10 : places > 1e7 ? 10000000 : (uint32_t)places;
}

/* One that is there does not vanish. */
static uint32_t queue_of(const stg_question *q)
{
    uint32_t scale = stg_question_scale(q);

    if (q->queue == UINT32_MAX)
        return usual_queue(q, capacity_of(q));
    return q->queue / scale + (q->queue % scale > 0);
}

stg_overload_options stg_scenario_options(const stg_question *q,
                                          stg_scenario scenario)
{
    stg_overload_options o = stg_overload_default();

    o.service.workers = workers_of(q);
    o.service.time.a = service_of(q);
    o.service.queue_max = queue_of(q);
    o.load.rate = capacity_of(q) * stg_scenario_load(q, scenario) / 1000;
    o.load.rate = o.load.rate < 1 ? 1 : o.load.rate;
    o.processes = processes_of(q);
    o.timeout = timeout_of(q);
    o.errors = 10000; // one in a hundred: what retries are for on a good day
    o.trigger.kind =
        scenario == STG_SCENARIO_OUTAGE || scenario == STG_SCENARIO_OUTAGE_MORE
            ? STG_TRIGGER_OUTAGE
            : STG_TRIGGER_STALL;
    o.trigger.from_at = before_of(q);
    o.trigger.until_at = before_of(q) + q->outage;
    o.warmup = before_of(q) / 2;
    o.end_at = end_of(q);
    o.bin = 0; // stg_overload_settle() has better ones
    return o;
}

/* As many a second or in a bucket, of a process of the model. */
static uint32_t scaled(const stg_question *q, uint32_t number)
{
    double share = (double)q->processes /
                   ((double)stg_question_scale(q) * processes_of(q));
    double most = 1e9, n = number * share + 0.5;

    return number == 0 ? 0
           : n < 1     ? 1
           : n > most  ? (uint32_t)most
                       : (uint32_t)n;
}

stg_policy stg_question_policy(const stg_question *q, const stg_policy *policy)
{
    stg_policy p = *policy;
    uint32_t most = 1000000;

    p.budget.rate = scaled(q, p.budget.rate);
    p.budget.capacity = scaled(q, p.budget.capacity);
    p.budget.capacity = p.budget.capacity > most ? most : p.budget.capacity;
    return p;
}

/* -- candidates ------------------------------------------------------------ */

enum { BASES = 3, ATTEMPTS = 2, BUDGETS = 5, BREAKERS = 2, PLAIN = 2 };

/* 1, 2 or 5 and zeros, at most ns; in whole ms where it can be. */
static stg_ns round_down(stg_ns ns)
{
    stg_ns unit = 1, least = 100 * STG_US;

    while (unit <= ns / 10)
        unit *= 10;
    if (ns < least)
        return least;
    return ns >= 5 * unit ? 5 * unit : ns >= 2 * unit ? 2 * unit : unit;
}

/* Thousandths of a retry a second for each process, if all of them together
 * may ask for a share of the capacity, in thousandths: 1 at least. */
static uint32_t rate_of(const stg_question *q, uint32_t share)
{
    double rate = (double)q->capacity * (share / 1000.0) / (double)q->processes;

    if (rate < 1)
        return 1;
    return rate > 1e9 ? 1000000000 : (uint32_t)rate;
}

/* A bucket holds what comes in ten seconds, and one at least. */
static void set_tokens(stg_policy *p, const stg_question *q, uint32_t share)
{
    uint32_t rate = rate_of(q, share), capacity = rate / 100;

    p->budget =
        (stg_budget_options){.kind = STG_BUDGET_TOKENS,
                             .capacity = capacity < 1         ? 1
                                         : capacity > 1000000 ? 1000000
                                                              : capacity,
                             .rate = rate};
}

static void set_budget(stg_policy *p, const stg_question *q, size_t number)
{
    switch (number) {
    case 0:
        p->budget = (stg_budget_options){.kind = STG_BUDGET_NONE};
        break;
    case 1:
        p->budget =
            (stg_budget_options){.kind = STG_BUDGET_RATIO, .ratio = 100};
        break;
    case 2: // with a floor, for processes that make few calls
        p->budget = (stg_budget_options){
            .kind = STG_BUDGET_RATIO, .ratio = 100, .rate = rate_of(q, 50)};
        break;
    case 3:
        set_tokens(p, q, 50);
        break;
    default:
        set_tokens(p, q, 150);
        break;
    }
}

static stg_policy common_policy(const stg_question *q)
{
    stg_policy p = stg_policy_default();

    p.deadline = q->patience;
    p.attempt_timeout = timeout_of(q);
    return p;
}

/* "base=200ms attempts=8 ratio:0.1, breaker": what differs. */
static void put_name(stg_candidate *c)
{
    const stg_policy *p = &c->policy;
    stg_writer w = stg_writer_on(c->name, sizeof c->name);

    stg_write_text(&w, "base=");
    stg_write_duration(&w, p->backoff.base);
    stg_write_text(&w, " attempts=");
    stg_write_number(&w, p->attempts_max);
    if (p->budget.kind == STG_BUDGET_RATIO) {
        stg_write_text(&w, " ratio:");
        stg_write_thousandths(&w, p->budget.ratio);
    } else if (p->budget.kind == STG_BUDGET_TOKENS) {
        stg_write_text(&w, " tokens:");
        stg_write_number(&w, p->budget.capacity);
    } else {
        stg_write_text(&w, " no budget");
    }
    if (p->budget.rate > 0) {
        stg_write_text(&w, p->budget.kind == STG_BUDGET_TOKENS ? ":" : "+");
        stg_write_thousandths(&w, p->budget.rate);
        stg_write_text(&w, "/s");
    }
    if (p->breaker.rule != STG_BREAKER_NONE)
        stg_write_text(&w, " breaker");
}

/* The cap is at most half of the patience: one wait leaves time for another
 * attempt. */
static void set_backoff(stg_policy *p, const stg_question *q, size_t number)
{
    static const uint32_t parts[BASES] = {100, 30, 8}; // of the patience

    p->backoff.base = round_down(q->patience / parts[number]);
    p->backoff.cap = stg_ns_max(p->backoff.base, round_down(q->patience / 2));
}

static void set_breaker(stg_policy *p, const stg_question *q)
{
    stg_ns open = stg_ns_max(round_down(q->patience / 50), STG_MS);

    p->breaker = (stg_breaker_options){
        .rule = STG_BREAKER_ROW,
        .failures = 5,
        .open = open,
        .open_max = stg_ns_max(open, round_down(q->patience / 10))};
}

/* Numbers 0 and 1 are for comparison: no retries, and retries without a budget.
 * The rest is one number in mixed radix, the base its lowest digit, then
 * attempts, budget and breaker. Budget and breaker together are the family.
 * Returns false for the first number that is too large. */
bool stg_candidate_make(const stg_question *q, size_t i, stg_candidate *c)
{
    stg_policy p = common_policy(q);

    memset(c, 0, sizeof *c);
    if (i == 0) {
        p.attempts_max = 1;
    } else if (i == 1) {
        set_backoff(&p, q, 1);
        p.attempts_max = 8;
    } else {
        size_t n = i - PLAIN;

        set_backoff(&p, q, n % BASES);
        n /= BASES;
        p.attempts_max = n % ATTEMPTS == 0 ? 3 : 8;
        n /= ATTEMPTS;
        c->family = 1 + (uint32_t)n;
        set_budget(&p, q, n % BUDGETS);
        n /= BUDGETS;
        if (n % BREAKERS == 1)
            set_breaker(&p, q);
        if (n >= BREAKERS)
            return false;
    }
    c->policy = p;
    put_name(c);
    if (i < PLAIN)
        memcpy(c->name, i == 0 ? "no retries" : "no budget",
               i == 0 ? sizeof "no retries" : sizeof "no budget");
    return true;
}

/* -- verdicts -------------------------------------------------------------- */

stg_advice_verdict stg_verdict_begin(void)
{
    stg_advice_verdict v = {0};

    for (int i = 0; i < STG_SCENARIO_COUNT; i++)
        v.recovery_ms[i] = -1;
    return v;
}

static double mean_of(const stg_overload_summary *s, stg_figure figure)
{
    return stg_overload_summary_figure(s, figure, NULL).mean;
}

/* A run has failed if it did not recover, or was not well before the trouble.
 * It is known how many were each, not which: the smaller count is taken for
 * those that were both. */
void stg_verdict_add(stg_advice_verdict *v, const stg_question *q,
                     stg_scenario scenario, const stg_overload_summary *s)
{
    double runs = s->runs, before = v->runs, all = before + runs;
    double capacity = (double)capacity_of(q) / 1000;
    double peak = mean_of(s, STG_FIGURE_PEAK) / capacity;
    uint32_t has;
    stg_estimate after =
        stg_overload_summary_figure(s, STG_FIGURE_RECOVERY, &has);

    if (s->runs == 0)
        return;
    if (has > 0)
        v->recovery_ms[scenario] = after.mean;
    v->lost =
        (v->lost * before + (1 - mean_of(s, STG_FIGURE_SUCCESS)) * runs) / all;
    v->load =
        (v->load * before + mean_of(s, STG_FIGURE_AMPLIFICATION) * runs) / all;
    v->peak = peak > v->peak ? peak : v->peak;
    v->runs += s->runs;
    v->unwell += s->runs - s->healthy;
    v->failed +=
        s->runs - (s->recovered < s->healthy ? s->recovered : s->healthy);
}

/* One request more for each operation weighs as much as one operation in a
 * hundred that is lost. */
static double score(const stg_advice_verdict *v)
{
    return v->lost + (v->load > 1 ? 0.01 * (v->load - 1) : 0);
}

/* Recovery comes first, whatever it costs. */
int stg_verdict_compare(const stg_advice_verdict *a,
                        const stg_advice_verdict *b)
{
    // Shares, for one may have been tried more often.
    double failed = (double)a->failed * b->runs - (double)b->failed * a->runs;

    if (failed != 0)
        return failed < 0 ? -1 : 1;
    if (score(a) == score(b))
        return 0;
    return score(a) < score(b) ? -1 : 1;
}

/* The mean difference of success in a scenario, run by run: a run has the same
 * seed with both policies, so most of the noise cancels. Both summaries must
 * have the same number of runs, in the same order. */
static stg_estimate gain_in(const stg_overload_summary *with,
                            const stg_overload_summary *without)
{
    const double *a =
        with->values + (size_t)STG_FIGURE_SUCCESS * with->runs_max;
    const double *b =
        without->values + (size_t)STG_FIGURE_SUCCESS * without->runs_max;
    double n = with->runs, sum = 0, spread = 0;
    stg_estimate e = {0};

    for (uint32_t i = 0; i < with->runs; i++)
        sum += a[i] - b[i];
    e.mean = sum / n;
    for (uint32_t i = 0; i < with->runs; i++)
        spread += (a[i] - b[i] - e.mean) * (a[i] - b[i] - e.mean);
    if (with->runs > 1)
        e.se = stg_estimate_root(spread / (n - 1) / n);
    return e;
}

/* Scenarios weigh the same. They are independent, so their variances add up. */
stg_estimate stg_verdict_gain(const stg_overload_summary *const *with,
                              const stg_overload_summary *const *without,
                              size_t scenarios)
{
    double means[STG_SCENARIO_COUNT], squares = 0;
    stg_estimate all;

    for (size_t k = 0; k < scenarios; k++) {
        stg_estimate e = gain_in(with[k], without[k]);

        means[k] = e.mean;
        squares += e.se * e.se;
    }
    all = stg_estimate_make(means, scenarios);
    if (with[0]->runs > 1)
        all.se = stg_estimate_root(squares) / (double)scenarios;
    return all;
}

bool stg_verdict_is_gain(stg_estimate gain)
{
    return gain.mean > 2 * gain.se;
}

double stg_question_hopeless(const stg_question *q)
{
    return (double)stg_ns_sub(q->outage, q->patience) /
           (double)stg_question_run(q);
}

bool stg_verdict_equal(const stg_advice_verdict *a, const stg_advice_verdict *b)
{
    for (int i = 0; i < STG_SCENARIO_COUNT; i++)
        if (a->recovery_ms[i] != b->recovery_ms[i])
            return false;
    return a->runs == b->runs && a->failed == b->failed && a->lost == b->lost &&
           a->load == b->load && a->peak == b->peak;
}
