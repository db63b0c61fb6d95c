/* An answer's bytes through llhttp, which is given the head only as far as we
 * have scanned it: some of its versions take a bare CR or LF for the end of a
 * line, and they differ about where a head ends. */
#include "http/answer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/framing.h"

/* stg_answer.header: a stg_delay_header, or none of them */
enum { OTHER = STG_DELAY_HEADERS };

/* The framing of a body in chunks of one byte is five times the body. */
enum { FRAMING_TIMES = 8, FRAMING_MAX = 64 * 1024, UNREADABLE = UINT8_MAX };

static stg_answer *answer_of(llhttp_t *parser)
{
    return parser->data;
}

static int refuse(stg_answer *a, const char *why)
{
    a->state = STG_ANSWER_BROKEN;
    a->why = why;
    return -1;
}

/* -- the headers that we need ---------------------------------------------- */

/* Kept in lower case, and only as far as the longest name that is looked
 * for. */
static int take_name(llhttp_t *parser, const char *at, size_t size)
{
    stg_answer *a = answer_of(parser);

    for (size_t i = 0; i < size; i++) {
        if (a->name_size == sizeof a->name)
            return 0; // longer than those that we look for
        a->name[a->name_size++] =
            at[i] >= 'A' && at[i] <= 'Z' ? (char)(at[i] - 'A' + 'a') : at[i];
    }
    return 0;
}

static uint8_t header_of(const stg_answer *a)
{
    stg_delay_header header;
    const char *name;

    if (strchr("drx", a->name[0]) == NULL) // as nearly all begin otherwise
        return OTHER;
    for (size_t i = 0; (name = stg_delay_name(i, &header)) != NULL; i++)
        if (strlen(name) == a->name_size &&
            strncasecmp(a->name, name, a->name_size) == 0)
            return (uint8_t)header;
    return OTHER;
}

/* Of a header that comes twice the first counts; trailers do not. */
static int end_name(llhttp_t *parser)
{
    stg_answer *a = answer_of(parser);

    if (a->name_size == 0)
        return refuse(a, "a header has no name");
    a->header = a->is_in_body ? (uint8_t)OTHER : header_of(a);
    if (a->header != OTHER && a->values[a->header].size > 0)
        a->header = OTHER;
    a->name_size = 0;
    return 0;
}

static int take_value(llhttp_t *parser, const char *at, size_t size)
{
    stg_answer *a = answer_of(parser);

    if (a->header == OTHER || a->values[a->header].size == UNREADABLE)
        return 0;
    // A byte stays for the terminator; none of one limit is that long.
    if (size >= sizeof a->values->text - a->values[a->header].size) {
        a->values[a->header].size = UNREADABLE;
        return 0;
    }
    memcpy(a->values[a->header].text + a->values[a->header].size, at, size);
    a->values[a->header].size =
        (uint8_t)(a->values[a->header].size + (uint8_t)size);
    return 0;
}

/* -- the message ----------------------------------------------------------- */

/* 101 is refused, for the request asked for no upgrade: what follows would be
 * another protocol (RFC 9110, section 15.2.2). */
static int end_head(llhttp_t *parser)
{
    stg_answer *a = answer_of(parser);
    int status = llhttp_get_status_code(parser);

    if (llhttp_get_http_major(parser) != 1)
        return refuse(a, "it is not of HTTP/1");
    if (status == 101)
        return refuse(a, "101 to a request that asked for no other protocol");
    if (status < 100 || status > 599)
        return refuse(a, "the status is not 100 to 599");
    a->status = (uint16_t)status;
    a->is_in_body = true;
    // 1: there is no body, whatever the headers say.
    return a->is_to_head || status < 200 || status == 204 || status == 304;
}

/* The body is counted up to body_max and not kept; an excerpt of it is.
 * Without memory for the excerpt the answer is as good as with it. */
