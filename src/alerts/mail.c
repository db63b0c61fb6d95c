/* A digest as a mail: the header here, the encoding of the body by libcurl.
 *
 * Everything in a subject may come from outside (names of targets, of hubs). A
 * subject is folded only where it is printable ASCII with short words; all else
 * becomes encoded words of whole characters, so that no byte of it can end the
 * line and begin another header. */
#include "alerts/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/visible.h"

enum { LINE_MAX = 76 };

static void put_byte(FILE *l, unsigned char c)
{
    fprintf(l, "=%02X", c);
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

static void put_character(FILE *l, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (is_word_letter(text[i]))
            fputc(text[i], l);
        else
            put_byte(l, (unsigned char)text[i]);
}

/* Words of whole characters, one a line. */
static void put_encoded(FILE *l, const char *text)
{
    static const char begin[] = "=?UTF-8?Q?", end[] = "?=";
    size_t left = strlen(text), column = sizeof "Subject: " + sizeof begin;

    fputs(begin, l);
    while (left > 0) {
        size_t length = stg_utf8_length(text, left);

        if (length == 0)
            length = 1;
        if (column + word_length(text, length) + sizeof end > LINE_MAX) {
            fputs(end, l);
            fputs("\r\n ", l);
            fputs(begin, l);
            column = sizeof begin;
        }
        put_character(l, text, length);
        column += word_length(text, length);
        text += length;
        left -= length;
    }
    fputs(end, l);
}

/* Folded at blanks. */
static void put_folded(FILE *l, const char *text)
{
    size_t column = sizeof "Subject: " - 1;

    while (*text != '\0') {
        size_t word = strcspn(text + 1, " ") + 1;

        if (column + word > LINE_MAX && *text == ' ') {
            fputs("\r\n", l);
            column = 0;
        }
        fwrite(text, 1, word, l);
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
static void put_subject(FILE *l, const stg_digest *d)
{
    char subject[STG_ALERT_SUBJECT_MAX];

    stg_alert_subject(d, subject);
    fputs("Subject: ", l);
    if (is_plain(subject) && !has_long_word(subject) &&
        strstr(subject, "=?") == NULL)
        put_folded(l, subject);
    else
        put_encoded(l, subject);
    fputs("\r\n", l);
}

/* Names of days and months are English, whatever the locale. */
static void put_date(FILE *l, uint64_t utc)
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
    fputs(text, l);
}

static void put_id(FILE *l, const stg_digest *d, const stg_mail_head *head)
{
    char text[96];

    snprintf(text, sizeof text, "Message-ID: <%016" PRIx64 ".%" PRIu64 "@",
             head->id, d->at / STG_MS);
    fputs(text, l);
    fputs(strrchr(head->from, '@') + 1, l);
    fputs(">\r\n", l);
}

static void put_addresses(FILE *l, const stg_mail_head *head)
{
    fputs("From: ", l);
    fputs(head->from, l);
    fputs("\r\nTo: ", l);
    for (size_t i = 0; i < head->to_count; i++) {
        fputs(i == 0 ? "" : ",\r\n ", l);
        fputs(head->to[i], l);
    }
    fputs("\r\n", l);
}

/* -- the whole ------------------------------------------------------------- */

/* Auto-Submitted keeps holiday replies away (RFC 3834). */
char *stg_mail_print(const stg_digest *d, const stg_mail_head *head)
{
    char body[STG_ALERT_TEXT_MAX], *text = NULL;
    size_t size = 0;
    FILE *l = open_memstream(&text, &size);
    bool is_short;

    if (l == NULL)
        return NULL;
    put_date(l, d->at);
    put_addresses(l, head);
    put_subject(l, d);
    put_id(l, d, head);
    fputs("Auto-Submitted: auto-generated\r\n\r\n", l);
    stg_alert_text(d, body, sizeof body);
    for (const char *at = body; *at != '\0'; at++)
        if (*at == '\n')
            fputs("\r\n", l);
        else
            fputc(*at, l);
    is_short = ferror(l) != 0;
    is_short |= fclose(l) != 0;
    if (!is_short)
        return text;
    free(text);
    return NULL;
}
