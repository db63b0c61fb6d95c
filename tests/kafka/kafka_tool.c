/* What scripts need of Kafka that kcat does not do.
 *
 * usage: kafka_tool mock [BROKERS]
 *        kafka_tool offsets BROKERS GROUP TOPIC PARTITIONS MILLISECONDS
 *        kafka_tool transact BROKERS TOPIC PARTITION COUNT commit|abort
 *        kafka_tool delete BROKERS TOPIC PARTITION OFFSET
 *
 * mock     a cluster of librdkafka's in this process (3 brokers): prints its
 *          addresses, then obeys lines of standard input, each answered by `ok`
 *          or words; ends with the input:
 *
 *              topic NAME PARTITIONS
 *              refuse TOPIC CODE                  0: no more
 *              down BROKER, up BROKER             brokers count from 1
 *              error API CODE COUNT               the next COUNT answers
 *              leader TOPIC PARTITION BROKER
 *              past TOPIC COUNT SECONDS           records of so long ago, to
 *                                                 partition 0
 *              coordinator GROUP BROKER
 *
 * offsets  what the group has committed, as a line a change: the partition and
 *          the offset; asks so often, as no member, until the input ends. After
 *          a round in which all were answered without a change: a line `-`
 *          once.
 *
 * transact writes so many records in one transaction, and ends it.
 *
 * delete   the records below the offset are deleted. */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

enum { WORDS = 6, ERRORS_MAX = 64, TIMEOUT_MS = 2000, PARTITIONS_MAX = 4096 };

static int fail(const char *what, const char *why)
{
    fprintf(stderr, "kafka_tool: %s: %s\n", what, why);
    return 1;
}

/* -- a cluster ------------------------------------------------------------- */

static rd_kafka_resp_err_t push_errors(rd_kafka_mock_cluster_t *c, int api,
                                       int code, int count)
{
    rd_kafka_resp_err_t errors[ERRORS_MAX];

    if (count < 0 || count > ERRORS_MAX)
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    for (int i = 0; i < count; i++)
        errors[i] = (rd_kafka_resp_err_t)code;
    rd_kafka_mock_push_request_errors_array(c, (int16_t)api, (size_t)count,
                                            errors);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static int number_of(const char *word)
{
    return word != NULL ? (int)strtol(word, NULL, 10) : -1;
}

static rd_kafka_resp_err_t send_past(rd_kafka_mock_cluster_t *c,
                                     const char *topic, int count, int seconds)
{
    int64_t at_ms = ((int64_t)time(NULL) - seconds) * 1000;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers",
                      rd_kafka_mock_cluster_bootstraps(c), NULL, 0);
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, NULL, 0);
    if (rk == NULL)
        return RD_KAFKA_RESP_ERR__FAIL;
    for (int i = 0; i < count; i++)
        (void)rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic),
                                RD_KAFKA_V_PARTITION(0),
                                RD_KAFKA_V_VALUE((void *)topic, 1),
                                RD_KAFKA_V_TIMESTAMP(at_ms), RD_KAFKA_V_END);
    (void)rd_kafka_flush(rk, TIMEOUT_MS);
    rd_kafka_destroy(rk);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t obey(rd_kafka_mock_cluster_t *c, char *words[WORDS])
{
    const char *what = words[0];
    int a = number_of(words[1]), b = number_of(words[2]),
        d = number_of(words[3]);

    if (what == NULL || words[1] == NULL)
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    if (strcmp(what, "topic") == 0)
        return rd_kafka_mock_topic_create(c, words[1], b, 1);
    if (strcmp(what, "refuse") == 0) {
        rd_kafka_mock_topic_set_error(c, words[1], (rd_kafka_resp_err_t)b);
        return RD_KAFKA_RESP_ERR_NO_ERROR;
    }
    if (strcmp(what, "down") == 0)
        return rd_kafka_mock_broker_set_down(c, a);
    if (strcmp(what, "up") == 0)
        return rd_kafka_mock_broker_set_up(c, a);
    if (strcmp(what, "error") == 0)
        return push_errors(c, a, b, d);
    if (strcmp(what, "leader") == 0)
        return rd_kafka_mock_partition_set_leader(c, words[1], b, d);
    if (strcmp(what, "past") == 0)
        return send_past(c, words[1], b, d);
    if (strcmp(what, "coordinator") == 0)
        return rd_kafka_mock_coordinator_set(c, "group", words[1], b);
    return RD_KAFKA_RESP_ERR__INVALID_ARG;
}

