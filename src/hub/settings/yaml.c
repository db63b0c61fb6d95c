#include "hub/settings/yaml.h"

#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "hub/settings/texts.h"
#include "hub/settings/yaml_text.h"
#include "hub/utf8.h"

enum { DEPTH_MAX = 32, NODES_MAX = 1000000 };

static const stg_file_place nowhere = {0, 0};

typedef struct chunk {
    struct chunk *next;
    max_align_t bytes[];
} chunk;

typedef struct anchor {
    struct anchor *next;
    const char *name;
    stg_yaml_node *node; /* NULL: it is not complete yet */
} anchor;

struct stg_yaml {
    chunk *chunks;
    anchor *anchors; /* the newest first */
    yaml_parser_t parser;
    yaml_event_t event; /* that was read last */
    bool has_event;
    stg_complaints *complaints;
    const char *text;
    size_t size;
    size_t weight; /* of all nodes */
};

/* -- memory ---------------------------------------------------------------- */

static void *keep(stg_yaml *y, size_t size)
{
    chunk *c = calloc(1, sizeof *c + size);

    if (c == NULL) {
        stg_complain(y->complaints, nowhere, "there is no memory to read it");
        return NULL;
    }
    c->next = y->chunks;
    y->chunks = c;
    return c->bytes;
}

static const char *keep_text(stg_yaml *y, const void *text, size_t size)
{
    char *kept = keep(y, size + 1);

    if (kept != NULL && size > 0)
        memcpy(kept, text, size);
    return kept;
}

void stg_yaml_free(stg_yaml *y)
{
    chunk *next;

    if (y == NULL)
        return;
    for (chunk *c = y->chunks; c != NULL; c = next) {
        next = c->next;
        free(c);
    }
    free(y);
}

/* -- events ---------------------------------------------------------------- */

static stg_file_place place_of(const yaml_mark_t *mark)
{
    return (stg_file_place){(uint32_t)mark->line + 1,
                            (uint32_t)mark->column + 1};
}

/* Marks count lines and characters, not bytes. */
static bool is_tab_at(const stg_yaml *y, const yaml_mark_t *mark)
{
    const char *at = y->text, *end = y->text + y->size;

    for (size_t line = 0; line < mark->line && at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        at = stop != NULL ? stop + 1 : end;
    }
    for (size_t column = 0; column < mark->column && at < end; column++)
        at += stg_utf8_length(at, (size_t)(end - at));
    return at < end && *at == '\t';
}

/* What libyaml says, and what is behind it most of the time. */
static void complain_of_form(stg_yaml *y)
{
    const yaml_parser_t *p = &y->parser;
    const char *problem = p->problem != NULL ? p->problem : "no YAML";

    if (p->error == YAML_MEMORY_ERROR) {
        y->complaints->is_memory_short = true;
        stg_complain(y->complaints, nowhere, "there is no memory to read it");
    } else if (is_tab_at(y, &p->problem_mark)) {
        stg_complain(y->complaints, place_of(&p->problem_mark),
                     "a tab; wanted blanks to indent with");
    } else if (strstr(problem, "mapping values are not allowed") != NULL) {
        stg_complain(y->complaints, place_of(&p->problem_mark),
                     "a second `: ` in one line; wanted one key a line, and "
                     "quotes around a text that has `: `");
    } else {
        stg_complain(y->complaints, place_of(&p->problem_mark),
                     "no YAML: %s%s%s", problem, p->context ? ", " : "",
                     p->context ? p->context : "");
    }
}

/* The next event is y->event. */
static bool next(stg_yaml *y)
{
    if (y->has_event)
        yaml_event_delete(&y->event);
    y->has_event = yaml_parser_parse(&y->parser, &y->event) != 0;
    if (!y->has_event)
        complain_of_form(y);
    return y->has_event;
}

/* -- nodes ----------------------------------------------------------------- */

static stg_yaml_node *read_node(stg_yaml *y, unsigned depth);

