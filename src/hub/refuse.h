/* refuse.h - why something cannot be, in words. */
#ifndef STAGGER_HUB_REFUSE_H
#define STAGGER_HUB_REFUSE_H

#include <stagger/status.h>

/* Any sentence, cut where err has no more room, of no line. err may be NULL.
 * Returns status. */
__attribute__((format(printf, 3, 4))) stg_status
stg_hub_refuse(stg_error *err, stg_status status, const char *format, ...);

#endif
