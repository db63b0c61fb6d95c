#include "cli/sim/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cli/time_text.h"

static stg_ns look_at_clock(void)
{
    struct timespec t = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (stg_ns)t.tv_sec * STG_S + (stg_ns)t.tv_nsec;
}

void stg_sim_progress_begin(stg_sim_progress *p, double total)
{
    *p = (stg_sim_progress){.total = total, .is_shown = isatty(2) == 1};
    (void)pthread_mutex_init(&p->lock, NULL);
    p->begun_at = p->shown_at = look_at_clock();
}

static void show(stg_sim_progress *p, stg_ns now)
{
    double share = p->total > 0 ? p->done / p->total : 1;
    double spent = (double)(now - p->begun_at);
    char text[STG_NS_TEXT_MAX];
    stg_ns left = 0;

    if (share > 0 && share < 1)
        left = (stg_ns)(spent / share - spent) / STG_S * STG_S;
    fprintf(stderr, "\r\033[K%3.0f %% done, about %s left", 100 * share,
            stg_ns_text(left, text));
    fflush(stderr);
    p->is_line_open = true;
    p->shown_at = now;
}

void stg_sim_progress_add(stg_sim_progress *p, double work)
{
    const stg_ns first = STG_S, every = 200 * STG_MS;
    stg_ns now;

    (void)pthread_mutex_lock(&p->lock);
    p->done += work;
    if (p->is_shown) {
        now = look_at_clock();
        if (now - p->begun_at >= first && now - p->shown_at >= every)
            show(p, now);
    }
    (void)pthread_mutex_unlock(&p->lock);
}

void stg_sim_progress_end(stg_sim_progress *p)
{
    if (p->is_line_open)
        fputs("\r\033[K", stderr);
    p->is_line_open = false;
    (void)pthread_mutex_destroy(&p->lock);
}
