/* Addresses and networks. That the client asks: test_client.c. */
#include <stdio.h>
#include <stdlib.h>

#include <netinet/in.h>
#include <uv.h>

#include "http/egress.h"
#include "tests/harness.h"

static const stg_egress by_itself = {.allow = NULL};

static bool judge(const stg_egress *e, const char *address,
                  char why[STG_EGRESS_WHY_MAX])
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } to;

    memset(&to, 0, sizeof to);
    if (uv_ip4_addr(address, 443, &to.v4) != 0 &&
        uv_ip6_addr(address, 443, &to.v6) != 0)
        harness_fail(__FILE__, __LINE__, "%s is no address", address);
    return stg_egress_allows(e, &to.any, why);
}

static stg_cidr cidr(const char *text)
{
    stg_cidr c = {.bits = 0};
    stg_error err;

    if (stg_cidr_parse(&c, text, &err) != STG_OK)
        harness_fail(__FILE__, __LINE__, "%s", err.text);
    return c;
}

static void check_allowed(const stg_egress *e, const char *const *addresses,
                          size_t count)
{
    char why[STG_EGRESS_WHY_MAX];

    for (size_t i = 0; i < count; i++)
        if (!judge(e, addresses[i], why))
            harness_fail(__FILE__, __LINE__, "%s: %s", addresses[i], why);
}

static void check_refused(const stg_egress *e, const char *address,
                          const char *expected)
{
    char why[STG_EGRESS_WHY_MAX] = "allowed";

    CHECK(!judge(e, address, NULL));
    (void)judge(e, address, why);
    if (strcmp(why, expected) != 0)
        harness_fail(__FILE__, __LINE__, "%s: %s, expected %s", address, why,
                     expected);
}

#define CHECK_ALLOWED(egress, ...)                              \
    check_allowed((egress), (const char *const[]){__VA_ARGS__}, \
                  sizeof((const char *const[]){__VA_ARGS__}) /  \
                      sizeof(const char *))

/* -- by itself ------------------------------------------------------------- */

TEST(egress, allows_public_and_private_addresses_and_loopback)
{
    CHECK_ALLOWED(&by_itself, "1.1.1.1", "10.0.0.1", "172.16.3.4",
                  "192.168.1.1", "127.0.0.1", "127.0.0.53", "100.64.0.1",
                  "100.100.100.199", "169.253.255.255", "169.255.0.0",
                  "168.63.129.15", "192.0.0.191", "1.0.0.0", "223.255.255.255",
                  "240.0.0.1", "255.255.255.254");
    CHECK_ALLOWED(&by_itself, "::1", "2606:4700::1111", "fd00::1", "fc00::1",
                  "fec0::1", "fe7f::1", "fd00:ec1::254", "fd00:ec3::254",
                  "fd20:ce::253", "fd00:42::41", "2001:db8::1", "2001:1::1");
}

