#include "hub/target.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hub/http/url.h"

static stg_status fail(stg_error *err, stg_status status, const char *what,
                       const char *words)
{
    if (err != NULL) {
        *err = (stg_error){.line = 0};
        snprintf(err->text, sizeof err->text, "%.120s%s", what, words);
    }
    return status;
}

static stg_status fail_memory(stg_error *err)
{
    return fail(err, STG_IO, "", "there is no memory for the targets");
}

/* -- names ----------------------------------------------------------------- */

static bool is_name_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

/* Hosts are the same in capitals. */
static char to_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_name(const char *name)
{
    size_t size = strlen(name);

    for (size_t i = 0; i < size; i++)
        if (!is_name_letter(name[i]))
            return false;
    return size > 0 && size < STG_TARGET_NAME_MAX;
}

/* FNV-1a, folded. */
static uint32_t hash_of(stg_span text)
{
    uint64_t hash = stg_parcel_hash(text);

    return (uint32_t)(hash ^ hash >> 32);
}

stg_status stg_target_name(const char *url, char name[STG_TARGET_NAME_MAX],
                           stg_error *err)
{
    stg_span whole = {url, strlen(url)};
    char text[STG_URL_MAX + 32], hash[10] = "";
    bool has_path;
    stg_url u;

    if (stg_url_parse(&u, url, err) != STG_OK)
        return STG_INVALID;
    has_path = u.path.size > 0 && !(u.path.size == 1 && u.path.at[0] == '/');
    snprintf(text, sizeof text, "%.*s-%u", (int)u.host.size, u.host.at,
             (unsigned)u.port);
    for (char *at = text; *at != '\0'; at++)
        *at = is_name_letter(*at) ? to_lower(*at) : '-';
    // What is cut off must not make two of them one.
    if (strlen(text) > STG_TARGET_NAME_MAX - sizeof hash)
        snprintf(hash, sizeof hash, "-%08x", (unsigned)hash_of(whole));
    else if (has_path)
        snprintf(hash, sizeof hash, "-%08x", (unsigned)hash_of(u.path));
    snprintf(name, STG_TARGET_NAME_MAX, "%.*s%s",
             (int)(STG_TARGET_NAME_MAX - sizeof hash), text, hash);
    return STG_OK;
}

/* -- targets --------------------------------------------------------------- */

static void free_target(stg_target *t)
{
    free(t->name);
    free(t->url);
    free(t);
}

static stg_target *add(stg_targets *t, const char *name, const char *url)
{
    stg_target **all = realloc(t->all, (t->count + 1) * sizeof(stg_target *));
    stg_target *target = calloc(1, sizeof *target);

    if (all != NULL)
        t->all = all;
    if (target == NULL)
        return NULL;
    target->name = strdup(name);
    target->url = strdup(url);
    if (all == NULL || target->name == NULL || target->url == NULL) {
        free_target(target);
        return NULL;
    }
    t->all[t->count++] = target;
    return target;
}

static const stg_target *find(const stg_targets *t, const char *name)
{
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->all[i]->name, name) == 0)
            return t->all[i];
    return NULL;
}

static stg_status add_known(stg_targets *t, stg_client *client,
                            const stg_hub_target *o, const char *ca_file,
                            stg_error *err)
{
    stg_endpoint_options e = stg_endpoint_options_default(o->url);
    char name[STG_TARGET_NAME_MAX];
    stg_target *target;

    e.ca_file = ca_file;
    if (o->name == NULL) {
        if (stg_target_name(o->url, name, err) != STG_OK)
            return STG_INVALID;
    } else if (!is_name(o->name)) {
        return fail(err, STG_INVALID, o->name,
                    ": is no name of a target, wanted 1 to 64 of A-Z a-z 0-9 "
                    ". _ -");
    } else {
        memcpy(name, o->name, strlen(o->name) + 1);
    }
    if (find(t, name) != NULL)
        return fail(err, STG_INVALID, name,
                    ": two targets have this name; give one of them another, "
                    "as NAME=URL");
    target = add(t, name, o->url);
    if (target == NULL)
        return fail_memory(err);
    return stg_endpoint_new(&target->endpoint, client, &e, err);
}

/* Says which target it is. Not by its URL, which may be what is wrong, and have
 * a password in it. */
static stg_status number_error(stg_error *err, size_t i,
                               const stg_hub_target *o, stg_status status,
                               const stg_error *why)
{
    if (err == NULL)
        return status;
    *err = (stg_error){.line = 0};
    snprintf(err->text, sizeof err->text, "target %zu%s%.64s%s: %.280s", i + 1,
             o->name != NULL ? " (" : "", o->name != NULL ? o->name : "",
             o->name != NULL ? ")" : "", why->text);
    return status;
}

stg_status stg_targets_open(stg_targets *t, stg_client *client,
                            const stg_hub_options *o, stg_error *err)
{
    for (size_t i = 0; i < o->target_count; i++) {
        stg_error why;
        stg_status status =
            add_known(t, client, &o->targets[i], o->ca_file, &why);

        if (status != STG_OK)
            return number_error(err, i, &o->targets[i], status, &why);
    }
    t->known = t->count;
    return STG_OK;
}

/* -- lanes ----------------------------------------------------------------- */

static bool put_at(stg_targets *t, stg_target *target, uint32_t lane)
{
    target->lane = lane;
    if (lane >= t->lanes) {
        size_t lanes = (size_t)lane + 1 + t->lanes / 2;
        stg_target **grown = realloc(t->by_lane, lanes * sizeof(stg_target *));

        if (grown == NULL)
            return false;
        for (size_t i = t->lanes; i < lanes; i++)
            grown[i] = NULL;
        t->by_lane = grown;
        t->lanes = lanes;
    }
    t->by_lane[lane] = target;
    return true;
}

typedef struct search {
    stg_targets *targets;
    bool has_failed; /* no memory */
} search;

static void add_stored(void *ctx, uint32_t lane, const char *name,
                       const char *url)
{
    search *s = ctx;
    stg_target *target;

    if (s->has_failed || stg_targets_at(s->targets, lane) != NULL)
        return;
    target = add(s->targets, name, url);
    s->has_failed = target == NULL || !put_at(s->targets, target, lane);
}

stg_status stg_targets_find_lanes(stg_targets *t, stg_store *store,
                                  stg_error *err)
{
    search s = {.targets = t};
    stg_status status = STG_OK;
    uint32_t lane = 0;

    for (size_t i = 0; i < t->known; i++) {
        status =
            stg_store_lane(store, t->all[i]->name, t->all[i]->url, &lane, err);
        if (status != STG_OK)
            return status;
        if (!put_at(t, t->all[i], lane))
            return fail_memory(err);
    }
    status = stg_store_lanes(store, add_stored, &s, err);
    return status == STG_OK && s.has_failed ? fail_memory(err) : status;
}

void stg_targets_close(stg_targets *t)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->all[i]->endpoint != NULL)
            stg_endpoint_free(t->all[i]->endpoint);
        t->all[i]->endpoint = NULL;
    }
}

void stg_targets_free(stg_targets *t)
{
    for (size_t i = 0; i < t->count; i++)
        free_target(t->all[i]);
    free(t->all);
    free(t->by_lane);
}
