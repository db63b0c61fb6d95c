/* audit.h - whether all is as it should be at the end of a demo: the store
 * is asked by SQL, flow by its view, and the sinks by what they printed. */
#ifndef STAGGER_CLI_DEMO_AUDIT_H
#define STAGGER_CLI_DEMO_AUDIT_H

#include "cli/demo/sinks.h"
#include "hub/hub.h"

typedef struct demo_audit {
    const char *store; /* path; no hub has it open any more */
    const stg_hub *hub;
    const demo_sinks *sinks;
    uint64_t messages; /* that were accepted */
    bool is_clean;     /* how the hub ended */
} demo_audit;

/* Prints the summary, and what was checked. Returns whether all holds. */
bool stg_demo_audit(const demo_audit *a);

#endif
