/* The server through TLS: what is said of each message holds there, too. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/x509.h>

#include "ingress/internal.h"
#include "tests/harness.h"
#include "tests/http/identity.h"
#include "tests/ingress/producer.h"

enum { MUCH = 900 * 1000 };

/* An ingress with a certificate, in a directory of files. */
typedef struct vault {
    market market;
    char directory[64], certificate[96], key[96], ca[96], ca_key[96];
    identity authority, server;
    stg_stream *stream;
    unsigned left;
} vault;

static void answer_much(void *ctx, stg_ask *a)
{
    char *text = malloc(MUCH);

    (void)ctx;
    CHECK(text != NULL);
    for (size_t i = 0; i < MUCH; i++)
        text[i] = (char)('a' + i % 23);
    stg_ask_answer(a, 200, "text/plain", text, MUCH);
}

static void note_left(void *ctx)
{
    ((vault *)ctx)->left++;
}

static void open_stream(void *ctx, stg_ask *a)
{
    vault *v = ctx;

    v->stream = stg_ask_stream(a, note_left, v);
}

static const stg_route routes[] = {
    {"GET", "/v1/much", STG_ROLE_VIEW, STG_BODY_NONE, NULL, answer_much, false},
    {"GET", "/v1/news", STG_ROLE_VIEW, STG_BODY_NONE, NULL, open_stream, false},
};

static void begin(vault *v, long until_s)
{
    stg_tls_options *tls = &v->market.options.tls;

    (void)signal(SIGPIPE, SIG_IGN);
    memset(v, 0, sizeof *v);
    market_begin(&v->market);
    (void)snprintf(v->directory, sizeof v->directory, "/tmp/stagger-XXXXXX");
    CHECK(mkdtemp(v->directory) != NULL);
    (void)snprintf(v->certificate, 96, "%s/server.pem", v->directory);
    (void)snprintf(v->key, 96, "%s/server.key", v->directory);
    (void)snprintf(v->ca, 96, "%s/ca.pem", v->directory);
    (void)snprintf(v->ca_key, 96, "%s/ca.key", v->directory);
    v->authority = identity_make(NULL, 3600, NULL);
    v->server = identity_make("DNS:localhost", until_s, &v->authority);
    identity_write(&v->authority, v->ca, v->ca_key);
    identity_write(&v->server, v->certificate, v->key);
    *tls = (stg_tls_options){.certificate_file = v->certificate,
                             .key_file = v->key};
    v->market.tls = SSL_CTX_new(TLS_client_method());
    CHECK(SSL_CTX_load_verify_locations(v->market.tls, v->ca, NULL) == 1);
    SSL_CTX_set_verify(v->market.tls, SSL_VERIFY_PEER, NULL);
}

static void serve(vault *v)
{
    market_open(&v->market);
    stg_ingress_serve(v->market.ingress, routes, 2, v);
}

static void end(vault *v)
{
    const char *const paths[] = {v->certificate, v->key, v->ca, v->ca_key};

    market_end(&v->market);
    SSL_CTX_free(v->market.tls);
    identity_free(&v->authority);
    identity_free(&v->server);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        (void)unlink(paths[i]);
    CHECK_INT(rmdir(v->directory), 0);
}

static uint64_t failed_count(const vault *v)
{
    stg_ingress_view view;

    stg_ingress_look(v->market.ingress, &view);
    return view.handshakes_failed;
}

#define POST(body, size)                                \
    "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n" \
    "Content-Length: " size "\r\n\r\n" body

/* -- requests, and answers ------------------------------------------------- */

TEST(secure, takes_messages_by_both_versions)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    vault v;

    begin(&v, 3600);
    serve(&v);
    for (size_t i = 0; i < 2; i++) {
        SSL_CTX_set_max_proto_version(v.market.tls, versions[i]);
        CHECK_INT(status_of(ask(&v.market, "POST /v1/messages", "", "hello")),
                  202);
        CHECK_STR(v.market.stored[i].body, "hello");
    }
    SSL_CTX_set_max_proto_version(v.market.tls, TLS1_1_VERSION);
    CHECK_U64(failed_count(&v), 0);
    end(&v);
}

