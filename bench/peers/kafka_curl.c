/* What one writes without a hub, as well as one would: a consumer of librdkafka
 * and libcurl's multi interface in one loop. For comparison: bench/kafka.py.
 *
 * usage: kafka_curl BROKERS GROUP TOPIC URL...
 *
 * Every record goes to every URL by POST, up to 64 requests at once for each,
 * and again after 1, 2, 4 and 8 s. The offset that is committed follows the
 * oldest record that is not done. Runs until SIGTERM. */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <curl/curl.h>
#include <librdkafka/rdkafka.h>

enum {
    EACH = 64,
    ATTEMPTS = 5,
    BATCH = 500,
    TIMEOUT_S = 10,
    PARTITIONS = 1024,
    COMMIT_MS = 1000
};

/* A record that is not done everywhere; of each partition in their order. */
typedef struct record {
    struct record *next;
    rd_kafka_message_t *message;
    unsigned left;
} record;

typedef struct request {
    struct request *next; /* waits, or is free */
    CURL *easy;
    record *record;
    size_t target, attempt;
    int64_t due_ms;
} request;

typedef struct peer {
    rd_kafka_t *kafka;
    CURLM *multi;
    struct curl_slist *headers;
    char **urls;
    size_t count, in_flight;
    request *free, *waiting;
    record *first[PARTITIONS], *last[PARTITIONS];
    rd_kafka_topic_partition_list_t *done;
    const char *topic;
} peer;

static volatile sig_atomic_t is_over;

static void on_signal(int number)
{
    (void)number;
    is_over = 1;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static size_t swallow(char *bytes, size_t size, size_t count, void *ctx)
{
    (void)bytes;
    (void)ctx;
    return size * count;
}

static request *take(peer *p)
{
    request *r = p->free;

    if (r != NULL) {
        p->free = r->next;
        return r;
    }
    r = calloc(1, sizeof *r);
    if (r == NULL || (r->easy = curl_easy_init()) == NULL)
        exit(1);
    curl_easy_setopt(r->easy, CURLOPT_WRITEFUNCTION, swallow);
    curl_easy_setopt(r->easy, CURLOPT_HTTPHEADER, p->headers);
    curl_easy_setopt(r->easy, CURLOPT_TIMEOUT, (long)TIMEOUT_S);
    curl_easy_setopt(r->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(r->easy, CURLOPT_PRIVATE, r);
    return r;
}

static void start(peer *p, request *r)
{
    curl_easy_setopt(r->easy, CURLOPT_URL, p->urls[r->target]);
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDSIZE,
                     (long)r->record->message->len);
    curl_easy_setopt(r->easy, CURLOPT_POSTFIELDS, r->record->message->payload);
    curl_multi_add_handle(p->multi, r->easy);
}

/* Records that are done at the front of their partition go. */
static void settle(peer *p, record *r)
{
    int32_t partition = r->message->partition;

    if (--r->left > 0)
        return;
    while ((r = p->first[partition]) != NULL && r->left == 0) {
        rd_kafka_topic_partition_t *at =
            rd_kafka_topic_partition_list_find(p->done, p->topic, partition);

        if (at == NULL)
            at =
                rd_kafka_topic_partition_list_add(p->done, p->topic, partition);
        at->offset = r->message->offset + 1;
        p->first[partition] = r->next;
        rd_kafka_message_destroy(r->message);
        free(r);
    }
}

static void end(peer *p, request *r, bool is_good)
{
    if (!is_good && ++r->attempt < ATTEMPTS) {
        r->due_ms = now_ms() + (1000 << (r->attempt - 1));
        r->next = p->waiting;
        p->waiting = r;
        return;
    }
    p->in_flight--;
    settle(p, r->record);
    r->next = p->free;
    p->free = r;
}

static void begin(peer *p, rd_kafka_message_t *m)
{
    record *r = calloc(1, sizeof *r);

    if (r == NULL || m->partition >= PARTITIONS)
        exit(1);
    *r = (record){.message = m, .left = (unsigned)p->count};
    if (p->first[m->partition] == NULL)
        p->first[m->partition] = r;
    else
        p->last[m->partition]->next = r;
    p->last[m->partition] = r;
    for (size_t i = 0; i < p->count; i++) {
        request *q = take(p);

        q->record = r;
        q->target = i;
        q->attempt = 0;
        p->in_flight++;
        start(p, q);
    }
}

static void read_some(peer *p, rd_kafka_queue_t *queue)
{
    static rd_kafka_message_t *batch[BATCH];
    size_t room = p->in_flight < EACH * p->count
                      ? (EACH * p->count - p->in_flight) / p->count
                      : 0;
    ssize_t count = 0;

    if (room > 0)
        count = rd_kafka_consume_batch_queue(queue, 0, batch,
                                             room < BATCH ? room : BATCH);
    for (ssize_t i = 0; i < count; i++)
        if (batch[i]->err == RD_KAFKA_RESP_ERR_NO_ERROR)
            begin(p, batch[i]);
        else
            rd_kafka_message_destroy(batch[i]);
}

static void end_some(peer *p)
{
    int left;
    CURLMsg *m;

    while ((m = curl_multi_info_read(p->multi, &left)) != NULL) {
        CURL *easy = m->easy_handle;
        bool is_good = m->data.result == CURLE_OK;
        long status = 0;
        request *r;

        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&r);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        curl_multi_remove_handle(p->multi, easy);
        end(p, r, is_good && status / 100 == 2);
    }
}

