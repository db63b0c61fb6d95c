/* Text for terminals. Names, URLs, causes and answers come from targets and
 * producers, which may be hostile: control characters, escape sequences and
 * bidirectional marks are replaced, never passed on. */
#include "cli/say.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/terminal.h"

enum { FORMED = 1024 };

/* The CR of a CR LF is left out without a mark; a lone CR, which would let a
 * text overwrite the line, becomes '?'. */
void stg_say_text(FILE *to, const char *at, size_t size, stg_visible_in in)
{
    for (size_t i = 0; i < size;) {
        stg_visible_char c = stg_visible_next(at + i, size - i, in);
        bool ends_line = in == STG_VISIBLE_IN_TEXT && c.code == '\r' &&
                         i + 1 < size && at[i + 1] == '\n';

        if (c.is_visible)
            fwrite(at + i, 1, c.size, to);
        else if (!ends_line)
            fputc('?', to);
        i += c.size;
    }
}

/* In brief, or else on the heap. */
static char *form(char brief[FORMED], const char *format, va_list args)
{
    char *text = brief;
    va_list again;
    int size;

    va_copy(again, args);
    brief[0] = '\0';
    size = vsnprintf(brief, FORMED, format, args);
    if (size >= FORMED) {
        text = malloc((size_t)size + 1);
        if (text == NULL)
            text = brief; // cut
        else
            (void)vsnprintf(text, (size_t)size + 1, format, again);
    }
    va_end(again);
    return text;
}

/* The whole is formed first and cleaned then, so that no argument can be
 * forgotten. Without memory it is cut at FORMED. */
__attribute__((format(printf, 2, 0))) static void
say_args(FILE *to, const char *format, va_list args)
{
    char brief[FORMED], *text = form(brief, format, args);

    stg_say_text(to, text, strlen(text), STG_VISIBLE_IN_TEXT);
    if (text != brief)
        free(text);
}

/* Where a text of `size` bytes is cut so that `most` are left, whole ones of
 * UTF-8. */
static size_t cut_at(const char *at, size_t size, size_t most)
{
    size_t end = 0;

    while (end < size) {
        size_t next =
            stg_visible_next(at + end, size - end, STG_VISIBLE_IN_LINE).size;

        if (end + next > most)
            break;
        end += next;
    }
    return end;
}

/* A word, or the blanks between two. Behind its end stand our own marks. */
static void say_word(FILE *to, const char *at, size_t size)
{
    enum { WORD_MAX = 120, SHOWN = 100 };
    size_t marks = size, shown = size;

    if (size > WORD_MAX) {
        while (marks > SHOWN && strchr(":;,?)'`\"", at[marks - 1]) != NULL)
            marks--;
        shown = cut_at(at, size, SHOWN);
    }
    stg_say_text(to, at, shown, STG_VISIBLE_IN_LINE);
    if (shown < size)
        fprintf(to, "...%.*s", (int)(size - marks < 3 ? size - marks : 3),
                at + size - (size - marks < 3 ? size - marks : 3));
}

/* For complaints, which may quote a whole argument or URL: words above 120
 * bytes and lines above 1500 are shortened. */
void stg_say_brief_args(FILE *to, const char *format, va_list args)
{
    enum { LINE_MAX_SHOWN = 1500 };
    char brief[FORMED], *text = form(brief, format, args);
    size_t size = strlen(text), end = cut_at(text, size, LINE_MAX_SHOWN);

    for (size_t at = 0, next; at < end; at = next) {
        next = at + strcspn(text + at, " ");
        if (next > end)
            next = end;
        say_word(to, text + at, next - at);
        for (; next < end && text[next] == ' '; next++)
            fputc(' ', to);
    }
    if (end < size)
        fputs("...", to);
    if (text != brief)
        free(text);
}

void stg_say(FILE *to, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say_args(to, format, args);
    va_end(args);
}

/* Only a terminal is protected: a file gets the bytes as they are. */
void stg_say_bytes(FILE *to, const char *at, size_t size)
{
    if (isatty(fileno(to)) == 1)
        stg_say_text(to, at, size, STG_VISIBLE_IN_TEXT);
    else
        fwrite(at, 1, size, to);
}

/* Returns 0 for all but the first of those that are the same, so that a caller
 * who skips 0 shows each group once. */
size_t stg_count_same(size_t i, size_t count,
                      bool (*is_same)(const void *all, size_t a, size_t b),
                      const void *all)
{
    size_t same = 0;

    for (size_t k = 0; k < count; k++) {
        if (!is_same(all, k, i))
            continue;
        if (k < i)
            return 0;
        same++;
    }
    return same;
}

void stg_say_policy(FILE *to, const char *target, const char *policy,
                    size_t count)
{
    if (count == 0)
        return;
    stg_say(to, "\npolicy of %s", target);
    if (count > 1)
        fprintf(to, " and %zu more", count - 1);
    stg_say(to, ":\n  %s\n", policy);
}

/* Full jitter of fixed or listed waits surprises people: `base=10s` waits 5 s
 * in the mean. */
const char *stg_say_jitter(const stg_policy *p,
                           char words[STG_JITTER_WORDS_MAX])
{
    const stg_backoff *b = &p->backoff;
    bool is_list = b->growth == STG_LIST;
    char window[STG_NS_TEXT_MAX];

    if (b->jitter != STG_JITTER_FULL || p->attempts_max == 1 ||
        (!is_list && (b->growth != STG_FIXED || b->base == 0)))
        return NULL;
    stg_time_text(b->base, window);
    snprintf(words, STG_JITTER_WORDS_MAX,
             "each is drawn between 0 and %s (full jitter); with jitter=none "
             "it is exactly %s",
             is_list ? "its time in the list" : window,
             is_list ? "that time" : window);
    return words;
}
