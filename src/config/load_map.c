/* Keys of maps, and what is said of those that are unknown. */
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

/* Settings of that name elsewhere: `quota` for `store.quota`. */
static const stg_setting *find_elsewhere(const char *key)
{
    const stg_setting *s;

    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++) {
        const char *dot = strrchr(s->path, '.');

        if (strcmp(dot != NULL ? dot + 1 : s->path, key) == 0 &&
            s->in != STG_IN_SINK)
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
                     "`%s%s`: no such setting; wanted one of %s", prefix, shown,
                     all);
}

/* -- maps ----------------------------------------------------------------- */

/* What others lean on is read first, wherever it stands. */
static int turn_of(const stg_setting *s)
{
    return s->kind == STG_KIND_TARGETS    ? 2
           : s->kind == STG_KIND_DEFAULTS ? 1
                                          : 0;
}

static void load_key(stg_loading *l, const stg_setting *s,
                     const stg_yaml_node *key, const stg_yaml_node *value,
                     void *base, stg_file_place *places)
{
    if (s->is_own && places == l->defaults)
        stg_complain(l->c, key->place,
                     "`defaults.%s`: each target has its own; wanted it in "
                     "`targets`",
                     s->path);
    else
        stg_load_value(l, s, value, base, places);
}

void stg_load_map(stg_loading *l, stg_setting_in in, const char *prefix,
                  const stg_yaml_node *map, void *base, stg_file_place *places)
{
    int turns = in == STG_IN_HUB && *prefix == '\0' ? 3 : 1;

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
            else if (s != NULL && (turns == 1 || turn_of(s) == turn))
                load_key(l, s, key, map->at[i + 1], base, places);
        }
}
