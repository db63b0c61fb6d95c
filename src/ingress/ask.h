/* ask.h - a request for a handler of token.h, and its answer.
 *
 * Every request is answered once, by stg_ask_answer() or one of its sisters, in
 * the handler or later; with that it is gone. What it points to is lent until
 * then, or until it is found closed. Until then its connection waits, but for a
 * stop of the hub: that answers for it, and then the real answer is dropped. */
#ifndef STAGGER_INGRESS_ASK_H
#define STAGGER_INGRESS_ASK_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/span.h"
#include "ingress/token.h"

/* -- why a request was refused, as a problem document (RFC 9457) ---------------
 *
 *     {"type":"about:blank","title":"Conflict","status":409,"line":3,
 *      "detail":"line 3: the key came with another body before"} */

#define STG_PROBLEM_TEXT_MAX 768

typedef struct stg_problem {
    int status;       /* 400 to 599; 0: there is none */
    size_t line;      /* of a batch, from 1; 0: of none */
    char detail[256]; /* printable ASCII */
} stg_problem;

/* Writes the problem. Bytes that are not printable ASCII become '?'. Returns
 * false, for `return stg_problem_set(...)`. */
__attribute__((format(printf, 4, 5))) _Bool
stg_problem_set(stg_problem *p, int status, size_t line, const char *format,
                ...);

/* Writes the document and returns its size, below STG_PROBLEM_TEXT_MAX. */
size_t stg_problem_print(const stg_problem *p, char text[STG_PROBLEM_TEXT_MAX]);

/* -- a request ----------------------------------------------------------------- */

enum { STG_WORD_MAX = 80, STG_WHO_MAX = 65, STG_FROM_MAX = 48 };

/* Whether somebody still waits for the answer. */
bool stg_ask_is_open(const stg_ask *a);

/* -- the request; none of it once it is not open --------------------------- */

/* The word number i of the path, from 0. "" if it is longer than any name. */
const char *stg_ask_word(const stg_ask *a, size_t i);

/* A value of the query, decoded. NULL: it is not there. */
const char *stg_ask_option(const stg_ask *a, const char *name);

stg_span stg_ask_body(const stg_ask *a);

/* The value of If-Match, as it came; "": there is none. One that is longer than
 * any of ours is "?", which matches none. */
enum { STG_TAG_MAX = 40 };
const char *stg_ask_if_match(const stg_ask *a);

/* Whether it says If-None-Match: *, of what is not to be there yet. */
bool stg_ask_is_for_new(const stg_ask *a);

/* -- who asks; also when it is closed -------------------------------------- */

/* The name of the token; "": it has none, or there are no tokens. */
const char *stg_ask_who(const stg_ask *a);

/* What it may do, of stg_role; all of it where there are no tokens. */
unsigned stg_ask_roles(const stg_ask *a);

/* The address, of IPv6 the /64. */
const char *stg_ask_from(const stg_ask *a);

/* -- the answer ------------------------------------------------------------ */

/* The type of a page, which may load and ask what is the hub's own and nothing
 * else (Content-Security-Policy). */
#define STG_ASK_HTML "text/html; charset=utf-8"

/* text is given, of malloc(); NULL: there was no memory, and a 503 is sent. */
void stg_ask_answer(stg_ask *a, int status, const char *type, char *text,
                    size_t size);

/* json is given; NULL: there was no memory. */
void stg_ask_answer_json(stg_ask *a, int status, json_t *json);

/* The answer, and also a problem, is to have this ETag, with its quotes; before
 * it is answered. */
void stg_ask_set_tag(stg_ask *a, const char *tag);

/* A problem document that is made already; status from 400. */
void stg_ask_answer_problem(stg_ask *a, int status, json_t *json);

/* A problem document; those of 429 and 503 advise to come again. */
__attribute__((format(printf, 3, 4))) void
stg_ask_refuse(stg_ask *a, int status, const char *format, ...);

/* -- answered by a stream -------------------------------------------------------
 *
 * A request may be answered with events as they happen: server-sent events.
 * Source: the HTML standard, section 9.2.
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

typedef struct stg_stream stg_stream;

/* Answers the request with a stream; only in its handler. left is called once,
 * when it is over, never before the handler has returned; with that the stream is
 * gone. NULL: the request is answered with why
 * there is none (too many, no memory), and left is not called. */
stg_stream *stg_ask_stream(stg_ask *a, void (*left)(void *ctx), void *ctx);

/* An event; data is one line. */
void stg_stream_send(stg_stream *s, stg_span data);

#endif
