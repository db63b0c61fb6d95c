/* What is an answer, what is none, and that pieces make no difference. */
#include "http/answer.h"

#include <stdio.h>
#include <stdlib.h>

#include <stagger/rng.h>

#include "tests/harness.h"

enum { BODY_MAX = 100, EXCERPT_MAX = 16 };

/* Feeds up to `size` bytes at a time; each from memory of its own, for the
 * sanitizer to see a step beyond. */
static void feed(stg_answer *a, const char *bytes, size_t size, size_t piece)
{
    while (size > 0) {
        size_t part = piece < size ? piece : size;
        char *copy = malloc(part);

        CHECK(copy != NULL);
        memcpy(copy, bytes, part);
        (void)stg_answer_feed(a, copy, part);
        free(copy);
        bytes += part;
        size -= part;
    }
}

/* What it comes to, in words: "200 keeps 'body'". */
static const char *words_of(stg_answer *a, bool is_end, char words[256])
{
    static const char *const states[] = {"open", "whole", "cut", "broken"};

    if (is_end)
        (void)stg_answer_end(a, true);
    (void)snprintf(
        words, 256, "%s %d%s%s '%.*s'", states[a->state],
        a->state == STG_ANSWER_BROKEN ? 0 : a->status,
        a->state == STG_ANSWER_WHOLE && a->keeps_alive ? " keeps" : "",
        a->state == STG_ANSWER_WHOLE && a->has_leftover ? " left" : "",
        a->state == STG_ANSWER_BROKEN ? 0 : (int)a->excerpt_size,
        a->excerpt ? a->excerpt : "");
    return words;
}

/* As the client has it: what is left open by the first piece goes on in a copy,
 * while the first one is used for others. */
static void check_copy(const char *bytes, size_t size, size_t piece,
                       bool is_end, const char *expected)
{
    char words[256];
    stg_answer first, *copy;

    stg_answer_begin(&first, BODY_MAX, EXCERPT_MAX, false);
    feed(&first, bytes, piece, piece);
    copy = stg_answer_copy(&first);
    CHECK(copy != NULL);
    stg_answer_close(&first);
    memset(&first, 0xff, sizeof first);
    feed(copy, bytes + piece, size - piece, size);
    if (strcmp(words_of(copy, is_end, words), expected) != 0)
        harness_fail(__FILE__, __LINE__,
                     "%.*s\nis %s, not %s, copied after %zu (%s)", (int)size,
                     bytes, words, expected, piece, copy->why);
    stg_answer_close(copy);
    free(copy);
}

static void check_pieces(const char *bytes, size_t size, bool is_end,
                         const char *expected)
{
    char words[256];
    stg_answer a;

    for (size_t piece = 1; piece <= size; piece++) {
        check_copy(bytes, size, piece, is_end, expected);
        stg_answer_begin(&a, BODY_MAX, EXCERPT_MAX, false);
        feed(&a, bytes, size, piece);
        if (strcmp(words_of(&a, is_end, words), expected) != 0)
            harness_fail(__FILE__, __LINE__,
                         "%.*s\nis %s, not %s, in pieces of %zu (%s)",
                         (int)size, bytes, words, expected, piece, a.why);
        stg_answer_close(&a);
    }
    // And cut in two at every byte.
    for (size_t at = 1; at < size; at++) {
        stg_answer_begin(&a, BODY_MAX, EXCERPT_MAX, false);
        feed(&a, bytes, at, at);
        feed(&a, bytes + at, size - at, size - at);
        CHECK_STR(words_of(&a, is_end, words), expected);
        stg_answer_close(&a);
    }
}

static void check(const char *text, const char *expected)
{
    check_pieces(text, strlen(text), false, expected);
}

static void check_end(const char *text, const char *expected)
{
    check_pieces(text, strlen(text), true, expected);
}

#define H "HTTP/1.1 200 OK\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"

TEST(answer, is_framed_by_a_length)
{
    check(H "Content-Length: 0\r\n\r\n", "whole 200 keeps ''");
    check(H "content-length:  3 \r\n\r\nabc", "whole 200 keeps 'abc'");
    check(H "Content-Length: 3\r\n\r\nab", "open 200 'ab'");
    check(H "Content-Length: 3\r\n\r\nabcd", "whole 200 keeps left 'abc'");
    check_end(H "Content-Length: 3\r\n\r\nab", "broken 0 ''");
    check(H "Content-Length: 20\r\n\r\n01234567890123456789",
          "whole 200 keeps '0123456789012345'");
}

