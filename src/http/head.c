#include "http/head.h"

#include <string.h>

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
