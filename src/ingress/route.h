/* route.h - what the ingress answers: tables of methods, paths and roles.
 *
 *     static const stg_route routes[] = {
 *         {"GET", "/v1/targets/{name}", STG_ROLE_VIEW, STG_BODY_NONE, NULL,
 *          answer_target, false},
 *     };
 *     stg_ingress_serve(ingress, routes, 1, hub);
 *
 * A handler is called with a request that was checked: its token has the role,
 * its path and the names of its query are those of the route, its body is whole
 * and no larger than allowed. It answers by ask.h, at once or later. */
#ifndef STAGGER_INGRESS_ROUTE_H
#define STAGGER_INGRESS_ROUTE_H

#include <stdbool.h>
#include <stddef.h>

typedef struct stg_ask stg_ask;

/* A right of a token; a token may have several. */
typedef enum stg_role {
    STG_ROLE_ANYBODY = 0, /* of a route: no token is needed */
    STG_ROLE_PUBLISH = 1,
    STG_ROLE_VIEW = 2,
    STG_ROLE_OPERATE = 4, /* a token that has it has STG_ROLE_VIEW, too */
} stg_role;

typedef enum stg_body {
    STG_BODY_NONE,    /* an empty one */
    STG_BODY_JSON,    /* application/json, STG_JSON_BODY_MAX at most */
    STG_BODY_MESSAGE, /* these are the ingress' own */
    STG_BODY_BATCH,
} stg_body;

enum { STG_JSON_BODY_MAX = 64 * 1024 };

typedef void stg_route_fn(void *ctx, stg_ask *a);

typedef struct stg_route {
    const char *method; /* "POST"; or "GET", which answers HEAD, too */
    const char *path;   /* {word} stands for any one segment, two at most; a
                           path without is found before one with */
    stg_role role;
    stg_body body;
    const char *const *options; /* names of the query, ended by NULL; NULL: it
                                   has none */
    stg_route_fn *handle;
    bool is_always; /* also when too many requests are being answered */
} stg_route;

/* A table, and the context of its handlers. */
typedef struct stg_routes {
    const stg_route *all;
    size_t count;
    void *ctx;
} stg_routes;

/* The result of looking a path up in some tables. */
typedef struct stg_match {
    const stg_route *route; /* NULL: none of this path and method */
    void *ctx;
    char allowed[32]; /* methods of the path, "GET, HEAD"; "": no such path */
} stg_match;

void stg_routes_match(const stg_routes *tables, size_t count, const char *path,
                      const char *method, stg_match *m);

/* The word number i, from 0, of a path that matches the pattern. Copies it, with
 * its terminator. Returns 0 if there is none, or it does not fit. */
size_t stg_route_word(const char *pattern, const char *path, size_t i,
                      char *word, size_t room);

#endif