TEST(answer, is_framed_by_chunks)
{
    check(H CHUNKED "\r\n0\r\n\r\n", "whole 200 keeps ''");
    check(H CHUNKED "\r\n3\r\nabc\r\n0a\r\n0123456789\r\n0\r\n\r\n",
          "whole 200 keeps 'abc0123456789'");
    check(H CHUNKED "\r\n1;c=\"d\";e\r\nx\r\n0\r\nA: 1\r\nB: 2\r\n\r\n",
          "whole 200 keeps 'x'");
    check(H CHUNKED "\r\n3\r\nabc\r\n0\r\n", "open 200 'abc'");
    check(H CHUNKED "\r\n0\r\n\r\nx", "whole 200 keeps left ''");
    check_end(H CHUNKED "\r\n3\r\nabc\r\n", "broken 0 ''");
    check_end(H CHUNKED "\r\n3\r\nabc\r\n0\r\n", "broken 0 ''");
}

TEST(answer, is_framed_by_the_end_of_the_connection)
{
    check(H "\r\nabc", "open 200 'abc'");
    check_end(H "\r\nabc", "whole 200 'abc'");
    check_end(H "\r\n", "whole 200 ''");
    check_end("HTTP/1.0 404 None\r\nX: y\r\n\r\nabc", "whole 404 'abc'");
    check_end(H "Transfer-Encoding: gzip\r\n\r\nabc", "whole 200 'abc'");
}

TEST(answer, is_cut_short_where_the_end_cannot_be_trusted)
{
    stg_answer a;

    stg_answer_begin(&a, BODY_MAX, EXCERPT_MAX, false);
    feed(&a, H "\r\nabc", strlen(H) + 5, 99);
    CHECK_INT(stg_answer_end(&a, false), STG_ANSWER_BROKEN);
    CHECK_STR(a.why, "it is cut short");
    stg_answer_close(&a);
}

TEST(answer, has_no_body_where_its_status_has_none)
{
    check("HTTP/1.1 204 No\r\n\r\n", "whole 204 keeps ''");
    check("HTTP/1.1 304 Same\r\nContent-Length: 7\r\n\r\n",
          "whole 304 keeps ''");
    check("HTTP/1.1 204 No\r\n" CHUNKED "\r\n", "whole 204 keeps ''");
    check("HTTP/1.1 304 Same\r\nContent-Length: 1\r\n\r\nx",
          "whole 304 keeps left ''");
}

TEST(answer, says_whether_the_connection_lives)
{
    check(H "Connection: close\r\nContent-Length: 0\r\n\r\n", "whole 200 ''");
    check(H "Connection: keep-alive\r\nContent-Length: 0\r\n\r\n",
          "whole 200 keeps ''");
    check(H "Connection: x, CLOSE\r\nContent-Length: 0\r\n\r\n",
          "whole 200 ''");
    check("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", "whole 200 ''");
    check(
        "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n"
        "Content-Length: 0\r\n\r\n",
        "whole 200 keeps ''");
}

TEST(answer, comes_after_interim_ones)
{
    char text[2048] = "";

    check("HTTP/1.1 100 Continue\r\n\r\n" H "Content-Length: 1\r\n\r\nx",
          "whole 200 keeps 'x'");
    check("HTTP/1.1 103 Hints\r\nLink: <x>\r\n\r\nHTTP/1.1 102 P\r\n\r\n" H
          "Content-Length: 1\r\n\r\nx",
          "whole 200 keeps 'x'");
    check("HTTP/1.1 100 Continue\r\n\r\n", "open 0 ''");
    check_end("HTTP/1.1 100 Continue\r\n\r\n", "broken 0 ''");
    check("HTTP/1.1 100 C\r\nContent-Length: 3\r\n\r\n" H
          "Content-Length: 0\r\n\r\n",
          "whole 200 keeps ''"); // a length of what has no body
    check("HTTP/1.1 101 Other\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
          "broken 0 ''");
    check("HTTP/1.1 101 Other\r\n\r\n", "broken 0 ''");
    for (int i = 0; i < STG_ANSWER_INTERIMS_MAX; i++)
        strcat(text, "HTTP/1.1 100 C\r\n\r\n");
    strcat(text, H "Content-Length: 0\r\n\r\n");
    check(text, "whole 200 keeps ''");
    text[strlen(text) - strlen(H "Content-Length: 0\r\n\r\n")] = '\0';
    strcat(text, "HTTP/1.1 100 C\r\n\r\n");
    check(text, "broken 0 ''");
}

