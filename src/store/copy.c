/* Backup and restore: a store as one plain file, and back.
 *
 * A backup is a copy by SQLite's backup interface, page by page, within one read
 * transaction: what the hub commits meanwhile does not make it begin anew, and is
 * not in it. It is made beside its name, synced, and only then renamed: under its
 * name it is complete, or not there.
 *
 * A restore takes the store's lock, so that no hub is in it, copies the backup
 * beside the path, moves the ids of its dead letters, and exchanges the names. The
 * store that was there keeps its second name (PATH.replaced-TIME) until the
 * rename: a power cut at any moment leaves the one store or the other. */
#include "store/store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/refuse.h"
#include "store/sqlite.h"

enum {
    PIECE = 256, /* pages copied at once */
    PATH_ROOM = 4096,
    IDS_APART = 1000000, /* of dead letters, before a restore and behind it */
};

static stg_status refuse(const char *path, const char *what, stg_error *err)
{
    return stg_hub_refuse(err, STG_IO, "%s: %s: %s", path, what,
                          strerror(errno));
}

static stg_status refuse_sql(const char *path, const char *what, stg_db *db,
                             int rc, stg_error *err)
{
    stg_sql_words(err, path, what, db, rc);
    return STG_IO;
}

static bool put_name(char name[PATH_ROOM], const char *path, const char *end)
{
    return snprintf(name, PATH_ROOM, "%s%s", path, end) < PATH_ROOM;
}

/* -- a copy ---------------------------------------------------------------- */

/* The read transaction holds the moment: without one the copy would begin anew
 * with each commit of the hub. */
static int copy_pages(stg_db *to, stg_db *from)
{
    uint64_t tables;
    sqlite3_backup *b;
    int rc = stg_sql_exec(from, "BEGIN");

    if (rc == SQLITE_OK)
        rc = stg_sql_ask(from, "SELECT count(*) FROM sqlite_master", &tables);
    if (rc != SQLITE_OK)
        return rc;
    b = sqlite3_backup_init(stg_sqlite_of(to), "main", stg_sqlite_of(from),
                            "main");
    if (b == NULL)
        return sqlite3_errcode(stg_sqlite_of(to));
    do
        rc = sqlite3_backup_step(b, PIECE);
    while (rc == SQLITE_OK);
    if (rc == SQLITE_DONE)
        return sqlite3_backup_finish(b);
    sqlite3_backup_finish(b);
    return rc;
}

/* An empty file of ours, that SQLite then opens. */
static bool make_empty(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return false;
    close(fd);
    return true;
}

/* One plain file: no journal beside it is part of it. It is synced by its
 * caller, and of no use before. */
static int copy_store(const char *from, stg_db **source, const char *to,
                      stg_db **target)
{
    int rc = stg_sql_open_reader(source, from);

    if (rc == SQLITE_OK)
        rc = stg_sql_open_writer(target, to);
    if (rc == SQLITE_OK)
        rc = stg_sql_exec(*target,
                          "PRAGMA journal_mode = OFF;"
                          "PRAGMA synchronous = OFF;");
    if (rc == SQLITE_OK)
        rc = copy_pages(*target, *source);
    return rc == SQLITE_OK
               ? stg_sql_exec(*target, "PRAGMA journal_mode = DELETE;")
               : rc;
}

/* Two connections take part. If the error is the last one of the target's, the
 * target cannot be written; else the source cannot be read. */
static stg_status copy(const char *from, const char *to, stg_error *err)
{
    stg_db *source = NULL, *target = NULL;
    stg_status status = STG_OK;
    int rc;

    if (!make_empty(to))
        return refuse(to, "cannot be made", err);
    rc = copy_store(from, &source, to, &target);
    if (rc != SQLITE_OK)
        status = target != NULL &&
                         sqlite3_errcode(stg_sqlite_of(target)) == (rc & 0xff)
                     ? refuse_sql(to, "cannot be written", target, rc, err)
                     : refuse_sql(from, "cannot be read", source, rc, err);
    stg_sql_close(target);
    stg_sql_close(source);
    if (status != STG_OK)
        unlink(to);
    return status;
}

static bool sync_path(const char *path, int flags)
{
    int fd = open(path, flags | O_RDONLY | O_CLOEXEC);
    bool is_synced = fd >= 0 && fsync(fd) == 0;

    if (fd >= 0)
        close(fd);
    return is_synced;
}

/* A rename is durable when the directory that has the name is synced. */
static bool sync_directory(const char *path)
{
    char directory[PATH_ROOM];
    const char *slash = strrchr(path, '/');

    if (slash == NULL)
        return sync_path(".", O_DIRECTORY);
    snprintf(directory, sizeof directory, "%.*s",
             slash == path ? 1 : (int)(slash - path), path);
    return sync_path(directory, O_DIRECTORY);
}

/* -- backup ---------------------------------------------------------------- */

