/* hub_options.h - the options of `stagger hub`, as settings: those of a file, or
 * the defaults, and what the command says over them. */
#ifndef STAGGER_CLI_HUB_OPTIONS_H
#define STAGGER_CLI_HUB_OPTIONS_H

#include "config/diagnostics.h"
#include "config/table.h"

typedef struct hub_flag {
    const stg_setting *setting;
    const char *text;
} hub_flag;

typedef struct hub_options {
    stg_settings *settings; /* NULL: given away, or there are none */
    stg_diagnostics unwise; /* of the file; to be told */
    const char *file;       /* -c */
    hub_flag *flags;        /* in their order */
    size_t flag_count;
    const char *level; /* -v, -q; NULL: neither */
} hub_options;

/* Reads all. Returns 0, an exit code after a diagnostic, or STG_HELPED. To be
 * closed in any case. */
int stg_hub_options_read(hub_options *o, int argc, char **argv);
void stg_hub_options_close(hub_options *o);

#endif
