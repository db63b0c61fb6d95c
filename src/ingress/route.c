#include "ingress/token.h"

#include <stdbool.h>
#include <string.h>

/* -- one path ---------------------------------------------------------------- */

static bool is_word(const char *pattern)
{
    return *pattern == '{';
}

static size_t segment_size(const char *path)
{
    return strcspn(path, "/");
}

/* Segment by segment; both begin with '/'. */
static bool matches(const char *pattern, const char *path)
{
    while (*pattern == '/' && *path == '/') {
        size_t expected = segment_size(++pattern), size = segment_size(++path);

        if (is_word(pattern)
                ? size == 0
                : size != expected || memcmp(pattern, path, size) != 0)
            return false;
        pattern += expected;
        path += size;
    }
    return *pattern == '\0' && *path == '\0';
}

/* 0: there is no such word, or it does not fit; `word` is left as it was. */
size_t stg_route_word(const char *pattern, const char *path, size_t i,
                      char *word, size_t room)
{
    while (*pattern == '/' && *path == '/') {
        size_t size = segment_size(++path);

        if (is_word(++pattern) && i-- == 0) {
            if (size >= room)
                return 0;
            memcpy(word, path, size);
            word[size] = '\0';
            return size;
        }
        pattern += segment_size(pattern);
        path += size;
    }
    return 0;
}

/* -- tables ------------------------------------------------------------------ */

static bool is_get(const stg_route *r)
{
    return strcmp(r->method, "GET") == 0;
}

static bool has_method(const stg_route *r, const char *method)
{
    return strcmp(r->method, method) == 0 ||
           (is_get(r) && strcmp(method, "HEAD") == 0);
}

/* A path has one of each method at most, and there are few: it fits. */
static void allow(stg_match *m, const stg_route *r)
{
    const char *more = is_get(r) ? "GET, HEAD" : r->method;
    size_t used = strlen(m->allowed), comma = used > 0 ? 2 : 0;

    if (used + comma + strlen(more) >= sizeof m->allowed)
        return;
    memcpy(m->allowed + used, ", ", comma);
    memcpy(m->allowed + used + comma, more, strlen(more) + 1);
}

/* `allowed` collects the methods of all routes of the path up to the one that
 * matches: it is complete where none does, and only read then. */
static void look(const stg_routes *tables, size_t count, bool has_words,
                 const char *path, const char *method, stg_match *m)
{
    for (size_t t = 0; t < count; t++)
        for (size_t i = 0; i < tables[t].count; i++) {
            const stg_route *r = &tables[t].all[i];

            if ((strchr(r->path, '{') != NULL) != has_words ||
                !(has_words ? matches(r->path, path)
                            : strcmp(r->path, path) == 0))
                continue;
            allow(m, r);
            if (has_method(r, method)) {
                m->route = r;
                m->ctx = tables[t].ctx;
                return;
            }
        }
}

/* A path without words wins over one that has them. Tables are walked in
 * order; there are few routes. */
void stg_routes_match(const stg_routes *tables, size_t count, const char *path,
                      const char *method, stg_match *m)
{
    m->route = NULL;
    m->ctx = NULL;
    m->allowed[0] = '\0';
    look(tables, count, false, path, method, m);
    if (m->allowed[0] == '\0')
        look(tables, count, true, path, method, m);
}
