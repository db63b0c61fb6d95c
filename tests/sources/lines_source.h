/* lines_source.h - the smallest source with a partition of its own: a file, whose
 * lines are messages and may become more. An example of sources/source.h. */
#ifndef TESTS_SOURCES_LINES_SOURCE_H
#define TESTS_SOURCES_LINES_SOURCE_H

#include "sources/source.h"

/* path is kept until the source is freed. */
stg_source *lines_source_new(const char *path);

#endif
