/* Connections to the server through TLS. Records come in by a buffer that all
 * of them share, and bytes of requests go on to inbound.c as those of a plain
 * connection do. An answer is made into records as fast as the system takes
 * them, so a large one that is read slowly is not in memory twice. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/refuse.h"
#include "host/files.h"
#include "host/wall.h"
#include "http/server.h"

enum {
    RECORDS = 32 * 1024,    /* bytes that are read at once */
    FLUSH = 16 * 1024,      /* bytes that are written at once */
    UNREAD_MAX = 64 * 1024, /* answers of TLS itself that wait */
    LOOK_EVERY_S = 1,       /* at files of certificates */
};

struct stg_secure {
    stg_tls *session;
    bool is_up;     /* the handshake is over */
    bool has_begun; /* a byte came */
    bool is_ended;  /* nothing more is said */
    // Of an answer, what is no record yet.
    char *answer; /* to be freed */
    const char *left;
    size_t left_size;
};

static uv_stream_t *stream_of(stg_inbound *c)
{
    return &c->as.stream;
}

/* -- certificates ---------------------------------------------------------- */

int64_t stg_httpd_certificate_until(const stg_httpd *s)
{
    return s->tls != NULL ? stg_tls_own_until(s->tls) : 0;
}

static stg_status check_age(const stg_tls_context *context, stg_error *err)
{
    stg_tls_options o = stg_tls_context_options(context);
    int64_t until = stg_tls_own_until(context);

    if (until > (int64_t)(stg_wall_now() / STG_S))
        return STG_OK;
    return stg_hub_refuse(
        err, STG_INVALID, "%s %.200s: it has expired; expected a valid one",
        stg_tls_names_of(&o)->certificate, o.certificate_file);
}

static stg_status check_key(const stg_tls_options *o, stg_error *err)
{
    struct stat status;

    if (stat(o->key_file, &status) != 0 ||
        stg_secret_is_private(o->key_file, &status))
        return STG_OK; // that it cannot be read is told when it is
    return stg_hub_refuse(err, STG_INVALID,
                          "%s %.200s: others may use it (mode %04o); "
                          "expected 0600: chmod 600",
                          stg_tls_names_of(o)->key, o->key_file,
                          (unsigned)(status.st_mode & 07777));
}

static stg_status take_context(stg_httpd *s, const stg_tls_options *o,
                               stg_tls_context **context, stg_error *err)
{
    stg_tls_options server = *o;
    stg_status status;

    server.is_server = true;
    if (s->records == NULL)
        s->records = malloc(RECORDS);
    if (s->records == NULL)
        return stg_hub_refuse(err, STG_IO, "there is no memory");
    status = check_key(o, err);
    if (status == STG_OK)
        status = stg_tls_context_take(context, &s->contexts, &server, err);
    // A certificate that has expired stops a start or a change, not a server
    // that has it already.
    if (status == STG_OK && *context != s->tls &&
        check_age(*context, err) != STG_OK) {
        stg_tls_context_release(*context);
        return STG_INVALID;
    }
    return status;
}

stg_status stg_httpd_prepare_tls(stg_httpd *s, const stg_tls_options *o,
                                 stg_tls_context **tls, stg_error *err)
{
    stg_status status = STG_OK;

    *tls = NULL;
    if (o->certificate_file != NULL)
        status = take_context(s, o, tls, err);
    if (status != STG_OK)
        *tls = NULL; // released
    return status;
}

void stg_httpd_use_tls(stg_httpd *s, stg_tls_context *tls)
{
    if (s->tls != NULL)
        stg_tls_context_release(s->tls);
    s->tls = tls;
    s->tls_looked_at = stg_deadlines_now();
}

stg_status stg_httpd_change_tls(stg_httpd *s, const stg_tls_options *o,
                                stg_error *err)
{
    stg_tls_context *tls;
    stg_status status = stg_httpd_prepare_tls(s, o, &tls, err);

    if (status == STG_OK)
        stg_httpd_use_tls(s, tls);
    return status;
}

/* Called for each connection that comes, and looks at the files once a second
 * at most. Files that cannot be used leave the certificate from before in
 * place. */
