/* batch_text.h - the bytes of a request that several deliveries share, and the
 * results in its answer. Pure.
 *
 *     json-array  [BODY,BODY]
 *     ndjson      BODY LF BODY LF; an end of line within a body becomes a blank,
 *                 which JSON takes for the same
 *
 * Bodies go on as they are, so that numbers stay what they were. */
#ifndef STAGGER_HUB_BATCH_TEXT_H
#define STAGGER_HUB_BATCH_TEXT_H

#include <stagger/outcome.h>

#include "base/span.h"
#include "config/settings.h"

/* Whether a batch can have the body, which has to be one value in JSON. Else
 * *why are words. */
bool stg_batch_takes(stg_span body, const char **why);

/* How many bytes it adds to a body, and how many every body has besides. */
enum { STG_BATCH_EACH = 1, STG_BATCH_ENDS = 1 };

/* Writes the next of the bodies, and then the end, to where there is room.
 * Returns its end. */
char *stg_batch_put(stg_batch_format format, char *to, stg_span body,
                    bool is_first);
char *stg_batch_end(stg_batch_format format, char *to);

/* are_events: each body is a CloudEvent in structured mode. */
const char *stg_batch_content_type(stg_batch_format format, bool are_events);

enum { STG_BATCH_ID_MAX = 48 };

/* The batch's id, which is the same as long as it is of the same messages: made
 * of their ids, as Stagger-Messages has them. False: no memory. */
bool stg_batch_id(stg_span ids, char id[STG_BATCH_ID_MAX]);

/* Reads {"results": [{"status": 200}, {"status": 429, "retry-after": 5}, ...]},
 * with the seconds of a wait by choice. False: it is anything else, or not of so
 * many; outcomes are not to be used then. */
bool stg_batch_results(stg_span answer, stg_outcome *outcomes, size_t count);

#endif
