/* files.h - how many connections there may be, of the files that may be open.
 *
 * Of RLIMIT_NOFILE, as it is now, 64 and 4 for each broker of Kafka are for what
 * else the hub opens (half of it, where it is that low). Of the rest, connections
 * to targets and those of producers own a quarter each, and share half: so
 * neither can leave the other without any. */
#ifndef STAGGER_HOST_FILES_H
#define STAGGER_HOST_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <stagger/status.h>

typedef struct stg_files {
    uint64_t limit;   /* instead of the process's; 0: that one */
    uint32_t brokers; /* of Kafka */
    uint64_t targets; /* connections to them that are open */
    uint64_t callers; /* and those of producers */
    /* Closes an idle one for the other side. NULL: there is nobody to ask. */
    bool (*evict_target)(void *ctx);
    void *targets_ctx;
    bool (*evict_caller)(void *ctx);
    void *callers_ctx;
} stg_files;

/* All that there may be of both together. */
uint64_t stg_files_room(const stg_files *f);

/* Whether there may be one more. */
bool stg_files_have_target(const stg_files *f);
bool stg_files_have_caller(const stg_files *f);

/* Asks the other side to close an idle one, if it has more than it owns: then
 * there may be one more, soon. */
void stg_files_ask_callers(stg_files *f);
void stg_files_ask_targets(stg_files *f);

/* -- secrets ------------------------------------------------------------- */

/* Small files with secrets: tokens, keys. Nobody but the hub may
 * read one, what was read of it is wiped, and no error repeats what is in it. */

enum { STG_SECRET_FILE_MAX = 1 << 20 };

/* Blocks. Returns STG_INVALID with words, without the path, for what only a
 * person can mend: no such file, or one that others may use; STG_IO otherwise.
 * text: to be freed with its size. */
stg_status stg_secret_file_read(const char *path, char **text, size_t *size,
                                stg_error *err);
void stg_secret_file_free(char *text, size_t size);

/* Whether nobody else may use a file with a secret, by its mode
 * (stg_file_is_private()), or as it is a credential of the service. */
bool stg_secret_is_private(const char *path, const struct stat *s);

/* The path of a credential that systemd has given the service
 * ($CREDENTIALS_DIRECTORY/NAME), to be freed; NULL: there is none. */
char *stg_secret_credential(const char *name);

#endif
