/* sinks.h - the demo's targets: processes of `stagger sink`, and an
 * address where nothing listens.
 *
 * All on the loop's thread. */
#ifndef STAGGER_CLI_DEMO_SINKS_H
#define STAGGER_CLI_DEMO_SINKS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum { DEMO_SINKS = 5, DEMO_DOWN = 4, DEMO_TEXT_MAX = 2048 };

typedef struct demo_sinks demo_sinks;

typedef struct demo_sink {
    demo_sinks *all;
    char url[64];             /* "": not known yet */
    char text[DEMO_TEXT_MAX]; /* what it printed */
    size_t size;
    uv_process_t process;
    uv_pipe_t pipe;
    unsigned handles; /* that are open in the loop */
    bool is_running;
    bool has_failed; /* to start, or before it was told to end */
} demo_sink;

struct demo_sinks {
    demo_sink sinks[DEMO_SINKS]; /* the last one is the address */
    int down;                    /* the socket that keeps it; -1: none */
    unsigned starting;           /* whose URL is not known */
    unsigned open;               /* that are in the loop */
    bool is_ending;
    void (*ready)(void *ctx);  /* every URL is known */
    void (*failed)(void *ctx); /* one did not start, or ended by itself */
    void (*ended)(void *ctx);
    void *ctx;
};

/* A sink's name, and what it does, for people: "503 to one in ten". */
const char *stg_demo_sinks_name(int sink);
const char *stg_demo_sinks_deed(int sink);

/* Starts them; ready or failed is called from the loop. False: one could not
 * even be started; those that could are to be ended. */
bool stg_demo_sinks_start(demo_sinks *s, uv_loop_t *loop);

/* Ends them in order, and calls ended when what they printed is here. */
void stg_demo_sinks_end(demo_sinks *s);

/* At once, without the loop. */
void stg_demo_sinks_kill(demo_sinks *s);

/* A number of what a sink has printed at its end: "200", "receipts",
 * "duplicates"; 0 if it says none. */
uint64_t stg_demo_sinks_count(const demo_sinks *s, int sink, const char *name);

#endif
