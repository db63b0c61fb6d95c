#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <uv.h>

#include "tests/harness.h"
#include "tests/http/resolver.h"

atomic_uint resolver_lookups;
atomic_bool resolver_is_slow;
atomic_int resolver_moves;

/* Addresses that are written as no URL allows are read as the system does:
 * 127.1, 0x7f000001. */
static const struct {
    const char *name, *first, *second;
    int error;
} names[] = {
    {"2852039166", "169.254.169.254", NULL, 0},
    {"0xa9fea9fe", "169.254.169.254", NULL, 0},
    {"again.test", NULL, NULL, EAI_AGAIN},
    {"away.test", NULL, NULL, EAI_NONAME},
    {"both.test", "169.254.169.254", "fe80::1", 0},
    {"good.test", "127.0.0.1", NULL, 0},
    {"here.test", "127.0.0.1", NULL, 0},
    {"localhost", "127.0.0.1", NULL, 0},
    {"mapped.test", "::ffff:169.254.169.254", NULL, 0},
    {"meta.test", "169.254.169.254", NULL, 0},
    {"mixed.test", "169.254.169.254", "127.0.0.1", 0},
    {"nat.test", "64:ff9b::a9fe:a9fe", NULL, 0},
    {"none.test", NULL, NULL, EAI_NONAME},
    {"slow.test", "127.0.0.1", NULL, 0},
    {"slow1.test", "127.0.0.1", NULL, 0},
    {"slow2.test", "127.0.0.1", NULL, 0},
    {"two.test", "127.0.0.2", "127.0.0.1", 0},
};

static struct addrinfo *found_at(const char *address, struct addrinfo *next)
{
    struct found {
        struct addrinfo info;
        union {
            struct sockaddr any;
            struct sockaddr_in v4;
            struct sockaddr_in6 v6;
        } at;
    } *f = calloc(1, sizeof *f);

    if (f == NULL)
        abort();
    if (uv_ip4_addr(address, 0, &f->at.v4) != 0)
        (void)uv_ip6_addr(address, 0, &f->at.v6);
    f->info.ai_family = f->at.any.sa_family;
    f->info.ai_addrlen = sizeof f->at;
    f->info.ai_addr = &f->at.any;
    f->info.ai_next = next;
    return &f->info;
}

__attribute__((visibility("default"))) int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
            struct addrinfo **found)
{
    (void)service;
    (void)hints;
    atomic_fetch_add(&resolver_lookups, 1);
    while (strncmp(name, "slow", 4) == 0 && atomic_load(&resolver_is_slow))
        uv_sleep(1);
    if (strcmp(name, "moving.test") == 0) {
        bool is_first = atomic_fetch_add(&resolver_moves, 1) == 0;

        *found = found_at(is_first ? "127.0.0.1" : "169.254.169.254", NULL);
        return 0;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i].name) == 0) {
            *found = names[i].second ? found_at(names[i].second, NULL) : NULL;
            if (names[i].first != NULL)
                *found = found_at(names[i].first, *found);
            return names[i].error;
        }
    if (strstr(name, ".test") != NULL)
        harness_fail(__FILE__, __LINE__, "%s is not to be asked about", name);
    return EAI_NONAME;
}

__attribute__((visibility("default"))) void freeaddrinfo(struct addrinfo *info)
{
    while (info != NULL) {
        struct addrinfo *next = info->ai_next;

        free(info);
        info = next;
    }
}
