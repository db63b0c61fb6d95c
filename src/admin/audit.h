/* audit.h - who changed what, when, and what came of it: a JSON object a line.
 *
 *     {"time": "2026-03-01T12:00:00.250Z", "action": "pause", "who": "anna",
 *      "from": "10.0.0.7", "outcome": "done", "target": "a"}
 *
 * Lines are appended and synced by a thread of libuv's pool, in their order;
 * the file is opened anew each time, so that it may be rotated under us. A line
 * that cannot be written is logged, and what was done stays done. */
#ifndef STAGGER_ADMIN_AUDIT_H
#define STAGGER_ADMIN_AUDIT_H

#include <jansson.h>

#include "host/log.h"

#include <uv.h>

#include <stagger/status.h>

typedef struct stg_audit_line stg_audit_line;

typedef struct stg_audit {
    uv_loop_t *loop;
    stg_log *log;
    char *path;                    /* NULL: there is no file */
    stg_audit_line *first, **last; /* not written yet */
    stg_audit_line *writing;       /* these are */
    uv_work_t work;
    int error; /* errno of the last write */
    void (*closed)(void *ctx);
    void *closed_ctx;
} stg_audit;

/* Checks that the file, if any, can be appended to; it is made, with mode 0600.
 * Returns STG_IO with words; then nothing has to be closed. */
stg_status stg_audit_open(stg_audit *a, uv_loop_t *loop, stg_log *log,
                          const char *path, stg_error *err);

/* json is given. done is called when the line is durable, or could not be
 * written; never from within this call. It may be NULL. */
void stg_audit_write(stg_audit *a, json_t *json, void (*done)(void *ctx),
                     void *ctx);

/* All of it is written; then closed is called, perhaps at once. */
void stg_audit_close(stg_audit *a, void (*closed)(void *ctx), void *ctx);

#endif
