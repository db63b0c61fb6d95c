/* answer.h - the bytes of an answer, read strictly. Private to the client.
 *
 * Bytes in, in whatever pieces; a state out. No socket, no clock. What it keeps
 * are the few headers that we need and the beginning of the body. Most answers
 * come in one piece, so the client has one of these for all of its connections,
 * and those that wait for more have a copy of it.
 *
 * Lines end in CR LF, a header is one line, the head is 64 KiB at most (with
 * those of 1xx, 16 at most, which are skipped), one length is given or none,
 * never with Transfer-Encoding. 101 is refused: we asked for no other
 * protocol. */
#ifndef STAGGER_HTTP_ANSWER_H
#define STAGGER_HTTP_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <llhttp.h>
#include <stagger/delay.h>

#include "base/span.h"

enum { STG_ANSWER_HEAD_MAX = 64 * 1024, STG_ANSWER_INTERIMS_MAX = 16 };

typedef enum stg_answer_state {
    STG_ANSWER_OPEN,   /* there is more to come */
    STG_ANSWER_WHOLE,  /* to its last byte */
    STG_ANSWER_CUT,    /* more than is wanted: the status stands */
    STG_ANSWER_BROKEN, /* no HTTP, or cut short: see why */
} stg_answer_state;

typedef struct stg_answer {
    llhttp_t parser;
    stg_answer_state state;
    uint8_t scan;     /* stg_head_scan of the head */
    uint8_t interims; /* 1xx */
    uint8_t name_size;
    uint8_t header; /* which one a value belongs to */
    bool is_to_head;
    bool is_in_body;  /* the head was read */
    bool keeps_alive; /* what came last lets the connection live */
    bool has_leftover;
    uint16_t status; /* 0: the head is not whole */
    uint32_t head_size;
    size_t body_max;
    size_t excerpt_max;
    uint64_t size;      /* bytes fed */
    uint64_t body_size; /* of them, of the body */
    char *excerpt;      /* NULL: none yet */
    size_t excerpt_size;
    const char *why; /* static words */
    char name[24];
    struct {
        uint8_t size;
        char text[39];
    } values[STG_DELAY_HEADERS];
} stg_answer;

/* For the answer to one request. body_max: more is cut; excerpt_max: what is
 * kept of it; is_to_head: of HEAD, which has no body. */
void stg_answer_begin(stg_answer *a, size_t body_max, size_t excerpt_max,
                      bool is_to_head);

/* Takes the next bytes. What comes after the last one is left over. */
stg_answer_state stg_answer_feed(stg_answer *a, const char *bytes, size_t size);

/* The connection was closed; in order or not. */
stg_answer_state stg_answer_end(stg_answer *a, bool is_in_order);

/* The delay that it asks for; 0: none. */
stg_ns stg_answer_delay(const stg_answer *a, int64_t wall_s);

/* Hands over the excerpt, to be freed. */
char *stg_answer_take_excerpt(stg_answer *a, size_t *size);

/* A copy that goes on where a stands, and has its excerpt; to be closed and
 * freed. NULL: no memory, and a is as it was. */
stg_answer *stg_answer_copy(stg_answer *a);

/* Frees what it keeps. */
void stg_answer_close(stg_answer *a);

#endif