static void obey_line(rd_kafka_mock_cluster_t *c, char *line)
{
    char *words[WORDS] = {NULL}, *rest = NULL;
    rd_kafka_resp_err_t how;

    for (int i = 0; i < WORDS; i++)
        words[i] = strtok_r(i == 0 ? line : NULL, " \n", &rest);
    how = obey(c, words);
    puts(how == RD_KAFKA_RESP_ERR_NO_ERROR ? "ok" : rd_kafka_err2str(how));
    fflush(stdout);
}

static int run_mock(int brokers)
{
    char why[256] = "", line[1024];
    rd_kafka_t *rk =
        rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof why);
    rd_kafka_mock_cluster_t *c =
        rk != NULL ? rd_kafka_mock_cluster_new(rk, brokers) : NULL;

    if (c == NULL)
        return fail("mock", why);
    puts(rd_kafka_mock_cluster_bootstraps(c));
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL)
        obey_line(c, line);
    rd_kafka_mock_cluster_destroy(c);
    rd_kafka_destroy(rk);
    return 0;
}

/* -- what a group has committed -------------------------------------------- */

static rd_kafka_t *make_asker(const char *brokers, const char *group)
{
    char why[256] = "";
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers", brokers, NULL, 0);
    rd_kafka_conf_set(conf, "group.id", group, NULL, 0);
    rd_kafka_conf_set(conf, "log_level", "0", NULL, 0);
    rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (rk == NULL) {
        fail("offsets", why);
        rd_kafka_conf_destroy(conf);
    }
    return rk;
}

/* Whether anything has changed. */
static bool print_changes(const rd_kafka_topic_partition_list_t *list,
                          int64_t *last)
{
    bool has_changed = false;

    for (int i = 0; i < list->cnt; i++) {
        // A coordinator that has just started has no answer yet.
        if (list->elems[i].err != RD_KAFKA_RESP_ERR_NO_ERROR ||
            list->elems[i].offset < 0 || list->elems[i].offset == last[i])
            continue;
        last[i] = list->elems[i].offset;
        printf("%d %lld\n", i, (long long)last[i]);
        has_changed = true;
    }
    return has_changed;
}

static int run_offsets(char **argv)
{
    static int64_t last[PARTITIONS_MAX];
    rd_kafka_t *rk = make_asker(argv[0], argv[1]);
    int partitions = number_of(argv[3]), pause = number_of(argv[4]);
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(partitions);
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    bool is_quiet = false;

    if (rk == NULL || partitions < 1 || partitions > PARTITIONS_MAX)
        return 1;
    rd_kafka_topic_partition_list_add_range(list, argv[2], 0, partitions - 1);
    for (int i = 0; i < partitions; i++)
        last[i] = -2;
    while (poll(&input, 1, pause) == 0) {
        if (rd_kafka_committed(rk, list, TIMEOUT_MS) !=
            RD_KAFKA_RESP_ERR_NO_ERROR)
            continue;
        if (print_changes(list, last))
            is_quiet = false;
        else if (!is_quiet)
            is_quiet = puts("-") >= 0;
        fflush(stdout);
    }
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(rk);
    return 0;
}

/* -- a transaction ---------------------------------------------------------- */

