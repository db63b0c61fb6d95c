/* A settings file as a tree of YAML: its text, which must be UTF-8 without
 * control characters, then libyaml's events. What libyaml says of a mistake is
 * replaced by the usual cause, such as a tab in the indentation. yaml_tree.c
 * makes the nodes. */
#include "config/yaml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/visible.h"
#include "config/yaml_internal.h"

/* -- the text --------------------------------------------------------------- */

enum { SIZE_MAX_READ = 16 << 20, PIECE = 64 << 10 };

static const stg_file_place nowhere = {0, 0};

/* All of the file, and a byte more than is allowed if there are so many. */
static bool read_all(FILE *file, char **text, size_t *size)
{
    size_t room = 0, got = 1;

    *size = 0;
    while (got > 0 && *size <= SIZE_MAX_READ) {
        if (room - *size < PIECE) {
            char *grown = realloc(*text, room = 2 * room + PIECE);

            if (grown == NULL)
                return false;
            *text = grown;
        }
        got = fread(*text + *size, 1, PIECE, file);
        *size += got;
    }
    return true;
}

/* The caller frees text in either case. */
static bool read_text(const char *path, char **text, size_t *size,
                      stg_diagnostics *c)
{
    FILE *file = fopen(path, "rb");
    bool is_read;
    int error;

    *text = NULL;
    if (file == NULL) {
        stg_complain(c, nowhere, "it cannot be read: %s", strerror(errno));
        return false;
    }
    errno = 0;
    is_read = read_all(file, text, size);
    error = ferror(file) ? errno : 0;
    (void)fclose(file);
    if (!is_read)
        stg_complain(c, nowhere, "there is no memory to read it");
    else if (error != 0)
        stg_complain(c, nowhere, "it cannot be read: %s", strerror(error));
    else if (*size > SIZE_MAX_READ)
        stg_complain(c, nowhere, "it is too large; expected 16 MiB at most");
    return is_read && error == 0 && *size <= SIZE_MAX_READ;
}

/* The byte is printed as a number: it may be what breaks a terminal. */
static void complain(stg_diagnostics *c, stg_file_place at, unsigned char byte)
{
    if (byte >= 0x80)
        stg_complain(c, at,
                     "the byte 0x%02x is not UTF-8; expected a file in UTF-8",
                     byte);
    else
        stg_complain(c, at,
                     "the control character 0x%02x; expected text without such",
                     byte);
}

/* A zero byte counts as well: it would end the text early. */
static bool is_control(char c)
{
    return ((unsigned char)c < ' ' && c != '\t' && c != '\n' && c != '\r') ||
           c == 0x7f;
}

/* The first byte that is wrong, at its line and column; columns count
 * characters, as editors do. */
static bool check_text(const char *text, size_t size, stg_diagnostics *c)
{
    stg_file_place at = {1, 1};

    for (size_t i = 0; i < size;) {
        size_t length = stg_utf8_length(text + i, size - i);

        if (length == 0 || is_control(text[i])) {
            complain(c, at, (unsigned char)text[i]);
            return false;
        }
        at.column++;
        if (text[i] == '\n')
            at = (stg_file_place){at.line + 1, 1};
        i += length;
    }
    return true;
}

/* Where a colon is missing, a key may hold a whole line with a secret in it:
 * what is shown ends at the first byte that is not usual in a key. */
const char *stg_yaml_key_shown(const char *key, char shown[STG_KEY_SHOWN_MAX])
{
    enum { LONGEST = STG_KEY_SHOWN_MAX - 4 };
    size_t size = 0;

    while (size < LONGEST &&
           ((key[size] >= 'a' && key[size] <= 'z') ||
            (key[size] >= 'A' && key[size] <= 'Z') ||
            (key[size] >= '0' && key[size] <= '9') ||
            (key[size] != '\0' && strchr("._-", key[size]) != NULL)))
        size++;
    snprintf(shown, STG_KEY_SHOWN_MAX, "%.*s%s", (int)size, key,
             key[size] == '\0' ? "" : "...");
    return shown;
}

/* -- the document ----------------------------------------------------------- */

/* -- memory ---------------------------------------------------------------- */

