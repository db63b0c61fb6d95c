/* Any bytes as a settings file: settings that can be used, or diagnostics that
 * say where, and never what a secret is. */
#include <string.h>

#include "config/load.h"
#include "fuzz/fuzz.h"

static void check_diagnostic(const stg_diagnostic *c)
{
    size_t size = strlen(c->text);

    HOLDS(size > 0 && size < 600);
    HOLDS((c->place.line == 0) == (c->place.column == 0));
    for (size_t i = 0; i < size; i++)
        HOLDS((unsigned char)c->text[i] >= ' ' && c->text[i] != 0x7f);
}

static void check_diagnostics(const stg_diagnostics *c)
{
    HOLDS(c->count <= STG_DIAGNOSTICS_MAX);
    HOLDS(!c->is_memory_short);
    for (size_t i = 0; i < c->count; i++) {
        check_diagnostic(&c->all[i]);
        if (i > 0)
            HOLDS(c->all[i - 1].place.line <= c->all[i].place.line);
    }
}

static void check_target(const stg_target_settings *t)
{
    const stg_target_common *c = t->common;

    HOLDS(t->name != NULL && t->url != NULL && c->policy != NULL);
    HOLDS(stg_policy_check(c->policy, NULL) == STG_OK);
    HOLDS(c->in_flight_max >= 1 && c->in_flight_max <= 10000);
    HOLDS(c->parked_max >= 1 && c->parked_max <= 1000000);
    HOLDS(stg_settings_same_target(t, t));
    (void)stg_settings_lane(t);
}

static void check_settings(const stg_settings *s)
{
    HOLDS(s->store.path != NULL);
    HOLDS(s->listen.address != NULL);
    for (size_t i = 0; i < s->target_count; i++) {
        check_target(&s->targets[i]);
        HOLDS(stg_settings_target(s, s->targets[i].name) == &s->targets[i]);
    }
}

/* The same text is no change. */
static void check_reload(const stg_settings *s, const char *text, size_t size)
{
    stg_diagnostics c = {.all = NULL};
    stg_settings *again = NULL;

    HOLDS(stg_settings_load_text(text, size, "fuzz.yaml", &again, &c) ==
          STG_OK);
    stg_settings_check_reload(s, again, &c);
    HOLDS(c.mistakes == 0);
    stg_diagnostics_free(&c);
    stg_settings_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stg_diagnostics c = {.all = NULL};
    stg_settings *s = NULL;
    char *text = malloc(size + (size == 0)); // exact: a read past it is seen
    stg_status status;

    HOLDS(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    status = stg_settings_load_text(text, size, "fuzz.yaml", &s, &c);
    HOLDS(status == STG_OK || status == STG_INVALID);
    HOLDS((status == STG_OK) == (c.mistakes == 0));
    HOLDS((status == STG_OK) == (s != NULL));
    check_diagnostics(&c);
    if (s != NULL) {
        check_settings(s);
        check_reload(s, text, size);
    }
    stg_diagnostics_free(&c);
    stg_settings_free(s);
    free(text);
    return 0;
}
