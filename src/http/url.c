/* Reads URLs of targets strictly, and masks what in a URL may be secret.
 *
 * No error repeats a user or a password. stg_url_mask() takes any text, also
 * what is no URL. */
#include "http/url.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <uv.h>

#include "core/writer.h"

enum { HTTP_PORT = 80, HTTPS_PORT = 443, HOST_MAX = 253 };

/* "url: WORDS: TEXT". Never with what may be a password. */
static stg_status refuse(stg_error *err, const char *words, stg_span found)
{
    enum { SHOWN_MAX = 200 };
    stg_writer w = stg_writer_on_error(err);

    stg_write_text(&w, "url: ");
    stg_write_text(&w, words);
    if (found.size > 0) {
        stg_write_text(&w, ": ");
        stg_write_part(&w, found.at,
                       found.size < SHOWN_MAX ? found.size : SHOWN_MAX);
    }
    return STG_INVALID;
}

static stg_span span_of(const char *from, const char *to)
{
    return (stg_span){from, (size_t)(to - from)};
}

static bool is_visible(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text <= ' ' || *text > '~')
            return false;
    return true;
}

/* Takes the scheme; NULL if it is another. */
static const char *after_scheme(stg_url *url, const char *text)
{
    url->is_tls = strncasecmp(text, "https://", 8) == 0;
    if (url->is_tls)
        return text + 8;
    return strncasecmp(text, "http://", 7) == 0 ? text + 7 : NULL;
}

static bool is_host_name(stg_span host)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyz"
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";

    for (size_t i = 0; i < host.size; i++)
        if (strchr(letters, host.at[i]) == NULL)
            return false;
    return host.at[0] != '.' && host.at[0] != '-';
}

static bool is_address(stg_span host, int family)
{
    char text[64];
    unsigned char address[16];

    if (host.size >= sizeof text || memchr(host.at, '%', host.size) != NULL)
        return false;
    memcpy(text, host.at, host.size);
    text[host.size] = '\0';
    return uv_inet_pton(family, text, address) == 0;
}

static bool read_port(stg_span digits, uint16_t *port)
{
    uint32_t number = 0;

    if (digits.size == 0 || digits.size > 5)
        return false;
    for (size_t i = 0; i < digits.size; i++) {
        if (digits.at[i] < '0' || digits.at[i] > '9')
            return false;
        number = number * 10 + (uint32_t)(digits.at[i] - '0');
    }
    *port = (uint16_t)number;
    return number >= 1 && number <= UINT16_MAX;
}

/* Reads "host", "host:port", "[v6]" or "[v6]:port". */
static stg_status read_authority(stg_url *url, stg_span text, stg_error *err)
{
    const char *end = text.at + text.size, *colon;

    if (memchr(text.at, '@', text.size) != NULL)
        return refuse(err,
                      "no user and password here, set a header of the "
                      "target",
                      (stg_span){NULL, 0});
    url->is_v6 = text.size > 0 && text.at[0] == '[';
    if (url->is_v6) {
        const char *bracket = memchr(text.at, ']', text.size);

        if (bracket == NULL)
            return refuse(err, "no ']' after the address", text);
        url->host = span_of(text.at + 1, bracket);
        colon = bracket + 1;
        if (colon != end && *colon != ':')
            return refuse(err, "expected ':' and a port after ']'", text);
    } else {
        colon = memchr(text.at, ':', text.size);
        if (colon == NULL)
            colon = end;
        url->host = span_of(text.at, colon);
    }
    url->port = url->is_tls ? HTTPS_PORT : HTTP_PORT;
    if (colon != end && !read_port(span_of(colon + 1, end), &url->port))
        // Not shown: of "user:pass/word@host" it is a part of the password.
        return refuse(err, "expected a port of 1 to 65535 after ':'",
                      (stg_span){NULL, 0});
    return STG_OK;
}

static stg_status check_host(stg_url *url, stg_error *err)
{
    if (url->host.size == 0)
        return refuse(err, "it has no host", (stg_span){NULL, 0});
    if (url->host.size > HOST_MAX)
        return refuse(err, "the host is longer than 253 bytes", url->host);
    if (url->is_v6) {
        url->is_address = is_address(url->host, AF_INET6);
        return url->is_address ? STG_OK
                               : refuse(err, "no IPv6 address", url->host);
    }
    url->is_address = is_address(url->host, AF_INET);
    if (!url->is_address && !is_host_name(url->host))
        return refuse(err,
                      "a host has letters, digits, '-', '_' and '.' (write "
                      "others as xn--)",
                      url->host);
    return STG_OK;
}