static stg_status check_names(const char *path, const char *to, stg_error *err)
{
    struct stat a, b;

    if (stat(path, &a) != 0)
        return refuse(path, "cannot be read", err);
    if (stat(to, &b) != 0)
        return STG_OK;
    if (a.st_dev == b.st_dev && a.st_ino == b.st_ino) {
        return stg_hub_refuse(err, STG_INVALID,
                              "%s: is the store itself; name another file", to);
    }
    if (S_ISREG(b.st_mode))
        return STG_OK;
    return stg_hub_refuse(err, STG_INVALID,
                          "%s: is there, and is no file; name another one", to);
}

static stg_status check_store(const char *path, stg_error *err)
{
    stg_db *db = NULL;
    stg_status status;
    int rc = stg_sql_open_reader(&db, path);

    status = rc == SQLITE_OK ? stg_schema_check(db, path, false, err)
                             : refuse_sql(path, "cannot be read", db, rc, err);
    stg_sql_close(db);
    return status;
}

/* Written beside its name, synced and renamed: a backup is whole, or not there. */
stg_status stg_copy_backup(const char *path, const char *to, stg_error *err)
{
    char part[PATH_ROOM];
    stg_status status = check_names(path, to, err);

    if (status == STG_OK)
        status = check_store(path, err);
    if (status != STG_OK)
        return status;
    if (snprintf(part, sizeof part, "%s.part-%ld", to, (long)getpid()) >=
        PATH_ROOM) {
        errno = ENAMETOOLONG;
        return refuse(to, "cannot be made", err);
    }
    status = copy(path, part, err);
    if (status != STG_OK)
        return status;
    if (sync_path(part, 0) && rename(part, to) == 0 && sync_directory(to))
        return STG_OK;
    status = refuse(to, "cannot be made durable", err);
    unlink(part);
    return status;
}

/* -- restore --------------------------------------------------------------- */

/* Ids of letters go on far behind those that may have been given since the
 * backup: consumers of the copy know letters by them. Ids of messages need
 * nothing: each start has its own. */
static int begin_anew(stg_db *db)
{
    char text[256];

    snprintf(text, sizeof text,
             "INSERT INTO sqlite_sequence (name, seq)"
             " SELECT 'failed_broadcast_logs', 0 WHERE NOT EXISTS (SELECT 1"
             " FROM sqlite_sequence WHERE name = 'failed_broadcast_logs');"
             "UPDATE sqlite_sequence SET seq = seq + %d"
             " WHERE name = 'failed_broadcast_logs'",
             IDS_APART);
    return stg_sql_exec(db, text);
}

static stg_status renew(const char *path, stg_error *err)
{
    stg_db *db = NULL;
    stg_status status = STG_OK;
    int rc = stg_sql_open_writer(&db, path);

    if (rc == SQLITE_OK)
        rc = stg_sql_begin(db, NULL, NULL);
    if (rc != SQLITE_OK)
        status = refuse_sql(path, "cannot be written", db, rc, err);
    else if (stg_sql_end(db, begin_anew(db), path, err) != SQLITE_OK)
        status = STG_IO;
    stg_sql_close(db);
    return status;
}

/* Moves the write-ahead log into the store, if that can still be done. */
static void fold_wal(const char *path)
{
    stg_db *db = NULL;

    if (stg_sql_open_writer(&db, path) == SQLITE_OK)
        stg_sql_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)");
    stg_sql_close(db);
}

/* A file that is not there needs no other name. */
static bool move(const char *from, const char *from_end, const char *to,
                 const char *to_end)
{
    char a[PATH_ROOM], b[PATH_ROOM];

    if (!put_name(a, from, from_end) || !put_name(b, to, to_end)) {
        errno = ENAMETOOLONG;
        return false;
    }
    return rename(a, b) == 0 || errno == ENOENT;
}

/* Where what was there goes: "PATH.replaced-20260301T120000Z". */
static bool name_replaced(const char *path, stg_restored *done)
{
    time_t now = time(NULL);
    struct tm tm;
    size_t length;

    gmtime_r(&now, &tm);
    length = (size_t)snprintf(done->replaced, sizeof done->replaced,
                              "%s.replaced-", path);
    if (length + 20 >= sizeof done->replaced) {
        errno = ENAMETOOLONG;
        return false;
    }
    strftime(done->replaced + length, sizeof done->replaced - length,
             "%Y%m%dT%H%M%SZ", &tm);
    return true;
}

/* The second name of the store that was there. A rename takes the first from it
 * then, and at no moment is the path without a store: a hub would begin an empty
 * one. Where the file system has no links it is moved, and there is a moment. */
static bool keep(const char *path, const char *replaced)
{
    if (link(path, replaced) == 0)
        return true;
    if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS)
        return access(replaced, F_OK) != 0 && rename(path, replaced) == 0;
    return false;
}

/* The files beside it get another name, too: SQLite would read a log, also that
 * of a store that somebody took away, into the one that is restored. If the
 * rename does not come, stg_store_lock_begin() takes all of this back. */
static bool put_aside(const char *path, bool was_there, stg_restored *done)
{
    char shm[PATH_ROOM];

    if (was_there)
        fold_wal(path);
    if (!name_replaced(path, done))
        return false;
    if (was_there && !keep(path, done->replaced))
        return false;
    if (put_name(shm, path, "-shm"))
        unlink(shm);
    if (!move(path, "-wal", done->replaced, "-wal") ||
        !move(path, "-journal", done->replaced, "-journal"))
        return false;
    if (!was_there)
        done->replaced[0] = '\0';
    return sync_directory(path);
}

