/* The settings as a whole, once all of them are read: what contradicts is a
 * mistake, what is valid but risky is a warning. Each is told at the place of the
 * setting that has to change; a setting that was not written is at line 0. Some
 * checks look at this machine (disk, memory, addresses), and only warn: the hub
 * may run on another one. */
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/suggest.h"
#include "config/from.h"
#include "config/load.h"
#include "config/loading.h"
#include "ingress/address.h"
#include "ingress/token.h"
#include "store/seal.h"

enum { MIB_SHIFT = 20 };

/* -- who may talk to it ---------------------------------------------------- */

/* A service manager may make the folder with the service, so that this is a
 * warning. */
static void validate_socket(stg_loading *l, const stg_listen_address *address)
{
    char *path = strdup(address->un.sun_path);

    if (path != NULL && access(dirname(path), W_OK | X_OK) != 0)
        stg_warn(l->c, stg_load_hub_place(l, "listen.address"),
                 "`listen.address`: no socket can be made in %.120s: %s, and a "
                 "hub does not start without it",
                 path, strerror(errno));
    free(path);
}

/* Tokens and TLS need something that listens, and an address that other machines
 * reach needs tokens. The source decides whether anything listens at all. */
static void check_listen(stg_loading *l)
{
    const stg_listen_settings *s = &l->s->listen;
    stg_listen_address address;
    stg_error err;

    if (stg_address_parse(&address, s->address, &err) != STG_OK)
        return;
    if (s->certificate_file != NULL && stg_address_is_path(&address))
        stg_complain(l->c, stg_load_hub_place(l, "listen.tls"),
                     "`listen.tls`: %s is a socket of this machine, which is "
                     "plain; expected an address and port, or no `listen.tls`",
                     s->address);
    if (stg_address_check_host(&address, &err) != STG_OK)
        stg_warn(l->c, stg_load_hub_place(l, "listen.address"),
                 "`listen.address`: %s, and a hub does not start without it",
                 err.text);
    if (stg_address_is_path(&address))
        validate_socket(l, &address);
    if (stg_address_is_loopback(&address))
        return;
    if (s->token_file == NULL &&
        stg_load_hub_place(l, "listen.tokens").line == 0)
        stg_complain(l->c, stg_load_hub_place(l, "listen.address"),
                     "`listen.address`: %s can be reached by other machines, "
                     "and there are no `listen.tokens`; expected tokens, or "
                     "127.0.0.1",
                     s->address);
    else if (s->certificate_file == NULL)
        stg_warn(
            l->c, stg_load_hub_place(l, "listen.address"),
            "`listen.address`: other machines can reach %s, and tokens "
            "go to it in the clear; expected `listen.tls`, or a proxy with "
            "TLS before it",
            s->address);
}

/* Reads the file as the hub will. Not where there are mistakes already: the file
 * may be the one that was complained of. */
static void check_tokens(stg_loading *l)
{
    const char *path = l->s->listen.token_file;
    stg_file_place place = stg_load_hub_place(l, "listen.tokens");
    size_t before = l->c->mistakes;
    stg_tokens *tokens;
    stg_error err;

    // That it is private and not empty was looked at when it was read.
    if (path == NULL || before > 0)
        return;
    if (stg_tokens_load(&tokens, path, &err) == STG_OK)
        stg_tokens_free(tokens);
    else
        stg_complain(l->c, place, "`listen.tokens`: %s", err.text);
}

/* The same of the file of keys. */
static void check_secrets_key(stg_loading *l)
{
    const char *path = l->s->secrets_key;
    stg_seal_keys *keys;
    stg_error err;

    if (path == NULL || l->c->mistakes > 0)
        return;
    if (stg_seal_keys_load(&keys, path, &err) == STG_OK)
        stg_seal_keys_free(keys);
    else
        stg_complain(l->c, stg_load_hub_place(l, "secrets.key"),
                     "`secrets.key`: %s", err.text);
}

static void check_connections(stg_loading *l)
{
    const stg_listen_settings *s = &l->s->listen;

    if (s->address_connections_max > s->connections_max &&
        stg_load_hub_place(l, "listen.connections.per-address").line > 0)
        stg_complain(l->c,
                     stg_load_hub_place(l, "listen.connections.per-address"),
                     "`listen.connections.per-address` is %" PRIu32
                     ", more than `listen.connections.max`, %" PRIu32
                     "; expected fewer, or as many",
                     s->address_connections_max, s->connections_max);
}

