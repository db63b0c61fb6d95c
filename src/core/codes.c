/* codes.c - the codes of gRPC, Redis, AMQP and Kafka, and how codes of any kind
 * are written. A table is sorted by its protocol's own numbers; those of Redis
 * and of AMQP 1.0, which have words instead, are numbered here. */
#include "core/codes.h"

#include <string.h>

/* The statuses of gRPC: google.rpc.Code. */
static const stg_code_row grpc[] = {
    {"OK", 0, STG_FAULT_NONE},
    {"CANCELLED", 1, STG_FAULT_GRPC},
    {"UNKNOWN", 2, STG_FAULT_GRPC},
    {"INVALID_ARGUMENT", 3, STG_FAULT_GRPC},
    {"DEADLINE_EXCEEDED", 4, STG_FAULT_GRPC},
    {"NOT_FOUND", 5, STG_FAULT_GRPC},
    {"ALREADY_EXISTS", 6, STG_FAULT_GRPC},
    {"PERMISSION_DENIED", 7, STG_FAULT_GRPC},
    {"RESOURCE_EXHAUSTED", 8, STG_FAULT_GRPC},
    {"FAILED_PRECONDITION", 9, STG_FAULT_GRPC},
    {"ABORTED", 10, STG_FAULT_GRPC},
    {"OUT_OF_RANGE", 11, STG_FAULT_GRPC},
    {"UNIMPLEMENTED", 12, STG_FAULT_GRPC},
    {"INTERNAL", 13, STG_FAULT_GRPC},
    {"UNAVAILABLE", 14, STG_FAULT_GRPC},
    {"DATA_LOSS", 15, STG_FAULT_GRPC},
    {"UNAUTHENTICATED", 16, STG_FAULT_GRPC},
};

/* The first word of an error reply. The transient ones are those that clients
 * of Redis repeat: the server loads, fails over, reshards or runs a script. */
static const stg_code_row redis[] = {
    {"ERR", 1, STG_FAULT_REJECTED},
    {"LOADING", 2, STG_FAULT_TRANSIENT},
    {"TRYAGAIN", 3, STG_FAULT_TRANSIENT},
    {"CLUSTERDOWN", 4, STG_FAULT_TRANSIENT},
    {"MASTERDOWN", 5, STG_FAULT_TRANSIENT},
    {"BUSY", 6, STG_FAULT_TRANSIENT},
    {"READONLY", 7, STG_FAULT_TRANSIENT},
    {"NOREPLICAS", 8, STG_FAULT_TRANSIENT},
    {"UNBLOCKED", 9, STG_FAULT_TRANSIENT},
    {"MOVED", 10, STG_FAULT_REJECTED}, // a redirect, like 3xx
    {"ASK", 11, STG_FAULT_REJECTED},
    {"CROSSSLOT", 12, STG_FAULT_REJECTED},
    {"WRONGTYPE", 13, STG_FAULT_REJECTED},
    {"EXECABORT", 14, STG_FAULT_REJECTED},
    {"NOSCRIPT", 15, STG_FAULT_REJECTED},
    {"NOTBUSY", 16, STG_FAULT_REJECTED},
    {"UNKILLABLE", 17, STG_FAULT_REJECTED},
    {"NOAUTH", 18, STG_FAULT_REJECTED},
    {"WRONGPASS", 19, STG_FAULT_REJECTED},
    {"NOPERM", 20, STG_FAULT_REJECTED},
    {"DENIED", 21, STG_FAULT_REJECTED},
    {"NOPROTO", 22, STG_FAULT_REJECTED},
    {"OOM", 23, STG_FAULT_REJECTED}, // until somebody makes room
    {"MISCONF", 24, STG_FAULT_REJECTED},
    {"IOERR", 25, STG_FAULT_REJECTED},
    {"BUSYKEY", 26, STG_FAULT_REJECTED},
    {"BUSYGROUP", 27, STG_FAULT_REJECTED},
    {"NOGROUP", 28, STG_FAULT_REJECTED},
};

/* Reply codes of AMQP 0-9-1, section 1.3.7 of its reference. Any other is
 * rejected. */
