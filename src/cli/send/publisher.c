/* `stagger send` from the first byte of its input to the receipt.
 *
 * step() moves on as far as it can without waiting: a free post, a line for its
 * batch, or a read. A pipe is read only when poll says that it is ready, and a
 * batch goes out as soon as the pipe has no more for now, so a slow producer's
 * lines do not wait for others. When all posts are under way nothing is read: a
 * hub that is full slows the producer down. */
#include "cli/send/send.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/env.h>

#include "cli/options.h"

static const char who[] = "stagger send";

/* LONG_WAIT: attempts of one request. */
enum { SHOW_EVERY_MS = 100, SIGNALS = 2, LONG_WAIT = 5 };

typedef struct publisher {
    const send_options *o;
    send_input *in;
    send_result *result;
    uv_loop_t loop;
    uv_poll_t ready; /* for an input that one waits for */
    uv_timer_t show;
    uv_signal_t signals[SIGNALS];
    bool can_poll, is_polling;
    bool has_told_wait; /* since a message was accepted */
    stg_client *client;
    stg_endpoint *endpoint;
    stg_peer peer;
    stg_hook hook;
    send_line line;
    send_progress progress;
    char *fields;                   /* of the lines' messages */
    char *headers;                  /* of a whole message */
    uint64_t first_line, last_line; /* lines of result.first, last; 0: none */
    bool is_stopping;               /* nothing is read or begun any more */
    bool is_over;                   /* and all is closing */
    uint32_t busy;
    send_post *filling; /* the next batch */
    send_post posts[SEND_IN_FLIGHT_MAX];
    send_post *free[SEND_IN_FLIGHT_MAX];
    uint32_t free_count;
} publisher;

static stg_ns read_clock(void)
{
    return stg_env_system()->now(NULL);
}

static void go_on(publisher *p);

/* -- what comes of a post -------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void fail(publisher *p,
                                                       const char *format, ...)
{
    char text[SEND_DETAIL_MAX + STG_REPORT_TEXT_MAX + 128];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    stg_send_progress_finish(&p->progress);
    stg_options_complain(who, "%s", text);
    p->result->has_failed = p->is_stopping = true;
}

/* "line 7: ", "lines 1 to 500: ", or nothing for a whole message. */
static const char *name_lines(const send_post *post, char text[64])
{
    const send_batch *b = &post->batch;
    bool is_one = post->line > 0 && post->line <= b->count;

    text[0] = '\0';
    if (b->count > 0 && (is_one || b->count == 1))
        snprintf(text, 64, "line %" PRIu64 ": ",
                 b->lines[is_one ? post->line - 1 : 0]);
    else if (b->count > 0)
        snprintf(text, 64, "lines %" PRIu64 " to %" PRIu64 ": ", b->lines[0],
                 b->lines[b->count - 1]);
    return text;
}

/* For good, and by the only attempt: the hub has none of it. */
static bool is_refused(const send_post *post)
{
    return post->status >= 400 && post->status <= 499 && post->status != 408 &&
           post->status != 425 && post->status != 429 &&
           post->report.attempts == 1 && post->report.next != STG_DONE;
}

static void tell_failure(publisher *p, const send_post *post)
{
    char lines[64], text[STG_REPORT_TEXT_MAX];
    const char *detail = post->detail;

    name_lines(post, lines);
    if (!p->result->has_failed && is_refused(post))
        p->result->refused = post->status;
    if (post->report.next == STG_DONE)
        fail(p, "%s%s", lines, detail);
    else if (is_refused(post))
        fail(p, "%srefused with %d%s%s", lines, post->status,
             detail[0] == '\0' ? "" : " ", detail);
    else
        fail(p, "%s%s%s%s", lines, stg_report_text(&post->report, text),
             detail[0] == '\0' ? "" : ": ", detail);
}

/* Batches may end in any order: the ids of the lowest and the highest line. */
static void note_ids(publisher *p, const send_post *post)
{
    const send_batch *b = &post->batch;
    uint64_t first = b->count == 0 ? 1 : b->lines[0];
    uint64_t last = b->count == 0 ? 1 : b->lines[b->count - 1];

    if (p->first_line == 0 || first < p->first_line) {
        p->first_line = first;
        memcpy(p->result->first, post->first, sizeof post->first);
    }
    if (last > p->last_line) {
        p->last_line = last;
        memcpy(p->result->last, post->last, sizeof post->last);
    }
}

/* After a failure nothing new begins (fail() sets is_stopping), but what is
 * under way ends by itself and is counted. */
static void on_posted(send_post *post)
{
    publisher *p = post->ctx;

    if (post->is_accepted) {
        p->result->messages += post->messages;
        p->progress.messages += post->messages;
        p->progress.bytes += post->batch.bytes;
        p->progress.trouble[0] = '\0';
        p->has_told_wait = false;
        note_ids(p, post);
    } else {
        tell_failure(p, post);
    }
    stg_send_batch_clear(&post->batch);
    p->free[p->free_count++] = post;
    p->busy--;
    go_on(p);
}

/* Each wait, for the line on the terminal; without one, a long wait is told
 * once, or a pipe that stands still would say nothing. */
