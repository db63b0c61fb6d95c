/* TLS by OpenSSL, on memory: contexts that are shared, and sessions.
 *
 * Contexts with the same options are one, as long as their files are as they were
 * when they were read: a file that was written anew makes another context, and
 * connections that are open keep theirs. Certificates are checked against the
 * name, or the address, of the target. */
#include "http/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "core/writer.h"

/* A file that is read, and how it was then: one that was written anew makes
 * another context. All zeros: there is none. */
typedef struct source {
    char *path; /* NULL: none */
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec written_at;
} source;

struct stg_tls_context {
    stg_link link;
    size_t users; /* endpoints and sessions */
    SSL_CTX *ssl;
    BIO_METHOD *method;
    // What goes out next, of whichever session: its user empties it.
    char *out;
    size_t out_size, out_room;
    bool is_unverified, is_server;
    source ca, certificate, key;
    const stg_tls_names *names;
};

struct stg_tls {
    stg_tls_context *context;
    SSL *ssl;
    const char *in;
    size_t in_size;
    unsigned long error; /* the one that it failed with */
};

/* -- memory as a BIO ------------------------------------------------------- */

/* -1 with the flag for a retry says `wants more`; without the flag OpenSSL
 * would call it an error. */
static int take_in(BIO *bio, char *to, int room)
{
    stg_tls *t = BIO_get_data(bio);
    size_t size = room > 0 ? (size_t)room : 0;

    BIO_clear_retry_flags(bio);
    if (size > t->in_size)
        size = t->in_size;
    if (size == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    memcpy(to, t->in, size);
    t->in += size;
    t->in_size -= size;
    return (int)size;
}

static bool make_room(stg_tls_context *context, size_t size)
{
    size_t room = context->out_room;
    char *out;

    while (room - context->out_size < size)
        room = room == 0 ? 4096 : 2 * room;
    if (room == context->out_room)
        return true;
    out = realloc(context->out, room);
    if (out == NULL)
        return false;
    context->out = out;
    context->out_room = room;
    return true;
}

/* The sessions of a context share one buffer: its user empties it before
 * another session writes. */
static int put_out(BIO *bio, const char *bytes, int size)
{
    stg_tls *t = BIO_get_data(bio);
    stg_tls_context *context = t->context;

    BIO_clear_retry_flags(bio);
    if (size <= 0 || !make_room(context, (size_t)size))
        return -1;
    memcpy(context->out + context->out_size, bytes, (size_t)size);
    context->out_size += (size_t)size;
    return size;
}

/* OpenSSL flushes at the end of a handshake; nothing else is asked of
 * memory. */
static long control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

/* -- contexts -------------------------------------------------------------- */

/* Returns the file's identity, size and time of change as they are now; zeros
 * for a file that is not there. */
static source look_at(const char *path)
{
    source s = {.path = (char *)path};
    struct stat is;

    if (path == NULL || stat(path, &is) != 0)
        return s;
    s.device = is.st_dev;
    s.inode = is.st_ino;
    s.size = is.st_size;
    s.written_at = is.st_mtim;
    return s;
}

static bool is_same(const source *a, const char *path)
{
    source b = look_at(path);

    if (a->path == NULL || path == NULL)
        return a->path == path;
    return strcmp(a->path, path) == 0 && a->device == b.device &&
           a->inode == b.inode && a->size == b.size &&
           a->written_at.tv_sec == b.written_at.tv_sec &&
           a->written_at.tv_nsec == b.written_at.tv_nsec;
}

const stg_tls_names *stg_tls_names_of(const stg_tls_options *o)
{
    static const stg_tls_names target = {"tls.certificate", "tls.key",
                                         "tls.ca"};

    return o->names != NULL ? o->names : &target;
}

bool stg_tls_context_matches(const stg_tls_context *c, const stg_tls_options *o)
{
    return c->is_unverified == o->is_unverified &&
           c->is_server == o->is_server && is_same(&c->ca, o->ca_file) &&
           is_same(&c->certificate, o->certificate_file) &&
           is_same(&c->key, o->key_file);
}

stg_tls_options stg_tls_context_options(const stg_tls_context *c)
{
    return (stg_tls_options){.names = c->names,
                             .ca_file = c->ca.path,
                             .certificate_file = c->certificate.path,
                             .key_file = c->key.path,
                             .is_unverified = c->is_unverified,
                             .is_server = c->is_server};
}

bool stg_tls_context_is_stale(const stg_tls_context *c)
{
    return !is_same(&c->ca, c->ca.path) ||
           !is_same(&c->certificate, c->certificate.path) ||
           !is_same(&c->key, c->key.path);
}

static stg_tls_context *find(const stg_list *contexts, const stg_tls_options *o)
{
    stg_link *link = stg_list_first(contexts);

    for (; link != NULL; link = stg_list_next(contexts, link)) {
        stg_tls_context *c = STG_HOLDER(link, stg_tls_context, link);

        if (stg_tls_context_matches(c, o))
            return c;
    }
    return NULL;
}

/* "tls.ca PATH: what OpenSSL says" */
static stg_status refuse(stg_error *err, const char *key, const char *path)
{
    stg_writer w = stg_writer_on_error(err);
    // The first of what it queued is the cause, the others are who saw it.
    const char *why = ERR_reason_error_string(ERR_peek_error());

    stg_write_text(&w, key);
    if (path != NULL) {
        stg_write_text(&w, " ");
        stg_write_path(&w, path);
    }
    stg_write_text(&w, ": ");
    stg_write_text(&w, why != NULL ? why : "it cannot be used");
    ERR_clear_error();
    return STG_INVALID;
}

/* A key under a password is refused; nobody is there to be asked for it. */
// NOLINTNEXTLINE(readability-non-const-parameter): it is a pem_password_cb
static int no_password(char *to, int room, int is_writing, void *ctx)
{
    (void)to;
    (void)room;
    (void)is_writing;
    (void)ctx;
    return -1;
}

static stg_status use_certificate(SSL_CTX *ssl, const stg_tls_options *o,
                                  stg_error *err)
{
    SSL_CTX_set_default_passwd_cb(ssl, no_password);
    if (o->certificate_file == NULL)
        return STG_OK;
    if (SSL_CTX_use_certificate_chain_file(ssl, o->certificate_file) != 1)
        return refuse(err, stg_tls_names_of(o)->certificate,
                      o->certificate_file);
    if (SSL_CTX_use_PrivateKey_file(ssl, o->key_file, SSL_FILETYPE_PEM) != 1)
        return refuse(err, stg_tls_names_of(o)->key, o->key_file);
    if (SSL_CTX_check_private_key(ssl) != 1)
        return refuse(err, stg_tls_names_of(o)->key, o->key_file);
    return STG_OK;
}

static stg_status use_authorities(SSL_CTX *ssl, const stg_tls_options *o,
                                  stg_error *err)
{
    SSL_CTX_set_verify(
        ssl, o->is_unverified ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    if (o->ca_file != NULL) {
        if (SSL_CTX_load_verify_locations(ssl, o->ca_file, NULL) != 1)
            return refuse(err, stg_tls_names_of(o)->ca, o->ca_file);
    } else if (!o->is_unverified && SSL_CTX_set_default_verify_paths(ssl) != 1)
        return refuse(err, "the system's certificates", NULL);
    return STG_OK;
}

static const unsigned char protocols[] = "\x08http/1.1";

/* The one protocol that a server has; who offers others alone is told so. */
static int choose_protocol(SSL *ssl, const unsigned char **chosen,
                           unsigned char *size, const unsigned char *offered,
                           unsigned offered_size, void *ctx)
{
    (void)ssl;
    (void)ctx;
    return SSL_select_next_proto((unsigned char **)(uintptr_t)chosen, size,
                                 protocols, sizeof protocols - 1, offered,
                                 offered_size) == OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Of a client that is asked for a certificate, also the names of those that are
 * trusted are told, by which it chooses. */
static stg_status use_clients(SSL_CTX *ssl, const stg_tls_options *o,
                              stg_error *err)
{
    static const unsigned char context[] = "stagger";

    SSL_CTX_set_alpn_select_cb(ssl, choose_protocol, NULL);
    (void)SSL_CTX_set_num_tickets(ssl, 1);
    (void)SSL_CTX_set_session_id_context(ssl, context, sizeof context - 1);
    if (o->ca_file == NULL)
        return STG_OK;
    SSL_CTX_set_verify(ssl,
                       o->is_unverified
                           ? SSL_VERIFY_PEER
                           : SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                       NULL);
    SSL_CTX_set_client_CA_list(ssl, SSL_load_client_CA_file(o->ca_file));
    if (SSL_CTX_get_client_CA_list(ssl) == NULL ||
        SSL_CTX_load_verify_locations(ssl, o->ca_file, NULL) != 1)
        return refuse(err, stg_tls_names_of(o)->ca, o->ca_file);
    return STG_OK;
}

/* TLS 1.2 at least. Compression tells secrets by its length (CRIME), and
 * nobody needs a renegotiation. */
static stg_status set_up(SSL_CTX *ssl, const stg_tls_options *o, stg_error *err)
{
    if (SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_alpn_protos(ssl, protocols, sizeof protocols - 1) != 0)
        return refuse(err, "tls", NULL);
    SSL_CTX_set_options(ssl, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
    // Buffers of 34 KiB are only there while something is in them.
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS |
                              SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (use_certificate(ssl, o, err) != STG_OK)
        return STG_INVALID;
    return o->is_server ? use_clients(ssl, o, err)
                        : use_authorities(ssl, o, err);
}

/* Before the file is read, so that one that is written meanwhile is noticed. */
static bool note_source(source *to, const char *path)
{
    *to = look_at(path);
    if (path != NULL)
        to->path = strdup(path);
    return to->path != NULL || path == NULL;
}

static bool make_method(stg_tls_context *c)
{
    c->method =
        BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stagger");
    return c->method != NULL && BIO_meth_set_read(c->method, take_in) == 1 &&
           BIO_meth_set_write(c->method, put_out) == 1 &&
           BIO_meth_set_ctrl(c->method, control) == 1;
}

/* One context for all that have the same options: the certificates of all CAs are
 * large. */
stg_status stg_tls_context_take(stg_tls_context **context, stg_list *contexts,
                                const stg_tls_options *o, stg_error *err)
{
    stg_tls_context *c = find(contexts, o);

    if (c != NULL) {
        c->users++;
        *context = c;
        return STG_OK;
    }
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return refuse(err, "tls: no memory", NULL);
    c->users = 1;
    c->is_unverified = o->is_unverified;
    c->is_server = o->is_server;
    c->names = o->names;
    c->ssl =
        SSL_CTX_new(o->is_server ? TLS_server_method() : TLS_client_method());
    if (c->ssl == NULL || !make_method(c) || !note_source(&c->ca, o->ca_file) ||
        !note_source(&c->certificate, o->certificate_file) ||
        !note_source(&c->key, o->key_file)) {
        (void)refuse(err, "tls: no memory", NULL);
        stg_tls_context_release(c);
        return STG_INVALID;
    }
    if (set_up(c->ssl, o, err) != STG_OK) {
        stg_tls_context_release(c);
        return STG_INVALID;
    }
    stg_list_push(contexts, &c->link);
    *context = c;
    return STG_OK;
}

/* Sessions are users, too: a context that was replaced lives as long as the
 * last connection that it has made. */
void stg_tls_context_release(stg_tls_context *c)
{
    if (--c->users > 0)
        return;
    stg_list_remove(&c->link);
    SSL_CTX_free(c->ssl);
    BIO_meth_free(c->method);
    free(c->ca.path);
    free(c->certificate.path);
    free(c->key.path);
    free(c->out);
    free(c);
}

/* -- until when ------------------------------------------------------------ */

static int64_t until(const X509 *certificate)
{
    struct tm at;

    if (certificate == NULL ||
        ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &at) != 1) {
        ERR_clear_error();
        return 0;
    }
    return (int64_t)timegm(&at);
}

/* Seconds since 1970; 0: there is no certificate, or no date in it. */
int64_t stg_tls_own_until(const stg_tls_context *context)
{
    return until(SSL_CTX_get0_certificate(context->ssl));
}

static int64_t earliest(const STACK_OF(X509) * chain)
{
    int64_t first = 0;

    for (int i = 0; i < sk_X509_num(chain); i++) {
        int64_t at = until(sk_X509_value(chain, i));

        if (i == 0 || (at > 0 && at < first))
            first = at;
    }
    return first;
}

/* Of the chain that was verified: others that the server sends along may have
 * ended long ago, and nobody minds. */
int64_t stg_tls_peer_until(const stg_tls *t)
{
    const STACK_OF(X509) *chain = SSL_get0_verified_chain(t->ssl);
    X509 *certificate;
    int64_t at;

    if (!t->context->is_unverified && sk_X509_num(chain) > 0)
        return earliest(chain);
    certificate = SSL_get_peer_certificate(t->ssl);
    at = until(certificate);
    X509_free(certificate);
    return at;
}

/* -- sessions -------------------------------------------------------------- */

/* The certificate is to be for this name or address. A name is also sent
 * (SNI); an address never is (RFC 6066, section 3). */
static bool expect(SSL *ssl, const char *name, bool is_address)
{
    X509_VERIFY_PARAM *expected = SSL_get0_param(ssl);

    if (name == NULL)
        return true;
    if (is_address)
        return X509_VERIFY_PARAM_set1_ip_asc(expected, name) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) == 1 &&
           SSL_set_tlsext_host_name(ssl, name) == 1;
}

stg_tls *stg_tls_new(stg_tls_context *context, const char *name,
                     bool is_address)
{
    stg_tls *t = calloc(1, sizeof *t);
    BIO *bio;

    if (t == NULL)
        return NULL;
    t->context = context;
    context->users++;
    t->ssl = SSL_new(context->ssl);
    bio = BIO_new(context->method);
    if (bio != NULL) {
        BIO_set_data(bio, t);
        BIO_set_init(bio, 1);
    }
    if (t->ssl != NULL)
        SSL_set_bio(t->ssl, bio, bio); // given
    else
        (void)BIO_free(bio);
    if (t->ssl == NULL || bio == NULL || !expect(t->ssl, name, is_address)) {
        ERR_clear_error();
        stg_tls_free(t);
        return NULL;
    }
    if (context->is_server)
        SSL_set_accept_state(t->ssl);
    else
        SSL_set_connect_state(t->ssl);
    return t;
}

void stg_tls_free(stg_tls *t)
{
    SSL_free(t->ssl);
    stg_tls_context_release(t->context);
    free(t);
}

void stg_tls_feed(stg_tls *t, const char *bytes, size_t size)
{
    t->in = bytes;
    t->in_size = size;
}

const char *stg_tls_out(stg_tls *t, size_t *size)
{
    *size = t->context->out_size;
    return t->context->out;
}

void stg_tls_sent(stg_tls *t)
{
    t->context->out_size = 0;
}

static stg_tls_result result_of(stg_tls *t, int returned)
{
    if (returned > 0)
        return STG_TLS_DONE;
    switch (SSL_get_error(t->ssl, returned)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return STG_TLS_WANTS;
    case SSL_ERROR_ZERO_RETURN:
        return STG_TLS_CLOSED;
    default:
        t->error = ERR_peek_last_error(); // SSL's own, above what led to it
        ERR_clear_error(); // or the next session would take it for its own
        return STG_TLS_FAILED;
    }
}

stg_tls_result stg_tls_shake_hands(stg_tls *t)
{
    return result_of(t, SSL_do_handshake(t->ssl));
}

stg_tls_result stg_tls_read(stg_tls *t, char *bytes, size_t room, size_t *size)
{
    return result_of(t, SSL_read_ex(t->ssl, bytes, room, size));
}

stg_tls_result stg_tls_write(stg_tls *t, const char *bytes, size_t size,
                             size_t *taken)
{
    return result_of(t, SSL_write_ex(t->ssl, bytes, size, taken));
}

/* Says close_notify, and does not wait for the other end's. */
void stg_tls_end(stg_tls *t)
{
    (void)SSL_shutdown(t->ssl);
    ERR_clear_error();
}

bool stg_tls_is_quiet(const stg_tls *t)
{
    return SSL_has_pending(t->ssl) == 0;
}

/* Where a handshake's messages came with the answer, as tickets do, OpenSSL
 * keeps a buffer for what it might say to them until something is written. */
void stg_tls_rest(stg_tls *t)
{
    (void)SSL_free_buffers(t->ssl); // not where something is in them
}

void stg_tls_why(const stg_tls *t, char *text, size_t size, int *alert)
{
    enum { ALERTS = 1000 }; // where the reasons begin that are alerts
    int reason = ERR_GET_REASON(t->error);
    const char *words = ERR_reason_error_string(t->error);
    long check = SSL_get_verify_result(t->ssl);

    *alert = ERR_GET_LIB(t->error) == ERR_LIB_SSL && reason >= ALERTS &&
                     reason < ALERTS + 256
                 ? reason - ALERTS
                 : -1;
    if (words == NULL)
        words = "it failed";
    if (check != X509_V_OK && !t->context->is_unverified)
        (void)snprintf(text, size, "%s: %s", words,
                       X509_verify_cert_error_string(check));
    else
        (void)snprintf(text, size, "%s", words);
}
