/* head.h - the end of an HTTP/1.1 head, found strictly. Private to the client
 * and the server.
 *
 * A line ends in CR LF, and a header is one line. Other readers take a bare CR
 * or LF for an end, or a line that begins with a blank for a part of the one
 * before: two of them would see different heads (request smuggling). Here each
 * of these is an error. Source: RFC 9112, sections 2.2 and 5.2. */
#ifndef STAGGER_HTTP_HEAD_H
#define STAGGER_HTTP_HEAD_H

#include <stddef.h>
#include <stdint.h>

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

#endif