static int take_body(llhttp_t *parser, const char *at, size_t size)
{
    stg_answer *a = answer_of(parser);
    size_t room = a->body_max - (size_t)a->body_size;
    size_t taken = size < room ? size : room;
    size_t shown = a->excerpt_max - a->excerpt_size;

    if (shown > taken)
        shown = taken;
    if (shown > 0 && a->excerpt == NULL)
        a->excerpt = malloc(a->excerpt_max);
    if (shown > 0 && a->excerpt != NULL) {
        memcpy(a->excerpt + a->excerpt_size, at, shown);
        a->excerpt_size += shown;
    }
    a->body_size += taken;
    if (taken == size)
        return 0;
    a->state = STG_ANSWER_CUT;
    return -1;
}

/* Pauses the parser: bytes behind the answer belong to none, and are not
 * parsed. */
static int end_message(llhttp_t *parser)
{
    stg_answer *a = answer_of(parser);

    a->state = STG_ANSWER_WHOLE;
    a->keeps_alive = llhttp_should_keep_alive(parser) != 0;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_header_field = take_name,
    .on_header_field_complete = end_name,
    .on_header_value = take_value,
    .on_headers_complete = end_head,
    .on_body = take_body,
    .on_message_complete = end_message,
};

static void begin_head(stg_answer *a)
{
    llhttp_init(&a->parser, HTTP_RESPONSE, &settings);
    a->parser.data = a;
    a->state = STG_ANSWER_OPEN;
    a->scan = STG_HEAD_START;
    a->status = 0;
    a->is_in_body = false;
    a->name_size = 0;
    a->header = OTHER;
    for (int i = 0; i < OTHER; i++)
        a->values[i].size = 0;
}

/* -- bytes ----------------------------------------------------------------- */

/* How many of the bytes belong to the head, which may end with them. llhttp
 * knows the end too, but some of its versions take a bare CR or LF for the end
 * of a line, and each ends a head where it likes: so what it is given is cut
 * here. Returns 0 for what is refused. */
static size_t scan_head(stg_answer *a, const char *bytes, size_t size)
{
    size_t taken;

    if (a->scan == STG_HEAD_START && *bytes != 'H')
        return 0; // an empty line before it is no part of it
    taken = stg_head_read(&a->scan, bytes, size);
    return a->scan <= STG_HEAD_ENDED ? taken : 0;
}

/* Runs the parser, and sets state and why where it stops for a reason of its
 * own. Returns the bytes it took. */
static size_t run(stg_answer *a, const char *bytes, size_t size)
{
    llhttp_errno_t error = llhttp_execute(&a->parser, bytes, size);

    if (error == HPE_OK)
        return size;
    if (a->state == STG_ANSWER_OPEN) {
        const char *why = llhttp_get_error_reason(&a->parser);

        (void)refuse(a, why != NULL && *why != '\0' ? why : "no HTTP");
    }
    if (a->state != STG_ANSWER_WHOLE)
        return size;
    return (size_t)(llhttp_get_error_pos(&a->parser) - bytes);
}

/* A head was cut off by us where it ends: llhttp must see it so too. */
static void settle_head(stg_answer *a)
{
    if (a->state != STG_ANSWER_BROKEN && !a->is_in_body)
        (void)refuse(a, "the head is no HTTP");
    if (a->state == STG_ANSWER_BROKEN || a->status >= 200)
        return;
    if (++a->interims > STG_ANSWER_INTERIMS_MAX)
        (void)refuse(a, "more than 16 interim answers (1xx)");
    else
        begin_head(a);
}

/* The head is scanned for what llhttp lets pass but two readers could read
 * differently, before llhttp has it. */
