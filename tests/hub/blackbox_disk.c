/* A disk for blackbox.py that can lose its power: a file system by FUSE, in
 * memory.
 *
 *     blackbox_disk FOLDER
 *
 * mounts itself there, says `mounted`, and goes with the end of its input, whose
 * lines are commands; each is answered with a line:
 *
 *     slow WRITE SYNC  microseconds that each takes from now on
 *     arm COUNT PID    the power goes at that write or sync from now on, or at
 *                      once: the process is killed, and nothing else works
 *     cut SEED         it is back; says what was lost
 *
 * What is lost: of the bytes that were not synced any sectors, and of the names
 * that were made or removed since their folder was synced the last ones. A sync
 * of a file is none of its name. */
#define FUSE_USE_VERSION 31
#include <errno.h>
#include <fuse.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <stagger/rng.h>

enum { SECTOR = 512, PATH = 256, NAMES = 256 };

typedef struct bytes {
    unsigned char *at;
    size_t size, room; // what is beyond size is zero
} bytes;

/* What came since the last sync, in order. */
typedef struct change {
    struct change *next;
    bool is_truncate; // to `at`
    size_t at, size;
    unsigned char data[];
} change;

typedef struct node {
    mode_t mode;
    bytes now, synced;
    change *first, **last;
} node;

typedef struct name {
    char path[PATH]; // "": free
    node *of;
} name;

/* A name that came, or went, or both at once. */
typedef struct renaming {
    struct renaming *next;
    char from[PATH], to[PATH]; // "": none
    node *of;
} renaming;

