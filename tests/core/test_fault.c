/* The taxonomy: what each fault is called, and SQLSTATEs as numbers. */
#include <stagger/fault.h>

#include <stdbool.h>
#include <stddef.h>

#include <stagger/rng.h>

#include "tests/harness.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

enum { SQLSTATES = 36 * 36 * 36 * 36 * 36 };

TEST(fault, has_a_name_a_cause_a_category_and_a_sentence)
{
    static const struct {
        stg_fault fault;
        const char *name, *cause;
        stg_category category;
    } rows[] = {
        {STG_FAULT_NONE, "ok", "OK", STG_CATEGORY_NONE},
        {STG_FAULT_REFUSED, "refused", "CONNECTION_REFUSED",
         STG_CATEGORY_CONNECT},
        {STG_FAULT_UNREACHABLE, "unreachable", "HOST_UNREACHABLE",
         STG_CATEGORY_CONNECT},
        {STG_FAULT_DNS, "dns", "DNS_FAILURE", STG_CATEGORY_CONNECT},
        {STG_FAULT_DNS_TEMPORARY, "dns-temporary", "DNS_TEMPORARY_FAILURE",
         STG_CATEGORY_CONNECT},
        {STG_FAULT_CONNECT_TIMEOUT, "connect-timeout", "CONNECT_TIMEOUT",
         STG_CATEGORY_CONNECT},
        {STG_FAULT_TLS, "tls", "TLS_FAILURE", STG_CATEGORY_CONNECT},
        {STG_FAULT_TLS_TIMEOUT, "tls-timeout", "TLS_TIMEOUT",
         STG_CATEGORY_CONNECT},
        {STG_FAULT_TIMEOUT, "timeout", "TIMEOUT", STG_CATEGORY_SERVER},
        {STG_FAULT_RESET, "reset", "CONNECTION_RESET", STG_CATEGORY_SERVER},
        {STG_FAULT_PROTOCOL, "protocol", "PROTOCOL_ERROR", STG_CATEGORY_SERVER},
        {STG_FAULT_5XX, "5xx", "HTTP_5XX", STG_CATEGORY_SERVER},
        {STG_FAULT_3XX, "3xx", "HTTP_3XX", STG_CATEGORY_REQUEST},
        {STG_FAULT_4XX, "4xx", "HTTP_4XX", STG_CATEGORY_REQUEST},
        {STG_FAULT_OVERLOAD, "4xx", "HTTP_4XX", STG_CATEGORY_OVERLOAD},
        {STG_FAULT_CANCELLED, "cancelled", "CANCELLED", STG_CATEGORY_OWN},
        {STG_FAULT_INVALID, "invalid", "INVALID", STG_CATEGORY_OWN},
        {STG_FAULT_CIRCUIT_OPEN, "circuit-open", "CIRCUIT_OPEN",
         STG_CATEGORY_OWN},
        {STG_FAULT_NESTED, "nested", "NESTED", STG_CATEGORY_OWN},
        {STG_FAULT_DEADLOCK, "deadlock", "DEADLOCK", STG_CATEGORY_DATABASE},
        {STG_FAULT_SERIALIZATION, "serialization", "SERIALIZATION_FAILURE",
         STG_CATEGORY_DATABASE},
        {STG_FAULT_LOCK_TIMEOUT, "lock-timeout", "LOCK_TIMEOUT",
         STG_CATEGORY_DATABASE},
        {STG_FAULT_TOO_MANY_CONNECTIONS, "too-many-connections",
         "TOO_MANY_CONNECTIONS", STG_CATEGORY_DATABASE},
        {STG_FAULT_CONNECTION_LOST, "connection-lost", "CONNECTION_LOST",
         STG_CATEGORY_DATABASE},
        {STG_FAULT_SQL, "sql", "SQL_ERROR", STG_CATEGORY_DATABASE},
        {STG_FAULT_PUSHBACK, "pushback", "GRPC_RESOURCE_EXHAUSTED",
         STG_CATEGORY_RPC},
        {STG_FAULT_GRPC, "grpc", "GRPC_ERROR", STG_CATEGORY_RPC},
        {STG_FAULT_EXIT, "exit", "EXIT", STG_CATEGORY_OTHER},
        {STG_FAULT_ERROR, "error", "ERROR", STG_CATEGORY_OTHER},
        {STG_FAULT_EGRESS, "egress", "EGRESS_FORBIDDEN", STG_CATEGORY_CONNECT},
        {STG_FAULT_TOO_LARGE, "too-large", "TOO_LARGE", STG_CATEGORY_OWN},
        {STG_FAULT_LOOP, "loop", "LOOP", STG_CATEGORY_OWN},
        {STG_FAULT_NO_FILES, "no-files", "NO_FILES", STG_CATEGORY_LOCAL},
        {STG_FAULT_NO_PORTS, "no-ports", "NO_PORTS", STG_CATEGORY_LOCAL},
        {STG_FAULT_NO_BUFFERS, "no-buffers", "NO_BUFFERS", STG_CATEGORY_LOCAL},
        {STG_FAULT_INTERRUPTED, "interrupted", "INTERRUPTED",
         STG_CATEGORY_LOCAL},
        {STG_FAULT_TLS_HANDSHAKE, "tls-handshake", "TLS_HANDSHAKE",
         STG_CATEGORY_CONNECT},
        {STG_FAULT_OUTCOME_UNKNOWN, "outcome-unknown", "OUTCOME_UNKNOWN",
         STG_CATEGORY_DATABASE},
        {STG_FAULT_TRANSIENT, "transient", "TRANSIENT", STG_CATEGORY_RPC},
        {STG_FAULT_REJECTED, "rejected", "REJECTED", STG_CATEGORY_RPC},
        {STG_FAULT_PROXY, "proxy", "PROXY_UNAVAILABLE", STG_CATEGORY_LOCAL},
        {STG_FAULT_MESSAGE_EXPIRED, "message-expired", "MESSAGE_EXPIRED",
         STG_CATEGORY_OWN},
        {STG_FAULT_TEMPLATE, "template", "TEMPLATE", STG_CATEGORY_OWN},
    };

    CHECK_INT(COUNT(rows), STG_FAULT_COUNT);
    for (unsigned i = 0; i < COUNT(rows); i++) {
        const stg_fault_info *info = stg_fault_about((stg_fault)i);

        CHECK_INT(rows[i].fault, i);
        CHECK_STR(info->name, rows[i].name);
        CHECK_STR(info->cause, rows[i].cause);
        CHECK_INT(info->category, rows[i].category);
        CHECK_FROM(i, info->sentence != NULL && strlen(info->sentence) > 5);
    }
}