static stg_status check_backup(const char *from, stg_error *err)
{
    stg_verified v;
    stg_status status;

    if (access(from, R_OK) != 0)
        return refuse(from, "cannot be read", err);
    status = stg_verify(from, &v, NULL, NULL, err);
    if (status != STG_OK || v.flaws == 0)
        return status;
    return stg_hub_refuse(
        err, STG_INVALID,
        "%s: is not sound (stagger store verify %s says how), and is "
        "not restored; take another backup",
        from, from);
}

/* The user, group and mode of a restored store; its lock has the first two. */
typedef struct copy_owner {
    uid_t user;
    gid_t group;
    mode_t mode;
} copy_owner;

/* The owner of the file that is replaced; where there is none, that of the folder,
 * for the hub's user must be able to make files in it. */
static bool copy_find_owner(const char *path, copy_owner *owner)
{
    char folder[PATH_ROOM];
    const char *slash = strrchr(path, '/');
    struct stat s;
    bool is_there = stat(path, &s) == 0;

    if (!is_there) {
        snprintf(folder, sizeof folder, "%.*s",
                 slash == NULL   ? 1
                 : slash == path ? 1
                                 : (int)(slash - path),
                 slash == NULL ? "." : path);
        if (stat(folder, &s) != 0)
            return false;
    }
    *owner =
        (copy_owner){s.st_uid, s.st_gid, is_there ? s.st_mode & 0777 : 0600};
    return true;
}

/* Gives an open file its owner. A group that this user may not give is left as it
 * is: the owner alone opens the store. */
static bool copy_give(int fd, const copy_owner *owner)
{
    struct stat s;

    if (fd < 0 || fstat(fd, &s) != 0)
        return false;
    if (s.st_uid != owner->user && fchown(fd, owner->user, (gid_t)-1) != 0)
        return false;
    return s.st_gid == owner->group ||
           fchown(fd, (uid_t)-1, owner->group) == 0 || errno == EPERM;
}

static bool copy_give_file(const char *path, const copy_owner *owner)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    bool is_given = copy_give(fd, owner) && fchmod(fd, owner->mode) == 0;

    if (fd >= 0)
        close(fd);
    return is_given;
}

static stg_status take_place(const char *path, const char *part, bool was_there,
                             stg_restored *done, stg_error *err)
{
    if (!sync_path(part, 0) || !put_aside(path, was_there, done) ||
        rename(part, path) != 0 || !sync_directory(path))
        return refuse(path, "cannot be put in its place", err);
    return STG_OK;
}

/* The claim is ours: nobody has the store. */
static stg_status restore(const char *from, const char *path, bool was_there,
                          const copy_owner *owner, stg_restored *done,
                          stg_error *err)
{
    char part[PATH_ROOM];
    stg_status status;

    if (!put_name(part, path, ".restore")) {
        errno = ENAMETOOLONG;
        return refuse(path, "cannot be made", err);
    }
    unlink(part); // of one that did not end
    status = copy(from, part, err);
    if (status == STG_OK)
        status = renew(part, err);
    if (status == STG_OK && !copy_give_file(part, owner))
        status = refuse(path, "cannot be given to the user of the store", err);
    if (status == STG_OK)
        status = take_place(path, part, was_there, done, err);
    if (status != STG_OK)
        unlink(part);
    return status;
}

/* The backup is checked before the lock is taken: that may take long, and needs
 * no lock. */
stg_status stg_copy_restore(const char *from, const char *path, bool is_forced,
                            stg_restored *done, stg_error *err)
{
    struct stat there, backup;
    bool was_there = stat(path, &there) == 0 && there.st_size > 0;
    stg_status status = check_backup(from, err);
    copy_owner owner;
    bool is_new;
    char *real;
    stg_store_lock lock;

    *done = (stg_restored){.replaced = ""};
    if (status != STG_OK)
        return status;
    if (was_there && stat(from, &backup) == 0 &&
        backup.st_dev == there.st_dev && backup.st_ino == there.st_ino) {
        return stg_hub_refuse(err, STG_INVALID,
                              "%s: is the store itself; name a backup", from);
    }
    if (was_there && !is_forced) {
        return stg_hub_refuse(
            err, STG_INVALID,
            "%s: there is a store already; --force puts it aside, and "
            "the backup in its place",
            path);
    }
    if (!copy_find_owner(path, &owner))
        return refuse(path, "cannot be made", err);
    status = stg_store_lock_begin(&lock, &is_new, path, err);
    if (status != STG_OK)
        return status;
    // A link stays a link.
    real = realpath(path, NULL);
    if (!copy_give(lock.beside, &owner))
        status = refuse(
            path, "its lock cannot be given to the user of the store", err);
    if (status == STG_OK)
        status = restore(from, real == NULL ? path : real, was_there, &owner,
                         done, err);
    free(real);
    if (status != STG_OK && is_new)
        stg_store_lock_remove(path);
    stg_store_lock_end(&lock);
    return status;
}
