/* target.h - where deliveries go: names, lanes and endpoints.
 *
 * Targets of the settings, and those that calls have added, have an endpoint.
 * Those that only the store knows
 * have none: their lanes are paused and keep what they have. */
#ifndef STAGGER_HUB_TARGET_H
#define STAGGER_HUB_TARGET_H

#include <stagger/ns.h>

#include "base/hash.h"
#include "config/targets.h"
#include "http/client.h"
#include "hub/hub.h"
#include "hub/oauth.h"
#include "metrics/metrics.h"
#include "store/store.h"

/* -- latency ----------------------------------------------------------------- */

/* How long things took: quantiles out of counts, in little memory.
 *
 * Four buckets an octave from 16 us to an hour, so what it says is at most a
 * quarter too long. A stg_latency is plain data; zeroed, it is empty. Counts
 * stop at their end. */

enum { STG_LATENCY_BUCKETS = 4 * 28 };

typedef struct stg_latency {
    uint32_t counts[STG_LATENCY_BUCKETS];
} stg_latency;

void stg_latency_add(stg_latency *l, stg_ns took);

/* The time that `permille` of 1000 took at most: 500 is the median. 0: nothing
 * was counted. l may be NULL, which is empty. */
stg_ns stg_latency_quantile(const stg_latency *l, uint32_t permille);

/* The same as a small number: the bucket that the time is in, from 1; and the
 * time again, for which 0 is 0. */
uint32_t stg_latency_find(const stg_latency *l, uint32_t permille);
stg_ns stg_latency_end(uint32_t place);

/* A target that a call has added: hub/control.h. */
typedef struct stg_added {
    stg_target_settings *settings; /* NULL: it is of the settings, or only the
                                      store knows it */
    char *text;                    /* in JSON, as they are stored */
    uint64_t version;              /* of its row; 0: it has none */
} stg_added;

/* Frees them, and is empty again but for the version. */
void stg_added_free(stg_added *a);

typedef struct stg_target_change stg_target_change;

/* What a target has to do with `replay: on-recovery` (recovery.c). */
typedef enum stg_target_recovery {
    STG_RECOVERY_DUE, /* when it takes messages again */
    STG_RECOVERY_RUNNING,
    STG_RECOVERY_AGAIN, /* behind the next group that is stored */
    STG_RECOVERY_DONE,
} stg_target_recovery;

/* What `disable-after` knows of a target (disable.c). */
typedef struct stg_failing {
    uint64_t attempts, failures; /* of the target, when it was looked at last */
    uint64_t in_row;             /* failures without a success between them */
} stg_failing;

/* In this order it has no gaps: there may be thousands. */
typedef struct stg_target {
    char *name, *url;
    const stg_hub *hub; /* NULL: not in one yet */
    const stg_target_settings
        *settings;    /* hub.settings', or those of `added`: a
                                            reload or a call sets it before it
                                            frees them. NULL: only the store
                                            knows the target */
    uint64_t version; /* of settings and endpoint: raised with each change */
    stg_endpoint *endpoint;      /* NULL: only the store knows it */
    struct stg_batcher *batcher; /* NULL: no attempt was in a batch so far */
    uint32_t lane;
    stg_pause pause;   /* and perhaps the settings pause it, too */
    bool is_known;     /* the store had its lane before: it is not new */
    bool is_beginning; /* a reload waits until its beginning is durable */
    bool is_gone;      /* it answered 410, and took nothing since */
    bool has_verdicts; /* all of its patterns have a number there */
    uint32_t filter, event_filter; /* its patterns of bodies, and of events, in
                                      the hub's verdicts; 0: none */
    uint32_t known_count;
    uint8_t *topics_known; /* by partition: whether its topic is the target's */
    stg_oauth_token *token; /* NULL: requests carry none */
    stg_link token_link;    /* of the token's targets */
    uint64_t gone_url;      /* with is_gone: a hash of the URL that it was of */
    uint64_t attempts;      /* that have ended */
    uint64_t failures;
    uint64_t ours; /* of both, by a network or a proxy of ours: not counted */
    stg_latency
        *latency;     /* of those that succeeded; NULL: none did, or there was
                             no memory */
    stg_outcome last; /* failure; no fault: there was none */
    stg_ns failed_at; /* when that was; 0: never */
    stg_ns failing_since; /* the first failure after the last success; 0: the
                             last attempt succeeded, or there was none */
    stg_failing failing;
    stg_ns
        state_since; /* when its state was first seen so; 0: since the start */
    unsigned state;  /* when it was looked at last */
    stg_target_recovery recovery;
    uint64_t recovery_groups; /* stored at its first look, or at the last one
                                 that has found something */
    stg_added added;
    stg_target_change *change;   /* it is told when the lane's beginning is
                                    durable; NULL: none waits */
    struct stg_history *history; /* NULL: nothing to remember, or no memory */
    struct stg_recent *recent;   /* attempts; likewise. history.h has both */
    stg_meter meter;
} stg_target;

