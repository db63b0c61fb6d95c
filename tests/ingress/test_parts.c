#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include <stagger/rng.h>

#include "base/json.h"
#include "http/header.h"
#include "ingress/address.h"
#include "ingress/batch.h"
#include "ingress/token.h"
#include "tests/harness.h"

static stg_span span_of(const char *text)
{
    return (stg_span){text, strlen(text)};
}

/* -- addresses --------------------------------------------------------------- */

TEST(address, is_read_as_it_was_printed)
{
    static const struct {
        const char *text, *printed;
        bool is_loopback;
    } known[] = {
        {"127.0.0.1:8080", "127.0.0.1:8080", true},
        {"localhost:1", "127.0.0.1:1", true},
        {"127.255.0.9:0", "127.255.0.9:0", true},
        {"[::1]:65535", "[::1]:65535", true},
        {"[::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]:80", true},
        {"0.0.0.0:80", "0.0.0.0:80", false},
        {"[::]:80", "[::]:80", false},
        {"128.0.0.1:80", "128.0.0.1:80", false},
        {"[::ffff:10.0.0.1]:80", "[::ffff:10.0.0.1]:80", false},
        {"[2001:db8:0:0::1]:80", "[2001:db8::1]:80", false},
        {"unix:/run/a b.sock", "unix:/run/a b.sock", true},
    };
    char text[STG_ADDRESS_TEXT_MAX];
    stg_listen_address a;
    stg_error err;

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        CHECK_INT(stg_address_parse(&a, known[i].text, &err), STG_OK);
        CHECK_STR(stg_address_print(&a, text), known[i].printed);
        CHECK_INT(stg_address_is_loopback(&a), known[i].is_loopback);
    }
}

TEST(address, is_nothing_else)
{
    static const char *const wrong[] = {
        "",       ":",          ":80",          "80",          "127.0.0.1",
        "::1:80", "[::1]",      "[::1]80",      "[::1:80",     "127.0.0.1:",
        "a:80",   "1.2.3:80",   "127.0.0.1:+1", "[1.2.3.4]:1", "1.2.3.4:65536",
        "[]:80",  "1.2.3.4: 1", "]:80",         "[:80",
    };
    stg_listen_address a;
    stg_error err;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_INT(stg_address_parse(&a, wrong[i], &err), STG_INVALID);
        CHECK(strstr(err.text, "expected address:port") != NULL);
    }
}

TEST(address, of_a_path_is_absolute_and_fits)
{
    char longest[160];
    stg_listen_address a;
    stg_error err;

    CHECK_INT(stg_address_parse(&a, "unix:a", &err), STG_INVALID);
    CHECK(strstr(err.text, "an absolute path") != NULL);
    CHECK_INT(stg_address_parse(&a, "unix:", &err), STG_INVALID);
    snprintf(longest, sizeof longest, "unix:/%0106d", 1);
    CHECK_INT(stg_address_parse(&a, longest, &err), STG_OK);
    snprintf(longest, sizeof longest, "unix:/%0107d", 1);
    CHECK_INT(stg_address_parse(&a, longest, &err), STG_INVALID);
    CHECK(!stg_address_reaches(&a, "localhost", 80));
}

/* A program that was killed leaves its socket's file behind. */
TEST(address, of_a_path_takes_the_place_of_one_that_nobody_listens_on)
{
    char folder[] = "/tmp/stagger-path-XXXXXX", text[64];
    stg_listen_address a, b;
    stg_error err;
    int fd, other;

    CHECK(mkdtemp(folder) != NULL);
    snprintf(text, sizeof text, "unix:%s/s", folder);
    CHECK_INT(stg_address_parse(&a, text, &err), STG_OK);
    CHECK_INT(stg_address_parse(&b, text, &err), STG_OK);
    CHECK_INT(stg_address_listen(&a, &fd, &err), STG_OK);
    CHECK_INT(stg_address_listen(&b, &other, &err), STG_IO);
    CHECK(strstr(err.text, "another program listens there") != NULL);
    CHECK(close(fd) == 0);
    CHECK_INT(stg_address_listen(&b, &other, &err), STG_OK);
    CHECK(close(other) == 0);
    stg_address_leave(&b);
    CHECK(rmdir(folder) == 0);
    CHECK_INT(stg_address_listen(&b, &other, &err), STG_INVALID);
}

/* Makes a socket with nobody behind it. */
static void leave_stale(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    strncpy(to.sun_path, path, sizeof to.sun_path - 1);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&to, sizeof to) == 0);
    CHECK(close(fd) == 0);
}

