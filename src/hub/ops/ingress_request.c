#include <stdlib.h>
#include <string.h>

#include "hub/ops/ingress_inside.h"

void stg_request_drop(stg_caller *c)
{
    stg_ingress_release(c->ingress, c->room);
    free(c->body);
    c->body = NULL;
    c->size = c->room = 0;
}

/* -- the body ---------------------------------------------------------------- */

/* The next room that holds size bytes: doubled, and no more than can come. A
 * length that is only announced costs nothing. */
static size_t next_room(const stg_caller *c, size_t size)
{
    enum { ROOM_MIN = 4096 };
    size_t most = stg_request_body_max(c),
           room = c->room < ROOM_MIN ? ROOM_MIN : c->room;

    if (c->length < most)
        most = (size_t)c->length;
    while (room < size)
        room *= 2;
    return room < most ? room : most;
}

static bool make_room(stg_caller *c, size_t size)
{
    size_t room = next_room(c, size);
    char *body;

    if (size <= c->room)
        return true;
    if (!stg_ingress_reserve(c->ingress, room - c->room))
        return stg_problem_set(&c->problem, 503, 0,
                               "too many bytes wait for their commit");
    body = realloc(c->body, room);
    if (body == NULL) {
        stg_ingress_release(c->ingress, room - c->room);
        return stg_problem_set(&c->problem, 503, 0, "no memory");
    }
    c->body = body;
    c->room = room;
    return true;
}

static bool keep_piece(stg_caller *c, const char *piece, size_t size)
{
    if (size > stg_request_body_max(c) - c->size)
        return stg_problem_set(&c->problem, 413, 0,
                               "a body of more than %zu bytes",
                               stg_request_body_max(c));
    if (!make_room(c, c->size + size))
        return false;
    memcpy(c->body + c->size, piece, size);
    c->size += size;
    return true;
}

/* A refused body is read on as far as a batch may be long: one who still sends
 * sees the end of the connection, and not the answer. */
static size_t discard_max(const stg_caller *c)
{
    return c->ingress->options.batch_max;
}

static enum MHD_Result discard_piece(stg_caller *c, size_t size)
{
    c->discarded += size;
    if (c->discarded <= discard_max(c))
        return MHD_YES;
    stg_answer_raw(c, &c->problem);
    return MHD_NO;
}

static enum MHD_Result take_piece(stg_caller *c, const char *piece, size_t size)
{
    stg_caller_enter(c, STG_PHASE_BODY);
    if (c->problem.status == 0 && !keep_piece(c, piece, size))
        stg_request_drop(c);
    return c->problem.status == 0 ? MHD_YES : discard_piece(c, size);
}

/* -- from its header to its end ---------------------------------------------- */

static enum MHD_Result begin(stg_caller *c, const char *url, const char *method,
                             const char *version)
{
    c->discarded = 0;
    c->is_last = false;
    stg_caller_enter(c, STG_PHASE_BODY);
    stg_request_check(c, url, method, version);
    if (c->problem.status == 0)
        return MHD_YES;
    if (c->length <= discard_max(c) && stg_request_header(c, "Expect") == NULL)
        return MHD_YES;
    c->is_last = true;
    return stg_answer(c);
}

static enum MHD_Result publish(stg_caller *c)
{
    stg_publication *p = stg_publication_new(c);

    if (p == NULL)
        return stg_answer(c);
    stg_publish(p);
    return MHD_YES;
}

static enum MHD_Result finish(stg_caller *c, const char *url)
{
    // It may have begun before the stop.
    if (c->problem.status == 0)
        stg_request_check_stop(c);
    if (c->problem.status != 0)
        return stg_answer(c);
    return stg_request_is_published(c) ? publish(c) : stg_ask_begin(c, url);
}

enum MHD_Result stg_request_handle(void *ingress,
                                   struct MHD_Connection *connection,
                                   const char *url, const char *method,
                                   const char *version, const char *piece,
                                   size_t *piece_size, void **caller)
{
    stg_caller *c = *caller;
    size_t size = *piece_size;

    (void)ingress;
    (void)connection;
    if (c == NULL) // no memory for it
        return MHD_NO;
    *piece_size = 0;
    switch (c->phase) {
    case STG_PHASE_HEADER:
        return begin(c, url, method, version);
    case STG_PHASE_BODY:
        return size > 0 ? take_piece(c, piece, size) : finish(c, url);
    case STG_PHASE_WAIT:
        return stg_answer(c);
    case STG_PHASE_ANSWER:
        break;
    }
    return MHD_YES;
}