/* Whether there is a target, and a call has added it. */
static inline bool stg_target_is_added(const stg_target *t)
{
    return t != NULL && t->added.settings != NULL;
}

/* The cause of its last failure, of target.last. NULL: there was none. */
const char *stg_target_cause(const stg_outcome *last, char text[STG_CAUSE_MAX]);

/* "Name: value\r\n" each, of malloc(); NULL when there is no memory. */
char *stg_target_join_headers(const stg_header_setting *headers, size_t count);

typedef struct stg_targets {
    stg_target **all; /* those of the settings first, and of calls */
    size_t count, known;
    uint64_t changes;     /* of `all`: one came, or went, or moved */
    stg_target **by_lane; /* NULL: no such lane */
    size_t lanes;
    stg_text_table names; /* of all: the number is the target's address */
} stg_targets;

/* Its state as it is shown, of STG_TARGET_STATES. */
unsigned stg_target_state(const stg_target *t, stg_lane_state lane);

/* The same; remembers since when, as far as it is looked at. */
unsigned stg_target_note_state(stg_target *t, stg_lane_state lane, stg_ns now);

/* An endpoint as the settings say. Returns what stg_endpoint_new() does. */
stg_status stg_target_endpoint(stg_endpoint **endpoint, stg_client *client,
                               const stg_target_settings *s, stg_error *err);

/* Whether its endpoint is what the settings say, too. */
bool stg_target_keeps_endpoint(const stg_target *t,
                               const stg_target_settings *s);

/* Nothing is in it: batch.c. */
void stg_batcher_free(struct stg_batcher *b);

/* One without lane and endpoint; texts are copied. NULL: no memory. */
stg_target *stg_target_new(const char *name, const char *url);
void stg_target_free(stg_target *t);

/* Makes the targets and their endpoints, of settings that are complete. Returns
 * STG_INVALID with words for an endpoint that cannot be made. To be closed in
 * any case; zeroed before. */
stg_status stg_targets_open(stg_targets *t, stg_client *client,
                            const stg_settings *s, stg_error *err);

/* Gives each its lane, and adds those that only the store knows and that no
 * other shard has. */
stg_status stg_targets_find_lanes(stg_targets *t, stg_store *store,
                                  const stg_shard_settings *shard,
                                  stg_error *err);

/* The lane is the target's. False: there is no memory. */
bool stg_targets_put(stg_targets *t, stg_target *target, uint32_t lane);

/* Undoes that, before the target is in the list, and its caller frees it. */
void stg_targets_unput(stg_targets *t, stg_target *target);

/* NULL: there is none. */
static inline stg_target *stg_targets_at(const stg_targets *t, uint32_t lane)
{
    return lane < t->lanes ? t->by_lane[lane] : NULL;
}

/* One that is not there yet becomes the last of those with settings. False: there
 * is no memory, and it is still the caller's. */
bool stg_targets_insert(stg_targets *t, stg_target *target);

/* One that only the store knew gets settings, or one loses them. */
void stg_targets_move(stg_targets *t, stg_target *target, bool has_settings);

/* That of the name; NULL: there is none. */
stg_target *stg_targets_named(const stg_targets *t, const char *name);

/* Frees one that only the store knew: its lane is no more. */
void stg_targets_remove(stg_targets *t, stg_target *target);

/* Frees endpoints and tokens: no attempt is under way. The rest can be looked at
 * until it is freed. */
void stg_targets_close(stg_targets *t);
void stg_targets_free(stg_targets *t);

#endif
