/* Connects the ingress to the source: passes the settings on as the ingress'
 * options, appends what is published to the source's log, and says why the hub is
 * not ready.
 *
 * Three reasons are told apart: `missing` (the store has failed, the hub is
 * stopping) refuses every message; `unready` (the store is full or away) only
 * shows at /readyz, while each message is still tried; `unwanted` (there is no
 * target) refuses messages, and the hub is ready, for the first target comes by
 * a call. All on the loop's thread. */
#include "hub/parts.h"

#include <string.h>

#include "hub/hub_internal.h"

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The largest body, so that the message fits into a sixteenth of what is
 * flow's, with its headers. */
size_t stg_intake_message_max(uint64_t memory_max)
{
    return (size_t)(memory_max / 32);
}

/* The ingress refuses what is posted where the source takes nothing. */
static void append(void *ctx, const char *topic, const stg_append *messages,
                   size_t count, stg_append_fn *done, void *done_ctx)
{
    const stg_intake *in = ctx;
    stg_source *source = in->hub->source;

    source->ops->publish(source, topic, messages, count, done, done_ctx);
}

/* Returns why the store takes no messages, or not all of them, as words; NULL: it
 * takes them. */
static const char *intake_shortage(const stg_hub *h)
{
    stg_store_view store;

    if (h->store == NULL)
        return NULL;
    stg_store_look(h->store, &store);
    return stg_shortage_say(store.shortage);
}

/* Why every message is refused, as words for a problem document; NULL: it is
 * not. */
static const char *missing_of(const stg_hub *h)
{
    if (h->is_broken)
        return "the store has failed";
    return stg_hub_is_stopping(h) ? "the hub is stopping" : NULL;
}

/* What is published is tried all the same: it may be small, or there is room by
 * now. */
static const char *unready_of(const stg_hub *h)
{
    if (h->is_store_away)
        return "the store's database stores nothing for now: see store-trouble "
               "in the hub's log";
    if (h->source->ops->publish != NULL && h->source->is_away)
        return "the log takes no messages for now: see kafka-away in the hub's "
               "log";
    return intake_shortage(h);
}

/* A message that nobody gets is not taken: who published it would believe that
 * it was sent. */
static const char *unwanted_of(const stg_hub *h)
{
    return h->targets.count > 0
               ? NULL
               : "there is no target; the first one is added by POST "
                 "/v1/targets, or stagger targets add";
}

static const char *find_missing(void *ctx)
{
    const stg_intake *in = ctx;

    return missing_of(in->hub);
}

static const char *find_unready(void *ctx)
{
    const stg_intake *in = ctx;

    return unready_of(in->hub);
}

static const char *find_unwanted(void *ctx)
{
    const stg_intake *in = ctx;

    return unwanted_of(in->hub);
}

const char *stg_intake_missing(const stg_hub *h)
{
    const char *missing = missing_of(h);

    if (missing == NULL)
        missing = unready_of(h);
    return missing != NULL ? missing : unwanted_of(h);
}

static const stg_tls_names tls_names = {
    "listen.tls.certificate", "listen.tls.key", "listen.tls.client-ca"};

/* The options that a reload may change; stg_intake_open() adds those that are
 * fixed while the ingress is open. */
static stg_ingress_options ingress_options(const stg_settings *s)
{
    const stg_listen_settings *o = &s->listen;
    stg_ingress_options i = stg_ingress_options_default();

    i.listen = o->address;
    i.token_file = o->token_file;
    i.tls = (stg_tls_options){.names = &tls_names,
                              .ca_file = o->client_ca_file,
                              .certificate_file = o->certificate_file,
                              .key_file = o->key_file,
                              .is_unverified =
                                  o->client_auth == STG_CLIENT_AUTH_OPTIONAL};
    if (o->headers.count > 0)
        i.headers = o->headers.at;
    i.webhooks = s->webhooks;
    i.webhook_count = s->inbound_count;
    i.connections_max = o->connections_max;
    i.address_connections_max = o->address_connections_max;
    return i;
}

