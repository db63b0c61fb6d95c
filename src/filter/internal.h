/* internal.h - a compiled pattern, as the files of this room share it. Private to
 * them. */
#ifndef STAGGER_FILTER_INTERNAL_H
#define STAGGER_FILTER_INTERNAL_H

#include "filter/pattern.h"

typedef enum stg_pattern_test_kind {
    STG_TEST_EQUALS,
    STG_TEST_PREFIX,
    STG_TEST_SUFFIX,
    STG_TEST_WILDCARD,
    STG_TEST_NUMERIC,
    STG_TEST_CIDR,
    STG_TEST_EXISTS,
    STG_TEST_BUT, /* anything but */
} stg_pattern_test_kind;

typedef enum stg_pattern_numeric {
    STG_NUMERIC_EQUAL,
    STG_NUMERIC_LESS,
    STG_NUMERIC_LESS_EQUAL,
    STG_NUMERIC_GREATER,
    STG_NUMERIC_GREATER_EQUAL,
} stg_pattern_numeric;

typedef struct stg_pattern_address {
    unsigned char bytes[16];
    int family; /* AF_INET or AF_INET6 */
} stg_pattern_address;

/* One item of a field's list. What it points to is of the pattern's source, or of
 * the pattern. */
typedef struct stg_pattern_test stg_pattern_test;
struct stg_pattern_test {
    stg_pattern_test_kind kind;
    bool ignores_case;
    bool exists;
    const json_t *source; /* as it was written */
    const json_t *value;  /* EQUALS */
    stg_span text; /* EQUALS of a text, PREFIX, SUFFIX; WILDCARD: its pieces
                             between the stars, with a zero behind each */
    size_t count;  /* WILDCARD: pieces; NUMERIC: conditions; BUT: tests */
    struct {
        stg_pattern_numeric is;
        const json_t *than;
    } numeric[2];
    stg_pattern_address address; /* CIDR */
    unsigned bits;
    const stg_pattern_test *tests; /* BUT: the value passes none of them */
};

typedef enum stg_pattern_field_kind {
    STG_FIELD_LIST, /* one of its tests is passed */
    STG_FIELD_MAP,  /* all of its parts match */
    STG_FIELD_OR,   /* one of its parts does, each a map without a name */
} stg_pattern_field_kind;

typedef struct stg_pattern_field stg_pattern_field;
struct stg_pattern_field {
    stg_pattern_field_kind kind;
    const char *name;
    const stg_pattern_field *parts;
    const stg_pattern_test *tests;
    size_t count;
};

struct stg_pattern {
    json_t *source;
    uint64_t hash; /* of it, with its keys sorted */
    uint32_t users;
    stg_pattern_field top; /* a MAP */
    stg_pattern_field *fields;
    stg_pattern_test *tests;
    char *texts;
    size_t field_count, test_count, text_size; /* that are used */
};

/* Of an address as a text; false: it is none. */
bool stg_pattern_address_read(stg_pattern_address *a, const char *text,
                              size_t size);

/* Whether a value that is no list and no map passes the test; not of EXISTS. */
bool stg_pattern_passes(const stg_pattern_test *t, const json_t *value);

/* Whether one of the values in v passes one of the tests; v: NULL is not there. */
bool stg_pattern_has(const stg_pattern_field *list, const json_t *v);

/* Whether the map matches v, a map or NULL. */
bool stg_pattern_fits(const stg_pattern_field *map, const json_t *v);

/* Whether it matches v, or where v is a list one of its items. */
bool stg_pattern_fits_within(const stg_pattern_field *map, const json_t *v);

#endif
