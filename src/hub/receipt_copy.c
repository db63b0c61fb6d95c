/* A copy of receipts for other programs: a line of JSON each, appended to a file by
 * a thread of the pool, or a record each, for a topic of the source; a batch at a
 * time. The file is opened anew for each batch, so that it may be rotated by
 * renaming, and receipts count as copied when they are in the file that the path
 * names (host/lines.h). What cannot be written is dropped and counted, and told once
 * until it is over: nothing waits for it. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "host/lines.h"
#include "host/wall.h"
#include "hub/hub_internal.h"
#include "store/store_names.h"

enum { GATHERED_MAX = 16 << 20 }; /* bytes that wait while a batch is written */

/* -- a line ---------------------------------------------------------------- */

/* Names of targets, ids and causes have nothing to escape. */
static void put_receipt(stg_text *to, const stg_hub *h, const stg_receipt *r)
{
    const stg_target *t = stg_targets_at(&h->targets, r->lane);
    const stg_outcome outcome = {
        .fault = r->fault, .code_kind = r->code_kind, .code = r->code};
    char id[STG_MESSAGE_ID_MAX], at[STG_UTC_TEXT_MAX], cause[STG_CAUSE_MAX];
    char line[STG_MESSAGE_ID_MAX + STG_TARGET_NAME_MAX + STG_CAUSE_MAX + 200];
    char status[16] = "null";
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

/* -- what became of a batch ------------------------------------------------ */

/* Once when it begins to fail, and once when it is over. */
static void tell(stg_receipt_copy *c)
{
    const stg_hub *h = c->hub;
    const char *to = c->to->path != NULL ? c->to->path : c->to->topic;

    if (c->failed > 0 && !c->is_troubled)
        STG_LOG(h->log, STG_LOG_ERROR, "receipts-uncopied",
                stg_field_text("to", to),
                stg_field_text("detail", c->error != 0
                                             ? stg_lines_error(c->error)
                                             : "the brokers do not take them"));
    else if (c->failed == 0 && c->is_troubled)
        STG_LOG(h->log, STG_LOG_INFO, "receipts-copied",
                stg_field_text("to", to));
    c->is_troubled = c->failed > 0;
}

static void begin(stg_receipt_copy *c);

static void finish(stg_receipt_copy *c)
{
    void (*closed)(void *ctx) = c->closed;

    stg_text_free(&c->gathered);
    stg_text_free(&c->writing);
    stg_lines_close(&c->lines);
    free(c->store);
    c->closed = NULL;
    closed(c->closed_ctx);
}

static void have_written(stg_receipt_copy *c)
{
    c->copied += c->writing_count - c->failed;
    c->dropped += c->failed;
    tell(c);
    c->is_writing = false;
    begin(c);
    if (!c->is_writing && c->closed != NULL)
        finish(c);
}

/* -- a file ---------------------------------------------------------------- */

static void receipt_copy_write(void *copy)
{
    stg_receipt_copy *c = copy;
    stg_span lines = {c->writing.at, c->writing.size};

    c->error = stg_lines_write(&c->lines, lines) ? 0 : errno;
}

static void receipt_copy_work(uv_work_t *request)
{
    stg_receipt_copy *c = request->data;

    if (!stg_lines_append(&c->lines, false, receipt_copy_write, c))
        c->error = errno;
}

static void worked(uv_work_t *request, int status)
{
    stg_receipt_copy *c = request->data;

    (void)status;
    c->failed = c->error == 0 ? 0 : c->writing_count;
    have_written(c);
}

/* -- a topic --------------------------------------------------------------- */

static void have_copied(void *ctx, size_t copied)
{
    stg_receipt_copy *c = ctx;

    free(c->records);
    c->records = NULL;
    c->failed = c->writing_count - copied;
    have_written(c);
}

/* A record for each line; records point into the text, which stays until they are
 * written. */
static void write_records(stg_receipt_copy *c)
{
    stg_source *source = c->hub->source;
    const char *at = c->writing.at;

    c->records = calloc(c->writing_count, sizeof *c->records);
    if (c->records == NULL) {
        have_copied(c, 0);
        return;
    }
    for (size_t i = 0; i < c->writing_count; i++) {
        const char *end =
            memchr(at, '\n', c->writing.size - (size_t)(at - c->writing.at));

        c->records[i].parcel =
            (stg_parcel){.content_type = {"application/json", 16},
                         .body = {at, (size_t)(end - at)}};
        at = end + 1;
    }
    source->ops->copy(source, c->to->topic, c->records, c->writing_count,
                      have_copied, c);
}

static void begin(stg_receipt_copy *c)
{
    stg_text written = c->writing;

    if (c->is_writing || c->gathered_count == 0)
        return;
    c->writing = c->gathered;
    c->writing_count = c->gathered_count;
    c->gathered = written;
    stg_text_clear(&c->gathered);
    c->gathered_count = 0;
    c->is_writing = true;
    if (c->to->path == NULL) {
        write_records(c);
        return;
    }
    c->work.data = c;
    (void)uv_queue_work(c->hub->loop, &c->work, receipt_copy_work,
                        worked); // cannot fail
}

/* -- for receipts.c -------------------------------------------------------- */

bool stg_receipt_copy_is_wanted(const stg_letters_settings *to)
{
    return to->path != NULL || to->topic != NULL;
}

/* Keeps the store's path: the settings may be replaced. */
static stg_status receipt_copy_check_file(stg_receipt_copy *c, const char *path,
                                          const char *store, stg_error *err)
{
    c->lines.path = path;
    c->lines.begins = "{\"ended_at\":\"#-#-#T#:#:#.#Z\",\"message_id\":\"";
    if (!stg_store_is_url(store)) {
        c->store = strdup(store);
        c->lines.is_taken = stg_store_has_file;
        c->lines.taken_ctx = c->store;
        if (c->store == NULL)
            return stg_hub_refuse(err, STG_IO, "receipts.copy: out of memory");
    }
    if (stg_lines_check(&c->lines))
        return STG_OK;
    return stg_hub_refuse(err, stg_hub_file_status(errno),
                          "receipts.copy=%.120s: %s", path,
                          stg_lines_error(errno));
}

stg_status stg_receipt_copy_open(stg_receipt_copy *c, stg_hub *hub,
                                 const stg_letters_settings *to, stg_error *err)
{
    stg_status status = STG_OK;

    *c = (stg_receipt_copy){.hub = hub};
    if (to->path != NULL)
        status = receipt_copy_check_file(c, to->path, hub->settings->store.path,
                                         err);
    if (status != STG_OK)
        free(c->store);
    if (status != STG_OK || !stg_receipt_copy_is_wanted(to))
        return status;
    c->to = to;
    hub->handles++;
    return STG_OK;
}

/* While a piece is being written the next one gathers, up to a limit. */
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
    if (c->to == NULL)
        return;
    c->closed = closed;
    c->closed_ctx = ctx;
    if (!c->is_writing)
        finish(c);
}
