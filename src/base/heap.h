/* heap.h - what is due first: a priority queue that links through a field of
 * what it holds, so that putting in and taking out cannot fail.
 *
 * Equal keys come out in no promised order. A node is in one heap at most; a
 * zeroed node is in none. Putting in takes constant time, taking out
 * logarithmic, on average over all calls.
 *
 * Source: Fredman, Sedgewick, Sleator and Tarjan, "The pairing heap: a new
 * form of self-adjusting heap", Algorithmica 1, 1986. */
#ifndef STAGGER_BASE_HEAP_H
#define STAGGER_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct stg_node {
    uint64_t key;
    struct stg_node *child; /* the first of those below */
    struct stg_node *next;  /* beside, below the same parent */
    struct stg_node *prev;  /* beside, or the parent; itself at the top */
} stg_node;

typedef struct stg_heap {
    stg_node *top; /* the one with the least key, NULL: empty */
} stg_heap;

/* What holds the node, which is not NULL. */
#define STG_HEAP_HOLDER(node, type, field) \
    ((type *)(void *)((char *)(node)-offsetof(type, field)))

static inline bool stg_heap_has(const stg_node *node)
{
    return node->prev != NULL;
}

/* Puts node in, or moves it if it is already in this heap. */
void stg_heap_put(stg_heap *h, stg_node *node, uint64_t key);

/* Takes node out; nothing if it is in no heap. */
void stg_heap_remove(stg_heap *h, stg_node *node);

#endif
