/* Settings in memory: their texts and lists are in chunks that go with them, so
 * that nothing in them is freed alone; and the values that they have before
 * anybody sets one. complete.c makes the rest of them. */
#include "config/settings.h"

#include <stdlib.h>
#include <string.h>

#include "config/loading.h"
#include "config/targets.h"
#include "http/client.h"
#include "ingress/ingress.h"
#include "store/parcel.h"
#include "store/store.h"

/* -- memory ---------------------------------------------------------------- */

/* The first chunk is small, since a target that a call has added has settings of
 * its own; each further one is twice as large. */
enum { CHUNK_LEAST = 256, CHUNK_MOST = 8192 };

struct stg_settings_chunk {
    stg_settings_chunk *next;
    size_t used, size;
    max_align_t bytes[];
};

static stg_settings_chunk *add_chunk(stg_settings *s, size_t least)
{
    stg_settings_chunk *last = s->inside->chunks, *c;
    size_t size = last == NULL ? CHUNK_LEAST : 2 * last->size;

    if (size > CHUNK_MOST)
        size = CHUNK_MOST;
    if (size < least)
        size = least;
    c = malloc(sizeof *c + size);
    if (c == NULL)
        return NULL;
    *c = (stg_settings_chunk){.next = s->inside->chunks, .size = size};
    s->inside->chunks = c;
    return c;
}

