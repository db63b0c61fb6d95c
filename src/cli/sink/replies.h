/* replies.h - what a receipt is answered with: by the count of the
 * delivery's attempts (503x2,200), or by chance (200:95,503:5). */
#ifndef STAGGER_CLI_SINK_REPLIES_H
#define STAGGER_CLI_SINK_REPLIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stagger/rng.h>

#include "core/reader.h"

typedef enum sink_deed {
    SINK_ANSWER,
    SINK_RESET, /* the connection, with the request read */
    SINK_HANG,  /* no answer, ever */
} sink_deed;

enum {
    SINK_REPLIES_MAX = 64,
    SINK_ANSWER_MAX = 256,
    SINK_AFTER_MAX = 64,
    SINK_ANSWERED_MAX = 16
};

typedef struct sink_answer {
    char text[SINK_ANSWER_MAX]; /* not terminated */
    size_t size;
} sink_answer;

typedef struct sink_reply {
    sink_deed deed;
    int status;          /* 200 to 599; 0 without an answer */
    uint32_t upto;       /* the sum of times, or of weights, up to this one */
    sink_answer kept;    /* precomputed: the connection goes on */
    sink_answer closing; /* or ends behind it */
} sink_reply;

typedef enum sink_after {
    SINK_AFTER_NONE,
    SINK_AFTER_TEXT, /* as it is */
    SINK_AFTER_DATE, /* seconds from now, as a date */
} sink_after;

typedef struct sink_replies {
    sink_reply list[SINK_REPLIES_MAX];
    size_t count;
    bool is_random;
    sink_after after;
    char after_text[SINK_AFTER_MAX];
    uint32_t after_s;
    int64_t made_at; /* the second for which the dates were written */
} sink_replies;

/* Reads 503x2,reset,200 (is_random: 200:95,503:5). Returns NULL, or what is
 * wrong, for people. */
const char *stg_sink_replies_read(sink_replies *r, const char *text,
                                  bool is_random);

/* Reads --retry-after: 3, date:3, or a text that is sent as it is. */
const char *stg_sink_replies_after(sink_replies *r, const char *text);

/* Writes the answers; after the options, before the first is asked for. */
void stg_sink_replies_make(sink_replies *r);

/* For attempt number `attempt` (from 1) of a delivery. */
const sink_reply *stg_sink_replies_choose(sink_replies *r, uint64_t attempt,
                                          stg_rng *rng);

/* The bytes to send; lent until the next call. */
const sink_answer *stg_sink_replies_answer(sink_replies *r,
                                           const sink_reply *reply,
                                           bool is_closing);

/* "200", "reset" or "hang"; lent until the next call. */
const char *stg_sink_reply_name(const sink_reply *reply,
                                char text[SINK_ANSWERED_MAX]);

#endif
