/* payload.h - a digest as what Slack and a webhook take. Pure. */
#ifndef STAGGER_ALERTS_PAYLOAD_H
#define STAGGER_ALERTS_PAYLOAD_H

#include "alerts/digest.h"

/* Of the text of a message to Slack, which cuts what is longer than 4000
 * characters: whole items are left out before. */
enum { STG_SLACK_TEXT_MAX = 3900 };

/* JSON for an incoming webhook of Slack: {"text": "SUBJECT\n\nTEXT"}, with the
 * three characters escaped that mean something there, and without formatting.
 * To be freed. NULL: there is no memory. */
char *stg_payload_slack(const stg_digest *d);

/* JSON for a webhook, see docs/alerts.md. To be freed. NULL: no memory. */
char *stg_payload_webhook(const stg_digest *d);

#endif