/* Operations of FUSE get nothing of ours that is easier to reach. */
static struct {
    pthread_mutex_t lock;
    name now[NAMES], synced[NAMES];
    renaming *first, **last;
    node root;
    useconds_t slow_write, slow_sync;
    bool is_off;
    unsigned long countdown; // 0: none
    pid_t pid;
    stg_rng rng;
    size_t sectors, sectors_lost, names, names_lost;
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *must(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

/* -- bytes ----------------------------------------------------------------- */

static void bytes_put(bytes *b, size_t at, const void *from, size_t size)
{
    if (at + size > b->room) {
        size_t room = 2 * (at + size);

        b->at = must(realloc(b->at, room));
        memset(b->at + b->room, 0, room - b->room);
        b->room = room;
    }
    memcpy(b->at + at, from, size);
    if (at + size > b->size)
        b->size = at + size;
}

static void bytes_cut(bytes *b, size_t size)
{
    if (size > b->size)
        bytes_put(b, size - 1, "", 1);
    else if (size < b->size)
        memset(b->at + size, 0, b->size - size);
    b->size = size;
}

static void apply(bytes *b, const change *c)
{
    if (c->is_truncate)
        bytes_cut(b, c->at);
    else
        bytes_put(b, c->at, c->data, c->size);
}

static void note(node *n, bool is_truncate, size_t at, const void *data,
                 size_t size)
{
    change *c = must(malloc(sizeof *c + size));

    *c = (change){.is_truncate = is_truncate, .at = at, .size = size};
    if (size > 0)
        memcpy(c->data, data, size);
    apply(&n->now, c);
    *n->last = c;
    n->last = &c->next;
}

/* -- names ----------------------------------------------------------------- */

static name *find(name *names, const char *path)
{
    for (int i = 0; i < NAMES; i++)
        if (strcmp(names[i].path, path) == 0)
            return &names[i];
    return NULL;
}

static void apply_name(name *names, const renaming *r)
{
    name *found;

    if (r->from[0] != '\0' && (found = find(names, r->from)) != NULL)
        found->path[0] = '\0';
    if (r->to[0] == '\0')
        return;
    found = find(names, r->to);
    if (found == NULL)
        found = must(find(names, ""));
    strcpy(found->path, r->to);
    found->of = r->of;
}

static int rename_to(const char *from, const char *to, node *of)
{
    renaming *r;

    if (strlen(from) >= PATH || strlen(to) >= PATH)
        return -ENAMETOOLONG;
    r = must(calloc(1, sizeof *r));
    r->of = of;
    strcpy(r->from, from);
    strcpy(r->to, to);
    apply_name(disk.now, r);
    *disk.last = r;
    disk.last = &r->next;
    return 0;
}

static bool is_in(const char *folder, const char *path)
{
    size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);

    return path[0] != '\0' && strncmp(path, folder, length) == 0 &&
           path[length] == '/' && strchr(path + length + 1, '/') == NULL;
}

static node *node_new(mode_t mode)
{
    node *n = must(calloc(1, sizeof *n));

    n->mode = mode;
    n->last = &n->first;
    return n;
}

static node *node_of(const char *path)
{
    name *found;

    if (strcmp(path, "/") == 0)
        return &disk.root;
    found = find(disk.now, path);
    return found != NULL ? found->of : NULL;
}

/* -- the power ------------------------------------------------------------- */

static void turn_off(void)
{
    disk.is_off = true;
    disk.countdown = 0;
    (void)kill(disk.pid, SIGKILL);
}

/* A write or a sync; false: it is the one at which the power goes. */
static bool count(void)
{
    if (disk.countdown == 1)
        turn_off();
    else if (disk.countdown > 0)
        disk.countdown--;
    return !disk.is_off;
}

/* How much of what was not synced, of 1000: all, some, or hardly any. */
static uint64_t draw_loss(void)
{
    return (uint64_t[]){1000, 900, 500, 100, 10}[stg_rng_upto(&disk.rng, 4)];
}

static bool is_lost(uint64_t loss)
{
    return stg_rng_upto(&disk.rng, 999) < loss;
}

static void apply_torn(bytes *b, const change *c, uint64_t loss)
{
    if (c->is_truncate && !is_lost(loss))
        apply(b, c);
    for (size_t at = 0; at < c->size; at += SECTOR) {
        size_t rest = c->size - at;

        disk.sectors++;
        if (is_lost(loss))
            disk.sectors_lost++;
        else
            bytes_put(b, c->at + at, c->data + at,
                      rest < SECTOR ? rest : SECTOR);
    }
}

/* All that was pending comes, or with a loss some of it. */
static void settle(node *n, uint64_t loss)
{
    while (n->first != NULL) {
        change *c = n->first;

        n->first = c->next;
        if (loss == 0)
            apply(&n->synced, c);
        else
            apply_torn(&n->synced, c, loss);
        free(c);
    }
    n->last = &n->first;
}

static void cut_names(void)
{
    bool is_over = false;
    uint64_t loss = draw_loss();

    while (disk.first != NULL) {
        renaming *r = disk.first;

        disk.first = r->next;
        is_over = is_over || is_lost(loss);
        disk.names++;
        if (is_over)
            disk.names_lost++;
        else
            apply_name(disk.synced, r);
        free(r);
    }
    disk.last = &disk.first;
    memcpy(disk.now, disk.synced, sizeof disk.now);
}

static void cut(uint64_t seed)
{
    disk.rng = stg_rng_seed(seed);
    disk.sectors = disk.sectors_lost = disk.names = disk.names_lost = 0;
    cut_names();
    for (int i = 0; i < NAMES; i++)
        if (disk.now[i].path[0] != '\0') {
            node *n = disk.now[i].of;

            settle(n, draw_loss());
            bytes_cut(&n->now, 0);
            if (n->synced.size > 0)
                bytes_put(&n->now, 0, n->synced.at, n->synced.size);
        }
    disk.is_off = false;
    printf("lost %zu of %zu sectors, %zu of %zu names\n", disk.sectors_lost,
           disk.sectors, disk.names_lost, disk.names);
}

/* -- operations ------------------------------------------------------------ */

/* Returns with the lock held and its node, or without it and an error. A file
 * that is open needs no name. */
static int enter(const char *path, const struct fuse_file_info *file, node **n)
{
    pthread_mutex_lock(&disk.lock);
    *n = file != NULL && file->fh != 0 ? (node *)(uintptr_t)file->fh
                                       : node_of(path);
    if (!disk.is_off && *n != NULL)
        return 0;
    pthread_mutex_unlock(&disk.lock);
    return *n == NULL ? -ENOENT : -EIO;
}

static int leave(int answer)
{
    pthread_mutex_unlock(&disk.lock);
    return answer;
}

static int on_getattr(const char *path, struct stat *to,
                      struct fuse_file_info *file)
{
    node *n;
    int error = enter(path, file, &n);