TEST(secure, reads_requests_in_pieces_and_many_of_one_record)
{
    static const char twice[] = POST("one", "3") POST("two", "3");
    vault v;
    caller *c;

    begin(&v, 3600);
    serve(&v);
    c = caller_new(&v.market);
    for (size_t i = 0; i + 1 < sizeof twice; i++) {
        caller_send(c, twice + i, 1);
        caller_flush(c);
    }
    CHECK_INT(status_of(caller_answer(c)), 202);
    CHECK_INT(status_of(caller_answer(c)), 202);
    caller_say(c, twice);
    CHECK_INT(status_of(caller_answer(c)), 202);
    CHECK_INT(status_of(caller_answer(c)), 202);
    CHECK_U64(v.market.stored_count, 4);
    CHECK_STR(v.market.stored[2].body, "one");
    CHECK_STR(v.market.stored[3].body, "two");
    caller_free(c);
    end(&v);
}

TEST(secure, takes_a_body_of_many_records)
{
    static char body[200001];
    vault v;

    memset(body, 'b', sizeof body - 1);
    begin(&v, 3600);
    serve(&v);
    CHECK_INT(status_of(ask(&v.market, "POST /v1/messages", "", body)), 202);
    CHECK_U64(v.market.stored[0].body_size, sizeof body - 1);
    CHECK_STR(v.market.stored[0].body, body);
    end(&v);
}

/* More than the system takes at once, to who reads on late. */
TEST(secure, gives_a_large_answer_whole_and_the_next_one_behind_it)
{
    vault v;
    caller *c;
    const char *body;

    begin(&v, 3600);
    serve(&v);
    c = caller_new(&v.market);
    caller_say(c, "GET /v1/much HTTP/1.1\r\nHost: localhost\r\n\r\n");
    caller_say(c, POST("after", "5"));
    caller_flush(c);
    market_run(&v.market);
    body = body_of(caller_answer(c));
    CHECK_U64(strlen(body), MUCH);
    for (size_t i = 0; i < MUCH; i++)
        CHECK(body[i] == (char)('a' + i % 23));
    CHECK_INT(status_of(caller_answer(c)), 202);
    CHECK_STR(v.market.stored[0].body, "after");
    caller_free(c);
    end(&v);
}

/* Nothing comes in meanwhile that would flush it. */
TEST(secure, answers_when_the_store_does)
{
    vault v;
    caller *c;

    begin(&v, 3600);
    serve(&v);
    v.market.holds = true;
    c = caller_new(&v.market);
    for (int i = 0; i < 2; i++) {
        caller_say(c, POST("late", "4"));
        caller_flush(c);
        market_run_until_waiting(&v.market, 1);
        market_run(&v.market);
        CHECK_U64(c->in_size, 0);
        market_settle(&v.market);
        CHECK_INT(status_of(caller_answer(c)), 202);
    }
    caller_free(c);
    end(&v);
}

TEST(secure, says_go_on_before_a_body)
{
    vault v;
    caller *c;

    begin(&v, 3600);
    serve(&v);
    c = caller_new(&v.market);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    CHECK_INT(status_of(caller_answer(c)), 100);
    caller_say(c, "ok");
    CHECK_INT(status_of(caller_answer(c)), 202);
    caller_free(c);
    end(&v);
}

TEST(secure, pushes_a_stream)
{
    vault v;
    caller *c;

    begin(&v, 3600);
    serve(&v);
    c = caller_new(&v.market);
    caller_say(c, "GET /v1/news HTTP/1.1\r\nHost: localhost\r\n\r\n");
    caller_run_until(c, "retry: ");
    for (int i = 0; i < 3; i++) {
        char text[32];

        (void)snprintf(text, sizeof text, "n%d", i);
        stg_stream_send(v.stream, (stg_span){text, 2});
        (void)snprintf(text, sizeof text, "n%d\n\n\r\n", i);
        caller_run_until(c, text);
    }
    caller_free(c);
    for (int i = 0; i < 100 && v.left == 0; i++)
        market_run(&v.market);
    CHECK_INT(v.left, 1);
    end(&v);
}

/* -- its end --------------------------------------------------------------- */

/* A client must be able to tell an end from a cut. */
static void check_ends_in_order(caller *c)
{
    caller_run_until_closed(c);
    CHECK_INT(SSL_get_shutdown(c->tls) & SSL_RECEIVED_SHUTDOWN,
              SSL_RECEIVED_SHUTDOWN);
}

