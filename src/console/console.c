/* Serves the console's files, which are embedded in the binary. Anybody may
 * load them: they hold no data, and the page asks the API with the visitor's
 * own token. */
#include "console/console.h"

#include <stdlib.h>
#include <string.h>

#include "ingress/ask.h"

static const char *type_of(const char *name)
{
    static const struct {
        const char *end, *type;
    } types[] = {
        {".html", STG_ASK_HTML},
        {".css", "text/css; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
    };
    const char *end = strrchr(name, '.');

    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (end != NULL && strcmp(end, types[i].end) == 0)
            return types[i].type;
    return "application/octet-stream";
}

static void answer_file(stg_ask *a, const char *name)
{
    const stg_console_file *f = stg_console_files;
    char *copy;

    while (f->name != NULL && strcmp(f->name, name) != 0)
        f++;
    if (f->name == NULL) {
        stg_ask_refuse(a, 404, "the console has no such file");
        return;
    }
    copy = malloc(f->size);
    if (copy != NULL)
        memcpy(copy, f->bytes, f->size);
    stg_ask_answer(a, 200, type_of(name), copy, f->size);
}

static void answer_page(void *ctx, stg_ask *a)
{
    (void)ctx;
    answer_file(a, "index.html");
}

static void answer_part(void *ctx, stg_ask *a)
{
    (void)ctx;
    answer_file(a, stg_ask_word(a, 0));
}

void stg_console_serve(stg_ingress *g)
{
    static const stg_route routes[] = {
        {"GET", "/", STG_ROLE_ANYBODY, STG_BODY_NONE, NULL, answer_page, false},
        {"GET", "/console/{name}", STG_ROLE_ANYBODY, STG_BODY_NONE, NULL,
         answer_part, false},
    };

    stg_ingress_serve(g, routes, sizeof routes / sizeof *routes, NULL);
}
