/* writer.h - text into a buffer that may be too small: it is cut, and always
 * terminated. Core's way to speak, having no printf. Private. */
#ifndef STAGGER_CORE_WRITER_H
#define STAGGER_CORE_WRITER_H

#include <stddef.h>

#include <stagger/ns.h>
#include <stagger/status.h>

typedef struct stg_writer {
    char *text;    /* NULL: counts only */
    size_t size;   /* of text, the terminator included */
    size_t length; /* of all that was written, cut or not */
} stg_writer;

stg_writer stg_writer_on(char *text, size_t size);

void stg_write_text(stg_writer *w, const char *text);
void stg_write_char(stg_writer *w, char c);

/* At most count bytes of text; what is not printable reads as '?'. */
void stg_write_part(stg_writer *w, const char *text, size_t count);

/* The same of a word from outside, of any length: after 40 bytes it is cut. */
void stg_write_word(stg_writer *w, const char *word, size_t length);

/* A file's name, cut at its front to what leaves room for a message. */
void stg_write_path(stg_writer *w, const char *path);

void stg_write_number(stg_writer *w, uint64_t number);

/* 1500 as "1.5". */
void stg_write_thousandths(stg_writer *w, uint64_t thousandths);

/* Exactly, in the largest unit that takes no fraction: "1500ms", "0"; STG_NEVER: "none". */
void stg_write_duration(stg_writer *w, stg_ns ns);

/* The same as a text, which it returns. */
enum { STG_DURATION_TEXT_MAX = 24 };
const char *stg_duration_text(stg_ns ns, char text[STG_DURATION_TEXT_MAX]);

/* A writer on err's text, its place set to none; err may be NULL. */
stg_writer stg_writer_on_error(stg_error *err);

/* Ways to return STG_INVALID with words: a text; or "key=found is out of range,
 * expected ...", found being a number, thousandths or a duration. */
stg_status stg_refuse(stg_error *err, const char *text);
stg_status stg_refuse_number(stg_error *err, const char *key, uint64_t found,
                             const char *expected);
stg_status stg_refuse_thousandths(stg_error *err, const char *key,
                                  uint64_t found, const char *expected);
stg_status stg_refuse_percent(stg_error *err, const char *key, uint64_t found,
                              const char *expected);
stg_status stg_refuse_duration(stg_error *err, const char *key, stg_ns found,
                               const char *expected);

/* "cap=1s is below base=2s" */
stg_status stg_refuse_cap(stg_error *err, stg_ns cap, const char *key,
                          stg_ns ns);

#endif
