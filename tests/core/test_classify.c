/* Codes of many sources, one taxonomy; and what the presets make of each. */
#define _GNU_SOURCE // some of the resolver's codes
#include <stagger/outcome.h>

#include <errno.h>
#include <netdb.h>

#include "tests/harness.h"
#include "tests/policy_of.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* -- the table of faults: what is retried by default, and by a broadcast */

enum { NO = 0, ONE = 1, YES = STG_ALWAYS };

typedef struct row {
    const char *name, *cause;
    stg_outcome outcome;
    stg_category category;
    uint16_t broadcast, by_default;
} row;

static void check_row(const row *r)
{
    static const struct {
        const char *text;
        bool is_broadcast;
    } policies[] = {
        {"broadcast", true},    {"broadcast-wide", true},
        {"backend", false},     {"client", false},
        {"interactive", false}, {"unjittered", false},
        {"aws", false},         {"none", false},
        {"attempts=3", false},  {"retry=default", false},
    };
    const stg_fault_info *info = stg_fault_about(r->outcome.fault);
    char text[STG_CAUSE_MAX];

    CHECK_STR(stg_outcome_name(&r->outcome, text), r->name);
    CHECK_STR(stg_outcome_cause(&r->outcome, text), r->cause);
    CHECK_STR(stg_category_name(info->category),
              stg_category_name(r->category));
    for (size_t i = 0; i < COUNT(policies); i++) {
        stg_policy p = policy_of(policies[i].text);
        int limited = 77;
        uint16_t retries = stg_policy_retries(&p, &r->outcome, &limited);

        if (retries !=
            (policies[i].is_broadcast ? r->broadcast : r->by_default)) {
            CHECK_STR(r->name, policies[i].text);
            CHECK_INT(retries, -1);
        }
        CHECK_INT(limited >= 0, retries == ONE);
        CHECK_INT(stg_policy_retries(&p, &r->outcome, NULL), retries);
    }
}

