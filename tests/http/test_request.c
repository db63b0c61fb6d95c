/* HTTP/1.1 as the server reads it: a row for each rule of RFC 9112 and RFC 9110
 * that it holds, and that pieces make no difference. */
#include "http/request.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <stagger/rng.h>

#include "http/server.h"
#include "tests/harness.h"

enum { HEAD_MAX = 512, WORDS = 1024 };

/* -- a run of bytes, in words ------------------------------------------------ */

typedef struct reading {
    stg_request request;
    bool is_over;
    char words[WORDS];
    size_t size;
} reading;

__attribute__((format(printf, 2, 3))) static void say(reading *r,
                                                      const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    r->size += (size_t)vsnprintf(r->words + r->size, WORDS - r->size, format,
                                 arguments);
    va_end(arguments);
    CHECK(r->size < WORDS);
}

static void say_head(reading *r)
{
    const stg_span *parts = r->request.parts;

    say(r, "%s%.*s %.*s", r->size > 0 ? " | " : "",
        (int)parts[STG_PART_METHOD].size, parts[STG_PART_METHOD].at,
        (int)parts[STG_PART_PATH].size, parts[STG_PART_PATH].at);
    if (parts[STG_PART_QUERY].at != NULL)
        say(r, "?%.*s", (int)parts[STG_PART_QUERY].size,
            parts[STG_PART_QUERY].at);
    if (r->request.wants_go_on)
        say(r, " expects");
    say(r, " '");
}

static bool say_event(reading *r, stg_span *in)
{
    stg_span piece;

    switch (stg_request_next(&r->request, in, &piece)) {
    case STG_REQUEST_MORE:
        return false;
    case STG_REQUEST_HEAD:
        say_head(r);
        return true;
    case STG_REQUEST_BODY:
        say(r, "%.*s", (int)piece.size, piece.at);
        return true;
    case STG_REQUEST_WHOLE:
        say(r, "'%s", r->request.is_last ? " last" : "");
        r->is_over = r->request.is_last;
        stg_request_begin(&r->request);
        return !r->is_over;
    default:
        say(r, "%s%d%s", r->size > 0 ? " | " : "", r->request.status,
            r->request.is_head ? " without a body" : "");
        CHECK(r->request.why[0] != '\0');
        r->is_over = true;
        return false;
    }
}

/* Up to `step` bytes at a time; each from memory of its own, for the sanitizer
 * to see a step beyond, and what was lent and kept. */
static void read_all(reading *r, const char *bytes, size_t size, size_t step)
{
    stg_request_init(&r->request, HEAD_MAX);
    r->is_over = false;
    r->words[0] = '\0';
    r->size = 0;
    while (size > 0 && !r->is_over) {
        size_t part = step < size ? step : size;
        char *copy = malloc(part);
        stg_span in = {copy, part};

        CHECK(copy != NULL);
        memcpy(copy, bytes, part);
        while (say_event(r, &in))
            ;
        CHECK(stg_request_keep(&r->request));
        free(copy);
        bytes += part;
        size -= part;
    }
    stg_request_close(&r->request);
}

/* A body in pieces is told in pieces, and where it is refused, before or behind
 * the pieces that came: only what is whole is compared there. */
static void check(const char *rule, const char *text, size_t size,
                  const char *expected)
{
    static reading r;

    for (size_t step = size; step > 0; step--) {
        read_all(&r, text, size, step);
        if (strcmp(r.words, expected) != 0)
            harness_fail(__FILE__, __LINE__,
                         "%s: %.*s\nis %s, not %s, in pieces of %zu", rule,
                         (int)size, text, r.words, expected, step);
    }
}

typedef struct row {
    const char *rule, *text;
    size_t size;
    const char *expected;
} row;

#define ROW(rule, text, expected)              \
    {                                          \
        rule, text, sizeof(text) - 1, expected \
    }
#define HOST "Host: a\r\n"
#define GET "GET / HTTP/1.1\r\n"
#define POST "POST / HTTP/1.1\r\n" HOST
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

static void check_rows(const row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        check(rows[i].rule, rows[i].text, rows[i].size, rows[i].expected);
}

