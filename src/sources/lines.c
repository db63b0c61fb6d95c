#include "sources/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "sources/input.h"
#include "sources/line_buffer.h"

enum { BATCH_BYTES = 256 * 1024 };

/* Lines that are being appended, or wait for it; lent to the store until its
 * answer. */
typedef struct batch {
    stg_lines *lines; /* NULL: they are gone */
    size_t count, size;
    char *bytes;
    stg_append messages[];
} batch;

struct stg_lines {
    uv_loop_t *loop;
    stg_lines_options options;
    char *content_type;
    stg_line_buffer buffer;
    stg_input *input;
    batch *batch; /* the only one; count is 0: it is free */
    stg_lines_view view;
    stg_rng rng;
    uint32_t waits; /* for a full store, in a row */
    stg_ns last_wait;
    bool is_appending, is_pumping, is_at_end, is_broken, is_stopped,
        is_stop_told;

    uv_timer_t timer; /* the wait for the store; or what is called soon */
    unsigned parts;   /* that are not closed yet: the timer and the input */
    void (*stopped)(void *ctx);
    void *stopped_ctx;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

stg_lines_options stg_lines_options_default(void)
{
    return (stg_lines_options){
        .message_max = (size_t)1 << 20,
        .pending_max = (size_t)8 << 20,
        .batch_max = 1000,
        .content_type = "text/plain; charset=utf-8",
        .backoff = stg_backoff_default(),
        .seed = 1,
    };
}

void stg_lines_look(const stg_lines *l, stg_lines_view *view)
{
    *view = l->view;
    view->lines = l->buffer.number;
    view->pending = stg_line_buffer_held(&l->buffer) + l->batch->size;
    view->is_waiting = l->batch->count > 0 && !l->is_appending;
}

static void pump(stg_lines *l);

/* -- batches ----------------------------------------------------------------- */

static void free_batch(batch *b)
{
    free(b->bytes);
    free(b);
}

/* Room for batch_max lines, and for one more of any size while it holds less
 * than BATCH_BYTES. */
static batch *new_batch(stg_lines *l)
{
    size_t count = l->options.batch_max;
    batch *b = malloc(sizeof *b + count * sizeof b->messages[0]);

    if (b == NULL)
        return NULL;
    *b = (batch){.lines = l};
    b->bytes = malloc(BATCH_BYTES + l->options.message_max);
    if (b->bytes != NULL)
        return b;
    free(b);
    return NULL;
}

static void empty_batch(batch *b)
{
    b->count = b->size = 0;
}

static void add_line(const stg_lines *l, batch *b, stg_span line)
{
    stg_append *message = &b->messages[b->count++];

    *message = (stg_append){.parcel.body = {b->bytes + b->size, line.size}};
    memcpy(b->bytes + b->size, line.at, line.size);
    b->size += line.size;
    if (l->content_type != NULL)
        message->parcel.content_type =
            (stg_span){l->content_type, strlen(l->content_type)};
}

static void skip_line(stg_lines *l)
{
    l->view.skipped++;
    STG_LOG(l->options.log, STG_LOG_ERROR, "line-too-long",
            stg_field_number("line", l->buffer.number),
            stg_field_number("bytes_max", l->options.message_max));
}

/* False: there is no line for it. */
static bool fill_batch(stg_lines *l, batch *b)
{
    stg_span line;
    stg_line found = STG_LINE;

    while (b->count < l->options.batch_max && b->size < BATCH_BYTES &&
           found != STG_LINE_NONE) {
        found = stg_line_buffer_next(&l->buffer, l->is_at_end, &line);
        if (found == STG_LINE)
            add_line(l, b, line);
        else if (found == STG_LINE_TOO_LONG)
            skip_line(l);
    }
    return b->count > 0;
}

/* -- to the store ------------------------------------------------------------ */

static void try_again(uv_timer_t *timer)
{
    stg_lines *l = timer->data;

    pump(l);
}

static void wait_for_store(stg_lines *l)
{
    stg_ns wait = stg_backoff_wait(&l->options.backoff, ++l->waits,
                                   &l->last_wait, &l->rng);

    STG_LOG_REPEAT(l->options.log, STG_LOG_WARN, "input-waits", 1,
                   stg_field_text("why", "the log is full"),
                   stg_field_time("wait", wait));
    (void)uv_timer_start(&l->timer, try_again,
                         wait / STG_MS + (wait % STG_MS != 0), 0);
}

static void finish_batch(stg_lines *l)
{
    l->view.messages += l->batch->count;
    l->waits = 0;
    l->last_wait = l->options.backoff.base;
    empty_batch(l->batch);
}

/* It could be there twice if it was sent again. */
static void break_off(stg_lines *l)
{
    STG_LOG(l->options.log, STG_LOG_ERROR, "input-broken",
            stg_field_text("why", "the commit of its last lines is unknown"),
            stg_field_number("messages", l->batch->count));
    empty_batch(l->batch);
    l->is_broken = true;
}

/* At a stop nobody waits for room. They were read, and are not in the log: who
 * wrote them has to know. */
static void drop_rest(stg_lines *l)
{
    stg_span line;
    stg_line found;

    l->view.dropped += l->batch->count;
    empty_batch(l->batch);
    while ((found = stg_line_buffer_next(&l->buffer, false, &line)) !=
           STG_LINE_NONE)
        l->view.dropped += found == STG_LINE;
}

static void batch_done(void *ctx, stg_appended how,
                       const stg_append_answer *answers, size_t at)
{
    batch *b = ctx;
    stg_lines *l = b->lines;

    (void)answers;
    (void)at;
    if (l == NULL) {
        free_batch(b);
        return;
    }
    l->is_appending = false;
    if (how == STG_APPENDED)
        finish_batch(l);
    else if (how == STG_APPEND_FULL && !l->is_stopped)
        wait_for_store(l);
    else if (how == STG_APPEND_FULL)
        drop_rest(l);
    else
        break_off(l); // a conflict needs a key, and lines have none
    pump(l);
}

static void append(stg_lines *l)
{
    batch *b = l->batch;

    l->is_appending = true;
    l->options.append(l->options.ctx, b->messages, b->count, batch_done, b);
}

static bool may_append(stg_lines *l)
{
    if (l->is_broken || l->is_appending || l->is_stop_told ||
        uv_is_active((uv_handle_t *)&l->timer))
        return false;
    return l->batch->count > 0 || fill_batch(l, l->batch);
}

/* -- reading ----------------------------------------------------------------- */

static void end_input(stg_lines *l)
{
    l->is_at_end = true;
    pump(l);
}

static void fail_input(stg_lines *l, int error)
{
    l->view.has_failed = true;
    STG_LOG(l->options.log, STG_LOG_ERROR, "input-failed",
            stg_field_text("why", strerror(error)),
            stg_field_number("line", l->buffer.number + 1));
    end_input(l);
}

static void take_piece(void *ctx, const char *piece, size_t size, int error)
{
    stg_lines *l = ctx;

    if (l->is_stopped || l->is_broken || l->is_at_end)
        return;
    if (error != 0)
        fail_input(l, error);
    else if (size == 0)
        end_input(l);
    else if (!stg_line_buffer_add(&l->buffer, piece, size))
        fail_input(l, ENOMEM);
    else
        pump(l);
}

static bool may_read(const stg_lines *l)
{
    size_t held = stg_line_buffer_held(&l->buffer);

    return !l->is_stopped && !l->is_broken && !l->is_at_end &&
           held + l->batch->size < l->options.pending_max;
}

/* -- ends -------------------------------------------------------------------- */

static void tell_end(uv_timer_t *timer)
{
    stg_lines *l = timer->data;

    l->options.ended(l->options.ctx, l->view.messages);
}

static void tell_stop(uv_timer_t *timer)
{
    stg_lines *l = timer->data;

    l->stopped(l->stopped_ctx);
}

/* The beginning of a line, whose end did not come, is no message. */
static void end_stop(stg_lines *l)
{
    l->view.cut = stg_line_buffer_held(&l->buffer);
    if (l->view.dropped + l->view.cut > 0)
        STG_LOG(l->options.log, STG_LOG_WARN, "input-truncated",
                stg_field_number("lines", l->view.dropped),
                stg_field_number("bytes", l->view.cut),
                stg_field_number("line", l->buffer.number + 1));
    l->is_stop_told = true;
    (void)uv_timer_start(&l->timer, tell_stop, 0, 0);
}

/* Both are told by the timer, so never from within a call of ours. */
static void check_end(stg_lines *l)
{
    if (l->is_appending)
        return;
    if (l->is_stopped && l->stopped != NULL && !l->is_stop_told)
        end_stop(l);
    else if (!l->is_stopped && l->is_at_end && !l->is_broken &&
             l->batch->count == 0 && !l->view.has_ended &&
             !uv_is_active((uv_handle_t *)&l->timer)) {
        l->view.has_ended = true;
        (void)uv_timer_start(&l->timer, tell_end, 0, 0);
    }
}

/* All that can be done now. An append that is answered at once comes back here,
 * and goes on in the loop of the call that is under way. */
static void pump(stg_lines *l)
{
    if (l->is_pumping)
        return;
    l->is_pumping = true;
    while (may_append(l))
        append(l);
    stg_input_want(l->input, may_read(l));
    l->is_pumping = false;
    check_end(l);
}

/* -- open -------------------------------------------------------------------- */

static void free_lines(stg_lines *l)
{
    if (l->batch != NULL && !l->is_appending)
        free_batch(l->batch);
    stg_line_buffer_free(&l->buffer);
    free(l->content_type);
    free(l);
}

static stg_status refuse_memory(stg_error *err)
{
    return stg_hub_refuse(err, STG_IO, "standard input: no memory");
}

static stg_status open_all(stg_lines *l, stg_error *err)
{
    const char *type = l->options.content_type;

    l->batch = new_batch(l);
    l->content_type = type == NULL ? NULL : strdup(type);
    if (l->batch == NULL || (type != NULL && l->content_type == NULL))
        return refuse_memory(err);
    return stg_input_open(&l->input, l->loop, l->options.fd, take_piece, l,
                          err);
}

stg_status stg_lines_open(stg_lines **lines, uv_loop_t *loop,
                          const stg_lines_options *o, stg_error *err)
{
    size_t pending_min = o->message_max + 2 * STG_PIECE_MAX;
    stg_lines *l = calloc(1, sizeof *l);
    stg_status status;

    if (l == NULL)
        return refuse_memory(err);
    l->loop = loop;
    l->options = *o;
    // Or the longest line would never be whole.
    if (o->pending_max < pending_min)
        l->options.pending_max = pending_min;
    l->rng = stg_rng_seed(o->seed);
    l->last_wait = o->backoff.base;
    stg_line_buffer_init(&l->buffer, o->message_max);
    status = open_all(l, err);
    if (status != STG_OK) {
        free_lines(l);
        return status;
    }
    (void)uv_timer_init(loop, &l->timer); // cannot fail
    l->timer.data = l;
    *lines = l;
    pump(l);
    return STG_OK;
}

/* -- stop and close ---------------------------------------------------------- */

void stg_lines_stop(stg_lines *l, void (*stopped)(void *ctx), void *ctx)
{
    l->is_stopped = true;
    l->stopped = stopped;
    l->stopped_ctx = ctx;
    // What waits for room is asked for once more.
    (void)uv_timer_stop(&l->timer);
    pump(l);
}

static void part_closed(void *ctx)
{
    stg_lines *l = ctx;
    void (*closed)(void *ctx) = l->closed;
    void *closed_ctx = l->closed_ctx;

    if (--l->parts > 0)
        return;
    free_lines(l);
    closed(closed_ctx);
}

static void timer_closed(uv_handle_t *timer)
{
    part_closed(timer->data);
}

void stg_lines_close(stg_lines *l, void (*done)(void *ctx), void *ctx)
{
    l->closed = done;
    l->closed_ctx = ctx;
    l->parts = 2;
    if (l->is_appending)
        l->batch->lines = NULL;
    uv_close((uv_handle_t *)&l->timer, timer_closed);
    stg_input_close(l->input, part_closed, l);
}
