/* stream.h - a request that is answered with events as they happen: server-sent
 * events. Source: the HTML standard, section 9.2.
 *
 *     retry: 3120
 *
 *     data: {"time":"2026-03-01T12:00:00.250Z",...}
 *
 * It goes on until the client closes, or leaves too much unread, or the ingress
 * ends it: for a stop, and for a change of tokens, for those who may not see any
 * more what they see. `retry` is when the client may come again, different for
 * each of them, so that they do not all come back at once. While there is
 * nothing to say a comment is sent now and then, which keeps proxies from closing
 * it, and finds clients that have vanished.
 *
 * Events are sent in the next turn of the loop, so that whoever tells them is
 * never called back. */
#ifndef STAGGER_INGRESS_STREAM_H
#define STAGGER_INGRESS_STREAM_H

#include "base/span.h"
#include "ingress/ask.h"

typedef struct stg_stream stg_stream;

/* Answers the request with a stream; only in its handler. left is called once,
 * when it is over, never before the handler has returned; with that the stream is
 * gone. NULL: the request is answered with why
 * there is none (too many, no memory), and left is not called. */
stg_stream *stg_ask_stream(stg_ask *a, void (*left)(void *ctx), void *ctx);

/* An event; data is one line. */
void stg_stream_send(stg_stream *s, stg_span data);

#endif