/* Zeroed and aligned for any type; freed with the settings. NULL: no memory. */
void *stg_settings_keep(stg_settings *s, size_t size)
{
    size_t rounded =
        (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
    stg_settings_chunk *c = s->inside->chunks;
    void *bytes;

    if (c == NULL || c->size - c->used < rounded)
        c = add_chunk(s, rounded);
    if (c == NULL)
        return NULL;
    bytes = (char *)c->bytes + c->used;
    c->used += rounded;
    memset(bytes, 0, rounded);
    return bytes;
}

char *stg_settings_keep_text(stg_settings *s, const char *text, size_t size)
{
    char *kept = stg_settings_keep(s, size + 1);

    if (kept != NULL && size > 0)
        memcpy(kept, text, size);
    return kept;
}

static void free_inside(struct stg_settings_inside *in)
{
    stg_settings_chunk *next;

    for (stg_settings_chunk *c = in->chunks; c != NULL; c = next) {
        next = c->next;
        free(c);
    }
    for (size_t i = 0; i < in->signer_count; i++)
        stg_signer_free(in->signers[i]);
    free(in->signers);
    for (size_t i = 0; i < in->pattern_count; i++)
        stg_pattern_unref(in->patterns[i]);
    free(in->patterns);
    for (size_t i = 0; i < in->verifier_count; i++)
        stg_verifier_free(in->verifiers[i]);
    free(in->verifiers);
    stg_text_table_free(&in->compiled);
    free(in->places);
    free(in);
}

void stg_settings_free(stg_settings *s)
{
    if (s == NULL)
        return;
    free_inside(s->inside);
    free(s->targets);
    free(s);
}

/* A target and the memory that it points into, of settings that are no more. */
typedef struct lone_target {
    stg_target_settings is; /* first: its address is that of all */
    struct stg_settings_inside *inside;
} lone_target;

stg_target_settings *stg_settings_take_target(stg_settings *s)
{
    lone_target *t = malloc(sizeof *t);

    if (t == NULL)
        return NULL;
    *t = (lone_target){s->targets[0], s->inside};
    free(s->targets);
    free(s);
    return &t->is;
}

void stg_target_settings_free(stg_target_settings *t)
{
    if (t != NULL)
        free_inside(((lone_target *)t)->inside);
    free(t);
}

/* -- defaults -------------------------------------------------------------- */

/* What client and flow have as their own. */
static stg_target_common default_common(void)
{
    stg_endpoint_options e = stg_endpoint_options_default(NULL);
    stg_lane_options l = stg_lane_options_default(NULL);

    return (stg_target_common){
        .method = e.method,
        .order = l.order,
        .in_flight_max = l.in_flight_max,
        .batch = {.max = 1, .bytes_max = 1 << 20, .linger = 50 * STG_MS},
        .parked_max = l.parked_max,
        .shed_after = l.shed_after,
        .disable_after = STG_NEVER,
        .resolve_timeout = e.resolve_timeout,
        .connect_timeout = e.connect_timeout,
        .tls_timeout = e.tls_timeout,
        .write_timeout = e.write_timeout,
        .first_byte_timeout = e.first_byte_timeout,
        .idle_count_max = e.idle_count_max,
        .idle_max = e.idle_max,
        .age_max = e.age_max,
        .answer_max = e.answer_max,
        .excerpt_max = e.excerpt_max,
    };
}

/* The defaults of the modules are taken, not repeated, so that the hub and the
 * library agree. What the table prints as a default must be the same. */
static void set_defaults(stg_settings *s)
{
    stg_store_options store = stg_store_options_default("stagger.db");
    stg_ingress_options ingress = stg_ingress_options_default();
    stg_flow_options flow = stg_flow_options_default();

    s->store = (stg_store_settings){.path = store.path,
                                    .quota = store.quota,
                                    .retention = store.retention,
                                    .keep = STG_NEVER,
                                    .keys_kept = store.keys_kept,
                                    .keys_max = store.keys_max};
    s->dead = store.dead;
    s->receipts = (stg_receipt_settings){
        .keep = STG_NEVER, .share = 100, .quota = store.receipts.quota};
    s->kafka.group = "stagger";
    s->kafka.start = "latest";
    s->shard.count = s->shard.index = 1;
    s->listen.address = "127.0.0.1:8080";
    s->listen.connections_max = ingress.connections_max;
    s->listen.address_connections_max = ingress.address_connections_max;
    s->memory_max = UINT64_C(128) << 20;
    s->in_flight_max = flow.in_flight_max;
    s->budget = flow.budget;
    s->drain = flow.drain;
    s->log.least = STG_LOG_INFO;
    s->metrics.targets_max = 1000;
    s->trace = STG_TRACE_BEGIN;
    s->traces.share = 1;
    s->alerts = stg_alert_options_default();
}

/* All zeros; NULL: there is no memory. */
static stg_settings *make(void)
{
    stg_settings *s = calloc(1, sizeof *s);

    if (s != NULL)
        s->inside = calloc(1, sizeof *s->inside);
    if (s != NULL && s->inside != NULL)
        return s;
    free(s);
    return NULL;
}

stg_settings *stg_settings_new(void)
{
    stg_settings *s = make();

    if (s == NULL)
        return NULL;
    s->defaults.common = stg_settings_keep(s, sizeof *s->defaults.common);
    if (s->defaults.common == NULL) {
        stg_settings_free(s);
        return NULL;
    }
    set_defaults(s);
    *s->defaults.common = default_common();
    return s;
}

stg_settings *stg_settings_beside(const stg_settings *base)
{
    stg_settings *s = make();
    struct stg_settings_inside *inside;

    if (s == NULL)
        return NULL;
    inside = s->inside;
    *s = *base;
    s->inside = inside;
    inside->base = base->inside;
    s->targets = NULL;
    s->target_count = s->inbound_count = 0; // base's take what comes in
    return s;
}

/* -- targets --------------------------------------------------------------- */

stg_target_common *stg_settings_keep_common(stg_settings *s,
                                            const stg_target_common *c)
{
    stg_target_common *kept = stg_settings_keep(s, sizeof *kept);

    if (kept != NULL)
        *kept = *c;
    return kept;
}

/* Moves the targets: a pointer to one is good until the next call. */
stg_target_settings *stg_settings_add_target(stg_settings *s)
{
    size_t room = s->inside->target_room;

    if (s->target_count == room) {
        stg_target_settings *grown;

        room = room > 0 ? 2 * room : 1;
        grown = realloc(s->targets, room * sizeof *grown);
        if (grown == NULL)
            return NULL;
        s->targets = grown;
        s->inside->target_room = room;
    }
    s->inside->is_complete = false;
    s->targets[s->target_count] = s->defaults;
    return &s->targets[s->target_count++];
}

/* -- what others are told -------------------------------------------------- */

uint64_t stg_settings_proxy(const stg_target_settings *t)
{
    if (t->common->proxy == NULL)
        return 0;
    return stg_parcel_hash(
        (stg_span){t->common->proxy, strlen(t->common->proxy)});
}

/* The filter's ctx is t itself, which must outlive the lane. */
stg_flow_options stg_settings_flow(const stg_settings *s)
{
    stg_flow_options f = stg_flow_options_default();

    f.memory_max = (size_t)(s->memory_max - stg_settings_intake_memory(s));
    f.in_flight_max = s->in_flight_max;
    f.budget = s->budget;
    f.budget_waits = s->budget_empty == STG_BUDGET_EMPTY_WAIT;
    f.drain = s->drain;
    return f;
}

stg_lane_options stg_settings_lane(const stg_target_settings *t)
{
    const stg_target_common *c = t->common;
    stg_lane_options l = stg_lane_options_default(c->policy);

    l.order = c->order;
    l.in_flight_max = stg_target_in_flight_max(t);
    l.is_limit_fixed = c->batch.max > 1;
    l.burst = c->burst;
    l.parked_max = c->parked_max;
    l.shed_after = c->shed_after;
    l.proxy = stg_settings_proxy(t);
    l.is_paused = t->is_paused;
    l.is_from_earliest = c->start == STG_TARGET_START_EARLIEST;
    if (t->match_count > 0) {
        l.accepts = stg_match_accepts;
        l.ctx = (void *)(uintptr_t)t; // it is only read
    }
    return l;
}
