/* The line on stderr that `stagger send` shows to a terminal while it works: a bar where
 * the size of the input is known, how many messages, and how many a second. */
#include "cli/send/send.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/say.h"

enum { BAR = 24, SECONDS_MAX = 359999 };

void stg_send_progress_begin(send_progress *p, uint64_t total, stg_ns now)
{
    *p = (send_progress){.begun_at = now,
                         .shown_at = now,
                         .total = total,
                         .is_shown = isatty(STDERR_FILENO) == 1};
}

/* [########                ]  33 % */
static void write_bar(const send_progress *p)
{
    uint64_t bytes = p->bytes < p->total ? p->bytes : p->total;
    uint64_t full = bytes * BAR / p->total;
    char bar[BAR + 1];

    memset(bar, ' ', BAR);
    memset(bar, '#', full);
    bar[BAR] = '\0';
    fprintf(stderr, "[%s] %3" PRIu64 " %%  ", bar, bytes * 100 / p->total);
}

/* The bytes that are left take as long as those that went. The bytes are
 * counted in thousands, which keeps the product small. Above 99 hours nothing
 * is shown. */
static void write_left(const send_progress *p, stg_ns took)
{
    uint64_t left = p->total > p->bytes ? p->total - p->bytes : 0;
    uint64_t took_ms = took / STG_MS;
    uint64_t seconds;

    if (p->bytes == 0 || left == 0)
        return;
    seconds = left / 1000 * took_ms / p->bytes;
    if (seconds <= SECONDS_MAX)
        fprintf(stderr, ", %02" PRIu64 ":%02" PRIu64 " left", seconds / 60,
                seconds % 60);
}

/* The rate is the mean since the beginning, not that of the last moments. */
void stg_send_progress_show(send_progress *p, stg_ns now)
{
    stg_ns took = stg_ns_sub(now, p->begun_at);
    uint64_t took_ms = took / STG_MS;

    if (!p->is_shown)
        return;
    fputc('\r', stderr);
    if (p->total > 0)
        write_bar(p);
    fprintf(stderr, "%" PRIu64 " messages, %" PRIu64 " a second", p->messages,
            took_ms == 0 ? 0 : p->messages * 1000 / took_ms);
    if (p->total > 0)
        write_left(p, took);
    if (p->trouble[0] != '\0')
        stg_say(stderr, " (%s)", p->trouble);
    fputs("\033[K", stderr);
    fflush(stderr);
    p->is_line_open = true;
    p->shown_at = now;
}

void stg_send_progress_finish(send_progress *p)
{
    if (p->is_line_open)
        fputc('\n', stderr);
    p->is_line_open = false;
}
