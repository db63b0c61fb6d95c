/* letter.h - a row of failed_broadcast_logs as a line of JSON, the same in the
 * file of dead letters and in `stagger dead export`.
 *
 *     {"id": 7, "message_id": "9f...-42", "target": "a", ..., "payload": "..."}
 *
 * A field that is NULL is null. Payload and answer are text where they are
 * valid UTF-8, and else payload_base64 and answer_base64. In other texts what
 * is no UTF-8 reads as U+FFFD. */
#ifndef STAGGER_HUB_STORES_LETTER_H
#define STAGGER_HUB_STORES_LETTER_H

#include "hub/stores/sql.h"

/* A text that grows. Zeroed: empty. */
typedef struct stg_line {
    char *at;
    size_t size, room;
    bool is_short; /* there was no memory: what is there is no use */
} stg_line;

void stg_line_free(stg_line *l);
void stg_line_add_base64(stg_line *l, stg_span bytes);

bool stg_line_is_utf8(stg_span text);

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

/* How often it was replayed. What the log had lost never was: the number that it
 * has instead, STG_REPLAY_LOST, is the store's alone. */
#define STG_LETTER_REPLAYS \
    "CASE WHEN replay = 2147483647 THEN 0 ELSE replay END"

/* Their names, as SELECT wants them, and one by one. */
#define STG_LETTER_SELECT                                                \
    "id, message_id, target, target_url, state, why, category, cause,"   \
    " http_status, detail, attempts, first_attempt_at, last_attempt_at," \
    " created_at, changed_at, " STG_LETTER_PLACE                         \
    ", position, last_position, count, " STG_LETTER_REPLAYS              \
    ","                                                                  \
    " content_type, headers, key, answer, payload"

const char *stg_letter_name(stg_letter_column column);

/* The row that st is at, with an end of line. */
void stg_letter_write(stg_line *l, stg_stmt *st);

#endif
