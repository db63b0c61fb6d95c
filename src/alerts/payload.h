/* payload.h - one alert of a digest as a JSON object, for the bodies of all
 * receivers that have its facts. */
#ifndef STAGGER_ALERTS_PAYLOAD_H
#define STAGGER_ALERTS_PAYLOAD_H

#include <jansson.h>

#include "alerts/digest.h"

/* As a webhook has it: docs/alerts.md. NULL: there is no memory. */
json_t *stg_payload_item(const stg_digest_item *i);

static inline void stg_payload_set(json_t *to, const char *name,
                                   const char *text)
{
    (void)json_object_set_new(to, name, json_string(text));
}

/* Takes the reference and prints it; to be freed. NULL: no memory. */
char *stg_payload_print(json_t *json);

#endif
