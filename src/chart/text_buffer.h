/* text_buffer.h - a text that grows: what the simulator draws and prints on.
 *
 * Core's writer cuts a text that is too long; a page of charts has no length
 * that one could know before. A buffer takes its memory from a hook, so it
 * needs no C library and goes into a browser too.
 *
 * Numbers are printed by ourselves, from doubles by a few multiplications, and
 * so are the same bytes wherever a double is IEEE 754's. A number that is none
 * (infinite, NaN) reads "none".
 *
 * If memory runs out, what follows is lost and `is_short` stays true: write
 * on, and look once at the end. A buffer belongs to one thread. */
#ifndef STAGGER_CHART_TEXT_BUFFER_H
#define STAGGER_CHART_TEXT_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"

typedef struct stg_text_buffer {
    const stg_memory *memory; /* kept */
    char *text;    /* always terminated; NULL as long as it is empty */
    size_t length; /* without the terminator */
    size_t size;
    bool is_short;
} stg_text_buffer;

stg_text_buffer stg_text_buffer_on(const stg_memory *memory);

/* Gives the memory back; the buffer is empty then, and may be used again. */
void stg_text_buffer_free(stg_text_buffer *p);

/* Keeps the memory for the next text. */
void stg_text_buffer_clear(stg_text_buffer *p);

void stg_text_buffer_put(stg_text_buffer *p, const char *text);
void stg_text_buffer_put_char(stg_text_buffer *p, char c);
void stg_text_buffer_put_part(stg_text_buffer *p, const char *bytes,
                              size_t count);

/* The text as XML and HTML want it, in elements and in attributes. */
void stg_text_buffer_put_escaped(stg_text_buffer *p, const char *text);

void stg_text_buffer_put_count(stg_text_buffer *p, uint64_t number);

/* With `places` digits after the point, 0 to 6, rounded half up, and without
 * the zeros at their end: 12.5, -3, 0.004. Magnitudes up to 9e12. */
void stg_text_buffer_put_fixed(stg_text_buffer *p, double number, int places);

/* With `digits` significant ones, 1 to 15, and without zeros at their end:
 * 0.00125, 1802.5, 2.5e+17. Machines read it. */
void stg_text_buffer_put_number(stg_text_buffer *p, double number, int digits);

/* Rounded for a reader: about three digits, and groups: 1,802, 12.5, 0.004,
 * 25,000,000. */
void stg_text_buffer_put_rounded(stg_text_buffer *p, double number);

/* The number, rounded for a reader, and then what there is one of, or many of, as
 * the number is printed: "1 client", "5,000 clients". */
void stg_text_buffer_put_counted(stg_text_buffer *p, double number,
                                 const char *one, const char *many);

/* A share for a reader, in percent: "12.5 %"; "less than 0.01 %" below that, but 0
 * is "0 %". */
void stg_text_buffer_put_percent(stg_text_buffer *p, double share);

/* Milliseconds as one says them: 12.5 ms, 1.8 s, 3 min, 2.5 h. */
void stg_text_buffer_put_time(stg_text_buffer *p, double ms);

/* A text with places for others:
 *
 *     %s  a text          const char *
 *     %e  it escaped      const char *
 *     %d  a whole number  int
 *     %f  a coordinate    double, one digit after the point
 *     %%  a percent sign */
void stg_text_buffer_form(stg_text_buffer *p, const char *format, ...);

#endif