void stg_secure_refresh(stg_httpd *s)
{
    stg_ns now = stg_deadlines_now();
    stg_tls_options o;
    stg_error err;

    if (now - s->tls_looked_at < LOOK_EVERY_S * STG_S)
        return;
    s->tls_looked_at = now;
    if (!stg_tls_context_is_stale(s->tls))
        return;
    o = stg_tls_context_options(s->tls);
    if (stg_httpd_change_tls(s, &o, &err) == STG_OK)
        STG_LOG(s->options.log, STG_LOG_INFO, "certificate-reloaded",
                stg_field_text(
                    "file", stg_tls_context_options(s->tls).certificate_file),
                stg_field_number(
                    "valid_s", (uint64_t)(stg_httpd_certificate_until(s) -
                                          (int64_t)(stg_wall_now() / STG_S))));
    else
        STG_LOG_REPEAT(
            s->options.log, STG_LOG_WARN, "certificate-kept", 1,
            stg_field_text("detail", err.text),
            stg_field_text("next",
                           "the files of listen.tls have changed and cannot "
                           "be used, so the certificate from before is shown "
                           "on: stagger check -c FILE says what is wrong"));
}

/* -- handshakes that fail -------------------------------------------------- */

bool stg_secure_is_up(const stg_inbound *c)
{
    return c->secure->is_up;
}

/* Anybody can have any number of them. */
void stg_secure_note(stg_inbound *c, const char *why)
{
    char from[INET6_ADDRSTRLEN];

    c->server->handshakes_failed++;
    STG_LOG(c->server->options.log, STG_LOG_DEBUG, "handshake-failed",
            stg_field_text("from", stg_origin_print(c->origin, from)),
            stg_field_text("detail", why));
}

static void note_failure(stg_inbound *c)
{
    char why[256];
    int alert;

    stg_tls_why(c->secure->session, why, sizeof why, &alert);
    stg_secure_note(c, why);
}

/* -- out ------------------------------------------------------------------- */

static void go_on(stg_inbound *c);

static void backlog_written(uv_write_t *request, int status)
{
    stg_inbound *c = request->handle->data;

    free(request->data);
    if (c->phase == STG_INBOUND_CLOSED)
        return;
    if (status != 0)
        stg_inbound_close(c);
    else if (c->phase == STG_INBOUND_ANSWER)
        go_on(c);
}

static int flush(stg_inbound *c)
{
    return stg_tls_flush(c->secure->session, stream_of(c), backlog_written);
}

static bool is_blocked(stg_inbound *c)
{
    return uv_stream_get_write_queue_size(stream_of(c)) > 0;
}

/* Makes records of what is left of the answer, while the system takes them.
 * Returns an error of libuv, or 0. */
static int push(stg_inbound *c)
{
    stg_secure *s = c->secure;
    int error = 0;

    while (error == 0 && s->left_size > 0 && !is_blocked(c)) {
        size_t taken = 0, made;

        if (stg_tls_write(s->session, s->left, s->left_size, &taken) !=
            STG_TLS_DONE)
            return UV_EPROTO;
        s->left += taken;
        s->left_size -= taken;
        (void)stg_tls_out(s->session, &made);
        if (made >= FLUSH)
            error = flush(c);
    }
    return error != 0 ? error : flush(c);
}

static void drop_answer(stg_secure *s)
{
    free(s->answer);
    s->answer = NULL;
    s->left_size = 0;
}

/* The system has taken all that it was given. */
static void go_on(stg_inbound *c)
{
    if (push(c) != 0) {
        stg_inbound_close(c);
    } else if (c->secure->left_size == 0 && !is_blocked(c)) {
        drop_answer(c->secure);
        stg_inbound_sent(c);
    }
}

/* The user's body is its own again when the call returns. */
static int keep_answer(stg_secure *s)
{
    char *copy;

    if (s->left_size == 0)
        return 0;
    copy = malloc(s->left_size);
    if (copy == NULL)
        return UV_ENOMEM;
    memcpy(copy, s->left, s->left_size);
    s->answer = copy;
    s->left = copy;
    return 0;
}

/* 1: the system has all of it. 0: the rest follows, and stg_inbound_sent()
 * then. Else an error of libuv, and the body is still the caller's. */
int stg_secure_answer(stg_inbound *c, const uv_buf_t parts[2], bool is_given)
{
    stg_secure *s = c->secure;
    size_t taken = 0;
    int error;

    // A head is less than a record: it goes with the first one of the body.
    if (stg_tls_write(s->session, parts[0].base, parts[0].len, &taken) !=
        STG_TLS_DONE)
        return UV_EPROTO;
    s->left = parts[1].base;
    s->left_size = parts[1].len;
    error = push(c);
    if (error == 0 && s->left_size == 0 && !is_blocked(c))
        return 1;
    if (error == 0 && is_given)
        s->answer = parts[1].base;
    else if (error == 0)
        error = keep_answer(s);
    if (error != 0)
        s->left_size = 0;
    return error;
}

