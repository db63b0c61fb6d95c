#include "sim/advise.h"

#include <string.h>

#include "core/writer.h"

enum {
    OPERATIONS_MAX = 150000, // of a run: what takes a tenth of a second
    BEFORE = 10,             // seconds until the trouble begins
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
        return stg_refuse_percent(err, "load", (uint64_t)q->load * 100,
                                  "1% to 95%");
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

uint32_t stg_ordeal_load(const stg_question *q, stg_ordeal ordeal)
{
    uint32_t more = q->load + q->load / 6; // 70 % becomes 81 %

    if (ordeal < STG_ORDEAL_OUTAGE_MORE)
        return q->load;
    return more > 950 ? 950 : more;
}

static stg_ns end_of(const stg_question *q)
{
    stg_ns rest = stg_ns_max(30 * STG_S, 2 * q->patience);

    return (BEFORE * STG_S + q->outage + stg_ns_max(rest, q->outage)) / STG_S *
           STG_S;
}

uint32_t stg_question_scale(const stg_question *q)
{
    double operations = (double)q->capacity / 1000 * (q->load / 1000.0) *
                        ((double)end_of(q) / 1e9);
    double scale = operations / OPERATIONS_MAX;
    uint32_t most = q->processes;

    if (scale <= 1)
        return 1;
    // A tenth of the processes at least stays whole.
    if (scale > most)
        return most;
    return (uint32_t)scale + 1 > most ? most : (uint32_t)scale + 1;
}

/* How long a client waits for one attempt: a quarter of its patience, within
 * what a service that is well takes, and two seconds. */
static stg_ns timeout_of(const stg_question *q)
{
    stg_ns timeout = stg_ns_min(q->patience / 4, 2 * STG_S);

    timeout = stg_ns_max(timeout, 10 * q->service);
    return stg_ns_min(timeout, q->patience);
}

/* Few services bound their queue by what their clients wait for. So it has
 * places for twice that, which is where a storm may stay. */
static uint32_t usual_queue(const stg_question *q, uint64_t capacity)
{
    double places = 2 * (double)timeout_of(q) / 1e9 * (double)capacity / 1000;

    return places < 10 ? 10 : places > 1e7 ? 10000000 : (uint32_t)places;
}

stg_overload_options stg_ordeal_options(const stg_question *q,
                                        stg_ordeal ordeal)
{
    uint32_t scale = stg_question_scale(q);
    uint64_t capacity = q->capacity / scale;
    stg_overload_options o = stg_overload_default();
    double busy = (double)capacity / 1000 * ((double)q->service / 1e9);
    uint32_t workers = busy < 1 ? 1 : (uint32_t)(busy + 0.5);

    workers = workers > 100000 ? 100000 : workers;
    o.service.workers = workers;
    o.service.time.a = (stg_ns)(workers * 1e12 / (double)capacity + 0.5);
    o.service.queue_max =
        q->queue == UINT32_MAX ? usual_queue(q, capacity) : q->queue / scale;
    o.load.rate = capacity * stg_ordeal_load(q, ordeal) / 1000;
    o.processes = q->processes / scale > 0 ? q->processes / scale : 1;
    if (o.processes > 1000000)
        o.processes = 1000000;
    o.timeout = timeout_of(q);
    o.errors = 10000; // one in a hundred: what retries are for on a good day
    o.trigger.kind =
        ordeal == STG_ORDEAL_OUTAGE || ordeal == STG_ORDEAL_OUTAGE_MORE
            ? STG_TRIGGER_OUTAGE
            : STG_TRIGGER_STALL;
    o.trigger.from_at = BEFORE * STG_S;
    o.trigger.until_at = BEFORE * STG_S + q->outage;
    o.warmup = BEFORE / 2 * STG_S;
    o.end_at = end_of(q);
    o.bin = 0; // stg_overload_settle() has better ones
    return o;
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

stg_verdict stg_verdict_begin(void)
{
    stg_verdict v = {0};

    for (int i = 0; i < STG_ORDEAL_COUNT; i++)
        v.recovery_ms[i] = -1;
    return v;
}

static double mean_of(const stg_overload_summary *s, stg_figure figure)
{
    return stg_overload_summary_figure(s, figure, NULL).mean;
}

void stg_verdict_add(stg_verdict *v, const stg_question *q, stg_ordeal ordeal,
                     const stg_overload_summary *s)
{
    double runs = s->runs, before = v->runs, all = before + runs;
    uint64_t scaled = q->capacity / stg_question_scale(q);
    double capacity = (double)scaled / 1000;
    double peak = mean_of(s, STG_FIGURE_PEAK) / capacity;
    uint32_t has;
    stg_estimate after =
        stg_overload_summary_figure(s, STG_FIGURE_RECOVERY, &has);

    if (s->runs == 0)
        return;
    if (has > 0)
        v->recovery_ms[ordeal] = after.mean;
    v->lost =
        (v->lost * before + (1 - mean_of(s, STG_FIGURE_SUCCESS)) * runs) / all;
    v->load =
        (v->load * before + mean_of(s, STG_FIGURE_AMPLIFICATION) * runs) / all;
    v->peak = peak > v->peak ? peak : v->peak;
    v->runs += s->runs;
    v->failed += s->runs - s->recovered;
}

/* One request more for each operation weighs as much as one operation in a
 * hundred that is lost. */
static double score(const stg_verdict *v)
{
    return v->lost + (v->load > 1 ? 0.01 * (v->load - 1) : 0);
}

int stg_verdict_compare(const stg_verdict *a, const stg_verdict *b)
{
    // Shares, for one may have been tried more often.
    double failed = (double)a->failed * b->runs - (double)b->failed * a->runs;

    if (failed != 0)
        return failed < 0 ? -1 : 1;
    if (score(a) == score(b))
        return 0;
    return score(a) < score(b) ? -1 : 1;
}

double stg_question_hopeless(const stg_question *q)
{
    const stg_ns warmup = BEFORE / 2 * STG_S;
    double counted = (double)(end_of(q) - warmup);

    return (double)stg_ns_sub(q->outage, q->patience) / counted;
}
