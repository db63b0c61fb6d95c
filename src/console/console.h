/* console.h - the hub's page for a browser: docs/console.md.
 *
 *     GET /               the page
 *     GET /console/NAME   its styles and scripts
 *
 * The files of src/console/page are in the binary (cmake/embed.cmake) and are
 * given to anybody: what a page shows it asks of the public API, with the token
 * of whoever looks at it. */
#ifndef STAGGER_CONSOLE_CONSOLE_H
#define STAGGER_CONSOLE_CONSOLE_H

#include "ingress/ingress.h"

void stg_console_serve(stg_ingress *g);

/* A file of the page. Ended by name NULL. */
typedef struct stg_console_file {
    const char *name;
    const unsigned char *bytes;
    size_t size;
} stg_console_file;

extern const stg_console_file stg_console_files[];

#endif
