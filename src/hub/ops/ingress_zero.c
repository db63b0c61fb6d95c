/* Zeros in a header. libmicrohttpd reads lines up to CR LF, puts zeros for both,
 * and from then on every text ends at its first zero: "a\0b" is "a", and two
 * keys were one.
 *
 * But it copies nothing: method, URI, version, names and values lie one behind
 * the other where they were read, and header_size says where the last line
 * ends. So each line has to begin right behind the one before: with one byte
 * between, or two, which were its end. A zero in a line makes them more. (A zero
 * right before a bare LF is taken for a CR: the line ends there either way.)
 *
 * Later versions refuse zeros themselves. */
#include <stdint.h>
#include <string.h>

#include "hub/ops/ingress_inside.h"

typedef struct lines {
    const char *end; /* of the line before; its first zero */
    bool is_odd;
} lines;

static bool is_right_behind(const char *next, const char *end, ptrdiff_t least,
                            ptrdiff_t most)
{
    return next - end >= least && next - end <= most;
}

static enum MHD_Result follow(void *ctx, enum MHD_ValueKind kind,
                              const char *key, size_t key_size,
                              const char *value, size_t value_size)
{
    lines *l = ctx;

    (void)kind;
    (void)key_size;
    (void)value_size;
    l->is_odd |= value == NULL || !is_right_behind(key, l->end, 1, 2);
    if (value != NULL)
        l->end = value + strlen(value);
    return MHD_YES;
}

bool stg_request_has_zero(const stg_caller *c, const char *method,
                          const char *version)
{
#if MHD_VERSION < 0x01000000
    size_t size = MHD_get_connection_info(
                      c->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)
                      ->header_size;
    lines l = {.end = version + strlen(version)};

    if (c->uri == NULL || version != c->uri + c->uri_size + 1)
        return true;
    MHD_get_connection_values_n(c->connection, MHD_HEADER_KIND, follow, &l);
    return l.is_odd || !is_right_behind(method + size, l.end, 2, 4);
#else
    (void)c;
    (void)method;
    (void)version;
    (void)follow;
    return false;
#endif
}
