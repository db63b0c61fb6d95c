#include "cli/store_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/options.h"
#include "config/from.h"

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

bool stg_store_path_look(const char *who, const char *path)
{
    struct stat status;
    int error = 0;

    if (access(path, R_OK) != 0 || stat(path, &status) != 0)
        error = errno;
    else if (S_ISDIR(status.st_mode))
        error = EISDIR;
    if (error == 0)
        return true;
    stg_options_complain(who, "%s: %s; name a store with --store", path,
                         error == ENOENT ? "there is no such file"
                                         : strerror(error));
    return false;
}
