/* request.h - the bytes of requests, read strictly. Private to the server.
 *
 * Bytes in, in whatever pieces; what they are out, one thing at a time. No
 * socket, no clock, and of a body no copy:
 *
 *     while ((event = stg_request_next(r, &in, &piece)) != STG_REQUEST_MORE)
 *         ...
 *     stg_request_keep(r);   // before the bytes go
 *
 * HEAD is known from its five bytes "HEAD " on, so that whatever of the rest is
 * refused, or never comes, gets no body (RFC 9110, section 9.3.2). What does not
 * begin with them is no HEAD: "HEAD" without a blank has a body in its answer.
 *
 * A head that came whole is read where it lies. Only one in pieces is copied.
 *
 * Whatever two readers could take for different requests is refused, and the
 * connection has to be closed then: RFC 9112, sections 2.2 (bare CR or LF), 3
 * (request line), 3.2 (Host), 5.1 (blanks before a colon), 5.2 (folding), 6.1
 * and 6.3 (lengths). tests/http/test_request.c has a row for each rule. */
#ifndef STAGGER_HTTP_REQUEST_H
#define STAGGER_HTTP_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "http/framing.h"

/* The parts of a head that are looked at for each request. Of a header that
 * comes more than once: the last one. */
typedef enum stg_request_part {
    STG_PART_METHOD,
    STG_PART_PATH,  /* as it came, in percent encoding; "*" of OPTIONS */
    STG_PART_QUERY, /* behind the '?' */
    STG_PART_LINES, /* of all headers, "Name: value\r\n" each */
    STG_PART_HOST,  /* host of a whole URI as target, else the Host header */
    STG_PART_CONTENT_LENGTH,
    STG_PART_TRANSFER_ENCODING,
    STG_PART_CONNECTION,
    STG_PART_EXPECT,
    STG_PART_ORIGIN,
    STG_PART_AUTHORIZATION,
    STG_PART_CONTENT_TYPE,
    STG_PART_HOPS, /* Stagger-Hops */
    STG_PARTS,
} stg_request_part;

typedef enum stg_request_event {
    STG_REQUEST_MORE,    /* all bytes are taken, and more are wanted */
    STG_REQUEST_HEAD,    /* the head is whole */
    STG_REQUEST_BODY,    /* a run of the body */
    STG_REQUEST_WHOLE,   /* the last byte of the request was taken */
    STG_REQUEST_REFUSED, /* with status and why; nothing more is read */
} stg_request_event;

typedef struct stg_request {
    /* -- from STG_REQUEST_HEAD on: */
    stg_span parts[STG_PARTS]; /* at is NULL: it is not there */
    uint8_t counts[STG_PARTS]; /* of header lines, 255 at most */
    uint64_t length;           /* of the body; UINT64_MAX: it is in chunks */
    bool has_length;           /* it said so: Content-Length or chunks */
    bool is_head;     /* HEAD: the answer has no body, refused or not */
    bool is_old;      /* HTTP/1.0 */
    bool is_last;     /* of its connection */
    bool wants_go_on; /* Expect: 100-continue, and none of its body came */

    uint8_t state;
    uint8_t scan;    /* stg_head_scan */
    uint8_t empty;   /* bytes of an empty line before it */
    uint16_t status; /* of what was refused: 400, 417, 431, 501, 505 */
    const char *why; /* static words */
    uint64_t left;   /* of a body that is not in chunks */
    stg_chunks chunks;
    size_t head_max;
    char *
        kept; /* the head, where it did not come whole; given back at its end */
    size_t kept_size, kept_room;
} stg_request;

/* Longer heads than head_max are refused with 431. */
void stg_request_init(stg_request *r, size_t head_max);

/* Frees what it keeps. */
void stg_request_close(stg_request *r);

/* Takes bytes off `in`, up to the end of what it tells. After
 * STG_REQUEST_WHOLE, stg_request_begin() comes before the next call. */
stg_request_event stg_request_next(stg_request *r, stg_span *in,
                                   stg_span *piece);
void stg_request_begin(stg_request *r);

/* Whether a byte of the next request has come. */
bool stg_request_has_begun(const stg_request *r);

/* Whether all of it came. */
bool stg_request_is_whole(const stg_request *r);

/* Copies the head if it is lent, for the bytes that it lies in go. False: no
 * memory. */
bool stg_request_keep(stg_request *r);

/* So many bytes of the body came past stg_request_next(): not in chunks, and no
 * more than r->left. */
stg_request_event stg_request_skip(stg_request *r, size_t size);

/* The name and value of each line, in turn: lines are STG_PART_LINES first.
 * False: there are no more. */
bool stg_request_line(stg_span *lines, stg_span *name, stg_span *value);

/* Whether a line of Connection names the header: it is for this hop alone.
 * Source: RFC 9110, section 7.6.1. */
bool stg_request_is_hop(const stg_request *r, stg_span name);

/* Decodes %XX, and where is_form a '+', which is a blank then; out has room for
 * text.size bytes. False: a wrong escape. */
bool stg_request_decode(stg_span text, bool is_form, char *out, size_t *size);

/* A number in digits alone, below 2^63. */
bool stg_request_number(stg_span text, uint64_t *number);

#endif
