/* exposition.h - a page of metrics in Prometheus' text format, version 0.0.4.
 *
 *     stg_page_family(&p, "stagger_retries_total", "counter", "...");
 *     stg_page_sample(&p, "", labels, 1, 42);
 *
 * A family is begun, then come its samples. Without memory the page is NULL in
 * the end, and nothing in between fails. */
#ifndef STAGGER_METRICS_EXPOSITION_H
#define STAGGER_METRICS_EXPOSITION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/histogram.h"
#include "base/text.h"

#define STG_PAGE_TYPE "text/plain; version=0.0.4; charset=utf-8"

typedef struct stg_exposition {
    stg_text text;
    const char *family; /* the name of the one that is under way */
} stg_exposition;

typedef struct stg_label {
    const char *name;
    const char *value; /* any text: it is escaped here */
} stg_label;

/* Begins a family; name and type (counter, gauge, histogram) are lent until the
 * next one begins. */
void stg_page_family(stg_exposition *p, const char *name, const char *type,
                     const char *help);

/* A sample; suffix is "" but for the parts of a histogram. */
void stg_page_sample(stg_exposition *p, const char *suffix,
                     const stg_label *labels, size_t count, uint64_t value);

/* A sample of a time, in seconds. */
void stg_page_seconds(stg_exposition *p, const char *suffix,
                      const stg_label *labels, size_t count, stg_ns value);

/* A sample in thousandths. */
void stg_page_thousandths(stg_exposition *p, const stg_label *labels,
                          size_t count, uint64_t value);

/* A histogram: its buckets, sum and count. labels: 3 at most. */
void stg_page_histogram(stg_exposition *p, const stg_label *labels,
                        size_t count, const stg_histogram *h);

/* The whole page, given to the caller, to be freed by free(); NULL: there was
 * no memory. */
char *stg_page_take(stg_exposition *p, size_t *size);

#endif