/* Zeroed; freed with the tree, so no mistake has to free parts of it. */
void *stg_yaml_keep(stg_yaml *y, size_t size)
{
    stg_yaml_chunk *c = calloc(1, sizeof *c + size);

    if (c == NULL) {
        stg_complain(y->diagnostics, nowhere, "there is no memory to read it");
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

/* Where a mark is in the text. Marks count lines and characters, not bytes. */
static const char *find_mark(const stg_yaml *y, const yaml_mark_t *mark)
{
    const char *at = y->text, *end = y->text + y->size;

    for (size_t line = 0; line < mark->line && at < end; line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        at = stop != NULL ? stop + 1 : end;
    }
    for (size_t column = 0; column < mark->column && at < end; column++)
        at += stg_utf8_length(at, (size_t)(end - at));
    return at;
}

static bool is_tab_at(const stg_yaml *y, const yaml_mark_t *mark)
{
    const char *at = find_mark(y, mark);

    return at < y->text + y->size && *at == '\t';
}

/* A bare ${NAME} in { } or [ ], where a brace begins a map. */
static bool is_variable_at(const stg_yaml *y, const yaml_mark_t *mark)
{
    const char *at = find_mark(y, mark);

    return at > y->text && at < y->text + y->size && *at == '{' &&
           at[-1] == '$';
}

/* What libyaml says, and what is behind it most of the time. */
static void complain_of_form(stg_yaml *y)
{
    const yaml_parser_t *p = &y->parser;
    const char *problem = p->problem != NULL ? p->problem : "no YAML";

    if (p->error == YAML_MEMORY_ERROR) {
        y->diagnostics->is_memory_short = true;
        stg_complain(y->diagnostics, nowhere, "there is no memory to read it");
    } else if (is_tab_at(y, &p->problem_mark)) {
        stg_complain(y->diagnostics, stg_yaml_place(&p->problem_mark),
                     "a tab; expected blanks to indent with");
    } else if (is_variable_at(y, &p->problem_mark)) {
        stg_complain(y->diagnostics, stg_yaml_place(&p->problem_mark),
                     "${NAME} without quotes inside of { } or [ ]; expected "
                     "\"${NAME}\"");
    } else if (strstr(problem, "mapping values are not allowed") != NULL) {
        stg_complain(y->diagnostics, stg_yaml_place(&p->problem_mark),
                     "a second `: ` in one line; expected one key a line, and "
                     "quotes around a text that has `: `");
    } else {
        stg_complain(y->diagnostics, stg_yaml_place(&p->problem_mark),
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
    stg_complain(y->diagnostics, stg_yaml_place(&y->event.start_mark),
                 "a second document; expected one, without `---` behind it");
    return false;
}

static const stg_yaml_node *read_document(stg_yaml *y)
{
    const stg_yaml_node *top;

    if (!stg_yaml_next(y) ||
        !stg_yaml_next(y)) // the stream, and what begins in it
        return NULL;
    if (y->event.type == YAML_STREAM_END_EVENT) {
        stg_complain(y->diagnostics, nowhere,
                     "it is empty; expected settings, with `targets:`");
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
    y->diagnostics = c;
    y->text = text;
    y->size = size;
    yaml_parser_set_encoding(&y->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&y->parser, (const unsigned char *)text, size);
    return y;
}

/* The text is checked before libyaml sees it, so marks can be turned into
 * columns without an error. NULL: complained, and *yaml may still have to be
 * freed. */
const stg_yaml_node *stg_yaml_parse(stg_yaml **yaml, const char *text,
                                    size_t size, stg_diagnostics *c)
{
    const stg_yaml_node *top;
    stg_yaml *y;

    *yaml = NULL;
    if (!check_text(text, size, c))
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
    if (read_text(path, &text, &size, c))
        top = stg_yaml_parse(yaml, text, size, c);
    free(text);
    return top;
}

/* A value that is left out, null or ~, without quotes. */
bool stg_node_is_null(const stg_yaml_node *n)
{
    return n->kind == STG_NODE_TEXT && n->is_plain &&
           (*n->text == '\0' || strcmp(n->text, "null") == 0 ||
            strcmp(n->text, "~") == 0);
}
