#include "cli/run/child_exec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether the first line has no byte 0: the test by which shells tell a script
 * from a program of another machine. */
static bool is_script(const char *file)
{
    char line[256];
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof line);
    const char *end;

    if (fd >= 0)
        close(fd);
    if (length <= 0)
        return length == 0;
    end = memchr(line, '\n', (size_t)length);
    return memchr(line, '\0', (size_t)(end == NULL ? length : end - line)) ==
           NULL;
}

/* Returns an errno. */
static int run_by_shell(char *file, char **argv)
{
    char shell[] = "/bin/sh";
    char **words;
    size_t count = 0;
    int error;

    while (argv[count] != NULL)
        count++;
    words = calloc(count + 2, sizeof *words);
    if (words == NULL)
        return ENOMEM;
    words[0] = shell;
    words[1] = file;
    // From the second word to the NULL.
    memcpy(words + 2, argv + 1, count * sizeof *words);
    execv(shell, words);
    error = errno;
    free(words);
    return error;
}

/* Returns an errno. */
static int execute(char *file, char **argv)
{
    int error;

    execv(file, argv);
    error = errno;
    if (error == ENOEXEC && is_script(file))
        return run_by_shell(file, argv);
    return error;
}

int stg_child_exec(char **argv)
{
    const char *path = getenv("PATH"), *end;
    char file[PATH_MAX];
    bool is_denied = false;
    int error, length;

    if (argv[0][0] == '\0' || strchr(argv[0], '/') != NULL)
        return execute(argv[0], argv);
    for (path = path == NULL ? "/bin:/usr/bin" : path;; path = end + 1) {
        end = path + strcspn(path, ":");
        // An empty element is the working directory.
        length = snprintf(file, sizeof file, "%.*s/%s",
                          end == path ? 1 : (int)(end - path),
                          end == path ? "." : path, argv[0]);
        error = length < (int)sizeof file ? execute(file, argv) : ENOENT;
        is_denied = is_denied || error == EACCES;
        if (error != ENOENT && error != ENOTDIR && error != EACCES)
            return error;
        if (*end == '\0')
            return is_denied ? EACCES : ENOENT;
    }
}
