#include <assert.h>
#include <string.h>

#include "flow/positions.h"

size_t stg_positions_append(stg_positions *list, size_t count, uint64_t first,
                            uint64_t end)
{
    if (first >= end)
        return count;
    if (count > 0 && first <= list[count - 1].last + 1) {
        assert(first >= list[count - 1].first);
        if (list[count - 1].last < end - 1)
            list[count - 1].last = end - 1;
        return count;
    }
    list[count] = (stg_positions){first, end - 1};
    return count + 1;
}

/* The first that ends at the position, or behind it. */
static size_t find(const stg_positions *list, size_t count, uint64_t position)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (list[middle].last < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void drop(stg_positions *list, size_t count, size_t at)
{
    memmove(list + at, list + at + 1, (count - at - 1) * sizeof *list);
}

size_t stg_positions_insert(stg_positions *list, size_t count,
                            uint64_t position)
{
    size_t at = find(list, count, position);
    bool joins_last = at > 0 && list[at - 1].last + 1 == position;
    bool joins_next = at < count && position + 1 >= list[at].first;

    if (joins_last && joins_next) {
        list[at - 1].last = list[at].last;
        drop(list, count, at);
        return count - 1;
    }
    if (joins_last) {
        list[at - 1].last = position;
        return count;
    }
    if (joins_next) {
        if (list[at].first > position)
            list[at].first = position;
        return count;
    }
    memmove(list + at + 1, list + at, (count - at) * sizeof *list);
    list[at] = (stg_positions){position, position};
    return count + 1;
}

bool stg_positions_are_sound(const stg_positions *list, size_t count,
                             uint64_t base)
{
    uint64_t least = base;

    for (size_t i = 0; i < count; i++) {
        if (list[i].first < least || list[i].last < list[i].first)
            return false;
        least = list[i].last + 2;
    }
    return true;
}

bool stg_positions_have(const stg_positions *list, size_t count,
                        uint64_t position)
{
    size_t at = find(list, count, position);

    return at < count && list[at].first <= position;
}

uint64_t stg_positions_missing(const stg_positions *list, size_t count,
                               uint64_t from, uint64_t end, uint64_t *first)
{
    uint64_t missing = 0;

    for (size_t i = find(list, count, from); from < end; i++) {
        uint64_t stop = i < count && list[i].first < end ? list[i].first : end;

        if (stop > from) {
            if (missing == 0)
                *first = from;
            missing += stop - from;
        }
        if (stop == end)
            break;
        from = list[i].last + 1;
    }
    return missing;
}
