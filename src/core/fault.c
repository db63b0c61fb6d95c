/* The table of faults: name in policies, cause in records, sentence, category.
 * Outcomes are named by it, but for those whose code says more than the fault
 * does: 503, and not 5xx. */
#include <stagger/fault.h>

#include <stddef.h>

#include <stagger/outcome.h>

#include "core/codes.h"

#define ROW(name, cause, category, sentence)           \
    {                                                  \
        name, cause, sentence, STG_CATEGORY_##category \
    }

const stg_fault_info stg_faults[STG_FAULT_COUNT] = {
    [STG_FAULT_NONE] = ROW("ok", "OK", NONE, "it succeeded"),
    [STG_FAULT_REFUSED] = ROW("refused", "CONNECTION_REFUSED", CONNECT,
                              "the connection was refused"),
    [STG_FAULT_UNREACHABLE] =
        ROW("unreachable", "HOST_UNREACHABLE", CONNECT,
            "there is no route to the host or its network"),
    [STG_FAULT_DNS] =
        ROW("dns", "DNS_FAILURE", CONNECT, "the name does not resolve"),
    [STG_FAULT_DNS_TEMPORARY] = ROW("dns-temporary", "DNS_TEMPORARY_FAILURE",
                                    CONNECT, "the resolver did not answer"),
    [STG_FAULT_CONNECT_TIMEOUT] =
        ROW("connect-timeout", "CONNECT_TIMEOUT", CONNECT,
            "no connection was made in time"),
    [STG_FAULT_TLS] = ROW("tls", "TLS_FAILURE", CONNECT,
                          "TLS failed: certificate, name or version"),
    [STG_FAULT_TLS_TIMEOUT] = ROW("tls-timeout", "TLS_TIMEOUT", CONNECT,
                                  "the TLS handshake did not end in time"),
    [STG_FAULT_TIMEOUT] =
        ROW("timeout", "TIMEOUT", SERVER, "no answer came in time"),
    [STG_FAULT_RESET] = ROW("reset", "CONNECTION_RESET", SERVER,
                            "the connection broke before the answer"),
    [STG_FAULT_PROTOCOL] =
        ROW("protocol", "PROTOCOL_ERROR", SERVER,
            "the answer broke the protocol, or was cut short"),
    [STG_FAULT_5XX] = ROW("5xx", "HTTP_5XX", SERVER, "the server failed"),
    [STG_FAULT_3XX] =
        ROW("3xx", "HTTP_3XX", REQUEST, "a redirect, which is not followed"),
    [STG_FAULT_4XX] =
        ROW("4xx", "HTTP_4XX", REQUEST, "the request is at fault"),
    [STG_FAULT_OVERLOAD] =
        ROW("4xx", "HTTP_4XX", OVERLOAD, "the server asks for less"),
    [STG_FAULT_CANCELLED] =
        ROW("cancelled", "CANCELLED", OWN, "the operation was cancelled"),
    [STG_FAULT_INVALID] =
        ROW("invalid", "INVALID", OWN, "the call itself cannot be carried out"),
    [STG_FAULT_CIRCUIT_OPEN] = ROW("circuit-open", "CIRCUIT_OPEN", OWN,
                                   "the breaker is open: not tried"),
    [STG_FAULT_NESTED] = ROW("nested", "NESTED", OWN,
                             "an operation inside this one was not repeated"),
    [STG_FAULT_DEADLOCK] = ROW("deadlock", "DEADLOCK", DATABASE,
                               "the transaction was a deadlock's victim"),
    [STG_FAULT_SERIALIZATION] =
        ROW("serialization", "SERIALIZATION_FAILURE", DATABASE,
            "the transaction could not be serialized"),
    [STG_FAULT_LOCK_TIMEOUT] = ROW("lock-timeout", "LOCK_TIMEOUT", DATABASE,
                                   "a lock was not to be had in time"),
    [STG_FAULT_TOO_MANY_CONNECTIONS] =
        ROW("too-many-connections", "TOO_MANY_CONNECTIONS", DATABASE,
            "the database takes no more connections"),
    [STG_FAULT_CONNECTION_LOST] =
        ROW("connection-lost", "CONNECTION_LOST", DATABASE,
            "the connection to the database was lost"),
    [STG_FAULT_SQL] =
        ROW("sql", "SQL_ERROR", DATABASE, "the database refused the statement"),
    [STG_FAULT_PUSHBACK] = ROW("pushback", "GRPC_RESOURCE_EXHAUSTED", RPC,
                               "the server is exhausted, and said until when"),
    [STG_FAULT_GRPC] = ROW("grpc", "GRPC_ERROR", RPC, "the RPC failed"),
    [STG_FAULT_EXIT] = ROW("exit", "EXIT", OTHER, "the command failed"),
    [STG_FAULT_ERROR] = ROW("error", "ERROR", OTHER, "an unclassified error"),
    [STG_FAULT_EGRESS] = ROW("egress", "EGRESS_FORBIDDEN", CONNECT,
                             "the address may not be connected to"),
    [STG_FAULT_TOO_LARGE] = ROW("too-large", "TOO_LARGE", OWN,
                                "the message is larger than may be sent"),
    [STG_FAULT_LOOP] =
        ROW("loop", "LOOP", OWN, "the message goes round in a circle of hubs"),
    [STG_FAULT_NO_FILES] = ROW("no-files", "NO_FILES", LOCAL,
                               "this process has no file descriptor left"),
    [STG_FAULT_NO_PORTS] = ROW("no-ports", "NO_PORTS", LOCAL,
                               "this machine has no local address or port "
                               "left for it"),
    [STG_FAULT_NO_BUFFERS] = ROW("no-buffers", "NO_BUFFERS", LOCAL,
                                 "this machine has no memory for it"),
    [STG_FAULT_INTERRUPTED] = ROW("interrupted", "INTERRUPTED", LOCAL,
                                  "a signal interrupted the call"),
    [STG_FAULT_TLS_HANDSHAKE] = ROW("tls-handshake", "TLS_HANDSHAKE", CONNECT,
                                    "the TLS handshake was broken off"),
    [STG_FAULT_OUTCOME_UNKNOWN] =
        ROW("outcome-unknown", "OUTCOME_UNKNOWN", DATABASE,
            "the connection broke at a commit: it may be done"),
    [STG_FAULT_TRANSIENT] =
        ROW("transient", "TRANSIENT", RPC,
            "the server cannot do it now, but may be able to soon"),
    [STG_FAULT_REJECTED] =
        ROW("rejected", "REJECTED", RPC, "the server rejected the command"),
    [STG_FAULT_PROXY] = ROW("proxy", "PROXY_UNAVAILABLE", LOCAL,
                            "our own proxy cannot be reached, or lets nobody "
                            "through"),
    [STG_FAULT_MESSAGE_EXPIRED] =
        ROW("message-expired", "MESSAGE_EXPIRED", OWN,
            "the message expired before it was delivered"),
    [STG_FAULT_TEMPLATE] =
        ROW("template", "TEMPLATE", OWN,
            "the message lacks what the target's URL or headers take of it"),
};

