/* The names of a store's files: see the header. */
#include "store/store_names.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const ends[STG_STORE_NAMES] = {"", "-wal", "-shm",
                                                  "-journal", "-lock"};

/* A store that is there is named by its real path, as SQLite does it. */
bool stg_store_look_file(const char *path, size_t i, stg_named_file *f)
{
    char name[PATH_MAX], *real = i == 0 ? NULL : realpath(path, NULL);
    int size = snprintf(name, sizeof name, "%s%s", real != NULL ? real : path,
                        ends[i]);

    free(real);
    return size < (int)sizeof name && stg_named_file_look(name, f);
}

bool stg_store_has_file(void *path, const struct stat *file)
{
    stg_named_file f;

    for (size_t i = 0; i < STG_STORE_NAMES; i++)
        if (stg_store_look_file(path, i, &f) && f.mode != 0 &&
            f.device == file->st_dev && f.inode == file->st_ino)
            return true;
    return false;
}
