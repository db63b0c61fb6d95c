/* publisher.h - carries `stagger send` out: one message, or batch after
 * batch with several under way, until the input ends or something is refused.
 *
 * Blocks in a loop of its own. What failed is told on stderr as it fails. */
#ifndef STAGGER_CLI_SEND_PUBLISHER_H
#define STAGGER_CLI_SEND_PUBLISHER_H

#include <stagger/status.h>

#include "cli/send/input.h"
#include "cli/send/post.h"
#include "cli/send/send.h"

typedef struct send_result {
    uint64_t messages;                            /* accepted */
    char first[SEND_ID_TEXT], last[SEND_ID_TEXT]; /* of the first and the last
                                                     line of them */
    bool has_failed;
    int refused;    /* the status that refused it for good; 0: none, and
                       nobody knows what the hub has */
    int stopped_by; /* a signal, or 0 */
} send_result;

/* Publishes all of the input, which is open. Returns STG_INVALID or STG_IO, and
 * has sent nothing, for a URL, a header or a token file that cannot be used. */
stg_status stg_send_publish(const send_options *o, send_input *in,
                            send_result *result, stg_error *err);

#endif
