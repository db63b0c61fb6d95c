#include "http/url.h"

#include <stdio.h>
#include <stdlib.h>

#include <uv.h>

#include "tests/harness.h"

/* "tls host port path", and what kind of host it is. */
static const char *parts_of(const char *text)
{
    static char parts[4096];
    stg_url u;
    stg_error err;

    if (stg_url_parse(&u, text, &err) != STG_OK) {
        (void)snprintf(parts, sizeof parts, "refused: %s", err.text);
        return parts;
    }
    (void)snprintf(parts, sizeof parts, "%s %.*s%s %u %.*s",
                   u.is_tls ? "https" : "http", (int)u.host.size, u.host.at,
                   u.is_v6        ? " (v6)"
                   : u.is_address ? " (v4)"
                                  : "",
                   (unsigned)u.port, (int)u.path.size, u.path.at);
    return parts;
}

TEST(url, has_a_scheme_host_port_and_path)
{
    CHECK_STR(parts_of("http://a"), "http a 80 ");
    CHECK_STR(parts_of("https://a"), "https a 443 ");
    CHECK_STR(parts_of("HTTP://A.b-c_d.e./x"), "http A.b-c_d.e. 80 /x");
    CHECK_STR(parts_of("http://a:1/"), "http a 1 /");
    CHECK_STR(parts_of("https://a:65535/b/c?d=e&f"),
              "https a 65535 /b/c?d=e&f");
    CHECK_STR(parts_of("http://a?q=/@:"), "http a 80 ?q=/@:");
    CHECK_STR(parts_of("http://a/@b:c"), "http a 80 /@b:c");
    CHECK_STR(parts_of("http://127.0.0.1:81/"), "http 127.0.0.1 (v4) 81 /");
    CHECK_STR(parts_of("http://[::1]"), "http ::1 (v6) 80 ");
    CHECK_STR(parts_of("https://[fe80::1]:8/x"), "https fe80::1 (v6) 8 /x");
    CHECK_STR(parts_of("http://[::ffff:1.2.3.4]/"),
              "http ::ffff:1.2.3.4 (v6) 80 /");
}

TEST(url, is_refused_with_words)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "empty"},
        {"a", "http:// or https://"},
        {"//a/", "http:// or https://"},
        {"http:/a", "http:// or https://"},
        {"ftp://a/", "http:// or https://"},
        {"httpss://a/", "http:// or https://"},
        {"http://", "no host"},
        {"http:///x", "no host"},
        {"http://:80/", "no host"},
        {"http://?x", "no host"},
        {"http://[]/", "no host"},
        {"http://u@a/", "user and password"},
        {"http://u:p@a/", "user and password"},
        {"http://a/#b", "fragment"},
        {"http://a#b", "fragment"},
        {"http://a/?q#", "fragment"},
        {"http://a b/", "blank"},
        {"http://a/b c", "blank"},
        {" http://a/", "blank"},
        {"http://a/\t", "blank"},
        {"http://a/\r\nX: y", "control"},
        {"http://a/\x7f", "control"},
        {"http://\xc3\xa4.de/", "ASCII"},
        {"http://a:/", "port"},
        {"http://a:0/", "port"},
        {"http://a:65536/", "port"},
        {"http://a:99999999999/", "port"},
        {"http://a:+1/", "port"},
        {"http://a:1x/", "port"},
        {"http://a:1:2/", "port"},
        {"http://[::1/", "']'"},
        {"http://[::1]x/", "after ']'"},
        {"http://[::1]:/", "port"},
        {"http://[1.2.3.4]/", "IPv6"},
        {"http://[fe80::1%25eth0]/", "IPv6"},
        {"http://[::g]/", "IPv6"},
        {"http://::1/", "port"},
        {"http://-a/", "a host has"},
        {"http://.a/", "a host has"},
        {"http://a%20b/", "a host has"},
        {"http://a!/", "a host has"},
        {"http://!a/", "a host has"},
        {"http://a\\b/", "'\\'"},
        {"http://a\\@b/", "'\\'"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *parts = parts_of(cases[i].text);

        if (strncmp(parts, "refused: url: ", 14) != 0 ||
            strstr(parts, cases[i].part) == NULL)
            harness_fail(__FILE__, __LINE__, "%s: %s", cases[i].text, parts);
    }
    CHECK_INT(stg_url_parse(&(stg_url){0}, NULL, NULL), STG_INVALID);
}

