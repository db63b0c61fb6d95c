/* internal.h - what files of commands that need the hub share, where a command has
 * more than one. Private to this folder. */
#ifndef STAGGER_CLI_INTERNAL_H
#define STAGGER_CLI_INTERNAL_H

#include <stdbool.h>

#include "base/text.h"
#include "cli/remote.h"
#include "config/diagnostics.h"
#include "config/settings.h"
#include "config/table.h"

/* -- hub_options.c ---------------------------------------------------------- */

/* The options of `stagger hub`, as settings: those of a file, or the defaults, and
 * what the command says over them. */

typedef struct hub_flag {
    const stg_setting *setting;
    const char *text;
} hub_flag;

typedef struct hub_options {
    stg_settings *settings;   /* NULL: given away, or there are none */
    stg_diagnostics warnings; /* of the file; to be told */
    const char *file;         /* -c */
    hub_flag *flags;          /* in their order */
    size_t flag_count;
    const char *level; /* -v, -q; NULL: neither */
} hub_options;

/* Reads all. Returns 0, an exit code after a diagnostic, or STG_HELPED. To be
 * closed in any case. */
int stg_hub_options_read(hub_options *o, int argc, char **argv);
void stg_hub_options_close(hub_options *o);

/* -- check_try.c --------------------------------------------------------- */

/* `stagger check --try`: tells which targets would get a message, and why the
 * others would not. */

/* A message as it is published. Zeroed before use. */
typedef struct stg_try {
    const char
        *file; /* the body's; "-": standard input; NULL: nothing is tried */
    const char *type, *key, *topic; /* NULL: none was given */
    stg_text headers;               /* lines */
    bool is_json;                   /* what is printed */
} stg_try;

/* Adds 'Name: value'. Complains, and returns STG_EXIT_USAGE, where it is none. */
int stg_try_add_header(stg_try *t, const char *text);

/* Prints a line a target, without what c hides. Returns 0, or STG_EXIT_USAGE and complains: the file
 * cannot be read, or a hub would drop one of the headers. */
int stg_try_run(const stg_try *t, const stg_settings *s,
                const stg_diagnostics *c);

void stg_try_free(stg_try *t);

/* -- store.c ------------------------------------------------------------- */

/* Where the store is, for every command that wants one. */

/* Returns the store's path: `given` by --store, else STAGGER_STORE in the
 * environment, else "./stagger.db". given may be NULL. The path is lent. */
const char *stg_store_path(const char *given);

/* Whether it is one that may stand in a command line: everybody on the machine
 * reads those, and a URL's password in them. If not, complains. given as
 * above. */
bool stg_store_path_check(const char *who, const char *given);

/* Whether a file that can be read is at path. If not, complains. */
bool stg_store_path_look(const char *who, const char *path);

/* -- target_change.c ----------------------------------------------------- */

/* Stagger targets show, add, set and remove: calls for targets
 * that are not in the settings file. Each returns the exit code. */

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

/* -- rewind.c ------------------------------------------------------------ */

/* Stagger targets rewind: a target gets the messages of the log again. */

typedef struct target_rewind {
    const char *to; /* from where on; NULL: show how far rewinds are */
    bool is_cancel, is_sure, is_json;
} target_rewind;

/* Returns the exit code. */
int target_rewind_run(const target_rewind *o, stg_remote *r, const char *name);

#endif
