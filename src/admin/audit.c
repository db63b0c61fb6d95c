/* The audit log: lines are queued on the loop and written by a thread of the
 * pool, one batch at a time, so that they keep their order.
 *
 * `done` is called after fsync, and it answers the call: who has the answer
 * finds the line in the file, even after a crash. If the line cannot be
 * written, the change stays done, the call is answered, and `audit-failed` goes
 * to the hub's log.
 *
 * The file is opened anew for each batch, so that it may be rotated by
 * renaming, and `done` waits until the line is in the file that the setting names
 * (host/lines.h). Without a file lines take the same way, and only the answers are
 * late by a turn. */
#include "admin/internal.h"
#include "base/refuse.h"
#include "host/lines.h"
#include "store/store_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct stg_audit_line {
    stg_audit_line *next;
    char *text; /* NULL: there was no memory, or is no file */
    void (*done)(void *ctx);
    void *ctx;
};

/* -- the file, on a thread --------------------------------------------------- */

/* After the first error nothing of the batch is written any more, so that no line
 * is missing in the middle. */
static void audit_write_lines(void *audit)
{
    stg_audit *a = audit;

    a->error = 0;
    for (const stg_audit_line *line = a->writing; line != NULL && a->error == 0;
         line = line->next)
        if (line->text == NULL)
            a->error = ENOMEM;
        else if (!stg_lines_write(&a->lines,
                                  (stg_span){line->text, strlen(line->text)}))
            a->error = errno;
}

static void audit_work(uv_work_t *request)
{
    stg_audit *a = request->data;

    a->error = 0;
    if (a->path != NULL &&
        !stg_lines_append(&a->lines, true, audit_write_lines, a))
        a->error = errno;
}

/* -- lines, on the loop ------------------------------------------------------ */

static void begin(stg_audit *a);

static void audit_free(stg_audit *a)
{
    stg_lines_close(&a->lines);
    free(a->path);
    free(a->store);
}

static void end_lines(stg_audit_line *line)
{
    while (line != NULL) {
        stg_audit_line *next = line->next;

        if (line->done != NULL)
            line->done(line->ctx);
        free(line->text);
        free(line);
        line = next;
    }
}

static void worked(uv_work_t *request, int status)
{
    stg_audit *a = request->data;
    stg_audit_line *lines = a->writing;

    (void)status;
    if (a->error != 0)
        STG_LOG(a->log, STG_LOG_ERROR, "audit-failed",
                stg_field_text("file", a->path),
                stg_field_text("detail", stg_lines_error(a->error)),
                stg_field_text("next",
                               "what was done stays done; only its "
                               "line is missing"));
    a->writing = NULL;
    end_lines(lines);
    begin(a);
    if (a->writing == NULL && a->closed != NULL) {
        audit_free(a);
        a->closed(a->closed_ctx);
    }
}

/* One after the other: so they keep their order. */
static void begin(stg_audit *a)
{
    if (a->writing != NULL || a->first == NULL)
        return;
    a->writing = a->first;
    a->first = NULL;
    a->last = &a->first;
    a->work.data = a;
    (void)uv_queue_work(a->loop, &a->work, audit_work, worked); // cannot fail
}

/* Takes the reference of json, which may be NULL (no memory): then the write
 * fails with ENOMEM, and is logged. */
void stg_audit_write(stg_audit *a, json_t *json, void (*done)(void *ctx),
                     void *ctx)
{
    stg_audit_line *line = calloc(1, sizeof *line);
    char *text = json == NULL ? NULL : json_dumps(json, 0), *whole;
    size_t size = text == NULL ? 0 : strlen(text);

    json_decref(json);
    whole = text == NULL ? NULL : realloc(text, size + 2);
    if (whole != NULL)
        memcpy(whole + size, "\n", 2);
    else
        free(text);
    if (line == NULL) {
        free(whole);
        if (done != NULL)
            done(ctx);
        return;
    }
    *line = (stg_audit_line){.text = whole, .done = done, .ctx = ctx};
    *a->last = line;
    a->last = &line->next;
    begin(a);
}

/* -- open and close ---------------------------------------------------------- */

/* Makes the file when the hub starts, so that a wrong path is a mistake of the
 * settings and not of the first call. */
static stg_status audit_open_file(stg_audit *a, const char *path,
                                  const char *store, stg_error *err)
{
    a->path = strdup(path);
    a->store = store == NULL ? NULL : strdup(store);
    if (a->path == NULL || (store != NULL && a->store == NULL))
        return stg_hub_refuse(err, STG_IO, "audit: out of memory");
    a->lines =
        (stg_lines){.path = a->path,
                    .begins = "{\"time\": \"#-#-#T#:#:#.#Z\", \"action\": \"",
                    .is_taken = store == NULL ? NULL : stg_store_has_file,
                    .taken_ctx = a->store};
    if (stg_lines_check(&a->lines))
        return STG_OK;
    return stg_hub_refuse(err, stg_hub_file_status(errno), "audit=%.120s: %s",
                          path, stg_lines_error(errno));
}

stg_status stg_audit_open(stg_audit *a, uv_loop_t *loop, stg_log *log,
                          const char *path, const char *store, stg_error *err)
{
    stg_status status;

    *a = (stg_audit){.loop = loop, .log = log};
    a->last = &a->first;
    status = path == NULL ? STG_OK : audit_open_file(a, path, store, err);
    if (status != STG_OK)
        audit_free(a);
    return status;
}

/* Lines that were queued are written first: closed is called by worked(). */
void stg_audit_close(stg_audit *a, void (*closed)(void *ctx), void *ctx)
{
    if (a->writing != NULL) {
        a->closed = closed;
        a->closed_ctx = ctx;
        return;
    }
    audit_free(a);
    closed(ctx);
}