TEST(secure, ends_in_order_behind_the_last_answer)
{
    vault v;
    caller *c, *idle;

    begin(&v, 3600);
    v.market.options.idle_timeout = 100 * STG_MS;
    serve(&v);
    idle = caller_new(&v.market);
    caller_say(idle, POST("idle", "4"));
    CHECK_INT(status_of(caller_answer(idle)), 202);
    c = caller_new(&v.market);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Connection: close\r\nContent-Length: 2\r\n\r\nok");
    CHECK_INT(status_of(caller_answer(c)), 202);
    check_ends_in_order(c);
    check_ends_in_order(idle);
    caller_free(c);
    caller_free(idle);
    end(&v);
}

/* Though what came behind it is still thrown away. */
TEST(secure, ends_in_order_behind_a_refusal)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    vault v;
    caller *c;

    for (size_t i = 0; i < 2; i++) {
        begin(&v, 3600);
        SSL_CTX_set_max_proto_version(v.market.tls, versions[i]);
        serve(&v);
        c = caller_new(&v.market);
        caller_say(c,
                   "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
                   "Content-Length: x\r\n\r\nnone");
        CHECK_INT(status_of(caller_answer(c)), 400);
        check_ends_in_order(c);
        caller_free(c);
        end(&v);
    }
}

TEST(secure, keeps_no_message_whose_body_is_cut)
{
    vault v;
    caller *c;

    begin(&v, 3600);
    serve(&v);
    c = caller_new(&v.market);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Content-Length: 9\r\n\r\nhalf");
    caller_flush(c);
    market_run(&v.market);
    (void)SSL_shutdown(c->tls);
    market_run(&v.market);
    caller_free(c);
    market_run(&v.market);
    CHECK_U64(v.market.appends, 0);
    end(&v);
}

/* -- what is no handshake -------------------------------------------------- */

TEST(secure, tells_plain_http_what_it_expects)
{
    vault v;
    SSL_CTX *tls;
    caller *c;
    const char *answer;

    begin(&v, 3600);
    serve(&v);
    tls = v.market.tls;
    v.market.tls = NULL;
    c = caller_new(&v.market);
    caller_say(c, POST("plain", "5"));
    answer = caller_answer(c);
    CHECK_INT(status_of(answer), 400);
    CHECK(strstr(body_of(answer), "expected https://") != NULL);
    caller_run_until_closed(c);
    caller_free(c);
    CHECK_U64(v.market.appends, 0);
    v.market.tls = tls;
    end(&v);
}

TEST(secure, closes_and_counts_what_is_no_handshake)
{
    static const char garbage[] = "\x16\x03\x01\x00\x05nonesuch";
    vault v;
    SSL_CTX *tls;
    caller *c;

    begin(&v, 3600);
    v.market.options.header_timeout = 50 * STG_MS;
    serve(&v);
    tls = v.market.tls;
    v.market.tls = NULL;
    c = caller_new(&v.market);
    caller_send(c, garbage, sizeof garbage - 1);
    caller_run_until_closed(c);
    CHECK_U64(failed_count(&v), 1);
    caller_free(c);
    // One that has begun, and goes.
    c = caller_new(&v.market);
    caller_send(c, garbage, 3);
    caller_flush(c);
    market_run(&v.market);
    caller_free(c);
    for (int i = 0; i < 100 && failed_count(&v) < 2; i++)
        market_run(&v.market);
    CHECK_U64(failed_count(&v), 2);
    // One that takes longer than a head may.
    c = caller_new(&v.market);
    caller_send(c, garbage, 3);
    caller_run_until_closed(c);
    CHECK_U64(failed_count(&v), 3);
    caller_free(c);
    // Who says nothing at all has made no mistake.
    c = caller_new(&v.market);
    market_run(&v.market);
    caller_free(c);
    market_run(&v.market);
    CHECK_U64(failed_count(&v), 3);
    v.market.tls = tls;
    end(&v);
}

/* -- certificates ---------------------------------------------------------- */

/* Whether a client with this certificate (NULL: none) is served. */
static bool is_served(vault *v, const identity *client)
{
    SSL_CTX *tls = v->market.tls;
    caller *c;
    bool is_up;

    v->market.tls = SSL_CTX_new(TLS_client_method());
    if (client != NULL)
        CHECK(SSL_CTX_use_certificate(v->market.tls, client->certificate) ==
                  1 &&
              SSL_CTX_use_PrivateKey(v->market.tls, client->key) == 1);
    c = caller_new(&v->market);
    caller_say(c,
               "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n"
               "Connection: close\r\nContent-Length: 2\r\n\r\nok");
    caller_run_until_closed(c);
    c->in[c->in_size] = '\0';
    is_up = status_of(c->in) == 202;
    if (is_up && v->market.options.tls.ca_file != NULL)
        CHECK_INT(sk_X509_NAME_num(SSL_get0_peer_CA_list(c->tls)), 1);
    caller_free(c);
    SSL_CTX_free(v->market.tls);
    v->market.tls = tls;
    return is_up;
}

