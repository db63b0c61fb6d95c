/* log_line.h - the text of a log's line, in a buffer of its own: fields are
 * added while there is room, and what has none is left out, whole. */
#ifndef STAGGER_HOST_LOG_LINE_H
#define STAGGER_HOST_LOG_LINE_H

#include "host/log.h"

typedef struct stg_log_line {
    bool is_json, is_colour;
    bool is_begun; /* the next field has one before it */
    bool is_cut;   /* a field was left out */
    size_t room;   /* the most bytes of text, up to STG_LOG_LINE_MAX */
    size_t size;
    char text[STG_LOG_LINE_MAX];
} stg_log_line;

/* No field yet; for the end of a line that another one begins. */
void stg_log_line_init(stg_log_line *l, const stg_log_options *o, size_t room);

/* time, level and event. */
void stg_log_line_head(stg_log_line *l, uint64_t utc, stg_log_level level,
                       const char *event);

/* Fields, each with what separates it from the one before. */
void stg_log_line_fields(stg_log_line *l, const stg_field *fields,
                         size_t count);

/* Fields that another line holds already. */
void stg_log_line_raw(stg_log_line *l, const char *text, size_t size);

/* `cut`, if a field was left out, and the end of the line. There is room. */
void stg_log_line_end(stg_log_line *l);

#define STG_UTC_TEXT_MAX 32

/* Writes ns since 1970 as 2026-03-01T12:00:00.250Z. Returns text. */
const char *stg_utc_text(uint64_t utc, char text[STG_UTC_TEXT_MAX]);

#endif