TEST(answer, is_refused_where_it_is_not_strictly_http)
{
    static const char *const broken[] = {
        "x",
        "\r\n",
        "\r\n" H "\r\n",
        " " H,
        "GET / HTTP/1.1\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
        "HTTP/2 200\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/0.9 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 000 OK\r\n\r\n",
        "HTTP/1.1 600 OK\r\n\r\n",
        "HTTP/1.1 999 OK\r\n\r\n",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/1.1 -20 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        // Ends of lines.
        "HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n",
        H "Content-Length: 0\n\r\n",
        H "Content-Length: 0\r\n\n",
        H "A: 1\rB: 2\r\n\r\n",
        H "A: 1\r\rContent-Length: 0\r\n\r\n",
        H "\rx",
        // Headers.
        H "A : 1\r\n\r\n",
        H "A\r\n\r\n",
        H ": 1\r\n\r\n",
        H "A: 1\r\n B: 2\r\n\r\n",
        H "A: 1\r\n\tB: 2\r\n\r\n",
        H " A: 1\r\n\r\n",
        H "A: \x01\r\n\r\n",
        H "A\x80: 1\r\n\r\n",
        // Lengths.
        H "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        H "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxy",
        H "Content-Length: 1, 1\r\n\r\nx",
        H "Content-Length: -1\r\n\r\n",
        H "Content-Length: +1\r\n\r\nx",
        H "Content-Length: 0x1\r\n\r\nx",
        H "Content-Length: 1 1\r\n\r\nx",
        H "Content-Length: 18446744073709551616\r\n\r\n",
        H "Content-Length: 1\r\n" CHUNKED "\r\n0\r\n\r\n",
        H CHUNKED "Content-Length: 1\r\n\r\n0\r\n\r\n",
        // Chunks.
        H CHUNKED "\r\nx\r\n",
        H CHUNKED "\r\n\r\n",
        H CHUNKED "\r\n-1\r\n",
        H CHUNKED "\r\n 1\r\nx\r\n0\r\n\r\n",
        H CHUNKED "\r\n0x1\r\nx\r\n",
        H CHUNKED "\r\nfffffffffffffffff\r\n",
        H CHUNKED "\r\n1\r\nxy\r\n0\r\n\r\n",
        H CHUNKED "\r\n1\nx\r\n0\r\n\r\n",
        H CHUNKED "\r\n1\r\nx\n0\r\n\r\n",
        H CHUNKED "\r\n1\rx",
    };

    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++)
        check(broken[i], "broken 0 ''");
}

TEST(answer, is_refused_for_a_byte_of_zero_in_its_head)
{
    static const char text[] = H "A: b\0c\r\nContent-Length: 0\r\n\r\n";

    check_pieces(text, sizeof text - 1, false, "broken 0 ''");
}

/* A head of so many bytes, that is none too long for a body. */
static char *head_of(size_t size)
{
    static const char last[] = "\r\nContent-Length: 0\r\n\r\n";
    char *head = malloc(size + 1);

    CHECK(head != NULL);
    memset(head, 'x', size);
    memcpy(head, H "X: ", strlen(H) + 3);
    memcpy(head + size - (sizeof last - 1), last, sizeof last);
    return head;
}

TEST(answer, has_a_head_of_64_kib_at_most)
{
    for (size_t over = 0; over < 2; over++) {
        size_t size = STG_ANSWER_HEAD_MAX + over;
        char *head = head_of(size), words[256];
        stg_answer a;

        for (size_t piece = 1000; piece < 80000; piece += 13000) {
            stg_answer_begin(&a, BODY_MAX, EXCERPT_MAX, false);
            feed(&a, head, size, piece);
            CHECK_STR(words_of(&a, false, words),
                      over ? "broken 0 ''" : "whole 200 keeps ''");
            stg_answer_close(&a);
        }
        free(head);
    }
}

TEST(answer, counts_interim_ones_into_its_head)
{
    char words[256];
    stg_answer a;

    stg_answer_begin(&a, BODY_MAX, EXCERPT_MAX, false);
    for (int i = 0; i < 2; i++) {
        char *head = head_of(STG_ANSWER_HEAD_MAX * 3 / 5);

        memcpy(head, "HTTP/1.1 103 ", 13);
        feed(&a, head, STG_ANSWER_HEAD_MAX * 3 / 5, 9999);
        CHECK_STR(words_of(&a, false, words), i ? "broken 0 ''" : "open 0 ''");
        free(head);
    }
    CHECK_STR(a.why, "the head is longer than 64 KiB");
    stg_answer_close(&a);
}

