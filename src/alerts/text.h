/* text.h - a digest in words: for people, as JSON and as a mail.
 *
 * Pure. UTF-8 without control bytes but ends of lines in the text; what has no
 * room is left out, whole, and counted. */
#ifndef STAGGER_ALERTS_TEXT_H
#define STAGGER_ALERTS_TEXT_H

#include <jansson.h>

#include "alerts/digest.h"
#include "core/writer.h"

enum {
    STG_ALERT_SUBJECT_MAX = 300,
    STG_ALERT_TEXT_MAX = 16384,
};

/* A line: "[stagger HUB] payments: breaker open, and 2 more". */
void stg_alert_subject(const stg_digest *d, char text[STG_ALERT_SUBJECT_MAX]);

/* The lines below it, the last one ended as well. room: of text, 1000 to
 * STG_ALERT_TEXT_MAX. */
void stg_alert_text(const stg_digest *d, char *text, size_t room);

/* Words for an item: its headline without the target ("the breaker opened"),
 * what the hub does about it, and the command that shows more. Each "": nothing
 * to say. */
enum { STG_ALERT_WORDS_MAX = 512 };
void stg_alert_headline(const stg_digest_item *i,
                        char text[STG_ALERT_WORDS_MAX]);
void stg_alert_deed(const stg_digest_item *i, char text[STG_ALERT_WORDS_MAX]);
void stg_alert_command(const stg_digest_item *i,
                       char text[STG_ALERT_WORDS_MAX]);

/* "breaker": its word in the settings; and that of the phase, "began". */
const char *stg_alert_phase_name(stg_alert_phase phase);

/* Pieces of these: "1 message" or "2 messages"; and a time of the wall clock, by
 * strftime(). */
void stg_alert_write_count(stg_writer *w, uint64_t count, const char *one,
                           const char *many);
void stg_alert_write_time(stg_writer *w, uint64_t utc, const char *format);
#define STG_ALERT_AT "%Y-%m-%d %H:%M:%S UTC"

/* -- as what Slack and a webhook take -------------------------------------- */

/* Of the text of a message to Slack, which cuts what is longer than 4000
 * characters: whole items are left out before. */
enum { STG_SLACK_TEXT_MAX = 3900 };

/* JSON for an incoming webhook of Slack: {"text": "SUBJECT\n\nTEXT"}, with the
 * three characters escaped that mean something there, and without formatting.
 * To be freed. NULL: there is no memory. */
char *stg_payload_slack(const stg_digest *d);

/* JSON for an incoming webhook of Teams (Workflows): a message with an Adaptive
 * Card, whose lines are shown as they are. To be freed. NULL: no memory. */
enum { STG_TEAMS_TEXT_MAX = 7000 };
char *stg_payload_teams(const stg_digest *d);

/* JSON for a webhook, see docs/alerts.md. To be freed. NULL: no memory. */
char *stg_payload_webhook(const stg_digest *d);

/* -- as a mail (RFC 5322), for the mailer -------------------------------------
 *
 * The header, an empty line, and the text in UTF-8, whose encoding is libcurl's
 * work. Lines end in CR LF, and those of the header have 76 bytes at most.
 * libcurl encodes no header: a subject that is not ASCII is made of encoded
 * words here (RFC 2047). No text can add a line to the header: addresses have
 * been checked, and everything else is encoded, or cut at what is no visible
 * character. */

typedef struct stg_mail_head {
    const char *from; /* see stg_alert_options_check() */
    const char *const *to;
    size_t to_count;
    uint64_t id; /* random: of the Message-ID */
} stg_mail_head;

/* To be freed. NULL: there is no memory. */
char *stg_mail_print(const stg_digest *d, const stg_mail_head *head);

/* -- alerts as JSON ------------------------------------------------------ */

/* One alert of a digest as a JSON object, for the bodies of all
 * receivers that have its facts. */

/* As a webhook has it: docs/alerts.md. NULL: there is no memory. */
json_t *stg_payload_item(const stg_digest_item *i);

static inline void stg_payload_set(json_t *to, const char *name,
                                   const char *text)
{
    (void)json_object_set_new(to, name, json_string(text));
}

/* Takes the reference and prints it; to be freed. NULL: no memory. */
char *stg_payload_print(json_t *json);

#endif
