/* Signatures that are made on other threads: the same as on this one, each told
 * once, whoever has let go of the signer. */
#include "hub/parts.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness.h"

enum { MOST = 100, LINES_MAX = 1024 };

typedef struct world {
    uv_loop_t loop;
    stg_signings all;
    stg_signer *signer;
    char expected[LINES_MAX];
    size_t size, right, told;
} world;

static const stg_sign_request request = {.id = {"msg_1", 5},
                                         .seconds = 7,
                                         .body = {"a body", 6},
                                         .method = "POST",
                                         .url = "http://a.example/"};

static void open_world(world *w)
{
    static const char *const secrets[] = {
        "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRq"
        "SKJp4AJ6p9lMicMFs6Kvg==",
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"};
    const stg_sign_options o = {.scheme = STG_SIGN_STANDARD};

    *w = (world){.size = 0};
    CHECK_INT(uv_loop_init(&w->loop), 0);
    stg_signings_init(&w->all, &w->loop);
    CHECK_INT(stg_signer_new(&w->signer, &o, secrets, 2, NULL), STG_OK);
    CHECK(stg_signer_is_slow(w->signer));
    w->size = (size_t)(stg_signer_put(w->signer, w->expected, &request) -
                       w->expected);
}

static void told(void *ctx, stg_span lines)
{
    world *w = ctx;

    w->told++;
    w->right +=
        lines.size == w->size && memcmp(lines.at, w->expected, lines.size) == 0;
}

static void ask(world *w, size_t count)
{
    for (size_t i = 0; i < count; i++)
        CHECK(stg_signings_ask(&w->all, w->signer, &request, told, w));
}

/* libuv ends its threads behind OpenSSL's own end, which is too late to give back
 * what that keeps for each of them: a loss to valgrind. The barrier sees to it that
 * each thread has one. */
enum { THREADS = 4 };

static uv_barrier_t all_here;

static void forget(uv_work_t *work)
{
    (void)work;
    (void)uv_barrier_wait(&all_here);
    OPENSSL_thread_stop();
}

static void close_world(world *w)
{
    uv_work_t last[THREADS];

    CHECK_INT(uv_run(&w->loop, UV_RUN_DEFAULT), 0);
    CHECK_INT(uv_barrier_init(&all_here, THREADS), 0);
    for (size_t i = 0; i < THREADS; i++)
        CHECK_INT(uv_queue_work(&w->loop, &last[i], forget, NULL), 0);
    CHECK_INT(uv_run(&w->loop, UV_RUN_DEFAULT), 0);
    uv_barrier_destroy(&all_here);
    CHECK_INT(uv_loop_close(&w->loop), 0);
}

TEST(signing, tells_each_once_and_in_a_later_turn)
{
    static const size_t counts[] = {0, 1, 3, 16, 17, 64, MOST};
    world w;

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        open_world(&w);
        ask(&w, counts[i]);
        stg_signings_flush(&w.all);
        CHECK_U64(w.told, 0);
        stg_signer_free(w.signer); // they hold it
        close_world(&w);
        CHECK_U64(w.told, counts[i]);
        CHECK_U64(w.right, counts[i]);
    }
}

TEST(signing, has_as_many_batches_as_there_are_threads)
{
    static const char name[] = "UV_THREADPOOL_SIZE";
    static const struct {
        const char *text;
        size_t threads;
    } rows[] = {{"9", 9}, {"0", 1}, {"-3", 1}, {"x", 1}, {"5000", 1024}};
    stg_signings all;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_INT(setenv(name, rows[i].text, 1), 0);
        stg_signings_init(&all, NULL);
        CHECK_U64(all.threads, rows[i].threads);
    }
    CHECK_INT(unsetenv(name), 0);
    stg_signings_init(&all, NULL);
    CHECK_U64(all.threads, 4);
}

TEST(signing, takes_more_while_others_are_being_made)
{
    world w;

    open_world(&w);
    for (size_t i = 0; i < 10; i++) {
        ask(&w, i);
        stg_signings_flush(&w.all);
        (void)uv_run(&w.loop, UV_RUN_NOWAIT);
    }
    stg_signer_free(w.signer);
    close_world(&w);
    CHECK_U64(w.told, 45);
    CHECK_U64(w.right, 45);
}

/* The texts of the settings that it was made of are gone when it signs. */
TEST(signing, needs_no_text_of_the_settings)
{
    static const char *const key[] = {
        "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRq"
        "SKJp4AJ6p9lMicMFs6Kvg=="};
    char digest[] = "content-digest", method[] = "@method", name[] = "hub-1";
    const char *covers[] = {method, digest};
    const stg_sign_options o = {.scheme = STG_SIGN_MESSAGE,
                                .covers = covers,
                                .cover_count = 2,
                                .key_id = name};
    world w;

    open_world(&w);
    stg_signer_free(w.signer);
    CHECK_INT(stg_signer_new(&w.signer, &o, key, 1, NULL), STG_OK);
    CHECK(stg_signer_is_slow(w.signer));
    w.size =
        (size_t)(stg_signer_put(w.signer, w.expected, &request) - w.expected);
    ask(&w, 1);
    stg_signer_free(w.signer);
    memset(covers, 0, sizeof covers);
    memset(digest, '#', sizeof digest - 1);
    memset(method, '#', sizeof method - 1);
    memset(name, '#', sizeof name - 1);
    stg_signings_flush(&w.all);
    close_world(&w);
    CHECK_U64(w.right, 1);
}
