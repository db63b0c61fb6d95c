/* yaml.h - a YAML file as a tree, with the place of everything in it.
 *
 * One document of maps, lists and texts in UTF-8, by libyaml. Refused, each with
 * its place: what is no YAML, a tab where blanks belong, a key that comes twice
 * or is no text, a second document, tags, merge keys, more than 32 levels, more
 * than 16 MiB. An alias is the node of its anchor, seen again; a file whose
 * aliases make it larger than a million nodes is refused. */
#ifndef STAGGER_CONFIG_YAML_H
#define STAGGER_CONFIG_YAML_H

#include "config/diagnostics.h"

typedef enum stg_node_kind {
    STG_NODE_TEXT,
    STG_NODE_LIST,
    STG_NODE_MAP,
} stg_node_kind;

typedef struct stg_yaml_node stg_yaml_node;
struct stg_yaml_node {
    stg_node_kind kind;
    stg_file_place place;
    /* TEXT */
    const char *text;    /* without zeros inside */
    const char *written; /* as in the file, where `${NAME}` was replaced in it;
                            NULL: it is as text */
    bool is_plain;       /* it was written without quotes */
    bool is_verbatim; /* and is byte for byte as in the file, from text_column
                         on */
    uint32_t text_column;
    /* LIST: its parts; MAP: key, value, key, value */
    stg_yaml_node **at;
    size_t count;
    size_t weight; /* nodes, with itself and what aliases repeat */
};

/* As much of a key as may be shown: up to the first character that no name has.
 * Behind `Authorization: ` or `password=` stands a secret that was misplaced. */
enum { STG_KEY_SHOWN_MAX = 64 };
const char *stg_yaml_key_shown(const char *key, char shown[STG_KEY_SHOWN_MAX]);

/* Nothing, `null` or `~`. */
bool stg_node_is_null(const stg_yaml_node *n);

typedef struct stg_yaml stg_yaml; /* the tree's memory */

/* The top of the tree; NULL, and diagnostics, if there is none. Blocks: it reads
 * a file. *yaml is to be freed in any case. */
const stg_yaml_node *stg_yaml_load(stg_yaml **yaml, const char *path,
                                   stg_diagnostics *c);

/* The same of a text. */
const stg_yaml_node *stg_yaml_parse(stg_yaml **yaml, const char *text,
                                    size_t size, stg_diagnostics *c);

/* Replaces ${NAME} and ${NAME:-default} in the values by what the environment
 * has, and $${ by ${; the diagnostics hide what came from there. The default is
 * for a variable that is missing or empty; a missing one without a default is a
 * mistake. False: complained. */
bool stg_yaml_expand(stg_yaml *y, const stg_yaml_node *top);

void stg_yaml_free(stg_yaml *y); /* NULL is none */

#endif