static size_t feed_head(stg_answer *a, const char *bytes, size_t size)
{
    size_t taken = scan_head(a, bytes, size);

    if (taken == 0) {
        (void)refuse(a, "a line of the head that is no line of HTTP");
        return size;
    }
    a->head_size += (uint32_t)taken;
    if (a->head_size > STG_ANSWER_HEAD_MAX) {
        (void)refuse(a, "the head is longer than 64 KiB");
        return size;
    }
    (void)run(a, bytes, taken);
    if (a->scan == STG_HEAD_ENDED)
        settle_head(a);
    else if (a->is_in_body)
        (void)refuse(a, "the head is no HTTP");
    return taken;
}

static size_t feed_body(stg_answer *a, const char *bytes, size_t size)
{
    size_t taken = run(a, bytes, size);

    if (a->state == STG_ANSWER_OPEN &&
        (a->size - a->body_size) / FRAMING_TIMES >
            a->body_max + FRAMING_MAX / FRAMING_TIMES)
        // Framing that outweighs the body by far.
        a->state = STG_ANSWER_CUT; // chunks, extensions or trailers
    return taken;
}

void stg_answer_begin(stg_answer *a, size_t body_max, size_t excerpt_max,
                      bool is_to_head)
{
    a->interims = 0;
    a->is_to_head = is_to_head;
    a->keeps_alive = false;
    a->has_leftover = false;
    a->head_size = 0;
    a->body_max = body_max;
    a->excerpt_max = excerpt_max;
    a->size = 0;
    a->body_size = 0;
    a->excerpt = NULL;
    a->excerpt_size = 0;
    a->why = "";
    begin_head(a);
}

stg_answer_state stg_answer_feed(stg_answer *a, const char *bytes, size_t size)
{
    a->size += size;
    while (size > 0 && a->state == STG_ANSWER_OPEN) {
        size_t taken = a->is_in_body ? feed_body(a, bytes, size)
                                     : feed_head(a, bytes, size);

        bytes += taken;
        size -= taken;
    }
    if (size > 0)
        a->has_leftover = true;
    return a->state;
}

/* Only a body that has neither a length nor chunks is whole at the end of the
 * connection, and only where that end can be trusted: through TLS a bare end
 * of TCP is a cut. */
stg_answer_state stg_answer_end(stg_answer *a, bool is_in_order)
{
    if (a->state != STG_ANSWER_OPEN)
        return a->state;
    if (is_in_order && a->is_in_body && llhttp_message_needs_eof(&a->parser))
        a->state = STG_ANSWER_WHOLE;
    else
        (void)refuse(a, "it is cut short");
    a->keeps_alive = false;
    return a->state;
}

/* The value as a string, or NULL. */
static const char *value_of(const stg_answer *a, int header,
                            char text[sizeof a->values->text])
{
    uint8_t size = a->values[header].size;

    if (size == 0 || size == UNREADABLE)
        return NULL;
    memcpy(text, a->values[header].text, size);
    text[size] = '\0';
    return text;
}

stg_ns stg_answer_delay(const stg_answer *a, int64_t wall_s)
{
    char texts[STG_DELAY_HEADERS][sizeof a->values->text];
    stg_delay_headers h = {.status = a->status};

    for (int i = 0; i < STG_DELAY_HEADERS; i++)
        stg_delay_note(&h, (stg_delay_header)i, value_of(a, i, texts[i]));
    return stg_delay_read(&h, wall_s);
}

char *stg_answer_take_excerpt(stg_answer *a, size_t *size)
{
    char *excerpt = a->excerpt;

    *size = a->excerpt_size;
    a->excerpt = NULL;
    a->excerpt_size = 0;
    return excerpt;
}

/* The parser points to its owner, which is the copy from here on. The excerpt
 * changes hands. */
stg_answer *stg_answer_copy(stg_answer *a)
{
    stg_answer *copy = malloc(sizeof *copy);

    if (copy == NULL)
        return NULL;
    *copy = *a;
    copy->parser.data = copy;
    a->excerpt = NULL;
    a->excerpt_size = 0;
    return copy;
}

void stg_answer_close(stg_answer *a)
{
    free(a->excerpt);
    a->excerpt = NULL;
}
