/* A line's position is its number, so the same position is always the same
 * message. The store gives the file a number of its own by a claim; flow then says
 * where the file is read on. Nothing is committed to a file: that a line is settled
 * is in the store's cursors alone. */
#include "tests/sources/lines_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/parcel.h"

enum { RECORDS_MAX = 100 }; /* of a read */

static const stg_ns PAUSE = 10 * STG_MS; /* until the file is looked at again */

/* What one of flow's two readers wants. */
typedef struct reader {
    stg_deadline turn; /* it is answered by the loop, not by flow's action */
    stg_action asked;
    struct lines_source *source;
} reader;

typedef struct lines_source {
    stg_source base;
    const char *path;
    reader main, catch_up;
    uint32_t number; /* STG_NO_PARTITION: not claimed yet */
    uint64_t end, committed;
    bool is_closed;
} lines_source;

typedef struct batch {
    stg_record records[RECORDS_MAX];
    size_t count, size; /* lines, and their bytes */
} batch;

static void pack(batch *b, uint64_t position, stg_span line)
{
    stg_parcel parcel = {.body = line};
    size_t size = stg_parcel_size(&parcel);
    void *bytes = malloc(size);

    if (bytes == NULL)
        abort();
    stg_parcel_pack(&parcel, bytes);
    b->records[b->count++] =
        (stg_record){.position = position, .bytes = bytes, .size = size};
    b->size += size;
}

/* Whole lines from a position on: one at least, if there is one. */
static void load(lines_source *s, uint64_t from, size_t bytes_max, batch *b)
{
    FILE *file = fopen(s->path, "r");
    char *line = NULL;
    size_t room = 0;
    ssize_t size;

    s->base.is_away = file == NULL;
    for (uint64_t at = 0;
         file != NULL && (size = getline(&line, &room, file)) > 0 &&
         line[size - 1] == '\n';
         at++) {
        if (at >= s->end)
            s->end = at + 1;
        if (at >= from && b->count < RECORDS_MAX &&
            (b->count == 0 || b->size < bytes_max))
            pack(b, at, (stg_span){line, (size_t)size - 1});
    }
    free(line);
    if (file != NULL)
        fclose(file);
}

static void unload(batch *b)
{
    while (b->count > 0)
        free((void *)(uintptr_t)b->records[--b->count].bytes);
}

static void set_turn(reader *r, stg_ns at)
{
    stg_deadline_set(r->source->base.host->deadlines, &r->turn, at);
}

/* The main reader waits for a line; a catch-up read is answered in any case. */
static void answer(stg_deadline *d)
{
    reader *r = STG_HEAP_HOLDER(d, reader, turn);
    const stg_source_host *h = r->source->base.host;
    const stg_action *a = &r->asked;
    batch b = {.count = 0};

    load(r->source, a->read.from, a->read.bytes_max, &b);
    if (b.count == 0 && !a->read.is_catch_up) {
        set_turn(r, stg_deadlines_now() + PAUSE);
        return;
    }
    r->source->base.messages += a->read.is_catch_up ? 0 : b.count;
    stg_flow_messages(h->flow, a->read.is_catch_up, a->partition,
                      a->read.assignment, b.records, b.count,
                      a->read.from + b.count, stg_deadlines_now());
    h->wake(h->ctx);
    unload(&b);
}

static void want(reader *r, const stg_action *a)
{
    r->asked = *a;
    set_turn(r, stg_deadlines_now());
}

static void read_main(stg_source *s, const stg_action *a)
{
    want(&((lines_source *)s)->main, a);
}

static void read_catch_up(stg_source *s, const stg_action *a)
{
    want(&((lines_source *)s)->catch_up, a);
}

static void reread(stg_source *s, uint32_t number, uint64_t from,
                   size_t bytes_max, size_t count_max, stg_read_fn *done,
                   void *done_ctx)
{
    batch b = {.count = 0};
    size_t count;

    (void)number;
    load((lines_source *)s, from, bytes_max, &b);
    count = b.count < count_max ? b.count : count_max;
    done(done_ctx, b.records, count, from + count);
    unload(&b);
}

static void commit(stg_source *s, uint32_t number, uint64_t position)
{
    (void)number;
    ((lines_source *)s)->committed = position;
}

/* The store's answer: flow gets the file, with the cursors that lanes have in it. */
static void claimed(void *ctx, const stg_claimed *c)
{
    lines_source *s = ctx;
    const stg_source_host *h = s->base.host;
    stg_assignment a = {.partition = c->number,
                        .generation = c->generation,
                        .floor = c->floor,
                        .cursors = c->cursors,
                        .cursor_count = c->count};

    if (s->is_closed || c->status != STG_OK)
        return;
    if (stg_flow_assign(h->flow, &a, stg_deadlines_now(), NULL) == STG_OK)
        s->number = c->number;
    h->wake(h->ctx);
}

static stg_status claim(stg_source *s, stg_error *err)
{
    stg_claim_ask ask = {.log = s->ops->name,
                         .topic = ((lines_source *)s)->path,
                         .end = STG_NO_POSITION,
                         .committed = STG_NO_POSITION,
                         .previous = STG_NO_PARTITION,
                         .ctx = s};

    (void)err;
    stg_store_claim(s->host->store, &ask, 1, claimed);
    return STG_OK;
}

static bool look(const stg_source *source, size_t i, stg_source_view *v)
{
    const lines_source *s = (const lines_source *)source;
    stg_partition_view flow;

    if (i > 0 || s->number == STG_NO_PARTITION ||
        stg_flow_view_partition(source->host->flow, s->number, &flow) != STG_OK)
        return false;
    *v = (stg_source_view){.topic = s->path,
                           .number = s->number,
                           .end = s->end,
                           .next = flow.next,
                           .committed = s->committed};
    return true;
}

static uint64_t lag(const stg_source *source, uint32_t lane,
                    const stg_lane_view *view)
{
    const lines_source *s = (const lines_source *)source;
    stg_lane_cursor_view v;

    (void)view;
    return stg_flow_view_cursor(source->host->flow, lane, s->number, &v) ==
                   STG_OK
               ? stg_ns_sub(s->end, v.next)
               : 0;
}

static void close_lines(stg_source *source, void (*closed)(void *ctx),
                        void *ctx)
{
    lines_source *s = (lines_source *)source;

    s->is_closed = true;
    stg_deadline_clear(source->host->deadlines, &s->main.turn);
    stg_deadline_clear(source->host->deadlines, &s->catch_up.turn);
    closed(ctx);
}

static void free_lines(stg_source *s)
{
    free(s);
}

stg_source *lines_source_new(const char *path)
{
    static const stg_source_ops ops = {.name = "lines",
                                       .elsewhere =
                                           "messages are the lines "
                                           "of a file",
                                       .open = claim,
                                       .read = read_main,
                                       .catch_up = read_catch_up,
                                       .commit = commit,
                                       .reread = reread,
                                       .look = look,
                                       .lag = lag,
                                       .close = close_lines,
                                       .free = free_lines};
    lines_source *s = calloc(1, sizeof *s);

    if (s == NULL)
        abort();
    *s = (lines_source){
        .base = {.ops = &ops}, .path = path, .number = STG_NO_PARTITION};
    s->main.source = s->catch_up.source = s;
    s->main.turn.passed = s->catch_up.turn.passed = answer;
    return &s->base;
}
