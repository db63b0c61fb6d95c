/* stagger dead export: every field of every dead letter, payloads included. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "cli/dead/dead.h"
#include "cli/options.h"

static void put_letter(void *ctx, const stg_letter *l)
{
    stg_letter_line line = {.size = 0};
    bool *is_short = ctx;

    stg_letter_write(&line, l);
    *is_short = *is_short || line.is_short;
    if (!line.is_short)
        fwrite(line.at, 1, line.size, stdout);
    stg_line_free(&line);
}

/* A blob that is no text goes as base64, and the column behind it says so. */
static void put_blob(stg_span bytes, bool is_last, bool *is_short)
{
    bool is_text = stg_utf8_is_text(bytes.at, bytes.size);
    const char *encoding = bytes.size == 0 ? "" : is_text ? "text" : "base64";
    stg_letter_line line = {.size = 0};

    if (is_text) {
        dead_put_csv(bytes, false);
    } else {
        stg_line_add_base64(&line, bytes);
        *is_short = *is_short || line.is_short;
        dead_put_csv((stg_span){line.at, line.size}, false);
        stg_line_free(&line);
    }
    dead_put_csv((stg_span){encoding, strlen(encoding)}, is_last);
}

static void put_csv(void *ctx, const stg_letter *l)
{
    for (stg_letter_column c = 0; c < STG_LETTER_COLUMNS; c++) {
        bool is_last = c == STG_LETTER_COLUMNS - 1;
        char number[DEAD_NUMBER_MAX];
        const char *text;

        if (stg_letter_is_bytes(c)) {
            put_blob(stg_letter_get(l, c).span, is_last, ctx);
            continue;
        }
        text = dead_text(l, c, number);
        dead_put_csv((stg_span){text, strlen(text)}, is_last);
    }
}

static void put_titles(void)
{
    for (stg_letter_column c = 0; c < STG_LETTER_COLUMNS; c++) {
        const char *name = stg_letter_name(c);
        bool is_last = c == STG_LETTER_COLUMNS - 1;
        char encoding[32];

        dead_put_csv((stg_span){name, strlen(name)},
                     is_last && !stg_letter_is_bytes(c));
        if (!stg_letter_is_bytes(c))
            continue;
        snprintf(encoding, sizeof encoding, "%s_encoding", name);
        dead_put_csv((stg_span){encoding, strlen(encoding)}, is_last);
    }
}

int dead_export(const dead_options *o)
{
    bool is_short = false;
    int rc, code = 0;
    dead_rows r;

    if (!dead_open(&r, o)) {
        dead_close(&r);
        return STG_EXIT_USAGE;
    }
    if (o->is_csv)
        put_titles();
    rc = dead_read(&r, 0, true, o->is_csv ? put_csv : put_letter, &is_short);
    if (rc != SQLITE_OK || is_short)
        code = dead_fail(&r, is_short ? SQLITE_NOMEM : rc);
    dead_close(&r);
    return stg_options_finish("stagger dead", code);
}