static const char *const categories[] = {
    [STG_CATEGORY_NONE] = "none",         [STG_CATEGORY_CONNECT] = "connect",
    [STG_CATEGORY_SERVER] = "server",     [STG_CATEGORY_REQUEST] = "request",
    [STG_CATEGORY_OVERLOAD] = "overload", [STG_CATEGORY_OWN] = "own",
    [STG_CATEGORY_DATABASE] = "database", [STG_CATEGORY_RPC] = "rpc",
    [STG_CATEGORY_LOCAL] = "local",       [STG_CATEGORY_OTHER] = "other",
};

const stg_fault_info *stg_fault_about(stg_fault fault)
{
    return stg_fault_row(fault);
}

/* A number out of range reads as `other`. */
const char *stg_category_name(stg_category category)
{
    return categories[(unsigned)category <= STG_CATEGORY_OTHER
                          ? category
                          : STG_CATEGORY_OTHER];
}

/* 0 to 35, or 36 for what is no digit or letter. */
static uint32_t digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0');
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A') + 10;
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a') + 10;
    return 36;
}

/* In base 36, five digits fit into 26 bits. UINT32_MAX: it is no SQLSTATE. */
uint32_t stg_sqlstate_pack(const char *sqlstate)
{
    uint32_t code = 0;

    if (sqlstate == NULL)
        return UINT32_MAX;
    for (int i = 0; i < 5; i++) {
        uint32_t digit = digit_of(sqlstate[i]);

        if (digit == 36)
            return UINT32_MAX;
        code = 36 * code + digit;
    }
    return sqlstate[5] == '\0' ? code : UINT32_MAX;
}

void stg_sqlstate_unpack(uint32_t code, char sqlstate[6])
{
    if (sqlstate == NULL)
        return;
    sqlstate[5] = '\0';
    for (int i = 5; i-- > 0; code /= 36)
        sqlstate[i] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[code % 36];
}

/* -- the names of outcomes */

/* A fault that many codes share is told by its code. */
static bool is_told_by_code(const stg_outcome *o)
{
    switch (o->code_kind) {
    case STG_CODE_NONE:
        return false;
    case STG_CODE_REDIS:
    case STG_CODE_AMQP:
    case STG_CODE_AMQP1:
    case STG_CODE_KAFKA:
        return o->fault != STG_FAULT_NONE;
    default:
        break;
    }
    switch (o->fault) {
    case STG_FAULT_5XX:
    case STG_FAULT_3XX:
    case STG_FAULT_4XX:
    case STG_FAULT_OVERLOAD:
    case STG_FAULT_SQL:
    case STG_FAULT_GRPC:
    case STG_FAULT_EXIT:
        return true;
    default:
        return false;
    }
}

static const stg_fault_info *about(const stg_outcome *o)
{
    return stg_fault_about(o == NULL ? STG_FAULT_ERROR : o->fault);
}

const char *stg_outcome_name(const stg_outcome *o, char text[STG_CAUSE_MAX])
{
    stg_writer w = stg_writer_on(text, STG_CAUSE_MAX);

    if (o != NULL && is_told_by_code(o))
        stg_code_write(&w, o->code_kind, o->code);
    else
        stg_write_text(&w, about(o)->name);
    return text;
}

const char *stg_outcome_cause(const stg_outcome *o, char text[STG_CAUSE_MAX])
{
    stg_writer w = stg_writer_on(text, STG_CAUSE_MAX);

    if (o != NULL && is_told_by_code(o))
        stg_code_write_cause(&w, o->code_kind, o->code);
    else
        stg_write_text(&w, about(o)->cause);
    return text;
}
