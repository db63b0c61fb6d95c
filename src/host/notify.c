/* What the service manager is told, by sd_notify(3): ready, reloading, stopping, a line of
 * status, and the watchdog. Without a socket in the environment all of it does
 * nothing. */
#include "host/notify.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef STAGGER_SYSTEMD
#include <systemd/sd-daemon.h>

static bool has_manager(void)
{
    return getenv("NOTIFY_SOCKET") != NULL;
}

static stg_ns watchdog(void)
{
    uint64_t microseconds;

    return sd_watchdog_enabled(0, &microseconds) > 0 ? microseconds * STG_US
                                                     : 0;
}

/* That he cannot be told is nothing that we could tell anybody else. */
static void tell(const char *lines)
{
    (void)sd_notify(0, lines);
}
#else
static bool has_manager(void)
{
    return false;
}

static stg_ns watchdog(void)
{
    return 0;
}

static void tell(const char *lines)
{
    (void)lines;
}
#endif

enum { LINES_MAX = STG_NOTIFY_STATUS_MAX + 128 };

/* The status goes behind other lines, if it is news. */
static void tell_status(stg_notify *n, const char *lines)
{
    char status[STG_NOTIFY_STATUS_MAX] = "", text[LINES_MAX];

    n->o.status(n->o.ctx, status);
    if (strcmp(status, n->told) == 0) {
        tell(lines);
        return;
    }
    memcpy(n->told, status, sizeof status);
    snprintf(text, sizeof text, "%s\nSTATUS=%s", lines, status);
    tell(text);
}

/* An owner that has not answered is not asked again, and sends no sign of
 * life: that is how the manager notices that it hangs. */
static void beat(stg_deadline *d)
{
    stg_notify *n = STG_HEAP_HOLDER(d, stg_notify, beat);

    stg_deadline_set(n->deadlines, d,
                     stg_ns_add(stg_deadlines_now(), n->every));
    if (n->is_asking)
        return;
    n->is_asking = true;
    n->o.ask(n->o.ctx);
}

void stg_notify_open(stg_notify *n, stg_deadlines *deadlines,
                     const stg_notify_options *o)
{
    *n = (stg_notify){.o = *o, .deadlines = deadlines, .beat.passed = beat};
    n->is_open = has_manager();
    if (!n->is_open)
        return;
    n->every = watchdog() / 2;
    if (n->every > 0)
        stg_deadline_set(deadlines, &n->beat,
                         stg_ns_add(stg_deadlines_now(), n->every));
}

void stg_notify_close(stg_notify *n)
{
    if (!n->is_open)
        return;
    n->is_open = false;
    stg_deadline_clear(n->deadlines, &n->beat);
}

void stg_notify_ready(stg_notify *n)
{
    if (n->is_open)
        tell_status(n, "READY=1");
}

/* The manager wants the time of the message with it: sd_notify(3),
 * RELOADING=1. */
void stg_notify_reloading(stg_notify *n)
{
    char text[LINES_MAX];

    if (!n->is_open)
        return;
    snprintf(text, sizeof text, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
             stg_deadlines_now() / STG_US);
    tell(text);
}

void stg_notify_stopping(stg_notify *n, stg_ns most)
{
    char text[LINES_MAX];

    if (!n->is_open)
        return;
    snprintf(text, sizeof text, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRIu64,
             most / STG_US);
    tell_status(n, text);
}

void stg_notify_alive(stg_notify *n)
{
    n->is_asking = false;
    if (n->is_open && n->every > 0)
        tell_status(n, "WATCHDOG=1");
}