/* All but 4xx, whose overload is a category, and not a name, of its own. */
TEST(fault, has_a_name_and_a_cause_that_no_other_has)
{
    for (unsigned i = 0; i < STG_FAULT_COUNT; i++)
        for (unsigned j = 0; j < i; j++) {
            const stg_fault_info *a = stg_fault_about((stg_fault)i);
            const stg_fault_info *b = stg_fault_about((stg_fault)j);
            bool are_4xx = i == STG_FAULT_OVERLOAD && j == STG_FAULT_4XX;

            CHECK_FROM(i, (strcmp(a->name, b->name) == 0) == are_4xx);
            CHECK_FROM(i, (strcmp(a->cause, b->cause) == 0) == are_4xx);
            CHECK_FROM(i, strcmp(a->sentence, b->sentence) != 0);
        }
}

/* Policies and records have letters of their own, and one case each. */
TEST(fault, is_written_in_one_case)
{
    for (unsigned i = 0; i < STG_FAULT_COUNT; i++) {
        const stg_fault_info *info = stg_fault_about((stg_fault)i);

        CHECK_FROM(i, strspn(info->name, "abcdefghijklmnopqrstuvwxyz345-") ==
                          strlen(info->name));
        CHECK_FROM(i, strspn(info->cause, "ABCDEFGHIJKLMNOPQRSTUVWXYZ345_") ==
                          strlen(info->cause));
    }
}

