/* Advice for the page: the rounds of `stagger sim advise`, whose trials run one
 * after the other here. It takes half a minute, in a call, so the
 * page is told how far it is. */
#include <stdlib.h>

#include <stagger/text.h>

#include "heap.h"
#include "sim/advise_rounds.h"
#include "sim/parallel.h"
#include "sim/wasm_internal.h"

/* The page's: the share that is done. */
__attribute__((import_module("page"), import_name("told"))) void
stg_wasm_told(double share);

/* -- runs ---------------------------------------------------------------------- */

/* Does the jobs one after the other: a page has one thread. */
void stg_parallel_run(size_t count, unsigned threads,
                      void (*job)(void *ctx, size_t number, unsigned worker),
                      void *ctx)
{
    (void)threads;
    for (size_t i = 0; i < count; i++)
        job(ctx, i, 0);
}

typedef struct progress {
    double total, done;
} progress;

static void tell(void *ctx, double work)
{
    progress *p = ctx;

    p->done += work;
    stg_wasm_told(p->done < p->total ? p->done / p->total : 1);
}

static void prepare(void *ctx, stg_trials *t)
{
    t->seed = 1;
    t->threads = 1;
    t->memory_max = UINT64_MAX;
    t->memory = stg_wasm_memory;
    t->on_run = tell;
    t->ctx = ctx;
}

/* -- the answer -------------------------------------------------------------- */

static void put_row(const stg_advised *each, stg_text_buffer *b)
{
    enum { DIGITS = 9 };
    const stg_advice_verdict *v = &each->verdict;
    const double numbers[] = {
        stg_verdict_worst(v, STG_SCENARIOS, STG_TRIGGER_OUTAGE),
        stg_verdict_worst(v, STG_SCENARIOS, STG_TRIGGER_STALL),
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
    stg_advice_report report = stg_advice_report_on(a, cases);
    char policy[STG_POLICY_TEXT_MAX];

    (void)stg_policy_print(&a->finalists[0].candidate.policy, policy);
    stg_text_buffer_form(b, "policy %s\n", policy);
    for (size_t i = 0; i < a->count; i++)
        put_row(&a->finalists[i], b);
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
    progress told = {0};
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
    a->prepare = prepare;
    a->ctx = &told;
    stg_text_buffer_clear(&w->buffer);
    if (stg_question_check(&a->question, &err) == STG_OK) {
        told.total = stg_advice_work(a);
        if (stg_advice_find(a, &err) == STG_OK)
            put_answer(a, &w->buffer);
    }
    stg_advice_end(a);
    free(a);
    if (err.text[0] != '\0' || w->buffer.text == NULL || w->buffer.is_short)
        return stg_wasm_refuse(w, &err);
    return w->buffer.text;
}
