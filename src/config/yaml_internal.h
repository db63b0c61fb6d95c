/* yaml_internal.h - what yaml.c (text, memory, events) and yaml_tree.c (nodes)
 * share. Private to them. */
#ifndef STAGGER_CONFIG_YAML_INTERNAL_H
#define STAGGER_CONFIG_YAML_INTERNAL_H

#include <yaml.h>

#include "config/yaml.h"

typedef struct stg_yaml_chunk {
    struct stg_yaml_chunk *next;
    max_align_t bytes[];
} stg_yaml_chunk;

typedef struct stg_yaml_anchor {
    struct stg_yaml_anchor *next;
    const char *name;
    stg_yaml_node *node; /* NULL: it is not complete yet */
} stg_yaml_anchor;

struct stg_yaml {
    stg_yaml_chunk *chunks;
    stg_yaml_anchor *anchors; /* the newest first */
    yaml_parser_t parser;
    yaml_event_t event; /* that was read last */
    bool has_event;
    stg_diagnostics *diagnostics;
    const char *text;
    size_t size;
    size_t weight; /* of all nodes */
};

/* Memory that goes with the tree, zeroed. NULL: complained. */
void *stg_yaml_keep(stg_yaml *y, size_t size);

/* The next event is y->event. False: complained. */
bool stg_yaml_next(stg_yaml *y);

stg_file_place stg_yaml_place(const yaml_mark_t *mark);

/* The node that begins with y->event. NULL: complained. */
stg_yaml_node *stg_yaml_read_node(stg_yaml *y, unsigned depth);

#endif
