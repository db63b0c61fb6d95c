#include "cli/sink/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

static void put_numbers(sink_log *l, const sink_receipt *r)
{
    bool is_word = r->answered[0] > '9';
    char numbers[96];

    snprintf(numbers, sizeof numbers, ",\"status\":%s%s%s,\"size\":%" PRIu64,
             is_word ? "\"" : "", r->answered, is_word ? "\"" : "", r->size);
    put(l, numbers);
}

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
