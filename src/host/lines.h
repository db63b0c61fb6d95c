/* lines.h - lines that are appended to a file which others may rotate. Blocks. */
#ifndef STAGGER_HOST_LINES_H
#define STAGGER_HOST_LINES_H

#include <stdbool.h>

#include "base/span.h"

/* Opens it to append, or makes it, with mode 0600. -1: see errno. */
int stg_lines_open(const char *path);

/* Appends whole lines. False, and errno: nothing of them is there; half a line is
 * none, and the next one would begin in it. (Of a pipe or a terminal a part may be
 * there.) */
bool stg_lines_write(int fd, stg_span lines);

#endif