TEST(secure, lets_in_who_shows_a_certificate_of_the_authority)
{
    vault v;
    identity client, stranger;

    for (int optional = 0; optional < 2; optional++) {
        begin(&v, 3600);
        client = identity_make("DNS:client", 3600, &v.authority);
        stranger = identity_make("DNS:client", 3600, NULL);
        v.market.options.tls.ca_file = v.ca;
        v.market.options.tls.is_unverified = optional == 1;
        serve(&v);
        CHECK(is_served(&v, &client));
        CHECK_INT(is_served(&v, NULL), optional);
        CHECK(!is_served(&v, &stranger));
        CHECK_U64(failed_count(&v), optional == 1 ? 1 : 2);
        identity_free(&client);
        identity_free(&stranger);
        end(&v);
    }
}

static void check_refused(vault *v, const char *words)
{
    CHECK(stg_ingress_open(&v->market.ingress, &v->market.loop,
                           &v->market.options, &v->market.err) != STG_OK);
    CHECK(v->market.ingress == NULL);
    if (strstr(v->market.err.text, words) == NULL)
        CHECK_STR(v->market.err.text, words);
}

TEST(secure, does_not_start_without_a_good_certificate)
{
    vault v;

    begin(&v, -60);
    check_refused(&v, "it has expired; expected a valid one");
    CHECK_INT(chmod(v.key, 0644), 0);
    check_refused(&v, "others may use it (mode 0644)");
    CHECK_INT(unlink(v.key), 0);
    check_refused(&v, "server.key");
    end(&v);
}

/* A list of what was revoked has no authority in it. */
static void write_crl(const vault *v)
{
    X509_CRL *crl = X509_CRL_new();
    ASN1_TIME *now = X509_gmtime_adj(NULL, 0);
    FILE *file = fopen(v->ca, "w");

    CHECK(file != NULL && X509_CRL_set_version(crl, 1) == 1);
    CHECK(X509_CRL_set_issuer_name(
              crl, X509_get_subject_name(v->authority.certificate)) == 1);
    CHECK(X509_CRL_set1_lastUpdate(crl, now) == 1);
    CHECK(X509_CRL_set1_nextUpdate(crl, now) == 1);
    CHECK(X509_CRL_sign(crl, v->authority.key, EVP_sha256()) > 0);
    CHECK(PEM_write_X509_CRL(file, crl) == 1 && fclose(file) == 0);
    ASN1_TIME_free(now);
    X509_CRL_free(crl);
}

TEST(secure, does_not_start_without_an_authority_where_clients_are_asked)
{
    vault v;

    begin(&v, 3600);
    v.market.options.tls.ca_file = v.ca;
    write_crl(&v);
    check_refused(&v, "ca.pem");
    CHECK_INT(truncate(v.ca, 0), 0);
    check_refused(&v, "ca.pem");
    CHECK_INT(unlink(v.ca), 0);
    check_refused(&v, "ca.pem");
    end(&v);
}

/* Files that change are noticed within a second; those that cannot be used leave
 * what was. */
TEST(secure, shows_the_certificate_that_its_files_have_now)
{
    stg_ingress_view before, after;
    identity next;
    vault v;

    begin(&v, 3600);
    serve(&v);
    stg_ingress_look(v.market.ingress, &before);
    next = identity_make("DNS:localhost", 7200, &v.authority);
    identity_write(&next, v.certificate, v.key);
    market_run_for(&v.market, 1050 * STG_MS);
    CHECK_INT(status_of(ask(&v.market, "POST /v1/messages", "", "a")), 202);
    stg_ingress_look(v.market.ingress, &after);
    CHECK(after.certificate_until > before.certificate_until + 3000);
    CHECK_INT(truncate(v.certificate, 10), 0);
    market_run_for(&v.market, 1050 * STG_MS);
    CHECK_INT(status_of(ask(&v.market, "POST /v1/messages", "", "b")), 202);
    stg_ingress_look(v.market.ingress, &before);
    CHECK_INT(before.certificate_until, after.certificate_until);
    identity_free(&next);
    end(&v);
}