TEST(egress, refuses_what_is_no_target_by_itself)
{
    static const struct {
        const char *address, *why;
    } cases[] = {
        {"0.0.0.0", "an address of this host (0.0.0.0/8)"},
        {"0.1.2.3", "an address of this host (0.0.0.0/8)"},
        {"169.254.0.1", "a link-local address (169.254.0.0/16)"},
        {"169.254.255.255", "a link-local address (169.254.0.0/16)"},
        {"169.254.169.254", "a metadata address (169.254.169.254/32)"},
        {"169.254.170.2", "a metadata address (169.254.170.2/32)"},
        {"169.254.170.23", "a metadata address (169.254.170.23/32)"},
        {"169.254.0.23", "a metadata address (169.254.0.23/32)"},
        {"100.100.100.200", "a metadata address (100.100.100.200/32)"},
        {"168.63.129.16", "a metadata address (168.63.129.16/32)"},
        {"192.0.0.192", "a metadata address (192.0.0.192/32)"},
        {"224.0.0.1", "a multicast address (224.0.0.0/4)"},
        {"239.255.255.255", "a multicast address (224.0.0.0/4)"},
        {"255.255.255.255", "the broadcast address (255.255.255.255/32)"},
        {"::", "an address of this host (::/128)"},
        {"fe80::1", "a link-local address (fe80::/10)"},
        {"febf:ffff::1", "a link-local address (fe80::/10)"},
        {"fe80::a9fe:a9fe", "a metadata address (fe80::a9fe:a9fe/128)"},
        {"fd00:ec2::254", "a metadata address (fd00:ec2::/32)"},
        {"fd00:ec2::23", "a metadata address (fd00:ec2::/32)"},
        {"fd20:ce::254", "a metadata address (fd20:ce::254/128)"},
        {"fd00:42::42", "a metadata address (fd00:42::42/128)"},
        {"ff02::1", "a multicast address (ff00::/8)"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_refused(&by_itself, cases[i].address, cases[i].why);
}

/* 169.254.169.254 is a9fe:a9fe, 10.0.0.1 is 0a00:0001. */
TEST(egress, judges_an_address_of_ipv4_within_one_of_ipv6)
{
    static const char *const forms[] = {
        "::ffff:169.254.169.254",     // mapped
        "::ffff:0:169.254.169.254",   // translated
        "::169.254.169.254",          // compatible
        "64:ff9b::169.254.169.254",   // NAT64
        "64:ff9b:1::169.254.169.254", // NAT64 of one's own, after 96 bits
        "64:ff9b:1:a9fe:a9:fe00::",   // after 48 bits
        "64:ff9b:1:00a9:fe:a9fe::",   // after 56
        "64:ff9b:1:7:a9:fea9:fe00:0", // after 64
        "64:ff9b:1:7:8:9:a9fe:a9fe",  // and a prefix of 96 that is not zero
        "2002:a9fe:a9fe::1",          // 6to4
        "2001::4136:e378:8000:63bf:5601:5601", // Teredo, inverted
    };

    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        check_refused(&by_itself, forms[i],
                      "a metadata address (169.254.169.254/32)");
    check_refused(&by_itself, "::ffff:0.0.0.0",
                  "an address of this host (0.0.0.0/8)");
    check_refused(&by_itself, "64:ff9b::0.0.0.0",
                  "an address of this host (0.0.0.0/8)");
    check_refused(&by_itself,
                  "2002:e000:1::", "a multicast address (224.0.0.0/4)");
    CHECK_ALLOWED(&by_itself, "::ffff:10.0.0.1", "::ffff:0:10.0.0.1",
                  "::10.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b:1::10.0.0.1",
                  "64:ff9b:1:0a00:0:100::", "64:ff9b:1:000a:0:1::",
                  "64:ff9b:1:7:0a:0:100:0", "2002:a00:1::1",
                  "2001::4136:e378:8000:63bf:f5ff:fffe", "::ffff:127.0.0.1");
    // One bit beside each prefix is another network, and has no IPv4 in it.
    CHECK_ALLOWED(&by_itself, "::1:a9fe:a9fe", "::ffff:1:a9fe:a9fe",
                  "64:ff9b::1:a9fe:a9fe", "64:ff9b:2::a9fe:a9fe",
                  "2003:a9fe:a9fe::1", "2001:1:4136:e378:8000:63bf:5601:5601");
}

/* -- rules ----------------------------------------------------------------- */

TEST(egress, lets_the_smallest_network_decide)
{
    const stg_cidr allow[] = {cidr("10.1.0.0/16"), cidr("169.254.0.0/16"),
                              cidr("10.2.3.0/24"), cidr("fd00:1::/32")};
    const stg_cidr deny[] = {cidr("10.0.0.0/8"), cidr("10.1.1.1"),
                             cidr("10.2.3.0/24"), cidr("fd00::/8")};
    stg_egress e = {allow, deny, 4, 4, false};

    CHECK_ALLOWED(&e, "10.1.0.1", "10.1.255.255", "192.168.0.1", "11.0.0.1",
                  "169.254.1.1", "fd00:1::1", "fc00::1");
    check_refused(&e, "10.0.0.1", "denied by 10.0.0.0/8");
    check_refused(&e, "10.2.0.1", "denied by 10.0.0.0/8");
    check_refused(&e, "10.1.1.1", "denied by 10.1.1.1/32");
    check_refused(&e, "10.2.3.4", "denied by 10.2.3.0/24");
    check_refused(&e, "fd00:2::1", "denied by fd00::/8");
    // Not by what it lies in, but by its own.
    check_refused(&e, "169.254.169.254",
                  "a metadata address (169.254.169.254/32)");
    check_refused(&e, "::ffff:10.0.0.1", "denied by 10.0.0.0/8");
    check_refused(&e, "64:ff9b::10.0.0.1", "denied by 10.0.0.0/8");
}

TEST(egress, opens_nothing_that_is_refused_by_itself_for_all)
{
    const stg_cidr allow[] = {cidr("0.0.0.0/0"), cidr("::/0")};
    stg_egress e = {.allow = allow, .allow_count = 2};

    CHECK_ALLOWED(&e, "1.1.1.1", "2606:4700::1111");
    check_refused(&e, "169.254.1.1", "a link-local address (169.254.0.0/16)");
    check_refused(&e, "ff02::1", "a multicast address (ff00::/8)");
}

TEST(egress, opens_what_is_named)
{
    const stg_cidr allow[] = {cidr("169.254.169.254"), cidr("fe80::/10"),
                              cidr("0.0.0.0/8"), cidr("fd00:ec2::254")};
    stg_egress e = {.allow = allow, .allow_count = 4};

    CHECK_ALLOWED(&e, "169.254.169.254", "::ffff:169.254.169.254", "fe80::1234",
                  "0.0.0.0", "fd00:ec2::254");
    check_refused(&e, "169.254.169.253",
                  "a link-local address (169.254.0.0/16)");
    check_refused(&e, "fe80::a9fe:a9fe",
                  "a metadata address (fe80::a9fe:a9fe/128)");
    check_refused(&e, "fd00:ec2::253", "a metadata address (fd00:ec2::/32)");
}

TEST(egress, leaves_what_is_allowed_where_all_is_denied)
{
    const stg_cidr allow[] = {cidr("10.0.0.0/8")};
    const stg_cidr deny[] = {cidr("0.0.0.0/0"), cidr("::/0")};
    stg_egress e = {allow, deny, 1, 2, false};

    CHECK_ALLOWED(&e, "10.255.0.1", "::ffff:10.0.0.1");
    check_refused(&e, "11.0.0.1", "denied by 0.0.0.0/0");
    check_refused(&e, "127.0.0.1", "denied by 0.0.0.0/0");
    check_refused(&e, "::1", "denied by ::/0");
    // The address of IPv6 is one as well.
    check_refused(&e, "64:ff9b::10.0.0.1", "denied by ::/0");
}

TEST(egress, is_open_where_it_is_told)
{
    stg_egress e = {.is_open = true};

    CHECK_ALLOWED(&e, "169.254.169.254", "ff02::1", "0.0.0.0");
}

TEST(egress, refuses_what_is_no_address_of_ip)
{
    struct sockaddr other = {.sa_family = AF_UNIX};
    char why[STG_EGRESS_WHY_MAX];

    CHECK(!stg_egress_allows(&by_itself, &other, why));
    CHECK_STR(why, "no address of IP");
}

/* A network of every size, against the arithmetic of 32 bits. */
TEST(egress, holds_the_addresses_of_its_prefix_and_no_others)
{
    uint32_t inside = 0x5A5A3C55; // its neighbours are all public

    for (unsigned bits = 1; bits <= 32; bits++) {
        uint32_t mask = bits == 32 ? UINT32_MAX : ~(UINT32_MAX >> bits);
        uint32_t outside = inside ^ (1U << (32 - bits)), net = inside & mask;
        char text[64], in[32], out[32];
        stg_cidr deny;
        stg_egress e = {.deny = &deny, .deny_count = 1};

        (void)snprintf(text, sizeof text, "%u.%u.%u.%u/%u", net >> 24,
                       net >> 16 & 255, net >> 8 & 255, net & 255, bits);
        (void)snprintf(in, sizeof in, "%u.%u.%u.%u", inside >> 24,
                       inside >> 16 & 255, inside >> 8 & 255, inside & 255);
        (void)snprintf(out, sizeof out, "%u.%u.%u.%u", outside >> 24,
                       outside >> 16 & 255, outside >> 8 & 255, outside & 255);
        deny = cidr(text);
        CHECK(!judge(&e, in, NULL));
        CHECK(judge(&e, out, NULL));
    }
}

/* -- texts ----------------------------------------------------------------- */

TEST(egress, prints_a_network_as_it_reads_it)
{
    static const struct {
        const char *text, *printed;
    } cases[] = {
        {"10.0.0.0/8", "10.0.0.0/8"},
        {"10.1.2.3", "10.1.2.3/32"},
        {"0.0.0.0/0", "0.0.0.0/0"},
        {"255.255.255.255/32", "255.255.255.255/32"},
        {"::/0", "::/0"},
        {"::1", "::1/128"},
        {"FD00::/8", "fd00::/8"},
        {"2001:db8:1:2:3:4:5:6/127", "2001:db8:1:2:3:4:5:6/127"},
        {"::ffff:10.0.0.0/104", "10.0.0.0/8"},
        {"::ffff:1.2.3.4", "1.2.3.4/32"},
        {"::ffff:0:0/96", "0.0.0.0/0"},
        {"::/95", "::/95"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stg_cidr c = cidr(cases[i].text), again;
        char text[STG_CIDR_TEXT_MAX];

        CHECK_STR(stg_cidr_print(&c, text), cases[i].printed);
        again = cidr(text);
        CHECK(memcmp(&c, &again, sizeof c) == 0);
    }
}

TEST(egress, refuses_what_is_no_network)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"",
         " is no network, expected an address and a prefix, as in "
         "10.0.0.0/8 or fd00::/8"},
        {"/8", "/8 is no network, expected"},
        {"localhost", "localhost is no network, expected"},
        {"10.0.0/8", "10.0.0/8 is no network, expected"},
        {"10.0.0.256", "10.0.0.256 is no network, expected"},
        {"10.0.0.01", "10.0.0.01 is no network, expected"},
        {"0x7f000001", "0x7f000001 is no network, expected"},
        {"fe80::1%lo", "fe80::1%lo is no network, expected"},
        {"[::1]", "[::1] is no network, expected"},
        {" 10.0.0.1", " 10.0.0.1 is no network, expected"},
        {"10.0.0.0/33", "10.0.0.0/33 has no prefix of 0 to 32"},
        {"10.0.0.0/", "10.0.0.0/ has no prefix of 0 to 32"},
        {"10.0.0.0/08", "10.0.0.0/08 has no prefix of 0 to 32"},
        {"10.0.0.0/-1", "10.0.0.0/-1 has no prefix of 0 to 32"},
        {"10.0.0.0/8 ", "10.0.0.0/8  has no prefix of 0 to 32"},
        {"10.0.0.0/8/8", "10.0.0.0/8/8 has no prefix of 0 to 32"},
        {"10.0.0.0/264", "10.0.0.0/264 has no prefix of 0 to 32"},
        {"10.0.0.0/4294967304", "has no prefix of 0 to 32"},
        {"::/129", "::/129 has no prefix of 0 to 128"},
        {"10.1.2.3/8",
         "10.1.2.3/8 has bits behind its prefix, did you mean "
         "10.0.0.0/8?"},
        {"fd00::1/8", "did you mean fd00::/8?"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        stg_cidr c = {.bits = 77};
        stg_error err = {.line = 0};

        CHECK_INT(stg_cidr_parse(&c, cases[i].text, &err), STG_INVALID);
        if (strstr(err.text, cases[i].words) == NULL)
            harness_fail(__FILE__, __LINE__, "\"%s\" has no \"%s\"", err.text,
                         cases[i].words);
        CHECK_INT(c.bits, 77);
    }
}
