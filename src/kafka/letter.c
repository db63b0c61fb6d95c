/* A dead letter as a record of a topic. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kafka/internal.h"
#include "kafka/letters.h"

static void add(rd_kafka_headers_t *h, const char *name, stg_span value)
{
    (void)rd_kafka_header_add(h, name, -1, value.at, (ssize_t)value.size);
}

static void add_text(rd_kafka_headers_t *h, const char *name, const char *text)
{
    if (text != NULL)
        add(h, name, (stg_span){text, strlen(text)});
}

static void add_number(rd_kafka_headers_t *h, const char *name, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, number);
    add_text(h, name, text);
}

/* "Name: value\r\n" each. */
static void add_lines(rd_kafka_headers_t *h, const char *lines)
{
    char name[260];

    while (lines != NULL && *lines != '\0') {
        const char *end = strstr(lines, "\r\n");
        const char *colon = strstr(lines, ": ");

        if (end == NULL || colon == NULL || colon > end)
            return;
        if ((size_t)(colon - lines) < sizeof name) {
            snprintf(name, sizeof name, "%.*s", (int)(colon - lines), lines);
            add(h, name, (stg_span){colon + 2, (size_t)(end - colon - 2)});
        }
        lines = end + 2;
    }
}

/* As the record had them, byte for byte; else as they were to go out. */
static void add_given(rd_kafka_headers_t *h, const stg_letter *r)
{
    uint32_t left_out;

    if (r->source_headers.at == NULL) {
        add_text(h, "content-type", r->content_type);
        add_lines(h, r->headers);
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

rd_kafka_headers_t *stg_kafka_letter_headers(const stg_letter *r,
                                             stg_kafka_letter_form form,
                                             const char *refusal)
{
    rd_kafka_headers_t *h = rd_kafka_headers_new(24);

    // Ours stand last, and the last of a name counts: the record may be one that
    // was sent again from such a topic, and have older ones.
    if (form != STG_KAFKA_LETTER_BARE)
        add_given(h, r);
    add_number(h, "stagger-id", r->id);
    add_text(h, "stagger-message", r->message_id);
    add_text(h, "stagger-target", r->target);
    add_text(h, "stagger-state", r->state);
    add_text(h, "stagger-cause", r->cause);
    add_text(h, "stagger-category", r->category);
    add_number(h, "stagger-attempts", r->attempts);
    add_text(h, "stagger-topic", r->topic);
    add_number(h, "stagger-partition",
               r->topic != NULL ? r->topic_partition : r->partition);
    add_number(h, "stagger-position", r->position);
    if (r->last_position > 0) {
        add_number(h, "stagger-last-position", r->last_position);
        add_number(h, "stagger-count", r->count);
    }
    if (r->http_status > 0)
        add_number(h, "stagger-status", r->http_status);
    add_text(h, "stagger-detail", r->detail);
    if (r->replay > 0)
        add_number(h, "stagger-replay", r->replay);
    add_text(h, "stagger-created-at", r->created_at);
    add_cut(h, r, refusal);
    return h;
}
