/* table.h - what a hub's targets are doing, as a table that is drawn in
 * place on a terminal. */
#ifndef STAGGER_CLI_DEMO_TABLE_H
#define STAGGER_CLI_DEMO_TABLE_H

#include "cli/terminal.h"
#include "hub/hub.h"

typedef struct demo_table {
    stg_terminal terminal;
    bool is_live; /* stdout is a terminal that can move its cursor */
    int lines;    /* drawn so far */
    stg_ns began_at;
} demo_table;

void stg_demo_table_init(demo_table *t, stg_ns now);

/* Draws it over what was drawn before; title is a line above. */
void stg_demo_table_draw(demo_table *t, const stg_hub *hub, const char *title);

#endif
