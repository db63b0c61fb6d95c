#include "http/proxy.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/harness.h"

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* "host port basic" */
static const char *parts_of(const char *text)
{
    static char parts[4096];
    stg_proxy p;
    stg_error err;

    if (stg_proxy_parse(&p, text, &err) != STG_OK) {
        (void)snprintf(parts, sizeof parts, "refused: %s", err.text);
        return parts;
    }
    (void)snprintf(parts, sizeof parts, "%.*s %u %s", (int)p.url.host.size,
                   p.url.host.at, (unsigned)p.url.port,
                   p.basic != NULL ? p.basic : "-");
    stg_proxy_free(&p);
    return parts;
}

TEST(proxy, has_a_host_a_port_and_perhaps_a_user_and_a_password)
{
    CHECK_STR(parts_of("http://proxy:3128"), "proxy 3128 -");
    CHECK_STR(parts_of("HTTP://10.0.0.1:80/"), "10.0.0.1 80 -");
    CHECK_STR(parts_of("http://[::1]:8080"), "::1 8080 -");
    // RFC 7617, section 2.
    CHECK_STR(parts_of("http://Aladdin:open%20sesame@h:1"),
              "h 1 QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    CHECK_STR(parts_of("http://:@h:1"), "h 1 Og==");
    CHECK_STR(parts_of("http://a:b:c@h:1"), "h 1 YTpiOmM=");
    // Text before the last `@` is not a host, whatever it looks like.
    CHECK_STR(parts_of("http://a:p@x:2@h:1"), "h 1 YTpwQHg6Mg==");
    CHECK_STR(parts_of("http://a:%c3%BC@h:1"), "h 1 YTrDvA==");
}

TEST(proxy, is_refused_with_words_that_have_no_password)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "http://"},
        {"proxy:3128", "http://"},
        {"https://proxy:3128", "http://"},
        {"socks5://proxy:3128", "http://"},
        {"http://proxy", "no port"},
        {"http://[::1]", "no port"},
        {"http://proxy:", "port of 1 to 65535"},
        {"http://proxy:0", "port of 1 to 65535"},
        {"http://proxy:3128/x", "a path"},
        {"http://proxy:3128?x", "a path"},
        {"http://proxy:3128#x", "fragment"},
        {"http://:3128", "no host"},
        {"http://a:secret@", "no host"},
        {"http://secret@h:1", "user:password@"},
        {"http://a:secret%@h:1", "two digits"},
        {"http://a:secret%4@h:1", "two digits"},
        {"http://a:secret%0g@h:1", "two digits"},
        {"http://a:secret%0d%0aX:y@h:1", "control byte"},
        {"http://a:secret%00@h:1", "control byte"},
        {"http://a:se cret@h:1", "a blank"},
        {"http://a:secret@h", "no port"},
        {"http://a:secret@h:x", "port of 1 to 65535"},
        {"http://a:secret@h:1/x@y", "no port"},
        {"http://a:secret@h:1/x@y:2", "as %XX"},
        {"http://a:sec/ret@h:1", "as %XX"},
        {"http://a:sec?ret@h:1", "as %XX"},
        {"http://a:sec#ret@h:1", "as %XX"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *parts = parts_of(cases[i].text);

        CHECK_FROM(i, begins(parts, "refused: "));
        CHECK_FROM(i, strstr(parts, cases[i].part) != NULL);
        CHECK_FROM(i, strstr(parts, "secret") == NULL);
    }
}

TEST(proxy, reads_no_more_than_a_url_has)
{
    char text[4096] = "http://a:";

    memset(text + 9, 'x', 1200);
    snprintf(text + 9 + 1200, 64, "@h:1");
    CHECK(strstr(parts_of(text), "longer than 1024") != NULL);
    memset(text + 9, 'x', 3000);
    snprintf(text + 9 + 3000, 64, "@h:1");
    CHECK(strstr(parts_of(text), "longer than 2048") != NULL);
}

TEST(proxy, is_asked_by_connect)
{
    char text[512], exact[8];
    stg_proxy p;
    int size;

    CHECK(stg_proxy_parse(&p, "http://u:p@h:1", NULL) == STG_OK);
    size = stg_proxy_print(&p, "hooks.example:443", text, sizeof text);
    CHECK_INT(size, (int)strlen(text));
    CHECK_INT(stg_proxy_print(&p, "hooks.example:443", exact, sizeof exact),
              size);
    CHECK(begins(text,
                 "CONNECT hooks.example:443 HTTP/1.1\r\n"
                 "Host: hooks.example:443\r\n"
                 "Proxy-Authorization: Basic dTpw\r\n"
                 "User-Agent: stagger/"));
    CHECK_STR(text + size - 4, "\r\n\r\n");
    stg_proxy_free(&p);
    CHECK(stg_proxy_parse(&p, "http://h:1", NULL) == STG_OK);
    (void)stg_proxy_print(&p, "[::1]:80", text, sizeof text);
    CHECK(begins(text, "CONNECT [::1]:80 HTTP/1.1\r\nHost: [::1]:80\r\nUser"));
    stg_proxy_free(&p);
}

/* docs/delivery.md has the same table. */
TEST(proxy, says_by_its_status_whose_fault_it_is)
{
    static const struct {
        int status;
        stg_fault fault;
    } cases[] = {
        {407, STG_FAULT_PROXY},       {429, STG_FAULT_PROXY},
        {500, STG_FAULT_UNREACHABLE}, {502, STG_FAULT_UNREACHABLE},
        {503, STG_FAULT_UNREACHABLE}, {504, STG_FAULT_UNREACHABLE},
        {403, STG_FAULT_EGRESS},      {301, STG_FAULT_PROTOCOL},
        {400, STG_FAULT_PROTOCOL},    {401, STG_FAULT_PROXY},
        {404, STG_FAULT_PROTOCOL},    {405, STG_FAULT_PROTOCOL},
        {501, STG_FAULT_PROTOCOL},    {599, STG_FAULT_PROTOCOL},
    };
    stg_outcome o;

    for (int status = 200; status < 300; status++)
        CHECK(stg_proxy_connects(status, &o));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_FROM(i, !stg_proxy_connects(cases[i].status, &o));
        CHECK_FROM(i, o.fault == cases[i].fault);
        CHECK_FROM(i, o.permanent == (o.fault == STG_FAULT_EGRESS));
        CHECK_FROM(i, *stg_proxy_words(cases[i].status) != '\0');
    }
}
