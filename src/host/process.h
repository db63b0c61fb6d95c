/* process.h - the process as the system has it: signals, threads, what it uses of
 * the machine, and which files only it may use. */
#ifndef STAGGER_HOST_PROCESS_H
#define STAGGER_HOST_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <uv.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

#include <stagger/ns.h>
#include <stagger/status.h>

/* -- SIGTERM and SIGINT, and maybe SIGHUP, as events of the loop ----------------
 *
 * They do not keep the loop alive. All on the loop's thread. */

typedef struct stg_signals {
    uv_signal_t terminate, interrupt, hang_up;
    void (*told)(void *ctx, int signal);
    void *ctx;
} stg_signals;

/* told is called for each signal from here on. Returns STG_IO when the system
 * has no room for it; then there is nothing to close. */
stg_status stg_signals_open(stg_signals *s, uv_loop_t *loop,
                            void (*told)(void *ctx, int signal), void *ctx,
                            stg_error *err);

/* told is called for SIGHUP, too; without this it does what it did. */
void stg_signals_take_hang_up(stg_signals *s);

/* They kill again. The memory is free once the loop has run. */
void stg_signals_close(stg_signals *s);

/* -- what it uses --------------------------------------------------------------- */

typedef struct stg_process_view {
    stg_ns cpu;         /* used, in user and system mode */
    uint64_t resident;  /* bytes; 0: the system does not say */
    uint64_t files;     /* open descriptors; 0: the system does not say */
    uint64_t files_max; /* STG_UNLIMITED: no limit */
} stg_process_view;

/* Any thread; opens files of /proc, so it is not for the loop. */
void stg_process_look(stg_process_view *view);

/* Gives back to the system what the C library holds and nobody uses; where that
 * cannot be told to, nothing. It looks at all free memory, for a millisecond or so of a
 * large process: not for the loop, nor often. Any thread. */
void stg_process_trim(void);

/* Whether there is memory for the loop to watch this file, too: libuv ends the process
 * where its table of files cannot grow (maybe_resize() of its core.c). Asked by the
 * loop's thread, just before. */
bool stg_process_can_watch(const uv_loop_t *loop, int fd);

/* Threads of libuv's pool: UV_THREADPOOL_SIZE of the environment, else 4. */
uint32_t stg_process_pool(void);

/* Names the calling thread, for `top -H`, perf and debuggers. name: 15
 * characters at most; the system cuts a longer one. */
static inline void stg_thread_name(const char *name)
{
#ifdef __linux__
    (void)prctl(PR_SET_NAME, name, 0, 0, 0);
#else
    (void)name;
#endif
}

/* -- files ---------------------------------------------------------------------- */

/* Whether only the hub may use a file: others may do nothing with it, and its
 * group at most read it, if this process is in that group: Docker and Kubernetes
 * hand secrets out as 0440 or 0640. */
bool stg_file_is_private(const struct stat *s);

#endif