/* -- RFC 9112 ---------------------------------------------------------------- */

TEST(request, has_lines_that_end_in_cr_lf)
{
    static const row rows[] = {
        ROW("9112 2.1: a head and no body", GET HOST "\r\n", "GET / ''"),
        ROW("9112 2.2: an empty line before it is skipped",
            "\r\n" GET HOST "\r\n", "GET / ''"),
        ROW("9112 2.2: one, and not two", "\r\n\r\n" GET HOST "\r\n", "400"),
        ROW("9112 2.2: a bare LF", "GET / HTTP/1.1\nHost: a\n\n", "400"),
        ROW("9112 2.2: a bare LF in the header", GET "Host: a\n\r\n", "400"),
        ROW("9112 2.2: a bare LF as the empty line", GET HOST "\n", "400"),
        ROW("9112 2.2: a bare LF before the request", "\n" GET HOST "\r\n",
            "400"),
        ROW("9112 2.2: a bare CR", GET "Host: a\rb\r\n\r\n", "400"),
        ROW("9112 2.2: a bare CR before the request", "\rGET / HTTP/1.1\r\n",
            "400"),
        ROW("9112 2.2: a CR CR LF", GET "Host: a\r\r\n\r\n", "400"),
        ROW("9112 2.2: a blank before the first header",
            GET " X: y\r\n" HOST "\r\n", "400"),
        ROW("9112 8: what is cut short is none", GET "Host:", ""),
        ROW("9112 9.3.2: one behind the other", GET HOST "\r\n" GET HOST "\r\n",
            "GET / '' | GET / ''"),
    };

    check_rows(rows, sizeof rows / sizeof *rows);
}

