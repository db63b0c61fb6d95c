/* address.h - what the ingress listens on: "127.0.0.1:8080",
 * "[::1]:8080", "localhost:0", or a socket in the file system,
 * "unix:/run/stagger/hub.sock". */
#ifndef STAGGER_INGRESS_ADDRESS_H
#define STAGGER_INGRESS_ADDRESS_H

#include <stdbool.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <stagger/status.h>

#define STG_ADDRESS_TEXT_MAX 120

typedef struct stg_listen_address {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un un;
    };
    /* Identity of the socket in the file system that stg_address_listen() has
     * made; inode 0: none was made. */
    dev_t device;
    ino_t inode;
} stg_listen_address;

/* address:port, the address in numbers or `localhost` (127.0.0.1), IPv6 in
 * brackets; or unix: and an absolute path. Returns STG_INVALID with words. */
stg_status stg_address_parse(stg_listen_address *a, const char *text,
                             stg_error *err);

/* The same text again. Returns text. */
const char *stg_address_print(const stg_listen_address *a,
                              char text[STG_ADDRESS_TEXT_MAX]);

/* A socket in the file system. */
bool stg_address_is_path(const stg_listen_address *a);

/* 0 of a path. */
uint16_t stg_address_port(const stg_listen_address *a);

/* 127.0.0.0/8, ::1, ::ffff:127.0.0.0/104, and a path: this machine alone. */
bool stg_address_is_loopback(const stg_listen_address *a);

/* Whether a connection of this machine to host and port comes to what listens
 * on a: the same address, `localhost`, or where a is all addresses any that the
 * machine has. A host of another name: false. */
bool stg_address_reaches(const stg_listen_address *a, const char *host,
                         uint16_t port);

/* Whether this machine has the address: a socket is bound to it, on a port that
 * the system picks. Returns STG_INVALID with words where it has not; whatever
 * else may fail is for stg_address_listen() to say. */
stg_status stg_address_check_host(const stg_listen_address *a, stg_error *err);

/* A socket that listens on it; a port 0 in the address becomes the one that was
 * chosen. A socket at the path that nobody listens on is replaced; any other file
 * of that name, also a link to such a socket, stays and is an error. Returns
 * STG_IO or STG_INVALID with words that say what to do. */
stg_status stg_address_listen(stg_listen_address *a, int *fd, stg_error *err);

/* Removes the socket that stg_address_listen() has made in the file system, unless
 * another file has its name by now. Does nothing for other addresses. */
void stg_address_leave(const stg_listen_address *a);

#endif
