/* A dead letter as a record of a topic. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kafka/internal.h"
#include "kafka/letters.h"
#include "store/letter.h"

static void add_text(rd_kafka_headers_t *h, const char *name, const char *text)
{
    if (text != NULL)
        stg_kafka_headers_add(h, name, (stg_span){text, strlen(text)});
}

static void add_number(rd_kafka_headers_t *h, const char *name, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, number);
    add_text(h, name, text);
}

/* As the record had them, byte for byte; else as they were to go out. */
static void add_given(rd_kafka_headers_t *h, const stg_letter *r)
{
    uint32_t left_out;

    if (r->source_headers.at == NULL) {
        add_text(h, "content-type", r->content_type);
        stg_kafka_headers_add_lines(
            h, (stg_span){r->headers,
                          r->headers == NULL ? 0 : strlen(r->headers)});
        return;
    }
    left_out = stg_kafka_headers_unpack(r->source_headers, h);
    if (left_out > 0)
        add_number(h, "stagger-headers-left-out", left_out);
}

/* Why the body is not there, and how long it was. */
static void add_cut(rd_kafka_headers_t *h, const stg_letter *r,
                    const char *refusal)
{
    if (refusal == NULL)
        return;
    add_text(h, "stagger-left-out", refusal);
    add_number(h, "stagger-payload-size", r->payload_size);
}

/* What happened, by the table of columns; a count of one and no replay go
 * without saying. */
static void add_columns(rd_kafka_headers_t *h, const stg_letter *r)
{
    for (stg_letter_column c = 0; c < STG_LETTER_COLUMNS; c++) {
        const char *name = stg_letter_header(c);
        stg_letter_value v = stg_letter_get(r, c);
        bool is_usual = (c == STG_LETTER_COUNT && v.number == 1) ||
                        (c == STG_LETTER_REPLAY && v.number == 0);

        if (name == NULL || v.is_null || is_usual)
            continue;
        if (v.is_number)
            add_number(h, name, v.number);
        else
            stg_kafka_headers_add(h, name, v.span);
    }
}

rd_kafka_headers_t *stg_kafka_letter_headers(const stg_letter *r,
                                             stg_kafka_letter_form form,
                                             const char *refusal)
{
    rd_kafka_headers_t *h = rd_kafka_headers_new(24);

    // Ours stand last, and the last of a name counts: the record may be one
    // that was sent again from such a topic, and have older ones.
    if (form != STG_KAFKA_LETTER_BARE)
        add_given(h, r);
    add_columns(h, r);
    add_cut(h, r, refusal);
    return h;
}
