#include "sim/delivery/internal.h"

#include "base/compiler.h"
#include "core/writer.h"

/* A world as text, a line for each attempt that ended and each notice:
 *
 *     1010 ms  0:7 #2 503  wait 1000 ms (backoff) */

enum { LINE_MAX = 240, TIME_LEAST = 1000000 };

static const char *const notices[] = {
    [STG_TELL_OPENED] = "opened",
    [STG_TELL_CLOSED] = "closed",
    [STG_TELL_SHEDDING] = "shedding",
    [STG_TELL_SHED] = "shed",
    [STG_TELL_PARKED_MAX] = "parked-max",
    [STG_TELL_CATCHING_UP] = "catching-up",
    [STG_TELL_STORE_FULL] = "store-full",
    [STG_TELL_UPLINK_DOWN] = "uplink down",
    [STG_TELL_UPLINK_UP] = "uplink up",
    [STG_TELL_PROXY_DOWN] = "proxy down",
    [STG_TELL_PROXY_UP] = "proxy up",
    [STG_TELL_STORE_SPACE_OK] = "store-space-ok",
    [STG_TELL_EXPIRING] = "expiring",
    [STG_TELL_PARKED_BELOW_MAX] = "parked-below-max",
    [STG_TELL_CAUGHT_UP] = "joined",
    [STG_TELL_LOST] = "lost",
};

/* Times are ms since the world began, right-aligned, cut and not rounded. */
static stg_writer begin(const stg_world *w, char *line, uint32_t lane)
{
    uint64_t ms = (w->now - w->origin_at) / STG_MS;
    stg_writer to = stg_writer_on(line, LINE_MAX);

    for (uint64_t least = TIME_LEAST; least > 1 && ms < least; least /= 10)
        stg_write_char(&to, ' ');
    stg_write_number(&to, ms);
    stg_write_text(&to, " ms  ");
    stg_write_number(&to, lane);
    stg_write_char(&to, ':');
    return to;
}

static void end(stg_world *w, const stg_writer *line)
{
    w->hooks.line(w->hooks.ctx, line->text);
}

void stg_world_trace_notice(stg_world *w, const stg_action *a)
{
    char text[LINE_MAX] STG_UNINITIALIZED;
    stg_writer line;

    if (w->hooks.line == NULL)
        return;
    line = begin(w, text, a->lane);
    stg_write_char(&line, ' ');
    stg_write_text(&line, notices[a->tell.what]);
    if (a->tell.what == STG_TELL_SHED) {
        stg_write_char(&line, ' ');
        stg_write_number(&line, a->tell.count);
    }
    end(w, &line);
}

void stg_world_trace_removed(stg_world *w, uint32_t lane)
{
    char text[LINE_MAX] STG_UNINITIALIZED;
    stg_writer line;

    if (w->hooks.line == NULL)
        return;
    line = begin(w, text, lane);
    stg_write_text(&line, " removed");
    end(w, &line);
}

/* Flow put the delivery back for a circuit or a gate. Such an attempt has no
 * number in the trace and counts for no bound. */
bool stg_world_is_put_back(const stg_verdict *v)
{
    return v->decision.next == STG_WAIT &&
           (v->decision.why == STG_WHY_CIRCUIT_OPEN ||
            v->decision.why == STG_WHY_GATE);
}

void stg_world_trace_end(stg_world *w, const stg_world_event *e,
                         const stg_verdict *v)
{
    const stg_outcome *outcome = &e->attempt.answer.outcome;
    char text[LINE_MAX] STG_UNINITIALIZED, name[STG_CAUSE_MAX];
    stg_writer line;

    if (w->hooks.line == NULL)
        return;
    line = begin(w, text, e->lane);
    stg_write_number(&line, e->attempt.position);
    if (!stg_world_is_put_back(v)) {
        stg_write_text(&line, " #");
        stg_write_number(&line, v->attempts);
    }
    stg_write_char(&line, ' ');
    stg_write_text(&line, outcome->fault == STG_FAULT_NONE
                              ? "200"
                              : stg_outcome_name(outcome, name));
    stg_write_text(&line, "  ");
    if (stg_world_is_put_back(v)) {
        stg_write_text(&line, "put back");
    } else if (v->decision.next == STG_WAIT) {
        stg_write_text(&line, "wait ");
        stg_write_number(&line, (v->decision.due_at - w->now) / STG_MS);
        stg_write_text(&line, " ms (");
        stg_write_text(&line, stg_why_name(v->decision.why));
        stg_write_char(&line, ')');
    } else {
        stg_write_text(&line, v->decision.next == STG_DONE
                                  ? "done"
                                  : stg_why_name(v->decision.why));
    }
    end(w, &line);
}
