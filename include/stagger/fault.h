/* fault.h - the taxonomy of what goes wrong, over every source of errors.
 *
 * A fault is the class of a bad outcome. One table holds for each its name
 * (in policies), its cause (in records), its category and a sentence. What is done
 * about one is decided elsewhere, where others are the default: whether it is
 * retried (core/rule.h), whether the call may have been processed
 * (core/retry_decide.c), whether it counts for a breaker (core/breaker.c) and for
 * the hub's own network (flow/uplink.c).
 *
 * The numbers are ABI, and the hub's store keeps them: a new fault goes directly
 * before STG_FAULT_COUNT, and none is removed. */
#ifndef STAGGER_FAULT_H
#define STAGGER_FAULT_H

#include <stagger/api.h>

STG_DECLS_BEGIN

typedef enum stg_category {
    STG_CATEGORY_NONE,     /* success */
    STG_CATEGORY_CONNECT,  /* A: nothing was sent */
    STG_CATEGORY_SERVER,   /* B: the server failed, or was silent */
    STG_CATEGORY_REQUEST,  /* C: the request is at fault */
    STG_CATEGORY_OVERLOAD, /* D: the server asks for less */
    STG_CATEGORY_OWN,      /* we did not try, or stopped */
    STG_CATEGORY_DATABASE,
    STG_CATEGORY_RPC,   /* gRPC, Redis, AMQP and Kafka */
    STG_CATEGORY_LOCAL, /* this machine was short of something, or its
                            way out was away: not sent */
    STG_CATEGORY_OTHER, /* an exit code, or nothing that we know */
} stg_category;

typedef enum stg_fault {
    STG_FAULT_NONE, /* success */
    STG_FAULT_REFUSED,
    STG_FAULT_UNREACHABLE,
    STG_FAULT_DNS,
    STG_FAULT_DNS_TEMPORARY,
    STG_FAULT_CONNECT_TIMEOUT,
    STG_FAULT_TLS,
    STG_FAULT_TLS_TIMEOUT,
    STG_FAULT_TIMEOUT,
    STG_FAULT_RESET,
    STG_FAULT_PROTOCOL,
    STG_FAULT_5XX, /* these four: an HTTP status, in the outcome's code */
    STG_FAULT_3XX,
    STG_FAULT_4XX,
    STG_FAULT_OVERLOAD, /* 408, 425, 429 */
    STG_FAULT_CANCELLED,
    STG_FAULT_INVALID,
    STG_FAULT_CIRCUIT_OPEN,
    STG_FAULT_NESTED,
    STG_FAULT_DEADLOCK,
    STG_FAULT_SERIALIZATION,
    STG_FAULT_LOCK_TIMEOUT,
    STG_FAULT_TOO_MANY_CONNECTIONS,
    STG_FAULT_CONNECTION_LOST,
    STG_FAULT_SQL,      /* any other SQLSTATE or MySQL code */
    STG_FAULT_PUSHBACK, /* gRPC: RESOURCE_EXHAUSTED, and the server said when */
    STG_FAULT_GRPC,     /* any other gRPC code, in the outcome's code */
    STG_FAULT_EXIT,     /* a command's exit code */
    STG_FAULT_ERROR,    /* unclassified */
    STG_FAULT_EGRESS,   /* connect: we may not connect to that address */
    STG_FAULT_TOO_LARGE, /* own: more bytes than we take; nothing was sent */
    STG_FAULT_LOOP,      /* own: the message has come through too many hubs */
    STG_FAULT_NO_FILES,  /* these four: local */
    STG_FAULT_NO_PORTS,
    STG_FAULT_NO_BUFFERS,
    STG_FAULT_INTERRUPTED,
    STG_FAULT_TLS_HANDSHAKE,   /* broken off; TLS is for what will not mend */
    STG_FAULT_OUTCOME_UNKNOWN, /* a COMMIT without an answer */
    STG_FAULT_TRANSIENT,       /* these two: Redis, AMQP and Kafka */
    STG_FAULT_REJECTED,
    STG_FAULT_PROXY,           /* local: ours is away, or lets nobody through */
    STG_FAULT_MESSAGE_EXPIRED, /* own: its time was over before it was sent */
    STG_FAULT_TEMPLATE, /* own: the message lacks what its request is made of */
    STG_FAULT_COUNT     /* how many there are; no fault */
} stg_fault;

/* The kind of an outcome's code: whose numbers they are. */
typedef enum stg_code_kind {
    STG_CODE_NONE,
    STG_CODE_STATUS,   /* HTTP, 100 to 599 */
    STG_CODE_SQLSTATE, /* stg_sqlstate_pack() */
    STG_CODE_MYSQL,
    STG_CODE_GRPC,
    STG_CODE_CURL,
    STG_CODE_ERRNO,
    STG_CODE_RESOLVER,
    STG_CODE_TLS, /* an alert */
    STG_CODE_EXIT,
    STG_CODE_REDIS, /* stg_failed_redis() numbers the first words of replies */
    STG_CODE_AMQP,  /* 0-9-1: a reply code */
    STG_CODE_AMQP1, /* 1.0: stg_failed_amqp_condition() numbers them */
    STG_CODE_KAFKA, /* negative ones as of int32_t */
} stg_code_kind;

typedef struct stg_fault_info {
    const char *name;     /* "connect-timeout", as policies write it */
    const char *cause;    /* "CONNECT_TIMEOUT", as records write it */
    const char *sentence; /* what happened, for people */
    stg_category category;
} stg_fault_info;

/* The table's row. Any number is safe: what is no fault reads as "error".
 * Static; never NULL. The four faults of HTTP are named after their family
 * ("5xx", and "4xx" for STG_FAULT_OVERLOAD). */
STG_API const stg_fault_info *stg_fault_about(stg_fault fault);

/* "connect", "server", ...; "own" and "other" for what policies cannot name.
 * Static; never NULL. */
STG_API const char *stg_category_name(stg_category category);

/* Five digits or letters as one number, base 36: the code of an SQLSTATE.
 * Lower case reads as upper. Returns UINT32_MAX for what is no SQLSTATE. */
STG_API uint32_t stg_sqlstate_pack(const char *sqlstate);

/* The inverse: writes five letters and a terminator. */
STG_API void stg_sqlstate_unpack(uint32_t code, char sqlstate[6]);

STG_DECLS_END

#endif
