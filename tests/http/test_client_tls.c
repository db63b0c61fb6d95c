/* The client through TLS. The certificates are made here. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <openssl/pem.h>

#include "tests/harness.h"
#include "tests/http/identity.h"
#include "tests/http/world.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* -- certificates ---------------------------------------------------------- */

/* A directory of files that lasts as long as a test. */
typedef struct files {
    char directory[64];
    char ca[96], other_ca[96], certificate[96], key[96], locked[96];
    identity authority, other, client;
} files;

static FILE *create(files *f, char path[96], const char *name)
{
    FILE *file;

    (void)snprintf(path, 96, "%s/%s", f->directory, name);
    file = fopen(path, "w");
    CHECK(file != NULL);
    return file;
}

static void write_certificate(files *f, char path[96], const char *name,
                              X509 *certificate)
{
    FILE *file = create(f, path, name);

    CHECK(PEM_write_X509(file, certificate) == 1);
    CHECK(fclose(file) == 0);
}

static void write_key(files *f, char path[96], const char *name,
                      const char *password)
{
    FILE *file = create(f, path, name);

    CHECK(PEM_write_PrivateKey(
              file, f->client.key, password ? EVP_aes_128_cbc() : NULL,
              (const unsigned char *)password,
              password ? (int)strlen(password) : 0, NULL, NULL) == 1);
    CHECK(fclose(file) == 0);
}

static void open_files(files *f)
{
    (void)snprintf(f->directory, sizeof f->directory, "/tmp/stagger-XXXXXX");
    CHECK(mkdtemp(f->directory) != NULL);
    f->authority = identity_make(NULL, 3600, NULL);
    f->other = identity_make(NULL, 3600, NULL);
    f->client = identity_make("DNS:client", 3600, &f->authority);
    write_certificate(f, f->ca, "ca.pem", f->authority.certificate);
    write_certificate(f, f->other_ca, "other.pem", f->other.certificate);
    write_certificate(f, f->certificate, "client.pem", f->client.certificate);
    write_key(f, f->key, "client.key", NULL);
    write_key(f, f->locked, "locked.key", "sesame");
}

static void close_files(files *f)
{
    const char *const paths[] = {f->ca, f->other_ca, f->certificate, f->key,
                                 f->locked};

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        (void)unlink(paths[i]);
    (void)rmdir(f->directory);
    identity_free(&f->authority);
    identity_free(&f->other);
    identity_free(&f->client);
}

/* A server's side. */
static SSL_CTX *serve(const identity *i)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

    CHECK(ctx != NULL);
    CHECK(SSL_CTX_use_certificate(ctx, i->certificate) == 1);
    CHECK(SSL_CTX_use_PrivateKey(ctx, i->key) == 1);
    return ctx;
}

/* -- the tests' frame ------------------------------------------------------ */

typedef struct stage {
    files f;
    identity leaf;
    SSL_CTX *ctx;
    world w;
} stage;

static void open_stage(stage *s, const char *names, long until_s,
                       const leaf_step *const *scripts, size_t count)
{
    open_files(&s->f);
    s->leaf = identity_make(names, until_s, &s->f.authority);
    s->ctx = serve(&s->leaf);
    world_open(&s->w, s->ctx, scripts, count);
}

static void close_stage(stage *s)
{
    world_close(&s->w);
    SSL_CTX_free(s->ctx);
    identity_free(&s->leaf);
    close_files(&s->f);
}

#define STAGE(s, names, until_s, ...)               \
    stage s;                                        \
    const leaf_step *s##_scripts[] = {__VA_ARGS__}; \
    open_stage(&s, names, until_s, s##_scripts,     \
               sizeof s##_scripts / sizeof *s##_scripts)

static stg_endpoint_options options(stage *s)
{
    stg_endpoint_options o = world_options(&s->w, "/");

    o.ca_file = s->f.ca;
    return o;
}

static ending exchange(stage *s, const stg_endpoint_options *o)
{
    world_use(&s->w, o);
    return world_exchange(&s->w, "hello");
}

static void check_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        harness_fail(__FILE__, __LINE__, "\"%s\" has no \"%s\"", text, part);
}

