/* Questions about letters: pages of them, and one whole. Each is a request of
 * the query thread; what is found is the request's, and is lent to done(). */
#include <stdlib.h>

#include "store/internal.h"
#include "store/query.h"

enum { ROWS_MAX = 1000 };

/* -- pages ----------------------------------------------------------------- */

typedef struct page {
    stg_store_request request;
    stg_filter filter;
    uint64_t after;
    size_t rows_max;
    bool is_newest_first;
    stg_found found;
    stg_letters_fn *done;
    void *ctx;
} page;

/* Runs again from the start where a server went away: the page is emptied
 * first. */
static int look_page(stg_store_request *e, stg_db *db)
{
    page *p = STG_HOLDER(&e->link, page, request.link);

    return stg_find_page(db, &p->filter, p->after, p->rows_max,
                         p->is_newest_first, &p->found);
}

static void tell_page(stg_store_request *e)
{
    page *p = STG_HOLDER(&e->link, page, request.link);

    p->done(p->ctx, p->found.letters, p->found.count, p->found.next);
}

static void free_page(stg_store_request *e)
{
    page *p = STG_HOLDER(&e->link, page, request.link);

    stg_filter_free(&p->filter);
    stg_found_free(&p->found);
    free(p);
}

/* rows_max is cut to 1000: a page is held in memory as a whole. */
void stg_store_letters(stg_store *s, const stg_letter_filter *f, uint64_t after,
                       uint32_t rows_max, bool is_newest_first,
                       stg_letters_fn *done, void *ctx)
{
    page *p = calloc(1, sizeof *p);

    if (p == NULL || !stg_filter_copy(&p->filter, f)) {
        if (p != NULL)
            free_page(&p->request);
        stg_store_lack_memory(s);
        return;
    }
    p->request.look = look_page;
    p->request.tell = tell_page;
    p->request.free = free_page;
    p->after = after;
    p->rows_max = rows_max < 1 ? 1 : rows_max > ROWS_MAX ? ROWS_MAX : rows_max;
    p->is_newest_first = is_newest_first;
    p->done = done;
    p->ctx = ctx;
    stg_store_request_send(s, &p->request);
}

/* -- one ------------------------------------------------------------------- */

typedef struct one {
    stg_store_request request;
    uint64_t id;
    stg_found found;
    stg_letter_fn *done;
    void *ctx;
} one;

static int look_one(stg_store_request *e, stg_db *db)
{
    one *o = STG_HOLDER(&e->link, one, request.link);

    return stg_find_one(db, o->id, &o->found);
}

static void tell_one(stg_store_request *e)
{
    one *o = STG_HOLDER(&e->link, one, request.link);

    o->done(o->ctx, o->found.count == 0 ? NULL : o->found.letters);
}

static void free_one(stg_store_request *e)
{
    one *o = STG_HOLDER(&e->link, one, request.link);

    stg_found_free(&o->found);
    free(o);
}

void stg_store_letter(stg_store *s, uint64_t id, stg_letter_fn *done, void *ctx)
{
    one *o = calloc(1, sizeof *o);

    if (o == NULL) {
        stg_store_lack_memory(s);
        return;
    }
    o->request.look = look_one;
    o->request.tell = tell_one;
    o->request.free = free_one;
    o->id = id;
    o->done = done;
    o->ctx = ctx;
    stg_store_request_send(s, &o->request);
}
