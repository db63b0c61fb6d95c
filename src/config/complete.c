/* Names and policies for the targets that have none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "config/internal.h"
#include "config/lane_policy.h"
#include "config/shard.h"
#include "config/target_name.h"
#include "http/url.h"
#include "ingress/address.h"

static stg_status refuse_memory(stg_error *err)
{
    return stg_hub_refuse(err, STG_IO, "there is no memory for the settings");
}

/* -- names ----------------------------------------------------------------- */

static stg_status name_target(stg_settings *s, stg_target_settings *t,
                              stg_error *err)
{
    char name[STG_TARGET_NAME_MAX];

    if (t->url == NULL)
        return stg_hub_refuse(err, STG_INVALID, "it has no URL");
    if (t->name == NULL) {
        if (stg_target_name(t->url, name, err) != STG_OK)
            return STG_INVALID;
        t->name = stg_settings_keep_text(s, name, strlen(name));
        return t->name != NULL ? STG_OK : refuse_memory(err);
    }
    if (stg_target_is_name(t->name))
        return STG_OK;
    return stg_hub_refuse(
        err, STG_INVALID,
        "this is no name of a target, wanted 1 to 64 of A-Z a-z 0-9 "
        ". _ -");
}

static stg_status check_unique(stg_text_table *names, const stg_settings *s,
                               size_t i, stg_error *err)
{
    size_t first;

    if (!stg_text_table_add(names, s->targets[i].name, i, &first))
        return refuse_memory(err);
    if (first == i)
        return STG_OK;
    return stg_hub_refuse(
        err, STG_INVALID,
        "two targets have this name; give one of them another");
}

/* -- policies -------------------------------------------------------------- */

/* The text that a target's policy is made of: one with a name is looked up. */
static const char *text_of(const stg_settings *s, const char *text)
{
    for (size_t i = 0; text != NULL && i < s->policy_count; i++)
        if (strcmp(s->policies[i].name, text) == 0)
            return s->policies[i].text;
    return text;
}

static stg_status compile(stg_settings *s, const char *text,
                          stg_target_settings *t, stg_error *err)
{
    stg_policy *made, read;

    if (stg_lane_policy_read(&read, text, s->target_count, t->attempt_timeout,
                             t->rate, err) != STG_OK)
        return STG_INVALID;
    made = stg_settings_keep(s, sizeof *made);
    if (made == NULL)
        return refuse_memory(err);
    *made = read;
    t->policy = made;
    return STG_OK;
}

static bool keep_policy(struct stg_settings_inside *in, size_t number,
                        const stg_policy *policy)
{
    if (number == in->policy_room) {
        size_t room = number > 0 ? 2 * number : 8;
        const stg_policy **grown =
            realloc(in->policies, room * sizeof(stg_policy *));

        if (grown == NULL)
            return false;
        in->policies = grown;
        in->policy_room = room;
    }
    in->policies[number] = policy;
    return true;
}

/* Targets that say the same share one: it is large. */
static stg_status give_policy(stg_settings *s, stg_target_settings *t,
                              stg_error *err)
{
    struct stg_settings_inside *in = s->inside;
    const char *text = text_of(s, t->policy_text);
    size_t size = (text != NULL ? strlen(text) : 0) + 48, number;
    char *key = malloc(size), *kept;
    stg_status status;

    if (key == NULL)
        return refuse_memory(err);
    snprintf(key, size, "%llu %lu %s", (unsigned long long)t->attempt_timeout,
             (unsigned long)t->rate, text != NULL ? text : "");
    if (stg_text_table_find(&in->compiled, key, &number)) {
        free(key);
        t->policy = in->policies[number];
        return STG_OK;
    }
    kept = stg_settings_keep_text(s, key, strlen(key));
    free(key);
    status = compile(s, text, t, err);
    number = in->compiled.count;
    if (status == STG_OK &&
        (kept == NULL || !keep_policy(in, number, t->policy) ||
         !stg_text_table_add(&in->compiled, kept, number, NULL)))
        return refuse_memory(err);
    return status;
}

/* -- where they are -------------------------------------------------------- */

stg_status stg_settings_check_loop(const stg_settings *s, const char *url,
                                   stg_error *err)
{
    const char *listens = s->listen.address;
    stg_listen_address address;
    stg_url u;
    char host[64];

    if (listens == NULL || url == NULL ||
        stg_address_parse(&address, listens, NULL) != STG_OK ||
        stg_url_parse(&u, url, NULL) != STG_OK || u.host.size >= sizeof host)
        return STG_OK;
    snprintf(host, sizeof host, "%.*s", (int)u.host.size, u.host.at);
    if (!stg_address_reaches(&address, host, u.port))
        return STG_OK;
    return stg_hub_refuse(err, STG_INVALID,
                          "the hub itself listens there (on %s), and each "
                          "message would come back as a new one; wanted "
                          "another",
                          listens);
}

stg_status stg_settings_check_egress(const stg_settings *s, const stg_url *url,
                                     stg_error *err)
{
    struct sockaddr_storage to;
    char why[STG_EGRESS_WHY_MAX];

    if (!stg_url_read_address(url, &to) ||
        stg_egress_allows(&s->egress, (const struct sockaddr *)&to, why))
        return STG_OK;
    return stg_hub_refuse(err, STG_INVALID,
                          "the hub may not connect to its address: %s; wanted "
                          "another, or one that `egress.allow` has",
                          why);
}

/* Whether messages may be sent there. A URL that is none is found elsewhere. */
static stg_status check_url(const stg_settings *s, const char *text,
                            stg_error *err)
{
    stg_status status = stg_settings_check_loop(s, text, err);
    stg_url url;

    if (status != STG_OK || stg_url_parse(&url, text, NULL) != STG_OK)
        return status;
    return stg_settings_check_egress(s, &url, err);
}

/* -- all ------------------------------------------------------------------- */

/* Says which target it is. Not by its URL, which may be what is wrong, and have
 * a password in it. */
static stg_status number_error(stg_error *err, size_t i,
                               const stg_target_settings *t, stg_status status,
                               const stg_error *why)
{
    bool has_name = t->name != NULL;

    if (err == NULL)
        return status;
    *err = (stg_error){.line = 0};
    snprintf(err->text, sizeof err->text, "target %zu%s%.64s%s: %.280s", i + 1,
             has_name ? " (" : "", has_name ? t->name : "", has_name ? ")" : "",
             why->text);
    return status;
}

/* Only those of this hub's shard stay, in their order. */
static void take_share(stg_settings *s)
{
    size_t count = 0;

    for (size_t i = 0; i < s->target_count; i++)
        if (stg_shard_has(&s->shard, s->targets[i].name))
            s->targets[count++] = s->targets[i];
    s->target_count = count;
}

stg_status stg_settings_complete(stg_settings *s, stg_error *err)
{
    stg_text_table names = {.at = NULL};
    stg_status status = STG_OK;
    stg_error why;

    if (s->inside->is_complete)
        return STG_OK;
    stg_text_table_free(&s->inside->compiled);
    for (size_t i = 0; status == STG_OK && i < s->target_count; i++) {
        stg_target_settings *t = &s->targets[i];

        status = name_target(s, t, &why);
        if (status == STG_OK)
            status = check_unique(&names, s, i, &why);
        if (status == STG_OK)
            status = check_url(s, t->url, &why);
        if (status == STG_OK)
            status = give_policy(s, t, &why);
        if (status != STG_OK)
            number_error(err, i, t, status, &why);
    }
    stg_text_table_free(&names);
    if (status == STG_OK)
        take_share(s);
    s->inside->is_complete = status == STG_OK;
    return status;
}
