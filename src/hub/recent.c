/* The last attempts of a target: a ring that each new one overwrites. The memory
 * of an answer is kept for the next one in its place. */
#include <stdlib.h>
#include <string.h>

#include "hub/hub_internal.h"

struct stg_recent {
    uint32_t next, count;
    stg_recent_attempt all[STG_RECENT_MAX];
};

/* The body of the answer, or where there was none why there was none. Its memory is
 * kept for the next attempt in this place. */
static void keep_answer(stg_recent_attempt *a, const stg_end *how)
{
    const char *text = how->answer;
    size_t size = how->answer_size;

    a->is_detail = a->status == 0 && how->detail != NULL;
    if (a->is_detail) {
        text = how->detail;
        size = strlen(text);
    }
    if (size > STG_RECENT_ANSWER_MAX)
        size = STG_RECENT_ANSWER_MAX;
    if (size > 0 && a->answer == NULL)
        a->answer = malloc(STG_RECENT_ANSWER_MAX);
    a->size = a->answer == NULL ? 0 : (uint16_t)size;
    if (a->size > 0)
        memcpy(a->answer, text, a->size);
}

/* The oldest of the last ten gives its place. Without memory it is not remembered. */
void stg_recent_add(stg_target *t, const stg_attempt_end *e, const stg_end *how,
                    stg_ns now)
{
    stg_recent *r = t->recent;
    stg_recent_attempt *a;

    if (r == NULL)
        r = t->recent = calloc(1, sizeof *r);
    if (r == NULL)
        return;
    a = &r->all[r->next];
    r->next = (r->next + 1) % STG_RECENT_MAX;
    r->count += r->count < STG_RECENT_MAX;
    a->at = now;
    a->took = e->took;
    a->position = e->position;
    a->number = e->number;
    a->partition = e->partition;
    a->status = (uint16_t)e->status;
    a->fault = how->outcome.fault;
    a->code_kind = how->outcome.code_kind;
    a->code = how->outcome.code;
    keep_answer(a, how);
}

const stg_recent_attempt *stg_recent_at(const stg_recent *r, size_t i)
{
    if (r == NULL || i >= r->count)
        return NULL;
    return &r->all[(r->next + STG_RECENT_MAX - 1 - i) % STG_RECENT_MAX];
}

void stg_recent_free(stg_recent *r)
{
    for (size_t i = 0; r != NULL && i < STG_RECENT_MAX; i++)
        free(r->all[i].answer);
    free(r);
}
