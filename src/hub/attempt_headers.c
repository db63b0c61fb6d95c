/* The headers of an attempt's request: ids and numbers of the hub, the message's own,
 * the access token, the signature, and the trace.
 *
 * Made anew for each attempt. What the settings of the target say, or its signature
 * has, drops a message's own line of that name. */
#include "hub/attempt.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "host/wall.h"
#include "http/header.h"

/* The hub's own headers: bytes, without what is given and without ids, and lines
 * that have the message's id. */
enum { OWN_MAX = 260, OWN_IDS = 2 };

static char *put(char *to, const char *text, size_t size)
{
    if (size > 0)
        memcpy(to, text, size);
    return to + size;
}

#define PUT(to, literal) put((to), (literal), sizeof(literal) - 1)

/* Tells whether the queue accepted the message since this start: most were. */
static bool is_plain(const stg_attempts *all, const stg_attempt *a)
{
    return a->partition == 0 &&
           stg_store_epoch_at(all->hub->store, a->position) == all->epoch;
}

/* The id of a plain message is printed here, from a prefix made once: it is
 * done for every attempt. */
stg_span stg_attempt_id(const stg_attempts *all, const stg_attempt *a,
                        char text[STG_MESSAGE_ID_MAX])
{
    if (is_plain(all, a)) {
        char *end = stg_digits_put(put(text, all->prefix, all->prefix_size),
                                   a->position);

        return (stg_span){text, (size_t)(end - text)};
    }
    stg_store_id(all->hub->store, a->partition, a->position, text);
    return (stg_span){text, strlen(text)};
}

static bool is_targets(const stg_target *t, stg_span name)
{
    const stg_target_settings *s = t->settings;

    if (s->signer != NULL && stg_signer_sets(s->signer, name))
        return true;
    for (size_t i = 0; i < s->header_count; i++)
        if (stg_header_matches(s->headers[i].name, name))
            return true;
    return false;
}

char *stg_attempt_drop_targets(const stg_target *t, char *from, char *to)
{
    stg_span lines = {from, (size_t)(to - from)}, line;

    to = from;
    while ((line = stg_header_next(&lines)).size > 0) {
        if (is_targets(t, stg_header_name(line)))
            continue;
        memmove(to, line.at, line.size);
        to += line.size;
    }
    return to;
}

/* The headers that the intake has kept, and behind them the attempt's
 * traceparent. */
static char *put_kept(char *to, stg_attempts *all, stg_attempt *a, stg_span id,
                      const stg_parcel *p)
{
    // All attempts of a message have one trace, wherever they are made, and
    // after a restart, too.
    uint64_t epoch = a->partition == 0
                         ? stg_store_epoch_at(all->hub->store, a->position)
                         : stg_parcel_hash(id);

    return stg_trace_put(to, p->headers, all->trace, epoch, a->position,
                         stg_rng_next(&all->rng), all->share, &a->trace);
}

static char *put_given(char *to, const stg_parcel *p)
{
    if (p->key.size > 0)
        to = PUT(put(PUT(to, "Stagger-Key: "), p->key.at, p->key.size), "\r\n");
    if (p->content_type.size > 0)
        to = PUT(put(PUT(to, "Content-Type: "), p->content_type.at,
                     p->content_type.size),
                 "\r\n");
    return to;
}

stg_sign_request stg_attempt_sign_request(const stg_target_settings *s,
                                          stg_span id, stg_span content_type,
                                          stg_span body)
{
    return (stg_sign_request){.id = id,
                              .seconds = stg_wall_now() / STG_S,
                              .body = body,
                              .content_type = content_type,
                              .method = s->common->method,
                              .url = s->url};
}

char *stg_attempt_put_signature(char *to, const stg_target_settings *s,
                                stg_span id, stg_span content_type,
                                stg_span body)
{
    stg_sign_request r STG_UNINITIALIZED;

    if (s->signer == NULL)
        return to;
    r = stg_attempt_sign_request(s, id, content_type, body);
    return stg_signer_put(s->signer, to, &r);
}

void stg_attempt_trace(stg_attempt *a, const stg_parcel *p)
{
    stg_attempts *all = &a->hub->attempts;
    char id[STG_MESSAGE_ID_MAX], *lines = NULL;

    if (a->hub->spans.is_on)
        lines = malloc(p->headers.size + STG_TRACE_LINE_MAX);
    if (lines != NULL)
        (void)put_kept(lines, all, a, stg_attempt_id(all, a, id), p);
    free(lines);
}

/* signature: its lines, if they are there. NULL: no memory. */
static char *put_headers(char *to, stg_attempts *all, stg_attempt *a,
                         stg_span id, const stg_parcel *p, stg_span signature)
{
    const stg_target_settings *s = a->target->settings;
    char *kept;

    to = put(PUT(to, "Idempotency-Key: "), id.at, id.size);
    to = put(PUT(to, "\r\nStagger-Message: "), id.at, id.size);
    to = stg_digits_put(PUT(to, "\r\nStagger-Hops: "), a->hops + 1);
    to = stg_digits_put(PUT(to, "\r\nStagger-Attempt: "), a->number);
    if (a->number_max != STG_UNLIMITED)
        to = stg_digits_put(PUT(to, "\r\nStagger-Attempts-Max: "),
                            a->number_max);
    to = put_given(PUT(to, "\r\n"), p);
    if (a->target->token != NULL)
        to = stg_oauth_put(a->target->token, to, &a->token);
    kept = signature.size > 0
               ? put(to, signature.at, signature.size)
               : stg_attempt_put_signature(to, s, id, p->content_type, p->body);
    if (kept == NULL)
        return NULL;
    to = put_kept(kept, all, a, id, p);
    return s->header_count > 0 || s->signer != NULL
               ? stg_attempt_drop_targets(a->target, kept, to)
               : to;
}

/* The room is counted before, part by part; the assertion holds both sides together. */
bool stg_attempt_headers(stg_attempts *all, stg_attempt *a, const stg_parcel *p,
                         stg_span signature, stg_span *headers, char **more)
{
    char text[STG_MESSAGE_ID_MAX] STG_UNINITIALIZED, *to = all->headers, *end;
    const stg_signer *signer = a->target->settings->signer;
    stg_span id = stg_attempt_id(all, a, text);
    size_t room = OWN_MAX + OWN_IDS * id.size + p->key.size +
                  p->content_type.size + p->headers.size;

    *more = NULL;
    if (signer != NULL)
        room += stg_signer_room(signer, id.size);
    if (a->target->token != NULL)
        room += stg_oauth_room(a->target->token);
    if (room > sizeof all->headers)
        to = *more = malloc(room);
    if (to == NULL)
        return false;
    end = put_headers(to, all, a, id, p, signature);
    if (end == NULL)
        return false;
    *headers = (stg_span){to, (size_t)(end - to)};
    assert(headers->size <= room);
    return true;
}