    if (error != 0)
        return error;
    to->st_mode = n->mode;
    to->st_nlink = 1;
    to->st_uid = getuid();
    to->st_gid = getgid();
    to->st_size = (off_t)n->now.size;
    to->st_blocks = (blkcnt_t)(n->now.size / SECTOR);
    return leave(0);
}

static int on_readdir(const char *path, void *to, fuse_fill_dir_t fill,
                      off_t from, struct fuse_file_info *file,
                      enum fuse_readdir_flags flags)
{
    node *n;
    int error = enter(path, file, &n);

    (void)from;
    (void)flags;
    if (error != 0)
        return error;
    for (int i = 0; i < NAMES; i++)
        if (is_in(path, disk.now[i].path))
            fill(to, strrchr(disk.now[i].path, '/') + 1, NULL, 0, 0);
    return leave(0);
}

static int make(const char *path, node *n)
{
    int error = -EIO;

    pthread_mutex_lock(&disk.lock);
    if (!disk.is_off)
        error = rename_to("", path, n);
    return leave(error);
}

static int on_create(const char *path, mode_t mode, struct fuse_file_info *file)
{
    node *n = node_new(S_IFREG | mode);

    file->fh = (uintptr_t)n;
    return make(path, n);
}

static int on_mkdir(const char *path, mode_t mode)
{
    return make(path, node_new(S_IFDIR | mode));
}

static int on_open(const char *path, struct fuse_file_info *file)
{
    node *n;
    int error = enter(path, file, &n);

    if (error != 0)
        return error;
    file->fh = (uintptr_t)n;
    return leave(0);
}

static int on_unlink(const char *path)
{
    node *n;
    int error = enter(path, NULL, &n);

    return error != 0 ? error : leave(rename_to(path, "", NULL));
}

static int on_rename(const char *from, const char *to, unsigned flags)
{
    node *n;
    int error = flags != 0 ? -EINVAL : enter(from, NULL, &n);

    if (error != 0)
        return error;
    // Of what a folder has, too: nobody does that to a store.
    return leave(S_ISDIR(n->mode) ? -EXDEV : rename_to(from, to, n));
}

static int on_chmod(const char *path, mode_t mode, struct fuse_file_info *file)
{
    node *n;
    int error = enter(path, file, &n);

    if (error != 0)
        return error;
    n->mode = (n->mode & S_IFMT) | (mode & 07777);
    return leave(0);
}

static int on_read(const char *path, char *to, size_t size, off_t from,
                   struct fuse_file_info *file)
{
    size_t at = (size_t)from, there = 0;
    node *n;
    int error = enter(path, file, &n);

    if (error != 0)
        return error;
    if (at < n->now.size) {
        there = n->now.size - at < size ? n->now.size - at : size;
        memcpy(to, n->now.at + at, there);
    }
    return leave((int)there);
}

static int on_write(const char *path, const char *from, size_t size, off_t at,
                    struct fuse_file_info *file)
{
    node *n;
    int error;

    usleep(disk.slow_write);
    error = enter(path, file, &n);
    if (error != 0)
        return error;
    note(n, false, (size_t)at, from, size);
    return leave(count() ? (int)size : -EIO);
}

static int on_truncate(const char *path, off_t size,
                       struct fuse_file_info *file)
{
    node *n;
    int error = enter(path, file, &n);

