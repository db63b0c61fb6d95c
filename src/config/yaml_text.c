#include "config/yaml_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "config/yaml.h"

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

bool stg_yaml_text_read(const char *path, char **text, size_t *size,
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
        stg_complain(c, nowhere, "it is too large; wanted 16 MiB at most");
    return is_read && error == 0 && *size <= SIZE_MAX_READ;
}

static void complain(stg_diagnostics *c, stg_file_place at, unsigned char byte)
{
    if (byte >= 0x80)
        stg_complain(c, at,
                     "the byte 0x%02x is no UTF-8 here; wanted a file in UTF-8",
                     byte);
    else
        stg_complain(c, at,
                     "the control character 0x%02x; wanted text without such",
                     byte);
}

static bool is_control(char c)
{
    return ((unsigned char)c < ' ' && c != '\t' && c != '\n' && c != '\r') ||
           c == 0x7f;
}

bool stg_yaml_text_check(const char *text, size_t size, stg_diagnostics *c)
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
