/* response.h - the head of an answer. Private to the server.
 *
 * No socket and no clock: the time comes as text. */
#ifndef STAGGER_HTTP_RESPONSE_H
#define STAGGER_HTTP_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    STG_RESPONSE_MORE_MAX = 256, /* of stg_response.more */
    STG_RESPONSE_HEAD_MAX = 768,
    STG_DATE_MAX = 32,
};

/* How its other end finds the end of the body. */
typedef enum stg_response_body {
    STG_RESPONSE_SIZED,   /* Content-Length */
    STG_RESPONSE_CHUNKED, /* Transfer-Encoding: chunked */
    STG_RESPONSE_TO_END,  /* of the connection */
} stg_response_body;

typedef struct stg_response {
    int status;
    const char *type; /* Content-Type; NULL: none */
    const char *more; /* further lines, "Name: value\r\n" each; NULL: none */
    stg_response_body body;
    size_t size;  /* of a sized body */
    bool is_last; /* Connection: close */
    bool is_kept; /* Connection: keep-alive, which HTTP/1.0 has to be told */
} stg_response;

/* The words of a status: "Not Found"; "Error" for one that is not used here. */
const char *stg_response_reason(int status);

/* Writes the head, with its empty line, and returns its size. */
size_t stg_response_print(const stg_response *r, const char *date,
                          char head[STG_RESPONSE_HEAD_MAX]);

/* Seconds since 1970 as "Sun, 06 Nov 1994 08:49:37 GMT". Source: RFC 9110,
 * section 5.6.7. */
void stg_response_print_date(int64_t wall_s, char date[STG_DATE_MAX]);

#endif
