/* classify.c - codes of many sources to one taxonomy. Each table is sorted by
 * its source's own numbers; what stands in none is STG_FAULT_ERROR. One that
 * stands in none is never taken for a success: a new code of a library is
 * retried, or not, as an unclassified error is. */
#include <stagger/outcome.h>

#include <errno.h>
#ifdef __has_include
#if __has_include(<netdb.h>)
#include <netdb.h>
#endif
#endif
#include <string.h>

#include "core/codes.h"
#include "core/reader.h"

typedef struct mapping {
    int code;
    stg_fault fault;
    const char *name; /* of an errno or a resolver's code */
} mapping;

#define NAMED(code, fault)             \
    {                                  \
        code, STG_FAULT_##fault, #code \
    }

/* The errno values of sockets; which of them exist depends on the system. */
static const mapping errnos[] = {
    NAMED(EAGAIN, TIMEOUT), // of a socket with SO_RCVTIMEO
    NAMED(EWOULDBLOCK, TIMEOUT),
    NAMED(ETIMEDOUT, TIMEOUT),
    NAMED(EINPROGRESS, CONNECT_TIMEOUT), // of connect() with SO_SNDTIMEO
    NAMED(EALREADY, CONNECT_TIMEOUT),
    NAMED(ECONNREFUSED, REFUSED),
    NAMED(EHOSTUNREACH, UNREACHABLE),
    NAMED(ENETUNREACH, UNREACHABLE),
    NAMED(ENETDOWN, UNREACHABLE),
#ifdef EHOSTDOWN
    NAMED(EHOSTDOWN, UNREACHABLE),
#endif
    NAMED(ECONNRESET, RESET),
    NAMED(ECONNABORTED, RESET),
    NAMED(ENETRESET, RESET),
    NAMED(EPIPE, RESET),
    NAMED(ENOTCONN, RESET),
#ifdef ESHUTDOWN
    NAMED(ESHUTDOWN, RESET),
#endif
    NAMED(EPROTO, PROTOCOL),
    NAMED(EBADMSG, PROTOCOL),
    NAMED(ECANCELED, CANCELLED),
    NAMED(EINVAL, INVALID),
    NAMED(EBADF, INVALID),
    NAMED(EFAULT, INVALID),
    NAMED(ENOTSOCK, INVALID),
    NAMED(EAFNOSUPPORT, INVALID),
    NAMED(EPROTONOSUPPORT, INVALID),
    NAMED(EMSGSIZE, INVALID),
    NAMED(EDESTADDRREQ, INVALID),
    NAMED(EMFILE, NO_FILES),
    NAMED(ENFILE, NO_FILES),
    NAMED(EADDRNOTAVAIL, NO_PORTS),
    NAMED(ENOBUFS, NO_BUFFERS),
    NAMED(ENOMEM, NO_BUFFERS),
    NAMED(EINTR, INTERRUPTED),
};

/* Without a resolver (WebAssembly) there are no codes of one. */
static const mapping resolver[] = {
#ifdef EAI_AGAIN
    NAMED(EAI_AGAIN, DNS_TEMPORARY),
    NAMED(EAI_NONAME, DNS),
    NAMED(EAI_FAIL, DNS),
#ifdef EAI_NODATA
    NAMED(EAI_NODATA, DNS),
#endif
#ifdef EAI_ADDRFAMILY
    NAMED(EAI_ADDRFAMILY, DNS),
#endif
    NAMED(EAI_BADFLAGS, INVALID),
    NAMED(EAI_FAMILY, INVALID),
    NAMED(EAI_SERVICE, INVALID),
    NAMED(EAI_SOCKTYPE, INVALID),
    NAMED(EAI_OVERFLOW, INVALID),
#endif
    {0, STG_FAULT_ERROR, NULL},
};

