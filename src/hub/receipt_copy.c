/* A copy of receipts for other programs: a line of JSON each, appended to a file by
 * a thread of the pool, a batch at a time. The file is opened anew for each batch,
 * so that it may be rotated by renaming. What cannot be written is dropped and
 * counted, and told once until it is over: nothing waits for it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/refuse.h"
#include "host/lines.h"
#include "host/wall.h"
#include "hub/hub_internal.h"

enum { GATHERED_MAX = 16 << 20 }; /* bytes that wait while a batch is written */

/* -- a line ---------------------------------------------------------------- */

/* Names of targets, ids and causes have nothing to escape. */
static void put_receipt(stg_text *to, const stg_hub *h, const stg_receipt *r)
{
    const stg_target *t = stg_targets_at(&h->targets, r->lane);
    const stg_outcome outcome = {
        .fault = r->fault, .code_kind = r->code_kind, .code = r->code};
    char id[STG_MESSAGE_ID_MAX], at[STG_UTC_TEXT_MAX], cause[STG_CAUSE_MAX];
    char line[STG_MESSAGE_ID_MAX + 300], status[16] = "null";
    bool is_good = r->fault == STG_FAULT_NONE;
    int size;

    if (r->code_kind == STG_CODE_STATUS)
        snprintf(status, sizeof status, "%" PRIu32, r->code);
    size = snprintf(
        line, sizeof line,
        "{\"ended_at\":\"%s\",\"message_id\":\"%s\",\"target\":\"%s\","
        "\"attempt\":%" PRIu64
        ",\"http_status\":%s,\"cause\":%s%s%s,"
        "\"took_ms\":%" PRIu64 ".%03" PRIu64 "}\n",
        stg_utc_text(r->at, at),
        stg_store_id(h->store, r->partition, r->position, id),
        t == NULL ? "" : t->name, r->number, status, is_good ? "" : "\"",
        is_good ? "null" : stg_outcome_cause(&outcome, cause),
        is_good ? "" : "\"", r->took / STG_MS, r->took % STG_MS / STG_US);
    stg_text_add(to, line, (size_t)size);
}

/* -- the file -------------------------------------------------------------- */

static void work(uv_work_t *request)
{
    stg_receipt_copy *c = request->data;
    int fd = stg_lines_open(c->path);

    c->error = 0;
    if (fd < 0 ||
        !stg_lines_write(fd, (stg_span){c->writing.at, c->writing.size}))
        c->error = errno;
    if (fd >= 0 && close(fd) != 0 && c->error == 0)
        c->error = errno;
}

static void tell(stg_receipt_copy *c)
{
    const stg_hub *h = c->hub;

    if (c->error != 0 && !c->is_troubled)
        STG_LOG(h->log, STG_LOG_ERROR, "receipts-uncopied",
                stg_field_text("file", c->path),
                stg_field_text("detail", strerror(c->error)));
    else if (c->error == 0 && c->is_troubled)
        STG_LOG(h->log, STG_LOG_INFO, "receipts-copied",
                stg_field_text("file", c->path));
    c->is_troubled = c->error != 0;
}

static void begin(stg_receipt_copy *c);

static void finish(stg_receipt_copy *c)
{
    void (*closed)(void *ctx) = c->closed;

    stg_text_free(&c->gathered);
    stg_text_free(&c->writing);
    c->closed = NULL;
    closed(c->closed_ctx);
}

static void worked(uv_work_t *request, int status)
{
    stg_receipt_copy *c = request->data;

    (void)status;
    *(c->error == 0 ? &c->copied : &c->dropped) += c->writing_count;
    tell(c);
    c->is_writing = false;
    begin(c);
    if (!c->is_writing && c->closed != NULL)
        finish(c);
}

static void begin(stg_receipt_copy *c)
{
    stg_text written = c->writing;

    if (c->is_writing || c->gathered.size == 0)
        return;
    c->writing = c->gathered;
    c->writing_count = c->gathered_count;
    c->gathered = written;
    stg_text_clear(&c->gathered);
    c->gathered_count = 0;
    c->is_writing = true;
    c->work.data = c;
    (void)uv_queue_work(c->hub->loop, &c->work, work, worked); // cannot fail
}

/* -- for receipts.c -------------------------------------------------------- */

stg_status stg_receipt_copy_open(stg_receipt_copy *c, stg_hub *hub,
                                 const char *path, stg_error *err)
{
    int fd = path == NULL ? -1 : stg_lines_open(path);
    int error = fd < 0 ? errno : 0;

    *c = (stg_receipt_copy){.hub = hub};
    if (path == NULL)
        return STG_OK;
    if (fd < 0)
        return stg_hub_refuse(err, stg_hub_file_status(error),
                              "receipts.copy=%.120s: %s", path,
                              strerror(error));
    close(fd);
    c->path = path;
    hub->handles++;
    return STG_OK;
}

void stg_receipt_copy_take(stg_receipt_copy *c, const stg_receipt *rows,
                           size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (c->gathered.size > GATHERED_MAX)
            c->dropped++;
        else {
            put_receipt(&c->gathered, c->hub, &rows[i]);
            c->gathered_count++;
        }
    if (c->gathered.is_short) {
        stg_text_clear(&c->gathered);
        c->dropped += c->gathered_count;
        c->gathered_count = 0;
    }
    begin(c);
}

void stg_receipt_copy_close(stg_receipt_copy *c, void (*closed)(void *ctx),
                            void *ctx)
{
    if (c->path == NULL)
        return;
    c->closed = closed;
    c->closed_ctx = ctx;
    if (!c->is_writing)
        finish(c);
}
