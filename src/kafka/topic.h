/* topic.h - topics and properties of Kafka as settings say them. A topic is a name, or a
 * pattern that
 * begins with ^ and stands for all names that it matches.
 *
 * A pattern is what librdkafka subscribes by: a POSIX extended regular
 * expression (regex(7)), matched anywhere behind its ^: `^orders\..*` and
 * `^orders\.` are the same, `^orders$` is one name. */
#ifndef STAGGER_KAFKA_TOPIC_H
#define STAGGER_KAFKA_TOPIC_H

#include <stdbool.h>

#include <stagger/status.h>

#include "base/span.h"

#define STG_TOPIC_MAX 249

/* 1 to 249 of A-Z a-z 0-9 . _ - and neither . nor .. : Kafka's rule. */
bool stg_topic_is_name(stg_span text);

bool stg_topic_is_pattern(const char *text);

/* Returns STG_INVALID with words (regcomp's, of a pattern) for what is
 * neither. */
stg_status stg_topic_check(const char *text, stg_error *err);

/* Whether `text` is the topic's name, or a pattern that matches it. Compiles the
 * pattern: not for each message. */
bool stg_topic_matches(const char *text, const char *topic);

/* -- properties ---------------------------------------------------------- */

/* Properties of librdkafka that are the hub's own. */

/* Why, with what to do: "is the hub's own; expected none". NULL: it can be
 * set. */
const char *stg_kafka_reserved(const char *name);

#endif
