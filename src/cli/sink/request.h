/* request.h - what `stagger sink` takes from a request as it is parsed. */
#ifndef STAGGER_CLI_SINK_REQUEST_H
#define STAGGER_CLI_SINK_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <llhttp.h>
#include <openssl/evp.h>

#include "cli/sink/log.h"

typedef enum sink_header {
    SINK_HEADER_OTHER,
    SINK_HEADER_MESSAGE,     /* Stagger-Message */
    SINK_HEADER_IDEMPOTENCY, /* Idempotency-Key */
    SINK_HEADER_KEY,         /* Stagger-Key */
    SINK_HEADER_EXPECT,
} sink_header;

enum { SINK_NAME_MAX = 16 };

typedef struct sink_request {
    llhttp_t parser;
    uint64_t path_hash, id_hash; /* FNV-1a */
    uint64_t size;               /* of the body */
    char name[SINK_NAME_MAX];    /* of a header, as far as it fits */
    size_t name_size;
    sink_header header;
    bool is_under_way;
    bool has_id;      /* of either header */
    bool has_message; /* the id is that of Stagger-Message, which wins */
    bool expects;     /* 100 Continue, not sent yet */
    bool is_last;     /* of its connection */
    bool has_digest;  /* there is a log: texts and digest are made */
    sink_text path, id, key;
    EVP_MD_CTX *digest;
} sink_request;

/* has_log: whether texts and digest are wanted. False: no memory. */
bool stg_sink_request_init(sink_request *r, bool has_log);
void stg_sink_request_close(sink_request *r);

typedef enum sink_parsed {
    SINK_PARSED_PART,    /* all bytes used, the request goes on */
    SINK_PARSED_REQUEST, /* it is whole */
    SINK_PARSED_BAD,     /* this is no HTTP */
} sink_parsed;

/* Reads on, up to the end of one request; *used bytes of it. */
sink_parsed stg_sink_request_parse(sink_request *r, const char *bytes,
                                   size_t size, size_t *used);

/* Of path and id: which delivery it is. */
uint64_t stg_sink_request_hash(const sink_request *r);

/* Writes the 32 bytes of the body's digest; has_digest. */
void stg_sink_request_digest(sink_request *r, unsigned char digest[32]);

#endif
