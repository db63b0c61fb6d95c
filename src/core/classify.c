/* classify.c - codes of many sources to one taxonomy. Each table is sorted by
 * its source's own numbers; what stands in none is STG_FAULT_ERROR. */
#include <stagger/outcome.h>

#include <errno.h>
#ifdef __has_include
#if __has_include(<netdb.h>)
#include <netdb.h>
#endif
#endif
#include <string.h>

#include "core/reader.h"

typedef struct mapping {
    int code;
    stg_fault fault;
} mapping;

/* The errno values of sockets; which of them exist depends on the system. */
static const mapping errnos[] = {
    {EAGAIN, STG_FAULT_TIMEOUT}, // of a socket with SO_RCVTIMEO
#if EWOULDBLOCK != EAGAIN
    {EWOULDBLOCK, STG_FAULT_TIMEOUT},
#endif
    {ETIMEDOUT, STG_FAULT_TIMEOUT},
    {EINPROGRESS, STG_FAULT_CONNECT_TIMEOUT}, // of connect() with SO_SNDTIMEO
    {EALREADY, STG_FAULT_CONNECT_TIMEOUT},
    {ECONNREFUSED, STG_FAULT_REFUSED},
    {EHOSTUNREACH, STG_FAULT_UNREACHABLE},
    {ENETUNREACH, STG_FAULT_UNREACHABLE},
    {ENETDOWN, STG_FAULT_UNREACHABLE},
#ifdef EHOSTDOWN
    {EHOSTDOWN, STG_FAULT_UNREACHABLE},
#endif
    {ECONNRESET, STG_FAULT_RESET},
    {ECONNABORTED, STG_FAULT_RESET},
    {ENETRESET, STG_FAULT_RESET},
    {EPIPE, STG_FAULT_RESET},
    {ENOTCONN, STG_FAULT_RESET},
#ifdef ESHUTDOWN
    {ESHUTDOWN, STG_FAULT_RESET},
#endif
    {EPROTO, STG_FAULT_PROTOCOL},
    {EBADMSG, STG_FAULT_PROTOCOL},
    {ECANCELED, STG_FAULT_CANCELLED},
    {EINVAL, STG_FAULT_INVALID},
    {EBADF, STG_FAULT_INVALID},
    {EFAULT, STG_FAULT_INVALID},
    {ENOTSOCK, STG_FAULT_INVALID},
    {EAFNOSUPPORT, STG_FAULT_INVALID},
    {EPROTONOSUPPORT, STG_FAULT_INVALID},
    {EMSGSIZE, STG_FAULT_INVALID},
    {EDESTADDRREQ, STG_FAULT_INVALID},
};

/* Without a resolver (WebAssembly) there are no codes of one. */
static const mapping resolver[] = {
#ifdef EAI_AGAIN
    {EAI_AGAIN, STG_FAULT_DNS_TEMPORARY},
    {EAI_NONAME, STG_FAULT_DNS},
    {EAI_FAIL, STG_FAULT_DNS},
#ifdef EAI_NODATA
    {EAI_NODATA, STG_FAULT_DNS},
#endif
#ifdef EAI_ADDRFAMILY
    {EAI_ADDRFAMILY, STG_FAULT_DNS},
#endif
    {EAI_BADFLAGS, STG_FAULT_INVALID},
    {EAI_FAMILY, STG_FAULT_INVALID},
    {EAI_SERVICE, STG_FAULT_INVALID},
    {EAI_SOCKTYPE, STG_FAULT_INVALID},
    {EAI_OVERFLOW, STG_FAULT_INVALID},
#endif
    {0, STG_FAULT_ERROR},
};

/* Alerts that come when the handshake is over; all others refuse it. */
static const mapping alerts[] = {
    {0, STG_FAULT_RESET},     // close_notify
    {10, STG_FAULT_PROTOCOL}, // unexpected_message
    {20, STG_FAULT_PROTOCOL}, // bad_record_mac
    {22, STG_FAULT_PROTOCOL}, // record_overflow
    {50, STG_FAULT_PROTOCOL}, // decode_error
    {80, STG_FAULT_PROTOCOL}, // internal_error
    {90, STG_FAULT_RESET},    // user_canceled
};

