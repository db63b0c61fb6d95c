/* signing.h - signatures of alerts that go to webhooks: as those of targets
 * (http/sign.h). */
#ifndef STAGGER_ALERTS_SIGNING_H
#define STAGGER_ALERTS_SIGNING_H

#include "alerts/options.h"

/* Checks scheme and secrets. Returns STG_INVALID with the setting and words that
 * repeat no secret. */
stg_status stg_alert_signing_check(const stg_alert_receiver_options *o,
                                   const char **field, stg_error *err);

/* NULL: it does not sign. o has been checked. */
stg_status stg_alert_signing_open(const stg_alert_receiver_options *o,
                                  stg_signer **signer, stg_error *err);

/* The headers, and behind them those of the signature, by the time of now: of a POST
 * of a body of that type to url. To be freed; NULL: no memory. */
char *stg_alert_signing_put(const stg_signer *s, const char *headers,
                            const char *url, const char *type, const char *id,
                            const char *body);

#endif
