/* outcome.h - what an attempt came to, and how to tell the library.
 *
 * An outcome is a plain value. Make one with the function for whatever you
 * hold: stg_ok(), an HTTP status, errno, a resolver's, libcurl's, gRPC's, a
 * broker's or a database's code; then change a field if you know more. No
 * function fails: what it does not know is STG_FAULT_ERROR. None reads errno or
 * a clock. */
#ifndef STAGGER_OUTCOME_H
#define STAGGER_OUTCOME_H

#include <stdbool.h>
#include <stddef.h>

#include <stagger/fault.h>
#include <stagger/ns.h>

STG_DECLS_BEGIN

typedef struct stg_outcome {
    stg_fault fault;         /* STG_FAULT_NONE: success */
    stg_code_kind code_kind; /* what code is */
    uint32_t code;           /* as it came */
    bool permanent;          /* "do not try again", whatever the policy says */
    bool unsent;  /* the request was surely not processed: even a POST may be
                       repeated */
    stg_ns delay; /* "not before": the wait asked for; 0 is none */
} stg_outcome;

STG_API stg_outcome stg_ok(void);

/* A fault that you classified yourself. STG_FAULT_NONE and what is no fault
 * read as STG_FAULT_ERROR: a failure is never taken for a success. */
STG_API stg_outcome stg_failed(stg_fault fault);

/* An errno of a socket call. ETIMEDOUT reads as timeout, since the request may
 * have been sent; if it came from connect(), say
 * stg_failed(STG_FAULT_CONNECT_TIMEOUT). */
STG_API stg_outcome stg_failed_errno(int error);

/* A code of getaddrinfo(). For EAI_SYSTEM use stg_failed_errno(errno). */
STG_API stg_outcome stg_failed_resolver(int eai);

/* A TLS alert (RFC 8446, section 6), or -1 where none is known. */
STG_API stg_outcome stg_failed_tls(int alert);

/* A CURLcode. 0 is success; for CURLE_HTTP_RETURNED_ERROR (22) use
 * stg_answered() with the status. */
STG_API stg_outcome stg_failed_curl(int curl_code);

/* A five-letter SQLSTATE. NULL or what is none reads as STG_FAULT_ERROR, and
 * the classes 00, 01 and 02 (success, warning, no data) as success. */
STG_API stg_outcome stg_failed_sqlstate(const char *sqlstate);

/* A MySQL or MariaDB error number, of the server or the client; 0 is
 * success. */
STG_API stg_outcome stg_failed_mysql(unsigned error);

/* A gRPC status code, 0 (OK, success) to 16, and the trailer
 * grpc-retry-pushback-ms or NULL. A pushback that is negative or no number
 * means "do not retry" (gRFC A6), else it is the delay. */
STG_API stg_outcome stg_failed_grpc(int code, const char *pushback_ms);

/* The text of an error reply of Redis, such as "LOADING Redis is loading the
 * dataset in memory", with or without the '-' before it: its first word is the
 * code. A first word that is not known reads as STG_FAULT_REJECTED without a
 * code, NULL and "" as STG_FAULT_ERROR. What is transient was not carried
 * out. */
STG_API stg_outcome stg_failed_redis(const char *reply);

/* A reply code of AMQP 0-9-1 (RabbitMQ), as it stands in channel.close,
 * connection.close and basic.return; 200 is success, and what is outside 300 to
 * 599 STG_FAULT_ERROR. */
STG_API stg_outcome stg_failed_amqp(int reply_code);

/* An error condition of AMQP 1.0, as "amqp:connection:forced". One that is not
 * known reads as STG_FAULT_REJECTED without a code, NULL and "" as
 * STG_FAULT_ERROR. */
STG_API stg_outcome stg_failed_amqp_condition(const char *condition);

/* An error code of Kafka's protocol, or of librdkafka (rd_kafka_resp_err_t),
 * whose own are negative; 0 is success. */
STG_API stg_outcome stg_failed_kafka(int error);

/* A command's exit code; 0 is success. 126 and 127 (not executable, not
 * found) are permanent. */
STG_API stg_outcome stg_failed_exit(int code);

/* An HTTP status: 2xx is success, 1xx is protocol (it is not final), and what
 * is no status (outside 100 to 599) invalid: it is yours, not the server's. */
STG_API stg_outcome stg_answered(int status);

/* The same with the server's delay, see delay.h: stg_delay_read(). */
STG_API stg_outcome stg_answered_after(int status, stg_ns delay);

#define STG_CAUSE_MAX 48

/* The shortest exact name: "503", "refused", "sqlstate:23505", "grpc:14",
 * "redis:LOADING", "kafka:7", "exit 3". Returns text, always terminated. */
STG_API const char *stg_outcome_name(const stg_outcome *o,
                                     char text[STG_CAUSE_MAX]);

/* The cause for records: "HTTP_503", "CONNECTION_REFUSED", "SQLSTATE_23505",
 * "GRPC_UNAVAILABLE", "KAFKA_REQUEST_TIMED_OUT", "EXIT_3". Returns text, always
 * terminated. */
STG_API const char *stg_outcome_cause(const stg_outcome *o,
                                      char text[STG_CAUSE_MAX]);

STG_DECLS_END

#endif
