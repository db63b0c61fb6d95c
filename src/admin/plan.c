/* What a target's policy will do: the numbers of `stagger plan`, for one that runs.
 * It is worked out for each request, in less than a millisecond. */
#include <stdlib.h>

#include "admin/internal.h"
#include "plan/plan.h"

/* NULL: no memory. */
static char *print(const stg_target *t, size_t *size)
{
    stg_plan *plan = calloc(1, sizeof *plan);
    char *text = NULL;
    FILE *to = plan == NULL ? NULL : open_memstream(&text, size);
    stg_json j = {.to = to};
    bool is_whole;

    if (to == NULL) {
        free(plan);
        return NULL;
    }
    plan->name = t->name;
    plan->is_of_target = true;
    plan->policy = *t->settings->policy;
    stg_plan_work_out(plan, 0);
    stg_plan_write(plan, 0, &j);
    free(plan);
    is_whole = ferror(to) == 0;
    if (fclose(to) == 0 && is_whole)
        return text;
    free(text);
    return NULL;
}

void stg_admin_target_plan(void *admin, stg_ask *ask)
{
    const stg_admin *a = admin;
    const stg_target *t =
        stg_targets_named(&a->hub->targets, stg_ask_word(ask, 0));
    size_t size = 0;
    char *text;

    if (t == NULL) {
        stg_ask_refuse(ask, 404, "there is no target of this name");
        return;
    }
    if (t->settings == NULL) {
        stg_ask_refuse(ask, 404,
                       "only the store knows this target: it has no policy");
        return;
    }
    text = print(t, &size);
    stg_ask_answer(ask, 200, "application/json", text, size);
}