static void feed_times(stg_answer *a, const char *text, int times)
{
    for (int i = 0; i < times; i++)
        feed(a, text, strlen(text), strlen(text));
}

TEST(answer, is_cut_after_as_many_bytes_as_are_wanted)
{
    static const char ten[] = "0123456789";
    stg_answer a;

    stg_answer_begin(&a, BODY_MAX, EXCERPT_MAX, false);
    feed_times(&a, H "Content-Length: 101\r\n\r\n", 1);
    feed_times(&a, ten, BODY_MAX / 10);
    CHECK_INT(a.state, STG_ANSWER_OPEN);
    feed_times(&a, "x", 1);
    CHECK_INT(a.state, STG_ANSWER_CUT);
    CHECK_U64(a.body_size, BODY_MAX);
    CHECK_U64(a.excerpt_size, EXCERPT_MAX);
    stg_answer_close(&a);

    stg_answer_begin(&a, 0, 0, false);
    feed_times(&a, H "Content-Length: 0\r\n\r\n", 1);
    CHECK_INT(a.state, STG_ANSWER_WHOLE);
    stg_answer_begin(&a, 0, 0, false);
    feed_times(&a, H "Content-Length: 1\r\n\r\nx", 1);
    CHECK_INT(a.state, STG_ANSWER_CUT);
    CHECK_INT(a.status, 200);
    CHECK(a.excerpt == NULL);
}

/* A body of nothing but framing ends too. */
TEST(answer, is_cut_when_chunks_or_trailers_do_not_end)
{
    static const char *const endless[][2] = {
        {H CHUNKED "\r\n1;", "extension"},
        {H CHUNKED "\r\n0\r\n", "Trailer: x\r\n"},
        {H CHUNKED "\r\n1;", "a=\"b\";"},
    };

    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        stg_answer a;

        stg_answer_begin(&a, BODY_MAX, EXCERPT_MAX, false);
        feed_times(&a, endless[i][0], 1);
        feed_times(&a, endless[i][1], 30000);
        CHECK_FROM(i, a.state == STG_ANSWER_CUT);
        CHECK_FROM(i, a.status == 200);
        stg_answer_close(&a);
    }
}

/* -- delays ---------------------------------------------------------------- */

static stg_ns delay_of(const char *headers)
{
    stg_answer a;
    char text[512];
    stg_ns delays[2];

    (void)snprintf(text, sizeof text,
                   "HTTP/1.1 429 Slow\r\n%sContent-Length: 0\r\n\r\n", headers);
    for (size_t i = 0; i < 2; i++) {
        stg_answer_begin(&a, BODY_MAX, EXCERPT_MAX, false);
        feed(&a, text, strlen(text), i == 0 ? strlen(text) : 1);
        CHECK_INT(a.state, STG_ANSWER_WHOLE);
        delays[i] = stg_answer_delay(&a, 784111777); // 1994-11-06 08:49:37
        stg_answer_close(&a);
    }
    CHECK_U64(delays[0], delays[1]);
    return delays[0];
}

TEST(answer, asks_for_a_delay_in_seconds_milliseconds_or_by_a_date)
{
    CHECK_U64(delay_of(""), 0);
    CHECK_U64(delay_of("Retry-After: 12\r\n"), 12 * STG_S);
    CHECK_U64(delay_of("RETRY-AFTER:12\r\n"), 12 * STG_S);
    CHECK_U64(delay_of("retry-after-ms: 250\r\nRetry-After: 12\r\n"),
              250 * STG_MS);
    CHECK_U64(delay_of("Retry-After: Sun, 06 Nov 1994 08:49:47 GMT\r\n"),
              10 * STG_S);
    // The answer's own clock is the one that counts.
    CHECK_U64(delay_of("Date: Sun, 06 Nov 1994 08:49:40 GMT\r\n"
                       "Retry-After: Sun, 06 Nov 1994 08:49:47 GMT\r\n"),
              7 * STG_S);
    CHECK_U64(delay_of("Retry-After: Sunday, 06-Nov-94 08:49:47 GMT\r\n"),
              10 * STG_S);
}

