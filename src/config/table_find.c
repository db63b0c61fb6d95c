/* Rows of the table of settings by their path or their option. */
#include <string.h>

#include "config/table.h"

size_t stg_setting_count(void)
{
    size_t count = 0;

    while (stg_setting_at(count) != NULL)
        count++;
    return count;
}

const stg_setting *stg_setting_find(stg_setting_in in, const char *path,
                                    size_t size)
{
    const stg_setting *s;

    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++)
        if (s->in == in && strncmp(s->path, path, size) == 0 &&
            s->path[size] == '\0')
            return s;
    return NULL;
}

const stg_setting *stg_setting_of_flag(const char *flag)
{
    size_t size = strlen(flag);
    const stg_setting *s;

    for (size_t i = 0; (s = stg_setting_at(i)) != NULL; i++) {
        const char *at = s->flag != NULL ? strstr(s->flag, flag) : NULL;

        if (at != NULL && at[size] == ' ')
            return s;
    }
    return NULL;
}
