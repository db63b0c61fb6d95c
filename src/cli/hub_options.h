/* hub_options.h - the options of `stagger hub`, as its words say them. */
#ifndef STAGGER_CLI_HUB_OPTIONS_H
#define STAGGER_CLI_HUB_OPTIONS_H

#include "hub/hub.h"

typedef struct hub_options {
    stg_settings *settings; /* NULL: given away, or there is no memory */
    const char **targets;   /* --to */
    size_t target_count;
} hub_options;

/* Reads all. Returns 0, an exit code after a complaint, or -1 where the help
 * was asked for. To be closed in any case. */
int stg_hub_options_read(hub_options *o, int argc, char **argv);
void stg_hub_options_close(hub_options *o);

/* --help */
extern const char stg_hub_help[];

#endif