TEST(answer, asks_to_wait_for_the_reset_of_a_rate_limit)
{
    CHECK_U64(delay_of("X-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 30\r\n"),
              30 * STG_S);
    CHECK_U64(delay_of("x-rate-limit-reset: 1372700903\r\n"
                       "Date: Mon, 01 Jul 2013 17:47:53 GMT\r\n"),
              30 * STG_S);
    CHECK_U64(delay_of("RateLimit: \"default\";r=0;t=30\r\n"), 30 * STG_S);
    CHECK_U64(delay_of("RateLimit-Remaining: 7\r\nRateLimit-Reset: 30\r\n"), 0);
    CHECK_U64(delay_of("X-RateLimit-Reset: 30\r\nRetry-After: 3\r\n"),
              3 * STG_S);
    CHECK_U64(delay_of("X-RateLimit-Resets: 30\r\n"), 0);
}

TEST(answer, asks_for_none_where_the_header_is_unreadable_or_another)
{
    CHECK_U64(delay_of("Retry-After: soon\r\n"), 0);
    CHECK_U64(delay_of("Retry-After:\r\n"), 0);
    CHECK_U64(delay_of("Retry-Afte: 9\r\n"), 0);
    CHECK_U64(delay_of("Retry-Afterr: 9\r\n"), 0);
    CHECK_U64(delay_of("X-Retry-After: 9\r\n"), 0);
    CHECK_U64(delay_of("Retry-After: 0000000000000000000000000000000000001"
                       "\r\n"),
              STG_S); // 37 digits
    CHECK_U64(delay_of("Retry-After: 00000000000000000000000000000000000000001"
                       "\r\n"),
              0); // more than any of them has
    CHECK_U64(delay_of("Retry-After: 1\r\nRetry-After: 2\r\n"), STG_S);
    CHECK_U64(delay_of("Retry-After-Long-Header-Name: 1\r\n"), 0);
}

TEST(answer, forgets_the_delay_of_an_interim_one_and_of_trailers)
{
    static const char interim[] =
        "HTTP/1.1 103 Hints\r\nRetry-After: 9\r\n\r\n" H
        "Content-Length: 0\r\n\r\n";
    static const char trailer[] = H CHUNKED "\r\n0\r\nRetry-After: 9\r\n\r\n";
    stg_answer a;

    stg_answer_begin(&a, BODY_MAX, EXCERPT_MAX, false);
    feed_times(&a, interim, 1);
    CHECK_INT(a.state, STG_ANSWER_WHOLE);
    CHECK_U64(stg_answer_delay(&a, 0), 0);
    stg_answer_begin(&a, BODY_MAX, EXCERPT_MAX, false);
    feed_times(&a, trailer, 1);
    CHECK_INT(a.state, STG_ANSWER_WHOLE);
    CHECK_U64(stg_answer_delay(&a, 0), 0);
}

/* Whatever bytes come in whatever pieces, it is the same answer. */
TEST(answer, is_the_same_in_any_pieces)
{
    static const char *const parts[] = {H,
                                        "HTTP/1.0 503 No\r\n",
                                        "HTTP/1.1 100 C\r\n\r\n",
                                        CHUNKED,
                                        "Content-Length: 3\r\n",
                                        "Connection: close\r\n",
                                        "A: b\r\n",
                                        "\r\n",
                                        "3\r\nabc\r\n",
                                        "0\r\n",
                                        "abc",
                                        "\r",
                                        "\n",
                                        "x",
                                        " ",
                                        "HTTP/1.1 204 N\r\n\r\n"};

    for (uint64_t seed = 0; seed < seeds(3000); seed++) {
        stg_rng rng = stg_rng_seed(seed);
        char text[256] = H, whole[256], pieces[256];
        uint64_t count = stg_rng_upto(&rng, 7);
        stg_answer a;

        for (uint64_t i = 0; i < count; i++)
            strcat(text,
                   parts[stg_rng_upto(&rng, sizeof parts / sizeof *parts - 1)]);
        stg_answer_begin(&a, BODY_MAX, EXCERPT_MAX, false);
        feed(&a, text, strlen(text), strlen(text));
        (void)words_of(&a, false, whole);
        stg_answer_close(&a);
        for (size_t piece = 1; piece < 5; piece++) {
            stg_answer_begin(&a, BODY_MAX, EXCERPT_MAX, false);
            feed(&a, text, strlen(text), piece);
            if (strcmp(words_of(&a, false, pieces), whole) != 0)
                harness_fail(__FILE__, __LINE__, "seed %ju: %s: %s, but %s",
                             (uintmax_t)seed, text, whole, pieces);
            stg_answer_close(&a);
        }
    }
}
