#include "flow/note.h"

#include <string.h>

#include "flow/state.h"

enum { DETAIL_MAX = 300, ANSWER_MAX = 1024 };

stg_note *stg_note_hold(stg_note *note)
{
    if (note != NULL)
        note->refs++;
    return note;
}

void stg_note_drop(stg_flow *f, stg_note *note)
{
    if (note != NULL && --note->refs == 0)
        stg_flow_release(f, note);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool is_same(const stg_outcome *a, const stg_outcome *b)
{
    return a->fault == b->fault && a->code_kind == b->code_kind &&
           a->code == b->code;
}

/* Another fault since then is not what opened it. */
static bool is_news(const stg_lane *l, const stg_outcome *o)
{
    return l->note == NULL || l->note->opening != l->openings ||
           is_same(&l->note->failure.outcome, o);
}

static stg_note *make(stg_flow *f, const stg_end *end)
{
    size_t detail = end->detail == NULL ? 0 : strlen(end->detail);
    size_t answer = least(end->answer_size, ANSWER_MAX);
    stg_note *n;

    detail = least(detail, DETAIL_MAX);
    n = stg_flow_allocate(f, sizeof *n + detail + 1 + answer);
    if (n == NULL)
        return NULL;
    if (detail > 0)
        memcpy(n->texts, end->detail, detail);
    n->texts[detail] = '\0';
    if (answer > 0)
        memcpy(n->texts + detail + 1, end->answer, answer);
    *n = (stg_note){.refs = 1,
                    .failure = {.outcome = end->outcome,
                                .why = STG_WHY_CIRCUIT_OPEN,
                                .detail = n->texts,
                                .answer = n->texts + detail + 1,
                                .answer_size = answer}};
    return n;
}

void stg_note_failure(stg_flow *f, stg_lane *l, const stg_end *end,
                      stg_ns attempt_at)
{
    stg_note *n;

    if (!is_news(l, &end->outcome) || (n = make(f, end)) == NULL)
        return;
    n->opening = l->openings;
    n->failure.first_attempt_at = stg_flow_wall(f, l->opened_at);
    n->failure.last_attempt_at = stg_flow_wall(f, attempt_at);
    stg_note_drop(f, l->note);
    l->note = n;
}
