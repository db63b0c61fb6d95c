/* What the system has to do with this process as a whole: signals, what it uses,
 * and whose the files are that it is given. */
#include "host/process.h"

#include <dirent.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <stagger/policy.h>

#include "base/refuse.h"

/* -- signals ------------------------------------------------------------------ */

/* In the loop's own turn, and not in a signal handler: anything may be
 * called. */
static void pass_on(uv_signal_t *handle, int signal)
{
    stg_signals *s = handle->data;

    s->told(s->ctx, signal);
}

static int watch(stg_signals *s, uv_signal_t *handle, int signal)
{
    handle->data = s;
    uv_unref((uv_handle_t *)handle);
    return uv_signal_start(handle, pass_on, signal);
}

stg_status stg_signals_open(stg_signals *s, uv_loop_t *loop,
                            void (*told)(void *ctx, int signal), void *ctx,
                            stg_error *err)
{
    int error = uv_signal_init(loop, &s->terminate);

    s->told = told;
    s->ctx = ctx;
    // What makes room for signals in a loop is made once, by the first.
    if (error == 0) {
        (void)uv_signal_init(loop, &s->interrupt);
        (void)uv_signal_init(loop, &s->hang_up);
        error = watch(s, &s->terminate, SIGTERM);
        if (error == 0)
            error = watch(s, &s->interrupt, SIGINT);
        if (error == 0)
            return STG_OK;
        stg_signals_close(s);
    }
    return stg_hub_refuse(err, STG_IO, "cannot watch for signals: %s",
                          uv_strerror(error));
}

void stg_signals_take_hang_up(stg_signals *s)
{
    (void)watch(s, &s->hang_up, SIGHUP); // there is room: see above
}

void stg_signals_close(stg_signals *s)
{
    uv_close((uv_handle_t *)&s->terminate, NULL);
    uv_close((uv_handle_t *)&s->interrupt, NULL);
    uv_close((uv_handle_t *)&s->hang_up, NULL);
}

/* -- what it uses ------------------------------------------------------------- */

static stg_ns time_of(const uv_timeval_t *t)
{
    return (stg_ns)t->tv_sec * STG_S + (stg_ns)t->tv_usec * STG_US;
}

/* Of /proc, which other systems do not have: 0 there. */
static uint64_t count_files(void)
{
    enum { NOT_FILES = 3 }; // ".", "..", and the directory itself
    DIR *all = opendir("/proc/self/fd");
    uint64_t count = 0;

    if (all == NULL)
        return 0;
    while (readdir(all) != NULL)
        count++;
    closedir(all);
    return count > NOT_FILES ? count - NOT_FILES : 0;
}

static uint64_t find_files_max(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 ||
        limit.rlim_cur == RLIM_INFINITY)
        return STG_UNLIMITED;
    return limit.rlim_cur;
}

void stg_process_look(stg_process_view *view)
{
    uv_rusage_t usage;
    size_t resident = 0;

    *view = (stg_process_view){.files = count_files(),
                               .files_max = find_files_max()};
    if (uv_getrusage(&usage) == 0)
        view->cpu =
            stg_ns_add(time_of(&usage.ru_utime), time_of(&usage.ru_stime));
    if (uv_resident_set_memory(&resident) == 0)
        view->resident = resident;
}

void stg_process_trim(void)
{
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

/* The table has a power of two of places, of which two are for other things. Another
 * thread may take what is given back here, in the moment until libuv asks for it.
 * (Volatile, for compilers may leave out an allocation that nothing is made of.) */
bool stg_process_can_watch(const uv_loop_t *loop, int fd)
{
    size_t places = 64;
    void *volatile table;
    bool is_there;

    if ((unsigned)fd < loop->nwatchers)
        return true;
    while (places < (size_t)fd + 3)
        places *= 2;
    table = malloc(places * sizeof(void *));
    is_there = table != NULL;
    free(table);
    return is_there;
}

uint32_t stg_process_pool(void)
{
    const char *text = getenv("UV_THREADPOOL_SIZE");
    long size = text == NULL ? 4 : strtol(text, NULL, 10);

    return size < 1 ? 1 : size > 1024 ? 1024 : (uint32_t)size;
}

/* -- files that only it may use ------------------------------------------------ */

static bool is_ours(gid_t group)
{
    int count = getgroups(0, NULL);
    gid_t *all = count > 0 ? calloc((size_t)count, sizeof *all) : NULL;
    bool is_found = group == getegid();

    if (all != NULL)
        count = getgroups(count, all);
    for (int i = 0; all != NULL && i < count && !is_found; i++)
        is_found = all[i] == group;
    free(all);
    return is_found;
}

bool stg_file_is_private(const struct stat *s)
{
    mode_t others = s->st_mode & (S_IRWXG | S_IRWXO);

    return others == 0 || (others == S_IRGRP && is_ours(s->st_gid));
}
