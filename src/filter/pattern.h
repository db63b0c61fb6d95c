/* pattern.h - which JSON a message's body must be: the patterns of Amazon
 * EventBridge, compiled once and matched against a body that is parsed once.
 *
 *     {"source": ["aws.ec2"],
 *      "detail": {"state": ["running", {"prefix": "stop"}],
 *                 "count": [{"numeric": [">", 0, "<=", 5]}]}}
 *
 * A pattern is a map of fields, and matches when all of them do. A field has
 * either a map, which goes one level down, or a list of values and conditions,
 * one of which must be met:
 *
 *     "text", 5, true, null                the same value
 *     {"prefix": X}, {"suffix": X}         X: a text, or {"equals-ignore-case": it}
 *     {"equals-ignore-case": "text"}
 *     {"wildcard": "a*b"}                  * is any text; \* and \\ are * and \
 *     {"numeric": [">", 0, "<=", 5]}       = < <= > >=, one or two; of numbers alone
 *     {"cidr": "10.0.0.0/24"}              of an address, IPv4 or IPv6, in a text
 *     {"exists": true}, {"exists": false}  of a value, not of a map
 *     {"anything-but": X}                  there is a value, and it is none of X: a
 *                                          text or number, a list of them, or one
 *                                          of prefix, suffix, equals-ignore-case
 *                                          and wildcard with a text or a list
 *     "$or": [{...}, {...}]                one of these maps, beside the other fields
 *
 * Where a body has a list, one of its items must match, however deep lists are in
 * lists; a map of the pattern must match one item as a whole ("array-consistent",
 * as Event Ruler does). So {"exists": false} in such a map is about that item.
 *
 * Differences to EventBridge: numbers are equal as numbers everywhere (5, 5.0 and
 * 5e0): two integers of 64 bits are compared exactly, others as doubles; a body with
 * a number beyond these (1e400) is not JSON.
 * Ignoring case is of A to Z. The whole of a pattern and a match are linear in
 * pattern times body; a field that comes twice in the body counts with its last
 * value.
 *
 * Pure: no clock, no I/O. Source: docs.aws.amazon.com/eventbridge/latest/userguide
 * ("Comparison operators for use in event patterns"), github.com/aws/event-ruler. */
#ifndef STAGGER_FILTER_PATTERN_H
#define STAGGER_FILTER_PATTERN_H

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include <stagger/status.h>

#include "base/span.h"
#include "base/text.h"

typedef struct stg_pattern stg_pattern;

enum {
    STG_PATTERN_DEPTH = 24,        /* lists and maps in one another */
    STG_PATTERN_VALUES = 4096,     /* of all kinds in one pattern */
    STG_PATTERN_BODY_MAX = 100000, /* values of a body, a list or map as two */
};

/* What is wrong with a pattern, and where: parts from the top on, by their number
 * in a map or list. */
typedef struct stg_pattern_flaw {
    char path[160]; /* "detail.state"; "" is the whole */
    char what[200]; /* "a text; expected a list of values" */
    size_t at[STG_PATTERN_DEPTH + 1];
    size_t depth;
} stg_pattern_flaw;

/* Compiles what source says. The pattern keeps source, which must not be changed
 * from then on. STG_INVALID: *flaw says why. STG_IO: no memory. */
stg_status stg_pattern_new(stg_pattern **pattern, json_t *source,
                           stg_pattern_flaw *flaw);

/* It has a count of its users, and is freed with the last. */
stg_pattern *stg_pattern_ref(stg_pattern *p);
void stg_pattern_unref(stg_pattern *p); /* NULL is none */

/* Whether both say the same; the order of keys does not count. */
bool stg_pattern_equal(const stg_pattern *a, const stg_pattern *b);

/* The body as patterns see it; to be freed by json_decref(). NULL: it is not JSON
 * (RFC 8259, in UTF-8, 2,048 levels at most), has more than STG_PATTERN_BODY_MAX
 * values, or there is no memory. */
json_t *stg_pattern_parse(stg_span body);

/* Whether it has more values than are parsed. */
bool stg_pattern_is_too_many(stg_span body);

/* body: NULL is not JSON, and matches nothing. */
bool stg_pattern_matches(const stg_pattern *p, const json_t *body);

/* Of a pattern of one field with a list, which is about a text that is no body, such
 * as the value of a header: whether the text meets it; or that there is none. */
bool stg_pattern_takes_text(const stg_pattern *p, stg_span text);
bool stg_pattern_takes_nothing(const stg_pattern *p);

/* What it was compiled from. */
const json_t *stg_pattern_source(const stg_pattern *p);

/* Why it does not match, as a line: the first field that does not, and what stands
 * there. Begins with `name`, the body's. Adds nothing if it matches. */
void stg_pattern_explain(const stg_pattern *p, const json_t *body,
                         const char *name, stg_text *why);

#endif