static void check_tls_fault(const ending *e, const char *part)
{
    check_has(e->detail, part);
    check_has(e->detail, "tls 127.0.0.1:");
    CHECK_INT(e->outcome.fault, STG_FAULT_TLS);
    CHECK(e->outcome.unsent);
}

/* -- good ------------------------------------------------------------------ */

TEST(tls, carries_exchanges_and_keeps_the_connection)
{
    STAGE(s, "IP:127.0.0.1", 3600,
          SCRIPT(HEAR, SAY(OK), HEAR, SAY("HTTP/1.1 503 No\r\n"),
                 SAY("Retry-After: 4\r\nContent-Length: 3\r\n\r\nab"),
                 SAY("c")));
    stg_endpoint_options o = options(&s);
    ending e = exchange(&s, &o);

    CHECK_STR(e.detail, "HTTP 200");
    CHECK_STR(e.answer, "ok");
    check_has(s.w.leaf.heard, "\r\n\r\nhello");
    CHECK_U64(world_look(&s.w).idle, 1);
    e = world_exchange(&s.w, "");
    CHECK(e.is_reused);
    CHECK_INT(e.status, 503);
    CHECK_STR(e.answer, "abc");
    CHECK_U64(e.outcome.delay, 4 * STG_S);
    CHECK_U64(s.w.leaf.accepted, 1);
    close_stage(&s);
}

/* The session goes with the socket. */
TEST(tls, hands_a_connection_that_is_free_to_one_that_waits_to_dial)
{
    enum { MANY = 5, MOST = 3, FILES = 4 };
    STAGE(s, "IP:127.0.0.1", 3600, SCRIPT(HEAR, SAY(OK), HEAR, SAY(OK)));
    stg_endpoint_options o = options(&s);
    ending e[MANY];

    world_use(&s.w, &o);
    stg_client_files(s.w.client)->limit = FILES; // one is for producers
    for (int i = 0; i < MANY; i++)
        (void)world_start(&s.w, &e[i], "hello");
    for (int i = 0; i < MANY; i++) {
        world_wait(&s.w, &e[i]);
        CHECK_STR(e[i].answer, "ok");
        CHECK(e[i].is_reused == (i >= MOST));
    }
    CHECK_U64(s.w.leaf.accepted, MOST);
    CHECK_U64(s.w.leaf.requests, MANY);
    close_stage(&s);
}

TEST(tls, speaks_1_2_too_and_nothing_older)
{
    STAGE(s, "IP:127.0.0.1", 3600, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = options(&s);
    ending e;

    CHECK(SSL_CTX_set_max_proto_version(s.ctx, TLS1_2_VERSION) == 1);
    e = exchange(&s, &o);
    CHECK_STR(e.detail, "HTTP 200");
    SSL_CTX_set_security_level(s.ctx, 0);
    CHECK(SSL_CTX_set_min_proto_version(s.ctx, TLS1_VERSION) == 1);
    CHECK(SSL_CTX_set_max_proto_version(s.ctx, TLS1_1_VERSION) == 1);
    e = exchange(&s, &o);
    check_tls_fault(&e, "tls");
    close_stage(&s);
}

static int note_name(SSL *ssl, int *alert, void *ctx)
{
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);

    (void)alert;
    (void)snprintf(ctx, 64, "%s", name != NULL ? name : "none");
    return SSL_TLSEXT_ERR_OK;
}