    if (error != 0)
        return error;
    note(n, true, (size_t)size, NULL, 0);
    return leave(count() ? 0 : -EIO);
}

static int on_fsync(const char *path, int is_data_only,
                    struct fuse_file_info *file)
{
    node *n;
    int error;

    (void)is_data_only;
    usleep(disk.slow_sync);
    error = enter(path, file, &n);
    if (error != 0)
        return error;
    if (!count())
        return leave(-EIO);
    settle(n, 0);
    return leave(0);
}

static int on_fsyncdir(const char *path, int is_data_only,
                       struct fuse_file_info *file)
{
    node *n;
    int error = enter(path, file, &n);

    (void)is_data_only;
    if (error != 0)
        return error;
    if (!count())
        return leave(-EIO);
    for (renaming **at = &disk.first; *at != NULL;) {
        renaming *r = *at;

        if (!is_in(path, r->to) && !is_in(path, r->from)) {
            at = &r->next;
            continue;
        }
        apply_name(disk.synced, r);
        *at = r->next;
        if (disk.last == &r->next)
            disk.last = at;
        free(r);
    }
    return leave(0);
}

static int on_statfs(const char *path, struct statvfs *to)
{
    (void)path;
    *to = (struct statvfs){.f_bsize = 4096, .f_frsize = 4096};
    to->f_blocks = to->f_bfree = to->f_bavail = 1 << 19;
    to->f_namemax = PATH - 1;
    return 0;
}

/* What a cut has changed must not be kept by the system. */
static void *on_init(struct fuse_conn_info *connection, struct fuse_config *c)
{
    (void)connection;
    c->entry_timeout = c->attr_timeout = c->negative_timeout = 0;
    c->hard_remove = 1;
    return NULL;
}

static const struct fuse_operations operations = {.init = on_init,
                                                  .getattr = on_getattr,
                                                  .readdir = on_readdir,
                                                  .create = on_create,
                                                  .mkdir = on_mkdir,
                                                  .open = on_open,
                                                  .unlink = on_unlink,
                                                  .rmdir = on_unlink,
                                                  .rename = on_rename,
                                                  .chmod = on_chmod,
                                                  .read = on_read,
                                                  .write = on_write,
                                                  .truncate = on_truncate,
                                                  .fsync = on_fsync,
                                                  .fsyncdir = on_fsyncdir,
                                                  .statfs = on_statfs};

/* -- commands -------------------------------------------------------------- */

static void obey(const char *line)
{
    unsigned long one, other;
    unsigned long long seed;

    pthread_mutex_lock(&disk.lock);
    if (sscanf(line, "slow %lu %lu", &one, &other) == 2) {
        disk.slow_write = (useconds_t)one;
        disk.slow_sync = (useconds_t)other;
        puts("slow");
    } else if (sscanf(line, "arm %lu %lu", &one, &other) == 2 && other > 1) {
        disk.pid = (pid_t)other;
        disk.countdown = one;
        if (one == 0)
            turn_off();
        puts("armed");
    } else if (sscanf(line, "cut %llu", &seed) == 1) {
        cut(seed);
    } else {
        puts("what?");
    }
    fflush(stdout);
    pthread_mutex_unlock(&disk.lock);
}

static void *listen_to(void *fuse)
{
    char line[100];

    while (fgets(line, sizeof line, stdin) != NULL)
        obey(line);
    fuse_exit(fuse);
    fuse_unmount(fuse);
    exit(0);
}

int main(int argc, char **argv)
{
    struct fuse_args none = FUSE_ARGS_INIT(1, argv);
    pthread_t thread;
    struct fuse *f;

    if (argc != 2)
        return 2;
    disk.last = &disk.first;
    disk.root.mode = S_IFDIR | 0755;
    f = fuse_new(&none, &operations, sizeof operations, NULL);
    if (f == NULL || fuse_mount(f, argv[1]) != 0)
        return 1;
    puts("mounted");
    fflush(stdout);
    if (pthread_create(&thread, NULL, listen_to, f) != 0)
        return 1;
    return fuse_loop(f);
}
