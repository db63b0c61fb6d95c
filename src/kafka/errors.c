/* Which errors of librdkafka are the same trouble, and what to do about it; and
 * which ones are a record's own fault. */
#include "kafka/internal.h"

/* Errors of connections, and of all that is asked over them: a broker is
 * away. */
static bool is_of_connections(rd_kafka_resp_err_t err)
{
    switch (err) {
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__RESOLVE:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT_QUEUE:
    case RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN:
    case RD_KAFKA_RESP_ERR__WAIT_COORD:
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
    case RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT:
    case RD_KAFKA_RESP_ERR_BROKER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NETWORK_EXCEPTION:
    case RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS:
    case RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_NOT_COORDINATOR:
        return true;
    default:
        return false;
    }
}

/* What to do, for errors that somebody has to see to. */
static const char *advise(rd_kafka_resp_err_t err)
{
    switch (err) {
    case RD_KAFKA_RESP_ERR__TRANSPORT:
        return "tried again; see to the brokers, the network, `kafka.brokers`";
    case RD_KAFKA_RESP_ERR__SSL:
        return "tried again; see to `ssl...` in `kafka.options`, and to the "
               "brokers' certificates";
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
        return "tried again; see to `sasl...` in `kafka.options`";
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
        return "tried again; give the user Read and Describe on the topic, and "
               "Write where messages are posted to the hub";
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
        return "tried again; give the user IdempotentWrite on the cluster";
    case RD_KAFKA_RESP_ERR__MSG_TIMED_OUT:
        return "their producers were answered 503; see to the brokers, to the "
               "topic's min.insync.replicas, and to `message.timeout.ms` in "
               "`kafka.options`";
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
        return "tried again; give the user Read on the group";
    default:
        return NULL;
    }
}

stg_kafka_report stg_kafka_trouble_of(rd_kafka_resp_err_t err,
                                      const char *topic)
{
    bool is_connection = is_of_connections(err);

    if (is_connection)
        err = RD_KAFKA_RESP_ERR__TRANSPORT;
    return (stg_kafka_report){.what = STG_KAFKA_TROUBLE,
                              .tp = {.topic = is_connection ? NULL : topic},
                              .trouble = err,
                              .advice = advise(err),
                              .level = 4};
}

bool stg_kafka_is_refusal(rd_kafka_resp_err_t err)
{
    switch (err) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT:
        return true;
    default:
        return false;
    }
}

rd_kafka_resp_err_t stg_kafka_code_of(rd_kafka_error_t *error)
{
    rd_kafka_resp_err_t code =
        error == NULL ? RD_KAFKA_RESP_ERR_NO_ERROR : rd_kafka_error_code(error);

    rd_kafka_error_destroy(error);
    return code;
}
