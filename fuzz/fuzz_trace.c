/* Any bytes as the file of `sim overload --trace`: what is refused is told, with its
 * line; of what is accepted times rise from 0, and there are two operations at
 * least. */
#include <string.h>
#include <unistd.h>

#include "cli/sim/overload.h"
#include "fuzz/fuzz.h"

static void check(const stg_sim_trace *t)
{
    HOLDS(t->count >= 2);
    HOLDS(t->at[0] == 0);
    for (size_t i = 1; i < t->count; i++)
        HOLDS(t->at[i - 1] <= t->at[i]);
    HOLDS(t->time_count <= t->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *file;
    char path[40];
    stg_sim_trace t = {.count = 0};
    stg_error err = {.text = ""};
    stg_status status;

    if (file == NULL)
        file = tmpfile();
    if (file == NULL)
        return 0;
    HOLDS(ftruncate(fileno(file), 0) == 0);
    HOLDS(pwrite(fileno(file), data, size, 0) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fileno(file));
    status = stg_trace_read(&t, path, &err);
    if (status == STG_OK)
        check(&t);
    else
        HOLDS(err.text[0] != '\0' &&
              memchr(err.text, '\0', sizeof err.text) != NULL);
    stg_trace_free(&t);
    return 0;
}