static const stg_code_row amqp[] = {
    {NULL, 200, STG_FAULT_NONE},      // reply-success
    {NULL, 311, STG_FAULT_REJECTED},  // content-too-large
    {NULL, 312, STG_FAULT_REJECTED},  // no-route
    {NULL, 313, STG_FAULT_TRANSIENT}, // no-consumers
    {NULL, 320, STG_FAULT_RESET},     // connection-forced
    {NULL, 402, STG_FAULT_REJECTED},  // invalid-path
    {NULL, 403, STG_FAULT_REJECTED},  // access-refused
    {NULL, 404, STG_FAULT_REJECTED},  // not-found
    {NULL, 405, STG_FAULT_TRANSIENT}, // resource-locked: by another client
    {NULL, 406, STG_FAULT_REJECTED},  // precondition-failed
    {NULL, 501, STG_FAULT_REJECTED},  // frame-error: ours, as those to 505
    {NULL, 502, STG_FAULT_REJECTED},  // syntax-error
    {NULL, 503, STG_FAULT_REJECTED},  // command-invalid
    {NULL, 504, STG_FAULT_REJECTED},  // channel-error
    {NULL, 505, STG_FAULT_REJECTED},  // unexpected-frame
    {NULL, 506, STG_FAULT_TRANSIENT}, // resource-error
    {NULL, 530, STG_FAULT_REJECTED},  // not-allowed
    {NULL, 540, STG_FAULT_REJECTED},  // not-implemented
    {NULL, 541, STG_FAULT_TRANSIENT}, // internal-error
};

/* Error conditions of AMQP 1.0, sections 2.8.15 to 2.8.18 and 4.5.8 of OASIS
 * AMQP; and two of Azure's services. */
static const stg_code_row amqp1[] = {
    {"amqp:internal-error", 1, STG_FAULT_TRANSIENT},
    {"amqp:not-found", 2, STG_FAULT_REJECTED},
    {"amqp:unauthorized-access", 3, STG_FAULT_REJECTED},
    {"amqp:decode-error", 4, STG_FAULT_REJECTED},
    {"amqp:resource-limit-exceeded", 5, STG_FAULT_REJECTED},
    {"amqp:not-allowed", 6, STG_FAULT_REJECTED},
    {"amqp:invalid-field", 7, STG_FAULT_REJECTED},
    {"amqp:not-implemented", 8, STG_FAULT_REJECTED},
    {"amqp:resource-locked", 9, STG_FAULT_TRANSIENT},
    {"amqp:precondition-failed", 10, STG_FAULT_REJECTED},
    {"amqp:resource-deleted", 11, STG_FAULT_REJECTED},
    {"amqp:illegal-state", 12, STG_FAULT_REJECTED},
    {"amqp:frame-size-too-small", 13, STG_FAULT_REJECTED},
    {"amqp:connection:forced", 14, STG_FAULT_RESET},
    {"amqp:connection:framing-error", 15, STG_FAULT_REJECTED},
    {"amqp:connection:redirect", 16, STG_FAULT_REJECTED},
    {"amqp:session:window-violation", 17, STG_FAULT_REJECTED},
    {"amqp:session:errant-link", 18, STG_FAULT_REJECTED},
    {"amqp:session:handle-in-use", 19, STG_FAULT_REJECTED},
    {"amqp:session:unattached-handle", 20, STG_FAULT_REJECTED},
    {"amqp:link:detach-forced", 21, STG_FAULT_TRANSIENT},
    {"amqp:link:transfer-limit-exceeded", 22, STG_FAULT_REJECTED},
    {"amqp:link:message-size-exceeded", 23, STG_FAULT_REJECTED},
    {"amqp:link:redirect", 24, STG_FAULT_REJECTED},
    {"amqp:link:stolen", 25, STG_FAULT_REJECTED},
    {"amqp:transaction:unknown-id", 26, STG_FAULT_REJECTED},
    {"amqp:transaction:rollback", 27, STG_FAULT_TRANSIENT},
    {"amqp:transaction:timeout", 28, STG_FAULT_TRANSIENT},
    {"com.microsoft:server-busy", 29, STG_FAULT_TRANSIENT},
    {"com.microsoft:timeout", 30, STG_FAULT_TIMEOUT},
};

