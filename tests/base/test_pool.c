#include "base/memory.h"

#include <stdlib.h>

#include "tests/harness.h"

/* Some more than it keeps. */
enum { MANY = STG_POOL_MAX + 3 };

TEST(pool, gives_back_the_last_first_and_keeps_no_more_than_it_may)
{
    stg_pool p = {.first = NULL};
    void *pieces[MANY];

    for (int i = 0; i < MANY; i++) {
        pieces[i] = malloc(sizeof(stg_pool_piece));
        CHECK(pieces[i] != NULL);
        CHECK(stg_pool_give(&p, pieces[i]) == (i < STG_POOL_MAX));
    }
    for (int i = STG_POOL_MAX - 1; i >= 0; i--)
        CHECK(stg_pool_take(&p) == pieces[i]);
    CHECK(stg_pool_take(&p) == NULL);
    CHECK_U64(p.count, 0);
    for (int i = 0; i < MANY; i++)
        free(pieces[i]);
}
