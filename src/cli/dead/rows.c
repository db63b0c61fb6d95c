/* The dead letters that are asked for, read from the store or from a hub. A store
 * is read page by page, and its snapshot let go between them, so that a slow
 * reader of the output never holds the hub's writer up. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/dead/dead.h"
#include "cli/internal.h"
#include "cli/options.h"
#include "cli/say.h"
#include "store/postgres/open.h"
#include "store/sqlite.h"
#include "store/store.h"

static int complain(const char *what)
{
    stg_options_complain("stagger dead", "%s", what);
    return STG_EXIT_USAGE;
}

enum { EXIT_NONE = 1 };

/* Also after a dead_open() that failed half way: what was not opened is
 * NULL. */
void dead_close(dead_rows *r)
{
    stg_sql_close(r->db);
    stg_found_free(&r->found);
    stg_found_free(&r->whole);
    stg_filter_free(&r->filter);
    json_decref(r->letters);
    json_decref(r->one);
    if (r->remote != NULL)
        stg_remote_close(r->remote);
    free(r->name);
}

/* Status 0 means that nobody answered: only then --store can help. */
static int complain_of_hub(const stg_remote *remote)
{
    int code = stg_remote_complain(remote);

    if (stg_remote_status(remote) == 0)
        stg_say(stderr, "Without a hub, read its store with --store FILE.\n");
    return code;
}

/* The hub's failures travel as SQLITE_IOERR, so that callers need only one kind
 * of code. */
int dead_fail(const dead_rows *r, int rc)
{
    stg_error err;

    if (r->remote != NULL && rc == SQLITE_IOERR)
        return complain_of_hub(r->remote);
    if (r->db == NULL)
        return complain("out of memory");
    stg_sql_words(&err, r->name, "cannot be read", r->db, rc);
    return complain(err.text);
}

/* -- from a store ----------------------------------------------------------- */

enum { PAGE = 100 };

/* SQLite needs to make files beside a database to share it (WAL). Where that is
 * not permitted and no WAL exists, nobody has the store open, and it can be
 * read as immutable. The path is escaped because it becomes a URI. */
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

/* Without memory the answer is the safe one: immutable is wrong while a hub
 * writes. */
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