TEST(url, is_2048_bytes_at_most_and_its_host_253)
{
    char text[2100];

    memset(text, 'a', sizeof text);
    memcpy(text, "http://h/", 9);
    text[STG_URL_MAX] = '\0';
    CHECK(strncmp(parts_of(text), "http h 80 /a", 12) == 0);
    text[STG_URL_MAX] = 'a';
    text[STG_URL_MAX + 1] = '\0';
    CHECK(strstr(parts_of(text), "longer than 2048") != NULL);
    memset(text, 'a', sizeof text);
    memcpy(text, "http://", 7);
    text[7 + 253] = '\0';
    CHECK(strncmp(parts_of(text), "http aaa", 8) == 0);
    text[7 + 253] = 'a';
    text[7 + 254] = '\0';
    CHECK(strstr(parts_of(text), "longer than 253") != NULL);
}

TEST(url, never_says_what_may_be_a_password)
{
    static const char *const texts[] = {
        "http://user:sesame@host/",     "http://user:sesame/x@host/",
        "http://user:sesame?x@host/",   "http://user:sesame#x@host/",
        "http://user:sesame\\x@host/",  "http://user:sesame x@host/",
        "ftp://user:sesame@host/",      "http://user:sesame@[::1/",
        "https://sesame@h:sesame@host", "http://user:80sesame@host:99999/",
    };

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        CHECK_FROM(i, strncmp(parts_of(texts[i]), "refused: ", 9) == 0);
        CHECK_FROM(i, strstr(parts_of(texts[i]), "sesame") == NULL);
    }
}

TEST(url, knows_an_address)
{
    static const char *const addresses[] = {"1.2.3.4", "::1", "fe80::1:2"};
    static const char *const others[] = {
        "", "a", "1.2.3", "1.2.3.4.5", "::g", "256.1.1.1", "[::1]"};

    for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++)
        CHECK_FROM(i, stg_url_is_address(
                          (stg_span){addresses[i], strlen(addresses[i])}));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK_FROM(
            i, !stg_url_is_address((stg_span){others[i], strlen(others[i])}));
}

TEST(url, reads_an_address_with_its_port)
{
    static const struct {
        const char *url, *address;
        int family, port;
    } rows[] = {
        {"http://192.0.2.1:81/", "192.0.2.1", AF_INET, 81},
        {"https://192.0.2.1/", "192.0.2.1", AF_INET, 443},
        {"http://[2001:db8::1]:82/x", "2001:db8::1", AF_INET6, 82},
        {"http://localhost/", NULL, 0, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct sockaddr_storage to = {.ss_family = AF_UNSPEC};
        char text[INET6_ADDRSTRLEN] = "";
        const struct sockaddr_in *v4 = (const void *)&to;
        const struct sockaddr_in6 *v6 = (const void *)&to;
        stg_url url;

        CHECK_INT(stg_url_parse(&url, rows[i].url, NULL), STG_OK);
        CHECK_FROM(i, stg_url_read_address(&url, &to) ==
                          (rows[i].address != NULL));
        if (rows[i].address == NULL)
            continue;
        CHECK_INT(to.ss_family, rows[i].family);
        CHECK_INT(uv_ip_name((const struct sockaddr *)&to, text, sizeof text),
                  0);
        CHECK_STR(text, rows[i].address);
        CHECK_INT(ntohs(to.ss_family == AF_INET ? v4->sin_port : v6->sin6_port),
                  rows[i].port);
    }
}
