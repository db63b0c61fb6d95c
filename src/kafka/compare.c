/* Whether a partition's log is the one that a fingerprint was taken of: the
 * records of the fingerprint are read again, by a consumer of its own, for all
 * partitions at once. */
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "kafka/internal.h"

enum {
    ROUND_MS = 3000, /* for one record of each partition */
    POLL_MS = 100,
    QUEUE_MAX = 256 << 10,
    ANSWER_MAX = 4 << 20,
    PIECE_MAX = 16 << 10,
};

/* -- a mark ---------------------------------------------------------------- */

/* The length goes first, so that bytes cannot move between two fields and give
 * the same hash; a field that is null differs from an empty one. */
static void hash_bytes(EVP_MD_CTX *c, const void *bytes, size_t size)
{
    uint64_t length = bytes == NULL ? UINT64_MAX : size;

    (void)EVP_DigestUpdate(c, &length, sizeof length);
    if (bytes != NULL && size > 0)
        (void)EVP_DigestUpdate(c, bytes, size);
}

static void hash_headers(EVP_MD_CTX *c, const rd_kafka_message_t *m)
{
    rd_kafka_headers_t *headers;
    const char *name;
    const void *value;
    size_t size;

    if (rd_kafka_message_headers(m, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return;
    for (size_t i = 0;
         rd_kafka_header_get_all(headers, i, &name, &value, &size) ==
         RD_KAFKA_RESP_ERR_NO_ERROR;
         i++) {
        hash_bytes(c, name, strlen(name));
        hash_bytes(c, value, size);
    }
}

/* The first 8 bytes of a SHA-256 over timestamp, key, value and headers. 0
 * stands for no mark, so that it becomes 1. Marks are stored: to change what is
 * hashed makes every log that is known look like another one. */
static uint64_t hash_of(const rd_kafka_message_t *m, int64_t at_ms)
{
    unsigned char digest[EVP_MAX_MD_SIZE] = {0};
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    uint64_t hash;

    if (c == NULL || EVP_DigestInit_ex(c, EVP_sha256(), NULL) != 1)
        abort();
    hash_bytes(c, &at_ms, sizeof at_ms);
    hash_bytes(c, m->key, m->key_len);
    hash_bytes(c, m->payload, m->len);
    hash_headers(c, m);
    (void)EVP_DigestFinal_ex(c, digest, NULL);
    EVP_MD_CTX_free(c);
    memcpy(&hash, digest, sizeof hash);
    return hash != 0 ? hash : 1;
}

stg_log_mark stg_kafka_mark(const rd_kafka_message_t *m)
{
    rd_kafka_timestamp_type_t type;
    int64_t at_ms = rd_kafka_message_timestamp(m, &type);

    return (stg_log_mark){.position = (uint64_t)m->offset,
                          .at_ms = at_ms > 0 ? (uint64_t)at_ms : 0,
                          .hash = hash_of(m, at_ms)};
}

/* -- what a round finds ---------------------------------------------------- */

/* One partition of a comparison. */
typedef struct compared {
    const stg_kafka_command *ask;
    stg_kafka_ends ends;
    uint64_t offset;                /* to be read in this round */
    bool is_asked;                  /* in this round, and not answered yet */
    stg_kafka_sameness last, first; /* of the marks; NO_ANSWER: not known */
    stg_log_mark oldest; /* the record at, or behind, the first mark; hash 0:
                            there is none */
    bool is_by_broker;   /* its timestamp is the broker's: they never fall */
} compared;

typedef struct comparison {
    rd_kafka_t *rk;
    compared *all;
    size_t count;
} comparison;

static compared *find(const comparison *c, const rd_kafka_message_t *m)
{
    const char *topic = m->rkt == NULL ? "" : rd_kafka_topic_name(m->rkt);

    for (size_t i = 0; i < c->count; i++)
        if (c->all[i].ask->tp.partition == (uint32_t)m->partition &&
            strcmp(c->all[i].ask->tp.topic, topic) == 0)
            return &c->all[i];
    return NULL;
}

/* A record at another position proves nothing: the one that was noted may have
 * expired or been compacted away. */
static stg_kafka_sameness compare_mark(const stg_log_mark *expected,
                                       const stg_log_mark *found)
{
    if (found->hash == 0 || found->position != expected->position)
        return STG_KAFKA_UNSURE;
    return found->hash == expected->hash ? STG_KAFKA_SAME : STG_KAFKA_OTHER;
}

/* m: NULL: the log has no record from that offset on. */
static void take(compared *one, const rd_kafka_message_t *m, bool of_last)
{
    const stg_fingerprint *print = &one->ask->print;
    rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    stg_log_mark mark = {.hash = 0};

    if (m != NULL && m->offset >= 0) {
        mark = stg_kafka_mark(m);
        (void)rd_kafka_message_timestamp(m, &type);
    }
    one->is_asked = false;
    if (of_last) {
        one->last = compare_mark(&print->last, &mark);
        return;
    }
    one->first = compare_mark(&print->first, &mark);
    one->oldest = mark;
    one->is_by_broker = type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME;
}

/* -- a round --------------------------------------------------------------- */

static rd_kafka_topic_partition_list_t *list_asked(const comparison *c)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)c->count);

    for (size_t i = 0; i < c->count; i++) {
        const compared *one = &c->all[i];

        if (one->is_asked)
            rd_kafka_topic_partition_list_add(list, one->ask->tp.topic,
                                              (int32_t)one->ask->tp.partition)
                ->offset = (int64_t)one->offset;
    }
    return list;
}

