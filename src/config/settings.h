/* settings.h - all that can be set of a hub: plain values, with defaults.
 *
 * A settings file (load.h) and the options of `stagger hub` fill in the same
 * struct, and stg_hub_open() opens from it. Whoever fills it in by hand:
 *
 *     stg_settings *s = stg_settings_new();
 *     stg_target_settings *t = stg_settings_add_target(s);
 *     t->url = "http://127.0.0.1:9000/in";
 *     status = stg_settings_complete(s, &err);
 *
 * Texts and lists that it points to are kept: static, or made by
 * stg_settings_keep(), which go with the settings. A NULL text and an empty list
 * say that there is none. Not shared by threads while it is filled in; then it
 * does not change. */
#ifndef STAGGER_CONFIG_SETTINGS_H
#define STAGGER_CONFIG_SETTINGS_H

#include <stddef.h>

#include <stagger/policy.h>

#include "alerts/options.h"
#include "filter/pattern.h"
#include "flow/flow.h"
#include "host/log.h"
#include "http/client.h"
#include "http/egress.h"
#include "http/oauth.h"
#include "http/sign.h"
#include "http/template.h"
#include "http/trace.h"
#include "ingress/cloud_event.h"
#include "ingress/webhook.h"
#include "store/store.h"

#define STG_TARGET_NAME_MAX 65 /* the terminator included */

/* Where something was written; 0: nowhere. Both count from 1, column in
 * characters. */
typedef struct stg_file_place {
    uint32_t line, column;
} stg_file_place;

/* A list of texts. */
typedef struct stg_texts {
    const char *const *at; /* ended by NULL; NULL if there are none */
    size_t count;
} stg_texts;

/* A header of a target's requests. The value is a secret if it came from a
 * file, and perhaps if not: it is never shown. */
typedef struct stg_header_setting {
    const char *name;
    const char *value;
    const char *file; /* where the value came from; NULL: from the settings */
} stg_header_setting;

typedef enum stg_grant_type {
    STG_GRANT_CLIENT_CREDENTIALS,
    STG_GRANT_NONE, /* no token, whatever the defaults say */
} stg_grant_type;

/* `oauth2` of a target: see http/oauth.h. */
typedef struct stg_oauth_settings {
    stg_grant_type grant;
    const char *token_url;         /* NULL: no token */
    const char *token_url_written; /* with its ${NAME}; NULL: as token_url */
    const char *client_id, *key_id, *assertion_audience, *audience, *ca_file;
    const stg_sign_secret *secrets; /* client-secret, one at most */
    size_t secret_count;
    const stg_sign_secret *keys; /* private-key, one at most */
    size_t key_count;
    stg_texts scope;
    stg_oauth_auth auth;
} stg_oauth_settings;

/* A property of librdkafka. The value is a secret if it came from a file. */
typedef struct stg_property_setting {
    const char *name;
    const char *value;
    const char *file; /* where the value came from; NULL: from the settings */
} stg_property_setting;

/* What a message must have, in a header (Content-Type and Stagger-Key too): one
 * of the values, byte by byte, or what a condition asks for; or in its body. */
typedef struct stg_match_setting {
    const char *header;      /* case does not count; NULL: of the body */
    stg_texts values;        /* 1 or more */
    stg_pattern *conditions; /* instead of values; NULL: they count */
    bool is_attribute;       /* the header is one of a CloudEvent: ce-* */
    stg_pattern *body;       /* NULL: of a header. The settings' own */
    stg_pattern *event; /* NULL; else of the body of a CloudEvent in structured
                           mode, in the place of all headers ce-*. Likewise */
} stg_match_setting;

typedef struct stg_tag_setting {
    const char *name, *value;
} stg_tag_setting;

/* Where a lane begins that the store does not know. */
typedef enum stg_target_start {
    STG_TARGET_START_LATEST,   /* with the next message */
    STG_TARGET_START_EARLIEST, /* with the first one that the log is sure to
                                  keep */
} stg_target_start;

/* When its dead letters are sent again without a call. */
typedef enum stg_target_replay {
    STG_REPLAY_OFF,
    STG_REPLAY_ON_RECOVERY,
} stg_target_replay;

typedef enum stg_batch_format {
    STG_BATCH_ARRAY, /* a JSON array of bodies */
    STG_BATCH_LINES, /* a line of JSON each */
} stg_batch_format;

/* Several deliveries in one request. */
typedef struct stg_batch_settings {
    uint32_t max;     /* deliveries, 1 to 10000; 1: there are no batches */
    size_t bytes_max; /* of its body, unless one delivery has more */
    stg_ns linger;    /* that the first one waits for others, 0 to 1 m */
    stg_batch_format format;
    bool has_results; /* an answer may have one for each */
} stg_batch_settings;

