/* rewind.h - stagger targets rewind: a target gets the messages of the log again. */
#ifndef STAGGER_CLI_REWIND_H
#define STAGGER_CLI_REWIND_H

#include "cli/remote.h"

typedef struct target_rewind {
    const char *to; /* from where on; NULL: show how far rewinds are */
    bool is_cancel, is_sure, is_json;
} target_rewind;

/* Returns the exit code. */
int target_rewind_run(const target_rewind *o, stg_remote *r, const char *name);

#endif
