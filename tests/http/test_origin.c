#include <arpa/inet.h>
#include <stdlib.h>

#include "http/server.h"
#include "tests/harness.h"

static stg_origin *hold(stg_origins *all, const char *address)
{
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_in v4 = {.sin_family = AF_INET};

    if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
        return stg_origin_hold(all, (const struct sockaddr *)&v4);
    CHECK(inet_pton(AF_INET6, address, &v6.sin6_addr) == 1);
    return stg_origin_hold(all, (const struct sockaddr *)&v6);
}

/* A caller may have a whole /64, and the same address by two families. */
TEST(origin, is_an_address_of_ipv4_or_a_64_of_ipv6)
{
    static const struct {
        const char *one, *two;
        bool is_same;
        const char *name; /* of two */
    } rows[] = {
        {"192.0.2.1", "192.0.2.1", true, "192.0.2.1"},
        {"192.0.2.1", "192.0.2.2", false, "192.0.2.2"},
        {"192.0.2.1", "::ffff:192.0.2.1", true, "192.0.2.1"},
        {"::ffff:192.0.2.1", "::ffff:192.0.2.2", false, "192.0.2.2"},
        {"2001:db8:1:2::1", "2001:db8:1:2:ffff::9", true, "2001:db8:1:2::"},
        {"2001:db8:1:2::1", "2001:db8:1:3::1", false, "2001:db8:1:3::"},
    };
    static stg_origins all;
    char text[INET6_ADDRSTRLEN];

    stg_origins_init(&all);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stg_origin *one = hold(&all, rows[i].one),
                   *two = hold(&all, rows[i].two);

        CHECK_FROM(i, (one == two) == rows[i].is_same);
        CHECK_STR(stg_origin_print(two, text), rows[i].name);
        CHECK_FROM(i, one->uses == (one == two ? 2 : 1));
        stg_origin_release(one);
        stg_origin_release(two);
    }
    for (size_t i = 0; i < STG_ORIGIN_SLOTS; i++)
        CHECK(stg_list_first(&all.slots[i]) == NULL);
}

TEST(origin, of_a_socket_of_this_machine_is_none_and_a_key_is_itself)
{
    static stg_origins all;
    char text[INET6_ADDRSTRLEN];
    stg_origin *here, *again, *one, *two, *same;

    stg_origins_init(&all);
    here = stg_origin_hold(&all, NULL);
    again = stg_origin_hold(&all, NULL);
    one = stg_origin_hold_key(&all, &all);
    two = stg_origin_hold_key(&all, text);
    same = stg_origin_hold_key(&all, &all);
    CHECK_STR(stg_origin_print(here, text), "unix");
    CHECK(here == again && one == same && one != two && one != here);
    stg_origin_release(here);
    CHECK(again->uses == 1);
    stg_origin_release(again);
    stg_origin_release(one);
    stg_origin_release(two);
    stg_origin_release(same);
}

/* More than there are slots: each is found in its list. */
TEST(origin, is_found_among_any_number)
{
    enum { COUNT = 3 * STG_ORIGIN_SLOTS };
    static stg_origins all;
    static stg_origin *held[COUNT];

    stg_origins_init(&all);
    for (size_t i = 0; i < COUNT; i++)
        held[i] = stg_origin_hold_key(&all, (const char *)&all + i);
    for (size_t i = 0; i < COUNT; i++) {
        stg_origin *again = stg_origin_hold_key(&all, (const char *)&all + i);

        CHECK_FROM(i, again == held[i] && again->uses == 2);
        stg_origin_release(again);
    }
    for (size_t i = 0; i < COUNT; i++)
        stg_origin_release(held[i]);
}