typedef enum in_the_way {
    PLAIN,
    LINK,
    LINK_TO_SOCKET,
    PIPE,
    FOLDER
} in_the_way;

static void put_in_the_way(in_the_way kind, const char *path)
{
    char other[96];
    FILE *file;

    snprintf(other, sizeof other, "%s.other", path);
    if (kind == PLAIN) {
        file = fopen(path, "w");
        CHECK(file != NULL && fputs("mine", file) >= 0 && fclose(file) == 0);
    } else if (kind == PIPE) {
        CHECK(mkfifo(path, 0600) == 0);
    } else if (kind == FOLDER) {
        CHECK(mkdir(path, 0700) == 0);
    } else {
        if (kind == LINK_TO_SOCKET)
            leave_stale(other);
        CHECK(symlink(other, path) == 0);
    }
}

TEST(address, of_a_path_leaves_what_is_not_a_socket)
{
    char folder[] = "/tmp/stagger-path-XXXXXX", text[64], other[96];
    const char *path = text + 5;
    struct stat before, after;
    stg_listen_address a;
    stg_error err;
    int fd;

    CHECK(mkdtemp(folder) != NULL);
    snprintf(text, sizeof text, "unix:%s/s", folder);
    snprintf(other, sizeof other, "%s.other", path);
    for (in_the_way kind = PLAIN; kind <= FOLDER; kind++) {
        put_in_the_way(kind, path);
        CHECK(lstat(path, &before) == 0);
        CHECK_INT(stg_address_parse(&a, text, &err), STG_OK);
        CHECK_INT(stg_address_listen(&a, &fd, &err), STG_INVALID);
        CHECK(strstr(err.text, "not a socket") != NULL);
        stg_address_leave(&a);
        CHECK(lstat(path, &after) == 0 && after.st_ino == before.st_ino);
        CHECK((kind == FOLDER ? rmdir(path) : unlink(path)) == 0);
        CHECK((unlink(other) == 0) == (kind == LINK_TO_SOCKET));
    }
    CHECK(rmdir(folder) == 0);
}

/* The end of one hub must not take away the socket of the next one. */
TEST(address, of_a_path_leaves_another_file_of_that_name_at_the_end)
{
    char folder[] = "/tmp/stagger-path-XXXXXX", text[64];
    const char *path = text + 5;
    stg_listen_address a, b;
    stg_error err;
    struct stat s;
    int fd, other;

    CHECK(mkdtemp(folder) != NULL);
    snprintf(text, sizeof text, "unix:%s/s", folder);
    CHECK_INT(stg_address_parse(&a, text, &err), STG_OK);
    b = a;
    CHECK_INT(stg_address_listen(&a, &fd, &err), STG_OK);
    CHECK(unlink(path) == 0);
    CHECK_INT(stg_address_listen(&b, &other, &err), STG_OK);
    stg_address_leave(&a);
    CHECK(lstat(path, &s) == 0 && S_ISSOCK(s.st_mode));
    stg_address_leave(&b);
    CHECK(lstat(path, &s) != 0);
    put_in_the_way(PLAIN, path);
    stg_address_leave(&b);
    CHECK(unlink(path) == 0 && rmdir(folder) == 0);
    CHECK(close(fd) == 0 && close(other) == 0);
}

/* A listener that is stopped, and whose backlog is full, is still there. */
TEST(address, of_a_path_waits_for_no_listener)
{
    char folder[] = "/tmp/stagger-path-XXXXXX", text[64];
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), other, calls[8];
    stg_listen_address a;
    stg_error err;

    CHECK(mkdtemp(folder) != NULL);
    snprintf(text, sizeof text, "unix:%s/s", folder);
    strncpy(to.sun_path, text + 5, sizeof to.sun_path - 1);
    CHECK(bind(fd, (struct sockaddr *)&to, sizeof to) == 0);
    CHECK(listen(fd, 0) == 0);
    for (size_t i = 0; i < 8; i++) {
        calls[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)connect(calls[i], (struct sockaddr *)&to, sizeof to);
    }
    alarm(10); // a test that hangs ends
    CHECK_INT(stg_address_parse(&a, text, &err), STG_OK);
    CHECK_INT(stg_address_listen(&a, &other, &err), STG_IO);
    CHECK(strstr(err.text, "another program listens there") != NULL);
    alarm(0);
    for (size_t i = 0; i < 8; i++)
        CHECK(close(calls[i]) == 0);
    CHECK(close(fd) == 0 && unlink(to.sun_path) == 0 && rmdir(folder) == 0);
}

