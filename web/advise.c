/* Advice for the page: the rounds of `stagger sim advise` (src/cli/sim), whose
 * trials run one after the other here. It takes half a minute, in a call, so the
 * page is told how far it is. */
#include <stdlib.h>
#include <string.h>

#include <stagger/text.h>

#include "cli/sim/advise.h"
#include "heap.h"
#include "sim/wasm_internal.h"

/* The page's: the share that is done. */
__attribute__((import_module("page"), import_name("told"))) void
stg_wasm_told(double share);

/* -- what the rounds ask of whoever runs trials ------------------------------ */

double stg_trial_work(const stg_overload_options *o)
{
    return (double)o->load.rate / 1000 * ((double)o->end_at / 1e9);
}

void stg_trials_prepare(stg_trials *t, const stg_sim_run *run)
{
    t->seed = run->seed;
    t->memory = stg_wasm_memory;
}

/* Of all trials a run with each seed, in the order of the seeds, as the command
 * adds them up. */
static stg_status run_all(stg_trials *t)
{
    for (uint32_t i = 0; i < t->reps; i++)
        for (size_t k = 0; k < t->count; k++) {
            stg_trial *trial = &t->all[k];
            stg_overload_result r;

            if (stg_overload_run(&trial->options, t->seed, i, NULL, &t->memory,
                                 &r) != STG_OK)
                return STG_IO;
            stg_overload_summary_add(&trial->summary, &r);
            stg_overload_free(&r, &t->memory);
            if (t->progress != NULL)
                stg_sim_progress_add(t->progress,
                                     stg_trial_work(&trial->options));
        }
    return STG_OK;
}

stg_status stg_trials_run(stg_trials *t, stg_error *err)
{
    stg_status status = STG_OK;

    for (size_t i = 0; i < t->count; i++)
        t->all[i].summary = (stg_overload_summary){0};
    for (size_t i = 0; i < t->count && status == STG_OK; i++)
        status = stg_overload_summary_init(
            &t->all[i].summary, &t->all[i].options, t->reps, &t->memory);
    if (status == STG_OK)
        status = run_all(t);
    if (status != STG_OK)
        (void)stg_refuse(err, "there is no memory for so many runs");
    return status;
}

void stg_trials_close(stg_trials *t)
{
    for (size_t i = 0; i < t->count; i++)
        stg_overload_summary_close(&t->all[i].summary);
}

void stg_sim_progress_begin(stg_sim_progress *p, double total)
{
    *p = (stg_sim_progress){.total = total};
}

void stg_sim_progress_add(stg_sim_progress *p, double work)
{
    p->done += work;
    stg_wasm_told(p->done < p->total ? p->done / p->total : 1);
}

void stg_sim_progress_end(stg_sim_progress *p)
{
    (void)p;
}

/* -- the answer -------------------------------------------------------------- */

/* The longest mean recovery from trouble of a kind, ms; -1: not always. */
static double worst_of(const stg_advice_verdict *v, stg_trigger_kind kind)
{
    double most = 0;

    for (size_t i = 0; i < STG_SCENARIOS; i++) {
        if (stg_scenario_at(i).kind != kind)
            continue;
        if (v->failed_in[i] > 0 || v->recovery_ms[i] < 0)
            return -1;
        most = v->recovery_ms[i] > most ? v->recovery_ms[i] : most;
    }
    return most;
}

static void put_row(const stg_advised *each, stg_text_buffer *b)
{
    enum { DIGITS = 9 };
    const stg_advice_verdict *v = &each->verdict;
    const double numbers[] = {worst_of(v, STG_TRIGGER_OUTAGE),
                              worst_of(v, STG_TRIGGER_STALL),
                              100 * v->lost,
                              v->load,
                              v->peak,
                              v->p99_runs > 0 ? v->p99_ms : -1,
                              v->runs,
                              v->failed};

    stg_text_buffer_form(b, "row %s", each->name);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        stg_text_buffer_put_char(b, '\t');
        stg_text_buffer_put_number(b, numbers[i], DIGITS);
    }
    stg_text_buffer_put_char(b, '\n');
}

static void put_answer(const stg_advice *a, stg_text_buffer *b)
{
    stg_advice_case cases[STG_ADVISED_MAX];
    char policy[STG_POLICY_TEXT_MAX];
    stg_advice_report report = {.question = &a->question,
                                .cases = cases,
                                .count = a->count,
                                .tried = a->tried};

    memcpy(report.cliffs, a->cliffs, sizeof report.cliffs);
    (void)stg_policy_print(&a->finalists[0].candidate.policy, policy);
    stg_text_buffer_form(b, "policy %s\n", policy);
    for (size_t i = 0; i < a->count; i++) {
        const stg_advised *each = &a->finalists[i];

        put_row(each, b);
        cases[i] = (stg_advice_case){
            .name = each->name,
            .retries = each->candidate.policy.attempts_max > 1,
            .is_plain = each->is_plain,
            .verdict = &each->verdict,
            .gain = stg_advised_gain(&a->finalists[0], each)};
    }
    stg_text_buffer_put(b, "said\n");
    stg_advice_say(&report, b);
}

/* Lines: policy TEXT; row NAME and numbers, with tabs between them (recovery after
 * outage and stall, ms; lost, %; requests each; peak over capacity; p99, ms; runs;
 * runs that did not recover; -1: none); said, and then sentences, a line each.
 * Times are ns, capacity and load thousandths. Or an error. */
const char *stg_wasm_advise(stg_wasm *w, uint32_t clients, uint32_t processes,
                            uint64_t capacity, uint32_t load, uint64_t outage,
                            uint64_t patience, uint64_t service, uint32_t reps)
{
    stg_advice *a = calloc(1, sizeof *a);
    stg_error err = {0};

    if (a == NULL)
        return "error there is no memory for so many policies";
    a->question = (stg_question){.clients = clients,
                                 .processes = processes,
                                 .capacity = capacity,
                                 .load = load,
                                 .outage = (stg_ns)outage,
                                 .patience = (stg_ns)patience,
                                 .service = (stg_ns)service,
                                 .queue = UINT32_MAX};
    a->reps = reps;
    a->run = (stg_sim_run){.seed = 1, .threads = 1};
    stg_text_buffer_clear(&w->buffer);
    if (stg_question_check(&a->question, &err) == STG_OK &&
        stg_advice_find(a, &err) == STG_OK)
        put_answer(a, &w->buffer);
    stg_advice_end(a);
    free(a);
    if (err.text[0] != '\0' || w->buffer.text == NULL || w->buffer.is_short)
        return stg_wasm_refuse(w, &err);
    return w->buffer.text;
}