static rd_kafka_t *make_producer(const char *brokers)
{
    char why[256] = "";
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *rk;

    rd_kafka_conf_set(conf, "bootstrap.servers", brokers, NULL, 0);
    rd_kafka_conf_set(conf, "transactional.id", "kafka_tool", NULL, 0);
    rd_kafka_conf_set(conf, "log_level", "0", NULL, 0);
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (rk == NULL) {
        fail("transact", why);
        rd_kafka_conf_destroy(conf);
    }
    return rk;
}

static rd_kafka_error_t *transact(rd_kafka_t *rk, const char *topic,
                                  int partition, int count, bool commits)
{
    rd_kafka_error_t *error = rd_kafka_init_transactions(rk, 30000);
    char text[32];

    if (error == NULL)
        error = rd_kafka_begin_transaction(rk);
    for (int i = 0; error == NULL && i < count; i++) {
        snprintf(text, sizeof text, "x%d", i);
        rd_kafka_producev(rk, RD_KAFKA_V_TOPIC(topic),
                          RD_KAFKA_V_PARTITION(partition),
                          RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                          RD_KAFKA_V_VALUE(text, strlen(text)), RD_KAFKA_V_END);
    }
    if (error == NULL)
        rd_kafka_flush(rk, 30000); // else an abort would drop them
    if (error == NULL)
        error = commits ? rd_kafka_commit_transaction(rk, 30000)
                        : rd_kafka_abort_transaction(rk, 30000);
    return error;
}

static int run_transact(char **argv)
{
    rd_kafka_t *rk = make_producer(argv[0]);
    rd_kafka_error_t *error;
    int status = 0;

    if (rk == NULL)
        return 1;
    error = transact(rk, argv[1], number_of(argv[2]), number_of(argv[3]),
                     strcmp(argv[4], "commit") == 0);
    if (error != NULL)
        status = fail("transact", rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    rd_kafka_destroy(rk);
    return status;
}

/* -- records that go -------------------------------------------------------- */

static int run_delete(char **argv)
{
    char why[256] = "";
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(1);
    rd_kafka_DeleteRecords_t *what;
    rd_kafka_queue_t *queue;
    rd_kafka_event_t *ev;
    rd_kafka_t *rk;
    int status;

    rd_kafka_conf_set(conf, "bootstrap.servers", argv[0], NULL, 0);
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (rk == NULL)
        return fail("delete", why);
    rd_kafka_topic_partition_list_add(list, argv[1], number_of(argv[2]))
        ->offset = number_of(argv[3]);
    what = rd_kafka_DeleteRecords_new(list);
    queue = rd_kafka_queue_new(rk);
    rd_kafka_DeleteRecords(rk, &what, 1, NULL, queue);
    ev = rd_kafka_queue_poll(queue, 30000);
    status = rd_kafka_event_error(ev) == RD_KAFKA_RESP_ERR_NO_ERROR
                 ? 0
                 : fail("delete", rd_kafka_event_error_string(ev));
    rd_kafka_event_destroy(ev);
    rd_kafka_queue_destroy(queue);
    rd_kafka_DeleteRecords_destroy(what);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(rk);
    return status;
}

int main(int argc, char **argv)
{
    if (argc == 7 && strcmp(argv[1], "transact") == 0)
        return run_transact(argv + 2);
    if (argc == 6 && strcmp(argv[1], "delete") == 0)
        return run_delete(argv + 2);
    if (argc >= 2 && strcmp(argv[1], "mock") == 0)
        return run_mock(argc > 2 ? number_of(argv[2]) : 3);
    if (argc == 7 && strcmp(argv[1], "offsets") == 0)
        return run_offsets(argv + 2);
    return fail("usage",
                "mock [BROKERS], offsets BROKERS GROUP TOPIC PARTITIONS "
                "MILLISECONDS, transact BROKERS TOPIC PARTITION COUNT "
                "commit|abort, or delete BROKERS TOPIC PARTITION OFFSET");
}
