/* What a target's templates are filled in with: the parcel, and the message's id,
 * which in Kafka has the topic in it. */
#include "hub/attempt.h"

#include <stdlib.h>
#include <string.h>

#include "http/url.h"

/* Of "TOPIC.PARTITION.OFFSET"; size 0: the queue has none. */
static stg_span topic_of(stg_span id)
{
    size_t size = id.size, dots = 0;

    while (size > 0 && dots < 2)
        dots += id.at[--size] == '.';
    return (stg_span){id.at, dots == 2 ? size : 0};
}

static bool fill_path(stg_filled *f, const char *text, stg_template_message *m,
                      char flaw[STG_TEMPLATE_FLAW_MAX])
{
    stg_url url;

    if (!stg_template_is(text) || stg_url_parse(&url, text, NULL) != STG_OK)
        return true;
    if (url.path.at[0] != '/')
        stg_text_put(&f->path, "/");
    return stg_template_put(&f->path, url.path.at, STG_TEMPLATE_PATH, m, flaw);
}

static bool fill_header(stg_filled *f, const stg_header_setting *h,
                        stg_template_message *m,
                        char flaw[STG_TEMPLATE_FLAW_MAX])
{
    stg_text_put(&f->headers, h->name);
    stg_text_put(&f->headers, ": ");
    if (!stg_template_put(&f->headers, h->value, STG_TEMPLATE_HEADER, m, flaw))
        return false;
    stg_text_put(&f->headers, "\r\n");
    return true;
}

/* A text that is short of memory is found at the end: the flaw is "" then. */
bool stg_fill(stg_filled *f, const stg_target_settings *s, stg_span id,
              const stg_parcel *p, char flaw[STG_TEMPLATE_FLAW_MAX])
{
    stg_template_message m = {.id = id,
                              .topic = topic_of(id),
                              .key = p->key,
                              .content_type = p->content_type,
                              .headers = p->headers,
                              .body = p->body};
    bool is_filled;

    is_filled = fill_path(f, s->url, &m, flaw);
    for (size_t i = 0; is_filled && i < s->header_count; i++)
        if (stg_header_is_template(&s->headers[i]))
            is_filled = fill_header(f, &s->headers[i], &m, flaw);
    if (!is_filled)
        return false;
    flaw[0] = '\0';
    return !f->path.is_short && !f->headers.is_short;
}

void stg_filled_free(stg_filled *f)
{
    if (f == NULL)
        return;
    stg_text_free(&f->path);
    stg_text_free(&f->headers);
    free(f);
}
