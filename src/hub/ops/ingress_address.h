/* ingress_address.h - what the ingress listens on: "127.0.0.1:8080",
 * "[::1]:8080", "localhost:0". */
#ifndef STAGGER_HUB_OPS_INGRESS_ADDRESS_H
#define STAGGER_HUB_OPS_INGRESS_ADDRESS_H

#include <stdbool.h>

#include <netinet/in.h>
#include <sys/socket.h>

#include <stagger/status.h>

#define STG_ADDRESS_TEXT_MAX 64

typedef struct stg_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    };
} stg_address;

/* address:port, the address in numbers or `localhost` (127.0.0.1), IPv6 in
 * brackets. Returns STG_INVALID with words. */
stg_status stg_address_parse(stg_address *a, const char *text, stg_error *err);

/* The same text again. Returns text. */
const char *stg_address_print(const stg_address *a,
                              char text[STG_ADDRESS_TEXT_MAX]);

uint16_t stg_address_port(const stg_address *a);

/* 127.0.0.0/8, ::1 and ::ffff:127.0.0.0/104. */
bool stg_address_is_loopback(const stg_address *a);

/* Whether a connection of this machine to host and port comes to what listens
 * on a: the same address, `localhost`, or where a is all addresses any that the
 * machine has. A host of another name: false. */
bool stg_address_reaches(const stg_address *a, const char *host, uint16_t port);

/* Whether this machine has the address: a socket is bound to it, on a port that
 * the system picks. Returns STG_INVALID with words where it has not; whatever
 * else may fail is for stg_address_listen() to say. */
stg_status stg_address_check_host(const stg_address *a, stg_error *err);

/* A socket that listens on it; a port 0 in the address becomes the one that was
 * chosen. Returns STG_IO with words that say what to do. */
stg_status stg_address_listen(stg_address *a, int *fd, stg_error *err);

#endif
