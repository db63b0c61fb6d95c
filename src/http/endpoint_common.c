/* What endpoints of the same options have in common, which is kept once: hubs have
 * thousands of targets with the same timeouts and limits. */
#include <stdlib.h>
#include <string.h>

#include "core/writer.h"
#include "http/internal.h"

stg_status stg_endpoint_source_read(const char *text, stg_address *source,
                                    stg_error *err)
{
    memset(source, 0, sizeof *source); // AF_UNSPEC
    if (text == NULL || uv_ip4_addr(text, 0, &source->v4) == 0 ||
        uv_ip6_addr(text, 0, &source->v6) == 0)
        return STG_OK;
    return stg_refuse(err, "source: expected an IP address");
}

stg_endpoint_common stg_endpoint_common_of(const stg_endpoint_options *o)
{
    stg_endpoint_common c = {.idle_count_max = o->idle_count_max,
                             .resolve_timeout = o->resolve_timeout,
                             .connect_timeout = o->connect_timeout,
                             .tls_timeout = o->tls_timeout,
                             .write_timeout = o->write_timeout,
                             .first_byte_timeout = o->first_byte_timeout,
                             .idle_max = o->idle_max,
                             .age_max = o->age_max,
                             .answer_max = o->answer_max,
                             .excerpt_max = o->excerpt_max};

    (void)stg_endpoint_source_read(o->source, &c.source, NULL);
    return c;
}

/* All of a union that began as zeros. */
static bool has_same_source(const stg_endpoint_common *a,
                            const stg_endpoint_common *b)
{
    // NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c)
    return memcmp(&a->source, &b->source, sizeof a->source) == 0;
}

bool stg_endpoint_common_matches(const stg_endpoint_common *a,
                                 const stg_endpoint_common *b)
{
    return a->resolve_timeout == b->resolve_timeout &&
           a->connect_timeout == b->connect_timeout &&
           a->tls_timeout == b->tls_timeout &&
           a->write_timeout == b->write_timeout &&
           a->first_byte_timeout == b->first_byte_timeout &&
           a->idle_max == b->idle_max && a->age_max == b->age_max &&
           a->answer_max == b->answer_max && a->excerpt_max == b->excerpt_max &&
           a->idle_count_max == b->idle_count_max && has_same_source(a, b);
}

/* NULL: no memory. */
stg_endpoint_common *stg_endpoint_common_take(stg_list *commons,
                                              const stg_endpoint_options *o)
{
    stg_endpoint_common like = stg_endpoint_common_of(o), *c;

    for (stg_link *at = stg_list_first(commons); at != NULL;
         at = stg_list_next(commons, at)) {
        c = STG_HOLDER(at, stg_endpoint_common, link);
        if (stg_endpoint_common_matches(c, &like)) {
            c->users++;
            return c;
        }
    }
    c = malloc(sizeof *c);
    if (c == NULL)
        return NULL;
    *c = like;
    c->users = 1;
    stg_list_unshift(commons, &c->link);
    return c;
}

void stg_endpoint_common_give_back(stg_endpoint_common *c)
{
    if (--c->users > 0)
        return;
    stg_list_remove(&c->link);
    free(c);
}