/* 192.0.2.0/24 is for documents: no machine has it. */
TEST(address, that_the_machine_lacks_is_told_from_a_port_in_use)
{
    stg_listen_address lacking, taken;
    stg_error err;
    int fd, other;

    CHECK_INT(stg_address_parse(&lacking, "192.0.2.1:8080", &err), STG_OK);
    CHECK_INT(stg_address_check_host(&lacking, &err), STG_INVALID);
    CHECK(strstr(err.text,
                 "listen=192.0.2.1:8080: this machine has no such "
                 "address") != NULL);
    CHECK_INT(stg_address_check_host(&lacking, NULL), STG_INVALID);
    CHECK_INT(stg_address_listen(&lacking, &fd, &err), STG_IO);
    CHECK(strstr(err.text, "this machine has no such address") != NULL);
    CHECK_INT(stg_address_parse(&taken, "127.0.0.1:0", &err), STG_OK);
    CHECK_INT(stg_address_listen(&taken, &fd, &err), STG_OK);
    CHECK_INT(stg_address_check_host(&taken, &err), STG_OK);
    CHECK_INT(stg_address_listen(&taken, &other, &err), STG_IO);
    CHECK(strstr(err.text, "another program listens there") != NULL);
    CHECK(close(fd) == 0);
}

/* -- headers ----------------------------------------------------------------- */

TEST(headers, are_kept_by_name_or_by_beginning)
{
    static const char *const rules[] = {"traceparent", "X-*", NULL};
    static const char *const all[] = {"*", NULL};

    CHECK(stg_headers_keep(stg_headers_default, span_of("Ce-Id")));
    CHECK(stg_headers_keep(rules, span_of("TraceParent")));
    CHECK(stg_headers_keep(rules, span_of("x-a")));
    CHECK(stg_headers_keep(rules, span_of("X-")));
    CHECK(!stg_headers_keep(rules, span_of("X")));
    CHECK(!stg_headers_keep(rules, span_of("traceparent2")));
    CHECK(!stg_headers_keep(rules, span_of("tracepare")));
    CHECK(!stg_headers_keep(rules, span_of("")));
    CHECK(stg_headers_keep(all, span_of("Anything")));
}

TEST(headers, of_the_connection_and_of_the_sender_are_never_kept)
{
    static const char *const all[] = {"*", NULL};
    static const char *const never[] = {
        "authorization", "Cookie",     "content-length",    "Content-Type",
        "Connection",    "TE",         "transfer-encoding", "Upgrade",
        "Host",          "Expect",     "Proxy-Anything",    "Stagger-Id",
        "Trailer",       "keep-alive", "Idempotency-Key",   "Set-Cookie",
        "User-Agent",    "webhook_id", "Signature",         "host",
        "x_inbound",
    };

    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        const char *const rules[] = {never[i], NULL};
        stg_error err;

        CHECK(!stg_headers_keep(all, span_of(never[i])));
        CHECK_INT(stg_headers_check(rules, &err), STG_INVALID);
        CHECK(strstr(err.text, "never kept") != NULL);
    }
    CHECK_INT(stg_headers_check(all, NULL), STG_OK);
    CHECK_INT(stg_headers_check(stg_headers_default, NULL), STG_OK);
}

TEST(headers, rules_must_be_names)
{
    static const char *const wrong[] = {"", "a b", "a:", "X-\n*", "\xc3\xa4"};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const char *const rules[] = {wrong[i], NULL};

        CHECK_INT(stg_headers_check(rules, NULL), STG_INVALID);
    }
}

TEST(headers, in_a_list_are_found_whole)
{
    stg_span list = span_of(" close,X-A , ,x-b");

    CHECK(stg_header_list_has(list, span_of("CLOSE")));
    CHECK(stg_header_list_has(list, span_of("x-a")));
    CHECK(stg_header_list_has(list, span_of("X-B")));
    CHECK(!stg_header_list_has(list, span_of("X")));
    CHECK(!stg_header_list_has(list, span_of("X-")));
    CHECK(!stg_header_list_has(span_of(""), span_of("X")));
}

/* -- JSON -------------------------------------------------------------------- */

