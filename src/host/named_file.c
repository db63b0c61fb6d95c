/* Which file a path leads to: see the header. A link to a file that is not there yet
 * is followed by hand, as realpath() does not. */
#include "host/named_file.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LINKS_MAX = 40 };

/* Splits at the last slash: "" is the folder of a path without one. */
static const char *named_file_split(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    size_t size = slash == NULL ? 0 : (size_t)(slash - path) + 1;

    memcpy(folder, path, size);
    folder[size] = '\0';
    return path + size;
}

/* Replaces path, which is a link, by what the link says. */
static bool named_file_follow(char path[PATH_MAX])
{
    char folder[PATH_MAX], to[PATH_MAX];
    ssize_t size = readlink(path, to, sizeof to - 1);

    if (size <= 0)
        return false;
    to[size] = '\0';
    (void)named_file_split(path, folder);
    return snprintf(path, PATH_MAX, "%s%s", *to == '/' ? "" : folder, to) <
           PATH_MAX;
}

static bool named_file_look_new(const char *path, stg_named_file *f)
{
    char folder[PATH_MAX];
    const char *name = named_file_split(path, folder);
    struct stat s;

    if (*name == '\0' || strlen(name) > NAME_MAX ||
        stat(*folder == '\0' ? "." : folder, &s) != 0)
        return false;
    f->device = s.st_dev;
    f->inode = s.st_ino;
    memcpy(f->name, name, strlen(name) + 1);
    return true;
}

bool stg_named_file_look(const char *path, stg_named_file *f)
{
    char at[PATH_MAX];
    struct stat s;

    *f = (stg_named_file){.mode = 0};
    if (stat(path, &s) == 0) {
        f->device = s.st_dev;
        f->inode = s.st_ino;
        f->mode = s.st_mode;
        return true;
    }
    if (snprintf(at, sizeof at, "%s", path) >= (int)sizeof at)
        return false;
    for (int i = 0; i < LINKS_MAX && lstat(at, &s) == 0; i++)
        if (!S_ISLNK(s.st_mode) || !named_file_follow(at))
            return false;
    return named_file_look_new(at, f);
}

bool stg_named_file_is_same(const stg_named_file *a, const stg_named_file *b)
{
    return a->device == b->device && a->inode == b->inode &&
           strcmp(a->name, b->name) == 0;
}
