/* Events of libyaml into nodes, each with its place. A key that comes twice, a
 * tag or a merge key is a mistake here, so that the loader never sees one.
 * Aliases share their node and weigh as much as what they stand for: a small
 * file must not become a large tree ("billion laughs"). */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "config/yaml_internal.h"

enum { DEPTH_MAX = 32, NODES_MAX = 1000000 };

static const stg_file_place nowhere = {0, 0};

static const char *keep_text(stg_yaml *y, const void *text, size_t size)
{
    char *kept = stg_yaml_keep(y, size + 1);

    if (kept != NULL && size > 0)
        memcpy(kept, text, size);
    return kept;
}

/* -- nodes ----------------------------------------------------------------- */

/* The place is that of the event, so it must be made before the next one. */
static stg_yaml_node *add_node(stg_yaml *y, stg_node_kind kind)
{
    stg_yaml_node *n = stg_yaml_keep(y, sizeof *n);

    if (n == NULL)
        return NULL;
    n->kind = kind;
    n->place = stg_yaml_place(&y->event.start_mark);
    n->weight = 1;
    return n;
}

/* Aliases may not make a large thing of a small file. */
static bool weigh(stg_yaml *y, stg_file_place place, size_t weight)
{
    y->weight += weight;
    if (y->weight <= NODES_MAX)
        return true;
    stg_complain(y->diagnostics, place,
                 "the file is too large with its aliases; expected a million "
                 "nodes at most");
    return false;
}

static void refuse_tag(stg_yaml *y, const yaml_char_t *tag)
{
    if (tag != NULL)
        stg_complain(y->diagnostics, stg_yaml_place(&y->event.start_mark),
                     "the tag `%.40s`; expected a value without a tag",
                     (const char *)tag);
}

/* A later anchor of the same name hides the earlier one, as YAML has it: the
 * newest is first in the list. */
static stg_yaml_anchor *add_anchor(stg_yaml *y, const yaml_char_t *name)
{
    stg_yaml_anchor *a = name != NULL ? stg_yaml_keep(y, sizeof *a) : NULL;

    if (a == NULL)
        return NULL;
    a->name = keep_text(y, name, strlen((const char *)name));
    if (a->name == NULL)
        return NULL;
    a->next = y->anchors;
    y->anchors = a;
    return a;
}

/* The node is shared, not copied; its weight is counted again, for the loader
 * will go through it again. */
static stg_yaml_node *read_alias(stg_yaml *y)
{
    const char *name = (const char *)y->event.data.alias.anchor;
    stg_file_place place = stg_yaml_place(&y->event.start_mark);
    const stg_yaml_anchor *a = y->anchors;

    while (a != NULL && strcmp(a->name, name) != 0)
        a = a->next;
    if (a == NULL || a->node == NULL) {
        stg_complain(y->diagnostics, place,
                     "the alias `*%.40s`; expected an anchor `&%.40s` that is "
                     "complete before it",
                     name, name);
        return NULL;
    }
    return weigh(y, place, a->node->weight) ? a->node : NULL;
}

