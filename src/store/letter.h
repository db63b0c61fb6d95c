/* letter.h - the columns of a dead letter, one table for all who read or print
 * one: what SELECT asks for, the API, `stagger dead`, the copy in a file and
 * that in a topic.
 *
 *     {"id": 7, "message_id": "9f...-42", "target": "a", ..., "payload": "..."}
 *
 * What there is nothing to say of is null, empty in CSV, and no header of Kafka.
 * Payload, answer and source_key are text where they are valid UTF-8, and else
 * payload_base64, answer_base64 and source_key_base64. In other texts what is no
 * UTF-8 reads as U+FFFD. */
#ifndef STAGGER_STORE_LETTER_H
#define STAGGER_STORE_LETTER_H

#include "base/text.h"
#include "store/dead_letters.h"
#include "store/sql.h"

/* bytes in base64 */
void stg_letter_add_base64(stg_text *line, stg_span bytes);

/* The topic and its partition, of a row of failed_broadcast_logs; both are NULL
 * of one of the queue. */
#define STG_LETTER_OF_PARTITION(column) \
    "(SELECT p." column                 \
    " FROM partitions p"                \
    " WHERE p.number = failed_broadcast_logs.partition)"

/* How often it was replayed. What the log had lost never was, nor was a bulk row
 * of evicted letters: the numbers that they have instead, STG_REPLAY_LOST and
 * STG_REPLAY_EVICTED, are the store's alone. */
#define STG_LETTER_REPLAYS \
    "CASE WHEN replay >= 2147483646 THEN 0 ELSE replay END"

/* X(CONSTANT, name, field of stg_letter, its type, SQL, header of Kafka), in the
 * order in which they are printed. Of every letter: */
#define STG_LETTER_LIGHT(X)                                                   \
    X(ID, "id", id, NUMBER, "id", "stagger-dead-letter-id")                   \
    X(MESSAGE_ID, "message_id", message_id, TEXT, "nullif(message_id, '')",   \
      "stagger-message")                                                      \
    X(TARGET, "target", target, TEXT, "target", "stagger-target")             \
    X(TARGET_URL, "target_url", target_url, TEXT, "target_url", NULL)         \
    X(STATE, "state", state, TEXT, "state", "stagger-state")                  \
    X(WHY, "why", why, TEXT, "why", NULL)                                     \
    X(CATEGORY, "category", category, TEXT, "category", "stagger-category")   \
    X(CAUSE, "cause", cause, TEXT, "cause", "stagger-cause")                  \
    X(HTTP_STATUS, "http_status", http_status, NUMBER, "http_status",         \
      "stagger-status")                                                       \
    X(DETAIL, "detail", detail, TEXT, "detail", "stagger-detail")             \
    X(ATTEMPTS, "attempts", attempts, NUMBER, "attempts", "stagger-attempts") \
    X(FIRST_ATTEMPT_AT, "first_attempt_at", first_attempt_at, TEXT,           \
      "first_attempt_at", NULL)                                               \
    X(LAST_ATTEMPT_AT, "last_attempt_at", last_attempt_at, TEXT,              \
      "last_attempt_at", NULL)                                                \
    X(CREATED_AT, "created_at", created_at, TEXT, "created_at",               \
      "stagger-created-at")                                                   \
    X(CHANGED_AT, "changed_at", changed_at, TEXT, "changed_at", NULL)         \
    X(TOPIC, "topic", topic, TEXT, STG_LETTER_OF_PARTITION("topic"),          \
      "stagger-topic")                                                        \
    X(PARTITION, "partition", topic_partition, NUMBER,                        \
      STG_LETTER_OF_PARTITION("partition"), "stagger-partition")              \
    X(POSITION, "position", position, NUMBER, "position", "stagger-position") \
    X(LAST_POSITION, "last_position", last_position, NUMBER, "last_position", \
      "stagger-last-position")                                                \
    X(COUNT, "count", count, NUMBER, "count", "stagger-count")                \
    X(REPLAY, "replay", replay, NUMBER, STG_LETTER_REPLAYS, "stagger-replay") \
    X(PAYLOAD_SIZE, "payload_size", payload_size, NUMBER, "length(payload)",  \
      NULL)

/* Of one that is read whole: */
#define STG_LETTER_REST(X)                                                    \
    X(CONTENT_TYPE, "content_type", content_type, TEXT, "content_type", NULL) \
    X(HEADERS, "headers", headers, TEXT, "headers", NULL)                     \
    X(KEY, "key", key, TEXT, "key", NULL)                                     \
    X(SOURCE_KEY, "source_key", source_key, BYTES, "source_key", NULL)        \
    X(ANSWER, "answer", answer, BYTES, "answer", NULL)                        \
    X(PAYLOAD, "payload", payload, BYTES, "payload", NULL)

#define STG_LETTER_CONSTANT(c, name, field, type, sql, header) STG_LETTER_##c,
typedef enum stg_letter_column {
    STG_LETTER_LIGHT(STG_LETTER_CONSTANT) STG_LETTER_REST(STG_LETTER_CONSTANT)
        STG_LETTER_COLUMNS,
    STG_LETTER_LIGHT_COLUMNS = STG_LETTER_PAYLOAD_SIZE + 1
} stg_letter_column;

/* What SELECT wants for stg_letter_read(). */
#define STG_LETTER_SQL(c, name, field, type, sql, header) sql ", "
#define STG_LETTER_SELECT_LIGHT      \
    STG_LETTER_LIGHT(STG_LETTER_SQL) \
    "lane, partition,"               \
    " coalesce((SELECT is_forgotten FROM lanes WHERE number = lane), 1)"
#define STG_LETTER_SELECT_WHOLE \
    STG_LETTER_SELECT_LIGHT     \
    ", " STG_LETTER_REST(STG_LETTER_SQL) "source_headers"

enum {
    STG_LETTER_IS_FORGOTTEN = STG_LETTER_LIGHT_COLUMNS + 2, /* its target is */
    STG_LETTER_SELECTED = STG_LETTER_COLUMNS + 4 /* columns of the latter */
};

/* The row that st is at; texts are the arena's. */
void stg_letter_read(stg_letter *l, stg_arena *a, stg_stmt *st, bool is_whole);

const char *stg_letter_name(stg_letter_column column);
const char *stg_letter_header(stg_letter_column column); /* NULL: none */

/* The bytes of others, and of targets: the rest is text, or reads as such. */
bool stg_letter_is_bytes(stg_letter_column column);

typedef struct stg_letter_value {
    bool is_null, is_number;
    uint64_t number;
    stg_span span; /* of what is no number */
} stg_letter_value;

stg_letter_value stg_letter_get(const stg_letter *l, stg_letter_column column);

/* A column of a letter that was told somewhere else. */
void stg_letter_set(stg_letter *l, stg_letter_column column,
                    stg_letter_value value);

/* When the last of its messages was given up: a bulk row takes some for a
 * while. */
const char *stg_letter_newest(const stg_letter *l);

/* A letter that was read whole, with an end of line. */
void stg_letter_write(stg_text *line, const stg_letter *l);

#endif
