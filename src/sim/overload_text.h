/* overload_text.h - the settings of an overload by name, as command lines and
 * sweeps write them. Pure. */
#ifndef STAGGER_SIM_OVERLOAD_TEXT_H
#define STAGGER_SIM_OVERLOAD_TEXT_H

#include "sim/overload.h"

/* A setting: what it is called, and what it takes. */
typedef struct stg_overload_setting {
    const char *name;   /* "queue" */
    const char *wanted; /* "a whole number, 0 to 10000000" */
} stg_overload_setting;

/* The setting number i from 0, or NULL after the last. Static. */
const stg_overload_setting *stg_overload_setting_at(size_t i);

/* Sets one. Returns STG_OK; STG_NOT_FOUND if no setting has that name; or
 * STG_INVALID with "name=value: wanted ..." in err, and *o is as it was.
 * clients= makes the load closed, rate= open. What fits together is for
 * stg_overload_check() to say. */
stg_status stg_overload_set(stg_overload_options *o, const char *name,
                            const char *value, stg_error *err);

/* Chooses what was left open: a warm-up of STG_NEVER becomes half of what comes
 * before the trigger, or a tenth of the duration; a bin of 0 a width that
 * people can read, for 200 to 400 of them. */
void stg_overload_settle(stg_overload_options *o);

#define STG_TRIGGER_TEXT_MAX 48

/* "outage", "slow:3", "errors:50%". Returns text. */
const char *stg_trigger_print(const stg_trigger *t,
                              char text[STG_TRIGGER_TEXT_MAX]);

/* The trigger in words: "an outage", "three times slower" ... as in "after ...".
 * Returns text. */
const char *stg_trigger_say(const stg_trigger *t,
                            char text[STG_TRIGGER_TEXT_MAX]);

#endif
