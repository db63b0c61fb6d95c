/* Settings of a target, out of a file and of KEY=VALUE, become the JSON of a call.
 *
 * A key with dots is a path: timeouts.connect=2s. A value is a number, true or
 * false where it reads so, JSON where it begins with a bracket, nothing where it
 * is empty, and else a text. The hub checks them: this command knows no setting. */
#include "cli/internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "cli/say.h"
#include "cli/terminal.h"
#include "config/yaml.h"

static const char who[] = "stagger targets";

enum { EXIT_NO = 1, PATH_SIZE = 400 };

static void make_path(char path[PATH_SIZE], const char *name, const char *query)
{
    char escaped[256];

    snprintf(path, PATH_SIZE, "/v1/targets/%s%s",
             stg_remote_escape(name, escaped, sizeof escaped), query);
}

/* -- values ---------------------------------------------------------------- */

/* Whole numbers of JSON only: a zero in front, a sign or a point makes it a
 * text. 18 digits always fit. */
static bool is_number(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits > 0 && digits < 19 && text[digits] == '\0' &&
           (*text != '0' || digits == 1);
}

/* A text without quotes, as YAML reads it. */
static json_t *read_plain(const char *text)
{
    json_int_t number = 0;

    if (*text == '\0' || strcmp(text, "null") == 0 || strcmp(text, "~") == 0)
        return json_null();
    if (strcmp(text, "true") == 0)
        return json_true();
    if (strcmp(text, "false") == 0)
        return json_false();
    if (!is_number(text))
        return json_string(text);
    for (; *text != '\0'; text++)
        number = 10 * number + (*text - '0');
    return json_integer(number);
}

/* -- a file ---------------------------------------------------------------- */

/* Quotes in the file keep a text a text, as in a settings file. */
static json_t *from_node(const stg_yaml_node *n)
{
    json_t *list;

    if (n->kind == STG_NODE_TEXT)
        return n->is_plain ? read_plain(n->text) : json_string(n->text);
    if (n->kind == STG_NODE_LIST) {
        list = json_array();
        for (size_t i = 0; i < n->count; i++)
            json_array_append_new(list, from_node(n->at[i]));
        return list;
    }
    list = json_object();
    for (size_t i = 0; i < n->count; i += 2)
        json_object_set_new(list, n->at[i]->text, from_node(n->at[i + 1]));
    return list;
}

/* NULL: complained. */
static json_t *read_file(const char *name)
{
    stg_diagnostics d = {.all = NULL};
    bool is_input = strcmp(name, "-") == 0;
    stg_yaml *yaml;
    const stg_yaml_node *top =
        stg_yaml_load(&yaml, is_input ? "/dev/stdin" : name, &d);
    json_t *json = NULL;

    if (top != NULL && top->kind == STG_NODE_MAP)
        json = from_node(top);
    else if (top != NULL)
        stg_complain(&d, top->place,
                     "expected a map of a target's settings, with `url`");
    stg_diagnostics_print(&d, is_input ? "standard input" : name, stderr);
    stg_diagnostics_free(&d);
    stg_yaml_free(yaml);
    return json;
}

/* -- KEY=VALUE ------------------------------------------------------------- */

/* NULL: it is no JSON. */
static json_t *read_value(const char *text)
{
    return *text == '[' || *text == '{' ? json_loads(text, 0, NULL)
                                        : read_plain(text);
}

/* value is given. */
static void put(json_t *to, const char *path, size_t size, json_t *value)
{
    const char *dot = memchr(path, '.', size);
    size_t step = dot == NULL ? size : (size_t)(dot - path);
    char key[128];
    json_t *there;

    snprintf(key, sizeof key, "%.*s", (int)step, path);
    if (dot == NULL) {
        json_object_set_new(to, key, value);
        return;
    }
    there = json_object_get(to, key);
    if (!json_is_object(there)) {
        there = json_object();
        json_object_set_new(to, key, there);
    }
    put(there, dot + 1, size - step - 1, value);
}

static bool put_word(json_t *to, const char *word)
{
    const char *equals = strchr(word, '=');
    json_t *value = equals == NULL ? NULL : read_value(equals + 1);

    if (equals == NULL || equals == word) {
        stg_options_refuse(who, "`%s`: expected KEY=VALUE, such as rate=50/s",
                           word);
        return false;
    }
    if (value == NULL) {
        stg_options_refuse(who, "`%.*s`: its value is no JSON",
                           (int)(equals - word), word);
        return false;
    }
    put(to, word, (size_t)(equals - word), value);
    return true;
}

/* NULL: complained. */
static json_t *read_settings(const target_change *c, bool is_new,
                             const stg_arguments *left)
{
    json_t *all = c->file != NULL ? read_file(c->file) : json_object();

    if (all == NULL)
        return NULL;
    if (c->url != NULL)
        json_object_set_new(all, "url", json_string(c->url));
    for (int i = 1; i < left->count; i++)
        if (!put_word(all, left->at[i])) {
            json_decref(all);
            return NULL;
        }
    if (is_new)
        json_object_set_new(all, "name", json_string(left->at[0]));
    if (json_object_size(all) > 0)
        return all;
    stg_options_refuse(who, "set: expected KEY=VALUE, or --file");
    json_decref(all);
    return NULL;
}

/* -- answers --------------------------------------------------------------- */

static void print_warnings(const json_t *answer)
{
    const json_t *all = json_object_get(answer, "warnings");

    for (size_t i = 0; i < json_array_size(all); i++)
        stg_options_complain(
            who, "warning: %s",
            stg_json_text_of(json_array_get(all, i), "detail"));
}

