#include "host/private_file.h"

#include <stdlib.h>
#include <unistd.h>

static bool is_ours(gid_t group)
{
    int count = getgroups(0, NULL);
    gid_t *all = count > 0 ? calloc((size_t)count, sizeof *all) : NULL;
    bool is_found = group == getegid();

    if (all != NULL)
        count = getgroups(count, all);
    for (int i = 0; all != NULL && i < count && !is_found; i++)
        is_found = all[i] == group;
    free(all);
    return is_found;
}

bool stg_file_is_private(const struct stat *s)
{
    mode_t others = s->st_mode & (S_IRWXG | S_IRWXO);

    return others == 0 || (others == S_IRGRP && is_ours(s->st_gid));
}
