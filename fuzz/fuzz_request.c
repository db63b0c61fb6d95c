/* Any bytes for requests, in any pieces: the same requests however they are cut,
 * and nothing that a head or a body must not have.
 *
 * The first byte is the size of the pieces, the rest is what a client sends. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "http/header.h"
#include "http/request.h"

enum { HEAD_MAX = 2048 };

/* What is read of all requests, to be compared. */
typedef struct reading {
    stg_request request;
    uint64_t hash;
    unsigned requests;
    int refused; /* a status; 0: none was */
} reading;

static void note(reading *r, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        r->hash = (r->hash ^ (unsigned char)bytes[i]) * 1099511628211u;
}

/* Everything that a user of a head relies on. */
static void check_head(const stg_request *r)
{
    stg_span lines = r->parts[STG_PART_LINES], name, value;
    unsigned hosts = 0, lengths = 0;

    HOLDS(r->parts[STG_PART_METHOD].size > 0);
    HOLDS(r->parts[STG_PART_PATH].size > 0 || r->parts[STG_PART_QUERY].at);
    HOLDS(memchr(r->parts[STG_PART_PATH].at, '\0',
                 r->parts[STG_PART_PATH].size) == NULL);
    while (stg_request_line(&lines, &name, &value)) {
        HOLDS(stg_header_is_name(name) && stg_header_is_value(value));
        hosts += stg_header_equal(name, "Host");
        lengths += stg_header_equal(name, "Content-Length") ||
                   stg_header_equal(name, "Transfer-Encoding");
    }
    HOLDS(hosts == 1 || (hosts == 0 && r->is_old));
    HOLDS(lengths <= 1 && r->has_length == (lengths == 1));
    HOLDS(r->has_length || r->length == 0);
}

static void note_head(reading *r)
{
    check_head(&r->request);
    for (int i = 0; i < STG_PARTS; i++)
        note(r, r->request.parts[i].at, r->request.parts[i].size);
    note(r, r->request.is_last ? "1" : "0", 1);
    r->requests++;
}

/* False: all is read, or nothing more is. */
static bool take(reading *r, stg_span *in)
{
    stg_span piece;

    switch (stg_request_next(&r->request, in, &piece)) {
    case STG_REQUEST_HEAD:
        note_head(r);
        return true;
    case STG_REQUEST_BODY:
        HOLDS(piece.size > 0);
        note(r, piece.at, piece.size);
        return true;
    case STG_REQUEST_WHOLE:
        HOLDS(stg_request_is_whole(&r->request));
        note(r, "|", 1);
        stg_request_begin(&r->request);
        return true;
    case STG_REQUEST_REFUSED:
        r->refused = r->request.status;
        note(r, r->request.is_head ? "1" : "0", 1);
        HOLDS(r->refused >= 400 && r->refused < 600);
        HOLDS(r->request.why[0] != '\0');
        return false;
    default:
        HOLDS(in->size == 0);
        return false;
    }
}

static void read_all(reading *r, const uint8_t *data, size_t size, size_t step)
{
    *r = (reading){.hash = 14695981039346656037u};
    stg_request_init(&r->request, HEAD_MAX);
    while (size > 0 && r->refused == 0) {
        size_t part = size < step ? size : step;
        char *copy = malloc(part);
        stg_span in = {copy, part};

        HOLDS(copy != NULL);
        memcpy(copy, data, part);
        while (take(r, &in))
            ;
        HOLDS(stg_request_keep(&r->request));
        HOLDS(r->request.kept_size <= HEAD_MAX);
        free(copy);
        data += part;
        size -= part;
    }
    stg_request_close(&r->request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    reading whole, pieces;

    if (size < 2)
        return 0;
    read_all(&whole, data + 1, size - 1, size);
    read_all(&pieces, data + 1, size - 1, 1 + data[0] % 16);
    HOLDS(whole.requests == pieces.requests && whole.hash == pieces.hash);
    HOLDS(whole.refused == pieces.refused);
    return 0;
}