static void on_event(void *ctx, const stg_event *e)
{
    publisher *p = ctx;
    char cause[STG_CAUSE_MAX];

    if (e->decision.next != STG_WAIT || e->outcome == NULL)
        return;
    snprintf(p->progress.trouble, sizeof p->progress.trouble, "%s",
             stg_outcome_name(e->outcome, cause));
    if (e->retry->attempts < LONG_WAIT || p->progress.is_shown ||
        p->has_told_wait)
        return;
    p->has_told_wait = true;
    stg_options_complain(who, "waiting for the hub: %s", p->progress.trouble);
}

/* A post that cannot start does not come back to `free`, as the run ends. */
static void start_post(publisher *p, send_post *post)
{
    p->busy++;
    if (stg_send_post_start(post, &p->line, on_posted) == STG_OK)
        return;
    p->busy--;
    fail(p, "%s", post->report.flaw);
}

/* -- lines ----------------------------------------------------------------- */

/* The post keeps its batch until it has ended: the body is the batch's own
 * memory, and a retry sends it again. */
static void send_batch_now(publisher *p)
{
    send_post *post = p->filling;

    p->filling = NULL;
    post->body = (stg_span){post->batch.text.at, post->batch.text.size};
    post->messages = post->batch.count;
    start_post(p, post);
}

/* Adds a line to the batch, or sends the batch before it. A line that does not
 * fit is given back and comes again for the next batch. A line that is refused
 * stops the run; the batch that was being filled is not sent. */
static void take_line(publisher *p, stg_span line)
{
    const char *why;
    uint64_t number = p->in->lines;

    switch (stg_send_batch_add(&p->filling->batch, p->o, p->fields, line,
                               number, &why)) {
    case SEND_ADD_FULL:
        send_batch_now(p);
        stg_send_input_return(p->in);
        break;
    case SEND_ADD_REFUSED:
        fail(p, "line %" PRIu64 ": %s", number, why);
        break;
    case SEND_ADD_FAILED:
        fail(p, "line %" PRIu64 ": there is no memory", number);
        break;
    case SEND_ADDED:
        break;
    }
}

static void on_ready(uv_poll_t *ready, int status, int events)
{
    publisher *p = ready->data;

    (void)status; // the read will say it, too
    (void)events;
    uv_poll_stop(&p->ready);
    p->is_polling = false;
    go_on(p);
}

/* True: it was read, or tried, or a batch went out; false: there is to be
 * waited. The poll is one-shot: on_ready() stops it, since a level-triggered
 * poll would wake the loop all the time while all posts are busy. */
static bool fill(publisher *p)
{
    int error;

    if (p->can_poll && !stg_send_input_is_ready(p->in)) {
        if (p->filling->batch.count > 0) {
            send_batch_now(p);
            return true;
        }
        if (!p->is_polling)
            uv_poll_start(&p->ready, UV_READABLE, on_ready);
        p->is_polling = true;
        return false;
    }
    error = stg_send_input_fill(p->in);
    if (error != 0)
        fail(p, "%s: %s", p->o->file == NULL ? "standard input" : p->o->file,
             error == EFBIG ? "a line is longer than 256 MiB"
                            : strerror(error));
    return true;
}

/* A step forward; false where there is to be waited, or nothing to do. */
static bool step(publisher *p)
{
    stg_span line;

    if (p->filling == NULL) {
        if (p->free_count == 0)
            return false;
        p->filling = p->free[--p->free_count];
    }
    if (stg_send_input_line(p->in, &line)) {
        take_line(p, line);
        return true;
    }
    if (!p->in->has_ended)
        return fill(p);
    p->is_stopping = true;
    if (p->filling->batch.count > 0)
        send_batch_now(p);
    return false;
}

/* -- the end --------------------------------------------------------------- */

/* The client and its endpoint have handles of their own in this loop, which
 * they close themselves. */
static void close_handle(uv_handle_t *handle, void *ctx)
{
    publisher *p = ctx;
    bool is_ours =
        handle == (uv_handle_t *)&p->ready || handle == (uv_handle_t *)&p->show;

    for (int i = 0; i < SIGNALS; i++)
        is_ours = is_ours || handle == (uv_handle_t *)&p->signals[i];
    if (is_ours && !uv_is_closing(handle))
        uv_close(handle, NULL);
}

/* The only place where the end is decided: called after everything that can
 * change is_stopping or busy. The loop runs out when the handles are closed. */
static void go_on(publisher *p)
{
    while (!p->is_stopping && step(p))
        ;
    if (!p->is_stopping || p->busy > 0 || p->is_over)
        return;
    p->is_over = true;
    uv_walk(&p->loop, close_handle, p);
    stg_endpoint_free(p->endpoint);
    stg_client_close(p->client, NULL, NULL);
}

/* Requests under way are cancelled, not waited for: the same --id makes it safe
 * to send them again. */
static void on_signal(uv_signal_t *signal, int number)
{
    publisher *p = signal->data;

    p->result->stopped_by = number;
    p->is_stopping = true;
    for (size_t i = 0; i < SEND_IN_FLIGHT_MAX; i++)
        stg_send_post_cancel(&p->posts[i]);
    go_on(p);
}