/* The errors of Kafka's protocol, retriable where its own table says so, and
 * below -100 those that librdkafka makes itself (rdkafka.h). The second name of
 * a code is librdkafka's. Any other is rejected. */
static const stg_code_row kafka[] = {
    {"_BAD_MSG", -199, STG_FAULT_PROTOCOL},
    {"_BAD_COMPRESSION", -198, STG_FAULT_REJECTED},
    {"_DESTROY", -197, STG_FAULT_CANCELLED},
    {"_FAIL", -196, STG_FAULT_ERROR},
    {"_TRANSPORT", -195, STG_FAULT_RESET},
    {"_CRIT_SYS_RESOURCE", -194, STG_FAULT_NO_BUFFERS},
    {"_RESOLVE", -193, STG_FAULT_DNS_TEMPORARY},
    {"_MSG_TIMED_OUT", -192, STG_FAULT_TIMEOUT},
    {"_PARTITION_EOF", -191, STG_FAULT_REJECTED},
    {"_UNKNOWN_PARTITION", -190, STG_FAULT_REJECTED},
    {"_FS", -189, STG_FAULT_ERROR},
    {"_UNKNOWN_TOPIC", -188, STG_FAULT_REJECTED},
    {"_ALL_BROKERS_DOWN", -187, STG_FAULT_RESET},
    {"_INVALID_ARG", -186, STG_FAULT_INVALID},
    {"_TIMED_OUT", -185, STG_FAULT_TIMEOUT},
    {"_QUEUE_FULL", -184, STG_FAULT_NO_BUFFERS},
    {"_ISR_INSUFF", -183, STG_FAULT_TRANSIENT},
    {"_NODE_UPDATE", -182, STG_FAULT_REJECTED},
    {"_SSL", -181, STG_FAULT_TLS_HANDSHAKE},
    {"_WAIT_COORD", -180, STG_FAULT_TRANSIENT},
    {"_UNKNOWN_GROUP", -179, STG_FAULT_REJECTED},
    {"_IN_PROGRESS", -178, STG_FAULT_REJECTED},
    {"_PREV_IN_PROGRESS", -177, STG_FAULT_TRANSIENT},
    {"_EXISTING_SUBSCRIPTION", -176, STG_FAULT_REJECTED},
    {"_ASSIGN_PARTITIONS", -175, STG_FAULT_REJECTED},
    {"_REVOKE_PARTITIONS", -174, STG_FAULT_REJECTED},
    {"_CONFLICT", -173, STG_FAULT_REJECTED},
    {"_STATE", -172, STG_FAULT_REJECTED},
    {"_UNKNOWN_PROTOCOL", -171, STG_FAULT_REJECTED},
    {"_NOT_IMPLEMENTED", -170, STG_FAULT_REJECTED},
    {"_AUTHENTICATION", -169, STG_FAULT_REJECTED},
    {"_NO_OFFSET", -168, STG_FAULT_REJECTED},
    {"_OUTDATED", -167, STG_FAULT_REJECTED},
    {"_TIMED_OUT_QUEUE", -166, STG_FAULT_TIMEOUT},
    {"_UNSUPPORTED_FEATURE", -165, STG_FAULT_REJECTED},
    {"_WAIT_CACHE", -164, STG_FAULT_TRANSIENT},
    {"_INTR", -163, STG_FAULT_INTERRUPTED},
    {"_KEY_SERIALIZATION", -162, STG_FAULT_REJECTED},
    {"_VALUE_SERIALIZATION", -161, STG_FAULT_REJECTED},
    {"_KEY_DESERIALIZATION", -160, STG_FAULT_REJECTED},
    {"_VALUE_DESERIALIZATION", -159, STG_FAULT_REJECTED},
    {"_PARTIAL", -158, STG_FAULT_PROTOCOL},
    {"_READ_ONLY", -157, STG_FAULT_REJECTED},
    {"_NOENT", -156, STG_FAULT_REJECTED},
    {"_UNDERFLOW", -155, STG_FAULT_PROTOCOL},
    {"_INVALID_TYPE", -154, STG_FAULT_REJECTED},
    {"_RETRY", -153, STG_FAULT_TRANSIENT},
    {"_PURGE_QUEUE", -152, STG_FAULT_CANCELLED},
    {"_PURGE_INFLIGHT", -151, STG_FAULT_CANCELLED},
    {"_FATAL", -150, STG_FAULT_REJECTED},
    {"_INCONSISTENT", -149, STG_FAULT_REJECTED},
    {"_GAPLESS_GUARANTEE", -148, STG_FAULT_REJECTED},
    {"_MAX_POLL_EXCEEDED", -147, STG_FAULT_REJECTED},
    {"_UNKNOWN_BROKER", -146, STG_FAULT_REJECTED},
    {"_NOT_CONFIGURED", -145, STG_FAULT_REJECTED},
    {"_FENCED", -144, STG_FAULT_REJECTED},
    {"_APPLICATION", -143, STG_FAULT_ERROR},
    {"_ASSIGNMENT_LOST", -142, STG_FAULT_REJECTED},
    {"_NOOP", -141, STG_FAULT_REJECTED},
    {"_AUTO_OFFSET_RESET", -140, STG_FAULT_REJECTED},
    {"_LOG_TRUNCATION", -139, STG_FAULT_REJECTED},
    {"_INVALID_DIFFERENT_RECORD", -138, STG_FAULT_REJECTED},
    {"_DESTROY_BROKER", -137, STG_FAULT_CANCELLED},
    {"UNKNOWN_SERVER_ERROR", -1, STG_FAULT_REJECTED},
    {"OFFSET_OUT_OF_RANGE", 1, STG_FAULT_REJECTED},
    {"CORRUPT_MESSAGE", 2, STG_FAULT_PROTOCOL},
    {"INVALID_MSG", 2, STG_FAULT_PROTOCOL},
    {"UNKNOWN_TOPIC_OR_PARTITION", 3, STG_FAULT_TRANSIENT},
    {"UNKNOWN_TOPIC_OR_PART", 3, STG_FAULT_TRANSIENT},
    {"INVALID_FETCH_SIZE", 4, STG_FAULT_REJECTED},
    {"INVALID_MSG_SIZE", 4, STG_FAULT_REJECTED},
    {"LEADER_NOT_AVAILABLE", 5, STG_FAULT_TRANSIENT},
    {"NOT_LEADER_OR_FOLLOWER", 6, STG_FAULT_TRANSIENT},
    {"NOT_LEADER_FOR_PARTITION", 6, STG_FAULT_TRANSIENT},
    {"REQUEST_TIMED_OUT", 7, STG_FAULT_TIMEOUT},
    {"BROKER_NOT_AVAILABLE", 8, STG_FAULT_REJECTED},
    {"REPLICA_NOT_AVAILABLE", 9, STG_FAULT_TRANSIENT},
    {"MESSAGE_TOO_LARGE", 10, STG_FAULT_REJECTED},
    {"MSG_SIZE_TOO_LARGE", 10, STG_FAULT_REJECTED},
    {"STALE_CONTROLLER_EPOCH", 11, STG_FAULT_REJECTED},
    {"STALE_CTRL_EPOCH", 11, STG_FAULT_REJECTED},
    {"OFFSET_METADATA_TOO_LARGE", 12, STG_FAULT_REJECTED},
    {"NETWORK_EXCEPTION", 13, STG_FAULT_RESET},
    {"COORDINATOR_LOAD_IN_PROGRESS", 14, STG_FAULT_TRANSIENT},
    {"COORDINATOR_NOT_AVAILABLE", 15, STG_FAULT_TRANSIENT},
    {"NOT_COORDINATOR", 16, STG_FAULT_TRANSIENT},
    {"INVALID_TOPIC_EXCEPTION", 17, STG_FAULT_REJECTED},
    {"TOPIC_EXCEPTION", 17, STG_FAULT_REJECTED},
    {"RECORD_LIST_TOO_LARGE", 18, STG_FAULT_REJECTED},
    {"NOT_ENOUGH_REPLICAS", 19, STG_FAULT_TRANSIENT},
    {"NOT_ENOUGH_REPLICAS_AFTER_APPEND", 20, STG_FAULT_TRANSIENT},
    {"INVALID_REQUIRED_ACKS", 21, STG_FAULT_REJECTED},
    {"ILLEGAL_GENERATION", 22, STG_FAULT_REJECTED},
    {"INCONSISTENT_GROUP_PROTOCOL", 23, STG_FAULT_REJECTED},
    {"INVALID_GROUP_ID", 24, STG_FAULT_REJECTED},
    {"UNKNOWN_MEMBER_ID", 25, STG_FAULT_REJECTED},
    {"INVALID_SESSION_TIMEOUT", 26, STG_FAULT_REJECTED},
    {"REBALANCE_IN_PROGRESS", 27, STG_FAULT_REJECTED},
    {"INVALID_COMMIT_OFFSET_SIZE", 28, STG_FAULT_REJECTED},
    {"TOPIC_AUTHORIZATION_FAILED", 29, STG_FAULT_REJECTED},
    {"GROUP_AUTHORIZATION_FAILED", 30, STG_FAULT_REJECTED},
    {"CLUSTER_AUTHORIZATION_FAILED", 31, STG_FAULT_REJECTED},
    {"INVALID_TIMESTAMP", 32, STG_FAULT_REJECTED},
    {"UNSUPPORTED_SASL_MECHANISM", 33, STG_FAULT_REJECTED},
    {"ILLEGAL_SASL_STATE", 34, STG_FAULT_REJECTED},
    {"UNSUPPORTED_VERSION", 35, STG_FAULT_REJECTED},
    {"TOPIC_ALREADY_EXISTS", 36, STG_FAULT_REJECTED},
    {"INVALID_PARTITIONS", 37, STG_FAULT_REJECTED},
    {"INVALID_REPLICATION_FACTOR", 38, STG_FAULT_REJECTED},
    {"INVALID_REPLICA_ASSIGNMENT", 39, STG_FAULT_REJECTED},
    {"INVALID_CONFIG", 40, STG_FAULT_REJECTED},
    {"NOT_CONTROLLER", 41, STG_FAULT_TRANSIENT},
    {"INVALID_REQUEST", 42, STG_FAULT_REJECTED},
    {"UNSUPPORTED_FOR_MESSAGE_FORMAT", 43, STG_FAULT_REJECTED},
    {"POLICY_VIOLATION", 44, STG_FAULT_REJECTED},
    {"OUT_OF_ORDER_SEQUENCE_NUMBER", 45, STG_FAULT_REJECTED},
    {"DUPLICATE_SEQUENCE_NUMBER", 46, STG_FAULT_REJECTED},
    {"INVALID_PRODUCER_EPOCH", 47, STG_FAULT_REJECTED},
    {"INVALID_TXN_STATE", 48, STG_FAULT_REJECTED},
    {"INVALID_PRODUCER_ID_MAPPING", 49, STG_FAULT_REJECTED},
    {"INVALID_TRANSACTION_TIMEOUT", 50, STG_FAULT_REJECTED},
    {"CONCURRENT_TRANSACTIONS", 51, STG_FAULT_TRANSIENT},
    {"TRANSACTION_COORDINATOR_FENCED", 52, STG_FAULT_REJECTED},
    {"TRANSACTIONAL_ID_AUTHORIZATION_FAILED", 53, STG_FAULT_REJECTED},
    {"SECURITY_DISABLED", 54, STG_FAULT_REJECTED},
    {"OPERATION_NOT_ATTEMPTED", 55, STG_FAULT_REJECTED},
    {"KAFKA_STORAGE_ERROR", 56, STG_FAULT_TRANSIENT},
    {"LOG_DIR_NOT_FOUND", 57, STG_FAULT_REJECTED},
    {"SASL_AUTHENTICATION_FAILED", 58, STG_FAULT_REJECTED},
    {"UNKNOWN_PRODUCER_ID", 59, STG_FAULT_REJECTED},
    {"REASSIGNMENT_IN_PROGRESS", 60, STG_FAULT_REJECTED},
    {"DELEGATION_TOKEN_AUTH_DISABLED", 61, STG_FAULT_REJECTED},
    {"DELEGATION_TOKEN_NOT_FOUND", 62, STG_FAULT_REJECTED},
    {"DELEGATION_TOKEN_OWNER_MISMATCH", 63, STG_FAULT_REJECTED},
    {"DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", 64, STG_FAULT_REJECTED},
    {"DELEGATION_TOKEN_AUTHORIZATION_FAILED", 65, STG_FAULT_REJECTED},
    {"DELEGATION_TOKEN_EXPIRED", 66, STG_FAULT_REJECTED},
    {"INVALID_PRINCIPAL_TYPE", 67, STG_FAULT_REJECTED},
    {"NON_EMPTY_GROUP", 68, STG_FAULT_REJECTED},
    {"GROUP_ID_NOT_FOUND", 69, STG_FAULT_REJECTED},
    {"FETCH_SESSION_ID_NOT_FOUND", 70, STG_FAULT_TRANSIENT},
    {"INVALID_FETCH_SESSION_EPOCH", 71, STG_FAULT_TRANSIENT},
    {"LISTENER_NOT_FOUND", 72, STG_FAULT_TRANSIENT},
    {"TOPIC_DELETION_DISABLED", 73, STG_FAULT_REJECTED},
    {"FENCED_LEADER_EPOCH", 74, STG_FAULT_TRANSIENT},
    {"UNKNOWN_LEADER_EPOCH", 75, STG_FAULT_TRANSIENT},
    {"UNSUPPORTED_COMPRESSION_TYPE", 76, STG_FAULT_REJECTED},
    {"STALE_BROKER_EPOCH", 77, STG_FAULT_REJECTED},
    {"OFFSET_NOT_AVAILABLE", 78, STG_FAULT_TRANSIENT},
    {"MEMBER_ID_REQUIRED", 79, STG_FAULT_REJECTED},
    {"PREFERRED_LEADER_NOT_AVAILABLE", 80, STG_FAULT_TRANSIENT},
    {"GROUP_MAX_SIZE_REACHED", 81, STG_FAULT_REJECTED},
    {"FENCED_INSTANCE_ID", 82, STG_FAULT_REJECTED},
    {"ELIGIBLE_LEADERS_NOT_AVAILABLE", 83, STG_FAULT_TRANSIENT},
    {"ELECTION_NOT_NEEDED", 84, STG_FAULT_TRANSIENT},
    {"NO_REASSIGNMENT_IN_PROGRESS", 85, STG_FAULT_REJECTED},
    {"GROUP_SUBSCRIBED_TO_TOPIC", 86, STG_FAULT_REJECTED},
    {"INVALID_RECORD", 87, STG_FAULT_REJECTED},
    {"UNSTABLE_OFFSET_COMMIT", 88, STG_FAULT_TRANSIENT},
    {"THROTTLING_QUOTA_EXCEEDED", 89, STG_FAULT_TRANSIENT},
    {"PRODUCER_FENCED", 90, STG_FAULT_REJECTED},
    {"RESOURCE_NOT_FOUND", 91, STG_FAULT_REJECTED},
    {"DUPLICATE_RESOURCE", 92, STG_FAULT_REJECTED},
    {"UNACCEPTABLE_CREDENTIAL", 93, STG_FAULT_REJECTED},
    {"INCONSISTENT_VOTER_SET", 94, STG_FAULT_REJECTED},
    {"INVALID_UPDATE_VERSION", 95, STG_FAULT_REJECTED},
    {"FEATURE_UPDATE_FAILED", 96, STG_FAULT_REJECTED},
    {"PRINCIPAL_DESERIALIZATION_FAILURE", 97, STG_FAULT_REJECTED},
    {"SNAPSHOT_NOT_FOUND", 98, STG_FAULT_REJECTED},
    {"POSITION_OUT_OF_RANGE", 99, STG_FAULT_REJECTED},
    {"UNKNOWN_TOPIC_ID", 100, STG_FAULT_TRANSIENT},
    {"DUPLICATE_BROKER_REGISTRATION", 101, STG_FAULT_REJECTED},
    {"BROKER_ID_NOT_REGISTERED", 102, STG_FAULT_REJECTED},
    {"INCONSISTENT_TOPIC_ID", 103, STG_FAULT_TRANSIENT},
    {"INCONSISTENT_CLUSTER_ID", 104, STG_FAULT_REJECTED},
    {"TRANSACTIONAL_ID_NOT_FOUND", 105, STG_FAULT_REJECTED},
    {"FETCH_SESSION_TOPIC_ID_ERROR", 106, STG_FAULT_TRANSIENT},
    {"INELIGIBLE_REPLICA", 107, STG_FAULT_REJECTED},
    {"NEW_LEADER_ELECTED", 108, STG_FAULT_REJECTED},
    {"OFFSET_MOVED_TO_TIERED_STORAGE", 109, STG_FAULT_REJECTED},
    {"FENCED_MEMBER_EPOCH", 110, STG_FAULT_REJECTED},
    {"UNRELEASED_INSTANCE_ID", 111, STG_FAULT_REJECTED},
    {"UNSUPPORTED_ASSIGNOR", 112, STG_FAULT_REJECTED},
    {"STALE_MEMBER_EPOCH", 113, STG_FAULT_REJECTED},
    {"MISMATCHED_ENDPOINT_TYPE", 114, STG_FAULT_REJECTED},
    {"UNSUPPORTED_ENDPOINT_TYPE", 115, STG_FAULT_REJECTED},
    {"UNKNOWN_CONTROLLER_ID", 116, STG_FAULT_REJECTED},
    {"UNKNOWN_SUBSCRIPTION_ID", 117, STG_FAULT_REJECTED},
    {"TELEMETRY_TOO_LARGE", 118, STG_FAULT_REJECTED},
    {"INVALID_REGISTRATION", 119, STG_FAULT_REJECTED},
    {"TRANSACTION_ABORTABLE", 120, STG_FAULT_REJECTED},
    {"INVALID_RECORD_STATE", 121, STG_FAULT_REJECTED},
    {"SHARE_SESSION_NOT_FOUND", 122, STG_FAULT_TRANSIENT},
    {"INVALID_SHARE_SESSION_EPOCH", 123, STG_FAULT_TRANSIENT},
    {"FENCED_STATE_EPOCH", 124, STG_FAULT_REJECTED},
    {"INVALID_VOTER_KEY", 125, STG_FAULT_REJECTED},
    {"DUPLICATE_VOTER", 126, STG_FAULT_REJECTED},
    {"VOTER_NOT_FOUND", 127, STG_FAULT_REJECTED},
    {"INVALID_REGULAR_EXPRESSION", 128, STG_FAULT_REJECTED},
    {"REBOOTSTRAP_REQUIRED", 129, STG_FAULT_REJECTED},
    {"STREAMS_INVALID_TOPOLOGY", 130, STG_FAULT_REJECTED},
    {"STREAMS_INVALID_TOPOLOGY_EPOCH", 131, STG_FAULT_REJECTED},
    {"STREAMS_TOPOLOGY_FENCED", 132, STG_FAULT_REJECTED},
    {"SHARE_SESSION_LIMIT_REACHED", 133, STG_FAULT_TRANSIENT},
};

