/* A pairing heap: trees of nodes whose children are not below them. To insert is to meld
 * two tops; to take the first is to meld its children, in pairs and then all of these
 * (Fredman, Sedgewick, Sleator, Tarjan, "The pairing heap", Algorithmica 1986). */
#include "base/heap.h"

#include <stddef.h>

/* Two tops become one. */
static stg_node *meld(stg_node *a, stg_node *b)
{
    stg_node *over = b->key < a->key ? b : a;
    stg_node *under = over == a ? b : a;

    under->next = over->child;
    if (under->next != NULL)
        under->next->prev = under;
    under->prev = over;
    over->child = under;
    over->next = NULL;
    return over;
}

/* The nodes from `first` on become one tree: pairs from left to right, then
 * all of the pairs from right to left. */
static stg_node *meld_all(stg_node *first)
{
    stg_node *pairs = NULL, *top;

    while (first != NULL) {
        stg_node *second = first->next;
        stg_node *rest = second == NULL ? NULL : second->next;
        stg_node *pair = first;

        first->next = NULL;
        if (second != NULL)
            pair = meld(first, second);
        pair->next = pairs;
        pairs = pair;
        first = rest;
    }
    top = pairs;
    if (top == NULL)
        return NULL;
    pairs = top->next;
    top->next = NULL;
    while (pairs != NULL) {
        stg_node *rest = pairs->next;

        top = meld(top, pairs);
        pairs = rest;
    }
    top->prev = top;
    return top;
}

/* Its children become one tree, which takes its place or goes below the top. */
static void cut(stg_heap *h, stg_node *node)
{
    stg_node *below = meld_all(node->child);

    if (h->top == node) {
        h->top = below;
    } else {
        if (node->prev->child == node)
            node->prev->child = node->next;
        else
            node->prev->next = node->next;
        if (node->next != NULL)
            node->next->prev = node->prev;
        if (below != NULL) {
            h->top = meld(h->top, below);
            h->top->prev = h->top;
        }
    }
    *node = (stg_node){.key = node->key};
}

void stg_heap_remove(stg_heap *h, stg_node *node)
{
    if (stg_heap_has(node))
        cut(h, node);
}

/* A node that is in already is taken out first: its new key may be either
 * way. */
void stg_heap_put(stg_heap *h, stg_node *node, uint64_t key)
{
    stg_heap_remove(h, node);
    *node = (stg_node){.key = key};
    h->top = h->top == NULL ? node : meld(h->top, node);
    h->top->prev = h->top;
}
