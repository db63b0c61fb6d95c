/* template.h - a path or a header's value that is made of each message:
 * "/users/{body.user.id}?topic={topic}".
 *
 *     {id} {key} {topic}   of the message
 *     {header.NAME}        one of its headers that are kept
 *     {body.NAME.NAME}     of a body that is JSON: a text, a number or a bool
 *     {{                   a brace
 *
 * A value is encoded for its place: in a path and a query all but unreserved
 * characters (RFC 3986, section 2.3) are percent-encoded. What is missing, has no
 * one text, or would change the shape of the path is an error, in words. Pure;
 * values lie in the message. */
#ifndef STAGGER_HTTP_TEMPLATE_H
#define STAGGER_HTTP_TEMPLATE_H

#include <stdbool.h>
#include <string.h>

#include "base/span.h"
#include "base/text.h"

typedef enum stg_template_place {
    STG_TEMPLATE_PATH, /* and the query behind it */
    STG_TEMPLATE_HEADER,
} stg_template_place;

typedef struct stg_template_message {
    stg_span id, topic, key; /* size 0: it has none */
    stg_span content_type, headers, body;
    stg_span root; /* the body's value, once one was taken of it; NULL: none */
} stg_template_message;

enum { STG_TEMPLATE_FLAW_MAX = 256 };

static inline bool stg_template_is(const char *text)
{
    return strchr(text, '{') != NULL;
}

/* Whether what is in braces can be a value of some message. */
bool stg_template_check(const char *text, char flaw[STG_TEMPLATE_FLAW_MAX]);

/* Adds the text as it is for a message. False: it cannot be made of it, and why
 * is in flaw: "body.user.id is missing". */
bool stg_template_put(stg_text *to, const char *text, stg_template_place place,
                      stg_template_message *m,
                      char flaw[STG_TEMPLATE_FLAW_MAX]);

#endif