/* What a target has in common with others: those that have the same of all of it
 * share one, since it is large, and of thousands of targets few differ in it. */
typedef struct stg_target_common {
    /* -- requests */
    const char *method;
    stg_sign_options sign;
    stg_cloud_events cloud_events;
    stg_oauth_settings oauth;
    const stg_oauth_options *token; /* made of it by stg_settings_complete();
                                       NULL: requests carry no token */

    /* -- the lane */
    const char *policy_text;  /* a name of `policies`, a preset or a text; NULL:
                                 see targets.h */
    const stg_policy *policy; /* what it says; by stg_settings_complete() */
    stg_order order;
    uint32_t in_flight_max; /* requests, 1 to 10000 */
    stg_batch_settings batch;
    uint32_t rate;       /* thousandths a second; 0: no limit */
    uint32_t burst;      /* 1 to 1000000; 0: a tenth of a second's rate */
    uint32_t parked_max; /* 1 to 1000000 */
    stg_ns shed_after;   /* up to 365 d; STG_NEVER: it never sheds */
    stg_target_replay replay;
    stg_target_start start;
    stg_ns disable_after; /* 1 m to 365 d; STG_NEVER: it is not */

    /* -- time for an attempt: 1 ms to 1 d, or STG_NEVER */
    stg_ns resolve_timeout, connect_timeout, tls_timeout, write_timeout,
        first_byte_timeout;
    stg_ns attempt_timeout; /* of all of it; 0: what the policy says */

    /* -- connections and answers */
    uint32_t idle_count_max; /* connections that wait for use */
    stg_ns idle_max, age_max;
    size_t answer_max, excerpt_max; /* bytes */

    const char *proxy;  /* http://[user:password@]host:port; NULL: none */
    const char *source; /* an IP address of this machine; NULL: any */

    /* -- TLS */
    const char *ca_file, *certificate_file, *key_file, *server_name;
    bool is_unverified;
    uint64_t
        files_stamp; /* of when these files and oauth.ca_file were changed, and how large
                             they were; 0: there are none */
} stg_target_common;

/* A target: its endpoint and its lane. */
typedef struct stg_target_settings {
    const char *name; /* 1 to 64 of A-Z a-z 0-9 . _ -; NULL: made from the URL,
                         see stg_target_name() */
    const char *url;
    const char *url_written; /* with its ${NAME}; NULL: as url */
    stg_target_common *common;
    const stg_header_setting *headers;
    size_t header_count;
    const stg_sign_secret *secrets; /* of `sign` */
    size_t secret_count;
    stg_signer *signer; /* made of these by stg_settings_complete(); NULL:
                                 requests are not signed */
    bool
        is_templated; /* URL or headers are made of each message: template.h; by
                          stg_settings_complete() */
    bool is_paused;
    const char *owner; /* who is told of `disable_after`: a mail address or a
                          URL; NULL */
    const stg_match_setting *match; /* all of them; none: every message */
    size_t match_count;
    stg_texts topics; /* of Kafka: only messages of these; none: of all */
    const stg_tag_setting *tags;
    size_t tag_count;
    stg_file_place place; /* of it in the file */
} stg_target_settings;

/* A policy, by a name of the settings' own or by its text. */
typedef struct stg_policy_setting {
    const char *name; /* NULL: it has none */
    const char *text;
    stg_file_place place;
} stg_policy_setting;

/* What becomes of what a target still waits for, at the end of the retention or
 * at half of the quota. */
typedef enum stg_budget_empty {
    STG_BUDGET_EMPTY_WAIT,
    STG_BUDGET_EMPTY_GIVE_UP,
} stg_budget_empty;

typedef enum stg_full {
    STG_FULL_SHED,   /* it is given up, in a bulk row */
    STG_FULL_REFUSE, /* it is kept, and a full store refuses messages */
} stg_full;

typedef struct stg_store_settings {
    const char *path; /* of a file; or postgres://..., which Kafka goes with */
    uint64_t quota;   /* bytes, 16 MiB to 2^44 */
    stg_ns retention; /* 1 m to 365 d */
    stg_ns keep;      /* of what is delivered, to 365 d; STG_NEVER: it is not */
    stg_full full;
    stg_ns keys_kept;  /* of idempotency keys, 1 m to 365 d */
    uint64_t keys_max; /* 1 to 10^9 */
} stg_store_settings;

/* With listen.tls.client-ca: whether a client must have a certificate. */
typedef enum stg_client_auth {
    STG_CLIENT_AUTH_REQUIRED,
    STG_CLIENT_AUTH_OPTIONAL, /* one that it has is checked */
} stg_client_auth;