TEST(fault, reads_as_an_error_where_it_is_none)
{
    static const int numbers[] = {STG_FAULT_COUNT, STG_FAULT_COUNT + 1, 255,
                                  INT32_MAX,       INT32_MIN,           -1};

    for (size_t i = 0; i < COUNT(numbers); i++)
        CHECK_STR(stg_fault_about((stg_fault)numbers[i])->name, "error");
}

TEST(fault, has_a_category_with_a_name)
{
    static const char *const names[] = {
        "none", "connect",  "server", "request", "overload",
        "own",  "database", "rpc",    "local",   "other"};

    CHECK_INT(COUNT(names), STG_CATEGORY_OTHER + 1);
    for (unsigned i = 0; i < COUNT(names); i++)
        CHECK_STR(stg_category_name((stg_category)i), names[i]);
    CHECK_STR(stg_category_name((stg_category)COUNT(names)), "other");
    CHECK_STR(stg_category_name((stg_category)INT32_MAX), "other");
    CHECK_STR(stg_category_name((stg_category)-1), "other");
}

/* -- SQLSTATEs */

TEST(fault, packs_an_sqlstate_in_base_36)
{
    static const struct {
        const char *sqlstate;
        uint32_t code;
    } rows[] = {
        {"00000", 0},
        {"00001", 1},
        {"0000Z", 35},
        {"00010", 36},
        {"40001", 4 * 36 * 36 * 36 * 36 + 1},
        {"40P01", 4 * 36 * 36 * 36 * 36 + 25 * 36 * 36 + 1},
        {"40p01", 4 * 36 * 36 * 36 * 36 + 25 * 36 * 36 + 1},
        {"ZZZZZ", SQLSTATES - 1},
        {"zzzzz", SQLSTATES - 1},
        {"A0000", 10 * 36 * 36 * 36 * 36},
        {"a0000", 10 * 36 * 36 * 36 * 36},
        {NULL, UINT32_MAX},
        {"", UINT32_MAX},
        {"4", UINT32_MAX},
        {"4000", UINT32_MAX},
        {"400011", UINT32_MAX},
        {"4000 ", UINT32_MAX},
        {" 4000", UINT32_MAX},
        {"4000-", UINT32_MAX},
        {"40/01", UINT32_MAX},
        {"40:01", UINT32_MAX},
        {"40@01", UINT32_MAX},
        {"40[01", UINT32_MAX},
        {"40`01", UINT32_MAX},
        {"40{01", UINT32_MAX},
        {"40\xc3\xa9"
         "1",
         UINT32_MAX},
    };

    for (size_t i = 0; i < COUNT(rows); i++)
        CHECK_U64(stg_sqlstate_pack(rows[i].sqlstate), rows[i].code);
}

TEST(fault, unpacks_an_sqlstate_as_it_was)
{
    for (uint64_t seed = 0; seed < seeds(10000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        uint32_t code = (uint32_t)stg_rng_upto(&rng, SQLSTATES - 1);
        char sqlstate[6];

        stg_sqlstate_unpack(code, sqlstate);
        CHECK_FROM(seed, strlen(sqlstate) == 5);
        CHECK_FROM(seed, strspn(sqlstate,
                                "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5);
        CHECK_FROM(seed, stg_sqlstate_pack(sqlstate) == code);
    }
}

/* What is no code of one is written somehow, and terminated. */
TEST(fault, unpacks_any_number)
{
    char sqlstate[7] = "######";

    stg_sqlstate_unpack(UINT32_MAX, sqlstate);
    CHECK_U64(strlen(sqlstate), 5);
    CHECK(sqlstate[6] == '\0');
}