static void on_show(uv_timer_t *timer)
{
    publisher *p = timer->data;

    stg_send_progress_show(&p->progress, read_clock());
}

/* -- the beginning --------------------------------------------------------- */

static void watch_signals(publisher *p)
{
    static const int numbers[SIGNALS] = {SIGINT, SIGTERM};

    for (int i = 0; i < SIGNALS; i++) {
        uv_signal_init(&p->loop, &p->signals[i]);
        p->signals[i].data = p;
        uv_signal_start(&p->signals[i], on_signal, numbers[i]);
    }
}

/* Prepares to wait for input. Files that epoll cannot watch (a regular file,
 * /dev/null) are read without a wait. */
static void watch_input(publisher *p)
{
    p->can_poll = !p->in->is_regular &&
                  uv_poll_init(&p->loop, &p->ready, p->in->file) == 0;
    p->ready.data = p;
}

static void prepare(publisher *p)
{
    uint32_t count = p->o->form == SEND_WHOLE ? 1 : p->o->in_flight;

    stg_peer_init(&p->peer, &p->o->policy);
    p->hook = (stg_hook){.on = on_event, .ctx = p};
    p->line = (send_line){.loop = &p->loop,
                          .endpoint = p->endpoint,
                          .policy = &p->o->policy,
                          .peer = &p->peer,
                          .hook = &p->hook,
                          .has_keys = !p->o->has_no_id};
    for (uint32_t i = count; i > 0; i--) {
        p->posts[i - 1].ctx = p;
        p->free[p->free_count++] = &p->posts[i - 1];
    }
    uv_timer_init(&p->loop, &p->show);
    p->show.data = p;
    watch_signals(p);
}

static void send_lines(publisher *p)
{
    watch_input(p);
    stg_send_progress_begin(&p->progress, p->in->total, read_clock());
    if (p->progress.is_shown)
        uv_timer_start(&p->show, on_show, SHOW_EVERY_MS, SHOW_EVERY_MS);
    go_on(p);
}

/* One request and nothing to read: is_stopping lets go_on() end it when it has
 * reported. */
static void send_whole(publisher *p)
{
    send_post *post = p->free[--p->free_count];

    post->headers = (stg_span){p->headers, strlen(p->headers)};
    post->body = stg_send_input_whole(p->in);
    post->messages = 1;
    p->is_stopping = true;
    start_post(p, post);
    go_on(p);
}

/* A whole message is read before anything begins; it may wait for a pipe. */
static stg_status read_whole(const send_options *o, send_input *in,
                             stg_error *err)
{
    int error = 0;

    while (error == 0 && !in->has_ended)
        error = stg_send_input_fill(in);
    if (error == 0)
        return STG_OK;
    snprintf(err->text, sizeof err->text, "%s: %s",
             o->file == NULL ? "standard input" : o->file,
             error == EFBIG ? "longer than 256 MiB" : strerror(error));
    return STG_IO;
}

static stg_status open_endpoint(publisher *p, stg_error *err)
{
    const stg_egress any = {.is_open = true}; // a person named the address
    stg_status status = stg_client_new(&p->client, &p->loop, err);

    if (status != STG_OK)
        return status;
    status = stg_client_set_egress(p->client, &any, err);
    if (status == STG_OK)
        status = stg_send_endpoint_open(&p->endpoint, p->client, p->o, err);
    if (status != STG_OK)
        stg_client_close(p->client, NULL, NULL);
    return status;
}

/* The loop is run after an error, too: the client closes its handles in it. */
static stg_status run(publisher *p, stg_error *err)
{
    bool is_whole = p->o->form == SEND_WHOLE;
    stg_status status = STG_OK;

    if (is_whole)
        status = read_whole(p->o, p->in, err);
    if (status == STG_OK)
        status = open_endpoint(p, err);
    if (status == STG_OK) {
        prepare(p);
        if (is_whole)
            send_whole(p);
        else
            send_lines(p);
    }
    uv_run(&p->loop, UV_RUN_DEFAULT);
    if (p->progress.is_line_open)
        stg_send_progress_show(&p->progress, read_clock());
    stg_send_progress_finish(&p->progress);
    return status;
}

stg_status stg_send_publish(const send_options *o, send_input *in,
                            send_result *result, stg_error *err)
{
    publisher *p = calloc(1, sizeof *p);
    stg_status status = STG_IO;

    *result = (send_result){0};
    *err = (stg_error){.text = "there is no memory"};
    if (p == NULL || uv_loop_init(&p->loop) != 0) {
        free(p);
        return STG_IO;
    }
    p->o = o;
    p->in = in;
    p->result = result;
    if (stg_send_batch_fields(&p->fields, o) &&
        stg_send_headers_make(&p->headers, o))
        status = run(p, err);
    uv_loop_close(&p->loop);
    for (size_t i = 0; i < SEND_IN_FLIGHT_MAX; i++)
        stg_send_batch_free(&p->posts[i].batch);
    free(p->fields);
    free(p->headers);
    free(p);
    return status;
}
