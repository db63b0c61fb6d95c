/* Any file of policies: a walk over named policies to its end, or to an error
 * with a place in the file, where it stays. */
#include <stagger/policies.h>

#include <string.h>

#include "fuzz/fuzz.h"

static void check_name(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const stg_preset *preset;

    HOLDS(memchr(name, '\0', STG_NAME_MAX) != NULL);
    HOLDS(strlen(name) > 0);
    HOLDS(strspn(name, letters) == strlen(name));
    HOLDS(strchr(letters, name[0]) < strchr(letters, '0'));
    for (size_t i = 0; (preset = stg_preset_at(i)) != NULL; i++)
        HOLDS(strcmp(name, preset->name) != 0);
}

static void check_policy(const stg_policy *p)
{
    char text[STG_POLICY_TEXT_MAX];
    stg_policy read;

    HOLDS(stg_policy_print(p, text) == STG_OK);
    HOLDS(stg_policy_parse(&read, text, NULL) == STG_OK);
    HOLDS(stg_policy_equal(p, &read));
}

/* The length of a line, from 1; -1 where there is none of this number. */
static long length_of(const stg_policies *file, uint32_t line)
{
    size_t at = 0;
    long length = 0;

    while (line > 1 && at < file->size)
        line -= file->text[at++] == '\n';
    if (line != 1)
        return -1;
    while (at < file->size && file->text[at++] != '\n')
        length++;
    return length;
}

static void check_error(const stg_policies *walk, const stg_error *err)
{
    char place[64];
    size_t length = (size_t)snprintf(place, sizeof place,
                                     "fuzz.conf:%u:%u: ", (unsigned)err->line,
                                     (unsigned)err->column);

    // It is on the first line that says something behind the walk.
    HOLDS(err->line > walk->line);
    HOLDS(err->column >= 1);
    HOLDS((long)err->column <= length_of(walk, err->line) + 1);
    HOLDS(memchr(err->text, '\0', sizeof err->text) != NULL);
    HOLDS(strncmp(err->text, place, length) == 0);
    for (const char *c = err->text; *c != '\0'; c++)
        HOLDS(*c >= ' ' && *c <= '~');
}

/* Once more: what is wrong stays wrong. */
static void check_stays(const stg_policies *walk, const stg_error *err)
{
    stg_policies again = *walk;
    char name[STG_NAME_MAX];
    stg_policy p;
    stg_error other;

    HOLDS(stg_policies_next(&again, name, &p, &other) == STG_INVALID);
    HOLDS(again.at == walk->at && again.line == walk->line);
    HOLDS(other.line == err->line && other.column == err->column);
    HOLDS(strcmp(other.text, err->text) == 0);
}

/* A good file has each name once, and all that the walk came past. */
static void check_found(const stg_policies *file, stg_status end,
                        const char *name, const stg_policy *p)
{
    stg_policy found;
    stg_error err;
    stg_status status = stg_policies_find(file, name, &found, &err);

    if (end == STG_INVALID) {
        HOLDS(status == STG_INVALID);
        return;
    }
    HOLDS(status == STG_OK);
    HOLDS(stg_policy_equal(&found, p));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + (size == 0));
    stg_policies file = {.source = "fuzz.conf", .text = text, .size = size};
    stg_policies walk = file;
    char name[STG_NAME_MAX] = "", last[STG_NAME_MAX] = "";
    stg_policy p, last_policy;
    stg_error err;
    stg_status status;

    HOLDS(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    for (;;) {
        stg_policies before = walk;

        status = stg_policies_next(&walk, name, &p, &err);
        if (status != STG_OK) {
            if (status == STG_INVALID)
                HOLDS(walk.at == before.at && walk.line == before.line);
            break;
        }
        HOLDS(walk.at > before.at && walk.at <= walk.size);
        HOLDS(walk.line > before.line);
        check_name(name);
        check_policy(&p);
        HOLDS(strcmp(name, last) != 0);
        memcpy(last, name, sizeof last);
        last_policy = p;
    }
    if (status == STG_INVALID) {
        check_error(&walk, &err);
        check_stays(&walk, &err);
    } else {
        HOLDS(status == STG_NOT_FOUND && walk.at == walk.size);
        HOLDS(stg_policies_find(&file, "no such", &p, &err) == STG_NOT_FOUND);
    }
    if (last[0] != '\0')
        check_found(&file, status, last, &last_policy);
    free(text);
    return 0;
}
