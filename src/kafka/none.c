/* Kafka where there is no librdkafka: whoever asks for it is told.
 *
 * The same functions as kafka.c, conf.c and letters.c have, so that the callers
 * need no #if. Opening and checking are refused with words, and nothing can be
 * opened; the functions that take an open consumer or producer are there for
 * the linker and do nothing. A function that is added to kafka.h or letters.h
 * is added here, too: only a build without librdkafka shows that it is not. */
#include "base/refuse.h"
#include "http/header.h"
#include "kafka/kafka.h"
#include "kafka/letters.h"

static stg_status refuse(stg_error *err)
{
    return stg_hub_refuse(err, STG_INVALID,
                          "Kafka: this stagger was built without librdkafka; "
                          "expected one with it, or messages from elsewhere");
}

stg_kafka_options stg_kafka_options_default(void)
{
    return (stg_kafka_options){.headers = stg_headers_default};
}

stg_status stg_kafka_check(const stg_kafka_options *o, stg_error *err)
{
    (void)o;
    return refuse(err);
}

/* STG_OK: a property is not checked without librdkafka. The settings as a whole
 * are refused by stg_kafka_check(). */
stg_status stg_kafka_check_property(const char *name, const char *value,
                                    stg_error *err)
{
    (void)name;
    (void)value;
    (void)err;
    return STG_OK;
}

const char *stg_kafka_version(void)
{
    return NULL;
}

stg_status stg_kafka_open(stg_kafka **kafka, uv_loop_t *loop,
                          const stg_kafka_options *o, stg_error *err)
{
    (void)kafka;
    (void)loop;
    (void)o;
    return refuse(err);
}

/* -- what nobody can have ---------------------------------------------------
 * */

void stg_kafka_close(stg_kafka *k, void (*done)(void *ctx), void *ctx)
{
    (void)k;
    (void)done;
    (void)ctx;
}

void stg_kafka_compare(stg_kafka *k, const stg_topic_partition *p,
                       const stg_fingerprint *print)
{
    (void)k;
    (void)p;
    (void)print;
}

void stg_kafka_resume(stg_kafka *k, const stg_topic_partition *p)
{
    (void)k;
    (void)p;
}

void stg_kafka_renew(stg_kafka *k, const stg_topic_partition *p)
{
    (void)k;
    (void)p;
}

void stg_kafka_begin(stg_kafka *k, const stg_topic_partition *p, uint64_t from,
                     uint64_t tag)
{
    (void)k;
    (void)p;
    (void)from;
    (void)tag;
}

void stg_kafka_let_go(stg_kafka *k, const stg_topic_partition *p)
{
    (void)k;
    (void)p;
}

void stg_kafka_commit(stg_kafka *k, const stg_topic_partition *p,
                      uint64_t offset)
{
    (void)k;
    (void)p;
    (void)offset;
}

void stg_kafka_read(stg_kafka *k, size_t bytes_max, stg_kafka_read_fn *done,
                    void *ctx)
{
    (void)k;
    (void)bytes_max;
    (void)done;
    (void)ctx;
}

void stg_kafka_read_again(stg_kafka *k, const stg_topic_partition *p,
                          uint64_t from, size_t bytes_max, size_t count_max,
                          stg_kafka_read_fn *done, void *ctx)
{
    (void)k;
    (void)p;
    (void)from;
    (void)bytes_max;
    (void)count_max;
    (void)done;
    (void)ctx;
}

void stg_kafka_read_catch_up(stg_kafka *k, const stg_topic_partition *p,
                             uint64_t from, size_t bytes_max, uint64_t tag,
                             stg_kafka_read_fn *done, void *ctx)
{
    (void)k;
    (void)p;
    (void)from;
    (void)bytes_max;
    (void)tag;
    (void)done;
    (void)ctx;
}

size_t stg_kafka_placed(stg_kafka *k, bool is_catch_up, const stg_reserved *all,
                        size_t count)
{
    (void)k;
    (void)is_catch_up;
    (void)all;
    (void)count;
    return 0;
}

const char *stg_kafka_find_topic(stg_kafka *k, const char *name)
{
    (void)k;
    (void)name;
    return NULL;
}

void stg_kafka_publish(stg_kafka *k, const char *topic,
                       const stg_append *messages, const stg_record_id *ids,
                       size_t count, stg_kafka_publish_fn *done, void *ctx)
{
    (void)k;
    (void)topic;
    (void)messages;
    (void)ids;
    (void)count;
    (void)done;
    (void)ctx;
}

void stg_kafka_give_up(stg_kafka *k)
{
    (void)k;
}

void stg_kafka_look(stg_kafka *k, stg_kafka_counts *counts,
                    void (*each)(void *ctx, const stg_kafka_view *v), void *ctx)
{
    (void)k;
    (void)each;
    (void)ctx;
    *counts = (stg_kafka_counts){.is_away = true};
}

/* -- dead letters ---------------------------------------------------------- */

stg_kafka_letters_options stg_kafka_letters_options_default(void)
{
    return (stg_kafka_letters_options){.timeout = 0};
}

stg_status stg_kafka_letters_open(stg_kafka_letters **letters,
                                  const stg_kafka_letters_options *o,
                                  stg_error *err)
{
    (void)letters;
    (void)o;
    return refuse(err);
}

stg_status stg_kafka_letters_write(stg_kafka_letters *l, const stg_letter *rows,
                                   size_t count, stg_letter_report *report,
                                   stg_error *err)
{
    (void)l;
    (void)rows;
    (void)count;
    *report = (stg_letter_report){.written = 0};
    return refuse(err);
}

stg_kafka_letters_counts stg_kafka_letters_look(const stg_kafka_letters *l)
{
    (void)l;
    return (stg_kafka_letters_counts){.written = 0};
}

void stg_kafka_letters_end_soon(stg_kafka_letters *l)
{
    (void)l;
}

void stg_kafka_letters_close(stg_kafka_letters *l)
{
    (void)l;
}
