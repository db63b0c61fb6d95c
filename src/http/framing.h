/* framing.h - where an HTTP/1.1 head ends, and where the chunks of a body do,
 * read strictly. Private to the client and the server.
 *
 * What two readers could take for two different messages is an error here
 * (request smuggling). Pure: bytes in, bytes out.
 *
 * Source: RFC 9112, sections 2.2, 5.2 and 7.1. */
#ifndef STAGGER_HTTP_FRAMING_H
#define STAGGER_HTTP_FRAMING_H

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

/* -- heads ------------------------------------------------------------------ */

/* A line ends in CR LF, and a header is one line. Other readers take a bare CR
 * or LF for an end, or a line that begins with a blank for a part of the one
 * before: two of them would see different heads. Here each of these is an
 * error. */

/* What the bytes so far end with. */
typedef enum stg_head_scan {
    STG_HEAD_START, /* there is none yet */
    STG_HEAD_LINE,
    STG_HEAD_CR,      /* of a line's end */
    STG_HEAD_NEXT,    /* a line has ended */
    STG_HEAD_LAST_CR, /* of the empty line */
    STG_HEAD_ENDED,
    STG_HEAD_BARE,  /* error: a CR or LF alone */
    STG_HEAD_FOLDED /* error: a header that goes on in the next line */
} stg_head_scan;

/* Reads on, up to the end of the head or an error. Returns how many of the bytes
 * belong to the head; with an error that number means nothing. */
size_t stg_head_read(uint8_t *scan, const char *bytes, size_t size);

/* -- chunks ------------------------------------------------------------------ */

/* A body in chunks, read strictly.
 *
 *     4;name=value CR LF, 4 bytes, CR LF ... 0 CR LF, trailers, CR LF
 *
 * Bytes in, in whatever pieces; runs of the body out, which lie where they came.
 * No CR or LF stands alone, and nothing may be folded. Extensions and trailers
 * are checked and dropped. Source: RFC 9112, section 7.1. */

/* Limits of one chunk's size line and of all trailers together, in bytes. */
enum { STG_CHUNK_LINE_MAX = 1024, STG_TRAILERS_MAX = 8 * 1024 };

typedef struct stg_chunks {
    uint64_t left;  /* bytes of this chunk that did not come yet */
    uint32_t extra; /* bytes of its size line, or of the trailers */
    uint8_t state;
    uint8_t scan; /* of the trailers: a stg_head_scan */
} stg_chunks;

typedef enum stg_chunks_event {
    STG_CHUNKS_MORE,  /* all bytes are taken */
    STG_CHUNKS_PIECE, /* a run of the body */
    STG_CHUNKS_WHOLE,
    STG_CHUNKS_BROKEN, /* see stg_chunks_why() */
} stg_chunks_event;

void stg_chunks_begin(stg_chunks *c);

/* Takes bytes off `in`, up to the end of what it tells. */
stg_chunks_event stg_chunks_next(stg_chunks *c, stg_span *in, stg_span *piece);

/* What is wrong: static words. */
const char *stg_chunks_why(const stg_chunks *c);

#endif
