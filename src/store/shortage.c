/* Shortages of a store: as errors of SQLite, in words, and as they are told.
 *
 * Two things fail for want of room, and each is its own witness: appends, by the
 * quota's share or by the disk, and groups of flow. A change is told a second
 * behind the last one at the earliest: a store at its limit takes one message and
 * refuses the next. Where nobody writes any more since /readyz sends all clients
 * away, a write that changes nothing is tried each second. */
#include "store/shortage.h"
#include "store/internal.h"
#include "store/sqlite.h"

#define SHORTAGE_OF_ROOM                                                     \
    "replay or drop dead letters, mend or pause targets that keep messages " \
    "waiting, or raise store.quota"

static const char *const shortage_all[] = {
    [STG_SHORT_SHARE] =
        "the store is full: four fifths of store.quota are "
        "used; " SHORTAGE_OF_ROOM,
    [STG_SHORT_RESERVE] =
        "the store is full: its disk is nearly full, and what is left is for "
        "what was accepted; make room there",
    [STG_SHORT_LOG] =
        "the store is full: its write-ahead log fills it, which "
        "a process that reads the store holds back; end that "
        "process (see store-trouble in the hub's log)",
    [STG_SHORT_QUOTA] =
        "the store is full: store.quota is used up; " SHORTAGE_OF_ROOM,
    [STG_SHORT_DISK] =
        "the store is full: there is no space left on its disk; "
        "make room there",
    [STG_SHORT_ACCOUNT] =
        "the store is full: the disk quota of the hub's user "
        "or group is used up; raise it, or make room in it",
    [STG_SHORT_SIZE] =
        "the store is full: a file of it would grow beyond the largest size "
        "that is allowed; raise that limit (ulimit -f, LimitFSIZE)",
    [STG_SHORT_SERVER] =
        "the store is full: its database has no space left; "
        "make room on the server",
};

const char *stg_shortage_say(stg_shortage what)
{
    return shortage_all[what];
}

stg_shortage stg_shortage_of(int rc, bool is_shared)
{
    if (!stg_sql_is_full(rc))
        return STG_SHORT_NONE;
    if (is_shared)
        return STG_SHORT_SERVER;
    return rc == SQLITE_FULL ? STG_SHORT_QUOTA : (stg_shortage)(rc >> 8);
}

int stg_shortage_code(stg_shortage what)
{
    return SQLITE_FULL | (int)what << 8;
}

/* -- the writer's ---------------------------------------------------------- */

void stg_writer_note_appends(stg_store_writer *w, int rc)
{
    w->appends_lack = stg_shortage_of(rc, w->url != NULL);
}

/* A group without rows goes through where one with rows does not fit. */
void stg_writer_note_group(stg_store_writer *w, const stg_group *g, int rc)
{
    bool has_rows = g->change_count > 0;

    if (stg_sql_is_full(rc)) {
        w->group_lacks = stg_shortage_of(rc, w->url != NULL);
        w->lacks_rows = has_rows;
    } else if (rc == SQLITE_OK && (has_rows || !w->lacks_rows)) {
        w->group_lacks = STG_SHORT_NONE;
        w->lacks_rows = false;
    }
}

/* The larger value is the harder shortage. */
static stg_shortage shortage_now(const stg_store_writer *w)
{
    stg_shortage most = w->refused > 0 ? w->room_lack : STG_SHORT_NONE;

    if (w->appends_lack > most)
        most = w->appends_lack;
    return w->group_lacks > most ? w->group_lacks : most;
}

/* Writes what is there already, into the log of the disk that was full. */
static int shortage_try(stg_store_writer *w)
{
    int rc = stg_writer_begin(w);

    if (rc == SQLITE_OK)
        rc = stg_meta_write(w->db, "letters_version", w->letters_noted);
    rc = stg_writer_end(w, rc);
    stg_writer_note_appends(w, rc);
    return stg_sql_is_full(rc) ? SQLITE_OK : rc;
}

static void shortage_tell(stg_store_writer *w, stg_shortage now)
{
    w->short_of = now;
    if (now == STG_SHORT_NONE)
        stg_request_queue_tell(w->in, STG_STORE_SHORT, NULL);
    else
        stg_request_queue_tell(w->in, STG_STORE_SHORT, "%s",
                               stg_shortage_say(now));
}

int stg_writer_tell_shortage(stg_store_writer *w, uint64_t now)
{
    int rc = SQLITE_OK;

    if (now < w->short_at)
        return SQLITE_OK;
    if (w->refused > 0)
        stg_writer_find_room(w);
    if (w->appends_lack != STG_SHORT_NONE && w->url == NULL &&
        w->short_of != STG_SHORT_NONE)
        rc = shortage_try(w);
    if (shortage_now(w) != w->short_of)
        shortage_tell(w, shortage_now(w));
    else if (w->short_of == STG_SHORT_NONE)
        return rc;
    w->short_at = now + STG_S;
    return rc;
}

uint64_t stg_writer_shortage_at(const stg_store_writer *w)
{
    return w->short_of == STG_SHORT_NONE && shortage_now(w) == STG_SHORT_NONE
               ? UINT64_MAX
               : w->short_at;
}
