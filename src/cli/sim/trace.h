/* trace.h - arrivals and service times of your own: --trace FILE. Private to
 * cli/sim. */
#ifndef STAGGER_CLI_SIM_TRACE_H
#define STAGGER_CLI_SIM_TRACE_H

#include <stagger/status.h>

#include "sim/overload.h"

/* Reads an access log, the hub's JSON log, or CSV. Returns STG_OK; STG_INVALID with
 * "FILE:LINE: ..." in err; STG_IO if the file cannot be read, or there is no
 * memory. To be freed in any case. */
stg_status stg_trace_read(stg_sim_trace *t, const char *path, stg_error *err);
void stg_trace_free(stg_sim_trace *t);

#endif
