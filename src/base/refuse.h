/* refuse.h - why something cannot be, in words. */
#ifndef STAGGER_BASE_REFUSE_H
#define STAGGER_BASE_REFUSE_H

#include <stagger/status.h>

/* Any sentence, cut where err has no more room, of no line. err may be NULL.
 * Returns status. */
__attribute__((format(printf, 3, 4))) stg_status
stg_hub_refuse(stg_error *err, stg_status status, const char *format, ...);

/* The status of a file that cannot be used, by its errno: STG_INVALID where the
 * path or its rights are wrong, which only a person can mend; else STG_IO, which
 * another start may find well again. */
stg_status stg_hub_file_status(int error);

#endif
