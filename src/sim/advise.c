/* From a question to a model. The model is the user's service made smaller by
 * stg_question_scale(): rate, capacity, processes and an explicit queue shrink
 * together, times do not, so that the longest run stays near OPERATIONS_MAX
 * operations. A budget's rate and capacity are scaled too, as one process of the
 * model may stand for several.
 *
 * A candidate is in the user's numbers, which are what is pasted. The model
 * runs what stg_question_policy() makes of it. */
#include "sim/advise.h"

#include "core/writer.h"

enum {
    OPERATIONS_MAX = 20000,  // of the longest run: some ten milliseconds
    OPERATIONS_MOST = 80000, // where the service would be slow with fewer
    BEFORE = 10,             // seconds until the trouble begins, at least
    ENOUGH = 800,            // operations, to know the goodput by
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

/* -- scenarios ------------------------------------------------------------- */

/* Those of the first rounds stand first. More load is what breaks recovery, and
 * so is a longer outage; less of both is there for breakers, which see fewer
 * calls then. */
static const stg_scenario scenarios[STG_SCENARIOS] = {
    {STG_TRIGGER_OUTAGE, 1000, 1000}, {STG_TRIGGER_STALL, 1000, 1000},
    {STG_TRIGGER_STALL, 4000, 1200},  {STG_TRIGGER_OUTAGE, 4000, 1200},
    {STG_TRIGGER_OUTAGE, 500, 1000},  {STG_TRIGGER_STALL, 500, 1000},
    {STG_TRIGGER_OUTAGE, 2000, 1000}, {STG_TRIGGER_STALL, 2000, 1000},
    {STG_TRIGGER_OUTAGE, 4000, 1000}, {STG_TRIGGER_STALL, 4000, 1000},
    {STG_TRIGGER_OUTAGE, 1000, 1200}, {STG_TRIGGER_STALL, 1000, 1200},
    {STG_TRIGGER_OUTAGE, 1000, 800},  {STG_TRIGGER_STALL, 1000, 800},
};

stg_scenario stg_scenario_at(size_t i)
{
    return scenarios[i];
}

uint32_t stg_scenario_load(const stg_question *q, stg_scenario s)
{
    uint64_t load = (uint64_t)q->load * s.load / 1000;

    return load > 950 ? 950 : load < 1 ? 1 : (uint32_t)load;
}

stg_ns stg_scenario_outage(const stg_question *q, stg_scenario s)
{
    return q->outage / 1000 * s.outage;
}

/* -- the model ------------------------------------------------------------- */

/* How long a client waits for one attempt of a request that takes `service`: a
 * quarter of its patience, within what a service that is well takes, and two
 * seconds. */
static stg_ns timeout_for(const stg_question *q, stg_ns service)
{
    stg_ns timeout = stg_ns_min(q->patience / 4, 2 * STG_S);

    return stg_ns_min(stg_ns_max(timeout, 10 * service), q->patience);
}

double stg_question_rate(const stg_question *q)
{
    return (double)q->capacity / 1000 * (q->load / 1000.0);
}

/* The most of all scenarios, in thousandths of the capacity. */
static uint32_t most_load(const stg_question *q)
{
    uint32_t most = 0;

    for (size_t i = 0; i < STG_SCENARIOS; i++) {
        uint32_t load = stg_scenario_load(q, scenarios[i]);

        most = load > most ? load : most;
    }
    return most;
}

/* How long a full queue takes to drain beside the load, which is what a service
 * that is well needs after a stall. */
static stg_ns drain_of(const stg_question *q)
{
    double seconds = q->queue == UINT32_MAX
                         ? 2 * (double)timeout_for(q, q->service) / 1e9
                         : q->queue * 1000.0 / (double)q->capacity;

    seconds = seconds * 1000 / (1000 - most_load(q));
    return (stg_ns)((seconds < 600 ? seconds : 600) * 1e9);
}

/* How long the model goes on after the trouble, in the same way whatever the
 * outage is. */
static stg_ns rest_of(const stg_question *q)
{
    return stg_ns_max(stg_ns_max(30 * STG_S, 2 * q->patience), 2 * drain_of(q));
}

/* Of the scenario with most operations: four times the outage. A service of few
 * requests a second has one worker, which takes long for each; so the model is no
 * smaller than one in which fifty of them fit into the patience, unless it
 * would have too many operations, and never smaller than one a second. */
uint32_t stg_question_scale(const stg_question *q)
{
    double seconds =
        (double)(BEFORE * STG_S + 4 * q->outage + rest_of(q)) / 1e9;
    double operations = stg_question_rate(q) * seconds;
    double scale = operations / OPERATIONS_MAX;
    double most = (double)q->capacity / 1000;
    double quick = most * ((double)q->patience / 1e9) / 50;

    scale = scale > quick ? quick : scale;
    if (scale < operations / OPERATIONS_MOST)
        scale = operations / OPERATIONS_MOST;
    scale = scale > most ? most : scale;
    return scale <= 1 ? 1 : (uint32_t)scale + 1;
}

/* How long enough operations take to begin, in whole seconds. */
static stg_ns enough_of(const stg_question *q)
{
    double seconds = ENOUGH / (stg_question_rate(q) / stg_question_scale(q));

    return ((stg_ns)seconds + 1) * STG_S;
}

/* The first half of it is the warm-up. */
static stg_ns before_of(const stg_question *q)
{
    return stg_ns_max(BEFORE * STG_S, 2 * enough_of(q));
}

static stg_ns end_of(const stg_question *q, stg_scenario s)
{
    stg_ns rest = stg_ns_max(rest_of(q), enough_of(q));

    return (before_of(q) + stg_scenario_outage(q, s) + rest + STG_S - 1) /
           STG_S * STG_S;
}

stg_ns stg_scenario_run(const stg_question *q, stg_scenario s)
{
    return end_of(q, s) - before_of(q) / 2;
}

double stg_scenario_hopeless(const stg_question *q, stg_scenario s)
{
    return (double)stg_ns_sub(stg_scenario_outage(q, s), q->patience) /
           (double)stg_scenario_run(q, s);
}

double stg_question_hopeless(const stg_question *q)
{
    double sum = 0;

    for (size_t i = 0; i < STG_SCENARIOS; i++)
        sum += stg_scenario_hopeless(q, scenarios[i]);
    return sum / STG_SCENARIOS;
}

/* Returns the capacity of the model, in thousandths of a request a second. */
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

stg_ns stg_question_timeout(const stg_question *q)
{
    return timeout_for(q, stg_ns_max(q->service, service_of(q)));
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
    double places =
        2 * (double)stg_question_timeout(q) / 1e9 * (double)capacity / 1000;

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

stg_overload_options stg_scenario_options(const stg_question *q, stg_scenario s)
{
    stg_overload_options o = stg_overload_default();

    o.service.workers = workers_of(q);
    o.service.time.a = service_of(q);
    o.service.queue_max = queue_of(q);
    o.load.rate = capacity_of(q) * stg_scenario_load(q, s) / 1000;
    o.load.rate = o.load.rate < 1 ? 1 : o.load.rate;
    o.processes = processes_of(q);
    o.timeout = stg_question_timeout(q);
    o.errors = STG_QUESTION_ERRORS; // what retries are for on a good day
    o.trigger.kind = s.kind;
    o.trigger.from_at = before_of(q);
    o.trigger.until_at = before_of(q) + stg_scenario_outage(q, s);
    o.warmup = before_of(q) / 2;
    o.end_at = end_of(q, s);
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