stg_status stg_url_parse(stg_url *url, const char *text, stg_error *err)
{
    stg_url found = {0};
    stg_span none = {NULL, 0};
    const char *at, *end;

    if (text == NULL || *text == '\0')
        return refuse(err, "it is empty", none);
    if (strlen(text) > STG_URL_MAX)
        return refuse(err, "it is longer than 2048 bytes", none);
    if (!is_visible(text))
        return refuse(err,
                      "it has a blank, a control byte or one that is not "
                      "ASCII (write them as %XX)",
                      none);
    at = after_scheme(&found, text);
    if (at == NULL)
        return refuse(err, "it does not begin with http:// or https://", none);
    // Browsers end a host at a backslash (WHATWG URL), others do not: it ends
    // one here, and is refused below.
    end = at + strcspn(at, "/?#\\");
    if (read_authority(&found, span_of(at, end), err) != STG_OK ||
        check_host(&found, err) != STG_OK)
        return STG_INVALID;
    if (*end == '\\')
        return refuse(err, "a '\\' is no '/'", none);
    if (strchr(end, '#') != NULL)
        return refuse(err, "it has a fragment ('#'), which is never sent",
                      none);
    found.path = span_of(end, end + strlen(end));
    *url = found;
    return STG_OK;
}

bool stg_url_is_address(stg_span host)
{
    return is_address(host, AF_INET) || is_address(host, AF_INET6);
}

int stg_url_print_peer(const stg_url *url, bool with_port, char *text,
                       size_t size)
{
    char port[8] = "";

    if (with_port)
        (void)snprintf(port, sizeof port, ":%u", (unsigned)url->port);
    return snprintf(text, size, url->is_v6 ? "[%.*s]%s" : "%.*s%s",
                    (int)url->host.size, url->host.at, port);
}

bool stg_url_read_address(const stg_url *url, struct sockaddr_storage *to)
{
    char host[64];

    if (!url->is_address || url->host.size >= sizeof host)
        return false;
    memcpy(host, url->host.at, url->host.size);
    host[url->host.size] = '\0';
    if (url->is_v6)
        return uv_ip6_addr(host, url->port, (struct sockaddr_in6 *)to) == 0;
    return uv_ip4_addr(host, url->port, (struct sockaddr_in *)to) == 0;
}

static const char stars[] = "***";

static char *put(char *to, const char *from, size_t size)
{
    memcpy(to, from, size);
    return to + size;
}

static char *put_stars(char *to)
{
    return put(to, stars, sizeof stars - 1);
}

/* Who is at a host: "name:password@" in front of it. The last '@' counts: a
 * password may have others in it. */
static char *put_before_query(char *to, const char *url, size_t size)
{
    const char *host = strstr(url, "://"), *end = url + size, *at = NULL;

    if (host == NULL || host + 3 > end)
        return put(to, url, size);
    host += 3;
    for (const char *c = host; c < end && *c != '/'; c++)
        if (*c == '@')
            at = c;
    if (at == NULL)
        return put(to, url, size);
    to = put_stars(put(to, url, (size_t)(host - url)));
    return put(to, at, (size_t)(end - at));
}

/* A part of the query: "name=value". */
static char *put_part(char *to, const char *part, size_t size)
{
    const char *value = memchr(part, '=', size);

    if (size == 0)
        return to;
    if (value != NULL)
        to = put(to, part, (size_t)(value + 1 - part));
    return put_stars(to);
}

char *stg_url_mask(const char *url)
{
    size_t size = strcspn(url, "#"), head = strcspn(url, "?#");
    // A part of one character, or of none, grows by its stars.
    char *masked = malloc(4 * size + sizeof stars), *to = masked;

    if (masked == NULL)
        return NULL;
    to = put_before_query(to, url, head);
    for (size_t at = head; at < size;) {
        size_t length = strcspn(url + at + 1, "&;#");

        *to++ = url[at++];
        to = put_part(to, url + at, length);
        at += length;
    }
    *to = '\0';
    return masked;
}
