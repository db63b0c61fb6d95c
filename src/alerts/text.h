/* text.h - a digest in words, for people.
 *
 * Pure. UTF-8 without control bytes but ends of lines in the text; what has no
 * room is left out, whole, and counted. */
#ifndef STAGGER_ALERTS_TEXT_H
#define STAGGER_ALERTS_TEXT_H

#include "alerts/digest.h"

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

#endif