typedef struct stg_listen_settings {
    const char *address; /* NULL: nothing listens */
    const char *bound; /* where the hub listens, once it does: with port 0, the
                          system's choice. The hub's text; NULL: nowhere yet */
    const char *token_file;                  /* NULL: none */
    const char *certificate_file, *key_file; /* both, or NULL: plain HTTP */
    const char *client_ca_file; /* NULL: no client is asked for one */
    stg_client_auth client_auth;
    stg_texts headers; /* of a message, that go on to the targets; none:
                               stg_headers_default */
    uint32_t connections_max, address_connections_max;
} stg_listen_settings;

/* A webhook that others send. */
typedef struct stg_inbound_settings {
    stg_webhook hook; /* its headers and its verifier are made of the others by
                         stg_settings_complete() */
    const stg_sign_secret *secrets;
    size_t secret_count;
    stg_texts keep; /* none: those of listen.headers */
} stg_inbound_settings;

typedef enum stg_source_kind {
    STG_SOURCE_QUEUE, /* what is published by HTTP */
    STG_SOURCE_KAFKA, /* topics of Kafka; nothing is published by HTTP */
} stg_source_kind;

/* What becomes of a record of Kafka whose value is null. */
typedef enum stg_null_value {
    STG_NULL_SKIP, /* it is no message */
    STG_NULL_SEND, /* it is one, with an empty body */
} stg_null_value;

/* What becomes of a partition whose log has lost what a cursor points to. */
typedef enum stg_expired {
    STG_EXPIRED_CONTINUE, /* it is read on from its first record */
    STG_EXPIRED_STOP,     /* it is not read */
} stg_expired;

/* What a record becomes that has headers which cannot be sent. */
typedef enum stg_headers_lost {
    STG_HEADERS_LOST_DROP, /* a message without them */
    STG_HEADERS_LOST_DEAD, /* a dead letter of each target */
} stg_headers_lost;

typedef struct stg_kafka_settings {
    stg_texts brokers; /* host:port, to begin with */
    stg_texts topics;
    const char *group;
    stg_texts headers; /* of a record, that go on to the targets; none:
                          stg_headers_default */
    stg_null_value null_value;
    stg_headers_lost headers_lost;
    const char *start; /* see stg_from_read_start() */
    stg_expired expired;
    const stg_property_setting *options; /* none that are the hub's own */
    size_t option_count;
    const char *from; /* kafka://..., which the rest was read from; or NULL */
} stg_kafka_settings;

/* How several hubs share the work. */
typedef enum stg_shard_mode {
    STG_SHARD_PARTITIONS, /* those of the consumer group: it has no settings */
    STG_SHARD_TARGETS, /* each takes its share of the targets: see targets.h */
} stg_shard_mode;

typedef struct stg_shard_settings {
    stg_shard_mode mode;
    uint32_t count; /* 1 to 1024 */
    uint32_t index; /* 1 to count */
} stg_shard_settings;

/* Where copies of dead letters, or of receipts, go; NULL: nowhere. One of them at
 * most. */
typedef struct stg_letters_settings {
    const char *path;  /* a file */
    const char *topic; /* of Kafka */
} stg_letters_settings;

/* Receipts of attempts: see store/receipts.h. */
typedef struct stg_receipt_settings {
    stg_ns keep; /* 1 m to 365 d; STG_NEVER, which is `off`: there are none */
    uint32_t share;            /* percent of messages, 1 to 100 */
    uint64_t quota;            /* bytes, from 1 MiB */
    stg_letters_settings copy; /* of them; the store may have none */
} stg_receipt_settings;

/* Where spans of attempts go: hub/spans.c. */
typedef struct stg_trace_settings {
    const char *endpoint; /* of a collector, with its path; NULL: nowhere */
    uint32_t share;       /* percent of traces that nobody samples: 0 to 100 */
    const stg_header_setting *headers;
    size_t header_count;
    const char *ca_file; /* PEM; NULL: the system's */
} stg_trace_settings;

typedef struct stg_metrics_settings {
    uint32_t targets_max; /* with numbers of their own: 0 to 100000 */
} stg_metrics_settings;

typedef struct stg_log_settings {
    bool is_json;
    stg_log_level least;
} stg_log_settings;