static stg_yaml_node *add_node(stg_yaml *y, stg_node_kind kind)
{
    stg_yaml_node *n = keep(y, sizeof *n);

    if (n == NULL)
        return NULL;
    n->kind = kind;
    n->place = place_of(&y->event.start_mark);
    n->weight = 1;
    return n;
}

/* Aliases may not make a large thing of a small file. */
static bool weigh(stg_yaml *y, stg_file_place place, size_t weight)
{
    y->weight += weight;
    if (y->weight <= NODES_MAX)
        return true;
    stg_complain(y->complaints, place,
                 "the file is too large with its aliases; wanted a million "
                 "nodes at most");
    return false;
}

static void refuse_tag(stg_yaml *y, const yaml_char_t *tag)
{
    if (tag != NULL)
        stg_complain(y->complaints, place_of(&y->event.start_mark),
                     "the tag `%.40s`; wanted a value without a tag",
                     (const char *)tag);
}

static anchor *add_anchor(stg_yaml *y, const yaml_char_t *name)
{
    anchor *a = name != NULL ? keep(y, sizeof *a) : NULL;

    if (a == NULL)
        return NULL;
    a->name = keep_text(y, name, strlen((const char *)name));
    if (a->name == NULL)
        return NULL;
    a->next = y->anchors;
    y->anchors = a;
    return a;
}

