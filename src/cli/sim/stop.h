/* stop.h - an interrupted simulation prints what it has. */
#ifndef STAGGER_CLI_SIM_STOP_H
#define STAGGER_CLI_SIM_STOP_H

#include <stdatomic.h>

/* From now on SIGINT and SIGTERM set what is returned, and a second one ends
 * the program. Signals that were ignored stay so. */
const atomic_bool *stg_sim_stop_watch(void);

#endif
