/* The hooks of http/server.h for a caller: begin, keep the body, finish,
 * refuse, end.
 *
 * A body that comes in pieces is kept in one buffer that grows; that of a
 * refused request is read on, up to a limit, and dropped, so that the client
 * gets to read its answer. */
#include <stdlib.h>
#include <string.h>

#include "ingress/internal.h"

static stg_caller *caller_of(stg_inbound *in)
{
    return (stg_caller *)in; // its first field
}

/* -- the body ---------------------------------------------------------------- */

/* Never NULL, also where it is empty. */
stg_span stg_caller_body(const stg_caller *c)
{
    if (c->lent.size > 0)
        return c->lent;
    return (stg_span){c->size == 0 ? "" : c->body, c->size};
}

static void drop_body(stg_caller *c)
{
    stg_caller_verified(c);
    stg_ingress_release(stg_ingress_of(c), c->in.client, c->room);
    free(c->body);
    c->body = NULL;
    c->size = c->room = 0;
    c->lent.size = 0;
}

/* The next room that holds size bytes: doubled, and no more than can come. A
 * length that is only announced costs nothing. */
static size_t next_room(const stg_caller *c, size_t size)
{
    enum { ROOM_MIN = 4096 };
    size_t most = stg_request_body_max(c),
           room = c->room < ROOM_MIN ? ROOM_MIN : c->room;

    if (c->in.request.length < most)
        most = (size_t)c->in.request.length;
    while (room < size)
        room *= 2;
    return room < most ? room : most;
}

/* Before it is whole nobody knows whether a webhook is signed: anybody can send it. */
static bool reserve(stg_caller *c, size_t bytes)
{
    return stg_request_body(c) == STG_BODY_WEBHOOK
               ? stg_caller_reserve_unverified(c, bytes)
               : stg_caller_reserve(c, c->room, bytes);
}

/* Bytes are counted against what may be pending before they are allocated. */
static bool make_room(stg_caller *c, size_t size)
{
    size_t room = next_room(c, size);
    char *body;

    if (c->body != NULL && size <= c->room)
        return true;
    if (!reserve(c, room - c->room))
        return false;
    body = realloc(c->body, room);
    if (body == NULL) {
        stg_ingress_release(stg_ingress_of(c), c->in.client, room - c->room);
        return stg_problem_set(&c->problem, 503, 0, "no memory");
    }
    c->body = body;
    c->room = room;
    return true;
}

/* A body in chunks has no length in advance, so its limit is looked at for
 * each piece. */
static bool keep_piece(stg_caller *c, stg_span piece)
{
    if (piece.size > stg_request_body_max(c) - c->size)
        return stg_problem_set(&c->problem, 413, 0,
                               "a body of more than %zu bytes",
                               stg_request_body_max(c));
    if (!make_room(c, c->size + piece.size))
        return false;
    memcpy(c->body + c->size, piece.at, piece.size);
    c->size += piece.size;
    return true;
}

/* A refused body is read on as far as a batch may be long, and then answered:
 * one who only sends would not read the answer sooner. */
static size_t discard_max(const stg_caller *c)
{
    return stg_ingress_of(c)->options.batch_max;
}

static void discard(stg_caller *c, size_t size)
{
    c->discarded += size;
    if (c->discarded > discard_max(c))
        stg_answer_caller(c);
}

/* Asked before each read of a body whose length is known, so that its bytes
 * are read to where they stay. */
static uv_buf_t find_room(stg_inbound *in)
{
    stg_caller *c = caller_of(in);

    if (c->problem.status == 0 && c->size == c->room &&
        !make_room(c, c->size + 1))
        drop_body(c);
    if (c->problem.status != 0)
        return (uv_buf_t){.len = 0};
    return (uv_buf_t){.base = c->body + c->size, .len = c->room - c->size};
}

static void take_body(stg_inbound *in, stg_span piece)
{
    stg_caller *c = caller_of(in);

    if (c->problem.status == 0) {
        if (c->body != NULL && piece.at == c->body + c->size)
            c->size += piece.size; // it was read to its place
        else if (piece.size == in->request.length)
            // It came whole: it stays where it was read, until the end of this
            // turn, and is copied once, into the message.
            c->lent = piece;
        else if (!keep_piece(c, piece))
            drop_body(c);
    }
    if (c->problem.status != 0)
        discard(c, piece.size);
}

/* -- from its header to its end ---------------------------------------------- */

/* A body that is too long to be read away is not waited for; nor is one whose
 * client waits for `100 Continue`. */
static void begin(stg_inbound *in)
{
    stg_caller *c = caller_of(in);

    c->discarded = 0;
    stg_request_check(c);
    if (c->problem.status == 0)
        return;
    if (in->request.length > discard_max(c) || in->request.wants_go_on)
        stg_answer_caller(c);
}

static void publish(stg_caller *c)
{
    bool is_webhook = stg_request_body(c) == STG_BODY_WEBHOOK;
    stg_publication *p = !is_webhook || stg_webhook_check(c, true)
                             ? stg_publication_new(c)
                             : NULL;

    if (p == NULL)
        stg_answer_caller(c);
    else
        stg_publish(p);
}

static void finish(stg_inbound *in)
{
    stg_caller *c = caller_of(in);

    // It may have begun before the stop.
    if (c->problem.status == 0)
        stg_request_check_stop(c);
    if (c->problem.status != 0)
        stg_answer_caller(c);
    else if (stg_request_is_published(c))
        publish(c);
    else
        stg_ask_begin(c);
}

/* What the server refuses before there is a request: the head has no route,
 * and nobody is asked who it is. */
static void refuse(stg_inbound *in, int status, const char *why)
{
    stg_caller *c = caller_of(in);

    if (status == 431)
        stg_problem_set(&c->problem, status, 0, "%s; the most is %zu bytes",
                        why, stg_ingress_of(c)->options.header_max);
    else
        stg_problem_set(&c->problem, status, 0, "%s", why);
    stg_answer_caller(c);
}

/* The connection stays, and its caller is used for the next request. */
static void end(stg_inbound *in)
{
    stg_caller *c = caller_of(in);

    drop_body(c);
    stg_answer_drop(c);
    if (c->publication != NULL)
        c->publication->caller = NULL;
    c->publication = NULL;
    if (c->ask != NULL)
        stg_ask_leave(c);
    if (c->stream != NULL)
        stg_stream_free(c);
    c->match.route = NULL;
    c->problem.status = 0;
}

static void calm(stg_httpd *s)
{
    stg_ingress_settle(s->ctx);
}

const stg_httpd_hooks stg_caller_hooks = {
    .size = sizeof(stg_caller),
    .head = begin,
    .room = find_room,
    .body = take_body,
    .whole = finish,
    .refused = refuse,
    .ended = end,
    .calm = calm,
};
