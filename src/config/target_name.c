#include "config/target_name.h"

#include <stdio.h>
#include <string.h>

#include "http/url.h"
#include "store/parcel.h"

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

bool stg_target_is_name(const char *name)
{
    size_t size = strlen(name);

    for (size_t i = 0; i < size; i++)
        if (!is_name_letter(name[i]))
            return false;
    // In a path of the API these two are the folder, and the one above it.
    return size > 0 && size < STG_TARGET_NAME_MAX && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
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
    // Two URLs that differ behind the cut must not share a name.
    if (strlen(text) > STG_TARGET_NAME_MAX - sizeof hash)
        snprintf(hash, sizeof hash, "-%08x", (unsigned)hash_of(whole));
    else if (has_path)
        snprintf(hash, sizeof hash, "-%08x", (unsigned)hash_of(u.path));
    snprintf(name, STG_TARGET_NAME_MAX, "%.*s%s",
             (int)(STG_TARGET_NAME_MAX - sizeof hash), text, hash);
    return STG_OK;
}

const char *stg_target_state_name(unsigned state)
{
    return state == STG_TARGET_ORPHANED
               ? "orphaned"
               : stg_lane_state_name((stg_lane_state)state);
}
