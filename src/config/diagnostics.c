/* What is wrong with settings: each a place, a text, and whether it is only a
 * warning. The same text at the same place is kept once, because defaults are
 * checked for each target that has them. Texts are cleaned before they are kept:
 * they repeat what a file says, and end on terminals and in logs. */
#include "config/diagnostics.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/visible.h"

/* -- what is hidden -------------------------------------------------------- */

enum {
    ANYWHERE_MIN = 6, /* bytes of a value that is hidden inside of words, too */
    PART_MIN = 12     /* and of a part of one, as of a text that was cut */
};

struct stg_hidden {
    stg_hidden *next;
    size_t size;
    char *value, *shown; /* behind it, in one piece of memory */
};

/* Values that come from the environment may be secrets: in words they are shown by
 * their names. */
bool stg_diagnostics_hide(stg_diagnostics *c, const char *name,
                          const char *value)
{
    size_t size = strlen(value), shown = strlen(name) + sizeof "${}";
    stg_hidden *h;

    for (h = c->hidden; h != NULL; h = h->next)
        if (strcmp(h->value, value) == 0)
            return true;
    h = *value != '\0' ? malloc(sizeof *h + size + 1 + shown) : NULL;
    if (h == NULL)
        return *value == '\0';
    *h =
        (stg_hidden){.next = c->hidden, .size = size, .value = (char *)(h + 1)};
    h->shown = memcpy(h->value, value, size + 1);
    h->shown += size + 1;
    snprintf(h->shown, shown, "${%s}", name);
    c->hidden = h;
    return true;
}

/* How much of text at `at` is the value, or a part of it; 0: nothing. */
static size_t match(const stg_hidden *h, const char *text, const char *at)
{
    char part[PART_MIN + 1] = "";
    const char *found;
    size_t size = PART_MIN;
    bool is_first = at == text || at[-1] == '`';

    if (strncmp(at, h->value, h->size) == 0 &&
        (h->size >= ANYWHERE_MIN ||
         (is_first && (at[h->size] == '`' || at[h->size] == '\0'))))
        return h->size;
    strncat(part, at, PART_MIN);
    found = strlen(part) == PART_MIN ? strstr(h->value, part) : NULL;
    if (found == NULL)
        return 0;
    while (at[size] != '\0' && at[size] == found[size])
        size++;
    return size;
}

/* The longest value that stands here is replaced, since one may begin as another. */
char *stg_diagnostics_show(const stg_diagnostics *c, const char *text)
{
    stg_text to = {.at = NULL};

    for (const char *at = text; *at != '\0';) {
        const stg_hidden *longest = NULL;
        size_t size = 0;

        for (const stg_hidden *h = c->hidden; h != NULL; h = h->next) {
            size_t found = match(h, text, at);

            if (found > size) {
                longest = h;
                size = found;
            }
        }
        if (longest != NULL)
            stg_text_put(&to, longest->shown);
        else
            stg_text_add(&to, at, size = 1);
        at += size;
    }
    stg_text_add(&to, "", 1);
    if (!to.is_short)
        return to.at;
    stg_text_free(&to);
    return NULL;
}

/* -- mistakes and warnings ------------------------------------------------- */

/* Linear: there are STG_DIAGNOSTICS_MAX at most. */
static bool is_known(const stg_diagnostics *c, stg_file_place place,
                     const char *text)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->all[i].place.line == place.line &&
            c->all[i].place.column == place.column &&
            strcmp(c->all[i].text, text) == 0)
            return true;
    return false;
}

static bool make_room(stg_diagnostics *c)
{
    size_t room = c->room > 0 ? 2 * c->room : 16;
    stg_diagnostic *grown;

    if (c->count < c->room)
        return true;
    grown = realloc(c->all, room * sizeof *grown);
    if (grown == NULL)
        return false;
    c->all = grown;
    c->room = room;
    return true;
}

/* Takes the text. A mistake counts even where there is no memory or no room to
 * keep it, so that settings with a mistake never pass. */