static void try_again(peer *p)
{
    int64_t now = now_ms();

    for (request **at = &p->waiting; *at != NULL;) {
        request *r = *at;

        if (r->due_ms > now) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        start(p, r);
    }
}

static void commit(peer *p, int64_t *last_ms)
{
    if (now_ms() - *last_ms < COMMIT_MS || p->done->cnt == 0)
        return;
    *last_ms = now_ms();
    rd_kafka_commit(p->kafka, p->done, 1);
    rd_kafka_topic_partition_list_destroy(p->done);
    p->done = rd_kafka_topic_partition_list_new(8);
}

static void run(peer *p, rd_kafka_queue_t *queue)
{
    int64_t last_ms = now_ms();
    int running;

    while (!is_over) {
        read_some(p, queue);
        try_again(p);
        curl_multi_perform(p->multi, &running);
        end_some(p);
        commit(p, &last_ms);
        curl_multi_poll(p->multi, NULL, 0, running > 0 ? 1 : 5, NULL);
    }
}

static rd_kafka_t *open_kafka(char **argv)
{
    rd_kafka_conf_t *c = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *topics =
        rd_kafka_topic_partition_list_new(1);
    char why[256] = "";
    rd_kafka_t *kafka;

    rd_kafka_conf_set(c, "bootstrap.servers", argv[1], NULL, 0);
    rd_kafka_conf_set(c, "group.id", argv[2], NULL, 0);
    rd_kafka_conf_set(c, "enable.auto.commit", "false", NULL, 0);
    rd_kafka_conf_set(c, "auto.offset.reset", "earliest", NULL, 0);
    kafka = rd_kafka_new(RD_KAFKA_CONSUMER, c, why, sizeof why);
    if (kafka == NULL) {
        fprintf(stderr, "kafka_curl: %s\n", why);
        exit(1);
    }
    rd_kafka_poll_set_consumer(kafka);
    rd_kafka_topic_partition_list_add(topics, argv[3], -1);
    rd_kafka_subscribe(kafka, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    return kafka;
}

int main(int argc, char **argv)
{
    peer p = {.count = argc > 4 ? (size_t)argc - 4 : 0};
    rd_kafka_queue_t *queue;

    if (p.count == 0) {
        fputs("usage: kafka_curl BROKERS GROUP TOPIC URL...\n", stderr);
        return 2;
    }
    signal(SIGTERM, on_signal);
    curl_global_init(CURL_GLOBAL_ALL);
    p.urls = argv + 4;
    p.topic = argv[3];
    p.kafka = open_kafka(argv);
    p.multi = curl_multi_init();
    p.headers = curl_slist_append(NULL, "Content-Type: application/json");
    p.headers = curl_slist_append(p.headers, "Expect:");
    p.done = rd_kafka_topic_partition_list_new(8);
    queue = rd_kafka_queue_get_consumer(p.kafka);
    run(&p, queue);
    rd_kafka_queue_destroy(queue);
    rd_kafka_consumer_close(p.kafka);
    return 0;
}