typedef struct table {
    const char *prefix;       /* of policies; before its code stands a colon */
    const char *cause;        /* before the code in records */
    const stg_code_row *rows; /* NULL: its codes have no names */
    size_t count;
} table;

#define ROWS(list) list, sizeof(list) / sizeof *(list)

static const table tables[] = {
    [STG_CODE_STATUS] = {.prefix = "http", .cause = "HTTP_"},
    [STG_CODE_SQLSTATE] = {.prefix = "sqlstate", .cause = "SQLSTATE_"},
    [STG_CODE_MYSQL] = {.prefix = "mysql", .cause = "MYSQL_"},
    [STG_CODE_GRPC] = {"grpc", "GRPC_", ROWS(grpc)},
    [STG_CODE_CURL] = {.prefix = "curl", .cause = "CURL_"},
    [STG_CODE_ERRNO] = {.prefix = "", .cause = ""},
    [STG_CODE_RESOLVER] = {.prefix = "", .cause = ""},
    [STG_CODE_TLS] = {.prefix = "", .cause = ""},
    [STG_CODE_EXIT] = {.prefix = "exit", .cause = "EXIT_"},
    [STG_CODE_REDIS] = {"redis", "REDIS_", ROWS(redis)},
    [STG_CODE_AMQP] = {"amqp", "AMQP_", ROWS(amqp)},
    [STG_CODE_AMQP1] = {"", "", ROWS(amqp1)},
    [STG_CODE_KAFKA] = {"kafka", "KAFKA_", ROWS(kafka)},
};

