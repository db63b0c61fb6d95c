/* overload_table.h - what overloads came to, as numbers: a table for people and
 * programs, and the series for programs. Pure. */
#ifndef STAGGER_SIM_OVERLOAD_TABLE_H
#define STAGGER_SIM_OVERLOAD_TABLE_H

#include "chart/table.h"
#include "sim/overload_words.h"

typedef struct stg_overload_table {
    stg_table table;
    const stg_memory *memory; /* kept */
    void *bytes;              /* of all that the table points to */
    stg_text_buffer *words;   /* a text a row: when it recovers */
    size_t count;
} stg_overload_table;

/* A row a case; the cases and their names must outlive it. Returns STG_IO if
 * there is no memory, and there is nothing to free. */
stg_status stg_overload_table_make(stg_overload_table *t,
                                   const stg_overload_case *cases, size_t count,
                                   uint64_t seed, const stg_memory *memory);
void stg_overload_table_free(stg_overload_table *t);

/* The series as a list in JSON, an object a case: {"policy", "bin_ms",
 * "goodput_per_s": [...], ...}. */
void stg_overload_put_series(const stg_overload_case *cases, size_t count,
                             stg_text_buffer *p);

#endif
