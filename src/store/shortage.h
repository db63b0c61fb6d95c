/* shortage.h - what a store is short of, so that it takes nothing: told apart in
 * the log, in status, at /readyz and in alerts. */
#ifndef STAGGER_STORE_SHORTAGE_H
#define STAGGER_STORE_SHORTAGE_H

#include <stdbool.h>

/* Each makes the store refuse messages; from STG_SHORT_LOG on rows, too. */
typedef enum stg_shortage {
    STG_SHORT_NONE,
    STG_SHORT_SHARE,   /* four fifths of the quota: intake stops */
    STG_SHORT_RESERVE, /* the disk is nearly full: intake stops */
    STG_SHORT_LOG,     /* the quota, by a WAL that a read holds */
    STG_SHORT_QUOTA,   /* all of the quota */
    STG_SHORT_DISK,    /* space on the disk (ENOSPC) */
    STG_SHORT_ACCOUNT, /* the user's quota of the file system (EDQUOT) */
    STG_SHORT_SIZE,    /* the size that a file may have (EFBIG) */
    STG_SHORT_SERVER,  /* space of the database server */
    STG_SHORTAGES
} stg_shortage;

/* "the store is full: there is no space left on its disk; make room there".
 * Static; NULL: nothing is short. */
const char *stg_shortage_say(stg_shortage what);

/* SQLITE_FULL alone is the quota in pages. The other shortages are codes of our
 * own, which stg_sql_is_full() takes for full, too. */
int stg_shortage_code(stg_shortage what);

/* Returns what an error lacked; STG_SHORT_NONE: it is another error. */
stg_shortage stg_shortage_of(int rc, bool is_shared);

#endif
