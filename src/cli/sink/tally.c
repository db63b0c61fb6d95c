#include "cli/sink/tally.h"

#include <inttypes.h>
#include <string.h>

/* "1,234,567" */
#define NUMBER_MAX 32

static const char *group_digits(uint64_t number, char text[NUMBER_MAX])
{
    char digits[NUMBER_MAX];
    size_t count = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, number);
    char *to = text;

    for (size_t i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = '\0';
    return text;
}

void stg_sink_tally_add(sink_tally *t, const sink_reply *reply)
{
    t->receipts++;
    if (reply->deed == SINK_ANSWER)
        t->by_status[reply->status]++;
    else if (reply->deed == SINK_RESET)
        t->resets++;
    else
        t->hangs++;
}

static void write_kind(FILE *file, bool is_line, const char *name,
                       uint64_t count)
{
    char number[NUMBER_MAX];

    group_digits(count, number);
    if (count > 0 && is_line)
        fprintf(file, ", %s: %s", name, number);
    else if (count > 0)
        fprintf(file, "  %-12s %s\n", name, number);
}

/* Each kind of answer that there was, in a line or in lines of their own. */
static void write_kinds(const sink_tally *t, FILE *file, bool is_line)
{
    char name[SINK_ANSWERED_MAX];

    for (int status = 0; status < SINK_STATUS_MAX; status++) {
        snprintf(name, sizeof name, "%d", status);
        write_kind(file, is_line, name, t->by_status[status]);
    }
    write_kind(file, is_line, "reset", t->resets);
    write_kind(file, is_line, "hang", t->hangs);
}

void stg_sink_tally_show(sink_tally *t, stg_ns now)
{
    char number[NUMBER_MAX], rate[NUMBER_MAX];
    stg_ns span_ms = stg_ns_sub(now, t->shown_at) / STG_MS;
    uint64_t fresh = t->receipts - t->shown;

    fprintf(stderr, "\r%s receipts, %s a second",
            group_digits(t->receipts, number),
            group_digits(span_ms == 0 ? 0 : fresh * 1000 / span_ms, rate));
    write_kinds(t, stderr, true);
    fputs("\033[K", stderr);
    fflush(stderr);
    t->shown = t->receipts;
    t->shown_at = now;
    t->is_line_open = true;
}

void stg_sink_tally_finish(sink_tally *t)
{
    if (t->is_line_open)
        fputc('\n', stderr);
    t->is_line_open = false;
}

static void write_count(FILE *file, const char *name, uint64_t count)
{
    char number[NUMBER_MAX];

    fprintf(file, "%-14s %s\n", name, group_digits(count, number));
}

void stg_sink_tally_sum(sink_tally *t, uint64_t messages, FILE *file)
{
    write_count(file, "receipts", t->receipts);
    write_kinds(t, file, false);
    write_count(file, "messages", messages);
    write_count(file, "duplicates", t->duplicates);
    if (t->unnamed > 0)
        write_count(file, "without an id", t->unnamed);
    if (t->broken > 0)
        write_count(file, "broken off", t->broken);
    write_count(file, "bytes", t->bytes);
}
