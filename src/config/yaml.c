#include "config/yaml.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "config/yaml_internal.h"
#include "config/yaml_text.h"

static const stg_file_place nowhere = {0, 0};

/* -- memory ---------------------------------------------------------------- */

void *stg_yaml_keep(stg_yaml *y, size_t size)
{
    stg_yaml_chunk *c = calloc(1, sizeof *c + size);

    if (c == NULL) {
        stg_complain(y->complaints, nowhere, "there is no memory to read it");
        return NULL;
    }
    c->next = y->chunks;
    y->chunks = c;
    return c->bytes;
}

void stg_yaml_free(stg_yaml *y)
{
    stg_yaml_chunk *next;

    if (y == NULL)
        return;
    for (stg_yaml_chunk *c = y->chunks; c != NULL; c = next) {
        next = c->next;
        free(c);
    }
    free(y);
}

/* -- events ---------------------------------------------------------------- */

stg_file_place stg_yaml_place(const yaml_mark_t *mark)
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
        stg_complain(y->complaints, stg_yaml_place(&p->problem_mark),
                     "a tab; wanted blanks to indent with");
    } else if (strstr(problem, "mapping values are not allowed") != NULL) {
        stg_complain(y->complaints, stg_yaml_place(&p->problem_mark),
                     "a second `: ` in one line; wanted one key a line, and "
                     "quotes around a text that has `: `");
    } else {
        stg_complain(y->complaints, stg_yaml_place(&p->problem_mark),
                     "no YAML: %s%s%s", problem, p->context ? ", " : "",
                     p->context ? p->context : "");
    }
}

/* The next event is y->event. */
bool stg_yaml_next(stg_yaml *y)
{
    if (y->has_event)
        yaml_event_delete(&y->event);
    y->has_event = yaml_parser_parse(&y->parser, &y->event) != 0;
    if (!y->has_event)
        complain_of_form(y);
    return y->has_event;
}

/* -- the file -------------------------------------------------------------- */

/* After the first document. */
static bool is_end(stg_yaml *y)
{
    if (!stg_yaml_next(y) || !stg_yaml_next(y)) // its end, and what follows
        return false;
    if (y->event.type == YAML_STREAM_END_EVENT)
        return true;
    stg_complain(y->complaints, stg_yaml_place(&y->event.start_mark),
                 "a second document; wanted one, without `---` behind it");
    return false;
}

static const stg_yaml_node *read_document(stg_yaml *y)
{
    const stg_yaml_node *top;

    if (!stg_yaml_next(y) ||
        !stg_yaml_next(y)) // the stream, and what begins in it
        return NULL;
    if (y->event.type == YAML_STREAM_END_EVENT) {
        stg_complain(y->complaints, nowhere,
                     "it is empty; wanted settings, with `targets:`");
        return NULL;
    }
    top = stg_yaml_next(y) ? stg_yaml_read_node(y, 0) : NULL;
    return top != NULL && is_end(y) ? top : NULL;
}

static stg_yaml *make(const char *text, size_t size, stg_diagnostics *c)
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
                                    size_t size, stg_diagnostics *c)
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
                                   stg_diagnostics *c)
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