/* -- memory and disk ------------------------------------------------------- */

static uint64_t count_ordered(const stg_settings *s)
{
    uint64_t count = 0;

    for (size_t i = 0; i < s->target_count; i++)
        count += s->targets[i].common->order != STG_ORDER_NONE;
    return count;
}

/* Four messages for each ordered lane: see stg_flow_options. */
static void check_ordered(stg_loading *l)
{
    enum { MESSAGES = 4, LEAST = 4 << 10, ENOUGH = 64 << 10 };
    const stg_settings *s = l->s;
    uint64_t ordered = count_ordered(s);
    uint64_t room = s->memory_max - stg_settings_intake_memory(s);
    stg_file_place place = stg_load_hub_place(l, "memory");

    if (ordered == 0 || room / (MESSAGES * ordered) >= ENOUGH)
        return;
    if (room / (MESSAGES * ordered) < LEAST)
        stg_complain(l->c, place,
                     "`memory` has no room for four messages of 4 KiB for each "
                     "of %" PRIu64 " targets with an `order`; expected %" PRIu64
                     "MiB or more",
                     ordered,
                     (ordered * MESSAGES * LEAST * 4 / 3 >> MIB_SHIFT) + 1);
    else
        stg_warn(l->c, place,
                 "`memory` is short for %" PRIu64
                 " targets with an `order`: "
                 "each has room for four messages of %" PRIu64 " KiB",
                 ordered, room / (MESSAGES * ordered) >> 10);
}

/* Four fifths, because the memory limit is that of messages only. */
static void check_memory(stg_loading *l)
{
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
    uint64_t machine =
        pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : UINT64_MAX;

    if (l->s->memory_max > machine / 5 * 4)
        stg_warn(l->c, stg_load_hub_place(l, "memory"),
                 "`memory` is more than four fifths of the machine's, which "
                 "has %" PRIu64 "MiB",
                 machine >> MIB_SHIFT);
}

/* What the store may still grow by, against what the disk has left. */
static void check_quota(stg_loading *l)
{
    char *path = strdup(l->s->store.path);
    struct statvfs disk;
    uint64_t left;

    if (path == NULL || stg_from_is_postgres(path) ||
        statvfs(dirname(path), &disk) != 0) {
        free(path);
        return;
    }
    left = (uint64_t)disk.f_bavail * disk.f_frsize;
    free(path);
    if (l->s->store.quota > left)
        stg_warn(l->c, stg_load_hub_place(l, "store.quota"),
                 "`store.quota` is more than the disk has left, %" PRIu64
                 "MiB: a full disk stops the hub before its quota does",
                 left >> MIB_SHIFT);
}

static void check_store(stg_loading *l)
{
    const char *path = l->s->store.path;

    stg_load_check_output(l, "store.path", path);
    stg_settings_check_store(l->c, stg_load_hub_place(l, "store.path"), path);
}

/* A store that only STAGGER_STORE or the default names is checked when the hub
 * opens it. */
static void check_outputs(stg_loading *l)
{
    const stg_settings *s = l->s;

    if (stg_load_hub_place(l, "store.path").line > 0 &&
        !stg_from_is_postgres(s->store.path))
        check_store(l);
    if (s->letters.path != NULL)
        stg_load_check_output(l, "dead-letters.copy", s->letters.path);
    if (s->receipts.copy.path != NULL)
        stg_load_check_output(l, "receipts.copy", s->receipts.copy.path);
    if (s->audit != NULL)
        stg_load_check_output(l, "audit", s->audit);
}

/* -- policies that nobody uses --------------------------------------------- */

static bool is_used(const stg_settings *s, const char *policy)
{
    for (size_t i = 0; i < s->target_count; i++)
        if (s->targets[i].common->policy_text != NULL &&
            strcmp(s->targets[i].common->policy_text, policy) == 0)
            return true;
    return false;
}

