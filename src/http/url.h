/* url.h - where a target is: http(s)://host[:port][/path][?query].
 *
 * Strict: a text that two programs could read in two ways is refused. The
 * spans point into the text. */
#ifndef STAGGER_HTTP_URL_H
#define STAGGER_HTTP_URL_H

#include <stdbool.h>
#include <stdint.h>

#include <stagger/status.h>

#include "base/span.h"

enum { STG_URL_MAX = 2048 };

typedef struct stg_url {
    bool is_tls;
    bool is_v6;      /* host is an IPv6 address, here without its brackets */
    bool is_address; /* host is an IP address, v6 or v4 */
    uint16_t port;   /* 1 to 65535 */
    stg_span host;
    stg_span path; /* as written: empty, or from '/' or '?' on */
} stg_url;

/* Reads text. Returns STG_INVALID with words for what is no URL of HTTP, for
 * user and password, a fragment, bytes that a URL does not have (blanks,
 * control bytes, what is not ASCII), no host, a port that is none, and for more
 * than STG_URL_MAX bytes. What the words repeat has no password. */
stg_status stg_url_parse(stg_url *url, const char *text, stg_error *err);

/* Whether host is an IPv4 or IPv6 address, without brackets. */
bool stg_url_is_address(stg_span host);

/* The address and port to connect to. Returns false where host is a name. */
struct sockaddr_storage;
bool stg_url_read_address(const stg_url *url, struct sockaddr_storage *to);

/* -- masks ------------------------------------------------------------------- */

/* What may be shown of a target's URL, and stored: values of its
 * query may be secrets. */

/* "10.0.0.1:3128", "[::1]:80", or that without the port. Returns the size that it
 * needs, as snprintf() does. */
int stg_url_print_peer(const stg_url *url, bool with_port, char *text,
                       size_t size);

/* "https://a/b?token=x&flag" as "https://a/b?token=***&***": what follows a name
 * and =, a part of the query that has no =, a password, and a fragment are not
 * there. Anything may be given, also what is no URL. Of malloc(); NULL: no
 * memory. */
char *stg_url_mask(const char *url);

#endif
