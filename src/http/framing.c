/* Two state machines over bytes: the end of a head, and chunked bodies.
 *
 * Both take pieces of any size and keep only their state, so where the pieces
 * are cut changes nothing. Trailers are read by the machine for heads. */
#include "http/framing.h"

#include <stdbool.h>
#include <string.h>

#include "base/digits.h"

/* The rest of a line, up to its CR or to the end of the bytes. */
static const char *read_line(uint8_t *scan, const char *at, const char *end)
{
    const char *cr = memchr(at, '\r', (size_t)(end - at));
    const char *stop = cr != NULL ? cr : end;

    if (memchr(at, '\n', (size_t)(stop - at)) != NULL)
        *scan = STG_HEAD_BARE;
    else
        *scan = cr != NULL ? STG_HEAD_CR : STG_HEAD_LINE;
    return cr != NULL ? cr + 1 : end;
}

static uint8_t begin_line(char c)
{
    if (c == '\r')
        return STG_HEAD_LAST_CR;
    return c == ' ' || c == '\t' ? STG_HEAD_FOLDED : STG_HEAD_LINE;
}

/* A line ends in CR LF and nothing else. A bare LF, a CR without its LF and a
 * folded line stop the machine in a state that says so. */
size_t stg_head_read(uint8_t *scan, const char *bytes, size_t size)
{
    const char *at = bytes, *end = bytes + size;

    while (at < end && *scan < STG_HEAD_ENDED) {
        switch (*scan) {
        case STG_HEAD_CR:
        case STG_HEAD_LAST_CR:
            if (*at++ != '\n')
                *scan = STG_HEAD_BARE;
            else
                *scan = *scan == STG_HEAD_CR ? STG_HEAD_NEXT : STG_HEAD_ENDED;
            break;
        case STG_HEAD_NEXT:
            *scan = begin_line(*at);
            at += *scan == STG_HEAD_LAST_CR;
            break;
        default:
            at = read_line(scan, at, end);
        }
    }
    return (size_t)(at - bytes);
}

/* stg_chunks.state: what comes next. */
enum {
    SIZE,      /* the first digit */
    DIGITS,    /* another one, or what follows them */
    BLANK,     /* before an extension, or the end of the line */
    EXTENSION, /* up to the end of the line */
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILERS,
    ENDED,
    WRONG_SIZE, /* from here on: errors */
    WRONG_LINE,
    WRONG_END,
    WRONG_TRAILER,
    TOO_LONG,
};

void stg_chunks_begin(stg_chunks *c)
{
    *c = (stg_chunks){.state = SIZE};
}

const char *stg_chunks_why(const stg_chunks *c)
{
    switch (c->state) {
    case WRONG_SIZE:
        return "a chunk without a size in hexadecimal digits, below 2^63";
    case WRONG_LINE:
        return "a chunk's size line that does not end in CR LF";
    case WRONG_END:
        return "a chunk that does not end where its size says";
    case WRONG_TRAILER:
        return "a trailer that is no header line";
    case TOO_LONG:
        return "the extensions of a chunk, or the trailers, are too long";
    default:
        return "";
    }
}

/* -- the size line --------------------------------------------------------- */

/* Sizes stay below 2^63: `left` shifted once more would lose its highest
 * bits. */
static uint8_t add_digit(stg_chunks *c, int digit)
{
    if (c->left > (INT64_MAX >> 4))
        return WRONG_SIZE;
    c->left = c->left << 4 | (uint64_t)digit;
    return DIGITS;
}

/* Behind the digits. Blanks before an extension are allowed to whoever reads. */
static uint8_t follow_size(const stg_chunks *c, char byte)
{
    if (byte == '\r')
        return SIZE_LF;
    if (byte == ';')
        return EXTENSION;
    if (byte == ' ' || byte == '\t')
        return BLANK;
    return c->state == DIGITS ? WRONG_SIZE : WRONG_LINE;
}

static uint8_t read_extension(char byte)
{
    unsigned char c = (unsigned char)byte;

    if (byte == '\r')
        return SIZE_LF;
    return (c < ' ' && byte != '\t') || c == 0x7f ? WRONG_LINE : EXTENSION;
}

/* Counts the bytes of the size line, extensions included: nobody may send one
 * without an end. */
static uint8_t read_size(stg_chunks *c, char byte)
{
    int digit = stg_hex_digit(byte);

    if (++c->extra > STG_CHUNK_LINE_MAX)
        return TOO_LONG;
    switch (c->state) {
    case SIZE:
        c->left = 0;
        return digit < 0 ? WRONG_SIZE : add_digit(c, digit);
    case DIGITS:
        return digit < 0 ? follow_size(c, byte) : add_digit(c, digit);
    case BLANK:
        return follow_size(c, byte);
    case EXTENSION:
        return read_extension(byte);
    default: // SIZE_LF
        if (byte != '\n')
            return WRONG_LINE;
        c->extra = 0;
        c->scan = STG_HEAD_NEXT; // of trailers, if this was the last chunk
        return c->left > 0 ? DATA : TRAILERS;
    }
}

/* -- the data and the trailers --------------------------------------------- */

static stg_span take_data(stg_chunks *c, stg_span *in)
{
    size_t size = in->size < c->left ? in->size : (size_t)c->left;
    stg_span piece = {in->at, size};

    in->at += size;
    in->size -= size;
    c->left -= size;
    if (c->left == 0)
        c->state = DATA_CR;
    return piece;
}

static void end_data(stg_chunks *c, stg_span *in)
{
    bool is_right = *in->at == (c->state == DATA_CR ? '\r' : '\n');

    in->at++;
    in->size--;
    if (!is_right)
        c->state = WRONG_END;
    else
        c->state = c->state == DATA_CR ? DATA_LF : SIZE;
}

/* They are dropped, and nobody reads their names. */
static void read_trailers(stg_chunks *c, stg_span *in)
{
    size_t size = stg_head_read(&c->scan, in->at, in->size);

    c->extra += (uint32_t)(size < STG_TRAILERS_MAX ? size : STG_TRAILERS_MAX);
    if (c->scan > STG_HEAD_ENDED || memchr(in->at, '\0', size) != NULL)
        c->state = WRONG_TRAILER;
    else if (c->extra >= STG_TRAILERS_MAX)
        c->state = TOO_LONG;
    else if (c->scan == STG_HEAD_ENDED)
        c->state = ENDED;
    in->at += size;
    in->size -= size;
}

/* The data of one chunk may come as several pieces, each where it lies in
 * `in`. */
stg_chunks_event stg_chunks_next(stg_chunks *c, stg_span *in, stg_span *piece)
{
    while (c->state < ENDED && in->size > 0) {
        if (c->state == DATA) {
            *piece = take_data(c, in);
            return STG_CHUNKS_PIECE;
        }
        if (c->state < DATA) {
            c->state = read_size(c, *in->at);
            in->at++;
            in->size--;
        } else if (c->state == TRAILERS) {
            read_trailers(c, in);
        } else {
            end_data(c, in);
        }
    }
    if (c->state < ENDED)
        return STG_CHUNKS_MORE;
    return c->state == ENDED ? STG_CHUNKS_WHOLE : STG_CHUNKS_BROKEN;
}
