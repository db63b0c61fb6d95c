/* trace.h - W3C Trace Context: what a message's attempts say of the trace they
 * belong to.
 *
 * The hub takes part in a trace: the trace id and the sampled flag of a message
 * are kept, and each attempt has a parent id of its own. A message without a
 * trace, or with a traceparent that is none, begins one; its id is made of the
 * message's, so that all attempts to all targets have the same, also after a
 * restart, and nothing is stored for it.
 *
 * Source: Trace Context, W3C Recommendation of 23 November 2021, 3 and 4. Pure;
 * no function allocates. */
#ifndef STAGGER_HTTP_TRACE_H
#define STAGGER_HTTP_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

typedef enum stg_trace_mode {
    STG_TRACE_BEGIN, /* passed on, or begun where there is none */
    STG_TRACE_PASS,  /* passed on; what is none is dropped */
    STG_TRACE_OFF,   /* dropped: traceparent and tracestate both */
} stg_trace_mode;

typedef struct stg_trace {
    uint64_t high, low; /* the trace id; both 0: there is no trace */
    uint64_t parent;    /* span of whoever published the message; 0: none */
    uint64_t span;      /* span of the attempt; 0: not known */
    bool is_sampled;
} stg_trace;

static inline bool stg_trace_is_there(const stg_trace *t)
{
    return (t->high | t->low) != 0;
}

/* Reads the value of a traceparent header. A later version is read as far as
 * this one is known in it. False: it is malformed, and *t is no trace. */
bool stg_trace_parse(stg_trace *t, stg_span value);

/* That of a message that has none. Sampled: whoever begins a trace decides,
 * and a trace that nobody keeps is of no use. */
stg_trace stg_trace_begin(uint64_t epoch, uint64_t position);

/* Copies header lines ("Name: value\r\n" each) to `to`, which has room for
 * them, and behind them the attempt's own traceparent: room for
 * STG_TRACE_LINE_MAX more. *t: the trace that it belongs to, if any; none where
 * mode is STG_TRACE_OFF. span: 64 random bits. Of the traces that begin here those
 * are sampled whose lower half is not above share. Returns the end. */
enum { STG_TRACE_LINE_MAX = 70 };
char *stg_trace_put(char *to, stg_span headers, stg_trace_mode mode,
                    uint64_t epoch, uint64_t position, uint64_t span,
                    uint64_t share, stg_trace *t);

#define STG_TRACE_TEXT_MAX 33

/* The trace id, 32 hex digits; NULL for no trace. Else returns text. */
const char *stg_trace_print(const stg_trace *t, char text[STG_TRACE_TEXT_MAX]);

#endif
