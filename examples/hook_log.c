/* hook_log.c - what an operation does, as log lines and as metrics.
 *
 * A hook sees each attempt, each decision and the end, with the time and the
 * reason. It is called in the middle of the operation: be brief in it. */
#include <stdio.h>

#include <stagger/stagger.h>

typedef struct metrics {
    unsigned attempts, waits, successes, failures;
} metrics;

static void count(metrics *m, const stg_event *e)
{
    if (e->kind == STG_EVENT_ATTEMPT)
        m->attempts++;
    else if (e->kind == STG_EVENT_DECISION && e->decision.next == STG_WAIT)
        m->waits++;
    else if (e->kind == STG_EVENT_END && e->decision.next == STG_DONE)
        m->successes++;
    else if (e->kind == STG_EVENT_END)
        m->failures++;
}

static void log_wait(const stg_event *e)
{
    char cause[STG_CAUSE_MAX] = "-", wait[STG_NS_TEXT_MAX];

    if (e->outcome != NULL)
        stg_outcome_cause(e->outcome, cause);
    printf("attempt=%u cause=%s wait=\"%s\" why=%s\n", e->retry->attempts,
           cause, stg_ns_text(stg_ns_sub(e->decision.due_at, e->at), wait),
           stg_why_name(e->decision.why));
}

static void on_event(void *ctx, const stg_event *e)
{
    count(ctx, e);
    if (e->decision.next == STG_WAIT)
        log_wait(e);
    else if (e->kind == STG_EVENT_END)
        printf("attempt=%u %s: %s\n", e->retry->attempts,
               stg_why_name(e->decision.why),
               stg_why_sentence(e->decision.why));
}

/* Fails twice, in two ways. */
static stg_outcome work(void *ctx)
{
    unsigned *calls = ctx;

    switch (++*calls) {
    case 1:
        return stg_failed(STG_FAULT_REFUSED);
    case 2:
        return stg_failed_sqlstate("40001");
    default:
        return stg_ok();
    }
}

int main(void)
{
    metrics m = {0};
    stg_hook hook = {.on = on_event, .ctx = &m};
    unsigned calls = 0;
    stg_policy policy;

    if (stg_policy_parse(&policy, "interactive base=10ms", NULL) != STG_OK)
        return 2;
    stg_call(&policy, &(stg_with){.hook = &hook}, work, &calls, NULL);
    printf("attempts=%u waits=%u successes=%u failures=%u\n", m.attempts,
           m.waits, m.successes, m.failures);
    return m.attempts == 3 && m.waits == 2 && m.successes == 1 ? 0 : 1;
}
