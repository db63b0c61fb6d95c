/* table.h - numbers in rows: one table for readers and for programs.
 *
 * From the same cells come lines for a terminal (with sparklines), CSV, JSON
 * and HTML. Plain data that the caller owns; nothing is kept. */
#ifndef STAGGER_CHART_TABLE_H
#define STAGGER_CHART_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "chart/text_buffer.h"

typedef enum stg_cell_kind {
    STG_CELL_NONE, /* nothing to say: empty, and null for programs */
    STG_CELL_TEXT,
    STG_CELL_NUMBER,
    STG_CELL_ESTIMATE, /* a mean and its standard error */
    STG_CELL_FACT,     /* number is 0 or 1: no or yes */
    STG_CELL_SPARK,    /* a small curve; for readers alone */
} stg_cell_kind;

typedef struct stg_cell {
    stg_cell_kind kind;
    const char *text;
    double number;
    double se;
    const double *curve; /* of a spark, from 0 up */
    size_t count;
} stg_cell;

typedef struct stg_table_column {
    const char *key; /* in CSV and JSON: "completion_ms"; a dot makes an object
                          of neighbours in JSON, and is _ in CSV; NULL: for
                          readers alone */
    const char *title; /* for readers, unless all its cells are NONE; NULL: for
                          programs alone */
    bool is_time;      /* numbers are milliseconds */
    int rank;          /* where a line is too long, columns with the highest
                          rank are left out first; those of 0 never */
} stg_table_column;

typedef struct stg_table {
    const char *title; /* above it; NULL: none */
    const stg_table_column *columns;
    size_t column_count;   /* 1 to STG_TABLE_COLUMNS_MAX */
    const stg_cell *cells; /* row by row */
    size_t row_count;
} stg_table;

enum { STG_TABLE_COLUMNS_MAX = 64 };

static inline stg_cell stg_cell_text(const char *text)
{
    return (stg_cell){.kind = STG_CELL_TEXT, .text = text};
}

static inline stg_cell stg_cell_number(double number)
{
    return (stg_cell){.kind = STG_CELL_NUMBER, .number = number};
}

static inline stg_cell stg_cell_estimate(double mean, double se)
{
    return (stg_cell){.kind = STG_CELL_ESTIMATE, .number = mean, .se = se};
}

static inline stg_cell stg_cell_fact(bool is_true)
{
    return (stg_cell){.kind = STG_CELL_FACT, .number = is_true};
}

static inline stg_cell stg_cell_spark(const double *curve, size_t count)
{
    return (stg_cell){.kind = STG_CELL_SPARK, .curve = curve, .count = count};
}

/* Lines of at most `width` characters where leaving out columns makes that
 * possible; is_utf8: sparklines of blocks, else of what ASCII has. */
void stg_table_text(const stg_table *t, int width, bool is_utf8,
                    stg_text_buffer *buffer);

/* A line of keys and a line for each row, by RFC 4180 but with a bare newline;
 * an estimate is two columns, KEY and KEY_se. */
void stg_table_csv(const stg_table *t, stg_text_buffer *buffer);

/* A list of objects, a line each; an estimate is {"mean": M, "se": S}. */
void stg_table_json(const stg_table *t, stg_text_buffer *buffer);

/* A <table>. */
void stg_table_html(const stg_table *t, stg_text_buffer *buffer);

/* A text in JSON, quoted. */
void stg_text_buffer_put_json(stg_text_buffer *buffer, const char *text);

#endif
