/* What an outcome is called, in policies and in records. */
#include <stagger/outcome.h>

#include <stdio.h>

#include "tests/harness.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static stg_outcome coded(stg_fault fault, stg_code_kind kind, uint32_t code)
{
    return (stg_outcome){.fault = fault, .code_kind = kind, .code = code};
}

static void check_words(stg_outcome o, const char *name, const char *cause)
{
    char text[STG_CAUSE_MAX];

    CHECK_STR(stg_outcome_name(&o, text), name);
    CHECK_STR(stg_outcome_cause(&o, text), cause);
}

TEST(outcome, is_told_by_its_code_where_many_share_the_fault)
{
    check_words(stg_answered(503), "503", "HTTP_503");
    check_words(stg_answered(301), "301", "HTTP_301");
    check_words(stg_answered(404), "404", "HTTP_404");
    check_words(stg_answered(429), "429", "HTTP_429");
    check_words(stg_failed_sqlstate("23505"), "sqlstate:23505",
                "SQLSTATE_23505");
    check_words(stg_failed_sqlstate("22p02"), "sqlstate:22P02",
                "SQLSTATE_22P02");
    check_words(stg_failed_sqlstate("0A000"), "sqlstate:0A000",
                "SQLSTATE_0A000");
    check_words(stg_failed_mysql(1062), "mysql:1062", "MYSQL_1062");
    check_words(stg_failed_grpc(14, NULL), "grpc:14", "GRPC_UNAVAILABLE");
    check_words(stg_failed_redis("LOADING Redis is loading"), "redis:LOADING",
                "REDIS_LOADING");
    check_words(stg_failed_amqp(320), "amqp:320", "AMQP_320");
    check_words(stg_failed_amqp_condition("amqp:link:detach-forced"),
                "amqp:link:detach-forced", "AMQP_LINK_DETACH_FORCED");
    check_words(stg_failed_amqp_condition("com.microsoft:server-busy"),
                "com.microsoft:server-busy", "COM_MICROSOFT_SERVER_BUSY");
    check_words(stg_failed_kafka(7), "kafka:7", "KAFKA_REQUEST_TIMED_OUT");
    check_words(stg_failed_kafka(-195), "kafka:-195", "KAFKA__TRANSPORT");
    check_words(stg_failed_kafka(-999), "kafka:-999", "KAFKA_-999");
    check_words(stg_failed_kafka(INT32_MIN), "kafka:-2147483648",
                "KAFKA_-2147483648");
    check_words(stg_failed_kafka(65), "kafka:65",
                "KAFKA_DELEGATION_TOKEN_AUTHORIZATION_FAILED");
    check_words(stg_failed_exit(3), "exit 3", "EXIT_3");
    check_words(stg_failed_exit(127), "exit 127", "EXIT_127");
}

TEST(outcome, is_told_by_its_fault_where_that_says_more)
{
    check_words(stg_ok(), "ok", "OK");
    check_words(stg_answered(200), "ok", "OK");
    check_words(stg_failed_sqlstate("00000"), "ok", "OK");
    check_words(stg_failed_sqlstate("40P01"), "deadlock", "DEADLOCK");
    check_words(stg_failed_mysql(1213), "deadlock", "DEADLOCK");
    check_words(stg_failed_curl(7), "refused", "CONNECTION_REFUSED");
    check_words(stg_failed_curl(999), "error", "ERROR");
    check_words(stg_failed_tls(42), "tls", "TLS_FAILURE");
    check_words(stg_failed_grpc(8, "100"), "pushback",
                "GRPC_RESOURCE_EXHAUSTED");
    check_words(stg_answered(100), "protocol", "PROTOCOL_ERROR");
    check_words(stg_answered(99), "invalid", "INVALID");
    check_words(stg_failed_sqlstate("nonsense"), "error", "ERROR");
}

