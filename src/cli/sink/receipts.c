/* What a sink says of the requests that it got: a count by answer, on the
 * terminal and at the end, and a log of JSON lines, which are written together:
 * a thousand requests a second must not cost as many system calls. */
#include "cli/sink/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* -- counts ----------------------------------------------------------------- */

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

/* The rate is that of the time since the last line, not the mean of the run. */
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

/* `messages` counts different ones, also those that were forgotten since. */
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

/* -- the log ---------------------------------------------------------------- */

/* Each byte of a text may become six: \u00ff. */
enum { LINE_ROOM = 4 * 6 * SINK_TEXT_MAX + 512 };

int stg_sink_log_open(sink_log *l, const char *path)
{
    l->size = 0;
    l->error = 0;
    l->file = -1;
    if (path == NULL)
        return 0;
    l->file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return l->file < 0 ? errno : 0;
}

void stg_sink_log_close(sink_log *l)
{
    stg_sink_log_flush(l);
    if (l->file >= 0)
        close(l->file);
    l->file = -1;
}

/* The lines are dropped after an error; the server looks at `error` and
 * ends. */
void stg_sink_log_flush(sink_log *l)
{
    size_t done = 0;

    while (done < l->size && l->error == 0) {
        ssize_t written = write(l->file, l->lines + done, l->size - done);

        if (written >= 0)
            done += (size_t)written;
        else if (errno != EINTR)
            l->error = errno;
    }
    l->size = 0;
}

static void put(sink_log *l, const char *text)
{
    size_t size = strlen(text);

    memcpy(l->lines + l->size, text, size);
    l->size += size;
}

/* Bytes beyond ASCII are written as Latin-1, so that the line is JSON whatever
 * they were. */
static void put_text(sink_log *l, const char *name, stg_span t)
{
    char escape[8];

    put(l, name);
    if (t.size == 0) {
        put(l, "null");
        return;
    }
    l->lines[l->size++] = '"';
    for (size_t i = 0; i < t.size && i < SINK_TEXT_MAX - 1; i++) {
        unsigned char c = (unsigned char)t.at[i];

        if (c >= ' ' && c <= '~' && c != '"' && c != '\\') {
            l->lines[l->size++] = (char)c;
        } else {
            snprintf(escape, sizeof escape, "\\u%04x", c);
            put(l, escape);
        }
    }
    l->lines[l->size++] = '"';
}

static void put_digest(sink_log *l, const unsigned char *digest)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < 32; i++) {
        l->lines[l->size++] = digits[digest[i] >> 4];
        l->lines[l->size++] = digits[digest[i] & 15];
    }
}

/* A status is a number in the JSON, reset and hang are words. */
static void put_numbers(sink_log *l, const sink_receipt *r)
{
    bool is_word = r->answered[0] > '9';
    char numbers[96];

    snprintf(numbers, sizeof numbers, ",\"status\":%s%s%s,\"size\":%" PRIu64,
             is_word ? "\"" : "", r->answered, is_word ? "\"" : "", r->size);
    put(l, numbers);
}

/* put() checks nothing: LINE_ROOM bounds a line, with four texts that are cut
 * to SINK_TEXT_MAX. A new field needs room in it. */
void stg_sink_log_add(sink_log *l, const sink_receipt *r)
{
    char text[96];
    struct timespec t;

    if (sizeof l->lines - l->size < LINE_ROOM)
        stg_sink_log_flush(l);
    clock_gettime(CLOCK_REALTIME, &t);
    snprintf(text, sizeof text, "{\"time\":%lld.%06ld", (long long)t.tv_sec,
             t.tv_nsec / 1000);
    put(l, text);
    put_text(l, ",\"id\":", r->id);
    snprintf(text, sizeof text, ",\"attempt\":%" PRIu64, r->attempt);
    put(l, text);
    put_text(l, ",\"key\":", r->key);
    put_text(l, ",\"method\":", r->method);
    put_text(l, ",\"path\":", r->path);
    put_numbers(l, r);
    put(l, ",\"sha256\":\"");
    put_digest(l, r->sha256);
    put(l, "\"}\n");
}