/* Alerts that come when the handshake is over; all others refuse it. */
static const mapping alerts[] = {
    {0, STG_FAULT_RESET, NULL},     // close_notify
    {10, STG_FAULT_PROTOCOL, NULL}, // unexpected_message
    {20, STG_FAULT_PROTOCOL, NULL}, // bad_record_mac
    {22, STG_FAULT_PROTOCOL, NULL}, // record_overflow
    {50, STG_FAULT_PROTOCOL, NULL}, // decode_error
    {80, STG_FAULT_PROTOCOL, NULL}, // internal_error
    {90, STG_FAULT_RESET, NULL},    // user_canceled
};

/* By number, so that nothing of libcurl is needed: curl/curl.h. OUT_OF_MEMORY
 * (27) is not among them: it may come when the request is out, and no-buffers
 * would say that it is not. */
static const mapping curls[] = {
    {1, STG_FAULT_INVALID, NULL}, // UNSUPPORTED_PROTOCOL
    {3, STG_FAULT_INVALID, NULL}, // URL_MALFORMAT
    {4, STG_FAULT_INVALID, NULL}, // NOT_BUILT_IN
    {5, STG_FAULT_DNS_TEMPORARY,
     NULL}, // COULDNT_RESOLVE_PROXY: or for good, but
    {6, STG_FAULT_DNS_TEMPORARY, NULL}, // COULDNT_RESOLVE_HOST: it does not say
    {7, STG_FAULT_REFUSED, NULL},       // COULDNT_CONNECT
    {8, STG_FAULT_PROTOCOL, NULL},      // WEIRD_SERVER_REPLY
    {16, STG_FAULT_PROTOCOL, NULL},     // HTTP2
    {18, STG_FAULT_PROTOCOL, NULL},     // PARTIAL_FILE
    {28, STG_FAULT_TIMEOUT, NULL},      // OPERATION_TIMEDOUT
    {35, STG_FAULT_TLS_HANDSHAKE, NULL}, // SSL_CONNECT_ERROR
    {42, STG_FAULT_CANCELLED, NULL},     // ABORTED_BY_CALLBACK
    {43, STG_FAULT_INVALID, NULL},       // BAD_FUNCTION_ARGUMENT
    {48, STG_FAULT_INVALID, NULL},       // UNKNOWN_OPTION
    {51, STG_FAULT_TLS, NULL},      // PEER_FAILED_VERIFICATION, before 7.62
    {52, STG_FAULT_RESET, NULL},    // GOT_NOTHING
    {53, STG_FAULT_TLS, NULL},      // SSL_ENGINE_NOTFOUND
    {54, STG_FAULT_TLS, NULL},      // SSL_ENGINE_SETFAILED
    {55, STG_FAULT_RESET, NULL},    // SEND_ERROR
    {56, STG_FAULT_RESET, NULL},    // RECV_ERROR
    {58, STG_FAULT_TLS, NULL},      // SSL_CERTPROBLEM
    {59, STG_FAULT_TLS, NULL},      // SSL_CIPHER
    {60, STG_FAULT_TLS, NULL},      // PEER_FAILED_VERIFICATION
    {61, STG_FAULT_PROTOCOL, NULL}, // BAD_CONTENT_ENCODING
    {64, STG_FAULT_TLS, NULL},      // USE_SSL_FAILED
    {66, STG_FAULT_TLS, NULL},      // SSL_ENGINE_INITFAILED
    {77, STG_FAULT_TLS, NULL},      // SSL_CACERT_BADFILE
    {80, STG_FAULT_RESET, NULL},    // SSL_SHUTDOWN_FAILED: after the request
    {82, STG_FAULT_TLS, NULL},      // SSL_CRL_BADFILE
    {83, STG_FAULT_TLS, NULL},      // SSL_ISSUER_ERROR
    {90, STG_FAULT_TLS, NULL},      // SSL_PINNEDPUBKEYNOTMATCH
    {91, STG_FAULT_TLS, NULL},      // SSL_INVALIDCERTSTATUS
    {92, STG_FAULT_PROTOCOL, NULL}, // HTTP2_STREAM
    {95, STG_FAULT_PROTOCOL, NULL}, // HTTP3
    {96, STG_FAULT_PROTOCOL,
     NULL},                    // QUIC_CONNECT_ERROR: may be after the start
    {98, STG_FAULT_TLS, NULL}, // SSL_CLIENTCERT
};

