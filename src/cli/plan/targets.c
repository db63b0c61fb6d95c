/* stagger plan --target: the policies of targets of a settings file, as the hub would
 * apply them. */
#include "cli/plan/internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/options.h"
#include "config/load.h"

static const char who[] = "stagger plan";

static int refuse(const stg_settings *s, const char *config, const char *name)
{
    const char **names = calloc(s->target_count + 1, sizeof(char *));
    char suggestion[STG_SUGGESTION_MAX] = "";

    for (size_t i = 0; names != NULL && i < s->target_count; i++)
        names[i] = s->targets[i].name;
    if (names != NULL)
        stg_options_suggest(suggestion, name, names);
    free(names);
    stg_options_complain(who, "--target=%s: %s has no such target%s", name,
                         config, suggestion);
    return STG_EXIT_USAGE;
}

/* The policy that take() gets is that of the settings: it must copy what it
 * keeps, since they are freed here. A file with any mistake has no plan. */
int stg_plan_targets_walk(const char *config, const char *const *names,
                          size_t count, stg_plan_take *take, void *ctx)
{
    stg_diagnostics c = {.all = NULL};
    stg_settings *s = NULL;
    int code = 0;

    if (stg_settings_load(config, &s, &c) != STG_OK) {
        stg_diagnostics_print(&c, config, stderr);
        code = STG_EXIT_USAGE;
    }
    for (size_t i = 0; code == 0 && i < count; i++) {
        const stg_target_settings *t = stg_settings_target(s, names[i]);

        code = t == NULL ? refuse(s, config, names[i])
                         : take(ctx, names[i], t->common->policy);
    }
    stg_diagnostics_free(&c);
    stg_settings_free(s);
    return code;
}
