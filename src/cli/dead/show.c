/* stagger dead show: one dead letter with all that is known of it. The payload
 * of a bulk dead letter is not in its row but still in the queue, for as long
 * as that keeps messages; that of a replayed one has gone with the replay.
 * Bytes that are not text are shown in hexadecimal. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/event.h>
#include <stagger/fault.h>

#include "base/text.h"
#include "base/visible.h"
#include "cli/dead/dead.h"
#include "cli/options.h"
#include "cli/say.h"
#include "cli/terminal.h"

enum { INDENT = 16, TEXT = 2048 };

/* A bulk dead letter: one row for all messages between two positions. */
static bool is_range(const stg_letter *l)
{
    return l->last_position > 0;
}

/* -- lines ----------------------------------------------------------------- */

/* Nothing is printed of what is empty. */
static void put(const stg_terminal *t, const char *label, const char *text)
{
    char line[TEXT], padded[INDENT + 1];

    if (*text == '\0')
        return;
    snprintf(padded, sizeof padded, "  %-*s", INDENT - 2, label);
    snprintf(line, sizeof line, "%s", text);
    stg_visible_string(line, STG_VISIBLE_IN_LINE);
    stg_terminal_wrap(t, INDENT, padded, STG_STYLE_FAINT, line);
}

/* The sentence to a reason's name. */
static const char *sentence_of(const char *why)
{
    for (int i = STG_WHY_DONE; i < STG_WHY_COUNT; i++)
        if (strcmp(stg_why_name((stg_why)i), why) == 0)
            return stg_why_sentence((stg_why)i);
    if (strcmp(why, "shed") == 0)
        return "its circuit breaker was open for longer than shed-after; what "
               "waited then was given up without an attempt";
    if (strcmp(why, "retention") == 0)
        return "what waited was older than store.retention, or had no more room "
               "in the store, before it was tried";
    return "";
}

static void put_decision(const stg_terminal *t, const stg_letter *l)
{
    const char *why = dead_or_none(l->why), *more = sentence_of(why);
    char line[TEXT];

    snprintf(line, sizeof line, "%s%s%s", why, *more == '\0' ? "" : ": ", more);
    put(t, "given up", line);
}

/* A category is one of the letters A to D; any other is shown without words. */
static void put_cause(const stg_terminal *t, const stg_letter *l)
{
    static const char *const categories[] = {
        "nothing was sent", "the server failed, or was silent",
        "the request is at fault", "the server asks for less"};
    const char *category = dead_or_none(l->category);
    char line[TEXT];

    if (*category >= 'A' && *category <= 'D')
        snprintf(line, sizeof line, "%s (%s: %s)", dead_or_none(l->cause),
                 category, categories[*category - 'A']);
    else
        snprintf(line, sizeof line, "%s", dead_or_none(l->cause));
    put(t, "cause", line);
}

/* Times are left out where no attempt was made. */
static void put_attempts(const stg_terminal *t, const stg_letter *l)
{
    char number[DEAD_NUMBER_MAX];
    const char *first = dead_or_none(l->first_attempt_at);
    const char *last = dead_or_none(l->last_attempt_at);
    char line[TEXT];

    snprintf(line, sizeof line, "%s%s%s%s%s",
             dead_text(l, STG_LETTER_ATTEMPTS, number),
             *first == '\0' ? "" : ", from ", first,
             *last == '\0' ? "" : " to ", last);
    put(t, "attempts", line);
}

/* -- the payload ----------------------------------------------------------- */

/* Whether it is shown as text, and not byte by byte. */
static bool is_text(stg_span bytes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        unsigned char c = (unsigned char)bytes.at[i];

        if ((c < ' ' && c != '\n' && c != '\t' && c != '\r') || c == 0x7f)
            return false;
    }
    return stg_utf8_is_text(bytes.at, bytes.size);
}

static void put_hex(stg_span bytes)
{
    for (size_t at = 0; at < bytes.size; at += 16) {
        size_t count = bytes.size - at < 16 ? bytes.size - at : 16;

        printf("  %08zx ", at);
        for (size_t i = 0; i < 16; i++)
            if (i < count)
                printf(" %02x", (unsigned char)bytes.at[at + i]);
            else
                fputs("   ", stdout);
        fputs("  ", stdout);
        for (size_t i = 0; i < count; i++) {
            char c = bytes.at[at + i];

            putchar(c >= ' ' && c <= '~' ? c : '.');
        }
        putchar('\n');
    }
}

/* The size is that of the bytes, also where text is shown with marks
 * replaced. */
static void put_blob(const char *title, stg_span bytes)
{
    printf("\n%s, %zu byte%s\n", title, bytes.size, stg_plural(bytes.size));
    if (!is_text(bytes)) {
        put_hex(bytes);
        return;
    }
    stg_say_text(stdout, bytes.at, bytes.size, STG_VISIBLE_IN_TEXT);
    if (bytes.size > 0 && bytes.at[bytes.size - 1] != '\n')
        putchar('\n');
}

/* -- a row ----------------------------------------------------------------- */

