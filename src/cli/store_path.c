#include "cli/store_path.h"

#include <stdlib.h>

const char *stg_store_path(const char *given)
{
    const char *path = given != NULL ? given : getenv("STAGGER_STORE");

    return path != NULL && *path != '\0' ? path : "./stagger.db";
}
