/* The request that is made of a batch: one body, one id, and the ids of its
 * messages. */
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "hub/batch.h"

enum { IDS_SHOWN_MAX = 4096 };

static stg_span join_ids(const stg_bundle *g)
{
    char *ids = malloc(g->count * (STG_MESSAGE_ID_MAX + 2)), *to = ids;

    for (stg_member *m = stg_batch_first(g); ids != NULL && m != NULL;
         m = stg_batch_next(g, m)) {
        char text[STG_MESSAGE_ID_MAX];
        stg_span id = stg_attempt_id(g->all, &m->attempt, text);

        if (to != ids)
            to = memcpy(to, ", ", 2), to += 2;
        to = (char *)memcpy(to, id.at, id.size) + id.size;
    }
    return (stg_span){ids, ids == NULL ? 0 : (size_t)(to - ids)};
}

void stg_batch_make_ids(const stg_bundle *g, stg_span *ids,
                        char id[STG_BATCH_ID_MAX])
{
    *ids = join_ids(g);
    if (ids->at == NULL || stg_batch_id(*ids, id))
        return;
    free((char *)(uintptr_t)ids->at);
    ids->at = NULL;
}

bool stg_batch_make_body(stg_bundle *g)
{
    stg_batch_format format = g->of->target->settings->batch.format;
    char *to = g->body = malloc(g->size + STG_BATCH_ENDS);

    for (stg_member *m = stg_batch_first(g); to != NULL && m != NULL;
         m = stg_batch_next(g, m))
        to = stg_batch_put(format, to, m->body, m == stg_batch_first(g));
    if (to == NULL)
        return false;
    g->body_size = (size_t)(stg_batch_end(format, to) - g->body);
    return true;
}

static unsigned hops_of(const stg_bundle *g)
{
    unsigned hops = 0;

    for (stg_member *m = stg_batch_first(g); m != NULL;
         m = stg_batch_next(g, m))
        if (m->attempt.hops > hops)
            hops = m->attempt.hops;
    return hops;
}

static char *put(char *to, const char *text, size_t size)
{
    return (char *)memcpy(to, text, size) + size;
}

static char *put_text(char *to, const char *text)
{
    return put(to, text, strlen(text));
}

static const char *type_of(const stg_bundle *g)
{
    return stg_batch_content_type(g->of->target->settings->batch.format,
                                  g->events == g->count);
}

stg_sign_request stg_batch_sign_request(const stg_bundle *g, stg_span id)
{
    const char *type = type_of(g);

    return stg_attempt_sign_request(g->of->target->settings, id,
                                    (stg_span){type, strlen(type)},
                                    (stg_span){g->body, g->body_size});
}

/* Returns their end; NULL: no memory. */
static char *put_headers(stg_bundle *g, char *to, stg_span ids, stg_span id,
                         stg_span signature)
{
    const stg_target *t = g->of->target;
    const char *type = type_of(g);
    char *given;

    to = put(put_text(to, "Idempotency-Key: "), id.at, id.size);
    to = stg_digits_put(put_text(to, "\r\nStagger-Batch: "), g->count);
    if (ids.size <= IDS_SHOWN_MAX)
        to = put(put_text(to, "\r\nStagger-Messages: "), ids.at, ids.size);
    to = stg_digits_put(put_text(to, "\r\nStagger-Hops: "), hops_of(g) + 1);
    given = put_text(to, "\r\n");
    to = put_text(put_text(given, "Content-Type: "), type);
    to = stg_attempt_drop_targets(t, given, put_text(to, "\r\n"));
    if (t->token != NULL)
        to = stg_oauth_put(t->token, to, &g->token);
    if (signature.size > 0)
        return put(to, signature.at, signature.size);
    return stg_attempt_put_signature(to, t->settings, id,
                                     (stg_span){type, strlen(type)},
                                     (stg_span){g->body, g->body_size});
}

/* To be freed; at is NULL: no memory. */
static stg_span make_headers(stg_bundle *g, stg_span signature)
{
    enum { OWN_MAX = 256 };
    const stg_target *t = g->of->target;
    size_t room = OWN_MAX + STG_BATCH_ID_MAX + IDS_SHOWN_MAX;
    char id[STG_BATCH_ID_MAX], *made = NULL, *end = NULL;
    stg_span ids;

    if (t->settings->signer != NULL)
        room += stg_signer_room(t->settings->signer, STG_BATCH_ID_MAX);
    if (t->token != NULL)
        room += stg_oauth_room(t->token);
    stg_batch_make_ids(g, &ids, id);
    if (ids.at != NULL)
        made = malloc(room);
    if (made != NULL)
        end = put_headers(g, made, ids, (stg_span){id, strlen(id)}, signature);
    free((char *)(uintptr_t)ids.at);
    if (end != NULL)
        return (stg_span){made, (size_t)(end - made)};
    free(made);
    return (stg_span){.at = NULL};
}

static stg_ns timeout_of(const stg_bundle *g)
{
    stg_ns timeout = 0;

    for (stg_member *m = stg_batch_first(g); m != NULL;
         m = stg_batch_next(g, m))
        if (m->timeout > timeout)
            timeout = m->timeout;
    return timeout;
}

bool stg_batch_send(stg_bundle *g, stg_span signature, stg_reply_fn *done)
{
    stg_span headers = make_headers(g, signature);

    if (headers.at != NULL)
        g->exchange = stg_endpoint_send(g->of->target->endpoint, headers,
                                        (stg_span){g->body, g->body_size},
                                        timeout_of(g), done, g);
    free((char *)(uintptr_t)headers.at);
    return g->exchange != NULL;
}
