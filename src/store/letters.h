/* letters.h - the copy of the dead letters in a file, a line of JSON each.
 *
 * A thread with a connection of its own reads the table in the order of its
 * changes, behind a durable cursor: each row is written at least once, as it is
 * at that moment, and again when its state changes, always with its id; a bulk
 * row that grows, once a minute at most. The file is synced before the cursor
 * moves. When a line does not
 * fit into `letters_max` bytes, PATH becomes PATH.1, PATH.1 becomes PATH.2, and
 * so on; PATH.5 goes. A file that cannot be written is tried again every
 * second, and told once. Where there is a sink, they go to it instead.
 *
 * In a store that others use, too, each hub copies those of the partitions that
 * it has claimed, and notes at each row which version of it was copied. */
#ifndef STAGGER_STORE_LETTERS_H
#define STAGGER_STORE_LETTERS_H

#include "store/query.h"
#include "store/reader.h"

enum { STG_LETTERS_KEPT = 5 }; /* files behind the one that is written */

typedef struct stg_letters {
    stg_request_queue *in;
    const stg_store_options *o;
    const char *url; /* of PostgreSQL; NULL: a file */
    stg_db *db;
    stg_read_retry again;
    stg_stmt *read, *mark;
    stg_found found;          /* what was read last */
    uint64_t *ids, *versions; /* of what was read last */
    size_t count;
    char *claimed; /* partitions */
    uv_thread_t thread;
    uint64_t version; /* written, and synced */
    uint64_t seen;    /* groups with dead letters that were looked at */
    uint64_t size;    /* of the file */
    int fd;
    bool is_regular;  /* a device or a pipe is not rotated */
    stg_error why;    /* of what failed last */
    bool is_troubled; /* and it was told */
} stg_letters;

/* Opens the file of copies: l is zeroed but for in, o and url. Returns STG_IO
 * with words if it cannot be opened for writing. */
stg_status stg_letters_open(stg_letters *l, stg_error *err);
void stg_letters_free(stg_letters *l);

/* The thread. */
void stg_letters_run(void *letters);

#endif
