#include "cli/sim/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* A million clients, each in a page of its own at each step, wait for the table
 * of pages as long as for what is in them. */
static void *allocate(void *ctx, size_t size)
{
    const size_t huge = (size_t)2 << 20;
    size_t whole = (size + huge - 1) / huge * huge;
    void *bytes;

    (void)ctx;
    if (size < huge || whole < size)
        return malloc(size);
    bytes = aligned_alloc(huge, whole);
#ifdef MADV_HUGEPAGE
    if (bytes != NULL)
        (void)madvise(bytes, whole, MADV_HUGEPAGE);
#endif
    return bytes;
}

static void release(void *ctx, void *bytes)
{
    (void)ctx;
    free(bytes);
}

stg_memory stg_sim_memory(void)
{
    return (stg_memory){allocate, release, NULL};
}

/* The number in the file behind `key`, or alone in it if that is "". Not found,
 * or no number: UINT64_MAX. */
static uint64_t read_number(const char *path, const char *key)
{
    FILE *file = fopen(path, "re");
    uint64_t number = UINT64_MAX;
    char line[128], *end;

    if (file == NULL)
        return number;
    while (fgets(line, sizeof line, file) != NULL) {
        const char *text = line + strlen(key);
        unsigned long long found;

        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        found = strtoull(text, &end, 10);
        if (end != text)
            number = found;
        break;
    }
    fclose(file);
    return number;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t read_system(void)
{
    uint64_t kib = read_number("/proc/meminfo", "MemAvailable:");

    return kib == UINT64_MAX ? kib : kib * 1024;
}

/* Of the group of processes that we are in, as a container sees it. */
static uint64_t read_group(void)
{
    uint64_t limit = read_number("/sys/fs/cgroup/memory.max", "");
    uint64_t used = read_number("/sys/fs/cgroup/memory.current", "");

    if (limit == UINT64_MAX || used == UINT64_MAX)
        return UINT64_MAX;
    return limit > used ? limit - used : 0;
}

static uint64_t read_limit(int resource)
{
    struct rlimit limit;

    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    return limit.rlim_cur;
}

/* What the limits leave of addresses: a part of them is taken. */
static uint64_t read_limits(void)
{
    uint64_t most = least(read_limit(RLIMIT_AS), read_limit(RLIMIT_DATA));
    uint64_t kib = read_number("/proc/self/status", "VmSize:");

    if (most == UINT64_MAX || kib == UINT64_MAX)
        return most;
    return most > kib * 1024 ? most - kib * 1024 : 0;
}

uint64_t stg_sim_memory_left(void)
{
    return least(least(read_system(), read_group()), read_limits());
}
