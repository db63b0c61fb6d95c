/* stagger dead list --hub: the letters that a hub tells of, by HTTP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/dead/dead.h"

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
