#include "tests/sim/golden.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"

static void keep(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(file != NULL);
    CHECK(fputs(text, file) >= 0);
    CHECK(fclose(file) == 0);
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text;
    long size;

    if (file == NULL)
        harness_fail(__FILE__, __LINE__, "%s is missing", path);
    CHECK(fseek(file, 0, SEEK_END) == 0);
    size = ftell(file);
    CHECK(size >= 0);
    rewind(file);
    text = calloc(1, (size_t)size + 1);
    CHECK(text != NULL);
    CHECK(fread(text, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
    return text;
}

void golden_check(const char *name, const char *text)
{
    const char *wish = getenv("STAGGER_GOLDEN");
    char path[400];
    char *kept;
    size_t at = 0, from;

    snprintf(path, sizeof path, "%s/%s", GOLDEN, name);
    if (wish != NULL && strcmp(wish, "write") == 0)
        keep(path, text);
    kept = read_file(path);
    while (kept[at] != '\0' && kept[at] == text[at])
        at++;
    from = at < 40 ? 0 : at - 40;
    if (kept[at] != text[at])
        harness_fail(__FILE__, __LINE__,
                     "%s differs at byte %zu: \"%.80s\", not \"%.80s\"", path,
                     at, text + from, kept + from);
    free(kept);
}
