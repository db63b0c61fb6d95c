/* The place of a store's files: whether their names still lead to the files
 * that SQLite has open.
 *
 * A file that was removed or renamed is written to as before, and is gone with
 * the process: so the names are looked at before an answer promises anything. A
 * name leads to a device and an inode. The shared memory (-shm) has the locks: a
 * second one lets other programs write to the log under this process. */
#include "store/store_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/refuse.h"

static const char *const files_ends[] = {[STG_STORE_FILE_OWN] = "",
                                         [STG_STORE_FILE_LOG] = "-wal",
                                         [STG_STORE_FILE_LOCKS] = "-shm"};

static bool store_files_find(const char *name, stg_file_id *id)
{
    struct stat s;

    if (stat(name, &s) != 0)
        return false;
    *id = (stg_file_id){s.st_dev, s.st_ino, (uint64_t)s.st_size};
    return true;
}

static char *files_join(const char *path, const char *end)
{
    size_t size = strlen(path) + strlen(end) + 1;
    char *all = malloc(size);

    if (all != NULL)
        snprintf(all, size, "%s%s", path, end);
    return all;
}

/* The store's own file is looked for by the name of the settings: a link that
 * leads elsewhere by now is another store for the next start. The others are
 * where SQLite makes them, beside the file that the link leads to. */
stg_status stg_store_files_begin(stg_store_files *p, const char *path,
                                 stg_error *err)
{
    char *real = realpath(path, NULL);
    bool is_found = real != NULL;

    for (size_t i = 0; i < STG_STORE_FILES && is_found; i++) {
        p->names[i] =
            files_join(i == STG_STORE_FILE_OWN ? path : real, files_ends[i]);
        is_found =
            p->names[i] != NULL && store_files_find(p->names[i], &p->ids[i]);
    }
    p->is_known = is_found;
    p->log_size = p->ids[STG_STORE_FILE_LOG].size;
    free(real);
    return is_found ? STG_OK
                    : stg_hub_refuse(err, STG_IO,
                                     "%s: its files cannot be found: %s", path,
                                     strerror(errno));
}

static bool files_has(const stg_store_files *p, size_t i, stg_file_id *now)
{
    return store_files_find(p->names[i], now) &&
           now->device == p->ids[i].device && now->inode == p->ids[i].inode;
}

static void files_say(const stg_store_files *p, size_t i, stg_error *why)
{
    stg_file_id now;
    bool is_there = store_files_find(p->names[i], &now);

    (void)stg_hub_refuse(
        why, STG_IO,
        "%s: %s%s while the hub had it; nothing more is accepted: put it back, "
        "or a backup in its place, before the next start",
        p->names[i], is_there ? "was replaced by another file" : "is gone: ",
        is_there ? "" : strerror(errno));
}

/* The system may be short of memory for the look: that moves no file. */
bool stg_store_files_look(stg_store_files *p, stg_error *why)
{
    stg_file_id now;

    for (size_t i = 0; i < STG_STORE_FILES && p->is_known; i++) {
        errno = 0;
        if (files_has(p, i, &now)) {
            if (i == STG_STORE_FILE_LOG)
                p->log_size = now.size;
        } else if (errno != ENOMEM && errno != EINTR) {
            files_say(p, i, why);
            return false;
        }
    }
    return true;
}

bool stg_store_files_has_log(const stg_store_files *p)
{
    stg_file_id now;

    return !p->is_known || files_has(p, STG_STORE_FILE_LOG, &now);
}

/* SQLite's locks of reads in the shared memory: WAL_READ_LOCK of its wal.c, at
 * UNIX_SHM_BASE of its os_unix.c. */
enum { FILES_READ_FROM = 123, FILES_READ_TO = 127 };

/* Reads a line of /proc/locks. Returns the process that holds a read; 0: this line
 * is another lock. */
static long files_read_lock(const stg_store_files *p, const char *line)
{
    char kind[16], how[16], process[24], place[64], from[24];
    const char *inode;
    unsigned long long first;
    long id;

    if (sscanf(line, "%*s %15s %*s %15s %23s %63s %23s", kind, how, process,
               place, from) != 5 ||
        strcmp(kind, "POSIX") != 0 || strcmp(how, "READ") != 0)
        return 0;
    inode = strrchr(place, ':'); // behind the device's two numbers
    first = strtoull(from, NULL, 10);
    if (inode == NULL ||
        strtoull(inode + 1, NULL, 10) != p->ids[STG_STORE_FILE_LOCKS].inode ||
        first < FILES_READ_FROM || first > FILES_READ_TO)
        return 0;
    id = strtol(process, NULL, 10);
    return id == (long)getpid() || id < 0 ? 0 : id;
}

void stg_store_files_reader(const stg_store_files *p, char *who, size_t size)
{
    char line[160], path[48], name[32] = "";
    FILE *locks = fopen("/proc/locks", "re");
    FILE *comm;
    long process = 0;

    while (locks != NULL && process == 0 &&
           fgets(line, sizeof line, locks) != NULL)
        process = files_read_lock(p, line);
    if (locks != NULL)
        fclose(locks);
    snprintf(path, sizeof path, "/proc/%ld/comm", process);
    comm = process > 0 ? fopen(path, "re") : NULL;
    if (comm != NULL && fgets(name, sizeof name, comm) != NULL)
        name[strcspn(name, "\n")] = '\0';
    if (comm != NULL)
        fclose(comm);
    if (process == 0)
        snprintf(who, size, "another process");
    else
        snprintf(who, size, "process %ld%s%s%s", process,
                 *name == '\0' ? "" : " (", name, *name == '\0' ? "" : ")");
}

void stg_store_files_end(stg_store_files *p)
{
    for (size_t i = 0; i < STG_STORE_FILES; i++)
        free(p->names[i]);
    *p = (stg_store_files){.is_known = false};
}
