#include "host/notify.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/harness.h"

/* The service manager, and an owner that it asks after. */
typedef struct manager {
    uv_loop_t loop;
    stg_deadlines deadlines;
    stg_notify notify;
    struct sockaddr_un address;
    int fd;
    int asked;
    bool is_well; /* the owner answers */
    const char *status;
    char heard[512]; /* the last message */
} manager;

static void ask(void *ctx)
{
    manager *m = ctx;

    m->asked++;
    if (m->is_well)
        stg_notify_alive(&m->notify);
}

static void status(void *ctx, char text[STG_NOTIFY_STATUS_MAX])
{
    const manager *m = ctx;

    snprintf(text, STG_NOTIFY_STATUS_MAX, "%s", m->status);
}

/* watchdog: microseconds, as a text; NULL: no signs of life are wanted. */
static void begin(manager *m, const char *watchdog)
{
    stg_notify_options o = {.ask = ask, .status = status, .ctx = m};

    memset(m, 0, sizeof *m);
    m->is_well = true;
    m->status = "fine";
    CHECK(uv_loop_init(&m->loop) == 0);
    stg_deadlines_init(&m->deadlines, &m->loop);
    m->address.sun_family = AF_UNIX;
    snprintf(m->address.sun_path, sizeof m->address.sun_path,
             "/tmp/stagger-notify-%d", (int)getpid());
    m->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    CHECK(bind(m->fd, (struct sockaddr *)&m->address, sizeof m->address) == 0);
    setenv("NOTIFY_SOCKET", m->address.sun_path, 1);
    if (watchdog != NULL)
        setenv("WATCHDOG_USEC", watchdog, 1);
    stg_notify_open(&m->notify, &m->deadlines, &o);
}

static void closed(void *ctx)
{
    (void)ctx;
}

static void end(manager *m)
{
    stg_notify_close(&m->notify);
    stg_deadlines_close(&m->deadlines, closed, NULL);
    CHECK(uv_run(&m->loop, UV_RUN_DEFAULT) == 0);
    CHECK(uv_loop_close(&m->loop) == 0);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    close(m->fd);
    unlink(m->address.sun_path);
}

/* The next message; "" where there is none. */
static const char *hear(manager *m)
{
    ssize_t size = recv(m->fd, m->heard, sizeof m->heard - 1, 0);

    m->heard[size > 0 ? size : 0] = '\0';
    return m->heard;
}

/* The next one, which the loop brings. */
static const char *wait_to_hear(manager *m)
{
    while (*hear(m) == '\0')
        CHECK(uv_run(&m->loop, UV_RUN_ONCE) != 0);
    return m->heard;
}

TEST(notify, says_that_it_is_ready_and_how_it_is)
{
    manager m;

    begin(&m, NULL);
    CHECK_STR(hear(&m), "");
    stg_notify_ready(&m.notify);
    CHECK_STR(hear(&m), "READY=1\nSTATUS=fine");
    CHECK_STR(hear(&m), "");
    end(&m);
}

TEST(notify, says_when_a_reload_began)
{
    unsigned long long microseconds;
    stg_ns before, at;
    manager m;
    char more;

    begin(&m, NULL);
    stg_notify_ready(&m.notify);
    hear(&m);
    before = stg_deadlines_now();
    stg_notify_reloading(&m.notify);
    CHECK_INT(sscanf(hear(&m), "RELOADING=1\nMONOTONIC_USEC=%llu%c",
                     &microseconds, &more),
              1);
    at = microseconds * STG_US;
    CHECK(at >= before - STG_US && at <= stg_deadlines_now());
    // The status was told before, and is not told again.
    stg_notify_ready(&m.notify);
    CHECK_STR(hear(&m), "READY=1");
    end(&m);
}

TEST(notify, says_how_long_its_end_may_take)
{
    manager m;

    begin(&m, NULL);
    m.status = "stopping";
    stg_notify_stopping(&m.notify, 70 * STG_S);
    CHECK_STR(hear(&m),
              "STOPPING=1\nEXTEND_TIMEOUT_USEC=70000000\nSTATUS=stopping");
    end(&m);
}

TEST(notify, gives_signs_of_life_while_its_owner_answers)
{
    manager m;

    begin(&m, "20000");
    CHECK_U64(m.notify.every, 10 * STG_MS);
    CHECK_STR(wait_to_hear(&m), "WATCHDOG=1\nSTATUS=fine");
    CHECK_STR(wait_to_hear(&m), "WATCHDOG=1");
    m.status = "busy";
    CHECK_STR(wait_to_hear(&m), "WATCHDOG=1\nSTATUS=busy");
    CHECK_INT(m.asked, 3);
    end(&m);
}

TEST(notify, gives_none_and_asks_no_more_until_its_owner_has_answered)
{
    manager m;

    begin(&m, "2000");
    m.is_well = false;
    while (m.asked == 0)
        uv_run(&m.loop, UV_RUN_ONCE);
    for (int i = 0; i < 20; i++)
        uv_run(&m.loop, UV_RUN_ONCE);
    CHECK_INT(m.asked, 1);
    CHECK_STR(hear(&m), "");
    m.is_well = true;
    stg_notify_alive(&m.notify);
    CHECK_STR(hear(&m), "WATCHDOG=1\nSTATUS=fine");
    CHECK_STR(wait_to_hear(&m), "WATCHDOG=1");
    end(&m);
}

TEST(notify, is_silent_where_nobody_waits_for_signs_of_life)
{
    manager m;

    begin(&m, NULL);
    CHECK_U64(m.notify.every, 0);
    stg_notify_alive(&m.notify);
    CHECK_INT(uv_run(&m.loop, UV_RUN_NOWAIT), 0);
    CHECK_STR(hear(&m), "");
    end(&m);
}

TEST(notify, is_silent_when_it_is_closed_and_without_a_manager)
{
    stg_notify_options o = {.ask = ask, .status = status};
    manager m;

    begin(&m, "20000");
    stg_notify_close(&m.notify);
    CHECK_INT(uv_run(&m.loop, UV_RUN_NOWAIT), 0);
    stg_notify_ready(&m.notify);
    stg_notify_reloading(&m.notify);
    stg_notify_stopping(&m.notify, STG_S);
    stg_notify_alive(&m.notify);
    CHECK_STR(hear(&m), "");
    unsetenv("NOTIFY_SOCKET");
    stg_notify_open(&m.notify, &m.deadlines, &o);
    CHECK_INT(uv_run(&m.loop, UV_RUN_NOWAIT), 0);
    stg_notify_ready(&m.notify);
    CHECK_STR(hear(&m), "");
    end(&m);
}