TEST(request, has_a_request_line)
{
    static const row rows[] = {
        ROW("9112 3: words", "GET /a/b?c=d&e HTTP/1.1\r\n" HOST "\r\n",
            "GET /a/b?c=d&e ''"),
        ROW("9112 3: two blanks", "GET  / HTTP/1.1\r\n" HOST "\r\n", "400"),
        ROW("9112 3: two blanks", "GET /  HTTP/1.1\r\n" HOST "\r\n", "400"),
        ROW("9112 3: two blanks", "GET  HTTP/1.1\r\n" HOST "\r\n", "400"),
        ROW("9112 3: a tab", "GET\t/\tHTTP/1.1\r\n" HOST "\r\n", "400"),
        ROW("9112 3: a blank at the end", "GET / HTTP/1.1 \r\n" HOST "\r\n",
            "400"),
        ROW("9112 3: a blank at the start", " GET / HTTP/1.1\r\n" HOST "\r\n",
            "400"),
        ROW("9112 3: no version", "GET /\r\n" HOST "\r\n", "400"),
        ROW("9112 3: nothing", "GET\r\n\r\n", "400"),
        ROW("9112 3: other bytes", "\x16\x03\x01\r\n\r\n", "400"),
        ROW("9112 3: a zero byte", "GE\0T / HTTP/1.1\r\n" HOST "\r\n", "400"),
        ROW("9112 3.1: any token is a method",
            "A!#$ / HTTP/1.1\r\n" HOST "\r\n", "A!#$ / ''"),
        ROW("9112 3.1: what is none", "G(T / HTTP/1.1\r\n" HOST "\r\n", "400"),
        ROW("9112 3.1: a method of no bytes", " / HTTP/1.1\r\n" HOST "\r\n",
            "400"),
        ROW("9112 3.2: a blank in the target",
            "GET /a b HTTP/1.1\r\n" HOST "\r\n", "400"),
        ROW("9112 3.2: a fragment", "GET /a#b HTTP/1.1\r\n" HOST "\r\n", "400"),
        ROW("9112 3.2: control bytes", "GET /\x01 HTTP/1.1\r\n" HOST "\r\n",
            "400"),
        ROW("9112 3.2: a zero byte", "GET /\0 HTTP/1.1\r\n" HOST "\r\n", "400"),
        ROW("9112 3.2.1: no path", "GET a HTTP/1.1\r\n" HOST "\r\n", "400"),
        ROW("9112 3.2.2: a whole URI",
            "GET http://b:1/c?d HTTP/1.1\r\n" HOST "\r\n", "GET /c?d ''"),
        ROW("9112 3.2.2: a whole URI without a path",
            "GET HTTPS://b HTTP/1.1\r\n" HOST "\r\n", "GET / ''"),
        ROW("9112 3.2.2: with a user's name",
            "GET http://u@b/ HTTP/1.1\r\n" HOST "\r\n", "400"),
        ROW("9112 3.2.3: an authority", "CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n",
            "400"),
        ROW("9112 3.2.4: an asterisk", "OPTIONS * HTTP/1.1\r\n" HOST "\r\n",
            "OPTIONS * ''"),
        ROW("9112 2.3: HTTP/1.0 closes", "GET / HTTP/1.0\r\n\r\n",
            "GET / '' last"),
        ROW("9112 2.3: or not",
            "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "GET / ''"),
        ROW("9112 2.3: a later 1.x is 1.1", "GET / HTTP/1.9\r\n" HOST "\r\n",
            "GET / ''"),
        ROW("9110 15.6.6: HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"),
        ROW("9112 2.3: HTTP/0.9", "GET /\r\n", ""),
        ROW("9112 2.3: small letters", "GET / http/1.1\r\n" HOST "\r\n", "400"),
        ROW("9112 2.3: two digits", "GET / HTTP/1.10\r\n" HOST "\r\n", "400"),
    };

    check_rows(rows, sizeof rows / sizeof *rows);
}

TEST(request, has_one_host)
{
    static const row rows[] = {
        ROW("9112 3.2: none", GET "\r\n", "400"),
        ROW("9112 3.2: two", GET HOST HOST "\r\n", "400"),
        ROW("9112 3.2: two, the second in other letters",
            GET HOST "hOST: b\r\n\r\n", "400"),
        ROW("9112 3.2: an empty one", GET "Host:\r\n\r\n", "GET / ''"),
        ROW("9112 3.2: a list", GET "Host: a, b\r\n\r\n", "400"),
        ROW("9112 3.2: a path", GET "Host: a/b\r\n\r\n", "400"),
        ROW("9112 3.2: none beside a whole URI",
            "GET http://b/ HTTP/1.1\r\n\r\n", "400"),
    };

    check_rows(rows, sizeof rows / sizeof *rows);
}

TEST(request, has_headers_of_one_line_with_a_name)
{
    static const row rows[] = {
        ROW("9112 5: blanks around a value", GET HOST "X: \t y \t\r\n\r\n",
            "GET / ''"),
        ROW("9112 5.1: a blank before the colon", GET "Host : a\r\n\r\n",
            "400"),
        ROW("9112 5.1: a tab before the colon",
            POST "Content-Length\t: 1\r\n\r\nx", "400"),
        ROW("9110 5.1: no name", GET HOST ": y\r\n\r\n", "400"),
        ROW("9110 5.1: no colon", GET HOST "X\r\n\r\n", "400"),
        ROW("9110 5.6.2: a name that is no token", GET HOST "X[]: y\r\n\r\n",
            "400"),
        ROW("9110 5.6.2: a byte above 127", GET HOST "\xc3\xa4: y\r\n\r\n",
            "400"),
        ROW("9110 5.5: a zero byte in a value", GET HOST "X: a\0b\r\n\r\n",
            "400"),
        ROW("9110 5.5: a zero byte in a name", GET HOST "X\0: a\r\n\r\n",
            "400"),
        ROW("9110 5.5: control bytes", GET HOST "X: \x7f\r\n\r\n", "400"),
        ROW("9110 5.5: bytes above 127 may be", GET HOST "X: \xe4\r\n\r\n",
            "GET / ''"),
        ROW("9112 5.2: a fold", GET HOST "X: a\r\n b\r\n\r\n", "400"),
        ROW("9112 5.2: a fold by a tab", GET HOST "X: a\r\n\tb\r\n\r\n", "400"),
        ROW("9112 5.2: a line of blanks", GET HOST "X: a\r\n \r\n\r\n", "400"),
    };

    check_rows(rows, sizeof rows / sizeof *rows);
}

TEST(request, has_a_body_whose_end_is_said_once)
{
    static const row rows[] = {
        ROW("9112 6.3 (6): a length", POST "Content-Length: 2\r\n\r\nhi" GET,
            "POST / 'hi'"),
        ROW("9112 6.3 (7): none", POST "\r\n", "POST / ''"),
        ROW("9110 8.6: zeros before it", POST "Content-Length: 002\r\n\r\nhi",
            "POST / 'hi'"),
        ROW("9112 6.3 (5): no number", POST "Content-Length: two\r\n\r\n",
            "400"),
        ROW("9112 6.3 (5): a sign", POST "Content-Length: +2\r\n\r\nhi", "400"),
        ROW("9112 6.3 (5): below 0", POST "Content-Length: -1\r\n\r\n", "400"),
        ROW("9112 6.3 (5): hexadecimal", POST "Content-Length: 0x2\r\n\r\nhi",
            "400"),
        ROW("9112 6.3 (5): nothing", POST "Content-Length:\r\n\r\n", "400"),
        ROW("9112 6.3 (5): a list", POST "Content-Length: 2, 2\r\n\r\nhi",
            "400"),
        ROW("9112 6.3 (5): twice",
            POST "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi", "400"),
        ROW("9112 6.3 (5): twice the same",
            POST "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi", "400"),
        ROW("9110 8.6: 2^63 - 1",
            POST "Content-Length: 9223372036854775807\r\n\r\nx", "POST / 'x"),
        ROW("9110 8.6: 2^63",
            POST "Content-Length: 9223372036854775808\r\n\r\n", "400"),
        ROW("9110 8.6: 2^64 and some",
            POST "Content-Length: 18446744073709551618\r\n\r\nhi", "400"),
        ROW("9112 6.3 (3): both",
            POST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
            "400"),
        ROW("9112 6.3 (3): both, the other way",
            POST "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n",
            "400"),
        ROW("9112 6.1: twice chunked",
            POST "Transfer-Encoding: chunked\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n",
            "400"),
        ROW("9112 6.1: another one", POST "Transfer-Encoding: gzip\r\n\r\n",
            "501"),
        ROW("9112 6.1: a list", POST "Transfer-Encoding: gzip, chunked\r\n\r\n",
            "501"),
        ROW("9112 6.1: chunked with something behind it",
            POST "Transfer-Encoding: chunked;a=b\r\n\r\n", "501"),
        ROW("9112 6.1: identity", POST "Transfer-Encoding: identity\r\n\r\n",
            "501"),
        ROW("9112 6.1: HTTP/1.0 has none",
            "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
        ROW("9112 6.3: of GET, too", GET HOST "Content-Length: 1\r\n\r\nx",
            "GET / 'x'"),
    };

    check_rows(rows, sizeof rows / sizeof *rows);
}

TEST(request, has_a_body_in_chunks)
{
    static const row rows[] = {
        ROW("9112 7.1: chunks", CHUNKED "2\r\nhi\r\n3\r\n ho\r\n0\r\n\r\n" GET,
            "POST / 'hi ho'"),
        ROW("9112 7.1: hexadecimal, of any letters",
            CHUNKED "00A\r\n0123456789\r\n00b\r\n01234567890\r\n0\r\n\r\n",
            "POST / '012345678901234567890'"),
        ROW("9112 7.1: none", CHUNKED "0\r\n\r\n", "POST / ''"),
        ROW("9112 7.1: the name in other letters",
            POST "transfer-encoding: CHUNKED\r\n\r\n0\r\n\r\n", "POST / ''"),
        ROW("9112 7.1: no size", CHUNKED "\r\nhi", "POST / ' | 400"),
        ROW("9112 7.1: no digit", CHUNKED "x\r\n", "POST / ' | 400"),
        ROW("9112 7.1: a sign", CHUNKED "-1\r\n", "POST / ' | 400"),
        ROW("9112 7.1: 0x", CHUNKED "0x2\r\nhi", "POST / ' | 400"),
        ROW("9112 7.1: a size of 2^63", CHUNKED "8000000000000000\r\n",
            "POST / ' | 400"),
        ROW("9112 7.1: a size of 2^64 and some",
            CHUNKED "10000000000000002\r\nhi", "POST / ' | 400"),
        ROW("9112 7.1: a bare LF behind the size", CHUNKED "2\nhi\r\n",
            "POST / ' | 400"),
        ROW("9112 7.1: a bare CR behind the size", CHUNKED "2\rhi\r\n",
            "POST / ' | 400"),
        ROW("9112 7.1.1: an extension",
            CHUNKED "2;a=\"b;c\"\r\nhi\r\n0;d\r\n\r\n", "POST / 'hi'"),
        ROW("9112 7.1.1: blanks before it", CHUNKED "2 \t;a\r\nhi\r\n0\r\n\r\n",
            "POST / 'hi'"),
        ROW("9112 7.1.1: a bare LF in it", CHUNKED "2;a\nhi\r\n0\r\n\r\n",
            "POST / ' | 400"),
        ROW("9112 7.1.1: a blank and no extension", CHUNKED "2 x\r\nhi",
            "POST / ' | 400"),
        ROW("9112 7.1.1: a zero byte in it", CHUNKED "2;\0\r\nhi",
            "POST / ' | 400"),
        ROW("9112 7.1.2: trailers are dropped",
            CHUNKED "0\r\nContent-Length: 5\r\nX: y\r\n\r\n" GET, "POST / ''"),
        ROW("9112 7.1.2: a bare LF in them", CHUNKED "0\r\nX: y\n\r\n",
            "POST / ' | 400"),
        ROW("9112 7.1.2: a bare LF at their end", CHUNKED "0\r\n\n",
            "POST / ' | 400"),
        ROW("9112 7.1.2: a fold in them", CHUNKED "0\r\nX: y\r\n z\r\n\r\n",
            "POST / ' | 400"),
        ROW("9112 7.1.2: a zero byte in them", CHUNKED "0\r\nX: \0\r\n\r\n",
            "POST / ' | 400"),
        ROW("9112 8: cut short", CHUNKED "0\r\n", "POST / '"),
    };

    check_rows(rows, sizeof rows / sizeof *rows);
    // Where the wrong byte comes behind some of the body.
    check("9112 7.1: more than the size", CHUNKED "1\r\nhi\r\n",
          sizeof CHUNKED "1\r\nhi\r\n" - 1, "POST / 'h | 400");
    check("9112 7.1: a bare LF behind the chunk", CHUNKED "1\r\nh\n0\r\n\r\n",
          sizeof CHUNKED "1\r\nh\n0\r\n\r\n" - 1, "POST / 'h | 400");
}

static void check_long(const char *start, size_t count, const char *piece,
                       const char *end, const char *expected)
{
    static char text[32768];
    static reading r;
    size_t size = (size_t)sprintf(text, "%s", start);

    while (count-- > 0)
        size += (size_t)sprintf(text + size, "%s", piece);
    size += (size_t)sprintf(text + size, "%s", end);
    for (size_t step = 1; step <= size; step = step * 3 + 1) {
        read_all(&r, text, size, step);
        CHECK_STR(r.words, expected);
    }
}

TEST(request, has_an_end_to_its_lines)
{
    check_long(GET HOST "X: ", 400, "y", "\r\n\r\n", "GET / ''");
    check_long(GET HOST "X: ", 600, "y", "\r\n\r\n", "431");
    check_long(GET HOST "X: ", 600, "y", "", "431");
    check_long(GET HOST "X: ", 600, "y", "\n\r\n", "431");
    check_long(GET HOST, 200, "X:y\r\n", "\r\n", "431");
    check_long("", 600, "y", "", "431");
    check_long("HEAD / HTTP/1.1\r\n" HOST "X: ", 600, "y", "",
               "431 without a body");
    check_long("\r\nHEAD ", 600, "y", "", "431 without a body");
    check_long("HEADS ", 600, "y", "", "431");
    check_long("HEAD", 600, "D", "", "431");
    check_long(CHUNKED "0;", 1000, "a", "\r\n\r\n", "POST / ''");
    check_long(CHUNKED "0;", 1100, "a", "\r\n\r\n", "POST / ' | 400");
    check_long(CHUNKED, 1100, "0", "\r\n\r\n", "POST / ' | 400");
    check_long(CHUNKED "0\r\n", 1000, "X: y\r\n", "\r\n", "POST / ''");
    check_long(CHUNKED "0\r\n", 1500, "X: y\r\n", "\r\n", "POST / ' | 400");
    // To the byte: trailers below 8 KiB with their end, and lines of chunks.
    check_long(CHUNKED "0\r\nX: ", 8184, "y", "\r\n\r\n", "POST / ''");
    check_long(CHUNKED "0\r\nX: ", 8185, "y", "\r\n\r\n", "POST / ' | 400");
    check_long(CHUNKED, 1022, "0", "\r\n\r\n", "POST / ''");
    check_long(CHUNKED, 1022 + 1, "0", "\r\n\r\n", "POST / ' | 400");
}

/* -- RFC 9110 ---------------------------------------------------------------- */

TEST(request, says_whether_its_connection_goes_on)
{
    static const row rows[] = {
        ROW("9112 9.6: close",
            GET HOST "Connection: close\r\n\r\n" GET HOST "\r\n",
            "GET / '' last"),
        ROW("9110 7.6.1: in a list, in other letters",
            GET HOST "Connection: x, CLOSE\r\n\r\n", "GET / '' last"),
        ROW("9110 7.6.1: in the second line",
            GET HOST "Connection: x\r\nConnection: close\r\n\r\n",
            "GET / '' last"),
        ROW("9110 7.6.1: in the first line",
            GET HOST "Connection: close\r\nConnection: x\r\n\r\n",
            "GET / '' last"),
        ROW("9110 7.6.1: as a part of a name",
            GET HOST "Connection: closed\r\n\r\n", "GET / ''"),
    };

    check_rows(rows, sizeof rows / sizeof *rows);
}

TEST(request, expects_what_is_known)
{
    static const row rows[] = {
        ROW("9110 10.1.1: go on",
            POST "Expect: 100-Continue\r\nContent-Length: 2\r\n\r\nhi",
            "POST / expects 'hi'"),
        ROW("9110 10.1.1: in chunks",
            POST "Expect: 100-continue\r\nTransfer-Encoding: "
                 "chunked\r\n\r\n0\r\n\r\n",
            "POST / expects ''"),
        ROW("9110 10.1.1: without a body", POST "Expect: 100-continue\r\n\r\n",
            "POST / ''"),
        ROW("9110 10.1.1: another one",
            POST "Expect: a\r\nContent-Length: 2\r\n\r\nhi", "417"),
        ROW("9110 10.1.1: twice",
            POST "Expect: 100-continue\r\nExpect: 100-continue\r\n"
                 "Content-Length: 2\r\n\r\nhi",
            "417"),
        ROW("9110 10.1.1: of HTTP/1.0 it is ignored",
            "POST / HTTP/1.0\r\nExpect: a\r\nContent-Length: 2\r\n\r\nhi",
            "POST / 'hi' last"),
    };

    check_rows(rows, sizeof rows / sizeof *rows);
}

static void read_one(stg_request *r, const char *text)
{
    stg_span in = {text, strlen(text)}, piece;

    stg_request_init(r, HEAD_MAX);
    CHECK_INT(stg_request_next(r, &in, &piece), STG_REQUEST_HEAD);
}

TEST(request, names_the_headers_of_this_hop)
{
    stg_request r;

    read_one(&r, GET HOST
             "Connection: close, X-A\r\nX-A: 1\r\nX-B: 2\r\n"
             "connection: x-b\r\nX-C: 3\r\n\r\n");
    CHECK(stg_request_is_hop(&r, (stg_span){"x-a", 3}));
    CHECK(stg_request_is_hop(&r, (stg_span){"X-B", 3}));
    CHECK(!stg_request_is_hop(&r, (stg_span){"X-C", 3}));
    stg_request_close(&r);
}

TEST(request, has_the_host_of_a_whole_uri)
{
    stg_request r;
    stg_span host;

    read_one(&r, "GET http://b:1/ HTTP/1.1\r\n" HOST "\r\n");
    host = r.parts[STG_PART_HOST];
    CHECK(host.size == 3 && memcmp(host.at, "b:1", 3) == 0);
    stg_request_close(&r);
}

TEST(request, says_what_its_first_line_lacks)
{
    static const char none[] =
        "a request line that is none: expected METHOD /path HTTP/1.1";
    static const struct {
        const char *line, *why;
    } rows[] = {
        {"GET\r\n\r\n", none},
        {"GET /\r\n\r\n", none},
        {"GET HTTP/1.1\r\n\r\n", none},
        {" / HTTP/1.1\r\n\r\n", none},
        {"GET  HTTP/1.1\r\n\r\n", "a request line without a path"},
        {"GET / HTTP\r\n\r\n", "a request line that does not end in HTTP/1.1"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stg_span in = {rows[i].line, strlen(rows[i].line)}, piece;
        stg_request r;

        stg_request_init(&r, HEAD_MAX);
        CHECK_INT(stg_request_next(&r, &in, &piece), STG_REQUEST_REFUSED);
        CHECK_INT(r.status, 400);
        CHECK_STR(r.why, rows[i].why);
        stg_request_close(&r);
    }
}

TEST(request, keeps_its_head_when_the_bytes_go)
{
    char *text = strdup(
        "POST /a?b HTTP/1.1\r\nHost: c\r\nX: d\r\n"
        "Content-Length: 2\r\n\r\n");
    stg_request r;
    stg_span lines, name, value;

    CHECK(text != NULL);
    read_one(&r, text);
    CHECK(stg_request_keep(&r));
    free(text);
    CHECK(memcmp(r.parts[STG_PART_PATH].at, "/a", 2) == 0);
    CHECK(memcmp(r.parts[STG_PART_QUERY].at, "b", 1) == 0);
    lines = r.parts[STG_PART_LINES];
    CHECK(stg_request_line(&lines, &name, &value));
    CHECK(stg_request_line(&lines, &name, &value));
    CHECK(name.size == 1 && *name.at == 'X' && *value.at == 'd');
    CHECK_INT(stg_request_skip(&r, 1), STG_REQUEST_MORE);
    CHECK_INT(stg_request_skip(&r, 1), STG_REQUEST_WHOLE);
    stg_request_close(&r);
}

TEST(request, decodes_percents)
{
    static const struct {
        const char *text;
        bool is_form;
        const char *expected; /* NULL: a wrong one */
    } rows[] = {
        {"a%2eb%2F", false, "a.b/"}, {"a+b", false, "a+b"},
        {"a+b", true, "a b"},        {"%", false, NULL},
        {"%4", false, NULL},         {"a%4", false, NULL},
        {"%4g", false, NULL},        {"%g4", false, NULL},
        {"%41", true, "A"},          {"", false, ""},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stg_span text = {rows[i].text, strlen(rows[i].text)};
        char out[16];
        size_t size;

        CHECK_INT(stg_request_decode(text, rows[i].is_form, out, &size),
                  rows[i].expected != NULL);
        if (rows[i].expected == NULL)
            continue;
        out[size] = '\0';
        CHECK_STR(out, rows[i].expected);
    }
}

/* Two readers of any bytes see the same, however they come. */
TEST(request, is_the_same_in_any_pieces)
{
    static const char *const parts[] = {
        "GET / HTTP/1.1\r\n",
        "POST /a HTTP/1.1\r\n",
        "Host: a\r\n",
        "\r\n",
        "Content-Length: 3\r\n",
        "Transfer-Encoding: chunked\r\n",
        "3\r\n",
        "abc",
        "0\r\n\r\n",
        "\n",
        "\r",
        " ",
        "X: y\r\n",
        "Connection: close\r\n",
    };
    static reading whole, pieces;

    for (uint64_t seed = 0; seed < seeds(3000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        char text[512];
        size_t size = 0;

        for (uint64_t i = stg_rng_upto(&rng, 12) + 3; i > 0; i--)
            size += (size_t)sprintf(
                text + size, "%s",
                parts[stg_rng_upto(&rng, sizeof parts / sizeof *parts - 1)]);
        if (size > 0 && stg_rng_upto(&rng, 1) == 0)
            text[stg_rng_upto(&rng, size - 1)] =
                (char)stg_rng_upto(&rng, UINT8_MAX);
        read_all(&whole, text, size, size);
        read_all(&pieces, text, size, 1 + (size_t)stg_rng_upto(&rng, 7));
        CHECK_FROM(seed, strcmp(whole.words, pieces.words) == 0);
    }
}

/* -- heads of answers -------------------------------------------------------- */

TEST(response, has_a_head)
{
    char head[STG_RESPONSE_HEAD_MAX + 1];
    stg_response r = {.status = 202, .type = "a/b", .size = 12};
    size_t size = stg_response_print(&r, "D", head);

    head[size] = '\0';
    CHECK_STR(head,
              "HTTP/1.1 202 Accepted\r\nDate: D\r\nContent-Type: a/b\r\n"
              "Content-Length: 12\r\n\r\n");
    r = (stg_response){.status = 505, .more = "A: b\r\n", .is_last = true};
    size = stg_response_print(&r, "D", head);
    head[size] = '\0';
    CHECK_STR(head,
              "HTTP/1.1 505 HTTP Version Not Supported\r\nDate: D\r\n"
              "Content-Length: 0\r\nA: b\r\nConnection: close\r\n\r\n");
    r = (stg_response){.status = 200, .is_kept = true};
    size = stg_response_print(&r, "D", head);
    head[size] = '\0';
    CHECK(strstr(head, "\r\nConnection: keep-alive\r\n\r\n") != NULL);
}

/* Source: RFC 9110, section 15; 422, 429 and 508: see response.c. */
TEST(response, has_the_reason_of_its_status)
{
    char all[1024] = "";

    for (int status = 0; status < 1000; status++) {
        const char *reason = stg_response_reason(status);
        size_t at = strlen(all);

        if (strcmp(reason, "Error") != 0)
            snprintf(all + at, sizeof all - at, "%d %s\n", status, reason);
    }
    CHECK_STR(all,
              "100 Continue\n"
              "200 OK\n"
              "201 Created\n"
              "202 Accepted\n"
              "400 Bad Request\n"
              "401 Unauthorized\n"
              "403 Forbidden\n"
              "404 Not Found\n"
              "405 Method Not Allowed\n"
              "408 Request Timeout\n"
              "409 Conflict\n"
              "411 Length Required\n"
              "412 Precondition Failed\n"
              "413 Content Too Large\n"
              "415 Unsupported Media Type\n"
              "417 Expectation Failed\n"
              "422 Unprocessable Content\n"
              "429 Too Many Requests\n"
              "431 Request Header Fields Too Large\n"
              "501 Not Implemented\n"
              "503 Service Unavailable\n"
              "505 HTTP Version Not Supported\n"
              "508 Loop Detected\n");
}

/* Source: RFC 9110, section 5.6.7, and `date -u -d @N`. */
TEST(response, has_a_date)
{
    static const struct {
        int64_t wall_s;
        const char *date;
    } rows[] = {
        {784111777, "Sun, 06 Nov 1994 08:49:37 GMT"},
        {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
        {-1, "Thu, 01 Jan 1970 00:00:00 GMT"},
        {951782400, "Tue, 29 Feb 2000 00:00:00 GMT"},
        {4107542399, "Sun, 28 Feb 2100 23:59:59 GMT"},
        {4107542400, "Mon, 01 Mar 2100 00:00:00 GMT"},
        {1735689599, "Tue, 31 Dec 2024 23:59:59 GMT"},
    };
    char date[STG_DATE_MAX];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        stg_response_print_date(rows[i].wall_s, date);
        CHECK_STR(date, rows[i].date);
    }
}
