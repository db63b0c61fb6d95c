/* target_change.h - stagger targets show, add, set and remove: calls for targets
 * that are not in the settings file. Each returns the exit code. */
#ifndef STAGGER_CLI_TARGET_CHANGE_H
#define STAGGER_CLI_TARGET_CHANGE_H

#include "cli/remote.h"

typedef struct target_change {
    stg_remote *remote;
    const char *url;  /* of the settings; NULL: not given */
    const char *file; /* with all settings; NULL: none */
    bool is_dry, is_sure, is_json;
} target_change;

/* Of the answer of a dry run: "31 messages that wait for it are cancelled, and
 * its 2 dead letters cannot be sent again". Returns text. */
enum { TARGET_CHANGE_LOSS_MAX = 160 };
const char *target_change_loss(const json_t *answer,
                               char text[TARGET_CHANGE_LOSS_MAX]);

int target_change_show(const target_change *c, const char *name);

/* The first argument is the name, the others are KEY=VALUE. */
int target_change_write(const target_change *c, bool is_new,
                        const stg_arguments *left);

/* Asks, with what is lost, unless is_sure. */
int target_change_remove(const target_change *c, const stg_arguments *left);

#endif