TEST(classify, retries_connect_faults_unless_they_last)
{
    const row rows[] = {
        {"refused", "CONNECTION_REFUSED", stg_failed_errno(ECONNREFUSED),
         STG_CATEGORY_CONNECT, NO, YES},
        {"unreachable", "HOST_UNREACHABLE", stg_failed_errno(EHOSTUNREACH),
         STG_CATEGORY_CONNECT, NO, YES},
        {"dns", "DNS_FAILURE", stg_failed_resolver(EAI_NONAME),
         STG_CATEGORY_CONNECT, NO, NO},
        {"dns-temporary", "DNS_TEMPORARY_FAILURE",
         stg_failed_resolver(EAI_AGAIN), STG_CATEGORY_CONNECT, NO, YES},
        {"connect-timeout", "CONNECT_TIMEOUT",
         stg_failed(STG_FAULT_CONNECT_TIMEOUT), STG_CATEGORY_CONNECT, ONE, YES},
        {"dns-temporary", "DNS_TEMPORARY_FAILURE", stg_failed_curl(6),
         STG_CATEGORY_CONNECT, NO, YES},
        {"tls-handshake", "TLS_HANDSHAKE", stg_failed_curl(35),
         STG_CATEGORY_CONNECT, NO, YES},
        {"tls-timeout", "TLS_TIMEOUT", stg_failed(STG_FAULT_TLS_TIMEOUT),
         STG_CATEGORY_CONNECT, ONE, YES},
        {"tls", "TLS_FAILURE", stg_failed_tls(42), STG_CATEGORY_CONNECT, NO,
         NO},
        {"egress", "EGRESS_FORBIDDEN", stg_failed(STG_FAULT_EGRESS),
         STG_CATEGORY_CONNECT, NO, NO},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(&rows[i]);
}

/* What this machine was short of; broadcast waits for it in the hub, which
 * counts no attempt. */
TEST(classify, retries_what_this_machine_was_short_of)
{
    const row rows[] = {
        {"no-files", "NO_FILES", stg_failed_errno(EMFILE), STG_CATEGORY_LOCAL,
         NO, YES},
        {"no-ports", "NO_PORTS", stg_failed_errno(EADDRNOTAVAIL),
         STG_CATEGORY_LOCAL, NO, YES},
        {"no-buffers", "NO_BUFFERS", stg_failed_errno(ENOBUFS),
         STG_CATEGORY_LOCAL, NO, YES},
        {"interrupted", "INTERRUPTED", stg_failed_errno(EINTR),
         STG_CATEGORY_LOCAL, NO, YES},
        {"proxy", "PROXY_UNAVAILABLE", stg_failed(STG_FAULT_PROXY),
         STG_CATEGORY_LOCAL, NO, YES},
    };
    const stg_policy any = policy_of("retry=any");
    const stg_policy local = policy_of("retry=local");

    for (size_t i = 0; i < COUNT(rows); i++) {
        check_row(&rows[i]);
        CHECK_INT(stg_policy_retries(&any, &rows[i].outcome, NULL), 0);
        CHECK_INT(stg_policy_retries(&local, &rows[i].outcome, NULL),
                  STG_ALWAYS);
    }
}

TEST(classify, retries_server_faults)
{
    const row rows[] = {
        {"500", "HTTP_500", stg_answered(500), STG_CATEGORY_SERVER, YES, YES},
        {"502", "HTTP_502", stg_answered(502), STG_CATEGORY_SERVER, YES, YES},
        {"503", "HTTP_503", stg_answered(503), STG_CATEGORY_SERVER, YES, YES},
        {"504", "HTTP_504", stg_answered(504), STG_CATEGORY_SERVER, YES, YES},
        {"timeout", "TIMEOUT", stg_failed_errno(ETIMEDOUT), STG_CATEGORY_SERVER,
         YES, YES},
        {"reset", "CONNECTION_RESET", stg_failed_errno(ECONNRESET),
         STG_CATEGORY_SERVER, YES, YES},
        {"protocol", "PROTOCOL_ERROR", stg_failed_curl(8), STG_CATEGORY_SERVER,
         YES, YES},
        {"501", "HTTP_501", stg_answered(501), STG_CATEGORY_SERVER, NO, YES},
        {"505", "HTTP_505", stg_answered(505), STG_CATEGORY_SERVER, NO, YES},
        {"508", "HTTP_508", stg_answered(508), STG_CATEGORY_SERVER, NO, YES},
        {"599", "HTTP_599", stg_answered(599), STG_CATEGORY_SERVER, NO, YES},
        {"5xx", "HTTP_5XX", stg_failed(STG_FAULT_5XX), STG_CATEGORY_SERVER, NO,
         YES},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(&rows[i]);
}

TEST(classify, gives_up_request_faults)
{
    static const int statuses[] = {300, 301, 302, 304, 307, 308, 399, 400, 401,
                                   403, 404, 405, 407, 409, 410, 412, 413, 418,
                                   422, 424, 426, 428, 431, 451, 499};
    const stg_policy by_default = policy_of("backend");
    const stg_policy broadcast = policy_of("broadcast");

    for (size_t i = 0; i < COUNT(statuses); i++) {
        stg_outcome o = stg_answered(statuses[i]);
        stg_fault family = statuses[i] < 400 ? STG_FAULT_3XX : STG_FAULT_4XX;

        CHECK_FROM(statuses[i], o.fault == family);
        CHECK_FROM(statuses[i],
                   stg_fault_about(o.fault)->category == STG_CATEGORY_REQUEST);
        CHECK_FROM(statuses[i], stg_policy_retries(&by_default, &o, NULL) == 0);
        CHECK_FROM(statuses[i], stg_policy_retries(&broadcast, &o, NULL) == 0);
    }
}

TEST(classify, retries_overload)
{
    const row rows[] = {
        {"429", "HTTP_429", stg_answered(429), STG_CATEGORY_OVERLOAD, YES, YES},
        {"408", "HTTP_408", stg_answered(408), STG_CATEGORY_OVERLOAD, YES, YES},
        {"425", "HTTP_425", stg_answered(425), STG_CATEGORY_OVERLOAD, YES, YES},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(&rows[i]);
}

TEST(classify, gives_up_our_own_doing)
{
    const row rows[] = {
        {"cancelled", "CANCELLED", stg_failed_curl(42), STG_CATEGORY_OWN, NO,
         NO},
        {"invalid", "INVALID", stg_failed_errno(EINVAL), STG_CATEGORY_OWN, NO,
         NO},
        {"circuit-open", "CIRCUIT_OPEN", stg_failed(STG_FAULT_CIRCUIT_OPEN),
         STG_CATEGORY_OWN, NO, NO},
        {"nested", "NESTED", stg_failed(STG_FAULT_NESTED), STG_CATEGORY_OWN, NO,
         NO},
        {"too-large", "TOO_LARGE", stg_failed(STG_FAULT_TOO_LARGE),
         STG_CATEGORY_OWN, NO, NO},
        {"loop", "LOOP", stg_failed(STG_FAULT_LOOP), STG_CATEGORY_OWN, NO, NO},
        {"message-expired", "MESSAGE_EXPIRED",
         stg_failed(STG_FAULT_MESSAGE_EXPIRED), STG_CATEGORY_OWN, NO, NO},
        {"template", "TEMPLATE", stg_failed(STG_FAULT_TEMPLATE),
         STG_CATEGORY_OWN, NO, NO},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(&rows[i]);
}

TEST(classify, retries_database_faults_where_a_repetition_can_help)
{
    const row rows[] = {
        {"deadlock", "DEADLOCK", stg_failed_sqlstate("40P01"),
         STG_CATEGORY_DATABASE, NO, YES},
        {"deadlock", "DEADLOCK", stg_failed_mysql(1213), STG_CATEGORY_DATABASE,
         NO, YES},
        {"serialization", "SERIALIZATION_FAILURE", stg_failed_sqlstate("40001"),
         STG_CATEGORY_DATABASE, NO, YES},
        {"lock-timeout", "LOCK_TIMEOUT", stg_failed_sqlstate("55P03"),
         STG_CATEGORY_DATABASE, NO, YES},
        {"lock-timeout", "LOCK_TIMEOUT", stg_failed_mysql(1205),
         STG_CATEGORY_DATABASE, NO, YES},
        {"too-many-connections", "TOO_MANY_CONNECTIONS",
         stg_failed_sqlstate("53300"), STG_CATEGORY_DATABASE, NO, YES},
        {"too-many-connections", "TOO_MANY_CONNECTIONS", stg_failed_mysql(1040),
         STG_CATEGORY_DATABASE, NO, YES},
        {"connection-lost", "CONNECTION_LOST", stg_failed_sqlstate("08006"),
         STG_CATEGORY_DATABASE, NO, YES},
        {"connection-lost", "CONNECTION_LOST", stg_failed_sqlstate("57P01"),
         STG_CATEGORY_DATABASE, NO, YES},
        {"connection-lost", "CONNECTION_LOST", stg_failed_mysql(2006),
         STG_CATEGORY_DATABASE, NO, YES},
        {"connection-lost", "CONNECTION_LOST", stg_failed_mysql(2013),
         STG_CATEGORY_DATABASE, NO, YES},
        {"connection-lost", "CONNECTION_LOST", stg_failed_mysql(2002),
         STG_CATEGORY_DATABASE, NO, YES},
        {"connection-lost", "CONNECTION_LOST", stg_failed_mysql(2003),
         STG_CATEGORY_DATABASE, NO, YES},
        {"connection-lost", "CONNECTION_LOST", stg_failed_mysql(1053),
         STG_CATEGORY_DATABASE, NO, YES},
        {"connection-lost", "CONNECTION_LOST", stg_failed_mysql(2055),
         STG_CATEGORY_DATABASE, NO, YES},
        {"connection-lost", "CONNECTION_LOST", stg_failed_mysql(4031),
         STG_CATEGORY_DATABASE, NO, YES},
        {"connection-lost", "CONNECTION_LOST", stg_failed_sqlstate("57P05"),
         STG_CATEGORY_DATABASE, NO, YES},
        {"connection-lost", "CONNECTION_LOST", stg_failed_sqlstate("25P03"),
         STG_CATEGORY_DATABASE, NO, YES},
        {"too-many-connections", "TOO_MANY_CONNECTIONS", stg_failed_mysql(1203),
         STG_CATEGORY_DATABASE, NO, YES},
        {"outcome-unknown", "OUTCOME_UNKNOWN", stg_failed_sqlstate("08007"),
         STG_CATEGORY_DATABASE, NO, YES},
        {"sqlstate:08P01", "SQLSTATE_08P01", stg_failed_sqlstate("08P01"),
         STG_CATEGORY_DATABASE, NO, NO},
        {"sqlstate:23505", "SQLSTATE_23505", stg_failed_sqlstate("23505"),
         STG_CATEGORY_DATABASE, NO, NO},
        {"sqlstate:57014", "SQLSTATE_57014", stg_failed_sqlstate("57014"),
         STG_CATEGORY_DATABASE, NO, NO},
        {"mysql:1062", "MYSQL_1062", stg_failed_mysql(1062),
         STG_CATEGORY_DATABASE, NO, NO},
        {"sql", "SQL_ERROR", stg_failed(STG_FAULT_SQL), STG_CATEGORY_DATABASE,
         NO, NO},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(&rows[i]);
    // Where nothing was connected to, nothing was sent.
    CHECK(stg_failed_mysql(2002).unsent && stg_failed_mysql(2003).unsent);
    CHECK(!stg_failed_mysql(2013).unsent && !stg_failed_mysql(2006).unsent);
}

TEST(classify, retries_rpc_faults_where_grpc_means_it)
{
    const row rows[] = {
        {"grpc:14", "GRPC_UNAVAILABLE", stg_failed_grpc(14, NULL),
         STG_CATEGORY_RPC, YES, YES},
        {"pushback", "GRPC_RESOURCE_EXHAUSTED", stg_failed_grpc(8, "200"),
         STG_CATEGORY_RPC, YES, YES},
        {"grpc:10", "GRPC_ABORTED", stg_failed_grpc(10, NULL), STG_CATEGORY_RPC,
         YES, YES},
        {"grpc:4", "GRPC_DEADLINE_EXCEEDED", stg_failed_grpc(4, NULL),
         STG_CATEGORY_RPC, YES, YES},
        {"grpc:8", "GRPC_RESOURCE_EXHAUSTED", stg_failed_grpc(8, NULL),
         STG_CATEGORY_RPC, NO, NO},
        {"grpc:1", "GRPC_CANCELLED", stg_failed_grpc(1, NULL), STG_CATEGORY_RPC,
         NO, NO},
        {"grpc:2", "GRPC_UNKNOWN", stg_failed_grpc(2, NULL), STG_CATEGORY_RPC,
         NO, NO},
        {"grpc:3", "GRPC_INVALID_ARGUMENT", stg_failed_grpc(3, NULL),
         STG_CATEGORY_RPC, NO, NO},
        {"grpc:5", "GRPC_NOT_FOUND", stg_failed_grpc(5, NULL), STG_CATEGORY_RPC,
         NO, NO},
        {"grpc:6", "GRPC_ALREADY_EXISTS", stg_failed_grpc(6, NULL),
         STG_CATEGORY_RPC, NO, NO},
        {"grpc:7", "GRPC_PERMISSION_DENIED", stg_failed_grpc(7, NULL),
         STG_CATEGORY_RPC, NO, NO},
        {"grpc:9", "GRPC_FAILED_PRECONDITION", stg_failed_grpc(9, NULL),
         STG_CATEGORY_RPC, NO, NO},
        {"grpc:11", "GRPC_OUT_OF_RANGE", stg_failed_grpc(11, NULL),
         STG_CATEGORY_RPC, NO, NO},
        {"grpc:12", "GRPC_UNIMPLEMENTED", stg_failed_grpc(12, NULL),
         STG_CATEGORY_RPC, NO, NO},
        {"grpc:13", "GRPC_INTERNAL", stg_failed_grpc(13, NULL),
         STG_CATEGORY_RPC, NO, NO},
        {"grpc:15", "GRPC_DATA_LOSS", stg_failed_grpc(15, NULL),
         STG_CATEGORY_RPC, NO, NO},
        {"grpc:16", "GRPC_UNAUTHENTICATED", stg_failed_grpc(16, NULL),
         STG_CATEGORY_RPC, NO, NO},
        {"grpc", "GRPC_ERROR", stg_failed(STG_FAULT_GRPC), STG_CATEGORY_RPC, NO,
         NO},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(&rows[i]);
}

/* What the brokers and stores say, one of each fault. */
TEST(classify, retries_codes_of_redis_amqp_and_kafka_that_pass)
{
    const row rows[] = {
        {"redis:LOADING", "REDIS_LOADING", stg_failed_redis("LOADING"),
         STG_CATEGORY_RPC, YES, YES},
        {"redis:WRONGTYPE", "REDIS_WRONGTYPE", stg_failed_redis("WRONGTYPE"),
         STG_CATEGORY_RPC, NO, NO},
        {"too-many-connections", "TOO_MANY_CONNECTIONS",
         stg_failed_redis("ERR max number of clients reached"),
         STG_CATEGORY_DATABASE, NO, YES},
        {"amqp:541", "AMQP_541", stg_failed_amqp(541), STG_CATEGORY_RPC, YES,
         YES},
        {"amqp:320", "AMQP_320", stg_failed_amqp(320), STG_CATEGORY_SERVER, YES,
         YES},
        {"amqp:404", "AMQP_404", stg_failed_amqp(404), STG_CATEGORY_RPC, NO,
         NO},
        {"amqp:connection:forced", "AMQP_CONNECTION_FORCED",
         stg_failed_amqp_condition("amqp:connection:forced"),
         STG_CATEGORY_SERVER, YES, YES},
        {"amqp:not-found", "AMQP_NOT_FOUND",
         stg_failed_amqp_condition("amqp:not-found"), STG_CATEGORY_RPC, NO, NO},
        {"kafka:6", "KAFKA_NOT_LEADER_OR_FOLLOWER", stg_failed_kafka(6),
         STG_CATEGORY_RPC, YES, YES},
        {"kafka:7", "KAFKA_REQUEST_TIMED_OUT", stg_failed_kafka(7),
         STG_CATEGORY_SERVER, YES, YES},
        {"kafka:10", "KAFKA_MESSAGE_TOO_LARGE", stg_failed_kafka(10),
         STG_CATEGORY_RPC, NO, NO},
        {"kafka:-195", "KAFKA__TRANSPORT", stg_failed_kafka(-195),
         STG_CATEGORY_SERVER, YES, YES},
        {"kafka:-184", "KAFKA__QUEUE_FULL", stg_failed_kafka(-184),
         STG_CATEGORY_LOCAL, NO, YES},
        {"transient", "TRANSIENT", stg_failed(STG_FAULT_TRANSIENT),
         STG_CATEGORY_RPC, YES, YES},
        {"rejected", "REJECTED", stg_failed(STG_FAULT_REJECTED),
         STG_CATEGORY_RPC, NO, NO},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_row(&rows[i]);
}

/* Each link of a code of Redis: the code, the name, the category. */
TEST(classify, lets_policies_name_a_code_its_fault_and_its_category)
{
    static const struct {
        const char *text;
        uint16_t retries;
    } rows[] = {
        {"retry=redis:LOADING", STG_ALWAYS},
        {"retry=redis:BUSY", NO},
        {"retry=transient", STG_ALWAYS},
        {"retry=rpc", STG_ALWAYS},
        {"retry=any", STG_ALWAYS},
        {"retry=rejected", NO},
        {"retry=default never=LOADING", NO},
        {"retry=default once=transient", ONE},
        {"retry=grpc", NO},
    };
    const stg_outcome loading = stg_failed_redis("LOADING");

    for (size_t i = 0; i < COUNT(rows); i++) {
        stg_policy p = policy_of(rows[i].text);

        CHECK_INT(stg_policy_retries(&p, &loading, NULL), rows[i].retries);
    }
}

TEST(classify, gives_up_exits_and_unclassified_errors)
{
    const row rows[] = {
        {"exit 1", "EXIT_1", stg_failed_exit(1), STG_CATEGORY_OTHER, NO, NO},
        {"error", "ERROR", stg_failed(STG_FAULT_ERROR), STG_CATEGORY_OTHER, NO,
         NO},
    };
    const stg_policy p = policy_of("retry=error,exit");

    for (size_t i = 0; i < COUNT(rows); i++) {
        check_row(&rows[i]);
        CHECK_INT(stg_policy_retries(&p, &rows[i].outcome, NULL), STG_ALWAYS);
    }
}

/* What we did ourselves is never the remote's. */
TEST(classify, any_is_nothing_of_our_own)
{
    const stg_policy p = policy_of("retry=any");

    for (int fault = 1; fault < STG_FAULT_COUNT; fault++) {
        stg_outcome o = stg_failed((stg_fault)fault);
        stg_category category = stg_fault_about(o.fault)->category;
        bool is_ours = category == STG_CATEGORY_OWN ||
                       category == STG_CATEGORY_LOCAL ||
                       o.fault == STG_FAULT_EGRESS;

        CHECK_INT(stg_policy_retries(&p, &o, NULL), is_ours ? 0 : STG_ALWAYS);
    }
}

TEST(classify, retries_all_but_gone_for_a_webhook)
{
    const stg_policy p = policy_of("webhook");

    for (int status = 300; status < 600; status++) {
        stg_outcome o = stg_answered(status);

        CHECK_FROM(status, stg_policy_retries(&p, &o, NULL) ==
                               (status == 410 ? 0 : STG_ALWAYS));
    }
}

/* -- each source */

typedef struct mapping {
    int code;
    stg_fault fault;
} mapping;

static void check_outcome(stg_outcome o, stg_fault fault, stg_code_kind kind,
                          uint32_t code)
{
    CHECK_STR(stg_fault_about(o.fault)->name, stg_fault_about(fault)->name);
    CHECK_INT(o.fault, fault);
    CHECK_INT(o.code_kind, kind);
    CHECK_U64(o.code, code);
    CHECK(!o.permanent && !o.unsent && o.delay == 0);
}

TEST(classify, keeps_success_and_what_you_classified_yourself)
{
    check_outcome(stg_ok(), STG_FAULT_NONE, STG_CODE_NONE, 0);
    for (unsigned fault = 1; fault < STG_FAULT_COUNT; fault++)
        check_outcome(stg_failed((stg_fault)fault), (stg_fault)fault,
                      STG_CODE_NONE, 0);
}

/* A failure is never taken for a success. */
TEST(classify, takes_what_is_no_fault_for_an_error)
{
    static const int numbers[] = {STG_FAULT_NONE, STG_FAULT_COUNT, 1000, -1,
                                  INT32_MIN};

    for (size_t i = 0; i < COUNT(numbers); i++)
        check_outcome(stg_failed((stg_fault)numbers[i]), STG_FAULT_ERROR,
                      STG_CODE_NONE, 0);
}

TEST(classify, sorts_errno_values)
{
    static const mapping rows[] = {
        {EAGAIN, STG_FAULT_TIMEOUT},
        {EWOULDBLOCK, STG_FAULT_TIMEOUT},
        {ETIMEDOUT, STG_FAULT_TIMEOUT},
        {EINPROGRESS, STG_FAULT_CONNECT_TIMEOUT},
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
        {EMFILE, STG_FAULT_NO_FILES},
        {ENFILE, STG_FAULT_NO_FILES},
        {EADDRNOTAVAIL, STG_FAULT_NO_PORTS},
        {ENOBUFS, STG_FAULT_NO_BUFFERS},
        {ENOMEM, STG_FAULT_NO_BUFFERS},
        {EINTR, STG_FAULT_INTERRUPTED},
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
        // Nothing of a remote.
        {0, STG_FAULT_ERROR},
        {-1, STG_FAULT_ERROR},
        {EACCES, STG_FAULT_ERROR},
        {ENOENT, STG_FAULT_ERROR},
        {INT32_MAX, STG_FAULT_ERROR},
        {INT32_MIN, STG_FAULT_ERROR},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_outcome(stg_failed_errno(rows[i].code), rows[i].fault,
                      STG_CODE_ERRNO, (uint32_t)rows[i].code);
}

TEST(classify, reads_no_errno_and_leaves_it)
{
    errno = ECONNREFUSED;
    check_outcome(stg_failed_errno(EPIPE), STG_FAULT_RESET, STG_CODE_ERRNO,
                  (uint32_t)EPIPE);
    CHECK_INT(errno, ECONNREFUSED);
    errno = 0;
}

TEST(classify, sorts_resolver_codes)
{
    static const mapping rows[] = {
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
        {EAI_SYSTEM, STG_FAULT_ERROR},
        {EAI_MEMORY, STG_FAULT_ERROR},
        {0, STG_FAULT_ERROR},
        {12345, STG_FAULT_ERROR},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_outcome(stg_failed_resolver(rows[i].code), rows[i].fault,
                      STG_CODE_RESOLVER, (uint32_t)rows[i].code);
}

TEST(classify, sorts_tls_alerts)
{
    for (int alert = 0; alert < 256; alert++) {
        stg_fault fault = STG_FAULT_TLS;

        switch (alert) {
        case 0:  // close_notify
        case 90: // user_canceled
            fault = STG_FAULT_RESET;
            break;
        case 10: // unexpected_message
        case 20: // bad_record_mac
        case 22: // record_overflow
        case 50: // decode_error
        case 80: // internal_error
            fault = STG_FAULT_PROTOCOL;
            break;
        default: // a handshake that was refused
            break;
        }
        check_outcome(stg_failed_tls(alert), fault, STG_CODE_TLS,
                      (uint32_t)alert);
    }
    check_outcome(stg_failed_tls(-1), STG_FAULT_TLS, STG_CODE_NONE, 0);
    check_outcome(stg_failed_tls(INT32_MIN), STG_FAULT_TLS, STG_CODE_NONE, 0);
}

TEST(classify, sorts_curlcodes)
{
    static const mapping rows[] = {
        {1, STG_FAULT_INVALID},        {3, STG_FAULT_INVALID},
        {4, STG_FAULT_INVALID},        {43, STG_FAULT_INVALID},
        {48, STG_FAULT_INVALID},       {5, STG_FAULT_DNS_TEMPORARY},
        {6, STG_FAULT_DNS_TEMPORARY},  {7, STG_FAULT_REFUSED},
        {28, STG_FAULT_TIMEOUT},       {42, STG_FAULT_CANCELLED},
        {52, STG_FAULT_RESET},         {55, STG_FAULT_RESET},
        {56, STG_FAULT_RESET},         {8, STG_FAULT_PROTOCOL},
        {16, STG_FAULT_PROTOCOL},      {18, STG_FAULT_PROTOCOL},
        {61, STG_FAULT_PROTOCOL},      {92, STG_FAULT_PROTOCOL},
        {95, STG_FAULT_PROTOCOL},      {96, STG_FAULT_PROTOCOL},
        {35, STG_FAULT_TLS_HANDSHAKE}, {51, STG_FAULT_TLS},
        {53, STG_FAULT_TLS},           {54, STG_FAULT_TLS},
        {58, STG_FAULT_TLS},           {59, STG_FAULT_TLS},
        {60, STG_FAULT_TLS},           {64, STG_FAULT_TLS},
        {66, STG_FAULT_TLS},           {77, STG_FAULT_TLS},
        {80, STG_FAULT_RESET},         {82, STG_FAULT_TLS},
        {83, STG_FAULT_TLS},           {90, STG_FAULT_TLS},
        {91, STG_FAULT_TLS},           {98, STG_FAULT_TLS},
    };

    check_outcome(stg_failed_curl(0), STG_FAULT_NONE, STG_CODE_NONE, 0);
    for (int code = 1; code < 200; code++) {
        stg_fault fault = STG_FAULT_ERROR;

        for (size_t i = 0; i < COUNT(rows); i++)
            if (rows[i].code == code)
                fault = rows[i].fault;
        check_outcome(stg_failed_curl(code), fault, STG_CODE_CURL,
                      (uint32_t)code);
    }
    check_outcome(stg_failed_curl(-1), STG_FAULT_ERROR, STG_CODE_CURL,
                  UINT32_MAX);
}

TEST(classify, sorts_sqlstates)
{
    static const struct {
        const char *sqlstate;
        stg_fault fault;
    } rows[] = {
        {"00000", STG_FAULT_NONE},
        {"00ABC", STG_FAULT_NONE},
        {"01000", STG_FAULT_NONE},
        {"01P01", STG_FAULT_NONE},
        {"02000", STG_FAULT_NONE},
        {"03000", STG_FAULT_SQL},
        {"07000", STG_FAULT_SQL},
        {"08000", STG_FAULT_CONNECTION_LOST},
        {"08001", STG_FAULT_CONNECTION_LOST},
        {"08006", STG_FAULT_CONNECTION_LOST},
        {"08007", STG_FAULT_OUTCOME_UNKNOWN},
        {"08P01", STG_FAULT_SQL},
        {"08p01", STG_FAULT_SQL},
        {"25P02", STG_FAULT_SQL},
        {"25P03", STG_FAULT_CONNECTION_LOST},
        {"57P05", STG_FAULT_CONNECTION_LOST},
        {"09000", STG_FAULT_SQL},
        {"40000", STG_FAULT_SQL},
        {"40001", STG_FAULT_SERIALIZATION},
        {"40002", STG_FAULT_SQL},
        {"40003", STG_FAULT_SQL},
        {"40P01", STG_FAULT_DEADLOCK},
        {"40p01", STG_FAULT_DEADLOCK},
        {"40P02", STG_FAULT_SQL},
        {"53000", STG_FAULT_SQL},
        {"53300", STG_FAULT_TOO_MANY_CONNECTIONS},
        {"53400", STG_FAULT_SQL},
        {"55006", STG_FAULT_SQL},
        {"55P03", STG_FAULT_LOCK_TIMEOUT},
        {"55P04", STG_FAULT_SQL},
        {"57014", STG_FAULT_SQL},
        {"57P00", STG_FAULT_SQL},
        {"57P01", STG_FAULT_CONNECTION_LOST},
        {"57P02", STG_FAULT_CONNECTION_LOST},
        {"57P03", STG_FAULT_CONNECTION_LOST},
        {"57P04", STG_FAULT_SQL},
        {"23505", STG_FAULT_SQL},
        {"XX000", STG_FAULT_SQL},
        {"ZZZZZ", STG_FAULT_SQL},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        check_outcome(stg_failed_sqlstate(rows[i].sqlstate), rows[i].fault,
                      STG_CODE_SQLSTATE, stg_sqlstate_pack(rows[i].sqlstate));
}

TEST(classify, takes_what_is_no_sqlstate_for_an_error)
{
    static const char *const texts[] = {NULL,    "",      "0",      "0000",
                                        "00",    "08",    "400011", "40-01",
                                        "4000 ", " 40001"};

    for (size_t i = 0; i < COUNT(texts); i++)
        check_outcome(stg_failed_sqlstate(texts[i]), STG_FAULT_ERROR,
                      STG_CODE_NONE, 0);
}

TEST(classify, sorts_mysql_errors)
{
    static const struct {
        unsigned error;
        stg_fault fault;
    } rows[] = {
        {1040, STG_FAULT_TOO_MANY_CONNECTIONS},
        {1205, STG_FAULT_LOCK_TIMEOUT},
        {1213, STG_FAULT_DEADLOCK},
        {2006, STG_FAULT_CONNECTION_LOST},
        {2013, STG_FAULT_CONNECTION_LOST},
        {1, STG_FAULT_SQL},
        {1062, STG_FAULT_SQL},
        {1064, STG_FAULT_SQL},
        {1206, STG_FAULT_SQL},
        {3572, STG_FAULT_SQL},
        {UINT32_MAX, STG_FAULT_SQL},
        {UINT32_MAX - 1205 + 1, STG_FAULT_SQL},
    };

    check_outcome(stg_failed_mysql(0), STG_FAULT_NONE, STG_CODE_NONE, 0);
    for (size_t i = 0; i < COUNT(rows); i++)
        check_outcome(stg_failed_mysql(rows[i].error), rows[i].fault,
                      STG_CODE_MYSQL, rows[i].error);
}

TEST(classify, sorts_replies_of_redis)
{
    static const struct {
        const char *reply;
        stg_fault fault;
    } rows[] = {
        {"ERR unknown command 'FOO'", STG_FAULT_REJECTED},
        {"LOADING Redis is loading the dataset in memory", STG_FAULT_TRANSIENT},
        {"TRYAGAIN Multiple keys request during rehashing of slot",
         STG_FAULT_TRANSIENT},
        {"CLUSTERDOWN The cluster is down", STG_FAULT_TRANSIENT},
        {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is "
         "set to 'no'.",
         STG_FAULT_TRANSIENT},
        {"BUSY Redis is busy running a script.", STG_FAULT_TRANSIENT},
        {"READONLY You can't write against a read only replica.",
         STG_FAULT_TRANSIENT},
        {"NOREPLICAS Not enough good replicas to write.", STG_FAULT_TRANSIENT},
        {"UNBLOCKED force unblock from blocking operation",
         STG_FAULT_TRANSIENT},
        {"MOVED 3999 127.0.0.1:6381", STG_FAULT_REJECTED},
        {"ASK 3999 127.0.0.1:6381", STG_FAULT_REJECTED},
        {"CROSSSLOT Keys in request don't hash to the same slot",
         STG_FAULT_REJECTED},
        {"WRONGTYPE Operation against a key", STG_FAULT_REJECTED},
        {"EXECABORT Transaction discarded", STG_FAULT_REJECTED},
        {"NOSCRIPT No matching script", STG_FAULT_REJECTED},
        {"NOTBUSY No scripts in execution right now.", STG_FAULT_REJECTED},
        {"UNKILLABLE Sorry the script", STG_FAULT_REJECTED},
        {"NOAUTH Authentication required.", STG_FAULT_REJECTED},
        {"WRONGPASS invalid username-password pair", STG_FAULT_REJECTED},
        {"NOPERM this user has no permissions", STG_FAULT_REJECTED},
        {"DENIED Redis is running in protected mode", STG_FAULT_REJECTED},
        {"NOPROTO unsupported protocol version", STG_FAULT_REJECTED},
        {"OOM command not allowed when used memory > 'maxmemory'.",
         STG_FAULT_REJECTED},
        {"MISCONF Redis is configured to save RDB snapshots",
         STG_FAULT_REJECTED},
        {"IOERR error or timeout writing to target instance",
         STG_FAULT_REJECTED},
        {"BUSYKEY Target key name already exists.", STG_FAULT_REJECTED},
        {"BUSYGROUP Consumer Group name already exists", STG_FAULT_REJECTED},
        {"NOGROUP No such key or consumer group", STG_FAULT_REJECTED},
    };

    for (uint32_t i = 0; i < COUNT(rows); i++) {
        stg_outcome o = stg_failed_redis(rows[i].reply);

        // It was answered instead of being carried out.
        CHECK_INT(o.unsent, rows[i].fault == STG_FAULT_TRANSIENT);
        o.unsent = false;
        check_outcome(o, rows[i].fault, STG_CODE_REDIS, i + 1);
    }
}

TEST(classify, reads_the_first_word_of_a_reply)
{
    static const char *const loading[] = {"LOADING", "-LOADING",
                                          "-LOADING Redis is loading\r\n",
                                          "LOADING\r\n", "LOADING\n"};
    static const char *const others[] = {"LOADINGS", "LOAD", "loading",
                                         "MYERR LOADING", "BUSYBODY"};
    static const char *const nothing[] = {NULL, "", "-", " LOADING", "\r\n"};
    stg_outcome full = stg_failed_redis("-ERR max number of clients reached");

    for (size_t i = 0; i < COUNT(loading); i++)
        CHECK_INT(stg_failed_redis(loading[i]).code, 2);
    for (size_t i = 0; i < COUNT(others); i++)
        check_outcome(stg_failed_redis(others[i]), STG_FAULT_REJECTED,
                      STG_CODE_NONE, 0);
    for (size_t i = 0; i < COUNT(nothing); i++)
        check_outcome(stg_failed_redis(nothing[i]), STG_FAULT_ERROR,
                      STG_CODE_NONE, 0);
    CHECK(full.unsent);
    full.unsent = false;
    check_outcome(full, STG_FAULT_TOO_MANY_CONNECTIONS, STG_CODE_NONE, 0);
}

TEST(classify, sorts_reply_codes_of_amqp)
{
    static const mapping rows[] = {
        {313, STG_FAULT_TRANSIENT}, {320, STG_FAULT_RESET},
        {405, STG_FAULT_TRANSIENT}, {506, STG_FAULT_TRANSIENT},
        {541, STG_FAULT_TRANSIENT},
    };
    static const int others[] = {INT32_MIN, -1, 0, 100, 199, 201, 299, 600};

    check_outcome(stg_failed_amqp(200), STG_FAULT_NONE, STG_CODE_NONE, 0);
    for (int code = 300; code <= 599; code++) {
        stg_fault fault = STG_FAULT_REJECTED;

        for (size_t i = 0; i < COUNT(rows); i++)
            if (rows[i].code == code)
                fault = rows[i].fault;
        check_outcome(stg_failed_amqp(code), fault, STG_CODE_AMQP,
                      (uint32_t)code);
    }
    for (size_t i = 0; i < COUNT(others); i++)
        check_outcome(stg_failed_amqp(others[i]), STG_FAULT_ERROR,
                      STG_CODE_NONE, 0);
}

TEST(classify, sorts_conditions_of_amqp)
{
    static const struct {
        const char *condition;
        stg_fault fault;
    } rows[] = {
        {"amqp:internal-error", STG_FAULT_TRANSIENT},
        {"amqp:not-found", STG_FAULT_REJECTED},
        {"amqp:unauthorized-access", STG_FAULT_REJECTED},
        {"amqp:decode-error", STG_FAULT_REJECTED},
        {"amqp:resource-limit-exceeded", STG_FAULT_REJECTED},
        {"amqp:not-allowed", STG_FAULT_REJECTED},
        {"amqp:invalid-field", STG_FAULT_REJECTED},
        {"amqp:not-implemented", STG_FAULT_REJECTED},
        {"amqp:resource-locked", STG_FAULT_TRANSIENT},
        {"amqp:precondition-failed", STG_FAULT_REJECTED},
        {"amqp:resource-deleted", STG_FAULT_REJECTED},
        {"amqp:illegal-state", STG_FAULT_REJECTED},
        {"amqp:frame-size-too-small", STG_FAULT_REJECTED},
        {"amqp:connection:forced", STG_FAULT_RESET},
        {"amqp:connection:framing-error", STG_FAULT_REJECTED},
        {"amqp:connection:redirect", STG_FAULT_REJECTED},
        {"amqp:session:window-violation", STG_FAULT_REJECTED},
        {"amqp:session:errant-link", STG_FAULT_REJECTED},
        {"amqp:session:handle-in-use", STG_FAULT_REJECTED},
        {"amqp:session:unattached-handle", STG_FAULT_REJECTED},
        {"amqp:link:detach-forced", STG_FAULT_TRANSIENT},
        {"amqp:link:transfer-limit-exceeded", STG_FAULT_REJECTED},
        {"amqp:link:message-size-exceeded", STG_FAULT_REJECTED},
        {"amqp:link:redirect", STG_FAULT_REJECTED},
        {"amqp:link:stolen", STG_FAULT_REJECTED},
        {"amqp:transaction:unknown-id", STG_FAULT_REJECTED},
        {"amqp:transaction:rollback", STG_FAULT_TRANSIENT},
        {"amqp:transaction:timeout", STG_FAULT_TRANSIENT},
        {"com.microsoft:server-busy", STG_FAULT_TRANSIENT},
        {"com.microsoft:timeout", STG_FAULT_TIMEOUT},
    };

    for (uint32_t i = 0; i < COUNT(rows); i++)
        check_outcome(stg_failed_amqp_condition(rows[i].condition),
                      rows[i].fault, STG_CODE_AMQP1, i + 1);
    check_outcome(stg_failed_amqp_condition("com.example:own"),
                  STG_FAULT_REJECTED, STG_CODE_NONE, 0);
    check_outcome(stg_failed_amqp_condition("amqp:not-foun"),
                  STG_FAULT_REJECTED, STG_CODE_NONE, 0);
    check_outcome(stg_failed_amqp_condition(""), STG_FAULT_ERROR, STG_CODE_NONE,
                  0);
    check_outcome(stg_failed_amqp_condition(NULL), STG_FAULT_ERROR,
                  STG_CODE_NONE, 0);
}

/* The column "Retriable" of the table of error codes of Kafka's protocol. */
TEST(classify, retries_what_kafka_says_is_retriable)
{
    static const mapping retriable[] = {
        {2, STG_FAULT_PROTOCOL},    {3, STG_FAULT_TRANSIENT},
        {5, STG_FAULT_TRANSIENT},   {6, STG_FAULT_TRANSIENT},
        {7, STG_FAULT_TIMEOUT},     {9, STG_FAULT_TRANSIENT},
        {13, STG_FAULT_RESET},      {14, STG_FAULT_TRANSIENT},
        {15, STG_FAULT_TRANSIENT},  {16, STG_FAULT_TRANSIENT},
        {19, STG_FAULT_TRANSIENT},  {20, STG_FAULT_TRANSIENT},
        {41, STG_FAULT_TRANSIENT},  {51, STG_FAULT_TRANSIENT},
        {56, STG_FAULT_TRANSIENT},  {70, STG_FAULT_TRANSIENT},
        {71, STG_FAULT_TRANSIENT},  {72, STG_FAULT_TRANSIENT},
        {74, STG_FAULT_TRANSIENT},  {75, STG_FAULT_TRANSIENT},
        {78, STG_FAULT_TRANSIENT},  {80, STG_FAULT_TRANSIENT},
        {83, STG_FAULT_TRANSIENT},  {84, STG_FAULT_TRANSIENT},
        {88, STG_FAULT_TRANSIENT},  {89, STG_FAULT_TRANSIENT},
        {100, STG_FAULT_TRANSIENT}, {103, STG_FAULT_TRANSIENT},
        {106, STG_FAULT_TRANSIENT}, {122, STG_FAULT_TRANSIENT},
        {123, STG_FAULT_TRANSIENT}, {133, STG_FAULT_TRANSIENT},
    };
    static const char *const texts[] = {"retry=default", "broadcast"};

    check_outcome(stg_failed_kafka(0), STG_FAULT_NONE, STG_CODE_NONE, 0);
    for (int code = -1; code <= 200; code += code == -1 ? 2 : 1) {
        stg_outcome o = stg_failed_kafka(code);
        stg_fault fault = STG_FAULT_REJECTED;

        for (size_t i = 0; i < COUNT(retriable); i++)
            if (retriable[i].code == code)
                fault = retriable[i].fault;
        check_outcome(o, fault, STG_CODE_KAFKA, (uint32_t)code);
        for (size_t i = 0; i < COUNT(texts); i++) {
            stg_policy p = policy_of(texts[i]);

            CHECK_INT(stg_policy_retries(&p, &o, NULL),
                      fault == STG_FAULT_REJECTED ? 0 : STG_ALWAYS);
        }
    }
}

TEST(classify, sorts_what_librdkafka_says_itself)
{
    static const mapping rows[] = {
        {-199, STG_FAULT_PROTOCOL},    {-197, STG_FAULT_CANCELLED},
        {-196, STG_FAULT_ERROR},       {-195, STG_FAULT_RESET},
        {-194, STG_FAULT_NO_BUFFERS},  {-193, STG_FAULT_DNS_TEMPORARY},
        {-192, STG_FAULT_TIMEOUT},     {-189, STG_FAULT_ERROR},
        {-187, STG_FAULT_RESET},       {-186, STG_FAULT_INVALID},
        {-185, STG_FAULT_TIMEOUT},     {-184, STG_FAULT_NO_BUFFERS},
        {-183, STG_FAULT_TRANSIENT},   {-181, STG_FAULT_TLS_HANDSHAKE},
        {-180, STG_FAULT_TRANSIENT},   {-177, STG_FAULT_TRANSIENT},
        {-166, STG_FAULT_TIMEOUT},     {-164, STG_FAULT_TRANSIENT},
        {-163, STG_FAULT_INTERRUPTED}, {-158, STG_FAULT_PROTOCOL},
        {-155, STG_FAULT_PROTOCOL},    {-153, STG_FAULT_TRANSIENT},
        {-152, STG_FAULT_CANCELLED},   {-151, STG_FAULT_CANCELLED},
        {-143, STG_FAULT_ERROR},       {-137, STG_FAULT_CANCELLED},
    };

    for (int code = -1000; code <= -2; code++) {
        stg_fault fault = STG_FAULT_REJECTED;

        for (size_t i = 0; i < COUNT(rows); i++)
            if (rows[i].code == code)
                fault = rows[i].fault;
        check_outcome(stg_failed_kafka(code), fault, STG_CODE_KAFKA,
                      (uint32_t)code);
    }
}

TEST(classify, sorts_grpc_statuses)
{
    check_outcome(stg_failed_grpc(0, NULL), STG_FAULT_NONE, STG_CODE_NONE, 0);
    check_outcome(stg_failed_grpc(0, "100"), STG_FAULT_NONE, STG_CODE_NONE, 0);
    for (int code = 1; code <= 16; code++)
        check_outcome(stg_failed_grpc(code, NULL), STG_FAULT_GRPC,
                      STG_CODE_GRPC, (uint32_t)code);
    for (int i = 0; i < 2; i++) {
        stg_outcome o = stg_failed_grpc(i == 0 ? 17 : -1, "100");

        check_outcome(o, STG_FAULT_ERROR, STG_CODE_NONE, 0);
        CHECK_U64(o.delay, 0);
    }
}

/* gRFC A6: a number is a delay, anything else means "do not retry". */
TEST(classify, reads_a_grpc_pushback)
{
    static const struct {
        const char *pushback;
        bool is_permanent;
        stg_ns delay;
    } rows[] = {
        {"0", false, 0},
        {"250", false, 250 * STG_MS},
        {" 250 ", false, 250 * STG_MS},
        {"99999999999999999999999", false, STG_NEVER},
        {"", true, 0},
        {"-1", true, 0},
        {"1.5", true, 0},
        {"soon", true, 0},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        stg_outcome exhausted = stg_failed_grpc(8, rows[i].pushback);
        stg_outcome unavailable = stg_failed_grpc(14, rows[i].pushback);

        CHECK_INT(exhausted.fault, STG_FAULT_PUSHBACK);
        CHECK_INT(unavailable.fault, STG_FAULT_GRPC);
        CHECK_INT(exhausted.code_kind, STG_CODE_GRPC);
        CHECK_U64(exhausted.code, 8);
        CHECK_U64(unavailable.code, 14);
        CHECK_FROM(i, exhausted.permanent == rows[i].is_permanent);
        CHECK_FROM(i, unavailable.permanent == rows[i].is_permanent);
        CHECK_U64(exhausted.delay, rows[i].delay);
        CHECK_U64(unavailable.delay, rows[i].delay);
    }
}

TEST(classify, sorts_exit_codes)
{
    check_outcome(stg_failed_exit(0), STG_FAULT_NONE, STG_CODE_NONE, 0);
    for (int code = 1; code < 256; code++) {
        stg_outcome o = stg_failed_exit(code);

        CHECK_FROM(code, o.permanent == (code == 126 || code == 127));
        o.permanent = false;
        check_outcome(o, STG_FAULT_EXIT, STG_CODE_EXIT, (uint32_t)code);
    }
}

TEST(classify, sorts_http_statuses)
{
    for (int status = 200; status < 300; status++)
        check_outcome(stg_answered(status), STG_FAULT_NONE, STG_CODE_NONE, 0);
    for (int status = 300; status < 600; status++) {
        stg_fault fault = status == 408 || status == 425 || status == 429
                              ? STG_FAULT_OVERLOAD
                          : status < 400 ? STG_FAULT_3XX
                          : status < 500 ? STG_FAULT_4XX
                                         : STG_FAULT_5XX;

        check_outcome(stg_answered(status), fault, STG_CODE_STATUS,
                      (uint32_t)status);
    }
}

TEST(classify, takes_what_is_no_final_status_for_a_broken_protocol)
{
    static const int statuses[] = {100, 101, 103, 199};
    static const int others[] = {0,   1,   99,        -200,
                                 600, 999, INT32_MAX, INT32_MIN};

    for (size_t i = 0; i < COUNT(statuses); i++)
        check_outcome(stg_answered(statuses[i]), STG_FAULT_PROTOCOL,
                      STG_CODE_NONE, 0);
    for (size_t i = 0; i < COUNT(others); i++) // not an HTTP status
        check_outcome(stg_answered(others[i]), STG_FAULT_INVALID, STG_CODE_NONE,
                      0);
}

TEST(classify, keeps_the_delay_of_an_answer)
{
    stg_outcome o = stg_answered_after(503, 7 * STG_S);

    CHECK_U64(o.delay, 7 * STG_S);
    o.delay = 0;
    check_outcome(o, STG_FAULT_5XX, STG_CODE_STATUS, 503);
    o = stg_answered_after(429, STG_NEVER);
    CHECK_U64(o.delay, STG_NEVER);
    CHECK_INT(o.fault, STG_FAULT_OVERLOAD);
}