/* An unused policy is often a slip in a target that was to have it. */
static void check_policies(stg_loading *l)
{
    const stg_settings *s = l->s;

    for (size_t i = 0; i < s->policy_count; i++)
        if (!is_used(s, s->policies[i].name))
            stg_warn(l->c, s->policies[i].place,
                     "no target has the policy `%s`", s->policies[i].name);
}

/* -- targets of one URL ---------------------------------------------------- */

/* Each target gets each message, so that one URL in two targets doubles them. */
static void check_urls(stg_loading *l)
{
    stg_text_table urls = {.at = NULL};
    const stg_settings *s = l->s;

    for (size_t i = 0; i < s->target_count; i++) {
        const stg_target_settings *t = &s->targets[i];
        size_t first = i;

        // With filters they may share one in good order.
        if (t->url == NULL || t->match_count > 0 || t->topics.count > 0)
            continue;
        if (stg_text_table_add(&urls, t->url, i, &first) && first != i)
            stg_warn(l->c, stg_load_target_place(l, i, "url"),
                     "another target has this URL (see line %" PRIu32
                     "): each message goes there twice",
                     stg_load_target_place(l, first, "url").line);
    }
    stg_text_table_free(&urls);
}

/* -- alerts ---------------------------------------------------------------- */

/* Where a receiver's setting was written, else the receiver: places[0] is not
 * that of a setting. */
static stg_file_place receiver_place(const stg_loading *l, size_t receiver,
                                     const char *path)
{
    const stg_setting *s =
        stg_setting_find(STG_IN_RECEIVER, path, strlen(path));
    stg_file_place place = {0, 0};

    if (s != NULL)
        place = l->receivers[receiver][stg_setting_number(s)];
    return place.line > 0 ? place : l->receivers[receiver][0];
}

/* Turns the path of a flaw, "receivers[1].to" or "interval", into its place in
 * the file. */
static stg_file_place flaw_place(const stg_loading *l, const char *path)
{
    static const char receivers[] = "receivers[";
    size_t size = sizeof receivers - 1;
    char whole[96], *rest;
    unsigned long receiver;

    if (strncmp(path, receivers, size) == 0) {
        receiver = strtoul(path + size, &rest, 10);
        if (strncmp(rest, "].", 2) == 0 && receiver < l->receiver_count)
            return receiver_place(l, receiver, rest + 2);
    }
    snprintf(whole, sizeof whole, "alerts.%s", path);
    return stg_load_hub_place(l, whole);
}

/* Names that are made of URLs are there already; a target without one has no
 * URL to make it of. */
static bool has_target(const stg_settings *s, const char *name)
{
    for (size_t i = 0; i < s->target_count; i++)
        if (s->targets[i].name != NULL && strcmp(s->targets[i].name, name) == 0)
            return true;
    return false;
}

static const char *suggest_target(const stg_settings *s, const char *name)
{
    stg_suggestion near = stg_suggestion_begin(name, strlen(name));

    for (size_t i = 0; i < s->target_count; i++)
        if (s->targets[i].name != NULL)
            stg_suggestion_try(&near, s->targets[i].name);
    return near.name;
}

static void check_receiver_targets(stg_loading *l, size_t i)
{
    const stg_alert_receiver_options *receiver = &l->s->alerts.receivers[i];

    for (size_t k = 0; k < receiver->target_count; k++) {
        const char *name = receiver->targets[k], *near;

        if (has_target(l->s, name))
            continue;
        near = suggest_target(l->s, name);
        stg_complain(l->c, receiver_place(l, i, "targets"),
                     "`targets`: there is no target `%.64s`; expected names of "
                     "`targets`%s%s%s",
                     name, near ? "; did you mean " : "", near ? near : "",
                     near ? "?" : "");
    }
}

static bool has_tag(const stg_settings *s, const stg_alert_tag *tag)
{
    for (size_t i = 0; i < s->target_count; i++)
        for (size_t k = 0; k < s->targets[i].tag_count; k++)
            if (strcmp(s->targets[i].tags[k].name, tag->name) == 0 &&
                strcmp(s->targets[i].tags[k].value, tag->value) == 0)
                return true;
    return false;
}

