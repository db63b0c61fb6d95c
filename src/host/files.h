/* files.h - how many connections there may be, of the files that may be open.
 *
 * Of RLIMIT_NOFILE, as it is now, 64 and 4 for each broker of Kafka are for what
 * else the hub opens (half of it, where it is that low). Of the rest, connections
 * to targets and those of producers own a quarter each, and share half: so
 * neither can leave the other without any. */
#ifndef STAGGER_HOST_FILES_H
#define STAGGER_HOST_FILES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct stg_files {
    uint64_t limit;   /* instead of the process's; 0: that one */
    uint32_t brokers; /* of Kafka */
    uint64_t targets; /* connections to them that are open */
    uint64_t callers; /* and those of producers */
    /* Closes an idle one for the other side. NULL: there is nobody to ask. */
    bool (*relieve_targets)(void *ctx);
    void *targets_ctx;
    bool (*relieve_callers)(void *ctx);
    void *callers_ctx;
} stg_files;

/* All that there may be of both together. */
uint64_t stg_files_room(const stg_files *f);

/* The number of them that one side owns. */
uint64_t stg_files_own(const stg_files *f);

/* Whether there may be one more. */
bool stg_files_have_target(const stg_files *f);
bool stg_files_have_caller(const stg_files *f);

/* Asks the other side to close an idle one, if it has more than it owns: then
 * there may be one more, soon. */
void stg_files_ask_callers(stg_files *f);
void stg_files_ask_targets(stg_files *f);

#endif