typedef struct stg_settings {
    const char *file;       /* that they were read from; NULL: none */
    const char *root_file;  /* the first file that root alone may read, if root
                                has loaded them; NULL: there is none */
    size_t root_file_count; /* reads of other files of this kind */

    stg_source_kind source;
    stg_kafka_settings kafka; /* with STG_SOURCE_KAFKA */
    stg_shard_settings shard;
    stg_store_settings store;
    stg_listen_settings listen;
    const stg_inbound_settings *inbound;
    size_t inbound_count;
    const stg_webhook *webhooks; /* as many, of these; by
                                    stg_settings_complete() */
    uint64_t memory_max;         /* bytes, 8 MiB to 1 TiB. A message may
                               have 1/32 of it at most */
    uint32_t in_flight_max;    /* attempts at once, of all targets: 1 to 10^6 */
    stg_budget_options budget; /* of all retries of all targets */
    stg_budget_empty budget_empty;
    stg_ns drain;                 /* of attempts, after a stop: up to 1 d */
    stg_letters_settings letters; /* copies of dead letters */
    stg_dead_options dead;        /* what is kept of them */
    stg_receipt_settings receipts;
    const char *secrets_key; /* a file of keys (store/seal.h); NULL: none, or a
                                credential of the service */
    const char *audit;       /* a file for what was changed by calls */
    stg_resolver resolver;   /* of the names of targets */
    stg_egress egress;       /* where targets may be */
    stg_log_settings log;
    stg_metrics_settings metrics;
    stg_trace_mode trace;
    stg_trace_settings traces;
    stg_alert_options alerts;

    const stg_policy_setting *policies; /* with names */
    size_t policy_count;

    stg_target_settings defaults; /* of each target; no name, no URL */
    stg_target_settings *targets;
    size_t target_count;
    size_t targets_elsewhere; /* of other shards; they were left out */

    struct stg_settings_inside *inside; /* its memory, and its places */
} stg_settings;

/* The defaults; no target. NULL: there is no memory. */
stg_settings *stg_settings_new(void);
void stg_settings_free(stg_settings *s); /* NULL is none */

/* A target by itself, of stg_settings_load_target(); NULL is none. */
void stg_target_settings_free(stg_target_settings *t);

/* The same as base, without its targets; texts and lists stay base's, which is
 * to be there as long. NULL: there is no memory. */
stg_settings *stg_settings_beside(const stg_settings *base);

/* Memory that goes with the settings. NULL: there is none. */
void *stg_settings_keep(stg_settings *s, size_t size);
char *stg_settings_keep_text(stg_settings *s, const char *text, size_t size);

/* One more, as s->defaults says now; valid until the next is added. Its `common` is
 * that of the defaults: who changes it gives the target a copy. NULL: there is no
 * memory. */
stg_target_settings *stg_settings_add_target(stg_settings *s);
stg_target_common *stg_settings_keep_common(stg_settings *s,
                                            const stg_target_common *c);

/* Gives the targets that have none their names and their policies, leaves out
 * those that other shards have (see targets.h), and checks what stg_hub_open()
 * relies on. Returns STG_INVALID with words for a target with no URL, a bad
 * policy or name, or two of one name; STG_IO when there is no memory. A second
 * call does nothing. */
stg_status stg_settings_complete(stg_settings *s, stg_error *err);

/* The URL that people are shown, without what came from the environment. */
static inline const char *stg_target_url_shown(const stg_target_settings *t)
{
    return t->url_written != NULL ? t->url_written : t->url;
}

/* Refuses a URL at which the hub itself listens, with words: all that it sends
 * there it would get back, as new messages. */
stg_status stg_settings_check_loop(const stg_settings *s, const char *url,
                                   stg_error *err);

/* Refuses a URL whose host is an address that `egress` does not allow, with
 * words. A host that is a name is checked when it is resolved. */
struct stg_url;
stg_status stg_settings_check_egress(const stg_settings *s,
                                     const struct stg_url *url, stg_error *err);

/* Whether a header's value is made of each message. */
bool stg_header_is_template(const stg_header_setting *h);

/* NULL, or what is wrong with a template of the target, whose URL is one; *key:
 * the setting. */
const char *stg_settings_check_templates(const stg_target_settings *t,
                                         const char **key,
                                         char flaw[STG_TEMPLATE_FLAW_MAX]);

/* How many bytes of the memory are for what comes in; the rest is flow's. */
static inline uint64_t stg_settings_intake_memory(const stg_settings *s)
{
    return s->memory_max / 4;
}

/* Refuses a proxy whose address `egress` does not allow, and a source that this
 * machine has not, with words. */
stg_status stg_settings_check_route(const stg_settings *s,
                                    const stg_target_settings *t,
                                    stg_error *err);

/* A number for the target's proxy, with user and password: never 0 but for no
 * proxy. */
uint64_t stg_settings_proxy(const stg_target_settings *t);

/* Flow's options for all lanes; without wall clock and seed. */
stg_flow_options stg_settings_flow(const stg_settings *s);

/* What a lane of the target is told; its filter points to t. */
stg_lane_options stg_settings_lane(const stg_target_settings *t);

#endif
