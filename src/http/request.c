/* The head of a request, read strictly (RFC 9112): what two readers could take
 * for two different things is refused, for the one in front of us may have taken
 * the other one (request smuggling). Lines end in CR LF, nothing is folded, there
 * is one host, and one way to find the end of the body. */
#include "http/request.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/digits.h"
#include "http/framing.h"
#include "http/header.h"

/* stg_request.state */
enum { HEAD, BODY, CHUNKS, WHOLE, REFUSED };

static const char zero_or_fold[] =
    "a zero byte in the header, or a line of it that goes on in the next one";

static const char bare[] = "a line of the header that does not end in CR LF";

static bool refuse(stg_request *r, uint16_t status, const char *why)
{
    r->state = REFUSED;
    r->status = status;
    r->why = why;
    return false;
}

void stg_request_begin(stg_request *r)
{
    free(r->kept);
    r->kept = NULL;
    r->kept_size = r->kept_room = 0;
    r->state = HEAD;
    r->scan = STG_HEAD_START;
    r->empty = 0;
    r->is_head = false;
}

void stg_request_init(stg_request *r, size_t head_max)
{
    r->kept = NULL;
    r->head_max = head_max;
    stg_request_begin(r);
}

void stg_request_close(stg_request *r)
{
    stg_request_begin(r);
}

bool stg_request_has_begun(const stg_request *r)
{
    return r->state != HEAD || r->scan != STG_HEAD_START;
}

bool stg_request_is_whole(const stg_request *r)
{
    return r->state == WHOLE;
}

/* -- values ---------------------------------------------------------------- */

/* Digits alone: strtoull() would take blanks, a sign and a prefix as well,
 * which the one in front of us may read otherwise. */
bool stg_request_number(stg_span text, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint64_t digit = (uint64_t)(unsigned char)text.at[i] - '0';

        if (digit > 9 || *number > (INT64_MAX - digit) / 10)
            return false;
        *number = *number * 10 + digit;
    }
    return text.size > 0;
}

