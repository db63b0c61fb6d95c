/* The dead letters that are asked for, read from the store or from a hub. A store
 * is read page by page, and its snapshot let go between them, so that a slow
 * reader of the output never holds the hub's writer up. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/dead/dead.h"
#include "cli/options.h"
#include "cli/say.h"
#include "cli/store.h"
#include "store/postgres/open.h"
#include "store/postgres/url.h"
#include "store/schema.h"
#include "store/sqlite.h"
#include "store/store.h"

/* -- from a store ----------------------------------------------------------- */

enum { PAGE = 100 };

/* Nobody else has it open, and we may not make the files that sharing it takes:
 * then it does not change. */
static int open_unshared(stg_db **db, const char *path)
{
    static const char unshared[] = "?immutable=1";
    size_t room = 3 * strlen(path) + 32;
    char *uri = malloc(room), *to;
    int rc;

    if (uri == NULL)
        return SQLITE_NOMEM;
    to = uri + snprintf(uri, room, "file:");
    for (const char *at = path; *at != '\0'; at++)
        to += snprintf(to, 4, strchr("%?#", *at) != NULL ? "%%%02X" : "%c",
                       (unsigned char)*at);
    memcpy(to, unshared, sizeof unshared);
    stg_sql_close(*db);
    rc = stg_sqlite_open(db, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    free(uri);
    return rc;
}

static bool has_wal(const char *path)
{
    size_t size = strlen(path) + 5;
    char *name = malloc(size);
    bool has = true;

    if (name == NULL)
        return true;
    snprintf(name, size, "%s-wal", path);
    has = access(name, F_OK) == 0;
    free(name);
    return has;
}

static bool open_url(dead_rows *r)
{
    stg_error err;

    if (stg_pg_open_to_look(&r->db, r->o->store, &err) == STG_OK)
        return true;
    stg_options_complain("stagger dead", "%s", err.text);
    return false;
}

/* A reader beside the hub, which may be writing. Where the directory may not be
 * written, and no hub has the store open, it is read as it is. */
static int open_file(dead_rows *r)
{
    stg_schema_kind kind;
    uint64_t version;
    int rc = stg_sql_open_reader(&r->db, r->o->store);

    if (rc == SQLITE_OK)
        rc = stg_schema_look(r->db, &kind, &version);
    if ((rc & 0xff) == SQLITE_CANTOPEN && !has_wal(r->o->store))
        rc = open_unshared(&r->db, r->o->store);
    return rc;
}

static bool name_store(dead_rows *r)
{
    r->name = stg_store_is_url(r->o->store) ? stg_pg_url_name(r->o->store)
                                            : strdup(r->o->store);
    return r->name != NULL;
}

bool dead_open(dead_rows *r, const dead_options *o)
{
    stg_error err;
    int rc;

    *r = (dead_rows){.o = o, .code = STG_EXIT_USAGE};
    if (o->remote.hub != NULL)
        return dead_open_remote(r);
    if (!name_store(r) || !stg_filter_copy(&r->filter, &o->filter)) {
        stg_options_complain("stagger dead", "out of memory");
        return false;
    }
    if (stg_store_is_url(o->store))
        return open_url(r);
    if (!stg_store_path_look("stagger dead", o->store))
        return false;
    rc = open_file(r);
    if (rc != SQLITE_OK) {
        dead_fail(r, rc);
        return false;
    }
    if (stg_schema_check(r->db, o->store, false, &err) == STG_OK)
        return true;
    stg_options_complain("stagger dead", "%s", err.text);
    return false;
}

void dead_close(dead_rows *r)
{
    stg_sql_close(r->db);
    stg_found_free(&r->found);
    stg_found_free(&r->whole);
    stg_filter_free(&r->filter);
    json_decref(r->letters);
    free(r->name);
}

int dead_fail(const dead_rows *r, int rc)
{
    stg_error err;

    if (r->db != NULL)
        stg_sql_words(&err, r->name, "cannot be read", r->db, rc);
    else
        snprintf(err.text, sizeof err.text, "out of memory");
    stg_options_complain("stagger dead", "%s", err.text);
    return STG_EXIT_USAGE;
}

/* Reads a page, lets the store go, and prints: the write-ahead log of a hub can
 * be cut back only while nobody reads. */
int dead_read(dead_rows *r, uint64_t limit, bool is_whole, dead_each *each,
              void *ctx)
{
    uint64_t left = limit == 0 ? UINT64_MAX : limit, after = 0;
    int rc = SQLITE_OK;

    if (r->db == NULL) {
        dead_read_remote(r, limit, each, ctx);
        return SQLITE_OK;
    }
    do {
        const stg_found *found = is_whole ? &r->whole : &r->found;

        rc = stg_find_page(r->db, &r->filter, after,
                           left < PAGE ? (size_t)left : PAGE, limit > 0,
                           &r->found);
        if (rc == SQLITE_OK && is_whole)
            rc = stg_find_whole(r->db, &r->found, &r->whole);
        if (rc != SQLITE_OK)
            return rc;
        after = r->found.next;
        left -= r->found.count;
        for (size_t i = 0; i < found->count; i++)
            each(ctx, &found->letters[i]);
    } while (after > 0 && left > 0);
    return rc;
}

const char *dead_text(const stg_letter *l, stg_letter_column column,
                      char number[DEAD_NUMBER_MAX])
{
    stg_letter_value v = stg_letter_get(l, column);

    if (v.is_null)
        return "";
    if (!v.is_number)
        return v.span.at;
    snprintf(number, DEAD_NUMBER_MAX, "%" PRIu64, v.number);
    return number;
}

void dead_put_csv(stg_span text, bool is_last)
{
    bool is_quoted = false;

    for (size_t i = 0; i < text.size; i++)
        is_quoted = is_quoted || strchr("\",\r\n", text.at[i]) != NULL;
    if (is_quoted)
        putchar('"');
    for (size_t i = 0, size; i < text.size; i += size) {
        const char *quote = memchr(text.at + i, '"', text.size - i);

        size =
            quote == NULL ? text.size - i : (size_t)(quote - text.at) - i + 1;
        stg_say_bytes(stdout, text.at + i, size);
        if (quote != NULL)
            putchar('"');
    }
    if (is_quoted)
        putchar('"');
    fputs(is_last ? "\r\n" : ",", stdout);
}

/* -- from a hub ------------------------------------------------------------- */

enum { PATH_ROOM = 1024 };

static void add_option(char *path, const char *name, const char *value)
{
    char escaped[400];
    size_t size = strlen(path);

    if (value != NULL && *value != '\0')
        snprintf(path + size, PATH_ROOM - size, "&%s=%s", name,
                 stg_remote_escape(value, escaped, sizeof escaped));
}

static void add_time(char *path, const char *name, stg_ns time)
{
    char text[STG_SQL_TIME_MAX];

    if (time > 0)
        add_option(path, name, stg_sql_time(time, text));
}

static void make_path(char *path, const dead_options *o, const char *cursor)
{
    snprintf(path, PATH_ROOM, "/v1/dead-letters?limit=1000");
    add_option(path, "target", o->filter.target);
    add_option(path, "cause", o->cause_word);
    add_option(path, "state", o->filter.state);
    add_time(path, "since", o->filter.since);
    add_time(path, "until", o->filter.until);
    add_option(path, "cursor", cursor);
}

/* False: complained. */
static bool fetch(dead_rows *r, stg_remote *remote)
{
    char path[PATH_ROOM], cursor[32] = "";

    do {
        json_t *answer = NULL;

        make_path(path, r->o, cursor);
        if (!stg_remote_call(remote, "GET", path, NULL, &answer)) {
            r->code = stg_remote_complain(remote);
            return false;
        }
        (void)json_array_extend(r->letters,
                                json_object_get(answer, "dead_letters"));
        snprintf(cursor, sizeof cursor, "%s", stg_json_text_of(answer, "next"));
        json_decref(answer);
    } while (cursor[0] != '\0');
    return true;
}

/* A name that nobody has is told from one that has no dead letters. */
static void look_for_target(dead_rows *r, stg_remote *remote)
{
    char name[400], path[480];
    json_t *answer = NULL;

    if (r->o->filter.target == NULL)
        return;
    snprintf(path, sizeof path, "/v1/targets/%s",
             stg_remote_escape(r->o->filter.target, name, sizeof name));
    r->is_target_known = stg_remote_call(remote, "GET", path, NULL, &answer);
    json_decref(answer);
}

bool dead_open_remote(dead_rows *r)
{
    stg_remote *remote = stg_remote_open("stagger dead", &r->o->remote);
    bool is_well;

    if (remote == NULL)
        return false;
    r->name = strdup(stg_remote_hub(remote));
    r->letters = json_array();
    is_well = fetch(r, remote);
    if (is_well)
        look_for_target(r, remote);
    stg_remote_close(remote);
    return is_well;
}

/* What is of another type than it is to be is left out. */
static stg_letter_value value_of(const json_t *json)
{
    const char *text = json_string_value(json);

    return (stg_letter_value){.is_null = text == NULL && !json_is_integer(json),
                              .number =
                                  json_integer_value(json) < 0
                                      ? 0
                                      : (uint64_t)json_integer_value(json),
                              .span = {text, text == NULL ? 0 : strlen(text)}};
}

void dead_read_remote(dead_rows *r, uint64_t limit, dead_each *each, void *ctx)
{
    size_t count = json_array_size(r->letters);

    for (size_t i = 0; i < count && (limit == 0 || i < limit); i++) {
        const json_t *json =
            json_array_get(r->letters, limit == 0 ? count - 1 - i : i);
        stg_letter l = {.id = 0};

        for (stg_letter_column c = 0; c < STG_LETTER_LIGHT_COLUMNS; c++)
            stg_letter_set(&l, c,
                           value_of(json_object_get(json, stg_letter_name(c))));
        each(ctx, &l);
    }
}