/* Limits of the ingress come from the memory of the settings, so that messages
 * in flight to the store cannot take what is flow's. */
/* The options' tokens and addresses are checked with the settings. */
stg_status stg_intake_check(const stg_settings *o, stg_error *err)
{
    stg_ingress_options i = ingress_options(o);
    stg_tls_context *context;
    stg_list contexts;
    stg_status status;

    stg_list_init(&contexts);
    i.tls.is_server = true;
    if (i.tls.certificate_file == NULL)
        return STG_OK;
    status = stg_tls_context_take(&context, &contexts, &i.tls, err);
    if (status == STG_OK)
        stg_tls_context_release(context);
    return status;
}

stg_status stg_intake_open(stg_intake *in, stg_hub *hub, const stg_settings *o,
                           unsigned *parts, stg_error *err)
{
    stg_ingress_options i = ingress_options(o);
    stg_status status;

    in->hub = hub;
    i.epoch = stg_store_epoch(hub->store);
    i.pending_max = (size_t)stg_settings_intake_memory(o);
    i.message_max = stg_intake_message_max(o->memory_max);
    if (hub->source->ops->publish == NULL)
        i.elsewhere = hub->source->ops->elsewhere;
    // Keys of a log that others write to as well are kept where they look.
    i.is_keyless =
        !hub->source->ops->is_trimmed && hub->source_part.host.keeps_rows;
    i.batch_max = least(i.batch_max, i.pending_max / 2);
    i.append = append;
    i.files = stg_client_files(hub->client);
    i.missing = find_missing;
    i.unready = find_unready;
    i.unwanted = find_unwanted;
    i.ctx = in;
    i.log = hub->log;
    status = stg_ingress_open(&in->ingress, hub->loop, &i, err);
    if (status != STG_OK)
        return status;
    *parts += 1;
    stg_metrics_serve(&hub->metrics, in->ingress);
    in->port = stg_ingress_port(in->ingress);
    strncpy(in->address, stg_ingress_address(in->ingress),
            sizeof in->address - 1);
    hub->settings->listen.bound = in->address;
    return STG_OK;
}

stg_status stg_intake_prepare(stg_intake *in, const stg_settings *o,
                              stg_ingress_next **next, stg_error *err)
{
    stg_ingress_options i = ingress_options(o);

    return stg_ingress_prepare(in->ingress, &i, next, err);
}

static void stopped(void *ctx)
{
    stg_intake *in = ctx;

    in->is_stopping = false;
    stg_hub_finish(in->hub);
}

/* What was posted has had as much time as attempts have. */
static void end_drain(stg_deadline *d)
{
    const stg_intake *in = STG_HEAP_HOLDER(d, stg_intake, draining);
    stg_source *source = in->hub->source;

    source->ops->give_up(source);
}

void stg_intake_stop(stg_intake *in)
{
    if (in->ingress == NULL)
        return;
    in->is_stopping = true;
    in->draining.passed = end_drain;
    if (in->hub->source->ops->give_up != NULL)
        stg_deadline_set(
            &in->hub->deadlines, &in->draining,
            stg_ns_add(stg_deadlines_now(), in->hub->settings->drain));
    stg_ingress_stop(in->ingress, stopped, in);
}

/* Keeps the count of accepted messages, which the summary at the hub's end
 * prints after the ingress is gone. */
void stg_intake_close(stg_intake *in, void (*closed)(void *ctx), void *ctx)
{
    in->accepted = stg_intake_accepted(in);
    if (in->ingress != NULL) {
        stg_deadline_clear(&in->hub->deadlines, &in->draining);
        stg_ingress_close(in->ingress, closed, ctx);
    }
    in->ingress = NULL;
}

uint64_t stg_intake_accepted(const stg_intake *in)
{
    stg_ingress_view view;

    if (in->ingress == NULL)
        return in->accepted;
    stg_ingress_look(in->ingress, &view);
    return view.accepted;
}
