/* Keys of maps and their values, whatever their kinds: config/kinds. A key that
 * is unknown gets the name that was meant, or where there is a setting of that
 * name; a value that is wrong, what was expected, and what was meant. */
#include <stdio.h>
#include <string.h>

#include "base/suggest.h"
#include "config/loading.h"

enum { PATH_MAX_SIZE = 128, KEYS_MAX = 64 };

/* -- keys ------------------------------------------------------------------ */

/* What begins with the prefix, and has no further dot: "quota" of
 * "store.quota". NULL: no. */
static const char *last_of(const stg_setting *s, const char *prefix)
{
    size_t size = strlen(prefix);

    if (strncmp(s->path, prefix, size) != 0 ||
        strchr(s->path + size, '.') != NULL)
        return NULL;
    return s->path + size;
}

static size_t list_keys(stg_setting_in in, const char *prefix, bool is_default,
                        const char *keys[KEYS_MAX + 1])
{
    const stg_setting *s;
    size_t count = 0;

    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++)
        if (s->in == in && last_of(s, prefix) != NULL && count < KEYS_MAX &&
            !(is_default && s->is_own))
            keys[count++] = last_of(s, prefix);
    keys[count] = NULL;
    return count;
}

/* A setting whose last part is the key: `quota` for `store.quota`. The
 * settings of receivers and of inbound webhooks are left out. */
static const stg_setting *find_elsewhere(const char *key)
{
    const stg_setting *s;

    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++) {
        const char *dot = strrchr(s->path, '.');

        if (strcmp(dot != NULL ? dot + 1 : s->path, key) == 0 &&
            s->in != STG_IN_RECEIVER && s->in != STG_IN_INBOUND)
            return s;
    }
    return NULL;
}

static void join(const char *const *keys, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (; *keys != NULL && used < size; keys++)
        used += (size_t)snprintf(text + used, size - used, "%s%s",
                                 used > 0 ? ", " : "", *keys);
}

/* The most likely slip first: a name that is nearly right here, then one that is
 * right in another place, then the list of all names. */
static void refuse_key(stg_loading *l, stg_setting_in in, const char *prefix,
                       const stg_yaml_node *key, bool is_default)
{
    const char *keys[KEYS_MAX + 1], *near;
    const stg_setting *other = find_elsewhere(key->text);
    char all[400], shown[STG_KEY_SHOWN_MAX];

    stg_yaml_key_shown(key->text, shown);
    list_keys(in, prefix, is_default, keys);
    near = stg_suggest(key->text, keys);
    join(keys, all, sizeof all);
    if (near != NULL)
        stg_complain(l->c, key->place,
                     "`%s%s`: no such setting; did you mean `%s`?", prefix,
                     shown, near);
    else if (other != NULL && other->in == in && strcmp(prefix, "") == 0)
        stg_complain(l->c, key->place,
                     "`%s`: no such setting here; did you mean `%s`?", shown,
                     other->path);
    else if (strchr(key->text, '.') != NULL &&
             stg_setting_find(in, key->text, strlen(key->text)) != NULL)
        stg_complain(l->c, key->place,
                     "`%s`: no such setting; did you mean `%.*s:`, and "
                     "`%s:` in it?",
                     shown, (int)strcspn(key->text, "."), key->text,
                     key->text + strcspn(key->text, ".") + 1);
    else if (other != NULL && other->in == STG_IN_HUB && in == STG_IN_TARGET)
        stg_complain(l->c, key->place,
                     "`%s`: no such setting of a target; did you mean `%s` "
                     "of the hub, beside `targets`?",
                     shown, other->path);
    else if (other != NULL && other->in == STG_IN_TARGET)
        stg_complain(l->c, key->place,
                     "`%s%s`: no such setting here; did you mean `%s` of a "
                     "target, or of `defaults`?",
                     prefix, shown, other->path);
    else
        stg_complain(l->c, key->place,
                     "`%s%s`: no such setting; expected one of %s", prefix,
                     shown, all);
}

/* -- values ---------------------------------------------------------------- */

/* For "found", in words that need no YAML. */
const char *stg_load_kind(const stg_yaml_node *n)
{
    return n->kind == STG_NODE_MAP ? "a map"
           : n->kind == STG_NODE_LIST
               ? n->count > 0 ? "a list" : "an empty list"
               : "a text";
}

void stg_load_refuse_kind(stg_loading *l, const stg_setting *s,
                          const stg_yaml_node *n)
{
    char expected[STG_EXPECTED_MAX];

    stg_setting_expected(s, expected);
    if (stg_node_is_null(n))
        stg_complain(l->c, n->place, "`%s`: nothing; expected %s%s", s->path,
                     expected, s->is_needed ? "" : ", or no such key at all");
    else
        stg_complain(l->c, n->place, "`%s`: %s; expected %s", s->path,
                     stg_load_kind(n), expected);
}

