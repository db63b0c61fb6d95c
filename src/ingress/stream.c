/* Server-sent events: what comes in one turn of the loop is sent as one piece in the
 * next, a comment keeps the connection alive, and a client that does not read is cut
 * when more waits for it than may. */
#include "ingress/ask.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "ingress/internal.h"

struct stg_stream {
    stg_caller *caller;
    stg_deadline due; /* of what waits, or of a comment */
    char *text;       /* that waits */
    size_t size, room;
    bool is_full; /* it waits for more than may wait */
    void (*left)(void *ctx);
    void *left_ctx;
};

/* When the client may come again. */
#define RETRY_MIN (1 * STG_S)
#define RETRY_MAX (5 * STG_S)

/* -- text that waits --------------------------------------------------------- */

static bool make_room(stg_stream *s, size_t size)
{
    size_t room = s->room == 0 ? 1024 : s->room;
    char *text;

    while (room < s->size + size)
        room *= 2;
    if (room == s->room)
        return true;
    text = room > STG_INBOUND_UNSENT_MAX ? NULL : realloc(s->text, room);
    if (text == NULL)
        return false;
    s->text = text;
    s->room = room;
    return true;
}

/* It is sent in the next turn; or where there is no room for it, the stream is
 * cut then. */
static void add(stg_stream *s, const char *text, size_t size)
{
    if (s->size == 0)
        stg_deadline_set(&stg_ingress_of(s->caller)->server.deadlines, &s->due,
                         0);
    s->is_full = s->is_full || !make_room(s, size);
    if (s->is_full)
        return;
    memcpy(s->text + s->size, text, size);
    s->size += size;
}

void stg_stream_send(stg_stream *s, stg_span data)
{
    add(s, "data: ", 6);
    add(s, data.at, data.size);
    add(s, "\n\n", 2);
}

/* -- time -------------------------------------------------------------------- */

static void pass(stg_deadline *d)
{
    stg_stream *s = STG_HOLDER((void *)d, stg_stream, due);
    stg_ingress *g = stg_ingress_of(s->caller);
    size_t size = s->size;

    if (s->caller->in.phase != STG_INBOUND_STREAM)
        return;
    stg_deadline_set(&g->server.deadlines, d,
                     stg_ns_add(stg_deadlines_now(), g->options.stream_pause));
    s->size = 0;
    // Each of these may be the end of s.
    if (s->is_full)
        stg_inbound_cut(&s->caller->in);
    else if (size > 0)
        stg_inbound_send_piece(&s->caller->in, s->text, size);
    else
        stg_inbound_send_piece(&s->caller->in, ":\n\n", 3);
}

/* -- its beginning and end --------------------------------------------------- */

static void add_retry(stg_stream *s)
{
    uint64_t random = stg_hash_seed_draw(stg_env_system()).at[0];
    char text[40];
    int size =
        snprintf(text, sizeof text, "retry: %" PRIu64 "\n\n",
                 (RETRY_MIN + random % (RETRY_MAX - RETRY_MIN)) / STG_MS);

    add(s, text, (size_t)size);
}

stg_stream *stg_stream_new(stg_caller *c, void (*left)(void *ctx), void *ctx)
{
    stg_stream *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->caller = c;
    s->left = left;
    s->left_ctx = ctx;
    s->due.passed = pass;
    c->stream = s;
    stg_ingress_of(c)->streams++;
    add_retry(s);
    return s;
}

void stg_stream_begin(stg_caller *c, const char *more)
{
    stg_inbound_begin_stream(&c->in, 200, "text/event-stream", more);
}

/* What waits is sent first. Where the client has not read all of it, the
 * connection is closed instead: nobody waits for a reader at a stop. */
void stg_stream_end(stg_caller *c)
{
    stg_stream *s = c->stream;

    if (s->size > 0 && !s->is_full)
        stg_inbound_send_piece(&c->in, s->text, s->size);
    if (c->stream == NULL)
        return;
    if (s->is_full || stg_inbound_unsent(&c->in) > 0)
        stg_inbound_close(&c->in);
    else
        stg_inbound_end_stream(&c->in);
}

/* `left` is called here and nowhere else, whatever has ended the stream. */
void stg_stream_free(stg_caller *c)
{
    stg_stream *s = c->stream;
    stg_ingress *g = stg_ingress_of(c);

    c->stream = NULL;
    g->streams--;
    stg_deadline_clear(&g->server.deadlines, &s->due);
    s->left(s->left_ctx);
    free(s->text);
    free(s);
}
