#include "cli/say_json.h"

#include "base/visible.h"

/* jansson gives whole characters; those to escape are in strings only, as its
 * own text is ASCII and ends of line. */
static int put(const char *at, size_t size, void *ctx)
{
    char escape[STG_VISIBLE_ESCAPE_MAX] = "";
    FILE *to = ctx;

    for (size_t i = 0; i < size;) {
        stg_visible_char c =
            stg_visible_next(at + i, size - i, STG_VISIBLE_IN_TEXT);

        if (c.is_visible)
            fwrite(at + i, 1, c.size, to);
        else
            fwrite(escape, 1, stg_visible_escape(c.code, escape), to);
        i += c.size;
    }
    return 0;
}

void stg_say_json(FILE *to, const json_t *value, bool is_line)
{
    size_t form = is_line ? JSON_COMPACT : JSON_INDENT(2);

    (void)json_dump_callback(value, put, to, form | JSON_REAL_PRECISION(12));
    fputc('\n', to);
}
