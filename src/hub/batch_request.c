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

static void free_ids(stg_bundle *g)
{
    free((char *)(uintptr_t)g->ids.at);
    g->ids.at = NULL;
}

/* A member's index is its place in the body, by which results are read. The request
 * has come through as many hubs as the message that came through most. */
bool stg_batch_make(stg_bundle *g)
{
    stg_batch_format format = g->of->target->settings->common->batch.format;
    char *to = g->body = malloc(g->size + STG_BATCH_ENDS);

    g->ids = join_ids(g);
    if (to == NULL || g->ids.at == NULL || !stg_batch_id(g->ids, g->id))
        return false;
    g->type = stg_batch_content_type(format, g->events == g->count);
    for (stg_member *m = stg_batch_first(g); m != NULL;
         m = stg_batch_next(g, m)) {
        to = stg_batch_put(format, to, m->body, g->sent_count == 0);
        m->index = g->sent_count++;
        if (m->attempt.hops > g->hops)
            g->hops = m->attempt.hops;
    }
    g->body_size = (size_t)(stg_batch_end(format, to) - g->body);
    return true;
}

void stg_batch_unmake(stg_bundle *g)
{
    free_ids(g);
    free(g->body);
}

static char *put(char *to, const char *text, size_t size)
{
    return (char *)memcpy(to, text, size) + size;
}

static char *put_text(char *to, const char *text)
{
    return put(to, text, strlen(text));
}

stg_sign_request stg_batch_sign_request(const stg_bundle *g)
{
    return stg_attempt_sign_request(g->of->target->settings, stg_span_of(g->id),
                                    stg_span_of(g->type),
                                    (stg_span){g->body, g->body_size});
}

/* Returns their end; NULL: no memory. */
static char *put_headers(stg_bundle *g, char *to, stg_span signature)
{
    const stg_target *t = g->of->target;
    char *given;

    to = put_text(put_text(to, "Idempotency-Key: "), g->id);
    to = stg_digits_put(put_text(to, "\r\nStagger-Batch: "), g->sent_count);
    if (g->ids.size <= IDS_SHOWN_MAX)
        to =
            put(put_text(to, "\r\nStagger-Messages: "), g->ids.at, g->ids.size);
    to = stg_digits_put(put_text(to, "\r\nStagger-Hops: "), g->hops + 1);
    given = put_text(to, "\r\n");
    to = put_text(put_text(given, "Content-Type: "), g->type);
    to = stg_attempt_drop_targets(t, given, put_text(to, "\r\n"));
    if (t->token != NULL)
        to = stg_oauth_put(t->token, to, &g->token);
    if (signature.size > 0)
        return put(to, signature.at, signature.size);
    return stg_attempt_put_signature(to, t->settings, stg_span_of(g->id),
                                     stg_span_of(g->type),
                                     (stg_span){g->body, g->body_size});
}

/* To be freed; at is NULL: no memory. */
static stg_span make_headers(stg_bundle *g, stg_span signature)
{
    enum { OWN_MAX = 256 };
    const stg_target *t = g->of->target;
    size_t room = OWN_MAX + STG_BATCH_ID_MAX + IDS_SHOWN_MAX;
    char *made, *end;

    if (t->settings->signer != NULL)
        room += stg_signer_room(t->settings->signer, STG_BATCH_ID_MAX);
    if (t->token != NULL)
        room += stg_oauth_room(t->token);
    made = malloc(room);
    end = made == NULL ? NULL : put_headers(g, made, signature);
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
    free_ids(g);
    return g->exchange != NULL;
}