static const mapping mysqls[] = {
    {1040, STG_FAULT_TOO_MANY_CONNECTIONS, NULL}, // ER_CON_COUNT_ERROR
    {1053, STG_FAULT_CONNECTION_LOST, NULL},      // ER_SERVER_SHUTDOWN
    {1203, STG_FAULT_TOO_MANY_CONNECTIONS,
     NULL},                                  // ER_TOO_MANY_USER_CONNECTIONS
    {1205, STG_FAULT_LOCK_TIMEOUT, NULL},    // ER_LOCK_WAIT_TIMEOUT
    {1213, STG_FAULT_DEADLOCK, NULL},        // ER_LOCK_DEADLOCK
    {2002, STG_FAULT_CONNECTION_LOST, NULL}, // CR_CONNECTION_ERROR
    {2003, STG_FAULT_CONNECTION_LOST, NULL}, // CR_CONN_HOST_ERROR
    {2006, STG_FAULT_CONNECTION_LOST, NULL}, // CR_SERVER_GONE_ERROR
    {2013, STG_FAULT_CONNECTION_LOST, NULL}, // CR_SERVER_LOST
    {2055, STG_FAULT_CONNECTION_LOST, NULL}, // CR_SERVER_LOST_EXTENDED
    {4031, STG_FAULT_CONNECTION_LOST, NULL}, // ER_CLIENT_INTERACTION_TIMEOUT
};

