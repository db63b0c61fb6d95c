/* The URL of a server, read by libpq: which of its parts may be shown.
 *
 * The rule: only user, host, port and database are shown, and each only if it
 * looks plain. What libpq cannot read, or would read otherwise than it was
 * meant, is not shown at all, for a piece of the password may be in it; nor are
 * libpq's own words, which quote what they stumbled on. Which options are
 * secret is what libpq says of them, so new ones need no change here. */
#include "store/postgres/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "base/refuse.h"

static char *copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *same = malloc(size);

    return same == NULL ? NULL : memcpy(same, text, size);
}

/* NULL: libpq cannot read it. Its words would say what it stumbled on. */
static PQconninfoOption *parse(const char *url)
{
    char *words = NULL;
    PQconninfoOption *parts = PQconninfoParse(url, &words);

    PQfreemem(words);
    return parts;
}

/* libpq marks options that a form should hide, such as passwords, by "*". */
static bool is_secret(const PQconninfoOption *part)
{
    return strcmp(part->dispchar, "*") == 0;
}

/* "" for what the URL does not have. */
static const char *find(const PQconninfoOption *parts, const char *keyword)
{
    for (; parts->keyword != NULL; parts++)
        if (strcmp(parts->keyword, keyword) == 0)
            return parts->val == NULL ? "" : parts->val;
    return "";
}

/* A password with an "@" that is not written as %40. libpq takes what is behind
 * the first one for the host: so the rest of the password would be shown, and
 * looked up by DNS. */
static bool has_stray_at(const char *url)
{
    const char *from = strstr(url, "://");
    const char *end;
    int count = 0;

    if (from == NULL)
        return false;
    from += 3;
    end = from + strcspn(from, "/?#");
    for (; from < end; from++)
        count += *from == '@';
    return count > 1;
}

/* -- what may be shown ----------------------------------------------------- */

/* No space, no control character, no "@" and no "=": a value with these may be
 * a piece of something else, such as a password. */
static bool is_plain(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text <= 0x20 || strchr("@=\x7f", *text) != NULL)
            return false;
    return true;
}

/* Several hosts stand there with commas, as in the URL, and their ports,
 * too. */
static char *write_name(const char *user, const char *host, const char *port,
                        const char *database)
{
    size_t size = strlen(user) + strlen(host) + strlen(port) +
                  strlen(database) + sizeof "postgres://@:/";
    char *name = malloc(size);

    if (name != NULL)
        snprintf(name, size, "postgres://%s%s%s%s%s%s%s", user,
                 *user == '\0' ? "" : "@", host, *port == '\0' ? "" : ":", port,
                 *database == '\0' ? "" : "/", database);
    return name;
}

/* A folder of sockets is an option of the URL, and no part of its name. */
static const char *host_of(const PQconninfoOption *parts)
{
    const char *host = find(parts, "host");

    return *host == '/' ? "" : host;
}

char *stg_pg_url_name(const char *url)
{
    PQconninfoOption *parts = has_stray_at(url) ? NULL : parse(url);
    const char *user, *host, *port, *database;
    char *name;

    if (parts == NULL)
        return copy("postgres");
    user = find(parts, "user");
    host = host_of(parts);
    port = find(parts, "port");
    if (port[strspn(port, ",")] == '\0')
        port = ""; // of several hosts none has one
    database = find(parts, "dbname");
    name = is_plain(user) && strchr(user, ':') == NULL && is_plain(host) &&
                   is_plain(port) && is_plain(database)
               ? write_name(user, host, port, database)
               : copy("postgres");
    PQconninfoFree(parts);
    return name;
}

/* -- what must not --------------------------------------------------------- */

/* False also for a URL that libpq cannot read: stg_pg_url_check() refuses
 * it. */
bool stg_pg_url_has_secret(const char *url)
{
    PQconninfoOption *parts = has_stray_at(url) ? NULL : parse(url);
    bool has = false;

    if (parts == NULL)
        return false;
    for (const PQconninfoOption *p = parts; p->keyword != NULL; p++)
        has |= is_secret(p) && p->val != NULL && *p->val != '\0';
    PQconninfoFree(parts);
    return has;
}

stg_status stg_pg_url_check(const char *url, stg_error *err)
{
    PQconninfoOption *parts;

    if (has_stray_at(url))
        return stg_hub_refuse(err, STG_INVALID,
                              "the store's URL: has several '@' before the "
                              "host; write one that is part of the user or "
                              "the password as %%40");
    parts = parse(url);
    if (parts == NULL)
        return stg_hub_refuse(
            err, STG_INVALID,
            "the store's URL: is no URL of a database, or one of its options is "
            "unknown; expected postgres://USER:PASSWORD@HOST:PORT/DATABASE, with "
            "other characters in them as %%40");
    PQconninfoFree(parts);
    return STG_OK;
}

/* The order is libpq's: the URL, the environment, the home folder. On an
 * unreadable URL the option is not known, and the others are asked. */
char *stg_pg_url_passfile(const char *url)
{
    PQconninfoOption *parts = parse(url);
    const char *path = parts == NULL ? "" : find(parts, "passfile");
    const char *home = getenv("HOME");
    char *found = NULL;

    if (path == NULL || *path == '\0')
        path = getenv("PGPASSFILE");
    if (path != NULL && *path != '\0') {
        found = copy(path);
    } else if (home != NULL) {
        size_t size = strlen(home) + sizeof "/.pgpass";

        found = malloc(size);
        if (found != NULL)
            snprintf(found, size, "%s/.pgpass", home);
    }
    PQconninfoFree(parts);
    return found;
}
