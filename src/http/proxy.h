/* proxy.h - a forward proxy: its URL, what it is asked, and what its answers mean.
 *
 * Pure: no socket, no clock. Each request goes through it by CONNECT, that of an
 * http target, too, so that there is one way and one framing: behind a 2xx the
 * connection is the target's. The proxy resolves the target's name. Its answer is
 * read as any other (answer.h): the head decides, and no body is read.
 *
 * Source: RFC 9110, sections 9.3.6 (CONNECT), 15.5.8 (407); RFC 7617 (Basic). */
#ifndef STAGGER_HTTP_PROXY_H
#define STAGGER_HTTP_PROXY_H

#include <stagger/outcome.h>
#include <stagger/status.h>

#include "http/url.h"

typedef struct stg_proxy {
    stg_url url; /* its address and port */
    char *basic; /* what Proxy-Authorization says; NULL: there is none */
} stg_proxy;

/* Reads http://[user:password@]host:port; user and password may have %XX. The
 * spans of url point into text. Returns STG_INVALID with words that have no
 * password, or STG_IO when there is no memory. */
stg_status stg_proxy_parse(stg_proxy *p, const char *text, stg_error *err);
void stg_proxy_free(stg_proxy *p);

/* The request for a connection to `peer`, "host:port". Returns its size as
 * snprintf() does. */
int stg_proxy_print(const stg_proxy *p, const char *peer, char *text,
                    size_t size);

/* Whether the status is a connection to the target. If not, *outcome is whose
 * fault that is: of the proxy, which holds the deliveries (401, 407, 429); of the
 * target, which the proxy cannot reach (500, 502, 503, 504) or must not (403);
 * or of nobody that is known (the others: protocol). */
bool stg_proxy_connects(int status, stg_outcome *outcome);

/* What the status says, for people: "asks for authorisation (407)". */
const char *stg_proxy_words(int status);

#endif
