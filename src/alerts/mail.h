/* mail.h - a digest as a mail (RFC 5322), ready for the mailer. Pure.
 *
 * The header, an empty line, and the text in UTF-8, whose encoding is libcurl's
 * work: see mailer.h. Lines end in CR LF, and those of the header have 76 bytes
 * at most. libcurl encodes no header: a subject that is not ASCII is made of
 * encoded words here (RFC 2047). No text can add a line to the header: addresses
 * have been checked, and everything else is encoded, or cut at what is no visible
 * character. */
#ifndef STAGGER_ALERTS_MAIL_H
#define STAGGER_ALERTS_MAIL_H

#include "alerts/digest.h"

typedef struct stg_mail_head {
    const char *from; /* see stg_alert_options_check() */
    const char *const *to;
    size_t to_count;
    uint64_t id; /* random: of the Message-ID */
} stg_mail_head;

/* To be freed. NULL: there is no memory. */
char *stg_mail_print(const stg_digest *d, const stg_mail_head *head);

#endif
