/* What the system says of the process; called on the thread that prints,
 * because it reads /proc. */
#include "metrics/snapshot.h"

#include <dirent.h>
#include <sys/resource.h>
#include <uv.h>

#include <stagger/policy.h>

static stg_ns time_of(const uv_timeval_t *t)
{
    return (stg_ns)t->tv_sec * STG_S + (stg_ns)t->tv_usec * STG_US;
}

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