static void add(stg_diagnostics *c, const stg_diagnostic *diagnostic)
{
    bool is_warning = diagnostic->is_warning;

    if (diagnostic->text != NULL &&
        is_known(c, diagnostic->place, diagnostic->text)) {
        free(diagnostic->text);
        return;
    }
    *(is_warning ? &c->warnings : &c->mistakes) += 1;
    if (diagnostic->text != NULL && c->count == STG_DIAGNOSTICS_MAX) {
        c->cut++;
        free(diagnostic->text);
    } else if (diagnostic->text == NULL || !make_room(c)) {
        c->is_memory_short = true;
        free(diagnostic->text);
    } else {
        c->all[c->count++] = *diagnostic;
    }
}

__attribute__((format(printf, 2, 0))) static char *
print(const stg_diagnostics *c, const char *format, va_list args)
{
    char text[600], *shown;

    (void)vsnprintf(text, sizeof text, format, args);
    shown = stg_diagnostics_show(c, text);
    // A line, whatever was found in the file.
    return shown != NULL ? stg_visible_string(shown, STG_VISIBLE_IN_LINE)
                         : NULL;
}

void stg_complain(stg_diagnostics *c, stg_file_place place, const char *format,
                  ...)
{
    va_list args;
    stg_diagnostic made = {.place = place};

    va_start(args, format);
    made.text = print(c, format, args);
    va_end(args);
    add(c, &made);
}

void stg_warn(stg_diagnostics *c, stg_file_place place, const char *format, ...)
{
    va_list args;
    stg_diagnostic made = {.place = place, .is_warning = true};

    va_start(args, format);
    made.text = print(c, format, args);
    va_end(args);
    add(c, &made);
}

/* By place, mistakes before warnings; then by text, for qsort() keeps no order
 * of equals. */
static int compare(const void *a, const void *b)
{
    const stg_diagnostic *x = a, *y = b;

    if (x->place.line != y->place.line)
        return x->place.line < y->place.line ? -1 : 1;
    if (x->place.column != y->place.column)
        return x->place.column < y->place.column ? -1 : 1;
    if (x->is_warning != y->is_warning)
        return x->is_warning ? 1 : -1;
    return strcmp(x->text, y->text);
}

void stg_diagnostics_sort(stg_diagnostics *c)
{
    if (c->count > 1)
        qsort(c->all, c->count, sizeof *c->all, compare);
}

/* The end of its name, for it is what the command was told. */
static void print_file(const char *file, FILE *to)
{
    enum { SHOWN = 200 };
    char text[SHOWN + 1];
    size_t length = strlen(file);

    snprintf(text, sizeof text, "%s",
             file + (length > SHOWN ? length - SHOWN : 0));
    fprintf(to, "%s%s", length > SHOWN ? "..." : "",
            stg_visible_string(text, STG_VISIBLE_IN_LINE));
}

static void print_place(const stg_diagnostic *one, const char *file, FILE *to)
{
    if (file == NULL) // it is of no file of settings
        return;
    print_file(file, to);
    if (one->place.line > 0)
        fprintf(to, ":%u:%u", (unsigned)one->place.line,
                (unsigned)one->place.column);
    fputs(": ", to);
}

void stg_diagnostic_print(const stg_diagnostic *one, const char *file, FILE *to)
{
    print_place(one, file, to);
    fputs(one->text, to);
}

/* Without memory some texts are missing, which is said: the count of mistakes
 * is right all the same. */
void stg_diagnostics_print(const stg_diagnostics *c, const char *file, FILE *to)
{
    for (size_t i = 0; i < c->count; i++) {
        print_place(&c->all[i], file, to);
        fprintf(to, "%s%s\n", c->all[i].is_warning ? "warning: " : "",
                c->all[i].text);
    }
    if (c->cut > 0)
        fprintf(to, "%s: and %zu more\n", file, c->cut);
    if (c->is_memory_short)
        fprintf(to, "%s: there is no memory to say all that is wrong\n", file);
}

void stg_diagnostics_free(stg_diagnostics *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free(c->all[i].text);
        free(c->all[i].pointer);
    }
    free(c->all);
    for (stg_hidden *h = c->hidden, *next; h != NULL; h = next) {
        next = h->next;
        free(h);
    }
    *c = (stg_diagnostics){.all = NULL};
}
