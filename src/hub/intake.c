#include "hub/intake.h"

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

/* -- the ingress ----------------------------------------------------------- */

static void append(void *ctx, const stg_append *messages, size_t count,
                   stg_append_fn *done, void *done_ctx)
{
    stg_intake *in = ctx;

    stg_store_append(in->hub->store, messages, count, done, done_ctx);
}

/* It does not take messages. */
static bool is_full(const stg_hub *h)
{
    stg_store_view store;
    stg_flow_view flow;

    if (h->store == NULL || h->flow == NULL)
        return false;
    stg_store_look(h->store, &store);
    stg_flow_view_all(h->flow, &flow, stg_deadlines_now());
    return store.is_full || flow.is_store_full;
}

static const char *missing_of(const stg_hub *h)
{
    if (h->is_broken)
        return "the store has failed";
    return h->is_stopping ? "the hub is stopping" : NULL;
}

/* What is published is tried all the same: it may be small, or there is room by
 * now. */
static const char *unready_of(const stg_hub *h)
{
    if (h->is_store_away)
        return "the store's database stores nothing for now: see store-trouble "
               "in the hub's log";
    return is_full(h)
               ? "the store is full: replay or drop dead letters, mend or pause "
                 "targets that keep messages waiting, or raise store.quota"
               : NULL;
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

const char *stg_intake_missing(const stg_hub *h)
{
    const char *missing = missing_of(h);

    return missing != NULL ? missing : unready_of(h);
}

static const stg_tls_names tls_names = {
    "listen.tls.certificate", "listen.tls.key", "listen.tls.client-ca"};

static stg_ingress_options ingress_options(const stg_listen_settings *o)
{
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
    i.connections_max = o->connections_max;
    i.address_connections_max = o->address_connections_max;
    return i;
}

static stg_status open_ingress(stg_intake *in, const stg_settings *o,
                               size_t pending_max, stg_error *err)
{
    stg_ingress_options i = ingress_options(&o->listen);
    stg_status status;

    i.epoch = stg_store_epoch(in->hub->store);
    i.pending_max = pending_max;
    i.message_max = stg_intake_message_max(o->memory_max);
    if (o->source == STG_SOURCE_KAFKA)
        i.elsewhere = "messages come from Kafka: publish them there";
    i.batch_max = least(i.batch_max, pending_max / 2);
    i.append = append;
    i.files = stg_client_files(in->hub->client);
    i.missing = find_missing;
    i.unready = find_unready;
    i.ctx = in;
    i.log = in->hub->log;
    status = stg_ingress_open(&in->ingress, in->hub->loop, &i, err);
    if (status != STG_OK)
        return status;
    stg_metrics_serve(&in->hub->metrics, in->ingress);
    in->port = stg_ingress_port(in->ingress);
    strncpy(in->address, stg_ingress_address(in->ingress),
            sizeof in->address - 1);
    return STG_OK;
}

/* -- lines ----------------------------------------------------------------- */

/* The last position is the highest. */
static void note_lines(void *ctx, stg_appended how,
                       const stg_append_answer *answers, size_t at)
{
    stg_intake *in = ctx;

    if (how == STG_APPENDED && answers[in->appending - 1].position >= in->end)
        in->end = answers[in->appending - 1].position + 1;
    in->appended(in->appended_ctx, how, answers, at);
}

static void append_lines(void *ctx, const stg_append *messages, size_t count,
                         stg_append_fn *done, void *done_ctx)
{
    stg_intake *in = ctx;

    in->appended = done;
    in->appended_ctx = done_ctx;
    in->appending = count;
    stg_store_append(in->hub->store, messages, count, note_lines, in);
}

static void end_lines(void *ctx, uint64_t messages)
{
    stg_intake *in = ctx;
    stg_lines_view view;

    (void)messages;
    stg_lines_look(in->lines, &view);
    in->is_ended = true;
    in->hub->end.is_short = view.has_failed || view.skipped > 0;
    stg_shell_note(in->hub);
}

static stg_status open_lines(stg_intake *in, const stg_settings *o,
                             size_t pending_max, stg_error *err)
{
    stg_lines_options l = stg_lines_options_default();

    l.fd = 0;
    l.message_max = stg_intake_message_max(o->memory_max);
    l.pending_max = pending_max;
    l.append = append_lines;
    l.ended = end_lines;
    l.ctx = in;
    l.log = in->hub->log;
    l.seed = uv_hrtime();
    return stg_lines_open(&in->lines, in->hub->loop, &l, err);
}

/* -- both ------------------------------------------------------------------ */

stg_status stg_intake_open(stg_intake *in, stg_hub *hub, const stg_settings *o,
                           unsigned *parts, stg_error *err)
{
    bool listens = o->listen.address != NULL;
    bool reads = o->source == STG_SOURCE_STDIN;
    size_t pending_max =
        (size_t)stg_settings_intake_memory(o) / (listens && reads ? 2 : 1);
    stg_status status = STG_OK;

    in->hub = hub;
    in->end = stg_store_next(hub->store);
    if (listens) {
        status = open_ingress(in, o, pending_max, err);
        *parts += in->ingress != NULL;
    }
    if (status == STG_OK && reads) {
        status = open_lines(in, o, pending_max, err);
        *parts += in->lines != NULL;
    }
    return status;
}

static void stopped(void *ctx)
{
    stg_intake *in = ctx;

    in->stopping--;
    stg_hub_finish(in->hub);
}

stg_status stg_intake_change(stg_intake *in, const stg_settings *o,
                             stg_error *err)
{
    stg_ingress_options i = ingress_options(&o->listen);

    return in->ingress != NULL ? stg_ingress_change(in->ingress, &i, err)
                               : STG_OK;
}

static void lines_stopped(void *ctx)
{
    stg_intake *in = ctx;
    stg_lines_view view;

    stg_lines_look(in->lines, &view);
    if (view.dropped + view.cut > 0)
        in->hub->end.is_short = true;
    stopped(in);
}

void stg_intake_stop(stg_intake *in)
{
    if (in->ingress != NULL) {
        in->stopping++;
        stg_ingress_stop(in->ingress, stopped, in);
    }
    if (in->lines != NULL) {
        in->stopping++;
        stg_lines_stop(in->lines, lines_stopped, in);
    }
}

void stg_intake_close(stg_intake *in, void (*closed)(void *ctx), void *ctx)
{
    in->accepted = stg_intake_accepted(in);
    if (in->ingress != NULL)
        stg_ingress_close(in->ingress, closed, ctx);
    if (in->lines != NULL)
        stg_lines_close(in->lines, closed, ctx);
    in->ingress = NULL;
    in->lines = NULL;
}

uint64_t stg_intake_accepted(const stg_intake *in)
{
    uint64_t accepted = in->accepted;

    if (in->ingress != NULL) {
        stg_ingress_view view;

        stg_ingress_look(in->ingress, &view);
        accepted += view.accepted;
    }
    if (in->lines != NULL) {
        stg_lines_view view;

        stg_lines_look(in->lines, &view);
        accepted += view.messages;
    }
    return accepted;
}