/* The byte of "%41", -1: it is none. */
static int decode_escape(stg_span text)
{
    int high = text.size < 3 ? -1 : stg_hex_digit(text.at[1]);
    int low = text.size < 3 ? -1 : stg_hex_digit(text.at[2]);

    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

bool stg_request_decode(stg_span text, bool is_form, char *out, size_t *size)
{
    *size = 0;
    for (size_t i = 0; i < text.size; i++) {
        int c = (unsigned char)text.at[i];

        if (c == '%') {
            c = decode_escape((stg_span){text.at + i, text.size - i});
            i += 2;
        } else if (c == '+' && is_form) {
            c = ' ';
        }
        if (c < 0)
            return false;
        out[(*size)++] = (char)c;
    }
    return true;
}

/* -- lines ----------------------------------------------------------------- */

bool stg_request_line(stg_span *lines, stg_span *name, stg_span *value)
{
    stg_span line = stg_header_next(lines);

    if (line.size == 0)
        return false;
    *name = stg_header_name(line);
    *value = stg_span_trim(
        (stg_span){name->at + name->size + 1, line.size - name->size - 3});
    return true;
}

bool stg_request_is_hop(const stg_request *r, stg_span name)
{
    stg_span lines = r->parts[STG_PART_LINES], each, value;

    if (r->counts[STG_PART_CONNECTION] == 0)
        return false;
    while (stg_request_line(&lines, &each, &value))
        if (stg_header_equal(each, "Connection") &&
            stg_header_list_has(value, name))
            return true;
    return false;
}

/* Returns the part of the head that a header's name stands for, or STG_PARTS
 * for a header that is not looked at. The size rules out most names at once. */
static stg_request_part part_of(stg_span name)
{
    static const struct {
        const char *name;
        stg_request_part part;
    } known[] = {
        {"Host", STG_PART_HOST},
        {"Expect", STG_PART_EXPECT},
        {"Origin", STG_PART_ORIGIN},
        {"Connection", STG_PART_CONNECTION},
        {"Content-Type", STG_PART_CONTENT_TYPE},
        {"Stagger-Hops", STG_PART_HOPS},
        {"Authorization", STG_PART_AUTHORIZATION},
        {"Content-Length", STG_PART_CONTENT_LENGTH},
        {"Transfer-Encoding", STG_PART_TRANSFER_ENCODING},
    };
    static const uint32_t sizes = 1u << 4 | 1u << 6 | 1u << 10 | 1u << 12 |
                                  1u << 13 | 1u << 14 | 1u << 17;

    if (name.size > 17 || (sizes >> name.size & 1) == 0)
        return STG_PARTS;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (stg_header_equal(name, known[i].name))
            return known[i].part;
    return STG_PARTS;
}

/* The host of a whole URI in the request line stands. */
static void note_header(stg_request *r, stg_span name, stg_span value)
{
    stg_request_part part = part_of(name);
    bool is_known = part == STG_PART_HOST && r->counts[part] == 0 &&
                    r->parts[part].at != NULL;

    if (part == STG_PARTS)
        return;
    if (!is_known)
        r->parts[part] = value;
    if (r->counts[part] < UINT8_MAX)
        r->counts[part]++;
}

/* Lines end in CR LF, which was seen to before, and none is folded. */
static bool read_headers(stg_request *r)
{
    stg_span lines = r->parts[STG_PART_LINES];

    while (lines.size > 0) {
        const char *end = memchr(lines.at, '\r', lines.size);
        size_t size = (size_t)(end - lines.at);
        const char *colon = memchr(lines.at, ':', size);
        stg_span name = {lines.at,
                         colon == NULL ? 0 : (size_t)(colon - lines.at)};
        stg_span value;

        if (!stg_header_is_name(name))
            return refuse(r, 400,
                          "a line of the header without a name, or with a "
                          "name that no header has");
        value = stg_span_trim((stg_span){colon + 1, size - name.size - 1});
        if (!stg_header_is_value(value))
            return refuse(r, 400,
                          memchr(value.at, '\0', value.size) != NULL
                              ? zero_or_fold
                              : "a header has control characters");
        note_header(r, name, value);
        lines.at += size + 2;
        lines.size -= size + 2;
    }
    return true;
}

/* -- the request line ------------------------------------------------------ */

static bool check_target(stg_request *r, stg_span target)
{
    for (size_t i = 0; i < target.size; i++) {
        unsigned char c = (unsigned char)target.at[i];

        if (c == '\0')
            return refuse(r, 400, zero_or_fold);
        if (c == ' ')
            return refuse(r, 400, "a path with a blank");
        if (c < ' ' || c == 0x7f || c == '#')
            return refuse(r, 400, "a path with a byte that no URI has");
    }
    return target.size > 0 || refuse(r, 400, "a request line without a path");
}

/* Of a whole URI the path is read, and its authority is the host: RFC 9112,
 * section 3.2.2. */
static stg_span take_authority(stg_request *r, stg_span target)
{
    static const char scheme[] = "http://";
    size_t size = sizeof scheme - 1, host = 0;

    if (target.size >= 8 && strncasecmp(target.at, "https://", 8) == 0)
        size = 8;
    else if (target.size < size || strncasecmp(target.at, scheme, size) != 0)
        return target;
    target = (stg_span){target.at + size, target.size - size};
    while (host < target.size && target.at[host] != '/' &&
           target.at[host] != '?')
        host++;
    r->parts[STG_PART_HOST] = (stg_span){target.at, host};
    target = (stg_span){target.at + host, target.size - host};
    return target.size > 0 ? target : (stg_span){"/", 1};
}

/* A target in absolute form (http://host/path) is read as its path. */
static bool read_target(stg_request *r, stg_span target)
{
    const char *mark;

    if (!check_target(r, target))
        return false;
    target = take_authority(r, target);
    if (target.at[0] != '/' && target.at[0] != '?' &&
        !(target.size == 1 && target.at[0] == '*'))
        return refuse(r, 400, "a path that does not begin with /");
    mark = memchr(target.at, '?', target.size);
    r->parts[STG_PART_PATH] = target;
    if (mark == NULL)
        return true;
    r->parts[STG_PART_PATH].size = (size_t)(mark - target.at);
    r->parts[STG_PART_QUERY] =
        (stg_span){mark + 1, target.size - r->parts[STG_PART_PATH].size - 1};
    return true;
}

/* Any other version of HTTP/1 is read as 1.1 (RFC 9110, section 2.5). */
static bool read_version(stg_request *r, stg_span version)
{
    if (version.size != 8 || memcmp(version.at, "HTTP/", 5) != 0 ||
        version.at[5] < '0' || version.at[5] > '9' || version.at[6] != '.' ||
        version.at[7] < '0' || version.at[7] > '9')
        return refuse(r, 400, "a request line that does not end in HTTP/1.1");
    if (version.at[5] != '1')
        return refuse(r, 505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
    r->is_old = version.at[7] == '0';
    return true;
}

/* METHOD SP target SP HTTP/1.x, with one blank each. */
static bool read_request_line(stg_request *r, stg_span line)
{
    const char *first = memchr(line.at, ' ', line.size);
    const char *last = line.at + line.size;
    stg_span method = {line.at, first == NULL ? 0 : (size_t)(first - line.at)};

    while (last > line.at && last[-1] != ' ')
        last--;
    if (first == NULL || last - 1 <= first || !stg_header_is_name(method))
        return memchr(line.at, '\0', line.size) != NULL
                   ? refuse(r, 400, zero_or_fold)
                   : refuse(r, 400,
                            "a request line that is none: expected METHOD "
                            "/path HTTP/1.1");
    r->parts[STG_PART_METHOD] = method;
    return read_version(
               r, (stg_span){last, (size_t)(line.at + line.size - last)}) &&
           read_target(r, (stg_span){first + 1, (size_t)(last - first) - 2});
}

/* -- what the headers mean ------------------------------------------------- */

/* The end of a body must be one and the same to all who read it. */
static bool check_framing(stg_request *r)
{
    unsigned lengths = r->counts[STG_PART_CONTENT_LENGTH];
    unsigned encodings = r->counts[STG_PART_TRANSFER_ENCODING];

    if (lengths + encodings > 1)
        return refuse(r, 400,
                      "expected one Content-Length, or one Transfer-Encoding");
    r->has_length = lengths + encodings > 0;
    r->length = 0;
    if (encodings > 0 && r->is_old)
        return refuse(r, 400, "HTTP/1.0 has no Transfer-Encoding");
    if (encodings > 0 &&
        !stg_header_equal(r->parts[STG_PART_TRANSFER_ENCODING], "chunked"))
        return refuse(r, 501, "of Transfer-Encoding only chunked is known");
    if (encodings > 0)
        r->length = UINT64_MAX;
    else if (lengths > 0 &&
             !stg_request_number(r->parts[STG_PART_CONTENT_LENGTH], &r->length))
        return refuse(r, 400, "Content-Length is no number below 2^63");
    return true;
}

/* Of two, who is in front of us may have looked at the other one. */
static bool check_hosts(stg_request *r)
{
    stg_span host = r->parts[STG_PART_HOST];

    if (r->counts[STG_PART_HOST] > 1 || r->counts[STG_PART_ORIGIN] > 1 ||
        r->counts[STG_PART_HOPS] > 1)
        return refuse(r, 400,
                      "expected one Host, and one Origin and one Stagger-Hops "
                      "at most");
    if (r->counts[STG_PART_HOST] == 0 && !r->is_old)
        return refuse(r, 400, "expected a Host");
    for (size_t i = 0; i < host.size; i++)
        if (strchr(" \t,/?#@\\", host.at[i]) != NULL)
            return refuse(r, 400, "a Host that is no host and port");
    return true;
}

static bool has_option(const stg_request *r, const char *option)
{
    return stg_request_is_hop(r, (stg_span){option, strlen(option)});
}

/* A connection of HTTP/1.0 ends by itself, unless the client asks to keep
 * it. */
static bool check_connection(stg_request *r)
{
    bool is_asked = r->counts[STG_PART_CONNECTION] > 0;

    r->is_last = is_asked && has_option(r, "close");
    if (r->is_old && !r->is_last)
        r->is_last = !is_asked || !has_option(r, "keep-alive");
    return true;
}

/* A client without a body waits for nothing. */
static bool check_expect(stg_request *r)
{
    r->wants_go_on = false;
    if (r->counts[STG_PART_EXPECT] == 0 || r->is_old)
        return true;
    if (r->counts[STG_PART_EXPECT] > 1 ||
        !stg_header_equal(r->parts[STG_PART_EXPECT], "100-continue"))
        return refuse(r, 417, "of Expect only 100-continue is known");
    r->wants_go_on = r->length > 0;
    return true;
}

/* -- the head -------------------------------------------------------------- */

static void read_head(stg_request *r, const char *head, size_t size)
{
    const char *end = memchr(head, '\r', size);
    stg_span line = {head, (size_t)(end - head)};

    memset(r->parts, 0, sizeof r->parts);
    memset(r->counts, 0, sizeof r->counts);
    r->parts[STG_PART_LINES] =
        (stg_span){end + 2, size - line.size - 4}; // but for the empty line
    if (!(read_request_line(r, line) && read_headers(r) && check_framing(r) &&
          check_hosts(r) && check_connection(r) && check_expect(r)))
        return;
    r->left = r->length;
    r->state = BODY;
    if (r->length != UINT64_MAX)
        return;
    r->state = CHUNKS;
    stg_chunks_begin(&r->chunks);
}

static bool make_room(stg_request *r, size_t size)
{
    size_t room = r->kept_room > 0 ? r->kept_room : 512;
    char *kept;

    while (room < size)
        room *= 2;
    if (room == r->kept_room)
        return true;
    kept = realloc(r->kept, room);
    if (kept == NULL)
        return refuse(r, 503, "no memory");
    r->kept = kept;
    r->kept_room = room;
    return true;
}

static bool keep_bytes(stg_request *r, const char *bytes, size_t size)
{
    if (!make_room(r, r->kept_size + size))
        return false;
    memcpy(r->kept + r->kept_size, bytes, size);
    r->kept_size += size;
    return true;
}

/* The parts point into a buffer that the next read uses again: they are moved
 * to a copy. A head that came in several pieces is a copy already. */
bool stg_request_keep(stg_request *r)
{
    const char *from = r->parts[STG_PART_METHOD].at;
    stg_span lines = r->parts[STG_PART_LINES];
    size_t size;

    if ((r->state != BODY && r->state != CHUNKS && r->state != WHOLE) ||
        r->kept != NULL)
        return true;
    size = (size_t)(lines.at + lines.size - from);
    if (!keep_bytes(r, from, size))
        return false;
    for (int i = 0; i < STG_PARTS; i++)
        if (r->parts[i].at >= from && r->parts[i].at <= from + size)
            r->parts[i].at = r->kept + (r->parts[i].at - from);
    return true;
}

/* One empty line before a request is no part of it: RFC 9112, section 2.2. */
static bool skip_empty_line(stg_request *r, stg_span *in)
{
    while (r->scan == STG_HEAD_START && r->empty < 2 && in->size > 0 &&
           *in->at == "\r\n"[r->empty]) {
        r->empty++;
        in->at++;
        in->size--;
    }
    return r->empty != 1 || in->size == 0 || refuse(r, 400, bare);
}

/* As soon as it can be known, whatever is wrong behind it. */
static void note_method(stg_request *r, const char *bytes, size_t size)
{
    static const char head[] = "HEAD ";
    size_t kept = r->kept_size < 5 ? r->kept_size : 5;
    size_t rest = 5 - kept;

    r->is_head =
        r->is_head || (size >= rest && memcmp(bytes, head + kept, rest) == 0 &&
                       (kept == 0 || memcmp(r->kept, head, kept) == 0));
}

/* No byte beyond the one that makes it too long is looked at, so that the same
 * head is refused for the same cause however it comes in pieces. */
static void scan_head(stg_request *r, stg_span *in)
{
    size_t room = r->head_max - r->kept_size;
    size_t taken =
        stg_head_read(&r->scan, in->at, in->size <= room ? in->size : room + 1);
    const char *bytes = in->at;

    note_method(r, bytes, in->size);
    if (r->scan == STG_HEAD_BARE) {
        (void)refuse(r, 400, bare);
        return;
    }
    if (r->scan == STG_HEAD_FOLDED) {
        (void)refuse(r, 400, zero_or_fold);
        return;
    }
    in->at += taken;
    in->size -= taken;
    if (taken > room)
        (void)refuse(r, 431, "the header is too long");
    else if (r->scan == STG_HEAD_ENDED && r->kept_size == 0)
        read_head(r, bytes, taken);
    else if (keep_bytes(r, bytes, taken) && r->scan == STG_HEAD_ENDED)
        read_head(r, r->kept, r->kept_size);
}

static stg_request_event event_of(const stg_request *r,
                                  stg_request_event otherwise)
{
    return r->state == REFUSED ? STG_REQUEST_REFUSED : otherwise;
}

static stg_request_event next_of_head(stg_request *r, stg_span *in)
{
    if (skip_empty_line(r, in) && in->size > 0)
        scan_head(r, in);
    return event_of(r, r->state == HEAD ? STG_REQUEST_MORE : STG_REQUEST_HEAD);
}

/* -- the body -------------------------------------------------------------- */

static stg_request_event end(stg_request *r)
{
    r->state = WHOLE;
    return STG_REQUEST_WHOLE;
}

static stg_request_event next_of_body(stg_request *r, stg_span *in,
                                      stg_span *piece)
{
    if (r->left == 0)
        return end(r);
    if (in->size == 0)
        return STG_REQUEST_MORE;
    piece->at = in->at;
    piece->size = in->size < r->left ? in->size : (size_t)r->left;
    in->at += piece->size;
    in->size -= piece->size;
    r->left -= piece->size;
    r->wants_go_on = false;
    return STG_REQUEST_BODY;
}

static stg_request_event next_of_chunks(stg_request *r, stg_span *in,
                                        stg_span *piece)
{
    r->wants_go_on = r->wants_go_on && in->size == 0;
    switch (stg_chunks_next(&r->chunks, in, piece)) {
    case STG_CHUNKS_MORE:
        return STG_REQUEST_MORE;
    case STG_CHUNKS_PIECE:
        return STG_REQUEST_BODY;
    case STG_CHUNKS_WHOLE:
        return end(r);
    default:
        (void)refuse(r, 400, stg_chunks_why(&r->chunks));
        return STG_REQUEST_REFUSED;
    }
}

/* For bytes of the body that were read elsewhere, and need no parsing. */
stg_request_event stg_request_skip(stg_request *r, size_t size)
{
    r->left -= size;
    r->wants_go_on = false;
    return r->left == 0 ? end(r) : STG_REQUEST_MORE;
}

stg_request_event stg_request_next(stg_request *r, stg_span *in,
                                   stg_span *piece)
{
    switch (r->state) {
    case HEAD:
        return in->size == 0 ? STG_REQUEST_MORE : next_of_head(r, in);
    case BODY:
        return next_of_body(r, in, piece);
    case CHUNKS:
        return next_of_chunks(r, in, piece);
    case WHOLE:
        return STG_REQUEST_WHOLE;
    default:
        return STG_REQUEST_REFUSED;
    }
}