TEST(tls, tells_the_name_and_checks_it)
{
    STAGE(s, "DNS:localhost,DNS:leaf.test", 3600, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = options(&s);
    char name[64] = "", url[64];
    ending e;

    (void)SSL_CTX_set_tlsext_servername_callback(s.ctx, note_name);
    (void)SSL_CTX_set_tlsext_servername_arg(s.ctx, name);
    (void)snprintf(url, sizeof url, "https://localhost:%d/", s.w.leaf.port);
    o.url = url;
    e = exchange(&s, &o);
    CHECK_STR(e.detail, "HTTP 200");
    CHECK_STR(name, "localhost");
    o = options(&s);
    o.server_name = "leaf.test";
    e = exchange(&s, &o);
    CHECK_STR(e.detail, "HTTP 200");
    CHECK_STR(name, "leaf.test");
    close_stage(&s);
}

TEST(tls, sends_a_body_that_no_socket_takes_at_once)
{
    enum { BIG = 6 << 20 };
    STAGE(s, "IP:127.0.0.1", 3600, SCRIPT(HEAR, SAY(OK), HEAR, SAY(OK)));
    stg_endpoint_options o = options(&s);
    char *body = malloc(BIG);
    ending e;

    CHECK(body != NULL);
    memset(body, 'x', BIG);
    world_use(&s.w, &o);
    (void)world_start_sized(&s.w, &e, "", body, BIG, STG_MIN);
    world_wait(&s.w, &e);
    CHECK_STR(e.detail, "HTTP 200");
    CHECK_U64(s.w.leaf.requests, 1);
    e = world_exchange(&s.w, "");
    CHECK(e.is_reused);
    free(body);
    close_stage(&s);
}

TEST(tls, does_not_care_who_it_is_where_it_is_told_not_to)
{
    STAGE(s, "DNS:other", -60, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = options(&s);
    ending e;

    o.ca_file = NULL;
    o.is_unverified = true;
    e = exchange(&s, &o);
    CHECK_STR(e.detail, "HTTP 200");
    close_stage(&s);
}

TEST(tls, keeps_what_one_endpoint_trusts_from_the_others)
{
    STAGE(s, "IP:127.0.0.1", 3600, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = options(&s);
    stg_endpoint *others[3] = {NULL};
    ending e;

    // All of them are there at the same time.
    o.ca_file = s.f.other_ca;
    o.is_unverified = true;
    CHECK(stg_endpoint_new(&others[0], s.w.client, &o, NULL) == STG_OK);
    o.is_unverified = false;
    o.certificate_file = s.f.certificate;
    o.key_file = s.f.key;
    CHECK(stg_endpoint_new(&others[1], s.w.client, &o, NULL) == STG_OK);
    o = options(&s);
    CHECK(stg_endpoint_new(&others[2], s.w.client, &o, NULL) == STG_OK);
    o.ca_file = s.f.other_ca;
    e = exchange(&s, &o);
    check_tls_fault(&e, "certificate verify failed");
    o = options(&s);
    e = exchange(&s, &o);
    CHECK_STR(e.detail, "HTTP 200");
    o.ca_file = s.f.other_ca;
    o.is_unverified = true;
    e = exchange(&s, &o);
    CHECK_STR(e.detail, "HTTP 200");
    for (int i = 0; i < 3; i++)
        stg_endpoint_free(others[i]);
    close_stage(&s);
}

/* -- bad certificates ------------------------------------------------------ */

TEST(tls, refuses_a_certificate_of_another_name)
{
    STAGE(s, "DNS:other.test,IP:127.0.0.2", 3600, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = options(&s);
    ending e = exchange(&s, &o);

    check_tls_fault(&e, "IP address mismatch");
    o.server_name = "leaf.test";
    e = exchange(&s, &o);
    check_tls_fault(&e, "hostname mismatch");
    CHECK_U64(s.w.leaf.requests, 0);
    close_stage(&s);
}

TEST(tls, refuses_a_certificate_that_has_expired)
{
    STAGE(s, "IP:127.0.0.1", -60, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = options(&s);
    ending e = exchange(&s, &o);

    check_tls_fault(&e, "certificate has expired");
    close_stage(&s);
}

TEST(tls, refuses_a_certificate_of_an_unknown_authority)
{
    STAGE(s, "IP:127.0.0.1", 3600, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = options(&s);
    ending e;

    o.ca_file = s.f.other_ca;
    e = exchange(&s, &o);
    check_tls_fault(&e, "certificate verify failed: ");
    o.ca_file = NULL; // the system's
    e = exchange(&s, &o);
    check_tls_fault(&e, "certificate verify failed: ");
    CHECK_U64(s.w.leaf.requests, 0);
    close_stage(&s);
}

/* -- the client's own ------------------------------------------------------ */

static void demand_certificate(stage *s, int version)
{
    CHECK(X509_STORE_add_cert(SSL_CTX_get_cert_store(s->ctx),
                              s->f.authority.certificate) == 1);
    SSL_CTX_set_verify(s->ctx,
                       SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    CHECK(SSL_CTX_set_max_proto_version(s->ctx, version) == 1);
}

TEST(tls, shows_its_certificate_where_one_is_demanded)
{
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        STAGE(s, "IP:127.0.0.1", 3600, SCRIPT(HEAR, SAY(OK)));
        stg_endpoint_options o = options(&s);
        ending e;

        demand_certificate(&s, version);
        o.certificate_file = s.f.certificate;
        o.key_file = s.f.key;
        e = exchange(&s, &o);
        CHECK_STR(e.detail, "HTTP 200");
        close_stage(&s);
    }
}

/* In TLS 1.3 the alert comes when the request is out already. */
TEST(tls, tells_of_the_alert_where_a_certificate_is_demanded_and_none_shown)
{
    for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
        STAGE(s, "IP:127.0.0.1", 3600, SCRIPT(HEAR, SAY(OK)));
        stg_endpoint_options o = options(&s);
        stg_endpoint *other = NULL;
        ending e;

        demand_certificate(&s, version);
        o.certificate_file = s.f.certificate;
        o.key_file = s.f.key; // another endpoint's, not this one's
        CHECK(stg_endpoint_new(&other, s.w.client, &o, NULL) == STG_OK);
        o = options(&s);
        e = exchange(&s, &o);
        stg_endpoint_free(other);
        check_has(e.detail, "alert");
        CHECK_INT(e.outcome.fault, STG_FAULT_TLS);
        CHECK_INT(e.outcome.code_kind, STG_CODE_TLS);
        CHECK_INT(e.outcome.code, version == TLS1_3_VERSION ? 116 : 40);
        CHECK_INT(e.status, 0);
        close_stage(&s);
    }
}

/* -- until when ------------------------------------------------------------ */

static int64_t until_of(const identity *i)
{
    struct tm at;

    CHECK(ASN1_TIME_to_tm(X509_get0_notAfter(i->certificate), &at) == 1);
    return (int64_t)timegm(&at);
}

TEST(tls, knows_until_when_certificates_are_valid)
{
    STAGE(s, "IP:127.0.0.1", 86400 * 20, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = options(&s);

    world_use(&s.w, &o);
    CHECK(world_look(&s.w).certificate_until == 0);
    CHECK(world_look(&s.w).own_certificate_until == 0);
    o.certificate_file = s.f.certificate;
    o.key_file = s.f.key;
    world_use(&s.w, &o);
    CHECK(world_look(&s.w).certificate_until == 0);
    CHECK(world_look(&s.w).own_certificate_until == until_of(&s.f.client));
    (void)world_exchange(&s.w, "");
    // The authority ends before the leaf, and its certificate with it.
    CHECK(world_look(&s.w).certificate_until == until_of(&s.f.authority));
    CHECK(until_of(&s.leaf) > until_of(&s.f.authority));
    o.is_unverified = true;
    world_use(&s.w, &o);
    (void)world_exchange(&s.w, "");
    CHECK(world_look(&s.w).certificate_until == until_of(&s.leaf));
    close_stage(&s);
}

/* Files are read when an endpoint is made: another one that is made after they
 * were written has what is in them now, whatever others still use. */
TEST(tls, reads_files_anew_for_a_new_endpoint)
{
    STAGE(s, "IP:127.0.0.1", 3600, SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = options(&s);
    stg_endpoint *old = NULL;
    ending e;

    o.ca_file = s.f.other_ca;
    e = exchange(&s, &o);
    check_tls_fault(&e, "certificate verify failed");
    CHECK(stg_endpoint_matches(s.w.endpoint, &o));
    CHECK(stg_endpoint_new(&old, s.w.client, &o, NULL) == STG_OK);
    // As tools do it: another file in its place.
    CHECK(rename(s.f.ca, s.f.other_ca) == 0);
    CHECK(!stg_endpoint_matches(s.w.endpoint, &o));
    e = exchange(&s, &o);
    CHECK_STR(e.detail, "HTTP 200");
    CHECK(stg_endpoint_matches(s.w.endpoint, &o));
    CHECK(!stg_endpoint_matches(old, &o));
    o.is_unverified = true;
    CHECK(!stg_endpoint_matches(s.w.endpoint, &o));
    stg_endpoint_free(old);
    close_stage(&s);
}

TEST(tls, refuses_files_that_are_no_certificate_or_key_by_name)
{
    STAGE(s, "IP:127.0.0.1", 3600, SCRIPT(HEAR));
    stg_endpoint_options o = options(&s);
    stg_endpoint *endpoint = NULL;
    stg_error err;

    o.ca_file = s.f.key;
    CHECK_INT(stg_endpoint_new(&endpoint, s.w.client, &o, &err), STG_INVALID);
    check_has(err.text, "tls.ca ");
    check_has(err.text, s.f.key);
    o = options(&s);
    o.certificate_file = o.key_file = s.f.certificate;
    CHECK_INT(stg_endpoint_new(&endpoint, s.w.client, &o, &err), STG_INVALID);
    check_has(err.text, "tls.key ");
    o.key_file = s.f.locked; // and nobody is asked for its password
    CHECK_INT(stg_endpoint_new(&endpoint, s.w.client, &o, &err), STG_INVALID);
    check_has(err.text, "tls.key ");
    o.certificate_file = s.f.ca;
    o.key_file = s.f.key;
    CHECK_INT(stg_endpoint_new(&endpoint, s.w.client, &o, &err), STG_INVALID);
    check_has(err.text, "key values mismatch");
    CHECK(endpoint == NULL);
    close_stage(&s);
}

/* -- no TLS, or its end ---------------------------------------------------- */

TEST(tls, tells_of_a_server_that_does_not_speak_it)
{
    WORLD(w, SCRIPT(SAY("HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n")),
          SCRIPT(CLOSE), SCRIPT(RESET), SCRIPT(DEAF));
    stg_endpoint_options o;
    char url[64];
    ending e;

    (void)snprintf(url, sizeof url, "https://127.0.0.1:%d/", w.leaf.port);
    o = stg_endpoint_options_default(url);
    world_use(&w, &o);
    e = world_exchange(&w, "");
    check_tls_fault(&e, "wrong version number");
    for (int i = 0; i < 2; i++) {
        e = world_exchange(&w, "");
        CHECK_INT(e.outcome.fault, STG_FAULT_RESET);
        CHECK(e.outcome.unsent);
        check_has(e.detail, "tls 127.0.0.1:");
    }
    o.tls_timeout = 20 * STG_MS;
    world_use(&w, &o);
    e = world_exchange(&w, "");
    CHECK_INT(e.outcome.fault, STG_FAULT_TLS_TIMEOUT);
    CHECK(e.outcome.unsent);
    check_has(e.detail, ": the handshake was not over within 20 ms");
    world_close(&w);
}

TEST(tls, trusts_the_end_of_a_connection_only_where_tls_says_so)
{
    STAGE(s, "IP:127.0.0.1", 3600,
          SCRIPT(HEAR, SAY("HTTP/1.1 200 OK\r\n\r\nabc"), CLOSE),
          SCRIPT(HEAR, SAY("HTTP/1.1 200 OK\r\n\r\nabc"), CUT));
    stg_endpoint_options o = options(&s);
    ending e = exchange(&s, &o);

    CHECK_STR(e.detail, "HTTP 200");
    CHECK_STR(e.answer, "abc");
    e = world_exchange(&s.w, "");
    CHECK_INT(e.outcome.fault, STG_FAULT_PROTOCOL);
    check_has(e.detail, "cut short");
    close_stage(&s);
}

TEST(tls, drops_an_idle_connection_that_ends_or_says_something)
{
    STAGE(s, "IP:127.0.0.1", 3600, SCRIPT(HEAR, SAY(OK), CLOSE),
          SCRIPT(HEAR, SAY(OK), SAY("x")), SCRIPT(HEAR, SAY(OK), CUT),
          SCRIPT(HEAR, SAY(OK)));
    stg_endpoint_options o = options(&s);

    world_use(&s.w, &o);
    for (int i = 0; i < 3; i++) {
        ending e = world_exchange(&s.w, "");

        CHECK_STR(e.detail, "HTTP 200");
        CHECK(!e.is_reused);
        while (world_look(&s.w).idle > 0)
            world_turn(&s.w, 1);
    }
    close_stage(&s);
}

TEST(tls, does_not_keep_a_connection_that_ends_with_its_answer)
{
    STAGE(s, "IP:127.0.0.1", 3600, SCRIPT(HEAR, LAST(OK)));
    stg_endpoint_options o = options(&s);
    ending e = exchange(&s, &o);

    CHECK_STR(e.detail, "HTTP 200");
    CHECK_U64(world_look(&s.w).idle, 0);
    close_stage(&s);
}

TEST(tls, tells_of_a_stale_connection)
{
    STAGE(s, "IP:127.0.0.1", 3600, SCRIPT(HEAR, SAY(OK), HEAR, RESET),
          SCRIPT(HEAR, SAY(OK), HEAR, CLOSE));
    stg_endpoint_options o = options(&s);

    world_use(&s.w, &o);
    for (int i = 0; i < 2; i++) {
        ending e = world_exchange(&s.w, "");

        e = world_exchange(&s.w, "");
        CHECK_INT(e.outcome.fault, STG_FAULT_RESET);
        CHECK(e.is_reused && !e.outcome.unsent);
        check_has(e.detail, "before an answer, on a reused connection");
    }
    close_stage(&s);
}

TEST(tls, takes_an_early_answer)
{
    enum { BIG = 24 << 20 };
    STAGE(s, "IP:127.0.0.1", 3600,
          SCRIPT(DEAF, SAY("HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n")));
    stg_endpoint_options o = options(&s);
    char *body = malloc(BIG);
    ending e;

    CHECK(body != NULL);
    memset(body, 'x', BIG);
    world_use(&s.w, &o);
    (void)world_start_sized(&s.w, &e, "", body, BIG, STG_MIN);
    world_wait(&s.w, &e);
    free(body);
    CHECK_STR(e.detail, "HTTP 413");
    CHECK_U64(world_look(&s.w).idle, 0);
    close_stage(&s);
}

TEST(tls, gives_up_a_request_that_is_not_taken_in_time)
{
    enum { BIG = 24 << 20 };
    STAGE(s, "IP:127.0.0.1", 3600, SCRIPT(DEAF));
    stg_endpoint_options o = options(&s);
    char *body = calloc(1, BIG);
    ending e;

    CHECK(body != NULL);
    o.write_timeout = 40 * STG_MS;
    world_use(&s.w, &o);
    (void)world_start_sized(&s.w, &e, "", body, BIG, STG_MIN);
    world_wait(&s.w, &e);
    free(body);
    check_has(e.detail, ": the request was not taken within 40 ms");
    CHECK_INT(e.outcome.fault, STG_FAULT_TIMEOUT);
    CHECK(!e.outcome.unsent && e.took >= 40 * STG_MS && e.took < STG_MIN);
    close_stage(&s);
}

TEST(tls, waits_for_the_first_byte_as_long_as_it_is_told)
{
    STAGE(s, "IP:127.0.0.1", 3600, SCRIPT(HEAR));
    stg_endpoint_options o = options(&s);
    ending e;

    o.first_byte_timeout = 30 * STG_MS;
    e = exchange(&s, &o);
    check_has(e.detail, ": nothing came within 30 ms");
    CHECK_INT(e.outcome.fault, STG_FAULT_TIMEOUT);
    CHECK(!e.outcome.unsent && e.took >= 30 * STG_MS);
    close_stage(&s);
}

TEST(tls, cancels_in_the_handshake)
{
    WORLD(w, SCRIPT(DEAF));
    stg_endpoint_options o;
    stg_exchange *x;
    char url[64];
    ending e;

    (void)snprintf(url, sizeof url, "https://127.0.0.1:%d/", w.leaf.port);
    o = stg_endpoint_options_default(url);
    world_use(&w, &o);
    x = world_start(&w, &e, "");
    while (w.leaf.accepted == 0)
        world_turn(&w, 1);
    world_turn(&w, 5);
    stg_exchange_cancel(x);
    world_wait(&w, &e);
    CHECK_INT(e.outcome.fault, STG_FAULT_CANCELLED);
    CHECK(e.outcome.unsent);
    world_close(&w);
}
