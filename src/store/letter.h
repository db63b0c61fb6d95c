/* letter.h - a row of failed_broadcast_logs as a line of JSON, the same in the
 * file of dead letters and in `stagger dead export`.
 *
 *     {"id": 7, "message_id": "9f...-42", "target": "a", ..., "payload": "..."}
 *
 * A field that is NULL is null. Payload, answer and source_key are text where
 * they are valid UTF-8, and else payload_base64, answer_base64 and
 * source_key_base64. In other texts what is no UTF-8 reads as U+FFFD. */
#ifndef STAGGER_STORE_LETTER_H
#define STAGGER_STORE_LETTER_H

#include "store/sql.h"

/* A text that grows. Zeroed: empty. */
typedef struct stg_letter_line {
    char *at;
    size_t size, room;
    bool is_short; /* there was no memory: what is there is no use */
} stg_letter_line;

void stg_line_free(stg_letter_line *l);
void stg_line_add_base64(stg_letter_line *l, stg_span bytes);

/* The columns of a letter, in this order. */
typedef enum stg_letter_column {
    STG_LETTER_ID,
    STG_LETTER_MESSAGE_ID,
    STG_LETTER_TARGET,
    STG_LETTER_TARGET_URL,
    STG_LETTER_STATE,
    STG_LETTER_WHY,
    STG_LETTER_CATEGORY,
    STG_LETTER_CAUSE,
    STG_LETTER_HTTP_STATUS,
    STG_LETTER_DETAIL,
    STG_LETTER_ATTEMPTS,
    STG_LETTER_FIRST_ATTEMPT_AT,
    STG_LETTER_LAST_ATTEMPT_AT,
    STG_LETTER_CREATED_AT,
    STG_LETTER_CHANGED_AT,
    STG_LETTER_TOPIC,     /* NULL: of the queue */
    STG_LETTER_PARTITION, /* of the topic */
    STG_LETTER_POSITION,
    STG_LETTER_LAST_POSITION,
    STG_LETTER_COUNT,
    STG_LETTER_REPLAY,
    STG_LETTER_CONTENT_TYPE,
    STG_LETTER_HEADERS,
    STG_LETTER_KEY,
    STG_LETTER_SOURCE_KEY, /* NULL: as KEY, or none */
    STG_LETTER_ANSWER,
    STG_LETTER_PAYLOAD,
    STG_LETTER_COLUMNS
} stg_letter_column;

/* The topic and its partition, of a row of failed_broadcast_logs. */
#define STG_LETTER_PLACE                                  \
    "(SELECT topic FROM partitions p"                     \
    " WHERE p.number = failed_broadcast_logs.partition)," \
    " coalesce((SELECT p.partition FROM partitions p"     \
    " WHERE p.number = failed_broadcast_logs.partition), partition)"

/* How often it was replayed. What the log had lost never was, nor was a bulk row
 * of evicted letters: the numbers that they have instead, STG_REPLAY_LOST and
 * STG_REPLAY_EVICTED, are the store's alone. */
#define STG_LETTER_REPLAYS \
    "CASE WHEN replay >= 2147483646 THEN 0 ELSE replay END"

/* Their names, as SELECT wants them, and one by one. */
#define STG_LETTER_SELECT                                                          \
    "id, nullif(message_id, ''), target, target_url, state, why, category, cause," \
    " http_status, detail, attempts, first_attempt_at, last_attempt_at,"           \
    " created_at, changed_at, " STG_LETTER_PLACE                                   \
    ", CASE WHEN position >= 0 THEN position END,"                                 \
    " last_position, count, " STG_LETTER_REPLAYS                                   \
    ","                                                                            \
    " content_type, headers, key, source_key, answer, payload"

const char *stg_letter_name(stg_letter_column column);

/* The bytes of others, and of targets: the rest is text, or reads as such. */
bool stg_letter_is_bytes(int column);

/* The row that st is at, with an end of line. */
void stg_letter_write(stg_letter_line *l, stg_stmt *st);

#endif