static stg_yaml_node *read_alias(stg_yaml *y)
{
    const char *name = (const char *)y->event.data.alias.anchor;
    stg_file_place place = place_of(&y->event.start_mark);
    const anchor *a = y->anchors;

    while (a != NULL && strcmp(a->name, name) != 0)
        a = a->next;
    if (a == NULL || a->node == NULL) {
        stg_complain(y->complaints, place,
                     "the alias `*%.40s`; wanted an anchor `&%.40s` that is "
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
        stg_complain(y->complaints, n->place,
                     "a zero in a text; wanted text without such");
    n->is_plain = style == YAML_PLAIN_SCALAR_STYLE;
    note_text_place(y, n);
    return n;
}

/* -- collections ----------------------------------------------------------- */

typedef struct parts {
    stg_yaml_node **at;
    size_t count, room;
} parts;

static bool add_part(stg_yaml *y, parts *p, stg_yaml_node *n)
{
    if (p->count == p->room) {
        size_t room = p->room > 0 ? 2 * p->room : 8;
        stg_yaml_node **grown = realloc(p->at, room * sizeof(stg_yaml_node *));

        if (grown == NULL) {
            stg_complain(y->complaints, nowhere,
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
        n->at = keep(y, p->count * sizeof(stg_yaml_node *));
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

static stg_yaml_node *read_list(stg_yaml *y, unsigned depth)
{
    stg_yaml_node *n = add_node(y, STG_NODE_LIST), *part;
    parts all = {.at = NULL};
    bool is_read = n != NULL;

    if (n == NULL)
        return NULL;
    refuse_tag(y, y->event.data.sequence_start.tag);
    while (is_read && next(y)) {
        if (y->event.type == YAML_SEQUENCE_END_EVENT)
            return finish(y, n, &all, true);
        part = read_node(y, depth + 1);
        is_read = part != NULL && add_part(y, &all, part);
    }
    return finish(y, n, &all, false);
}

/* Whether a key can be used: a text, the first of its name, and no `<<`. */
static bool is_key(stg_yaml *y, stg_text_table *seen, const parts *all,
                   const stg_yaml_node *key)
{
    size_t first = all->count;

    if (key->kind != STG_NODE_TEXT) {
        stg_complain(y->complaints, key->place,
                     "a map or a list as a key; wanted a name");
    } else if (strcmp(key->text, "<<") == 0 && key->is_plain) {
        stg_complain(y->complaints, key->place,
                     "the merge key `<<`; wanted the keys themselves, or "
                     "`defaults:` for what all targets have");
    } else if (!stg_text_table_add(seen, key->text, all->count, &first)) {
        stg_complain(y->complaints, nowhere, "there is no memory to read it");
    } else if (first == all->count) {
        return true;
    } else {
        stg_complain(y->complaints, key->place,
                     "`%.80s` comes twice; wanted it once (see line %u)",
                     key->text, (unsigned)all->at[first]->place.line);
    }
    return false;
}

static stg_yaml_node *read_map(stg_yaml *y, unsigned depth)
{
    stg_yaml_node *n = add_node(y, STG_NODE_MAP), *key, *value;
    parts all = {.at = NULL};
    stg_text_table seen = {.at = NULL};
    bool is_read = n != NULL;

    if (n == NULL)
        return NULL;
    refuse_tag(y, y->event.data.mapping_start.tag);
    while (is_read && next(y)) {
        if (y->event.type == YAML_MAPPING_END_EVENT) {
            stg_text_table_free(&seen);
            return finish(y, n, &all, true);
        }
        key = read_node(y, depth + 1);
        value = key != NULL && next(y) ? read_node(y, depth + 1) : NULL;
        is_read = value != NULL;
        if (is_read && is_key(y, &seen, &all, key))
            is_read = add_part(y, &all, key) && add_part(y, &all, value);
    }
    stg_text_table_free(&seen);
    return finish(y, n, &all, false);
}

/* The node that begins with y->event. NULL: complained. */
static stg_yaml_node *read_node(stg_yaml *y, unsigned depth)
{
    anchor *a = NULL;
    stg_yaml_node *n;

    if (depth > DEPTH_MAX) {
        stg_complain(y->complaints, place_of(&y->event.start_mark),
                     "too deep; wanted %d levels at most", DEPTH_MAX);
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

/* -- the file -------------------------------------------------------------- */

/* After the first document. */
static bool is_end(stg_yaml *y)
{
    if (!next(y) || !next(y)) // its end, and what follows
        return false;
    if (y->event.type == YAML_STREAM_END_EVENT)
        return true;
    stg_complain(y->complaints, place_of(&y->event.start_mark),
                 "a second document; wanted one, without `---` behind it");
    return false;
}

static const stg_yaml_node *read_document(stg_yaml *y)
{
    const stg_yaml_node *top;

    if (!next(y) || !next(y)) // the stream, and what begins in it
        return NULL;
    if (y->event.type == YAML_STREAM_END_EVENT) {
        stg_complain(y->complaints, nowhere,
                     "it is empty; wanted settings, with `targets:`");
        return NULL;
    }
    top = next(y) ? read_node(y, 0) : NULL;
    return top != NULL && is_end(y) ? top : NULL;
}

static stg_yaml *make(const char *text, size_t size, stg_complaints *c)
{
    stg_yaml *y = calloc(1, sizeof *y);

    if (y == NULL || !yaml_parser_initialize(&y->parser)) {
        stg_complain(c, nowhere, "there is no memory to read it");
        free(y);
        return NULL;
    }
    y->complaints = c;
    y->text = text;
    y->size = size;
    yaml_parser_set_encoding(&y->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&y->parser, (const unsigned char *)text, size);
    return y;
}

const stg_yaml_node *stg_yaml_parse(stg_yaml **yaml, const char *text,
                                    size_t size, stg_complaints *c)
{
    const stg_yaml_node *top;
    stg_yaml *y;

    *yaml = NULL;
    if (!stg_yaml_text_check(text, size, c))
        return NULL;
    *yaml = y = make(text, size, c);
    if (y == NULL)
        return NULL;
    top = read_document(y);
    if (y->has_event)
        yaml_event_delete(&y->event);
    yaml_parser_delete(&y->parser);
    y->text = NULL;
    return top;
}

const stg_yaml_node *stg_yaml_load(stg_yaml **yaml, const char *path,
                                   stg_complaints *c)
{
    const stg_yaml_node *top = NULL;
    char *text;
    size_t size;

    *yaml = NULL;
    if (stg_yaml_text_read(path, &text, &size, c))
        top = stg_yaml_parse(yaml, text, size, c);
    free(text);
    return top;
}

bool stg_node_is_null(const stg_yaml_node *n)
{
    return n->kind == STG_NODE_TEXT && n->is_plain &&
           (*n->text == '\0' || strcmp(n->text, "null") == 0 ||
            strcmp(n->text, "~") == 0);
}
