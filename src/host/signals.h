/* signals.h - SIGTERM and SIGINT, and maybe SIGHUP, as events of the loop.
 *
 * They do not keep the loop alive. All on the loop's thread. */
#ifndef STAGGER_HOST_SIGNALS_H
#define STAGGER_HOST_SIGNALS_H

#include <uv.h>

#include <stagger/status.h>

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

#endif
