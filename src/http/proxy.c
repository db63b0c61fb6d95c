/* A proxy's URL with its credentials, the request that opens a tunnel, and what its
 * answer means for the attempt. No error repeats what may be a password. */
#include "http/proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <stagger/stagger.h>

#include "base/digits.h"
#include "base/refuse.h"
#include "base/text.h"

enum { CREDENTIALS_MAX = 1024, SCHEME = 7 };

static stg_status refuse(stg_error *err, const char *words)
{
    return stg_hub_refuse(err, STG_INVALID, "%s", words);
}

/* -- user and password ----------------------------------------------------- */

/* Returns the size; -1: a `%` without two digits, or a byte that no header has. */
static int decode(char *to, const char *text, size_t size)
{
    int made = 0;

    for (size_t i = 0; i < size; i++) {
        int high = 0, low = (unsigned char)text[i];

        if (text[i] == '%') {
            high = i + 2 < size ? stg_hex_digit(text[i + 1]) : -1;
            low = i + 2 < size ? stg_hex_digit(text[i + 2]) : -1;
            if (high < 0 || low < 0)
                return -1;
            i += 2;
        }
        to[made] = (char)(high * 16 + low);
        if ((unsigned char)to[made] < ' ' || to[made] == 0x7f)
            return -1;
        made++;
    }
    return made;
}

/* A user without a password, and characters that a URL has elsewhere, are rather a
 * slip of the writer than what was meant. */
static stg_status read_credentials(stg_proxy *p, const char *text, size_t size,
                                   stg_error *err)
{
    char plain[CREDENTIALS_MAX];
    int count;

    for (size_t i = 0; i < size; i++)
        if (strchr("/?#\\", text[i]) != NULL)
            return refuse(err,
                          "a '/', '?', '#' or '\\' in user and password, "
                          "or an '@' behind the host (write them as %XX)");
    if (size > CREDENTIALS_MAX)
        return refuse(err, "user and password are longer than 1024 bytes");
    if (memchr(text, ':', size) == NULL)
        return refuse(err,
                      "a user without a password; expected user:password@");
    count = decode(plain, text, size);
    if (count < 0)
        return refuse(err,
                      "a `%` of user and password without two digits, or a "
                      "control byte (write a `%` as %25)");
    p->basic = malloc(stg_base64_size((size_t)count) + 1);
    if (p->basic == NULL)
        return stg_hub_refuse(err, STG_IO, "out of memory");
    *stg_base64_put(p->basic, (stg_span){plain, (size_t)count}) = '\0';
    return STG_OK;
}

/* -- the URL --------------------------------------------------------------- */

static bool is_visible(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

/* The port is said: the proxies that are there have no usual one. */
static stg_status check_url(const stg_url *url, stg_error *err)
{
    const char *end = url->host.at + url->host.size + url->is_v6;

    if (*end != ':')
        return refuse(err, "it has no port");
    if (url->path.size > 1 || (url->path.size == 1 && *url->path.at != '/'))
        return refuse(err, "a path, or a query: a proxy has none");
    return STG_OK;
}

/* All up to the last `@` is user and password, whatever is in it, so that no part
 * of it is taken for a host, and shown. */
stg_status stg_proxy_parse(stg_proxy *p, const char *text, stg_error *err)
{
    const char *at = strrchr(text, '@');
    char rest[STG_URL_MAX + 1];
    stg_status status = STG_OK;
    size_t skipped;

    *p = (stg_proxy){.basic = NULL};
    if (strlen(text) > STG_URL_MAX)
        return refuse(err, "it is longer than 2048 bytes");
    if (!is_visible(text))
        return refuse(err,
                      "it has a blank, a control byte or one that is not "
                      "ASCII (write them as %XX)");
    if (strncasecmp(text, "http://", SCHEME) != 0)
        return refuse(err, "it does not begin with http://");
    skipped = at == NULL ? 0 : (size_t)(at + 1 - text) - SCHEME;
    snprintf(rest, sizeof rest, "http://%s", text + SCHEME + skipped);
    if (stg_url_parse(&p->url, rest, err) != STG_OK ||
        check_url(&p->url, err) != STG_OK)
        return STG_INVALID;
    p->url.host.at = text + skipped + (p->url.host.at - rest);
    p->url.path.at = text + skipped + (p->url.path.at - rest);
    if (at != NULL)
        status = read_credentials(p, text + SCHEME, skipped - 1, err);
    return status;
}

void stg_proxy_free(stg_proxy *p)
{
    free(p->basic);
    p->basic = NULL;
}

/* -- CONNECT --------------------------------------------------------------- */

int stg_proxy_print(const stg_proxy *p, const char *peer, char *text,
                    size_t size)
{
    bool is_basic = p->basic != NULL;

    return snprintf(text, size,
                    "CONNECT %s HTTP/1.1\r\nHost: %s\r\n%s%s%s"
                    "User-Agent: stagger/" STG_VERSION "\r\n\r\n",
                    peer, peer, is_basic ? "Proxy-Authorization: Basic " : "",
                    is_basic ? p->basic : "", is_basic ? "\r\n" : "");
}

/* Tells whether a proxy has connected, by the status of its answer; if not,
 * sets *outcome. Where proxies cannot connect they answer: Squid and Envoy 503,
 * Squid 504 after a timeout, tinyproxy 500, Apache httpd 502. */
bool stg_proxy_connects(int status, stg_outcome *outcome)
{
    stg_fault fault = STG_FAULT_PROTOCOL;

    if (status / 100 == 2)
        return true;
    switch (status) {
    case 401: // of tinyproxy, where it means 407
    case 407:
    case 429:
        fault = STG_FAULT_PROXY;
        break;
    case 500:
    case 502:
    case 503:
    case 504:
        fault = STG_FAULT_UNREACHABLE;
        break;
    case 403:
        fault = STG_FAULT_EGRESS;
        break;
    default:
        break;
    }
    *outcome = stg_failed(fault);
    outcome->permanent = fault == STG_FAULT_EGRESS; // whatever the policy says
    return false;
}

/* The same statuses as above, for people: "the proxy ...". */
const char *stg_proxy_words(int status)
{
    switch (status) {
    case 401:
    case 407:
        return "asks for authorisation";
    case 429:
        return "asks for fewer connections";
    case 403:
        return "forbids the connection";
    case 500:
    case 502:
    case 503:
        return "cannot connect";
    case 504:
        return "could not connect in time";
    default:
        return "does not connect";
    }
}