/* "shop: would change /rate, /url" */
static void print_dry(const json_t *answer, const char *name)
{
    const json_t *changed = json_object_get(answer, "changed");
    const char *what = stg_json_text_of(answer, "change");

    if (strcmp(what, "change") != 0) {
        stg_say(stdout, "%s: %s\n", name,
                strcmp(what, "add") == 0 ? "would be added"
                                         : "would stay as it is");
        return;
    }
    stg_say(stdout, "%s: would change", name);
    for (size_t i = 0; i < json_array_size(changed); i++)
        stg_say(stdout, "%s %s", i > 0 ? "," : "",
                json_string_value(json_array_get(changed, i)));
    stg_say(stdout, "\n");
}

int target_change_show(const target_change *c, const char *name)
{
    char path[PATH_SIZE];
    json_t *answer = NULL;
    const json_t *settings;

    make_path(path, name, "");
    if (!stg_remote_call(c->remote, "GET", path, NULL, &answer))
        return stg_remote_complain(c->remote);
    settings = json_object_get(answer, "settings");
    if (c->is_json)
        stg_say_json(stdout, answer, false);
    else if (settings != NULL)
        stg_say_json(stdout, settings, false);
    else
        stg_options_complain(who,
                             "%s: no call has added it: the hub's file or its "
                             "--to has its settings; --json shows its state",
                             name);
    json_decref(answer);
    return stg_options_finish(who,
                              c->is_json || settings != NULL ? 0 : EXIT_NO);
}

/* A file is all of the settings (PUT), words are a part of them (PATCH), and
 * the dry run is the same call with a query. */
int target_change_write(const target_change *c, bool is_new,
                        const stg_arguments *left)
{
    const char *method = is_new ? "POST" : c->file != NULL ? "PUT" : "PATCH";
    const char *query = c->is_dry ? "?dry-run=true" : "";
    json_t *settings = read_settings(c, is_new, left), *answer = NULL;
    char path[PATH_SIZE];
    bool is_done;

    if (settings == NULL)
        return STG_EXIT_USAGE;
    make_path(path, left->at[0], query);
    if (is_new)
        snprintf(path, sizeof path, "/v1/targets%s", query);
    is_done = stg_remote_call(c->remote, method, path, settings, &answer);
    json_decref(settings);
    if (!is_done)
        return stg_remote_complain(c->remote);
    if (c->is_dry)
        print_dry(answer, left->at[0]);
    else
        stg_say(stdout, "%s: %s\n", left->at[0], is_new ? "added" : "set");
    print_warnings(answer);
    json_decref(answer);
    return stg_options_finish(who, 0);
}

/* -- remove ---------------------------------------------------------------- */

static uint64_t count_waiting(const json_t *answer)
{
    return stg_json_count_of(answer, "waiting") +
           stg_json_count_of(answer, "parked") +
           stg_json_count_of(answer, "in_flight");
}

const char *target_change_loss(const json_t *answer,
                               char text[TARGET_CHANGE_LOSS_MAX])
{
    uint64_t waiting = count_waiting(answer);
    uint64_t dead = stg_json_count_of(answer, "dead_letters");
    int size = snprintf(text, TARGET_CHANGE_LOSS_MAX,
                        "%" PRIu64 " message%s for it %s cancelled", waiting,
                        waiting == 1 ? " that waits" : "s that wait",
                        waiting == 1 ? "is" : "are");

    if (dead > 0)
        snprintf(text + size, TARGET_CHANGE_LOSS_MAX - (size_t)size,
                 ", and its %" PRIu64 " dead letter%s cannot be sent again",
                 dead, stg_plural(dead));
    return text;
}

/* What would be lost; false: complained. */
static bool look(const target_change *c, const char *name,
                 char loss[TARGET_CHANGE_LOSS_MAX])
{
    char path[PATH_SIZE];
    json_t *answer = NULL;

    make_path(path, name, "?dry-run=true");
    if (!stg_remote_call(c->remote, "DELETE", path, NULL, &answer)) {
        stg_remote_complain(c->remote);
        return false;
    }
    target_change_loss(answer, loss);
    json_decref(answer);
    return true;
}

static bool ask(const char *name, const char *loss)
{
    char question[300];

    snprintf(question, sizeof question, "%.64s: %s, for good. Remove it?", name,
             loss);
    return stg_confirm(question);
}

/* The number that is asked about is of the look before: messages that came
 * since are cancelled, too, and counted in the answer. */
static int remove_one(const target_change *c, const char *name)
{
    char path[PATH_SIZE], loss[TARGET_CHANGE_LOSS_MAX] = "";
    json_t *answer = NULL;
    uint64_t waiting;

    if ((c->is_dry || !c->is_sure) && !look(c, name, loss))
        return EXIT_NO;
    if (c->is_dry) {
        stg_say(stdout, "%s: would be removed: %s\n", name, loss);
        return 0;
    }
    if (!c->is_sure && !ask(name, loss))
        return EXIT_NO;
    make_path(path, name, "?waiting=cancel");
    if (!stg_remote_call(c->remote, "DELETE", path, NULL, &answer))
        return stg_remote_complain(c->remote);
    waiting = count_waiting(answer);
    stg_say(stdout, "%s: removed, %" PRIu64 " message%s cancelled\n", name,
            waiting, stg_plural(waiting));
    json_decref(answer);
    return 0;
}

/* All of them are tried; the code is that of the last that failed. */
int target_change_remove(const target_change *c, const stg_arguments *left)
{
    int code = 0;

    for (int i = 0; i < left->count; i++) {
        int one = remove_one(c, left->at[i]);

        code = one != 0 ? one : code;
    }
    return stg_options_finish(who, code);
}
