/* Reports in words: the reason of each decision, by name for programs and in a sentence
 * for people, and a line about a whole operation. */
#include <stagger/report.h>

#include "core/writer.h"

static const struct {
    const char *name;
    const char *sentence;
} whys[] = {
    [STG_WHY_DONE] = {"done", "it succeeded"},
    [STG_WHY_CANCELLED] = {"cancelled", "it was cancelled"},
    [STG_WHY_CIRCUIT_OPEN] = {"circuit-open", "the breaker is open"},
    [STG_WHY_PERMANENT] = {"permanent", "such a fault is not retried"},
    [STG_WHY_NOT_IDEMPOTENT] = {"not-idempotent",
                                "it may have been carried out, and has no "
                                "idempotency key"},
    [STG_WHY_NESTED] = {"nested", "the operation around it repeats it"},
    [STG_WHY_FAULT_LIMIT] = {"fault-limit",
                             "such a fault was retried often enough"},
    [STG_WHY_ATTEMPTS] = {"attempts", "all attempts are made"},
    [STG_WHY_DEADLINE] = {"deadline", "the next attempt would come too late"},
    [STG_WHY_BUDGET] = {"budget", "the retry budget is empty"},
    [STG_WHY_THROTTLE] = {"throttle",
                          "the client holds itself back, for its remote "
                          "refuses too much"},
    [STG_WHY_BULKHEAD] = {"bulkhead",
                          "as many attempts as may be are under way"},
    [STG_WHY_INVALID] = {"invalid", "the call cannot be carried out"},
    [STG_WHY_BACKOFF] = {"backoff", "as the policy waits"},
    [STG_WHY_SERVER_DELAY] = {"server-delay", "as the server asked"},
    [STG_WHY_GATE] = {"gate", "for the rate limit"},
};

const char *stg_why_name(stg_why why)
{
    return (unsigned)why < STG_WHY_COUNT ? whys[why].name : "unknown";
}

const char *stg_why_sentence(stg_why why)
{
    return (unsigned)why < STG_WHY_COUNT ? whys[why].sentence
                                         : "for an unknown reason";
}

static void write_attempts(stg_writer *w, const stg_report *r)
{
    stg_write_number(w, r->attempts);
    stg_write_text(w, r->attempts == 1 ? " attempt" : " attempts");
    if (r->hedges == 0)
        return;
    stg_write_text(w, " and ");
    stg_write_number(w, r->hedges);
    stg_write_text(w, r->hedges == 1 ? " hedge" : " hedges");
}

/* The last outcome, or where there was none the reason in words; and the
 * reason's name either way, to search for. */
static void write_reason(stg_writer *w, const stg_report *r)
{
    char name[STG_CAUSE_MAX];

    if (r->last.fault != STG_FAULT_NONE)
        stg_write_text(w, stg_outcome_name(&r->last, name));
    else
        stg_write_text(w, stg_why_sentence(r->why));
    stg_write_text(w, " (");
    stg_write_text(w, stg_why_name(r->why));
    stg_write_char(w, ')');
}

static void write_fallback(stg_writer *w, const stg_report *r)
{
    if (r->fell_back)
        stg_write_text(w, "; the fallback answered");
}

static void write_flaw(stg_writer *w, const stg_report *r)
{
    if (r->attempts == 0) {
        stg_write_text(w, "refused before the first attempt: ");
    } else {
        stg_write_text(w, "gave up after ");
        write_attempts(w, r);
        stg_write_text(w, ": ");
    }
    stg_write_text(w, r->flaw != NULL ? r->flaw : "the call is wrong");
    stg_write_text(w, " (invalid)");
}

/* A call that was wrong, one that was refused before its first attempt, and
 * all others have sentences of their own. */
const char *stg_report_text(const stg_report *r, char text[STG_REPORT_TEXT_MAX])
{
    stg_writer w = stg_writer_on(text, STG_REPORT_TEXT_MAX);
    char took[STG_NS_TEXT_MAX];

    if (r == NULL)
        return text;
    if (r->next == STG_GIVE_UP && r->why == STG_WHY_INVALID) {
        write_flaw(&w, r);
        return text;
    }
    if (r->next == STG_GIVE_UP && r->attempts == 0) {
        stg_write_text(&w, "gave up before the first attempt: ");
        write_reason(&w, r);
        write_fallback(&w, r);
        return text;
    }
    stg_write_text(&w, r->next == STG_DONE      ? "done after "
                       : r->next == STG_GIVE_UP ? "gave up after "
                                                : "not ended after ");
    write_attempts(&w, r);
    if (r->took > 0) {
        stg_write_text(&w, " in ");
        stg_write_text(&w, stg_ns_text(r->took, took));
    }
    if (r->next == STG_GIVE_UP) {
        stg_write_text(&w, ": ");
        write_reason(&w, r);
        write_fallback(&w, r);
    }
    return text;
}
