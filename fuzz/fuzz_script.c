/* Any text as an event script, and each of its lines as a fault of a scenario: what
 * is refused is told, with its line; what is accepted is printed as it reads. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "sim/delivery/scenario.h"
#include "sim/delivery/script.h"

static void check_words(const stg_error *err)
{
    HOLDS(memchr(err->text, '\0', sizeof err->text) != NULL);
    HOLDS(err->text[0] != '\0');
}

/* What was read is printed so that it reads the same. */
static void check_step(const stg_step *step)
{
    static stg_script again;
    char text[STG_STEP_TEXT_MAX];
    stg_error err;

    again.count = 0;
    stg_step_print(step, text);
    HOLDS(strlen(text) < sizeof text - 1);
    HOLDS(stg_script_read(&again, text, strlen(text), &err) == STG_OK);
    HOLDS(again.count == 1);
    HOLDS(memcmp(&again.steps[0], step, sizeof *step) == 0);
}

static void try_script(const char *text, size_t size)
{
    static stg_script s;
    stg_error err = {.text = ""};

    s = (stg_script){.count = 0};
    if (stg_script_read(&s, text, size, &err) != STG_OK) {
        check_words(&err);
        return;
    }
    HOLDS(s.count <= STG_SCRIPT_MAX);
    for (size_t i = 0; i < s.count; i++)
        check_step(&s.steps[i]);
}

static void try_fault(const char *text)
{
    stg_world_scenario_fault f = {.share = 101}, before = f;
    stg_error err = {.text = ""};

    if (stg_world_scenario_read_fault(text, &f, &err) != STG_OK) {
        check_words(&err);
        HOLDS(memcmp(&before, &f, sizeof f) == 0);
        return;
    }
    HOLDS(f.target[0] != '\0' && f.answer[0] != '\0');
    HOLDS(f.share >= 1 && f.share <= 100);
    HOLDS(f.from < f.until);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1), *rest = NULL;

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    try_script(text, size);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        try_fault(line);
    free(text);
    return 0;
}
