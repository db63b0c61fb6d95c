#include "alerts/mail.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alerts/text.h"
#include "base/utf8.h"

enum { LINE_MAX = 76 };

/* A text that grows. */
typedef struct letter {
    char *text; /* NULL: there was no memory */
    size_t size, room;
} letter;

static void put(letter *l, const char *text, size_t size)
{
    if (l->text == NULL)
        return;
    if (l->size + size >= l->room) {
        size_t room = 2 * (l->room + size);
        char *more = realloc(l->text, room);

        if (more == NULL)
            free(l->text);
        l->text = more;
        l->room = room;
        if (more == NULL)
            return;
    }
    memcpy(l->text + l->size, text, size);
    l->size += size;
    l->text[l->size] = '\0';
}

static void put_text(letter *l, const char *text)
{
    put(l, text, strlen(text));
}

static const char hex[] = "0123456789ABCDEF";

static void put_byte(letter *l, unsigned char c)
{
    const char code[3] = {'=', hex[c >> 4], hex[c & 15]};

    put(l, code, sizeof code);
}

/* -- the header ------------------------------------------------------------ */

static bool is_plain(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text < ' ' || *text > '~')
            return false;
    return true;
}

/* What may stand in an encoded word without a code. RFC 2047, section 5. */
static bool is_word_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || strchr("!*+-/", c) != NULL;
}

/* What the first character of text takes in an encoded word. */
static size_t word_length(const char *text, size_t length)
{
    return length == 1 && is_word_letter(*text) ? 1 : 3 * length;
}

static void put_character(letter *l, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (is_word_letter(text[i]))
            put(l, text + i, 1);
        else
            put_byte(l, (unsigned char)text[i]);
}

/* Words of whole characters, one a line. */
static void put_encoded(letter *l, const char *text)
{
    static const char begin[] = "=?UTF-8?Q?", end[] = "?=";
    size_t left = strlen(text), column = sizeof "Subject: " + sizeof begin;

    put_text(l, begin);
    while (left > 0) {
        size_t length = stg_utf8_length(text, left);

        if (length == 0)
            length = 1;
        if (column + word_length(text, length) + sizeof end > LINE_MAX) {
            put_text(l, end);
            put_text(l, "\r\n ");
            put_text(l, begin);
            column = sizeof begin;
        }
        put_character(l, text, length);
        column += word_length(text, length);
        text += length;
        left -= length;
    }
    put_text(l, end);
}

/* Folded at blanks. */
static void put_folded(letter *l, const char *text)
{
    size_t column = sizeof "Subject: " - 1;

    while (*text != '\0') {
        size_t word = strcspn(text + 1, " ") + 1;

        if (column + word > LINE_MAX && *text == ' ') {
            put_text(l, "\r\n");
            column = 0;
        }
        put(l, text, word);
        column += word;
        text += word;
    }
}

/* A word of more than a line would not fold. */
static bool has_long_word(const char *text)
{
    while (*text != '\0') {
        size_t word = strcspn(text + 1, " ") + 1;

        if (word > LINE_MAX - sizeof "Subject: ")
            return true;
        text += word;
    }
    return false;
}

/* What could be read as an encoded word is encoded, too. */
static void put_subject(letter *l, const stg_digest *d)
{
    char subject[STG_ALERT_SUBJECT_MAX];

    stg_alert_subject(d, subject);
    put_text(l, "Subject: ");
    if (is_plain(subject) && !has_long_word(subject) &&
        strstr(subject, "=?") == NULL)
        put_folded(l, subject);
    else
        put_encoded(l, subject);
    put_text(l, "\r\n");
}

/* Names of days and months are English, whatever the locale. */
static void put_date(letter *l, uint64_t utc)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t seconds = (time_t)(utc / STG_S);
    struct tm tm;
    char text[64];

    if (gmtime_r(&seconds, &tm) == NULL)
        return;
    snprintf(
        text, sizeof text, "Date: %.3s, %02d %.3s %d %02d:%02d:%02d +0000\r\n",
        days + 3 * (tm.tm_wday % 7), tm.tm_mday, months + 3 * (tm.tm_mon % 12),
        tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
    put_text(l, text);
}

static void put_id(letter *l, const stg_digest *d, const stg_mail_head *head)
{
    char text[96];

    snprintf(text, sizeof text, "Message-ID: <%016" PRIx64 ".%" PRIu64 "@",
             head->id, d->at / STG_MS);
    put_text(l, text);
    put_text(l, strrchr(head->from, '@') + 1);
    put_text(l, ">\r\n");
}

static void put_addresses(letter *l, const stg_mail_head *head)
{
    put_text(l, "From: ");
    put_text(l, head->from);
    put_text(l, "\r\nTo: ");
    for (size_t i = 0; i < head->to_count; i++) {
        put_text(l, i == 0 ? "" : ",\r\n ");
        put_text(l, head->to[i]);
    }
    put_text(l, "\r\n");
}

/* -- the text -------------------------------------------------------------- */

/* Quoted-printable, RFC 2045, section 6.7. */
static void put_quoted(letter *l, const char *text)
{
    size_t column = 0;

    for (; *text != '\0'; text++) {
        bool is_end = text[1] == '\n' || text[1] == '\0';
        bool is_as_it_is = (*text > ' ' && *text <= '~' && *text != '=') ||
                           (*text == ' ' && !is_end);
        size_t length = is_as_it_is ? 1 : 3;

        if (*text == '\n') {
            put_text(l, "\r\n");
            column = 0;
            continue;
        }
        if (column + length > LINE_MAX - 1) {
            put_text(l, "=\r\n");
            column = 0;
        }
        if (is_as_it_is)
            put(l, text, 1);
        else
            put_byte(l, (unsigned char)*text);
        column += length;
    }
}

char *stg_mail_print(const stg_digest *d, const stg_mail_head *head)
{
    char text[STG_ALERT_TEXT_MAX];
    letter l = {.room = 4096};

    l.text = malloc(l.room);
    put_date(&l, d->at);
    put_addresses(&l, head);
    put_subject(&l, d);
    put_id(&l, d, head);
    put_text(&l,
             "MIME-Version: 1.0\r\n"
             "Content-Type: text/plain; charset=utf-8\r\n"
             "Content-Transfer-Encoding: quoted-printable\r\n"
             "Auto-Submitted: auto-generated\r\n"
             "\r\n");
    stg_alert_text(d, text, sizeof text);
    put_quoted(&l, text);
    return l.text;
}