static rd_kafka_queue_t *
open_records(rd_kafka_t *rk, const rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_queue_t *records = rd_kafka_queue_new(rk);

    for (int i = 0; i < list->cnt; i++) {
        rd_kafka_queue_t *own = rd_kafka_queue_get_partition(
            rk, list->elems[i].topic, list->elems[i].partition);

        if (own == NULL)
            continue;
        rd_kafka_queue_forward(own, records);
        rd_kafka_queue_destroy(own);
    }
    return records;
}

/* The end of the partition and an offset out of range are answers: the log has
 * no record there. Any other error leaves the question open until the round
 * ends. */
static bool is_no_answer(rd_kafka_resp_err_t err)
{
    return err != 0 && err != RD_KAFKA_RESP_ERR__PARTITION_EOF &&
           err != RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET &&
           err != RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE;
}

static void take_record(comparison *c, const rd_kafka_message_t *m,
                        bool of_last, int *left)
{
    compared *one = find(c, m);

    if (one == NULL || !one->is_asked || is_no_answer(m->err) ||
        (m->err == 0 && (uint64_t)m->offset < one->offset))
        return;
    take(one, m->err == 0 ? m : NULL, of_last);
    --*left;
}

/* Ends when each partition has answered, or after ROUND_MS; those that have not
 * stay NO_ANSWER. */
static void read_round(comparison *c, bool of_last)
{
    rd_kafka_topic_partition_list_t *list = list_asked(c), *none;
    stg_ns until = stg_kafka_now() + ROUND_MS * STG_MS;
    rd_kafka_queue_t *records;
    int left = list->cnt;

    if (left > 0) {
        records = open_records(c->rk, list);
        if (rd_kafka_assign(c->rk, list) != RD_KAFKA_RESP_ERR_NO_ERROR)
            until = 0;
        while (left > 0 && stg_kafka_now() < until) {
            rd_kafka_message_t *m = rd_kafka_consume_queue(records, POLL_MS);

            if (m == NULL)
                continue;
            take_record(c, m, of_last, &left);
            rd_kafka_message_destroy(m);
        }
        (void)rd_kafka_assign(c->rk, NULL);
        if (rd_kafka_assignment(c->rk, &none) == RD_KAFKA_RESP_ERR_NO_ERROR)
            rd_kafka_topic_partition_list_destroy(none);
        rd_kafka_queue_destroy(records);
    }
    rd_kafka_topic_partition_list_destroy(list);
}

static bool has_offset(const compared *one, uint64_t offset)
{
    return offset >= (uint64_t)one->ends.begin &&
           offset < (uint64_t)one->ends.end;
}

static void ask_last(comparison *c)
{
    for (size_t i = 0; i < c->count; i++) {
        compared *one = &c->all[i];

        if (one->ends.begin < 0 || one->ends.end < 0)
            continue;
        one->offset = one->ask->print.last.position;
        one->is_asked = has_offset(one, one->offset);
        if (!one->is_asked)
            one->last = STG_KAFKA_UNSURE;
    }
    read_round(c, true);
}

/* The first mark, or what is the oldest behind it. */
static void ask_first(comparison *c)
{
    for (size_t i = 0; i < c->count; i++) {
        compared *one = &c->all[i];

        if (one->last == STG_KAFKA_NO_ANSWER || one->last == STG_KAFKA_OTHER)
            continue;
        one->offset = stg_ns_max(one->ask->print.first.position,
                                 (uint64_t)one->ends.begin);
        one->is_asked = has_offset(one, one->offset);
        if (!one->is_asked)
            one->first = STG_KAFKA_UNSURE;
    }
    read_round(c, false);
}

/* -- the verdict ----------------------------------------------------------- */