static void check_receiver_tags(stg_loading *l, size_t i)
{
    const stg_alert_receiver_options *receiver = &l->s->alerts.receivers[i];

    for (size_t k = 0; k < receiver->tag_count; k++)
        if (!has_tag(l->s, &receiver->tags[k]))
            stg_warn(l->c, receiver_place(l, i, "tags"),
                     "no target has the tag `%.64s: %.64s`",
                     receiver->tags[k].name, receiver->tags[k].value);
}

/* A mail's URL has the parts of an http one. */
static void check_receiver_egress(stg_loading *l, size_t i)
{
    const stg_alert_receiver_options *receiver = &l->s->alerts.receivers[i];
    bool is_in_file = receiver->url == NULL;
    const char *name = is_in_file ? "url-file" : "url", *text = receiver->url;
    stg_file_place place = receiver_place(l, i, name);
    char as_http[STG_URL_MAX + 8];
    const char *rest;
    stg_url url;

    if (is_in_file && receiver->url_file != NULL)
        text = stg_load_secret(l, place, name, receiver->url_file);
    rest = text == NULL ? NULL : strstr(text, "://");
    if (rest == NULL ||
        snprintf(as_http, sizeof as_http, "http%s", rest) >=
            (int)sizeof as_http ||
        stg_url_parse(&url, as_http, NULL) != STG_OK)
        return;
    stg_validate_egress(l, place, name, &url);
}

/* The options' own check comes last, and not without a `type`, which decides
 * what else a receiver needs. */
static void check_alerts(stg_loading *l)
{
    stg_alert_flaw flaw;

    if (stg_load_hub_place(l, "alerts").line > 0 &&
        stg_load_hub_place(l, "alerts.receivers").line == 0)
        stg_warn(
            l->c, stg_load_hub_place(l, "alerts"),
            "`alerts` without `alerts.receivers`: no alert is sent; expected "
            "one at least");

    for (size_t i = 0; i < l->receiver_count; i++) {
        check_receiver_targets(l, i);
        check_receiver_tags(l, i);
        check_receiver_egress(l, i);
        if (receiver_place(l, i, "type").line == l->receivers[i][0].line &&
            receiver_place(l, i, "type").column == l->receivers[i][0].column) {
            stg_complain(l->c, l->receivers[i][0],
                         "a receiver without `type`; expected slack, mail, "
                         "webhook, teams, pagerduty, opsgenie or template");
            return;
        }
    }
    if (stg_alert_options_check(&l->s->alerts, &flaw) != STG_OK)
        stg_complain(l->c, flaw_place(l, flaw.path), "`alerts.%s`: %s",
                     flaw.path, flaw.error.text);
}

/* -- traces ---------------------------------------------------------------- */

static void check_traces(stg_loading *l)
{
    const stg_trace_settings *o = &l->s->traces;
    stg_url url;

    if (o->endpoint == NULL) {
        if (stg_load_hub_place(l, "traces").line > 0 &&
            stg_load_hub_place(l, "traces.endpoint").line == 0)
            stg_complain(
                l->c, stg_load_hub_place(l, "traces"),
                "`traces` without `traces.endpoint`; expected the URL "
                "of a collector, like http://127.0.0.1:4318/v1/traces");
        return;
    }
    if (l->s->trace == STG_TRACE_OFF)
        stg_complain(l->c, stg_load_hub_place(l, "traces.endpoint"),
                     "`traces.endpoint`, and `trace` is off: an attempt has no "
                     "trace; expected begin or pass");
    if (stg_url_parse(&url, o->endpoint, NULL) == STG_OK)
        stg_validate_egress(l, stg_load_hub_place(l, "traces.endpoint"),
                            "traces.endpoint", &url);
}

/* -- all ------------------------------------------------------------------- */

/* Called even if there are mistakes, so that all are told at once: each check
 * bears values that were not read. */
void stg_validate(stg_loading *l)
{
    check_listen(l);
    stg_load_check_listen_tls(l);
    check_connections(l);
    stg_validate_inbound(l);
    check_tokens(l);
    check_secrets_key(l);
    check_ordered(l);
    check_memory(l);
    check_quota(l);
    check_outputs(l);
    stg_validate_kafka(l);
    check_policies(l);
    check_urls(l);
    for (size_t i = 0; i < l->s->target_count; i++)
        stg_validate_target(l, i);
    check_alerts(l);
    check_traces(l);
}