/* By prefix: a class of SQLSTATEs has two letters. The first that fits. */
static const struct {
    const char *prefix;
    stg_fault fault;
} sqlstates[] = {
    {"00", STG_FAULT_NONE},
    {"01", STG_FAULT_NONE},
    {"02", STG_FAULT_NONE},
    {"08007", STG_FAULT_OUTCOME_UNKNOWN}, // transaction_resolution_unknown
    {"08P01", STG_FAULT_SQL},             // protocol_violation
    {"08", STG_FAULT_CONNECTION_LOST},
    {"25P03", STG_FAULT_CONNECTION_LOST}, // idle_in_transaction_session_timeout
    {"40001", STG_FAULT_SERIALIZATION},
    {"40P01", STG_FAULT_DEADLOCK},
    {"53300", STG_FAULT_TOO_MANY_CONNECTIONS},
    {"55P03", STG_FAULT_LOCK_TIMEOUT},
    {"57P01", STG_FAULT_CONNECTION_LOST}, // admin_shutdown
    {"57P02", STG_FAULT_CONNECTION_LOST}, // crash_shutdown
    {"57P03", STG_FAULT_CONNECTION_LOST}, // cannot_connect_now
    {"57P05", STG_FAULT_CONNECTION_LOST}, // idle_session_timeout
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* A linear search: no table has more than some forty rows, and no success
 * comes here. */
static stg_fault look_up(const mapping *table, size_t count, int code,
                         stg_fault otherwise)
{
    for (size_t i = 0; i < count; i++)
        if (table[i].code == code)
            return table[i].fault;
    return otherwise;
}

static stg_outcome coded(stg_fault fault, stg_code_kind kind, uint32_t code)
{
    return (stg_outcome){.fault = fault, .code_kind = kind, .code = code};
}

/* Both tables are numbered as one, as stg_errno_name_at() does. */
bool stg_errno_named(const stg_reader *name, stg_fault *fault)
{
    const char *known;

    for (size_t i = 0; (known = stg_errno_name_at(i)) != NULL; i++)
        if (stg_reader_spells(name, known)) {
            *fault =
                (i < COUNT(errnos) ? &errnos[i] : &resolver[i - COUNT(errnos)])
                    ->fault;
            return true;
        }
    return false;
}

const char *stg_errno_name_at(size_t i)
{
    if (i < COUNT(errnos))
        return errnos[i].name;
    i -= COUNT(errnos);
    return i < COUNT(resolver) ? resolver[i].name : NULL;
}

stg_outcome stg_ok(void)
{
    return (stg_outcome){.fault = STG_FAULT_NONE};
}

stg_outcome stg_failed(stg_fault fault)
{
    bool is_fault = fault > STG_FAULT_NONE && fault < STG_FAULT_COUNT;

    return (stg_outcome){.fault = is_fault ? fault : STG_FAULT_ERROR};
}

stg_outcome stg_failed_errno(int error)
{
    return coded(look_up(errnos, COUNT(errnos), error, STG_FAULT_ERROR),
                 STG_CODE_ERRNO, (uint32_t)error);
}

stg_outcome stg_failed_resolver(int eai)
{
    return coded(look_up(resolver, COUNT(resolver), eai, STG_FAULT_ERROR),
                 STG_CODE_RESOLVER, (uint32_t)eai);
}

/* A negative number: there was no alert, and there is no code. */
stg_outcome stg_failed_tls(int alert)
{
    stg_fault fault = look_up(alerts, COUNT(alerts), alert, STG_FAULT_TLS);

    if (alert < 0)
        return stg_failed(fault);
    return coded(fault, STG_CODE_TLS, (uint32_t)alert);
}

stg_outcome stg_failed_curl(int curl_code)
{
    if (curl_code == 0)
        return stg_ok();
    return coded(look_up(curls, COUNT(curls), curl_code, STG_FAULT_ERROR),
                 STG_CODE_CURL, (uint32_t)curl_code);
}

stg_outcome stg_failed_sqlstate(const char *sqlstate)
{
    uint32_t code = stg_sqlstate_pack(sqlstate);
    char upper[6];

    if (code == UINT32_MAX)
        return stg_failed(STG_FAULT_ERROR);
    stg_sqlstate_unpack(code, upper);
    for (size_t i = 0; i < COUNT(sqlstates); i++) {
        const char *prefix = sqlstates[i].prefix;

        if (strncmp(upper, prefix, strlen(prefix)) == 0)
            return coded(sqlstates[i].fault, STG_CODE_SQLSTATE, code);
    }
    return coded(STG_FAULT_SQL, STG_CODE_SQLSTATE, code);
}

stg_outcome stg_failed_mysql(unsigned error)
{
    enum { CONNECTION_ERROR = 2002, CONN_HOST_ERROR = 2003 };
    stg_outcome o =
        coded(look_up(mysqls, COUNT(mysqls), (int)error, STG_FAULT_SQL),
              STG_CODE_MYSQL, error);

    if (error == 0)
        return stg_ok();
    // Nothing was connected to, so nothing was sent.
    o.unsent = error == CONNECTION_ERROR || error == CONN_HOST_ERROR;
    return o;
}

/* pushback_ms is the trailer grpc-retry-pushback-ms (gRFC A6). A value that is
 * no number, such as a negative one, says: do not retry. */
stg_outcome stg_failed_grpc(int code, const char *pushback_ms)
{
    enum { RESOURCE_EXHAUSTED = 8, UNAUTHENTICATED = 16 };
    stg_outcome o = coded(STG_FAULT_GRPC, STG_CODE_GRPC, (uint32_t)code);
    uint64_t count;

    if (code == 0)
        return stg_ok();
    if ((unsigned)code > UNAUTHENTICATED) // or negative
        return stg_failed(STG_FAULT_ERROR);
    if (pushback_ms == NULL)
        return o;
    o.permanent = !stg_read_count(pushback_ms, &count);
    if (!o.permanent)
        o.delay = stg_ns_mul(count, STG_MS);
    if (code == RESOURCE_EXHAUSTED)
        o.fault = STG_FAULT_PUSHBACK;
    return o;
}

/* A code of a table: what stands in none is rejected. */
static stg_outcome failed_by_table(stg_code_kind kind, int code)
{
    const stg_code_row *row = stg_code_about(kind, (uint32_t)code);

    return coded(row == NULL ? STG_FAULT_REJECTED : row->fault, kind,
                 (uint32_t)code);
}

/* The same by its name, of this length. */
static stg_outcome failed_by_name(stg_code_kind kind, const char *name,
                                  size_t length)
{
    const stg_code_row *row;

    if (length == 0)
        return stg_failed(STG_FAULT_ERROR);
    for (size_t i = 0; (row = stg_code_at(kind, i)) != NULL; i++)
        if (strncmp(row->name, name, length) == 0 && row->name[length] == '\0')
            return coded(row->fault, kind, (uint32_t)row->code);
    return stg_failed(STG_FAULT_REJECTED);
}

static size_t length_of_word(const char *text)
{
    size_t length = 0;

    while (text[length] != '\0' && strchr(" \r\n", text[length]) == NULL)
        length++;
    return length;
}

/* Redis sends these replies before it carries out the command, so nothing was
 * done. */
stg_outcome stg_failed_redis(const char *reply)
{
    static const char full[] = "ERR max number of clients";
    stg_outcome o;

    if (reply == NULL)
        return stg_failed(STG_FAULT_ERROR);
    reply += *reply == '-';
    if (strncmp(reply, full, sizeof full - 1) == 0)
        o = stg_failed(STG_FAULT_TOO_MANY_CONNECTIONS);
    else
        o = failed_by_name(STG_CODE_REDIS, reply, length_of_word(reply));
    o.unsent = o.fault == STG_FAULT_TRANSIENT ||
               o.fault == STG_FAULT_TOO_MANY_CONNECTIONS;
    return o;
}

stg_outcome stg_failed_amqp(int reply_code)
{
    enum { SUCCESS = 200 };

    if (reply_code == SUCCESS)
        return stg_ok();
    if (reply_code < 300 || reply_code > 599)
        return stg_failed(STG_FAULT_ERROR);
    return failed_by_table(STG_CODE_AMQP, reply_code);
}

stg_outcome stg_failed_amqp_condition(const char *condition)
{
    return failed_by_name(STG_CODE_AMQP1, condition,
                          condition == NULL ? 0 : strlen(condition));
}

stg_outcome stg_failed_kafka(int error)
{
    return error == 0 ? stg_ok() : failed_by_table(STG_CODE_KAFKA, error);
}

/* 126 and 127 are the shell's words for a command that cannot be started;
 * another attempt cannot either. */
stg_outcome stg_failed_exit(int code)
{
    enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };
    stg_outcome o = coded(STG_FAULT_EXIT, STG_CODE_EXIT, (uint32_t)code);

    if (code == 0)
        return stg_ok();
    o.permanent = code == NOT_EXECUTABLE || code == NOT_FOUND;
    return o;
}

/* 408, 425 and 429 ask to come later, and say nothing against the request. An
 * informational status is no final answer. */
static stg_fault fault_of_status(int status)
{
    if (status == 408 || status == 425 || status == 429)
        return STG_FAULT_OVERLOAD;
    switch (status / 100) {
    case 1:
        return STG_FAULT_PROTOCOL;
    case 2:
        return STG_FAULT_NONE;
    case 3:
        return STG_FAULT_3XX;
    case 4:
        return STG_FAULT_4XX;
    case 5:
        return STG_FAULT_5XX;
    default:
        return STG_FAULT_INVALID;
    }
}

stg_outcome stg_answered(int status)
{
    stg_fault fault = fault_of_status(status);

    if (fault == STG_FAULT_NONE || fault == STG_FAULT_PROTOCOL ||
        fault == STG_FAULT_INVALID)
        return coded(fault, STG_CODE_NONE, 0);
    return coded(fault, STG_CODE_STATUS, (uint32_t)status);
}

stg_outcome stg_answered_after(int status, stg_ns delay)
{
    stg_outcome o = stg_answered(status);

    o.delay = delay;
    return o;
}
