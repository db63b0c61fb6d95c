#include "cli/sink/request.h"

#include <string.h>
#include <strings.h>

static uint64_t const HASH_BEGIN = 14695981039346656037ULL;
static uint64_t const HASH_PRIME = 1099511628211ULL;

/* Source: Fowler, Noll, Vo, FNV-1a. */
static uint64_t hash_on(uint64_t hash, const char *at, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)at[i]) * HASH_PRIME;
    return hash;
}

static sink_request *request_of(llhttp_t *parser)
{
    return parser->data;
}

static int on_begin(llhttp_t *parser)
{
    sink_request *r = request_of(parser);

    r->path_hash = r->id_hash = HASH_BEGIN;
    r->size = r->name_size = 0;
    r->path.size = r->id.size = r->key.size = 0;
    r->has_id = r->has_message = r->expects = false;
    r->is_under_way = true;
    // Once it has a type, it keeps it.
    if (r->has_digest && EVP_DigestInit_ex(r->digest, NULL, NULL) != 1)
        return -1;
    return 0;
}

static int on_url(llhttp_t *parser, const char *at, size_t size)
{
    sink_request *r = request_of(parser);

    r->path_hash = hash_on(r->path_hash, at, size);
    if (r->has_digest)
        stg_sink_text_add(&r->path, at, size);
    return 0;
}

static int on_name(llhttp_t *parser, const char *at, size_t size)
{
    sink_request *r = request_of(parser);

    if (size <= sizeof r->name && r->name_size <= sizeof r->name - size)
        memcpy(r->name + r->name_size, at, size);
    r->name_size += size;
    return 0;
}

static bool is_name(const sink_request *r, const char *name)
{
    return r->name_size == strlen(name) &&
           strncasecmp(r->name, name, r->name_size) == 0;
}

static sink_header find_header(const sink_request *r)
{
    if (is_name(r, "stagger-message"))
        return SINK_HEADER_MESSAGE;
    if (is_name(r, "idempotency-key"))
        return SINK_HEADER_IDEMPOTENCY;
    if (is_name(r, "stagger-key"))
        return SINK_HEADER_KEY;
    return is_name(r, "expect") ? SINK_HEADER_EXPECT : SINK_HEADER_OTHER;
}

static int on_name_end(llhttp_t *parser)
{
    sink_request *r = request_of(parser);

    r->header = find_header(r);
    r->name_size = 0;
    if (r->header == SINK_HEADER_MESSAGE) {
        r->id_hash = HASH_BEGIN;
        r->id.size = 0;
        r->has_message = true;
    }
    return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t size)
{
    sink_request *r = request_of(parser);

    if (r->header == SINK_HEADER_KEY && r->has_digest)
        stg_sink_text_add(&r->key, at, size);
    if (r->header == SINK_HEADER_EXPECT)
        r->expects = true;
    if (r->header == SINK_HEADER_MESSAGE ||
        (r->header == SINK_HEADER_IDEMPOTENCY && !r->has_message)) {
        r->has_id = r->has_id || size > 0;
        r->id_hash = hash_on(r->id_hash, at, size);
        if (r->has_digest)
            stg_sink_text_add(&r->id, at, size);
    }
    return 0;
}

/* What a client would like to upgrade to is not what we speak. */
static int on_headers_end(llhttp_t *parser)
{
    parser->upgrade = 0;
    return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t size)
{
    sink_request *r = request_of(parser);

    r->size += size;
    if (r->has_digest && EVP_DigestUpdate(r->digest, at, size) != 1)
        return -1;
    return 0;
}

/* To a client of HTTP/1.0 keep-alive would have to be said. */
static int on_end(llhttp_t *parser)
{
    sink_request *r = request_of(parser);

    r->is_under_way = false;
    r->is_last = llhttp_should_keep_alive(parser) == 0 ||
                 llhttp_get_http_minor(parser) == 0;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_begin,
    .on_url = on_url,
    .on_header_field = on_name,
    .on_header_field_complete = on_name_end,
    .on_header_value = on_value,
    .on_headers_complete = on_headers_end,
    .on_body = on_body,
    .on_message_complete = on_end,
};

bool stg_sink_request_init(sink_request *r, bool has_log)
{
    r->is_under_way = false;
    r->has_digest = has_log;
    r->name_size = 0;
    r->digest = has_log ? EVP_MD_CTX_new() : NULL;
    llhttp_init(&r->parser, HTTP_REQUEST, &settings);
    r->parser.data = r;
    return !has_log || (r->digest != NULL &&
                        EVP_DigestInit_ex(r->digest, EVP_sha256(), NULL) == 1);
}

void stg_sink_request_close(sink_request *r)
{
    EVP_MD_CTX_free(r->digest);
    r->digest = NULL;
}

sink_parsed stg_sink_request_parse(sink_request *r, const char *bytes,
                                   size_t size, size_t *used)
{
    switch (llhttp_execute(&r->parser, bytes, size)) {
    case HPE_OK:
        *used = size;
        return SINK_PARSED_PART;
    case HPE_PAUSED:
        *used = (size_t)(llhttp_get_error_pos(&r->parser) - bytes);
        llhttp_resume(&r->parser);
        return SINK_PARSED_REQUEST;
    default:
        *used = size;
        return SINK_PARSED_BAD;
    }
}

uint64_t stg_sink_request_hash(const sink_request *r)
{
    uint64_t hash = r->path_hash;

    // One after the other and well mixed: two FNVs that are added up collide
    // as soon as there are some hundred thousand of them.
    hash = (hash ^ hash >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    hash += r->id_hash;
    hash = (hash ^ hash >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    return hash ^ hash >> 32;
}

void stg_sink_request_digest(sink_request *r, unsigned char digest[32])
{
    unsigned size = 32;

    EVP_DigestFinal_ex(r->digest, digest, &size);
}
