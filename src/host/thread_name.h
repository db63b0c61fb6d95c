/* thread_name.h - the name of the calling thread, for `top -H`, perf and
 * debuggers. */
#ifndef STAGGER_HOST_THREAD_NAME_H
#define STAGGER_HOST_THREAD_NAME_H

#ifdef __linux__
#include <sys/prctl.h>
#endif

/* name: 15 characters at most; the system cuts a longer one. */
static inline void stg_thread_name(const char *name)
{
#ifdef __linux__
    (void)prctl(PR_SET_NAME, name, 0, 0, 0);
#else
    (void)name;
#endif
}

#endif