static int open_url(dead_rows *r)
{
    stg_error err;

    return stg_pg_open_to_look(&r->db, r->o->store, &err) == STG_OK
               ? 0
               : complain(err.text);
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

static int open_store(dead_rows *r)
{
    const char *path = r->o->store;
    stg_error err;
    int rc;

    if (!name_store(r) || !stg_filter_copy(&r->filter, &r->o->filter))
        return complain("out of memory");
    if (stg_store_is_url(path))
        return open_url(r);
    if (!stg_store_path_look("stagger dead", path))
        return STG_EXIT_USAGE;
    rc = open_file(r);
    if (rc != SQLITE_OK)
        return dead_fail(r, rc);
    return stg_schema_check(r->db, path, false, &err) == STG_OK
               ? 0
               : complain(err.text);
}

/* Reads a page, lets the store go, and prints: the write-ahead log of a hub can
 * be cut back only while nobody reads. */
static int read_store(dead_rows *r, uint64_t limit, bool is_whole,
                      dead_each *each, void *ctx)
{
    uint64_t left = limit == 0 ? UINT64_MAX : limit, after = 0;
    int rc = SQLITE_OK;

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
        r->count += found->count;
    } while (after > 0 && left > 0);
    return rc;
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

/* Asks for pages of 1000 letters. Where the values are too long the path is
 * cut, not overrun. */
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

/* All pages are held in memory before the first is printed: the hub gives the
 * newest first, and a list without a limit starts with the oldest. */
static int ask_for_all(dead_rows *r)
{
    char path[PATH_ROOM], cursor[32] = "";

    do {
        json_t *answer = NULL;

        make_path(path, r->o, cursor);
        if (!stg_remote_call(r->remote, "GET", path, NULL, &answer))
            return SQLITE_IOERR;
        (void)json_array_extend(r->letters,
                                json_object_get(answer, "dead_letters"));
        snprintf(cursor, sizeof cursor, "%s", stg_json_text_of(answer, "next"));
        json_decref(answer);
    } while (cursor[0] != '\0');
    return SQLITE_OK;
}

/* Show asks for its one letter later; all others need the whole list. */
static int open_hub(dead_rows *r)
{
    int rc;

    r->remote = stg_remote_open("stagger dead", &r->o->remote);
    if (r->remote == NULL)
        return STG_EXIT_USAGE;
    if (r->o->id != NULL) // one is read
        return 0;
    r->letters = json_array();
    rc = ask_for_all(r);
    return rc == SQLITE_OK ? 0 : dead_fail(r, rc);
}

/* The target is asked for last, as the hub's words for it are told. */
int dead_check_target_of(stg_remote *r, const char *target)
{
    char name[400], path[480];
    json_t *answer = NULL;
    bool has_letters;

    stg_remote_escape(target, name, sizeof name);
    snprintf(path, sizeof path, "/v1/dead-letters?target=%s&limit=1", name);
    if (!stg_remote_call(r, "GET", path, NULL, &answer))
        return 0;
    has_letters = json_array_size(json_object_get(answer, "dead_letters")) > 0;
    json_decref(answer);
    answer = NULL;
    snprintf(path, sizeof path, "/v1/targets/%s", name);
    if (has_letters || stg_remote_call(r, "GET", path, NULL, &answer) ||
        stg_remote_status(r) != 404) {
        json_decref(answer);
        return 0;
    }
    stg_options_complain(
        "stagger dead", "%.128s: no dead letter has this target; %.*s", target,
        (int)strcspn(stg_remote_why(r), "\n"), stg_remote_why(r));
    return EXIT_NONE;
}

/* Bytes that are no UTF-8 come in Base64. */
static const json_t *find_bytes(const json_t *letter, const char *name)
{
    json_t *json = json_object_get(letter, name);
    char other[64], *bytes;
    stg_span text;
    size_t size;

    if (json != NULL)
        return json;
    snprintf(other, sizeof other, "%s_base64", name);
    json = json_object_get(letter, other);
    text = (stg_span){json_string_value(json), json_string_length(json)};
    bytes = malloc(text.size + 1);
    if (bytes == NULL || !stg_base64_read(bytes, text, &size) ||
        json_string_setn_nocheck(json, bytes, size) != 0)
        json = NULL;
    free(bytes);
    return json;
}

/* What is of another type than it is to be is left out. */
static stg_letter_value value_of(const json_t *letter, stg_letter_column c)
{
    const char *name = stg_letter_name(c);
    const json_t *json = stg_letter_is_bytes(c) ? find_bytes(letter, name)
                                                : json_object_get(letter, name);
    const char *text = json_string_value(json);
    json_int_t number = json_integer_value(json);

    return (stg_letter_value){.is_null = text == NULL && !json_is_integer(json),
                              .number = number < 0 ? 0 : (uint64_t)number,
                              .span = {text, json_string_length(json)}};
}

/* The letter points into json, which must outlive it. */
static stg_letter letter_of(const json_t *json, stg_letter_column end)
{
    stg_letter l = {.id = 0};

    for (stg_letter_column c = 0; c < end; c++)
        stg_letter_set(&l, c, value_of(json, c));
    return l;
}

/* l->id is 0 where the hub has none of this number, or none any more. */
static int ask_for_one(dead_rows *r, uint64_t id, stg_letter *l)
{
    char path[64];

    *l = (stg_letter){.id = 0};
    json_decref(r->one);
    r->one = NULL;
    snprintf(path, sizeof path, "/v1/dead-letters/%" PRIu64, id);
    if (stg_remote_call(r->remote, "GET", path, NULL, &r->one))
        *l = letter_of(r->one, STG_LETTER_COLUMNS);
    else if (stg_remote_status(r->remote) != 404)
        return SQLITE_IOERR;
    return SQLITE_OK;
}

/* Whole letters are asked for one by one, with their payloads. One that is gone
 * since the list was read is left out. */
static int read_hub(dead_rows *r, uint64_t limit, bool is_whole,
                    dead_each *each, void *ctx)
{
    size_t count = json_array_size(r->letters);
    int rc = SQLITE_OK;

    for (size_t i = 0; i < count && (limit == 0 || i < limit); i++) {
        stg_letter l = letter_of(
            json_array_get(r->letters, limit == 0 ? count - 1 - i : i),
            STG_LETTER_LIGHT_COLUMNS);

        if (is_whole)
            rc = ask_for_one(r, l.id, &l);
        if (rc != SQLITE_OK)
            return rc;
        if (l.id > 0)
            each(ctx, &l);
        r->count += l.id > 0;
    }
    return rc;
}

/* -- from either ------------------------------------------------------------ */

int dead_open(dead_rows *r, const dead_options *o)
{
    *r = (dead_rows){.o = o};
    return o->store != NULL ? open_store(r) : open_hub(r);
}

int dead_read(dead_rows *r, uint64_t limit, bool is_whole, dead_each *each,
              void *ctx)
{
    return r->db != NULL ? read_store(r, limit, is_whole, each, ctx)
                         : read_hub(r, limit, is_whole, each, ctx);
}

int dead_read_one(dead_rows *r, uint64_t id, stg_letter *l)
{
    int rc;

    if (r->db == NULL)
        return ask_for_one(r, id, l);
    rc = stg_find_one(r->db, id, &r->found);
    *l = rc == SQLITE_OK && r->found.count > 0 ? r->found.letters[0]
                                               : (stg_letter){.id = 0};
    return rc;
}

int dead_check_target(dead_rows *r)
{
    const char *target = r->o->filter.target;
    bool is_known = true;
    int rc;

    if (r->count > 0 || target == NULL)
        return 0;
    if (r->db == NULL)
        return dead_check_target_of(r->remote, target);
    rc = stg_find_is_target(r->db, target, &is_known);
    if (rc != SQLITE_OK)
        return dead_fail(r, rc);
    if (is_known)
        return 0;
    stg_options_complain("stagger dead",
                         "%.128s: no target and no dead letter has this name",
                         target);
    return EXIT_NONE;
}

/* The hub's answer has no word for an empty queue: there the first position is
 * the next. */
bool dead_first_kept(dead_rows *r, uint64_t *position)
{
    json_t *answer = NULL;
    const json_t *store;

    if (r->db != NULL)
        return stg_find_first(r->db, position) == SQLITE_OK;
    if (!stg_remote_call(r->remote, "GET", "/v1/status", NULL, &answer))
        return false;
    store = json_object_get(answer, "store");
    *position = stg_json_count_of(store, "first_position");
    if (*position >= stg_json_count_of(store, "next_position"))
        *position = UINT64_MAX;
    json_decref(answer);
    return true;
}

/* -- printed ----------------------------------------------------------------- */

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

/* RFC 4180: quotes are doubled, and lines end in CR LF. */
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
