/* chunks.h - a body in chunks, read strictly. Private to the server.
 *
 *     4;name=value CR LF, 4 bytes, CR LF ... 0 CR LF, trailers, CR LF
 *
 * Bytes in, in whatever pieces; runs of the body out, which lie where they came.
 * No CR or LF stands alone, and nothing may be folded. Extensions and trailers
 * are checked and dropped. Source: RFC 9112, section 7.1. */
#ifndef STAGGER_HTTP_CHUNKS_H
#define STAGGER_HTTP_CHUNKS_H

#include <stdint.h>

#include "base/span.h"

/* Of one chunk's size line, and of all trailers together. */
enum { STG_CHUNK_LINE_MAX = 1024, STG_TRAILERS_MAX = 8 * 1024 };

typedef struct stg_chunks {
    uint64_t left;  /* bytes of this chunk that did not come yet */
    uint32_t extra; /* bytes of its size line, or of the trailers */
    uint8_t state;
    uint8_t scan; /* of the trailers: see head.h */
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