/* A kind out of range has no names and no prefix. */
static const table *table_of(stg_code_kind kind)
{
    static const table none = {.prefix = "", .cause = ""};

    return kind > STG_CODE_NONE && kind <= STG_CODE_KAFKA ? &tables[kind]
                                                          : &none;
}

const stg_code_row *stg_code_at(stg_code_kind kind, size_t i)
{
    const table *t = table_of(kind);

    return i < t->count ? &t->rows[i] : NULL;
}

/* The first row of a code has the name that is printed: Kafka's own stands
 * before librdkafka's. */
const stg_code_row *stg_code_about(stg_code_kind kind, uint32_t code)
{
    const stg_code_row *row;

    for (size_t i = 0; (row = stg_code_at(kind, i)) != NULL; i++)
        if ((uint32_t)row->code == code)
            return row;
    return NULL;
}

const char *stg_code_prefix(stg_code_kind kind)
{
    return table_of(kind)->prefix;
}

/* Whether policies write the name, and not the number. */
static bool is_named(stg_code_kind kind)
{
    return kind == STG_CODE_REDIS || kind == STG_CODE_AMQP1;
}

/* Codes of librdkafka are negative, and kept in a uint32_t. */
static void write_number(stg_writer *w, stg_code_kind kind, uint32_t code)
{
    char sqlstate[6];

    if (kind == STG_CODE_SQLSTATE) {
        stg_sqlstate_unpack(code, sqlstate);
        stg_write_text(w, sqlstate);
    } else if (kind == STG_CODE_KAFKA && code > INT32_MAX) {
        stg_write_char(w, '-');
        stg_write_number(w, 0 - code);
    } else {
        stg_write_number(w, code);
    }
}