static bool is_json(const char *text, size_t size, stg_span *value)
{
    stg_scan s = stg_scan_of((stg_span){text, size});
    bool is = stg_scan_value(&s, value) && stg_scan_end(&s);

    CHECK(is == (s.wrong == NULL));
    return is;
}

TEST(scan, takes_what_is_json)
{
    static const char *const texts[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-1.5e+9",
        "1E5",
        "10.01",
        "\"\"",
        "\"\\u00e9\\ud83d\\ude00\\n\\/\"",
        "\"\xf0\x9f\x98\x80\"",
        "[]",
        "{}",
        "[1, [2], {\"a\": [ ]}]",
        "{\"a\":{\"a\":1},\"b\":null}",
        " \t\r\n[ 1 , 2 ] ",
        "123456789012345678901234567890",
    };
    stg_span value;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        CHECK(is_json(texts[i], strlen(texts[i]), &value));
    CHECK(is_json(" \t [ 1 ]  ", 10, &value));
    CHECK(value.size == 5 && memcmp(value.at, "[ 1 ]", 5) == 0);
}

TEST(scan, refuses_what_is_none)
{
    static const char *const texts[] = {
        "",
        " ",
        "nul",
        "nulll",
        "True",
        "01",
        "+1",
        "1.",
        ".5",
        "1e",
        "-",
        "\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\\ud83d\"",
        "\"\\ude00\"",
        "\"\\ud83d\\u0041\"",
        "\"\n\"",
        "\"\xff\"",
        "\"\xc0\x80\"",
        "\"\xed\xa0\x80\"",
        "[",
        "]",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{",
        "}",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "{\"a\":1,}",
        "{1:2}",
        "[1}",
        "{\"a\":1]",
        "1 2",
        "[] x",
        "'a'",
        "[1]]",
    };
    stg_span value;

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (is_json(texts[i], strlen(texts[i]), &value))
            CHECK_STR(texts[i], "refused");
}

TEST(scan, goes_down_so_far_and_no_further)
{
    char text[2 * STG_SCAN_DEPTH + 3];
    stg_span value;
    size_t n = STG_SCAN_DEPTH;

    memset(text, '[', n);
    memset(text + n, ']', n);
    CHECK(is_json(text, 2 * n, &value));
    memset(text, '[', n + 1);
    memset(text + n + 1, ']', n + 1);
    // The innermost is empty, and opens no level that anything lies in.
    CHECK(is_json(text, 2 * n + 2, &value));
    text[n + 1] = '0';
    CHECK(!is_json(text, 2 * n + 2, &value));
}

/* A random text, JSON more often than not. */
static size_t make_json(stg_rng *rng, char *text, size_t room, int depth)
{
    static const char *const parts[] = {
        "null",
        "true",
        "-1.25e3",
        "0",
        "\"a\\u00e9\\\"b\"",
        "\"\xc3\xa4\"",
        "[]",
        "{}",
        "\"\\ud83d\\ude00\"",
        "17",
    };
    size_t size = 0;
    uint64_t kind = stg_rng_upto(rng, depth > 0 ? 3 : 1);

    if (kind < 2 || room < 64) {
        const char *part = parts[stg_rng_upto(rng, 9)];

        memcpy(text, part, strlen(part));
        return strlen(part);
    }
    text[size++] = kind == 2 ? '[' : '{';
    for (uint64_t n = stg_rng_upto(rng, 3), i = 0; i <= n; i++) {
        if (i > 0)
            text[size++] = ',';
        if (kind == 3) // names differ: jansson is asked to refuse doubles
            size += (size_t)sprintf(text + size, "\"%d\" :", (int)i);
        size += make_json(rng, text + size, (room - size) / 4, depth - 1);
        if (room - size < 32)
            break;
    }
    text[size++] = kind == 2 ? ']' : '}';
    return size;
}

/* Whatever jansson takes we take, and nothing else. */
TEST(scan, agrees_with_jansson)
{
    for (uint64_t seed = 0; seed < seeds(20000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        char text[2048];
        size_t size = make_json(&rng, text, sizeof text - 64, 5);
        stg_span value;
        json_t *json;
        bool is;

        for (uint64_t n = stg_rng_upto(&rng, 2); n > 0; n--)
            text[stg_rng_upto(&rng, size - 1)] =
                "[]{}\",:\\0e.u\x80x"[stg_rng_upto(&rng, 13)];
        json = json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        is = is_json(text, size, &value);
        CHECK_FROM(seed, is == (json != NULL));
        if (json != NULL && json_is_string(json)) {
            char out[2048];
            size_t length = stg_scan_text(value, out);

            CHECK_FROM(seed, length == json_string_length(json));
            CHECK_FROM(seed, memcmp(out, json_string_value(json), length) == 0);
        }
        json_decref(json);
    }
}

/* -- batches ----------------------------------------------------------------- */

static const char *const rules_headers[] = {"X-*", NULL};
static const stg_batch_rules rules = {
    10, 3, rules_headers, UINT64_C(1772366400) * STG_S}; // 2026-03-01T12:00Z

/* Reads a copy of the text, of its own size. */
static bool parse(const char *text, stg_batch *b, stg_problem *why, char **copy)
{
    size_t size = strlen(text);

    *copy = malloc(size + 1);
    CHECK(*copy != NULL);
    memcpy(*copy, text, size);
    *why = (stg_problem){0};
    *b = (stg_batch){0};
    return stg_batch_parse(b, *copy, size, &rules, why);
}

static void check_span(stg_span span, const char *text)
{
    char *is = calloc(1, span.size + 1);

    CHECK(is != NULL);
    if (span.size > 0)
        memcpy(is, span.at, span.size);
    CHECK_STR(is, text);
    free(is);
}

/* They stand ahead of the line's headers, as instants. */
TEST(batch, reads_when_a_message_may_be_sent)
{
    stg_batch b;
    stg_problem why;
    char *copy;

    CHECK(
        parse("{\"body\":\"a\",\"not_before\":\"10m\"}\n"
              "{\"expires\":\"2026-03-02T12:00:00Z\",\"body\":\"b\","
              "\"headers\":{\"X-A\":\"b\"},\"not_before\":\"0\"}\n"
              "{\"body\":\"c\"}",
              &b, &why, &copy));
    check_span(b.messages[0].parcel.headers,
               "Stagger-Not-Before: 2026-03-01T12:10:00.000Z\r\n");
    check_span(b.messages[1].parcel.headers,
               "Stagger-Not-Before: 2026-03-01T12:00:00.000Z\r\n"
               "Stagger-Expires: 2026-03-02T12:00:00.000Z\r\nX-A: b\r\n");
    check_span(b.messages[2].parcel.headers, "");
    CHECK(b.more > 2 * STG_TIMES_ROOM);
    stg_batch_free(&b);
    free(copy);
}

TEST(batch, refuses_times_that_it_cannot_read)
{
    static const struct {
        const char *text, *why;
    } wrong[] = {
        {"{\"body\":\"a\",\"not_before\":\"31d\"}",
         "line 1: \"not_before\": expected a time like 2026-03-01T12:00:00Z, or "
         "one from now, like 10m, at most 30d ahead"},
        {"{\"body\":\"a\"}\n{\"body\":\"a\",\"expires\":\"soon\"}",
         "line 2: \"expires\": expected a time like 2026-03-01T12:00:00Z, or "
         "one from now, like 10m"},
        {"{\"body\":\"a\",\"expires\":60}", "line 1: \"expires\" is no string"},
        {"{\"body\":\"a\",\"expires\":\"1m\",\"not_before\":\"2m\"}",
         "line 1: \"expires\": expected a time after the one before which it is "
         "not sent"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        stg_batch b;
        stg_problem why;
        char *copy;

        CHECK(!parse(wrong[i].text, &b, &why, &copy));
        CHECK_INT(why.status, 400);
        CHECK_STR(why.detail, wrong[i].why);
        free(copy);
    }
}

TEST(batch, reads_each_kind_of_body)
{
    stg_batch b;
    stg_problem why;
    char *copy;

    CHECK(
        parse("{\"body\":\"a\\u00e9\\n\"}\n \r\n"
              "{\"body_base64\":\"Zm9vYmE=\",\"content_type\":\"a/b\"}\n"
              "{\"json\": [1.0, 2] , \"key\":\"k\"}",
              &b, &why, &copy));
    CHECK_INT(b.count, 3);
    check_span(b.messages[0].parcel.body, "a\xc3\xa9\n");
    check_span(b.messages[1].parcel.body, "fooba");
    check_span(b.messages[1].parcel.content_type, "a/b");
    check_span(b.messages[2].parcel.body, "[1.0, 2]");
    check_span(b.messages[2].parcel.key, "k");
    CHECK_INT(b.lines[0], 1);
    CHECK_INT(b.lines[1], 3);
    CHECK_INT(b.lines[2], 4);
    stg_batch_free(&b);
    free(copy);
}

TEST(batch, makes_lines_of_headers)
{
    stg_batch b;
    stg_problem why;
    char *copy;

    CHECK(
        parse("{\"headers\":{\"X-\\u0041\" : \"b\\/c\",\"x-b\":\"\"},"
              "\"body\":\"\",\"idempotency_key\":\"i\"}",
              &b, &why, &copy));
    check_span(b.messages[0].parcel.headers, "X-A: b/c\r\nx-b: \r\n");
    check_span(b.messages[0].parcel.body, "");
    check_span(b.messages[0].idempotency_key, "i");
    stg_batch_free(&b);
    free(copy);
}

/* What is no body is memory, too. */
TEST(batch, refuses_headers_beyond_those_of_a_single_message)
{
    const size_t size = STG_HEADERS_SIZE_MAX;
    char *text = calloc(1, size + 64), *copy;
    stg_problem why;
    stg_batch b;

    CHECK(text != NULL);
    strcpy(text, "{\"body\":\"\",\"headers\":{\"X-A\":\"");
    memset(text + strlen(text), 'a', size);
    strcat(text, "\"}}");
    CHECK(!parse(text, &b, &why, &copy));
    CHECK_INT(why.status, 413);
    CHECK_INT((int)why.line, 1);
    stg_batch_free(&b);
    free(copy);
    free(text);
}

TEST(batch, refuses_lines_and_says_why)
{
    static const struct {
        const char *text;
        int status;
        size_t line;
        const char *why;
    } wrong[] = {
        {"", 400, 0, "without a message"},
        {"\n \n", 400, 0, "without a message"},
        {"x", 400, 1, "expected an object at byte 1"},
        {"[]", 400, 1, "expected an object"},
        {"{\"body\":\"a\"}\n{\"body\":\"a\"", 400, 2, "without its end"},
        {"{\"body\":\"a\"} x", 400, 1, "something behind the value"},
        {"{}", 400, 1, "expected one of body, body_base64, json; found 0"},
        {"{\"body\":\"a\",\"json\":1}", 400, 1, "found 2"},
        {"{\"body\":1}", 400, 1, "\"body\" is no string"},
        {"{\"body\":\"a\",\"body\":\"a\"}", 400, 1, "is there twice"},
        {"{\"body\":\"a\",\"id\":1}", 400, 1, "unknown name \"id\""},
        {"{\"body_base64\":\"Zm9\"}", 400, 1, "no Base64"},
        {"{\"body_base64\":\"Zm9=Zm9=\"}", 400, 1, "no Base64"},
        {"{\"body_base64\":\"Zm9_\"}", 400, 1, "no Base64"},
        {"{\"body_base64\":\"Zm9vYmF=\"}", 400, 1, "no Base64"},
        {"{\"body_base64\":\"====\"}", 400, 1, "no Base64"},
        {"{\"body\":\"a\",\"key\":\"\"}", 400, 1, "\"key\": expected 1 to"},
        {"{\"body\":\"a\",\"key\":\"a\\r\\nb\"}", 400, 1, "control"},
        {"{\"body\":\"a\",\"idempotency_key\":\"\\u0000\"}", 400, 1, "control"},
        {"{\"body\":\"a\",\"content_type\":\"a\\nb\"}", 400, 1, "media type"},
        {"{\"body\":\"a\",\"headers\":[]}", 400, 1, "is no object"},
        {"{\"body\":\"a\",\"headers\":{\"X-A\":1}}", 400, 1, "is no string"},
        {"{\"body\":\"a\",\"headers\":{\"X A\":\"\"}}", 400, 1,
         "no header has"},
        {"{\"body\":\"a\",\"headers\":{\"Y\":\"\"}}", 400, 1, "Y is not kept"},
        {"{\"body\":\"a\",\"headers\":{\"X-A\":\"a\\r\\nY: b\"}}", 400, 1,
         "no header may have"},
        {"{\"body\":\"01234567890\"}", 413, 1, "11 bytes; the most is 10"},
        {"{\"body\":\"\"}\n{\"body\":\"\"}\n{\"body\":\"\"}\n{\"body\":\"\"}",
         413, 0, "more than 3 messages"},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        stg_batch b;
        stg_problem why;
        char *copy;

        CHECK(!parse(wrong[i].text, &b, &why, &copy));
        if (strstr(why.detail, wrong[i].why) == NULL)
            CHECK_STR(why.detail, wrong[i].why);
        CHECK_INT(why.status, wrong[i].status);
        CHECK_U64(why.line, wrong[i].line);
        CHECK(b.messages == NULL);
        free(copy);
    }
}

TEST(problem, is_printed_as_json_whatever_its_words)
{
    char text[STG_PROBLEM_TEXT_MAX];
    stg_problem p;
    json_t *json;

    stg_problem_set(&p, 409, 3, "a \"b\" \\ \n \xff %0500d", 1);
    CHECK(stg_problem_print(&p, text) == strlen(text));
    json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    CHECK(json != NULL);
    CHECK_STR(json_string_value(json_object_get(json, "title")), "Conflict");
    CHECK_INT(json_integer_value(json_object_get(json, "status")), 409);
    CHECK_INT(json_integer_value(json_object_get(json, "line")), 3);
    CHECK(strncmp(json_string_value(json_object_get(json, "detail")),
                  "a \"b\" \\ ? ? 000", 15) == 0);
    json_decref(json);
}

/* -- tokens ------------------------------------------------------------------ */

#define FIRST "abcdefghijklmnop"
#define SECOND "ABCDEFGHIJKLMNOP-._~+/=="

static stg_status parse_tokens(stg_tokens **t, const char *text, stg_error *err)
{
    return stg_tokens_parse(t, span_of(text), "f", err);
}

TEST(token, is_one_of_the_files_and_nothing_else)
{
    char first[STG_TOKEN_LINE_MAX], second[STG_TOKEN_LINE_MAX], text[512];
    const stg_token *found;
    stg_tokens *t;
    stg_error err;

    CHECK(stg_token_print(FIRST, STG_ROLE_PUBLISH, "till-3", first));
    CHECK(stg_token_print(SECOND, STG_ROLE_OPERATE, "", second));
    CHECK_STR(first,
              "publish sha256:f39dac6cbaba535e2c207cd0cd8f154974223c848f727f98b"
              "3564cea569b41cf till-3\n");
    snprintf(text, sizeof text, "# a\n  %s \r\n\n%s", first, second);
    CHECK_INT(parse_tokens(&t, text, &err), STG_OK);
    found = stg_tokens_find(t, "Bearer " FIRST);
    CHECK(found != NULL);
    CHECK_STR(found->name, "till-3");
    CHECK_INT(found->roles, STG_ROLE_PUBLISH);
    found = stg_tokens_find(t, "bEARER   " SECOND " ");
    CHECK(found != NULL);
    CHECK_STR(found->name, "");
    CHECK_INT(found->roles, STG_ROLE_OPERATE | STG_ROLE_VIEW);
    CHECK(stg_tokens_find(t, "Bearer abcdefghijklmno") == NULL);
    CHECK(stg_tokens_find(t, "Bearer abcdefghijklmnopq") == NULL);
    CHECK(stg_tokens_find(t, "Bearer") == NULL);
    CHECK(stg_tokens_find(t, "Bearer ") == NULL);
    CHECK(stg_tokens_find(t, "Bearer # a") == NULL);
    CHECK(stg_tokens_find(t, "") == NULL);
    CHECK(stg_tokens_find(t, NULL) == NULL);
    stg_tokens_free(t);
}

/* The hash is no token. */
TEST(token, is_not_known_by_its_hash)
{
    char line[STG_TOKEN_LINE_MAX], header[STG_TOKEN_LINE_MAX + 16];
    stg_tokens *t;
    stg_error err;

    CHECK(stg_token_print(FIRST, STG_ROLE_PUBLISH, "", line));
    CHECK_INT(parse_tokens(&t, line, &err), STG_OK);
    snprintf(header, sizeof header, "Bearer %.64s", strstr(line, ":") + 1);
    CHECK(stg_tokens_find(t, header) == NULL);
    stg_tokens_free(t);
}

TEST(token, is_refused_in_a_line_that_is_wrong)
{
    static const char expected[] = "expected ROLE[,ROLE] sha256:HASH [NAME]";
    static const struct {
        const char *format, *words;
    } lines[] = {
        {"publish sha256:%s\n\npublish sha256:%.63s", expected},
        {"publish sha256:%s\n#\npublish sha512:%s", expected},
        {"publish sha256:%s\n\nadmin sha256:%s", expected},
        {"publish sha256:%s\n\npublish,,view sha256:%s", expected},
        {"publish sha256:%s\n\nsha256:%s", expected},
        {"publish sha256:%s\n\nview sha256:%s a b", "expected a name of"},
        {"publish sha256:%s\n\nview sha256:%s", "is there already"},
    };
    const char *hash =
        "f39dac6cbaba535e2c207cd0cd8f154974223c848f727f98b"
        "3564cea569b41cf";
    stg_tokens *t;
    stg_error err;
    char text[512];

    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof text, lines[i].format, hash, hash);
#pragma GCC diagnostic pop
        CHECK_INT(parse_tokens(&t, text, &err), STG_INVALID);
        CHECK_INT(err.line, 3);
        if (strstr(err.text, lines[i].words) == NULL)
            CHECK_STR(err.text, lines[i].words);
    }
    CHECK_INT(parse_tokens(&t, "# none\n", &err), STG_INVALID);
    CHECK(strstr(err.text, "stagger token new f") != NULL);
}

TEST(token, is_made_of_256_random_bits)
{
    char one[STG_TOKEN_TEXT_MAX], other[STG_TOKEN_TEXT_MAX];
    stg_error err;

    CHECK_INT(stg_token_make(one, &err), STG_OK);
    CHECK_INT(stg_token_make(other, &err), STG_OK);
    CHECK_INT(strlen(one), 8 + 64);
    CHECK(strcmp(one, other) != 0);
}

/* I23. */
TEST(token, is_not_in_the_words_of_an_error)
{
    stg_tokens *t;
    stg_error err;

    CHECK_INT(parse_tokens(&t, "my s3cret token", &err), STG_INVALID);
    CHECK(strstr(err.text, "s3cret") == NULL);
    CHECK(strstr(err.text, "token file f:1: ") != NULL);
}

/* -- routes ------------------------------------------------------------------ */

static stg_match match(const char *path, const char *method)
{
    static const stg_route one[] = {
        {.method = "GET", .path = "/a/{id}"},
        {.method = "POST", .path = "/a/b"},
    };
    static const stg_route two[] = {
        {.method = "POST", .path = "/a/{id}"},
        {.method = "POST", .path = "/t/{name}/x/{id}"},
        {.method = "GET", .path = "/"},
    };
    static int ctx;
    const stg_routes tables[] = {{one, 2, NULL}, {two, 3, &ctx}};
    stg_match m;

    stg_routes_match(tables, 2, path, method, &m);
    CHECK((m.ctx != NULL) ==
          (m.route != NULL && m.route != &one[0] && m.route != &one[1]));
    return m;
}

static void check_match(const char *path, const char *method,
                        const char *pattern, const char *allowed)
{
    stg_match m = match(path, method);

    CHECK_STR(m.route == NULL ? "" : m.route->path, pattern);
    if (m.route == NULL)
        CHECK_STR(m.allowed, allowed);
}

TEST(route, is_found_by_path_and_method)
{
    check_match("/a/7", "GET", "/a/{id}", "");
    check_match("/a/7", "HEAD", "/a/{id}", "");
    check_match("/a/7", "POST", "/a/{id}", "");
    check_match("/a/7", "PUT", "", "GET, HEAD, POST");
    check_match("/a/b", "POST", "/a/b", "");
    check_match("/a/b", "GET", "", "POST"); // b is no id
    check_match("/t/n/x/9", "POST", "/t/{name}/x/{id}", "");
    check_match("/t/n/y/9", "POST", "", "");
    check_match("/", "GET", "/", "");
    check_match("/a", "GET", "", "");
    check_match("/a/", "GET", "", "");
    check_match("/a/7/", "GET", "", "");
    check_match("/a//7", "GET", "", "");
    check_match("//a/7", "GET", "", "");
    check_match("", "GET", "", "");
    check_match("*", "GET", "", "");
}

TEST(route, gives_the_words_of_a_path)
{
    const char *pattern = "/t/{name}/x/{id}";
    char word[8];

    CHECK_INT(stg_route_word(pattern, "/t/abc/x/9", 0, word, sizeof word), 3);
    CHECK_STR(word, "abc");
    CHECK_INT(stg_route_word(pattern, "/t/abc/x/9", 1, word, sizeof word), 1);
    CHECK_STR(word, "9");
    CHECK_INT(stg_route_word(pattern, "/t/abc/x/9", 2, word, sizeof word), 0);
    CHECK_INT(stg_route_word(pattern, "/t/abcdefg/x/9", 0, word, sizeof word),
              7);
    CHECK_INT(stg_route_word(pattern, "/t/abcdefgh/x/9", 0, word, sizeof word),
              0);
}