/* By number, so that nothing of libcurl is needed: curl/curl.h. */
static const mapping curls[] = {
    {1, STG_FAULT_INVALID},    // UNSUPPORTED_PROTOCOL
    {3, STG_FAULT_INVALID},    // URL_MALFORMAT
    {4, STG_FAULT_INVALID},    // NOT_BUILT_IN
    {5, STG_FAULT_DNS},        // COULDNT_RESOLVE_PROXY
    {6, STG_FAULT_DNS},        // COULDNT_RESOLVE_HOST
    {7, STG_FAULT_REFUSED},    // COULDNT_CONNECT
    {8, STG_FAULT_PROTOCOL},   // WEIRD_SERVER_REPLY
    {16, STG_FAULT_PROTOCOL},  // HTTP2
    {18, STG_FAULT_PROTOCOL},  // PARTIAL_FILE
    {28, STG_FAULT_TIMEOUT},   // OPERATION_TIMEDOUT
    {35, STG_FAULT_TLS},       // SSL_CONNECT_ERROR
    {42, STG_FAULT_CANCELLED}, // ABORTED_BY_CALLBACK
    {43, STG_FAULT_INVALID},   // BAD_FUNCTION_ARGUMENT
    {48, STG_FAULT_INVALID},   // UNKNOWN_OPTION
    {51, STG_FAULT_TLS},       // PEER_FAILED_VERIFICATION, before 7.62
    {52, STG_FAULT_RESET},     // GOT_NOTHING
    {53, STG_FAULT_TLS},       // SSL_ENGINE_NOTFOUND
    {54, STG_FAULT_TLS},       // SSL_ENGINE_SETFAILED
    {55, STG_FAULT_RESET},     // SEND_ERROR
    {56, STG_FAULT_RESET},     // RECV_ERROR
    {58, STG_FAULT_TLS},       // SSL_CERTPROBLEM
    {59, STG_FAULT_TLS},       // SSL_CIPHER
    {60, STG_FAULT_TLS},       // PEER_FAILED_VERIFICATION
    {61, STG_FAULT_PROTOCOL},  // BAD_CONTENT_ENCODING
    {64, STG_FAULT_TLS},       // USE_SSL_FAILED
    {66, STG_FAULT_TLS},       // SSL_ENGINE_INITFAILED
    {77, STG_FAULT_TLS},       // SSL_CACERT_BADFILE
    {80, STG_FAULT_RESET},     // SSL_SHUTDOWN_FAILED: after the request
    {82, STG_FAULT_TLS},       // SSL_CRL_BADFILE
    {83, STG_FAULT_TLS},       // SSL_ISSUER_ERROR
    {90, STG_FAULT_TLS},       // SSL_PINNEDPUBKEYNOTMATCH
    {91, STG_FAULT_TLS},       // SSL_INVALIDCERTSTATUS
    {92, STG_FAULT_PROTOCOL},  // HTTP2_STREAM
    {95, STG_FAULT_PROTOCOL},  // HTTP3
    {96, STG_FAULT_PROTOCOL},  // QUIC_CONNECT_ERROR: may be after the start
    {98, STG_FAULT_TLS},       // SSL_CLIENTCERT
};

static const mapping mysqls[] = {
    {1040, STG_FAULT_TOO_MANY_CONNECTIONS}, // ER_CON_COUNT_ERROR
    {1205, STG_FAULT_LOCK_TIMEOUT},         // ER_LOCK_WAIT_TIMEOUT
    {1213, STG_FAULT_DEADLOCK},             // ER_LOCK_DEADLOCK
    {2006, STG_FAULT_CONNECTION_LOST},      // CR_SERVER_GONE_ERROR
    {2013, STG_FAULT_CONNECTION_LOST},      // CR_SERVER_LOST
};

/* By prefix: a class of SQLSTATEs has two letters. */
static const struct {
    const char *prefix;
    stg_fault fault;
} sqlstates[] = {
    {"00", STG_FAULT_NONE},
    {"01", STG_FAULT_NONE},
    {"02", STG_FAULT_NONE},
    {"08", STG_FAULT_CONNECTION_LOST},
    {"40001", STG_FAULT_SERIALIZATION},
    {"40P01", STG_FAULT_DEADLOCK},
    {"53300", STG_FAULT_TOO_MANY_CONNECTIONS},
    {"55P03", STG_FAULT_LOCK_TIMEOUT},
    {"57P01", STG_FAULT_CONNECTION_LOST}, // admin_shutdown
    {"57P02", STG_FAULT_CONNECTION_LOST}, // crash_shutdown
    {"57P03", STG_FAULT_CONNECTION_LOST}, // cannot_connect_now
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

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
    if (error == 0)
        return stg_ok();
    return coded(look_up(mysqls, COUNT(mysqls), (int)error, STG_FAULT_SQL),
                 STG_CODE_MYSQL, error);
}

stg_outcome stg_failed_grpc(int code, const char *pushback_ms)
{
    enum { RESOURCE_EXHAUSTED = 8, UNAUTHENTICATED = 16 };
    stg_outcome o = coded(STG_FAULT_GRPC, STG_CODE_GRPC, (uint32_t)code);
    uint64_t count;

    if (code == 0)
        return stg_ok();
    if (code < 0 || code > UNAUTHENTICATED)
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

stg_outcome stg_failed_exit(int code)
{
    enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };
    stg_outcome o = coded(STG_FAULT_EXIT, STG_CODE_EXIT, (uint32_t)code);

    if (code == 0)
        return stg_ok();
    o.permanent = code == NOT_EXECUTABLE || code == NOT_FOUND;
    return o;
}

static stg_fault fault_of_status(int status)
{
    if (status >= 200 && status < 300)
        return STG_FAULT_NONE;
    if (status == 408 || status == 425 || status == 429)
        return STG_FAULT_OVERLOAD;
    if (status >= 300 && status < 400)
        return STG_FAULT_3XX;
    if (status >= 400 && status < 500)
        return STG_FAULT_4XX;
    if (status >= 500 && status < 600)
        return STG_FAULT_5XX;
    return STG_FAULT_PROTOCOL;
}

stg_outcome stg_answered(int status)
{
    stg_fault fault = fault_of_status(status);

    if (fault == STG_FAULT_NONE || fault == STG_FAULT_PROTOCOL)
        return coded(fault, STG_CODE_NONE, 0);
    return coded(fault, STG_CODE_STATUS, (uint32_t)status);
}

stg_outcome stg_answered_after(int status, stg_ns delay)
{
    stg_outcome o = stg_answered(status);

    o.delay = delay;
    return o;
}