/* As policies read it: `exit 3`, `grpc:14`, `redis:LOADING`, and a status as
 * bare digits. */
void stg_code_write(stg_writer *w, stg_code_kind kind, uint32_t code)
{
    const table *t = table_of(kind);
    const stg_code_row *row =
        is_named(kind) ? stg_code_about(kind, code) : NULL;

    if (t->prefix[0] != '\0' && kind != STG_CODE_STATUS) {
        stg_write_text(w, t->prefix);
        stg_write_char(w, kind == STG_CODE_EXIT ? ' ' : ':');
    }
    if (row != NULL)
        stg_write_text(w, row->name);
    else
        write_number(w, kind, code);
}

/* In the letters of records: "amqp:link:stolen" as AMQP_LINK_STOLEN. */
static void write_upper(stg_writer *w, const char *name)
{
    for (; *name != '\0'; name++)
        stg_write_char(w, *name >= 'a' ? (char)(*name - 'a' + 'A')
                          : strchr(":.-", *name) != NULL ? '_'
                                                         : *name);
}

void stg_code_write_cause(stg_writer *w, stg_code_kind kind, uint32_t code)
{
    const stg_code_row *row = stg_code_about(kind, code);

    stg_write_text(w, table_of(kind)->cause);
    if (row != NULL && row->name != NULL)
        write_upper(w, row->name);
    else
        write_number(w, kind, code);
}