int stg_secure_write(stg_inbound *c, const char *bytes, size_t size)
{
    while (size > 0) {
        size_t taken;

        if (stg_tls_write(c->secure->session, bytes, size, &taken) !=
            STG_TLS_DONE)
            return UV_EPROTO;
        bytes += taken;
        size -= taken;
    }
    return flush(c);
}

void stg_secure_end(stg_inbound *c)
{
    stg_secure *s = c->secure;

    // Behind half an answer the end would be a lie.
    if (!s->is_up || s->is_ended || is_blocked(c))
        return;
    s->is_ended = true;
    stg_tls_end(s->session);
    (void)flush(c);
}

/* -- in -------------------------------------------------------------------- */

static void fail(stg_inbound *c)
{
    (void)flush(c); // with the alert that says why
    c->secure->is_ended = true;
    stg_inbound_close(c);
}

/* False: it is not over, or has failed. */
static bool shake_hands(stg_inbound *c)
{
    stg_secure *s = c->secure;
    stg_tls_result result = stg_tls_shake_hands(s->session);

    if (result == STG_TLS_DONE) {
        s->is_up = true;
        return true;
    }
    if (result == STG_TLS_WANTS && flush(c) == 0)
        return false;
    note_failure(c);
    fail(c);
    return false;
}

/* What TLS says of its own, about keys for instance, is little, if somebody
 * reads it. */
static bool answer_records(stg_inbound *c)
{
    if (flush(c) == 0 &&
        uv_stream_get_write_queue_size(stream_of(c)) < UNREAD_MAX)
        return true;
    // While an answer waits, its records are among them.
    return c->phase == STG_INBOUND_ANSWER;
}

/* One record may hold several requests, and one request may take several
 * records. */
static void take_records(stg_inbound *c)
{
    stg_secure *s = c->secure;
    stg_tls_result result;

    do {
        uv_buf_t buf = stg_inbound_lend(c);
        size_t size = 0;

        result = stg_tls_read(s->session, buf.base, buf.len, &size);
        if (result == STG_TLS_DONE)
            stg_inbound_take(c, (ssize_t)size, &buf);
    } while (result == STG_TLS_DONE && c->phase != STG_INBOUND_CLOSED);
    if (c->phase == STG_INBOUND_CLOSED)
        return;
    if (result == STG_TLS_FAILED || !answer_records(c))
        fail(c);
    else if (result == STG_TLS_CLOSED)
        stg_inbound_take(c, UV_EOF, NULL);
    else if (c->phase == STG_INBOUND_IDLE)
        stg_tls_rest(s->session);
}

/* A record begins with its type, below 32. */
static bool is_plain_http(const stg_secure *s, char first)
{
    return !s->has_begun && first >= 'A' && first <= 'Z';
}

static void answer_plain(stg_inbound *c)
{
    stg_secure_free(c->secure);
    c->secure = NULL;
    stg_inbound_refuse(c, 400,
                       "a request in plain HTTP to a port of TLS; expected "
                       "https://");
}

static void lose(stg_inbound *c, ssize_t error)
{
    if (!c->secure->is_up && c->secure->has_begun)
        stg_secure_note(c, "the client has closed the connection");
    stg_inbound_take(c, error, NULL);
}

static void take(uv_stream_t *stream, ssize_t size, const uv_buf_t *buf)
{
    stg_inbound *c = stream->data;
    stg_secure *s = c->secure;

    if (size == 0 || c->phase == STG_INBOUND_CLOSED)
        return;
    if (s == NULL) {
        // Of plain HTTP, that was refused; nothing more is wanted.
        if (size < 0)
            stg_inbound_take(c, size, buf);
    } else if (size < 0) {
        lose(c, size);
    } else if (is_plain_http(s, buf->base[0])) {
        answer_plain(c);
    } else {
        s->has_begun = true;
        stg_tls_feed(s->session, buf->base, (size_t)size);
        if (s->is_up || shake_hands(c))
            take_records(c);
    }
}

static void lend(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    const stg_inbound *c = handle->data;

    (void)suggested;
    *buf = (uv_buf_t){.base = c->server->records, .len = RECORDS};
}

int stg_secure_read(stg_inbound *c)
{
    return uv_read_start(stream_of(c), lend, take);
}

/* -- a connection ---------------------------------------------------------- */

bool stg_secure_open(stg_inbound *c)
{
    c->secure = calloc(1, sizeof *c->secure);
    if (c->secure == NULL)
        return false;
    c->secure->session = stg_tls_new(c->server->tls, NULL, false);
    if (c->secure->session != NULL)
        return true;
    free(c->secure);
    c->secure = NULL;
    return false;
}

void stg_secure_free(stg_secure *s)
{
    if (s == NULL)
        return;
    stg_tls_free(s->session);
    free(s->answer);
    free(s);
}
