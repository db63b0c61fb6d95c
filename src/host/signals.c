#include "host/signals.h"
#include "base/refuse.h"

#include <signal.h>

/* In the loop's own turn, and not in a signal handler: anything may be
 * called. */
static void pass_on(uv_signal_t *handle, int signal)
{
    stg_signals *s = handle->data;

    s->told(s->ctx, signal);
}

static int watch(stg_signals *s, uv_signal_t *handle, int signal)
{
    handle->data = s;
    uv_unref((uv_handle_t *)handle);
    return uv_signal_start(handle, pass_on, signal);
}

stg_status stg_signals_open(stg_signals *s, uv_loop_t *loop,
                            void (*told)(void *ctx, int signal), void *ctx,
                            stg_error *err)
{
    int error = uv_signal_init(loop, &s->terminate);

    s->told = told;
    s->ctx = ctx;
    // What makes room for signals in a loop is made once, by the first.
    if (error == 0) {
        (void)uv_signal_init(loop, &s->interrupt);
        (void)uv_signal_init(loop, &s->hang_up);
        error = watch(s, &s->terminate, SIGTERM);
        if (error == 0)
            error = watch(s, &s->interrupt, SIGINT);
        if (error == 0)
            return STG_OK;
        stg_signals_close(s);
    }
    return stg_hub_refuse(err, STG_IO, "cannot watch for signals: %s",
                          uv_strerror(error));
}

void stg_signals_take_hang_up(stg_signals *s)
{
    (void)watch(s, &s->hang_up, SIGHUP); // there is room: see above
}

void stg_signals_close(stg_signals *s)
{
    uv_close((uv_handle_t *)&s->terminate, NULL);
    uv_close((uv_handle_t *)&s->interrupt, NULL);
    uv_close((uv_handle_t *)&s->hang_up, NULL);
}
