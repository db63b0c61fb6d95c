/* stagger dead list --hub: the rows that a hub tells of, by HTTP, in a database
 * of this process, which is asked as the hub's own store is. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/dead/dead.h"
#include "store/sqlite.h"

enum { PATH_ROOM = 1024 };

static const char tables[] =
    "CREATE TABLE failed_broadcast_logs (id INTEGER PRIMARY KEY, message_id,"
    " target, target_url, state, why, category, cause, http_status, detail,"
    " attempts, first_attempt_at, last_attempt_at, created_at, changed_at,"
    " partition, position, last_position, count, replay, content_type, headers,"
    " key, source_key, answer, payload);"
    "CREATE TABLE partitions (number INTEGER PRIMARY KEY, topic, partition,"
    " UNIQUE (topic, partition));"
    "CREATE TABLE lanes (name)";

/* ?1: a list of dead letters in JSON. */
static const char add_partitions[] =
    "INSERT OR IGNORE INTO partitions (topic, partition)"
    " SELECT value ->> 'topic', value ->> 'partition' FROM json_each(?1)"
    " WHERE value ->> 'topic' IS NOT NULL";

static const char add_letters[] =
    "INSERT OR IGNORE INTO failed_broadcast_logs SELECT value ->> 'id',"
    " value ->> 'message_id', value ->> 'target', value ->> 'target_url',"
    " value ->> 'state', value ->> 'why', value ->> 'category',"
    " value ->> 'cause', value ->> 'http_status', value ->> 'detail',"
    " value ->> 'attempts', value ->> 'first_attempt_at',"
    " value ->> 'last_attempt_at', value ->> 'created_at',"
    " value ->> 'changed_at', coalesce((SELECT number FROM partitions p"
    " WHERE p.topic = value ->> 'topic'"
    " AND p.partition = value ->> 'partition'), 0),"
    " value ->> 'position', value ->> 'last_position', value ->> 'count',"
    " value ->> 'replay', NULL, NULL, NULL, NULL, NULL, NULL FROM json_each(?1)";

static int add_page(dead_rows *r, const json_t *answer)
{
    char *text = json_dumps(json_object_get(answer, "dead_letters"), 0);
    stg_stmt *partitions = NULL, *letters = NULL;
    int rc = text == NULL ? SQLITE_NOMEM : SQLITE_OK;

    if (rc == SQLITE_OK)
        rc = stg_sql_prepare_once(r->db, &partitions, add_partitions);
    if (rc == SQLITE_OK)
        rc = stg_sql_run(partitions, "s", text);
    if (rc == SQLITE_OK)
        rc = stg_sql_prepare_once(r->db, &letters, add_letters);
    if (rc == SQLITE_OK)
        rc = stg_sql_run(letters, "s", text);
    stg_sql_finalize(partitions);
    stg_sql_finalize(letters);
    free(text);
    return rc;
}

static void add_option(char *path, const char *name, const char *value)
{
    char escaped[400];
    size_t size = strlen(path);

    if (value != NULL && *value != '\0')
        snprintf(path + size, PATH_ROOM - size, "&%s=%s", name,
                 stg_remote_escape(value, escaped, sizeof escaped));
}

static void make_path(char *path, const dead_options *o, const char *cursor)
{
    char since[DEAD_TIME_MAX] = "", until[DEAD_TIME_MAX] = "";

    if (o->since[0] != '\0')
        dead_whole_time(o->since, since);
    if (o->until[0] != '\0')
        dead_whole_time(o->until, until);
    snprintf(path, PATH_ROOM, "/v1/dead-letters?limit=1000");
    add_option(path, "target", o->target);
    add_option(path, "cause", o->cause);
    add_option(path, "state", o->state);
    add_option(path, "since", since);
    add_option(path, "until", until);
    add_option(path, "cursor", cursor);
}

/* False: complained. */
static bool fetch(dead_rows *r, stg_remote *remote)
{
    char path[PATH_ROOM], cursor[32] = "";
    int rc = SQLITE_OK;

    do {
        json_t *answer = NULL;

        make_path(path, r->o, cursor);
        if (!stg_remote_call(remote, "GET", path, NULL, &answer)) {
            r->code = stg_remote_complain(remote);
            return false;
        }
        rc = add_page(r, answer);
        snprintf(cursor, sizeof cursor, "%s", stg_json_text_of(answer, "next"));
        json_decref(answer);
    } while (rc == SQLITE_OK && cursor[0] != '\0');
    if (rc != SQLITE_OK)
        r->code = dead_fail(r, rc);
    return rc == SQLITE_OK;
}

/* A name that nobody has is told from one that has no dead letters. */
static bool note_target(dead_rows *r, stg_remote *remote)
{
    char name[400], path[480];
    json_t *answer = NULL;
    stg_stmt *st = NULL;
    int rc;

    if (r->o->target == NULL)
        return true;
    snprintf(path, sizeof path, "/v1/targets/%s",
             stg_remote_escape(r->o->target, name, sizeof name));
    if (!stg_remote_call(remote, "GET", path, NULL, &answer))
        return true; // the list says it, or has rows
    json_decref(answer);
    rc = stg_sql_prepare_once(r->db, &st, "INSERT INTO lanes VALUES (?1)");
    if (rc == SQLITE_OK)
        rc = stg_sql_run(st, "s", r->o->target);
    stg_sql_finalize(st);
    if (rc != SQLITE_OK)
        r->code = dead_fail(r, rc);
    return rc == SQLITE_OK;
}

bool dead_open_remote(dead_rows *r)
{
    stg_remote *remote = stg_remote_open("stagger dead", &r->o->remote);
    bool is_well = false;
    int rc;

    if (remote == NULL)
        return false;
    r->name = strdup(stg_remote_hub(remote));
    rc = stg_sqlite_open(
        &r->db, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    if (rc == SQLITE_OK)
        rc = stg_sql_exec(r->db, tables);
    if (rc != SQLITE_OK || r->name == NULL)
        r->code = dead_fail(r, SQLITE_NOMEM);
    else
        is_well = fetch(r, remote) && note_target(r, remote);
    stg_remote_close(remote);
    return is_well;
}
