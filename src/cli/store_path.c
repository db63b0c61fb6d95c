#include "cli/store_path.h"

#include <stdlib.h>

#include "cli/options.h"
#include "hub/settings/from.h"

const char *stg_store_path(const char *given)
{
    const char *path = given != NULL ? given : getenv("STAGGER_STORE");

    return path != NULL && *path != '\0' ? path : "./stagger.db";
}

bool stg_store_path_check(const char *who, const char *given)
{
    if (given == NULL || !stg_from_has_password(given))
        return true;
    stg_options_complain(who,
                         "--store: has a password, and everybody on this "
                         "machine reads command lines; put it in ~/.pgpass, or "
                         "the whole URL in STAGGER_STORE");
    return false;
}
