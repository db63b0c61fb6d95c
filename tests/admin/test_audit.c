/* The audit log's file. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "admin/internal.h"
#include "tests/harness.h"

static void count(void *ctx)
{
    ++*(int *)ctx;
}

static void say(stg_audit *a, uv_loop_t *loop, const char *action)
{
    int done = 0;

    stg_audit_write(a, json_pack("{s:s}", "action", action), count, &done);
    while (done == 0)
        uv_run(loop, UV_RUN_ONCE);
}

static void limit_files(rlim_t size)
{
    struct rlimit most;

    CHECK_INT(getrlimit(RLIMIT_FSIZE, &most), 0);
    most.rlim_cur = size;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &most), 0);
}

static const char *read_file(const char *path, char text[256])
{
    FILE *file = fopen(path, "r");
    size_t size = fread(text, 1, 255, file);

    fclose(file);
    text[size] = '\0';
    return text;
}

/* A full disk takes the first bytes of a line, too. */
TEST(audit, keeps_no_half_of_a_line)
{
    char path[] = "/tmp/stagger-audit-XXXXXX", text[256];
    int closed = 0, fd = mkstemp(path);
    stg_audit a;
    uv_loop_t loop;

    CHECK(fd >= 0);
    close(fd);
    signal(SIGXFSZ, SIG_IGN);
    uv_loop_init(&loop);
    CHECK_INT(stg_audit_open(&a, &loop, NULL, path, NULL, NULL), STG_OK);
    say(&a, &loop, "pause");
    limit_files(30);
    say(&a, &loop, "resume");
    limit_files(RLIM_INFINITY);
    say(&a, &loop, "forget");
    CHECK_STR(read_file(path, text),
              "{\"action\": \"pause\"}\n{\"action\": \"forget\"}\n");
    stg_audit_close(&a, count, &closed);
    CHECK_INT(closed, 1);
    CHECK_INT(uv_loop_close(&loop), 0);
    unlink(path);
}
