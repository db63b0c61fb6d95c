/* table.h - every setting, once: its path, kind, range, default, what it does,
 * and an example.
 *
 * The parser and its words, `stagger hub --help`, docs/configuration.md,
 * stagger.yaml(5) and the JSON Schema are all made of this table. Static. */
#ifndef STAGGER_CONFIG_TABLE_H
#define STAGGER_CONFIG_TABLE_H

#include "config/settings.h"

/* What a path begins in, and the struct that `at` is an offset of. */
typedef enum stg_setting_in {
    STG_IN_HUB,    /* the file: stg_settings */
    STG_IN_TARGET, /* one of `targets`, or `defaults`: stg_target_settings */
    STG_IN_SINK,   /* one of `alerts.sinks`: stg_alert_sink_options */
} stg_setting_in;

enum { STG_IN_COUNT = STG_IN_SINK + 1 };

typedef enum stg_setting_kind {
    STG_KIND_SECTION,    /* a map of settings, whose paths go on from it */
    STG_KIND_TEXT,       /* const char *; range: bytes */
    STG_KIND_FILE,       /* const char *, the path of a file */
    STG_KIND_NAME,       /* const char *, of a target or a sink */
    STG_KIND_URL,        /* const char *, of HTTP */
    STG_KIND_METHOD,     /* const char * */
    STG_KIND_ADDRESS,    /* const char *, address:port */
    STG_KIND_SOURCE,     /* stg_source_kind, and what its text says of Kafka */
    STG_KIND_STORE,      /* const char *, a path or postgres://... */
    STG_KIND_LETTERS,    /* stg_letters_settings, file:PATH or kafka:TOPIC */
    STG_KIND_POLICY,     /* const char *, a name or a text */
    STG_KIND_FLAG,       /* bool */
    STG_KIND_FLAG_NOT,   /* bool, its opposite */
    STG_KIND_COUNT,      /* a whole number */
    STG_KIND_PERCENT,    /* the same, with % behind it */
    STG_KIND_SIZE,       /* bytes */
    STG_KIND_TIME,       /* stg_ns */
    STG_KIND_RATE,       /* thousandths a second */
    STG_KIND_WORD,       /* an enum, from `words` */
    STG_KIND_BUDGET,     /* stg_budget_options */
    STG_KIND_THRESHOLD,  /* stg_alert_threshold */
    STG_KIND_ALERTS,     /* bits, a list of words */
    STG_KIND_TEXTS,      /* const char *const *, and a count */
    STG_KIND_RULES,      /* the same, of headers that are kept */
    STG_KIND_BROKERS,    /* the same, of host:port */
    STG_KIND_TOPICS,     /* the same, of names of Kafka's topics */
    STG_KIND_PROPERTIES, /* const stg_property_setting *, and a count */
    STG_KIND_CIDRS,      /* const stg_cidr *, and a count */
    STG_KIND_HEADERS,    /* const stg_header_setting *, and a count */
    STG_KIND_SINK_HEADERS, /* const stg_alert_header *, and a count */
    STG_KIND_MATCH,        /* const stg_match_setting *, and a count */
    STG_KIND_TAGS,         /* const stg_tag_setting *, and a count */
    STG_KIND_SINK_TAGS,    /* const stg_alert_tag *, and a count */
    STG_KIND_POLICIES,     /* a map of names and policies */
    STG_KIND_DEFAULTS,     /* a map, as of a target */
    STG_KIND_TARGETS,      /* a list of maps */
    STG_KIND_SINKS,        /* a list of maps */
} stg_setting_kind;

typedef struct stg_setting {
    const char *path; /* "store.quota" */
    uint64_t least, most;
    const char *none; /* the word for STG_NEVER, also of a number; NULL: it has
                         none */
    const char *const *words; /* of STG_KIND_WORD, in the enum's order */
    const char *standard;     /* the default, as it is written; NULL: none */
    const char *example;
    const char *says; /* what it does: sentences */
    const char *flag; /* of `stagger hub`: "-s, --store FILE"; NULL: none */
    stg_setting_in in;
    stg_setting_kind kind;
    uint16_t at, size; /* where its value is, and how large */
    uint16_t count_at; /* of a list: where its count is */
    bool is_fixed;     /* only a restart changes it */
    bool is_own;       /* of a target: not for `defaults` */
    bool is_needed;    /* there is no default */
    bool is_secret;    /* a file that nobody else may read */
} stg_setting;

/* The setting number i from 0, in the order of the documentation; NULL after the
 * last. */
const stg_setting *stg_setting_at(size_t i);

/* Its number. */
size_t stg_setting_number(const stg_setting *s);

/* How many there are. */
size_t stg_setting_count(void);

/* NULL: there is none. */
const stg_setting *stg_setting_find(stg_setting_in in, const char *path,
                                    size_t size);

/* That with the flag "--store"; NULL: none. */
const stg_setting *stg_setting_of_flag(const char *flag);

#endif