static void refuse_value(stg_loading *l, const stg_setting *s,
                         const stg_yaml_node *n, const stg_value_flaw *flaw)
{
    // Made of the value, which is hidden if it came from the environment.
    bool has_suggestion = flaw->suggestion[0] != '\0' && n->written == NULL;

    stg_complain(
        l->c, n->place, "`%s`: %s; expected %s%s%s%s", s->path, flaw->what,
        flaw->expected, has_suggestion ? "; did you mean " : "",
        has_suggestion ? flaw->suggestion : "", has_suggestion ? "?" : "");
}

/* Numbers, true and false take no quotes: in YAML a text in quotes is a text.
 * `"${NAME}"` needs them inside of { } and [ ]. */
static bool read_scalar(const stg_setting *s, const stg_yaml_node *n,
                        const char *text, void *base, stg_value_flaw *flaw)
{
    if (n->is_plain || n->written != NULL || !s->kind->is_bare)
        return stg_value_read(s, text, base, flaw);
    *flaw = (stg_value_flaw){.what = "a text in quotes"};
    snprintf(flaw->suggestion, sizeof flaw->suggestion, "%.60s", n->text);
    stg_setting_expected(s, flaw->expected);
    return false;
}

/* The text is kept before it is read, since the setting points to it. A path is
 * kept relative to the settings file, and that path is what is checked. */
static void load_scalar(stg_loading *l, const stg_setting *s,
                        const stg_yaml_node *n, void *base)
{
    stg_value_flaw flaw;
    const char *text;

    if (n->kind != STG_NODE_TEXT || stg_node_is_null(n)) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    text = (s->kind->keep != NULL ? s->kind->keep
                                  : stg_load_keep_text)(l, n->text);
    if (text == NULL)
        return;
    if (!read_scalar(s, n, text, base, &flaw)) {
        refuse_value(l, s, n, &flaw);
        return;
    }
    if (s->kind->check != NULL)
        s->kind->check(l, s, n, base);
    if (s->kind == &stg_kind_file)
        stg_load_note_file(l, s, n->place, text);
    if (s->is_secret)
        stg_load_check_secret(l, n->place, s->path, text);
}

/* Reads the value of any setting into its place in base. */
static void load_value(stg_loading *l, const stg_setting *s,
                       const stg_yaml_node *n, void *base)
{
    base = stg_setting_base(s, base);
    l->places[stg_setting_number(s)] = n->place;
    if (s->kind->load != NULL)
        s->kind->load(l, s, n, base);
    else
        load_scalar(l, s, n, base);
}

/* -- maps ----------------------------------------------------------------- */

/* l->places tells what is being read: the defaults have a table of their
 * own. */
static void load_key(stg_loading *l, const stg_setting *s,
                     const stg_yaml_node *key, const stg_yaml_node *value,
                     void *base)
{
    if (s->is_own && l->places == l->defaults)
        stg_complain(l->c, key->place,
                     "`defaults.%s`: each target has its own; expected it in "
                     "`targets`",
                     s->path);
    else
        load_value(l, s, value, base);
}

/* The top of the file is read in three turns, by the `turn` of each kind: first
 * all else, then `defaults`, then `targets`, whatever their order in the file.
 * Unknown keys are refused in the first turn only. */
void stg_load_map(stg_loading *l, stg_setting_in in, const char *prefix,
                  const stg_yaml_node *map, void *base, stg_file_place *places)
{
    int turns = in == STG_IN_HUB && *prefix == '\0' ? 3 : 1;
    stg_file_place *outer = l->places;

    l->places = places;
    for (int turn = 0; turn < turns; turn++)
        for (size_t i = 0; i < map->count; i += 2) {
            const stg_yaml_node *key = map->at[i];
            char path[PATH_MAX_SIZE];
            const stg_setting *s;
            int size = snprintf(path, sizeof path, "%s%s", prefix, key->text);

            // A dot in a key is no way into a section.
            s = size < PATH_MAX_SIZE && strchr(key->text, '.') == NULL
                    ? stg_setting_find(in, path, (size_t)size)
                    : NULL;
            if (s == NULL && turn == 0)
                refuse_key(l, in, prefix, key, places == l->defaults);
            else if (s != NULL && (turns == 1 || s->kind->turn == turn))
                load_key(l, s, key, map->at[i + 1], base);
        }
    l->places = outer;
}
