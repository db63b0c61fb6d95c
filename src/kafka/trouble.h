/* trouble.h - what librdkafka says again and again, as one trouble: told
 * when it begins, how often it came at intervals, and when it is over.
 *
 * Errors are the same trouble by a number of their kind and their topic. One that
 * was silent for STG_KAFKA_CALM is over: librdkafka itself repeats the same error
 * once in half a minute at most. Pure: `now` is an argument. */
#ifndef STAGGER_KAFKA_TROUBLE_H
#define STAGGER_KAFKA_TROUBLE_H

#include <stdbool.h>
#include <stdint.h>

#include <stagger/ns.h>

enum { STG_KAFKA_TROUBLES = 16 };

#define STG_KAFKA_CALM (90 * STG_S)
#define STG_KAFKA_REMIND (5 * STG_MIN)

typedef struct stg_kafka_trouble {
    int kind;
    char topic[256]; /* "": of none */
    char text[256];  /* of the last one */
    stg_ns began_at, last_at, told_at;
    uint64_t count; /* of errors; 0: free */
    uint64_t told;  /* of them, by told_at */
} stg_kafka_trouble;

/* Zeroed before. The trouble that is silent for longest gives way to one more. */
typedef struct stg_kafka_troubles {
    stg_kafka_trouble all[STG_KAFKA_TROUBLES];
} stg_kafka_troubles;

/* An error. topic: NULL, of none. True: a trouble begins, and is to be told. */
bool stg_kafka_troubles_note(stg_kafka_troubles *t, int kind, const char *topic,
                             const char *text, stg_ns now);

/* is_over: it has ended; else it goes on, and count - told is new. */
typedef void stg_kafka_trouble_fn(void *ctx, const stg_kafka_trouble *one,
                                  bool is_over);

/* Tells what is due. Returns when to be called again; STG_NEVER: there is
 * none. */
stg_ns stg_kafka_troubles_tick(stg_kafka_troubles *t, stg_ns now,
                               stg_kafka_trouble_fn *each, void *ctx);

#endif
