/* list.h - a list that links through a field of what it holds.
 *
 *     struct job { stg_link link; ... };
 *     stg_list jobs;
 *     stg_list_push(&jobs, &job->link);
 *     job = STG_HOLDER(stg_list_first(&jobs), struct job, link);
 *
 * Putting in and taking out cannot fail and take the same time however long
 * the list is. A link is in one list at most; a zeroed link is in none. */
#ifndef STAGGER_BASE_LIST_H
#define STAGGER_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct stg_link {
    struct stg_link *next, *prev;
} stg_link;

typedef struct stg_list {
    stg_link ends; /* next: the first, prev: the last; itself when empty */
} stg_list;

/* Returns the struct that contains the link; NULL for NULL. */
#define STG_HOLDER(link, type, field) \
    ((type *)stg_list_holder((link), offsetof(type, field)))

static inline void *stg_list_holder(stg_link *link, size_t offset)
{
    return link == NULL ? NULL : (char *)link - offset;
}

static inline void stg_list_init(stg_list *l)
{
    l->ends.next = l->ends.prev = &l->ends;
}

static inline bool stg_list_has(const stg_link *link)
{
    return link->next != NULL;
}

static inline bool stg_list_is_empty(const stg_list *l)
{
    return l->ends.next == &l->ends;
}

// NOLINTBEGIN(clang-analyzer-unix.Malloc,clang-analyzer-core.NullDereference): a
// list is a ring, so that nothing in it points to what was removed
static inline stg_link *stg_list_first(const stg_list *l)
{
    return l->ends.next == &l->ends ? NULL : l->ends.next;
}

static inline stg_link *stg_list_last(const stg_list *l)
{
    return l->ends.prev == &l->ends ? NULL : l->ends.prev;
}

/* The neighbours in l, NULL at its ends. */
static inline stg_link *stg_list_next(const stg_list *l, const stg_link *link)
{
    return link->next == &l->ends ? NULL : link->next;
}

static inline stg_link *stg_list_prev(const stg_list *l, const stg_link *link)
{
    return link->prev == &l->ends ? NULL : link->prev;
}

/* Behind `before`, a link of some list (or its ends). */
static inline void stg_list_insert(stg_link *before, stg_link *link)
{
    link->prev = before;
    link->next = before->next;
    before->next->prev = link;
    before->next = link;
}
// NOLINTEND(clang-analyzer-unix.Malloc,clang-analyzer-core.NullDereference)

/* At the end. */
static inline void stg_list_push(stg_list *l, stg_link *link)
{
    stg_list_insert(l->ends.prev, link);
}

/* At the front. */
static inline void stg_list_unshift(stg_list *l, stg_link *link)
{
    stg_list_insert(&l->ends, link);
}

/* Out of whatever list it is in; nothing if it is in none. */
static inline void stg_list_remove(stg_link *link)
{
    if (link->next == NULL)
        return;
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->next = link->prev = NULL;
}

/* Takes out the first, or returns NULL. */
static inline stg_link *stg_list_shift(stg_list *l)
{
    stg_link *link = stg_list_first(l);

    if (link == NULL)
        return NULL;
    // As stg_list_remove(), but an analyzer sees that l begins elsewhere now.
    l->ends.next = link->next;
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a list is a ring
    link->next->prev = &l->ends;
    link->next = link->prev = NULL;
    return link;
}

/* All of `from`, in their order, to the end of `to`. */
static inline void stg_list_move(stg_list *to, stg_list *from)
{
    stg_link *first = stg_list_first(from), *last = stg_list_last(from);

    if (first == NULL)
        return;
    first->prev = to->ends.prev;
    to->ends.prev->next = first;
    last->next = &to->ends;
    to->ends.prev = last;
    stg_list_init(from);
}

#endif
