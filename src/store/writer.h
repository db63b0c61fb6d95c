/* writer.h - the thread that commits whatever came during its last commit.
 *
 * A round is: all appends in one transaction; flow's group, if there is one, in
 * its own; a request; then, in small pieces, what can wait: trimming, old keys,
 * the WAL's checkpoint. So neither appends nor groups starve the other. */
#ifndef STAGGER_STORE_WRITER_H
#define STAGGER_STORE_WRITER_H

#include "store/eviction.h"
#include "store/keys.h"
#include "store/lanes.h"
#include "store/published.h"
#include "store/queue.h"
#include "store/receipts.h"
#include "store/request.h"
#include "store/rows.h"
#include "store/store_file.h"

struct stg_store_writer {
    stg_request_queue *in;
    const stg_store_options *o;
    stg_db *db;
    const char *url;  /* of PostgreSQL; NULL: a file */
    bool is_hopeless; /* the database is away, and the store closes: no retry */
    bool is_ending;   /* the loop has said that it is to close soon */
    bool is_closing;
    bool has_epoch;      /* the epoch of now is durable */
    bool waits_for_copy; /* what is too much has not been copied yet */
    bool is_tending;     /* there is more to do at once */
    bool troubles[STG_STORE_TROUBLES]; /* that were told, and are not over */
    uv_thread_t thread;
    stg_store_files files; /* files of the store; none of a server */

    stg_queue queue;
    stg_keys keys;
    stg_published_table published; /* of PostgreSQL */
    stg_rows rows;
    stg_cursors cursors;
    stg_partitions partitions;
    stg_replays replays;
    stg_eviction eviction;
    stg_receipt_table receipts;
    stg_stmt *page_count, *free_count, *add_lane, *pause_lane, *fence;

    /* the round */
    stg_list appends, lanes;
    stg_group_request *group;
    stg_store_request *request;
    stg_key *hashes; /* of a call, while it is appended */
    size_t hash_room;
    uint64_t used;           /* bytes of the file that are not free */
    uint64_t room;           /* what appends may still fill */
    uint64_t space, reserve; /* bytes that the disk has left, and is to keep */
    uint64_t space_at;       /* time of the next look at the disk */
    uint64_t held_at;        /* since then a read holds the WAL; 0: none does */
    uint64_t squeeze_at;     /* the WAL is not emptied for room before */
    uint64_t
        refused; /* the smallest append refused for want of room; 0: none */
    stg_shortage room_lack; /* why `room` is not more */
    /* shortages of the last appends, and of flow's last group */
    stg_shortage appends_lack, group_lacks;
    stg_shortage short_of; /* the last one that was told */
    bool lacks_rows; /* the group had rows: one without says nothing of them */
    uint64_t short_at; /* time of the next change that may be told */

    /* what can wait: by uv_hrtime() */
    uint64_t commit;
    uint64_t retained, told; /* below: too old or too much; told to flow */
    uint64_t crowded;        /* below: too much alone */
    uint64_t kept;           /* from here on: younger than o->keep */
    uint64_t trim_since;     /* something has been below the limit */
    uint64_t trim_at, age_at, kept_at, room_at, keys_at, lanes_at, letters_at,
        checkpoint_at, request_at, renew_at, trial_at, rest_at, files_at;
    uint64_t letters_version, letters_noted;
    uint64_t letters_old_at, letters_look_at, evict_at;
    uint64_t letters_seen; /* rows.version, when the totals were read */
    int wal_pages, closing_tries;
    int busy_tries;    /* of a transaction to begin */
    stg_error why;     /* the last transaction that failed */
    uint64_t began_at; /* the transaction that is open */
    stg_histogram commits, checkpoints;
};

/* Of a zeroed writer with in, o and an open db, whose file is ours and new. */
int stg_store_writer_load(stg_store_writer *w);
void stg_store_writer_free(stg_store_writer *w);

/* The thread. */
void stg_store_writer_run(void *writer);

/* -- its parts ------------------------------------------------------------- */

/* Begins a transaction, with the lanes that wait to be written. */
int stg_writer_begin(stg_store_writer *w);

/* Ends it, also when it could not begin. Returns as stg_sql_end(). */
int stg_writer_end(stg_store_writer *w, int rc);

/* Looks whether the store's files are in their place, where rc is no worse than
 * a transaction that failed. Returns rc; else SQLITE_READONLY_DBMOVED, and w->why
 * has the words. */
int stg_writer_look(stg_store_writer *w, int rc);

/* Nothing can be stored now, and it was told: BUSY of a file, AWAY of a
 * server. */
bool stg_writer_is_stuck(const stg_store_writer *w);

/* A trouble is over, if it was told. */
void stg_writer_tell_end(stg_store_writer *w, stg_store_trouble what);

/* shortage.c: notes how a transaction of appends, or flow's group, has ended. */
void stg_writer_note_appends(stg_store_writer *w, int rc);
void stg_writer_note_group(stg_store_writer *w, const stg_group *g, int rc);

/* Tells what is short, or that nothing is any more: once a second at most. Tries a
 * write where nobody else does. Returns an error that no room would mend. */
int stg_writer_tell_shortage(stg_store_writer *w, uint64_t now);

/* When that is to be called; UINT64_MAX: not before something has changed. */
uint64_t stg_writer_shortage_at(const stg_store_writer *w);

/* Finds how much appends may fill. */
void stg_writer_find_room(stg_store_writer *w);

/* trim.c: empties the WAL where it has room that is wanted: once a second, while
 * a read holds it. The rest is as it was. Returns an error that is none of those
 * that pass. */
int stg_writer_squeeze(stg_store_writer *w);

/* Empties the WAL for good, as far as others let it. */
void stg_writer_empty_log(stg_store_writer *w);

/* There are letters that the file of them has not. */
void stg_writer_tell_letters(stg_store_writer *w);

/* group.c: w->group, answered. False: the store is broken. */
bool stg_writer_group(stg_store_writer *w);

/* appends.c: all of w->appends, answered. False: the store is broken. */
bool stg_writer_append(stg_store_writer *w);

/* trim.c: what can wait. False: the store is broken. */
bool stg_writer_tend(stg_store_writer *w);

/* letter_room.c: the same of dead letters; stg_writer_tend() calls it. */
int stg_writer_evict(stg_store_writer *w, uint64_t now);
uint64_t stg_writer_evict_at(const stg_store_writer *w);

/* When there is something to tend; UINT64_MAX: never. */
uint64_t stg_writer_tend_at(const stg_store_writer *w);

#endif
