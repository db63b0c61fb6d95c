/* process.h - what the process uses of the machine. Any thread; opens files of
 * /proc, so it is not for the loop. */
#ifndef STAGGER_METRICS_PROCESS_H
#define STAGGER_METRICS_PROCESS_H

#include <stagger/ns.h>

typedef struct stg_process_view {
    stg_ns cpu;         /* used, in user and system mode */
    uint64_t resident;  /* bytes; 0: the system does not say */
    uint64_t files;     /* open descriptors; 0: the system does not say */
    uint64_t files_max; /* STG_UNLIMITED: no limit */
} stg_process_view;

void stg_process_look(stg_process_view *view);

#endif
