/* notify.h - tells the service manager how we are: systemd's sd_notify(3).
 *
 * NOTIFY_SOCKET in the environment names who is told, and WATCHDOG_USEC how
 * often he wants a sign of life; without the first, and in a build without
 * libsystemd, nothing is told and nothing costs anything. Where signs of life
 * are wanted, each has to be earned: twice in that time the loop asks the owner,
 * and only when the owner has answered by stg_notify_alive() is one sent. So
 * neither a loop that hangs nor an owner that does passes for a healthy one.
 *
 * All on the loop's thread. Nothing here fails; a message is a datagram, and
 * waits only for a manager that reads none. */
#ifndef STAGGER_HOST_NOTIFY_H
#define STAGGER_HOST_NOTIFY_H

#include "host/deadlines.h"

enum { STG_NOTIFY_STATUS_MAX = 256 }; /* the terminator included */

typedef struct stg_notify_options {
    /* Somebody waits for a sign of life: to be answered by stg_notify_alive(),
     * from within or later. Not asked again before it was. */
    void (*ask)(void *ctx);
    /* A line for people, told with the signs of life when it has changed. */
    void (*status)(void *ctx, char text[STG_NOTIFY_STATUS_MAX]);
    void *ctx;
} stg_notify_options;

/* Zeroed, it is closed: it tells nothing. */
typedef struct stg_notify {
    stg_notify_options o;
    stg_deadlines *deadlines;
    stg_deadline beat;
    stg_ns every; /* between two questions; 0: nobody waits for signs of life */
    bool is_open;
    bool is_asking; /* and the owner has not answered */
    char told[STG_NOTIFY_STATUS_MAX];
} stg_notify;

/* deadlines are kept. */
void stg_notify_open(stg_notify *n, stg_deadlines *deadlines,
                     const stg_notify_options *o);

/* Before the deadlines are closed. */
void stg_notify_close(stg_notify *n);

/* We serve: after the start, and after each reload, whatever became of it. */
void stg_notify_ready(stg_notify *n);

/* The settings are being read again. */
void stg_notify_reloading(stg_notify *n);

/* We are about to end, within `most` or so: for so long he is to be patient. */
void stg_notify_stopping(stg_notify *n, stg_ns most);

void stg_notify_alive(stg_notify *n);

#endif
