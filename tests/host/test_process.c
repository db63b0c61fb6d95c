#include "host/process.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness.h"

/* Sanitizers would end the process where there is no memory. Their libraries look for
 * these in the program. */
#define SEEN __attribute__((visibility("default")))
// NOLINTBEGIN(bugprone-reserved-identifier)
SEEN const char *__asan_default_options(void);
SEEN const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}
// NOLINTEND(bugprone-reserved-identifier)

/* Bytes of addresses that the process has. */
static size_t find_size(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    CHECK(file != NULL);
    CHECK(fscanf(file, "%lu", &pages) == 1); // NOLINT(cert-err34-c)
    (void)fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* The table for the file would have 64 MB. */
TEST(process, says_whether_a_loop_has_memory_to_watch_a_file)
{
    enum { FAR = 1 << 22, ROOM = 16 << 20 };
    struct rlimit limit;
    uv_loop_t loop;
    int status;
    pid_t child;

    CHECK(uv_loop_init(&loop) == 0);
    CHECK(stg_process_can_watch(&loop, 0));
    CHECK(stg_process_can_watch(&loop, FAR));
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        limit.rlim_cur = limit.rlim_max = find_size() + ROOM;
        if (setrlimit(RLIMIT_AS, &limit) != 0)
            _exit(2);
        _exit(stg_process_can_watch(&loop, 1000) &&
                      !stg_process_can_watch(&loop, FAR)
                  ? 0
                  : 1);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(uv_loop_close(&loop) == 0);
}
