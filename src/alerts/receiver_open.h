/* receiver_open.h - what a receiver needs before it can send: its secrets, and the
 * endpoint of its URL with its headers. */
#ifndef STAGGER_ALERTS_RECEIVER_OPEN_H
#define STAGGER_ALERTS_RECEIVER_OPEN_H

#include "alerts/receiver.h"

/* Copies of what options point to. Zeroed, there are none. */
typedef struct stg_receiver_kept {
    char **texts;
    size_t count;
    stg_alert_header *headers;
    const char **to;
} stg_receiver_kept;

/* From here on o has texts of its own, but for secrets and their files, and for
 * what says which alerts it wants. False: no memory. To be freed in any case. */
bool stg_receiver_keep(stg_receiver_kept *k, stg_alert_receiver_options *o);
void stg_receiver_kept_free(stg_receiver_kept *k);

/* "alerts: receiver NAME: WORDS". Returns status. */
stg_status stg_receiver_refuse(stg_error *err, stg_status status,
                               const char *name, const char *words);

/* To be given to stg_secret_free(). */
stg_status stg_receiver_read_secret(const char *name, const char *path,
                                    char **secret, stg_error *err);

/* Its endpoint; reads what it needs out of files, but the key. event: what is
 * sent, where its URL depends on that; NULL: an alert that begins. Returns
 * STG_INVALID or STG_IO with words that name the receiver, and no secret. */
stg_status stg_receiver_open(const stg_alert_world *w,
                             const stg_alert_receiver_options *o,
                             const char *key, const stg_digest *event,
                             stg_endpoint **endpoint, stg_error *err);

/* The text of a digest as its type sends it, to be freed by stg_secret_free(). id: of
 * a mail. NULL: no memory. */
char *stg_receiver_print(const stg_alert_receiver_options *o, const char *key,
                         const stg_digest *d, uint64_t id);

#endif