TEST(outcome, is_told_by_its_fault_without_a_code)
{
    check_words(stg_failed(STG_FAULT_5XX), "5xx", "HTTP_5XX");
    check_words(stg_failed(STG_FAULT_4XX), "4xx", "HTTP_4XX");
    check_words(stg_failed(STG_FAULT_3XX), "3xx", "HTTP_3XX");
    check_words(stg_failed(STG_FAULT_OVERLOAD), "4xx", "HTTP_4XX");
    check_words(stg_failed(STG_FAULT_SQL), "sql", "SQL_ERROR");
    check_words(stg_failed(STG_FAULT_GRPC), "grpc", "GRPC_ERROR");
    check_words(stg_failed(STG_FAULT_EXIT), "exit", "EXIT");
    check_words(stg_failed(STG_FAULT_TRANSIENT), "transient", "TRANSIENT");
    check_words(stg_failed_redis("MYOWN error"), "rejected", "REJECTED");
}

TEST(outcome, has_the_names_of_grpc_in_its_cause)
{
    static const char *const causes[] = {
        "GRPC_OK",
        "GRPC_CANCELLED",
        "GRPC_UNKNOWN",
        "GRPC_INVALID_ARGUMENT",
        "GRPC_DEADLINE_EXCEEDED",
        "GRPC_NOT_FOUND",
        "GRPC_ALREADY_EXISTS",
        "GRPC_PERMISSION_DENIED",
        "GRPC_RESOURCE_EXHAUSTED",
        "GRPC_FAILED_PRECONDITION",
        "GRPC_ABORTED",
        "GRPC_OUT_OF_RANGE",
        "GRPC_UNIMPLEMENTED",
        "GRPC_INTERNAL",
        "GRPC_UNAVAILABLE",
        "GRPC_DATA_LOSS",
        "GRPC_UNAUTHENTICATED",
    };

    for (uint32_t code = 0; code < COUNT(causes); code++) {
        stg_outcome o = coded(STG_FAULT_GRPC, STG_CODE_GRPC, code);
        char text[STG_CAUSE_MAX];

        CHECK_STR(stg_outcome_cause(&o, text), causes[code]);
    }
    check_words(coded(STG_FAULT_GRPC, STG_CODE_GRPC, 17), "grpc:17", "GRPC_17");
}

/* Somebody may put any code to any fault; the number is what is shown. */
TEST(outcome, shows_the_number_of_a_code_without_a_prefix)
{
    check_words(coded(STG_FAULT_5XX, STG_CODE_ERRNO, 111), "111", "111");
    check_words(coded(STG_FAULT_5XX, STG_CODE_CURL, 28), "curl:28", "CURL_28");
    check_words(coded(STG_FAULT_5XX, STG_CODE_REDIS, 99), "redis:99",
                "REDIS_99");
    check_words(coded(STG_FAULT_SQL, (stg_code_kind)77, 5), "5", "5");
    check_words(coded(STG_FAULT_SQL, (stg_code_kind)-1, 5), "5", "5");
}

TEST(outcome, is_an_error_where_it_is_no_fault)
{
    check_words(coded((stg_fault)99, STG_CODE_STATUS, 503), "error", "ERROR");
    check_words(coded((stg_fault)-1, STG_CODE_STATUS, 503), "error", "ERROR");
}

/* Whatever stands in it. */
TEST(outcome, fits_its_text)
{
    static const uint32_t codes[] = {0, 1, 16, 17, 599, UINT32_MAX};

    for (int fault = -1; fault <= STG_FAULT_COUNT; fault++)
        for (int kind = -1; kind <= STG_CODE_KAFKA + 1; kind++)
            for (size_t i = 0; i < COUNT(codes); i++) {
                stg_outcome o =
                    coded((stg_fault)fault, (stg_code_kind)kind, codes[i]);
                char text[STG_CAUSE_MAX + 1];

                memset(text, '#', sizeof text);
                CHECK(stg_outcome_name(&o, text) == text);
                CHECK(strlen(text) > 0 && strlen(text) < 30);
                CHECK(stg_outcome_cause(&o, text) == text);
                CHECK(strlen(text) > 0 && strlen(text) < 30);
                CHECK(text[STG_CAUSE_MAX] == '#');
            }
}
