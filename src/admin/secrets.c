/* Secrets in a target's settings: values of headers and of the URL's query, the
 * password of its proxy, those that its requests are signed with, and those that
 * get its token. They are shown
 * as `***`, and what comes back as it was shown stays what it is. So an object that
 * was read can be changed and put back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/internal.h"
#include "http/url.h"

static const char masked[] = "***";

/* The lists of secrets. */
typedef struct list {
    const char *section, *key;
} list;

static const list lists[] = {{"sign", "secrets"},
                             {"oauth2", "client-secret"},
                             {"oauth2", "private-key"}};

enum { LISTS = sizeof lists / sizeof *lists };

/* An array, or one secret alone; NULL: there is none. */
static json_t *all_of(const json_t *settings, const list *l)
{
    return json_object_get(json_object_get(settings, l->section), l->key);
}

/* Number i of a list; NULL: there are no more. */
static json_t *secret_at(const json_t *settings, const list *l, size_t i)
{
    json_t *all = all_of(settings, l);

    return json_is_array(all) ? json_array_get(all, i) : i == 0 ? all : NULL;
}

static bool is_masked(const json_t *value)
{
    return json_is_string(value) &&
           strcmp(json_string_value(value), masked) == 0;
}

/* Settings with a URL, parts of which may be secrets. */
static const char *const urls[] = {"url", "proxy"};
enum { URLS = sizeof urls / sizeof *urls };

static const char *url_of(const json_t *settings, size_t i)
{
    return json_string_value(json_object_get(settings, urls[i]));
}

/* Returns a URL of the settings with its secrets masked, to be freed; NULL: the
 * setting is not there, or out of memory. */
static char *masked_url(const json_t *settings, size_t i)
{
    const char *url = url_of(settings, i);

    return url == NULL ? NULL : stg_url_mask(url);
}

static void mask_url(json_t *settings, size_t i)
{
    char *shown = masked_url(settings, i);

    if (url_of(settings, i) != NULL)
        json_object_set_new(settings, urls[i], stg_json_text(shown));
    free(shown);
}

void stg_secrets_mask(json_t *settings)
{
    const char *name;
    json_t *value;

    for (size_t i = 0; i < URLS; i++)
        mask_url(settings, i);
    json_object_foreach(json_object_get(settings, "headers"), name,
                        value) if (json_is_string(value))
        json_string_set(value, masked);
    for (size_t k = 0; k < LISTS; k++)
        for (size_t i = 0; (value = secret_at(settings, &lists[k], i)) != NULL;
             i++)
            if (json_is_string(value))
                json_string_set(value, masked);
}

/* The first `***` of the new list is the first secret of the old one, and so on:
 * so a new secret can be put before the old one, and that be left out later. */
static void unmask_list(json_t *settings, const json_t *old, const list *l)
{
    json_t *value;
    size_t next = 0;

    for (size_t i = 0; (value = secret_at(settings, l, i)) != NULL; i++) {
        const char *secret;

        if (!is_masked(value))
            continue;
        secret = json_string_value(secret_at(old, l, next++));
        if (secret != NULL)
            json_string_set(value, secret);
    }
}

static void unmask_url(json_t *settings, const json_t *old, size_t i)
{
    const char *url = url_of(settings, i);
    char *shown = masked_url(old, i);

    if (url != NULL && shown != NULL && strcmp(url, shown) == 0)
        json_object_set_new(settings, urls[i], json_string(url_of(old, i)));
    free(shown);
}

void stg_secrets_unmask(json_t *settings, const json_t *old)
{
    const json_t *old_headers = json_object_get(old, "headers");
    const char *name;
    json_t *value;

    for (size_t i = 0; i < URLS; i++)
        unmask_url(settings, old, i);
    json_object_foreach(json_object_get(settings, "headers"), name, value)
    {
        const char *secret =
            json_string_value(json_object_get(old_headers, name));

        if (secret != NULL && is_masked(value))
            json_string_set(value, secret);
    }
    for (size_t k = 0; k < LISTS; k++)
        unmask_list(settings, old, &lists[k]);
}

static bool has_secret_url(const json_t *settings, size_t i)
{
    char *shown = masked_url(settings, i);
    bool has_any = shown != NULL && strcmp(shown, url_of(settings, i)) != 0;

    free(shown);
    return has_any;
}

bool stg_secrets_find(const json_t *settings, char *pointer, size_t size)
{
    const char *name = json_object_iter_key(
        json_object_iter(json_object_get(settings, "headers")));
    size_t k = 0;

    while (k < LISTS && secret_at(settings, &lists[k], 0) == NULL)
        k++;
    for (size_t i = 0; i < URLS; i++)
        if (has_secret_url(settings, i)) {
            snprintf(pointer, size, "/%s", urls[i]);
            return true;
        }
    if (name != NULL)
        snprintf(pointer, size, "/headers/%.60s", name);
    else if (k < LISTS)
        snprintf(pointer, size, "/%s/%s", lists[k].section, lists[k].key);
    else
        return false;
    return true;
}

static void refuse(json_t *errors, const char *pointer)
{
    static const char words[] =
        "`***` stands for a secret that is there already, and there is none "
        "like this; expected the whole value";

    json_array_append_new(errors,
                          json_pack("{s:o,s:s}", "pointer",
                                    stg_json_text(pointer), "detail", words));
}

static void check_list(const json_t *settings, json_t *errors, const list *l)
{
    const json_t *all = all_of(settings, l), *value;
    char pointer[80];

    for (size_t i = 0; (value = secret_at(settings, l, i)) != NULL; i++) {
        if (!is_masked(value))
            continue;
        snprintf(pointer, sizeof pointer,
                 json_is_array(all) ? "/%s/%s/%zu" : "/%s/%s", l->section,
                 l->key, i);
        refuse(errors, pointer);
    }
}

void stg_secrets_check(const json_t *settings, json_t *errors)
{
    const char *name;
    const json_t *value;
    char pointer[80];

    for (size_t i = 0; i < URLS; i++) {
        const char *url = url_of(settings, i);

        snprintf(pointer, sizeof pointer, "/%s", urls[i]);
        if (url != NULL && strstr(url, masked) != NULL)
            refuse(errors, pointer);
    }
    json_object_foreach(json_object_get(settings, "headers"), name, value)
    {
        if (!is_masked(value))
            continue;
        snprintf(pointer, sizeof pointer, "/headers/%.60s", name);
        refuse(errors, pointer);
    }
    for (size_t k = 0; k < LISTS; k++)
        check_list(settings, errors, &lists[k]);
}
