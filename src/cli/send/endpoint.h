/* endpoint.h - where `stagger send` publishes to, and with which headers.
 */
#ifndef STAGGER_CLI_SEND_ENDPOINT_H
#define STAGGER_CLI_SEND_ENDPOINT_H

#include "cli/send/send.h"
#include "http/client.h"

/* The hub's URL with the path of the API, and the token. Returns STG_INVALID or
 * STG_IO with words. */
stg_status stg_send_endpoint_open(stg_endpoint **endpoint, stg_client *c,
                                  const send_options *o, stg_error *err);

/* The headers of a message that is sent whole: "Name: value\r\n" each. The
 * caller frees them. False: no memory. */
bool stg_send_headers_make(char **headers, const send_options *o);

#endif