/* Neither record of the fingerprint is there. */
static stg_kafka_sameness evaluate_gone(const compared *one, const char **why)
{
    const stg_log_mark *last = &one->ask->print.last;

    if ((uint64_t)one->ends.begin > last->position) {
        *why = "all that was read of it has expired";
        return STG_KAFKA_SAME;
    }
    if ((uint64_t)one->ends.end <= last->position) {
        *why = "it ends below what was read of it";
        return STG_KAFKA_OTHER;
    }
    if (one->oldest.hash == 0 || one->oldest.position > last->position) {
        *why = "no record that was read of it is there any more";
        return STG_KAFKA_UNSURE;
    }
    if (one->oldest.at_ms <= last->at_ms) {
        *why = "its oldest record is not younger than what was read";
        return STG_KAFKA_SAME;
    }
    *why = "a record below what was read is younger than what was read";
    return one->is_by_broker ? STG_KAFKA_OTHER : STG_KAFKA_UNSURE;
}

/* The order of the questions is the rule: what proves another log comes before
 * what proves the same one, for a log that was made again may have one equal
 * record. The first mark is asked of the brokers only if the last has not told
 * of another log. */
static stg_kafka_sameness evaluate(const compared *one, const char **why)
{
    *why = "no broker has answered in time";
    if (one->last == STG_KAFKA_NO_ANSWER)
        return STG_KAFKA_NO_ANSWER;
    *why = "another record is where one was read before";
    if (one->last == STG_KAFKA_OTHER || one->first == STG_KAFKA_OTHER)
        return STG_KAFKA_OTHER;
    *why = "its first offset is below the one that it had";
    if ((uint64_t)one->ends.begin < one->ask->print.begin)
        return STG_KAFKA_OTHER;
    *why = "a record that was read before is there";
    if (one->last == STG_KAFKA_SAME || one->first == STG_KAFKA_SAME)
        return STG_KAFKA_SAME;
    *why = "no broker has answered in time";
    if (one->first == STG_KAFKA_NO_ANSWER)
        return STG_KAFKA_NO_ANSWER;
    return evaluate_gone(one, why);
}

static void tell(stg_kafka_events *post, const comparison *c)
{
    stg_kafka_event *note = stg_kafka_event_new(STG_KAFKA_EVENT_COMPARED);

    note->compared = stg_kafka_memory(c->count, sizeof *note->compared);
    note->count = c->count;
    for (size_t i = 0; i < c->count; i++) {
        note->compared[i].tp = c->all[i].ask->tp;
        note->compared[i].how = evaluate(&c->all[i], &note->compared[i].why);
    }
    stg_kafka_events_send(post, note);
}

/* -- all of them ----------------------------------------------------------- */

/* By a consumer of its own, which is gone when the questions are answered: this
 * happens after a rebalance at most. */
static void read_all(comparison *c, const stg_kafka_options *o)
{
    static const stg_kafka_sizes sizes = {.queue_max = QUEUE_MAX,
                                          .answer_max = ANSWER_MAX,
                                          .piece_max = PIECE_MAX};
    stg_topic_partition *places = stg_kafka_memory(c->count, sizeof *places);
    stg_kafka_ends *ends = stg_kafka_memory(c->count, sizeof *ends);
    rd_kafka_conf_t *conf = stg_kafka_conf(o, &sizes, NULL);
    rd_kafka_resp_err_t err;

    c->rk = conf == NULL ? NULL : stg_kafka_consumer(conf, NULL);
    for (size_t i = 0; i < c->count; i++)
        places[i] = c->all[i].ask->tp;
    if (c->rk != NULL &&
        stg_kafka_ends_ask(c->rk, places, c->count, ends, false, &err)) {
        for (size_t i = 0; i < c->count; i++)
            c->all[i].ends = ends[i];
        ask_last(c);
        ask_first(c);
    }
    if (c->rk != NULL)
        stg_kafka_destroy(c->rk);
    free(places);
    free(ends);
}

/* All questions that wait are asked at once. Without an answer a partition stays
 * suspect, and is asked about again. */
void stg_kafka_compare_all(const stg_kafka_options *o, stg_kafka_events *post,
                           stg_list *asks)
{
    comparison c = {.rk = NULL};
    stg_link *link;

    for (link = stg_list_first(asks); link != NULL;
         link = stg_list_next(asks, link))
        c.count++;
    if (c.count == 0)
        return;
    c.all = stg_kafka_memory(c.count, sizeof *c.all);
    c.count = 0;
    for (link = stg_list_first(asks); link != NULL;
         link = stg_list_next(asks, link))
        c.all[c.count++] =
            (compared){.ask = STG_HOLDER(link, stg_kafka_command, link),
                       .ends = {-1, -1, -1},
                       .last = STG_KAFKA_NO_ANSWER,
                       .first = STG_KAFKA_NO_ANSWER};
    read_all(&c, o);
    tell(post, &c);
    while ((link = stg_list_shift(asks)) != NULL)
        free(STG_HOLDER(link, stg_kafka_command, link));
    free(c.all);
}