static size_t count_characters(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

/* No escapes and no folded lines: it is as long as it looks. */
static void note_text_place(const stg_yaml *y, stg_yaml_node *n)
{
    const yaml_mark_t *from = &y->event.start_mark, *to = &y->event.end_mark;
    uint32_t quote = n->is_plain ? 0 : 1;

    n->text_column = n->place.column + quote;
    n->is_verbatim =
        from->line == to->line &&
        to->column - from->column == count_characters(n->text) + 2 * quote;
}

/* A zero in a text (\0 in quotes) would end it for every user of it. */
static stg_yaml_node *read_scalar(stg_yaml *y)
{
    yaml_scalar_style_t style = y->event.data.scalar.style;
    stg_yaml_node *n = add_node(y, STG_NODE_TEXT);
    size_t size = y->event.data.scalar.length;

    if (n == NULL)
        return NULL;
    refuse_tag(y, y->event.data.scalar.tag);
    n->text = keep_text(y, y->event.data.scalar.value, size);
    if (n->text == NULL)
        return NULL;
    if (strlen(n->text) != size)
        stg_complain(y->diagnostics, n->place,
                     "a zero in a text; expected text without such");
    n->is_plain = style == YAML_PLAIN_SCALAR_STYLE;
    note_text_place(y, n);
    return n;
}

/* -- collections ----------------------------------------------------------- */

typedef struct parts {
    stg_yaml_node **at;
    size_t count, room;
} parts;

/* Parts are gathered in an array that grows, and copied into kept memory once
 * their number is known. */
static bool add_part(stg_yaml *y, parts *p, stg_yaml_node *n)
{
    if (p->count == p->room) {
        size_t room = p->room > 0 ? 2 * p->room : 8;
        stg_yaml_node **grown = realloc(p->at, room * sizeof(stg_yaml_node *));

        if (grown == NULL) {
            stg_complain(y->diagnostics, nowhere,
                         "there is no memory to read it");
            return false;
        }
        p->at = grown;
        p->room = room;
    }
    p->at[p->count++] = n;
    return true;
}

/* Gives the parts to the node, or frees them. */
static stg_yaml_node *finish(stg_yaml *y, stg_yaml_node *n, parts *p,
                             bool is_read)
{
    if (is_read && p->count > 0) {
        n->at = stg_yaml_keep(y, p->count * sizeof(stg_yaml_node *));
        is_read = n->at != NULL;
    }
    if (is_read && p->count > 0)
        memcpy(n->at, p->at, p->count * sizeof(stg_yaml_node *));
    n->count = p->count;
    for (size_t i = 0; is_read && i < p->count; i++)
        n->weight += n->at[i]->weight;
    free(p->at);
    return is_read ? n : NULL;
}

/* A part that is NULL was complained of, and ends the reading: events would no
 * longer match. */
static stg_yaml_node *read_list(stg_yaml *y, unsigned depth)
{
    stg_yaml_node *n = add_node(y, STG_NODE_LIST), *part;
    parts all = {.at = NULL};
    bool is_read = n != NULL;

    if (n == NULL)
        return NULL;
    refuse_tag(y, y->event.data.sequence_start.tag);
    while (is_read && stg_yaml_next(y)) {
        if (y->event.type == YAML_SEQUENCE_END_EVENT)
            return finish(y, n, &all, true);
        part = stg_yaml_read_node(y, depth + 1);
        is_read = part != NULL && add_part(y, &all, part);
    }
    return finish(y, n, &all, false);
}

/* Whether a key can be used: a text, the first of its name, and no `<<`. */
static bool is_key(stg_yaml *y, stg_text_table *seen, const parts *all,
                   const stg_yaml_node *key)
{
    size_t first = all->count;
    char shown[STG_KEY_SHOWN_MAX];

    if (key->kind != STG_NODE_TEXT) {
        stg_complain(y->diagnostics, key->place,
                     "a map or a list as a key; expected a name");
    } else if (strcmp(key->text, "<<") == 0 && key->is_plain) {
        stg_complain(y->diagnostics, key->place,
                     "the merge key `<<`; expected the keys themselves, or "
                     "`defaults:` for what all targets have");
    } else if (!stg_text_table_add(seen, key->text, all->count, &first)) {
        stg_complain(y->diagnostics, nowhere, "there is no memory to read it");
    } else if (all->at == NULL || first == all->count) {
        return true;
    } else {
        stg_complain(y->diagnostics, key->place,
                     "`%s` comes twice; expected it once (see line %u)",
                     stg_yaml_key_shown(key->text, shown),
                     (unsigned)all->at[first]->place.line);
    }
    return false;
}

/* A key that cannot be used is left out together with its value, and reading
 * goes on, so that the other mistakes are told, too. */
static stg_yaml_node *read_map(stg_yaml *y, unsigned depth)
{
    stg_yaml_node *n = add_node(y, STG_NODE_MAP), *key, *value;
    parts all = {.at = NULL};
    stg_text_table seen = {.at = NULL};
    bool is_read = n != NULL;

    if (n == NULL)
        return NULL;
    refuse_tag(y, y->event.data.mapping_start.tag);
    while (is_read && stg_yaml_next(y)) {
        if (y->event.type == YAML_MAPPING_END_EVENT) {
            stg_text_table_free(&seen);
            return finish(y, n, &all, true);
        }
        key = stg_yaml_read_node(y, depth + 1);
        value = key != NULL && stg_yaml_next(y)
                    ? stg_yaml_read_node(y, depth + 1)
                    : NULL;
        is_read = value != NULL;
        if (is_read && is_key(y, &seen, &all, key))
            is_read = add_part(y, &all, key) && add_part(y, &all, value);
    }
    stg_text_table_free(&seen);
    return finish(y, n, &all, false);
}

/* The node of y->event; NULL: complained. An anchor has its node only when that
 * is complete, so that no alias can stand inside what it means. */
stg_yaml_node *stg_yaml_read_node(stg_yaml *y, unsigned depth)
{
    stg_yaml_anchor *a = NULL;
    stg_yaml_node *n;

    if (depth > DEPTH_MAX) {
        stg_complain(y->diagnostics, stg_yaml_place(&y->event.start_mark),
                     "too deep; expected %d levels at most", DEPTH_MAX);
        return NULL;
    }
    switch (y->event.type) {
    case YAML_ALIAS_EVENT:
        return read_alias(y);
    case YAML_SCALAR_EVENT:
        a = add_anchor(y, y->event.data.scalar.anchor);
        n = read_scalar(y);
        break;
    case YAML_SEQUENCE_START_EVENT:
        a = add_anchor(y, y->event.data.sequence_start.anchor);
        n = read_list(y, depth);
        break;
    default: // YAML_MAPPING_START_EVENT
        a = add_anchor(y, y->event.data.mapping_start.anchor);
        n = read_map(y, depth);
    }
    if (n == NULL || !weigh(y, n->place, 1))
        return NULL;
    if (a != NULL)
        a->node = n;
    return n;
}