/* The bodies of a bulk row are in the queue, for as long as it keeps them. */
static void put_range(dead_rows *r, const stg_terminal *t, const stg_letter *l)
{
    uint64_t first = l->position, kept;
    uint64_t last = l->last_position;
    char line[TEXT];

    snprintf(line, sizeof line,
             "%" PRIu64
             ", all that the target was to get from position %" PRIu64
             " to %" PRIu64,
             l->count, first, last);
    put(t, "messages", line);
    put(t, "newest", dead_or_none(l->last_attempt_at));
    if (l->topic != NULL || strcmp(dead_or_none(l->state), "dead") != 0)
        return;
    if (!dead_first_kept(r, &kept))
        return;
    if (kept > last)
        snprintf(line, sizeof line, "expired: the queue has none of them");
    else if (kept > first)
        snprintf(line, sizeof line,
                 "in the queue from position %" PRIu64
                 " on; those before have "
                 "expired",
                 kept);
    else
        snprintf(line, sizeof line, "in the queue");
    put(t, "payloads", line);
}

/* A replay has taken it with it, and a drop has thrown it away. */
static void put_gone(const stg_terminal *t, const stg_letter *l)
{
    bool is_replayed = strcmp(dead_or_none(l->state), "replayed") == 0;

    if (strcmp(dead_or_none(l->state), "dead") == 0) {
        put(t, "payload", "was too large to be kept");
        return;
    }
    put(t, "payload",
        is_replayed ? "went with the delivery that was made of it"
                    : "is not kept any more");
}

/* For people: --json has the same letter for programs. */
static void put_all(dead_rows *r, const stg_letter *l)
{
    stg_terminal t = stg_terminal_look();
    char number[DEAD_NUMBER_MAX];

    printf("%sDead letter %" PRIu64 "%s\n",
           stg_terminal_style(&t, STG_STYLE_BOLD), l->id,
           stg_terminal_style(&t, STG_STYLE_PLAIN));
    put(&t, "message", dead_or_none(l->message_id));
    put(&t, "topic", dead_or_none(l->topic));
    put(&t, "target", dead_or_none(l->target));
    put(&t, "url", dead_or_none(l->target_url));
    put(&t, "state", dead_or_none(l->state));
    put(&t, "since", dead_or_none(l->created_at));
    put(&t, "changed", dead_or_none(l->changed_at));
    put_decision(&t, l);
    put_cause(&t, l);
    put(&t, "detail", dead_or_none(l->detail));
    if (is_range(l))
        put_range(r, &t, l);
    else
        put_attempts(&t, l);
    if (!is_range(l) && !l->has_payload)
        put_gone(&t, l);
    if (l->replay > 0)
        put(&t, "replays", dead_text(l, STG_LETTER_REPLAY, number));
    put(&t, "content type", dead_or_none(l->content_type));
    put(&t, "key", dead_or_none(l->key));
    if (l->source_key.at != NULL)
        put_blob("Key of the record", l->source_key);
    if (l->headers != NULL)
        put_blob("Headers", (stg_span){l->headers, strlen(l->headers)});
    if (l->answer.at != NULL)
        put_blob("Answer", l->answer);
    if (l->has_payload)
        put_blob("Payload", l->payload);
}

/* The bytes as they are, unless stdout is a terminal. */
static int put_raw(const dead_options *o, const stg_letter *l)
{
    stg_span payload = l->payload;

    if (!is_range(l) && !l->has_payload) {
        stg_options_complain("stagger dead", "%s was %s, and has no payload",
                             o->id, dead_or_none(l->state));
        return 1;
    }
    if (is_range(l)) {
        stg_options_complain("stagger dead",
                             "%s stands for many messages, and has no payload "
                             "of its own",
                             o->id);
        return 1;
    }
    stg_say_bytes(stdout, payload.at, payload.size);
    return 0;
}

static int put_json(const stg_letter *l)
{
    stg_text line = {.size = 0};
    bool is_short;

    stg_letter_write(&line, l);
    is_short = line.is_short;
    if (!is_short)
        fwrite(line.at, 1, line.size, stdout);
    stg_text_free(&line);
    return is_short ? STG_EXIT_USAGE : 0;
}

/* A number beyond 64 bits becomes the largest one, which no letter has. */
static int show(dead_rows *r, const dead_options *o)
{
    stg_letter l;
    int rc = dead_read_one(r, strtoull(o->id, NULL, 10), &l);

    if (rc != SQLITE_OK)
        return dead_fail(r, rc);
    if (l.id == 0) {
        stg_options_complain("stagger dead", "there is no dead letter %s",
                             o->id);
        return 1;
    }
    if (o->form == DEAD_RAW)
        return put_raw(o, &l);
    if (o->form == DEAD_JSON)
        return put_json(&l);
    put_all(r, &l);
    return 0;
}

int dead_show(const dead_options *o)
{
    dead_rows r;
    int code = dead_open(&r, o);

    if (code == 0)
        code = show(&r, o);
    dead_close(&r);
    return stg_options_finish("stagger dead", code);
}
