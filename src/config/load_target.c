/* A target that is no part of a file: a call has brought it, as JSON, which is a
 * part of YAML. So it is read by the same reader, loaded by the same table of
 * settings and validated by the same checks as one of `targets`. What differs is
 * how a mistake names its place: by a pointer, for whoever sent the text sees no
 * lines of it. */
#include "config/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/loading.h"
#include "config/targets.h"

static const stg_file_place nowhere = {0, 0};

/* -- pointers -------------------------------------------------------------- */

enum { POINTER_MAX = 512 };

/* What a pointer is made of, key by key; it is cut where there is no room. */
typedef struct pointer {
    char text[POINTER_MAX];
    size_t size;
} pointer;

static void put(pointer *p, char c)
{
    if (p->size + 1 < POINTER_MAX)
        p->text[p->size++] = c;
    p->text[p->size] = '\0';
}

/* "/" and as much of the key as may be shown, which has nothing to escape. */
static void push(pointer *p, const char *key)
{
    char shown[STG_KEY_SHOWN_MAX];

    put(p, '/');
    for (const char *at = stg_yaml_key_shown(key, shown); *at != '\0'; at++)
        put(p, *at);
}

static bool is_at(const stg_yaml_node *n, stg_file_place place)
{
    return n->place.line == place.line && n->place.column == place.column;
}

static bool find_in(const stg_yaml_node *n, stg_file_place place, pointer *p);

/* True: it is this part, or in it, and p has it. */
static bool find_part(const stg_yaml_node *map, size_t i, stg_file_place place,
                      pointer *p)
{
    size_t before = p->size;
    char number[24];
    bool is_map = map->kind == STG_NODE_MAP;
    const stg_yaml_node *part = map->at[is_map ? i + 1 : i];

    snprintf(number, sizeof number, "%zu", i);
    push(p, is_map ? map->at[i]->text : number);
    if ((is_map && is_at(map->at[i], place)) || find_in(part, place, p))
        return true;
    p->size = before;
    p->text[before] = '\0';
    return false;
}

/* Parts first: a list may begin where its first item does. */
static bool find_in(const stg_yaml_node *n, stg_file_place place, pointer *p)
{
    size_t step = n->kind == STG_NODE_MAP ? 2 : 1;

    for (size_t i = 0; n->kind != STG_NODE_TEXT && i < n->count; i += step)
        if (find_part(n, i, place, p))
            return true;
    return is_at(n, place);
}

/* "" is the whole. */
static void point(stg_diagnostics *c, const stg_yaml_node *top)
{
    for (size_t i = 0; i < c->count; i++) {
        pointer p = {.size = 0};

        if (top != NULL)
            (void)find_in(top, c->all[i].place, &p);
        c->all[i].pointer = strdup(p.text);
        if (c->all[i].pointer == NULL)
            c->is_memory_short = true;
    }
}

/* -- the target ------------------------------------------------------------ */

static void end(stg_loading *l)
{
    if (l->targets != NULL)
        free(l->targets[0]);
    free(l->targets);
    free(l->defaults);
    stg_text_table_free(&l->policies);
    stg_text_table_free(&l->files);
}

/* A policy may be one of base's by its name. */
static bool begin(stg_loading *l, const stg_settings *base)
{
    l->s = stg_settings_beside(base);
    if (l->s == NULL)
        return false;
    l->path = base->file != NULL ? base->file : "";
    l->target_total = base->target_count + 1;
    l->defaults = stg_load_add_places(l);
    l->targets = calloc(1, sizeof(stg_file_place *));
    for (size_t i = 0; i < base->policy_count; i++)
        if (!stg_text_table_add(&l->policies, base->policies[i].name, i, NULL))
            return false;
    return l->defaults != NULL && l->targets != NULL;
}

/* What it has in common is its own, until all of it is known. */
static void read_map(stg_loading *l, const stg_settings *base,
                     const stg_yaml_node *top)
{
    stg_target_settings *t = stg_settings_add_target(l->s);
    size_t url = stg_load_number(STG_IN_TARGET, "url");

    l->targets[0] = t != NULL ? stg_load_add_places(l) : NULL;
    if (l->targets[0] == NULL) {
        l->s->target_count = 0;
        l->c->is_memory_short = true;
        return;
    }
    t->place = top->place;
    l->own = *base->inside->call;
    t->common = &l->own;
    stg_load_map(l, STG_IN_TARGET, "", top, t, l->targets[0]);
    if (l->targets[0][url].line == 0)
        stg_complain(l->c, t->place,
                     "a target without `url`; expected `url: "
                     "https://HOST/PATH`");
    stg_validate_target(l, 0);
    stg_validate_target_files(l, base);
}

static void read_target(stg_loading *l, const stg_settings *base,
                        const stg_yaml_node *top)
{
    if (!begin(l, base))
        stg_complain(l->c, nowhere, "out of memory");
    else if (top->kind != STG_NODE_MAP)
        stg_complain(l->c, top->place,
                     "%s; expected a map of a target's settings, with `url`",
                     stg_load_kind(top));
    else
        read_map(l, base, top);
    end(l);
}

/* Most say no more than their name and their URL, and share what base has made for
 * those. Of the settings beside base the target alone stays, since there may be
 * thousands. */
static void take(stg_loading *l, const stg_settings *base,
                 stg_target_settings **taken)
{
    stg_target_common *call = base->inside->call, *own = &l->own;
    stg_target_settings *t = l->s->targets;

    if (l->s->target_count == 0) // another shard's
        return;
    t->common = stg_settings_same_common(own, call) &&
                        own->files_stamp == call->files_stamp
                    ? call
                    : stg_settings_keep_common(l->s, own);
    if (t->common != NULL)
        *taken = stg_settings_take_target(l->s);
    if (*taken != NULL)
        l->s = NULL;
    else
        l->c->is_memory_short = true;
}

/* Pointers are found before the tree is freed, as places are compared with
 * those of its nodes. */
stg_status stg_settings_load_target(const char *text, size_t size,
                                    const stg_settings *base,
                                    stg_target_settings **t, stg_diagnostics *c)
{
    stg_loading l = {.c = c, .is_call = true};
    stg_yaml *yaml;
    const stg_yaml_node *top = stg_yaml_parse(&yaml, text, size, c);
    stg_error err;

    *t = NULL;
    if (top != NULL)
        read_target(&l, base, top);
    if (l.s != NULL && c->mistakes == 0 &&
        stg_settings_complete(l.s, &err) != STG_OK)
        stg_complain(c, nowhere, "%s", err.text);
    stg_diagnostics_sort(c);
    point(c, top);
    stg_yaml_free(yaml);
    if (l.s != NULL && c->mistakes == 0 && !c->is_memory_short)
        take(&l, base, t);
    stg_settings_free(l.s);
    return c->mistakes == 0 && !c->is_memory_short ? STG_OK : STG_INVALID;
}
