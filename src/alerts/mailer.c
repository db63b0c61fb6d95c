/* Mails by libcurl's blocking calls, each in a thread of libuv's pool.
 *
 * A stg_mail is written by the loop's thread until it is queued, by the thread
 * while it runs, and by the loop's thread again in ended(): only is_cancelled
 * is shared. The server's last reply decides what a failure means, since
 * libcurl has one code for many of them. libcurl goes on without a login where
 * the server offers none; give_text() stops it before the body. */
#include "alerts/receiver.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <curl/curl.h>
#include <openssl/crypto.h>

#include "alerts/options.h"

enum {
    REPLY_MAX = 256,
    DETAIL_MAX = CURL_ERROR_SIZE + REPLY_MAX + 32,
    MS = 1000000,
};

struct stg_mailer {
    uv_loop_t *loop;
    stg_egress_rule *rule; /* held */
    stg_list waiting;
    stg_mail *under_way;
};

struct stg_mail {
    stg_link link; /* of those that wait */
    stg_mailer *mailer;
    stg_mail_fn *done;
    void *ctx;
    uv_work_t work;
    atomic_bool is_cancelled;

    // The thread reads these.
    stg_egress_rule *rule; // held: a reload may replace the mailer's
    char *url, *ca_file, *user, *password, *from, *text;
    struct curl_slist *to, *header;
    stg_alert_starttls starttls;
    long timeout_ms;
    bool is_strict;

    // What it writes.
    const char *at; /* the body that is to be sent */
    size_t left;
    bool is_logged_in;
    CURLcode code;
    long status;           /* the code of the last reply, 250; 0: none came */
    char reply[REPLY_MAX]; /* the reply */
    char error[CURL_ERROR_SIZE];
    char forbidden[STG_EGRESS_WHY_MAX];
};

/* -- in the thread --------------------------------------------------------- */

/* Asked for when the server has taken the envelope. Where it offers no login,
 * libcurl goes on without one, and not as the one that the receiver was to
 * be. */
static size_t give_text(char *to, size_t size, size_t count, void *ctx)
{
    stg_mail *m = ctx;
    size_t room = size * count;

    if (m->user != NULL && !m->is_logged_in)
        return CURL_READFUNC_ABORT;
    if (room > m->left)
        room = m->left;
    memcpy(to, m->at, room);
    m->at += room;
    m->left -= room;
    return room;
}

/* The code of a reply; 0: it has none. RFC 5321, section 4.2. */
static long code_of(const char *line, size_t size)
{
    long code = 0;

    for (size_t i = 0; i < 3; i++) {
        if (i >= size || line[i] < '0' || line[i] > '9')
            return 0;
        code = 10 * code + (line[i] - '0');
    }
    return code;
}

/* What the server says; never what was said to it. Its good-bye is no answer to
 * the mail. */
static int take_line(CURL *curl, curl_infotype type, char *line, size_t size,
                     void *ctx)
{
    enum { BYE = 221, LOGGED_IN = 235 };
    stg_mail *m = ctx;
    size_t length = 0;

    (void)curl;
    if (type != CURLINFO_HEADER_IN || code_of(line, size) == 0 ||
        code_of(line, size) == BYE)
        return 0;
    m->status = code_of(line, size);
    m->is_logged_in |= m->status == LOGGED_IN;
    for (size_t i = 0; i < size && length + 1 < sizeof m->reply; i++)
        if (line[i] != '\r' && line[i] != '\n')
            m->reply[length++] =
                line[i] >= ' ' && line[i] <= '~' ? line[i] : '?';
    m->reply[length] = '\0';
    return 0;
}

/* Called once a second at least. */
static int look_up(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c,
                   curl_off_t d)
{
    stg_mail *m = ctx;

    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return atomic_load(&m->is_cancelled) ? 1 : 0;
}

/* Checks the address that libcurl has resolved, just before it connects: a
 * check of the name could be answered differently afterwards. forbidden is
 * cleared when a later address is allowed. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose,
                                 struct curl_sockaddr *to)
{
    stg_mail *m = ctx;

    (void)purpose;
    if (!stg_egress_allows(&m->rule->is, &to->addr, m->forbidden))
        return CURL_SOCKET_BAD;
    m->forbidden[0] = '\0';
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* The certificate is verified in every case, with STARTTLS as well. */
static void set_security(CURL *c, const stg_mail *m)
{
    static const long levels[] = {[STG_STARTTLS_REQUIRED] = CURLUSESSL_ALL,
                                  [STG_STARTTLS_OPTIONAL] = CURLUSESSL_TRY,
                                  [STG_STARTTLS_NONE] = CURLUSESSL_NONE};

    curl_easy_setopt(c, CURLOPT_USE_SSL, levels[m->starttls]);
    curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 1L);
    curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 2L);
    if (m->ca_file != NULL)
        curl_easy_setopt(c, CURLOPT_CAINFO, m->ca_file);
    if (m->user != NULL) {
        curl_easy_setopt(c, CURLOPT_USERNAME, m->user);
        curl_easy_setopt(c, CURLOPT_PASSWORD, m->password);
    }
}

static void set_protocols(CURL *c)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
#else
    curl_easy_setopt(c, CURLOPT_PROTOCOLS,
                     (long)(CURLPROTO_SMTP | CURLPROTO_SMTPS));
#endif
}

/* No signals, for it runs in a thread; no proxy from the environment, which
 * would get around `egress`. */
static void set_limits(CURL *c, stg_mail *m)
{
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_PROXY, "");
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, m->timeout_ms);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, m->timeout_ms);
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, look_up);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, m);
    curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, m);
}

static void set_words(CURL *c, stg_mail *m)
{
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, m->error);
    curl_easy_setopt(c, CURLOPT_VERBOSE, 1L);
    curl_easy_setopt(c, CURLOPT_DEBUGFUNCTION, take_line);
    curl_easy_setopt(c, CURLOPT_DEBUGDATA, m);
}

static void set_mail(CURL *c, stg_mail *m)
{
    curl_easy_setopt(c, CURLOPT_URL, m->url);
    curl_easy_setopt(c, CURLOPT_MAIL_FROM, m->from);
    curl_easy_setopt(c, CURLOPT_MAIL_RCPT, m->to);
    curl_easy_setopt(c, CURLOPT_MAIL_RCPT_ALLLOWFAILS, m->is_strict ? 0L : 1L);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, m->header);
}

/* libcurl's mails are multipart/mixed: of one part, the text, in lines of 76
 * bytes at most. NULL: no memory. */
static curl_mime *set_body(CURL *c, stg_mail *m)
{
    curl_mime *mime = curl_mime_init(c);
    curl_mimepart *part = mime != NULL ? curl_mime_addpart(mime) : NULL;

    if (part != NULL &&
        curl_mime_type(part, "text/plain; charset=utf-8") == CURLE_OK &&
        curl_mime_encoder(part, "quoted-printable") == CURLE_OK &&
        curl_mime_data_cb(part, (curl_off_t)m->left, give_text, NULL, NULL,
                          m) == CURLE_OK &&
        curl_easy_setopt(c, CURLOPT_MIMEPOST, mime) == CURLE_OK)
        return mime;
    curl_mime_free(mime);
    return NULL;
}

static void work(uv_work_t *w)
{
    stg_mail *m = w->data;
    curl_mime *mime;
    CURL *c;

    m->code = CURLE_ABORTED_BY_CALLBACK;
    if (atomic_load(&m->is_cancelled))
        return;
    c = curl_easy_init();
    m->code = CURLE_OUT_OF_MEMORY;
    if (c == NULL)
        return;
    set_protocols(c);
    set_mail(c, m);
    set_security(c, m);
    set_limits(c, m);
    set_words(c, m);
    mime = set_body(c, m);
    if (mime != NULL)
        m->code = curl_easy_perform(c);
    curl_easy_cleanup(c);
    curl_mime_free(mime);
    /* libcurl draws a mail's boundary from OpenSSL, whose state of this thread
     * would never be freed: the pool's threads end after OpenSSL has. */
    OPENSSL_thread_stop();
}

/* -- what came of it ------------------------------------------------------- */

/* See give_text(). */
static bool has_no_login(const stg_mail *m)
{
    return m->code == CURLE_ABORTED_BY_CALLBACK && m->user != NULL &&
           !m->is_logged_in && !atomic_load(&m->is_cancelled) && m->status != 0;
}

/* The server's word counts: 4yz may be tried again, 5yz is for good.
 * RFC 5321, section 4.2.1. */
static stg_outcome outcome_of(const stg_mail *m)
{
    stg_outcome o = stg_failed_curl((int)m->code);

    if (m->code == CURLE_OK)
        return o;
    if (m->forbidden[0] != '\0')
        return stg_failed(STG_FAULT_EGRESS);
    if (has_no_login(m)) {
        o = stg_failed_curl(CURLE_LOGIN_DENIED);
        o.permanent = true;
        return o;
    }
    if (m->code == CURLE_ABORTED_BY_CALLBACK)
        return stg_failed(STG_FAULT_CANCELLED);
    o.permanent = m->status >= 500 && m->status < 600;
    return o;
}

static void write_detail(const stg_mail *m, char detail[DETAIL_MAX])
{
    const char *words =
        m->error[0] != '\0' ? m->error : curl_easy_strerror(m->code);
    bool has_reply = m->status >= 400;

    if (m->code == CURLE_OK)
        snprintf(detail, DETAIL_MAX, "%s", m->reply);
    else if (has_no_login(m))
        snprintf(detail, DETAIL_MAX,
                 "the server offers no login (AUTH) that can be used, and the "
                 "receiver has a `user`: expected smtps:// or STARTTLS, or no "
                 "`user`");
    else if (m->forbidden[0] != '\0')
        snprintf(detail, DETAIL_MAX, "egress: %s", m->forbidden);
    else
        snprintf(detail, DETAIL_MAX, "%s%s%s", words,
                 has_reply ? "; the server said: " : "",
                 has_reply ? m->reply : "");
}

static void free_mail(stg_mail *m)
{
    stg_egress_rule_release(m->rule);
    free(m->url);
    free(m->ca_file);
    free(m->user);
    stg_secret_free(m->password);
    free(m->from);
    free(m->text);
    curl_slist_free_all(m->to);
    curl_slist_free_all(m->header);
    free(m);
}

static void start_next(stg_mailer *m);

/* Back on the loop's thread. The next mail starts before `done` is called,
 * which may end what the mailer belongs to. */
static void ended(uv_work_t *w, int status)
{
    stg_mail *m = w->data;
    stg_mailer *mailer = m->mailer;
    stg_outcome outcome;
    char detail[DETAIL_MAX];

    if (status == UV_ECANCELED)
        m->code = CURLE_ABORTED_BY_CALLBACK;
    outcome = outcome_of(m);
    write_detail(m, detail);
    mailer->under_way = NULL;
    start_next(mailer);
    m->done(m->ctx, &outcome, detail);
    free_mail(m);
}

static void start_next(stg_mailer *m)
{
    stg_mail *next;

    if (m->under_way != NULL || stg_list_is_empty(&m->waiting))
        return;
    next = STG_HOLDER(stg_list_shift(&m->waiting), stg_mail, link);
    next->link = (stg_link){.next = NULL};
    m->under_way = next;
    next->work.data = next;
    // It fails for want of a function only.
    (void)uv_queue_work(m->loop, &next->work, work, ended);
}

/* -- the mailer ------------------------------------------------------------ */

stg_mailer *stg_mailer_new(uv_loop_t *loop, const stg_egress *egress)
{
    stg_mailer *m = malloc(sizeof *m);

    if (m == NULL)
        return NULL;
    *m = (stg_mailer){.loop = loop, .rule = stg_egress_rule_new(egress)};
    stg_list_init(&m->waiting);
    if (m->rule == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        stg_egress_rule_release(m->rule);
        free(m);
        return NULL;
    }
    return m;
}

void stg_mailer_use_egress(stg_mailer *m, stg_egress_rule *egress)
{
    stg_egress_rule *old = m->rule;

    m->rule = stg_egress_rule_hold(egress);
    stg_egress_rule_release(old);
}

void stg_mailer_free(stg_mailer *m)
{
    if (m == NULL)
        return;
    stg_egress_rule_release(m->rule);
    free(m);
    curl_global_cleanup();
}

/* False: no memory. */
static bool copy(char **to, const char *text)
{
    *to = text != NULL ? strdup(text) : NULL;
    return text == NULL || *to != NULL;
}

/* <ADDRESS>, as SMTP wants it. */
static bool copy_address(char **to, const char *address)
{
    size_t size = strlen(address) + 3;

    *to = malloc(size);
    if (*to != NULL)
        snprintf(*to, size, "<%s>", address);
    return *to != NULL;
}

static bool append(struct curl_slist **list, const char *text)
{
    struct curl_slist *more = curl_slist_append(*list, text);

    if (more != NULL)
        *list = more;
    return more != NULL;
}

/* Takes the text apart: a folded line of the header is one, and what stands
 * behind the empty line is the body. False: no memory. */
static bool split_text(stg_mail *m)
{
    char *at = m->text, *end;

    while (strncmp(at, "\r\n", 2) != 0) {
        for (end = strstr(at, "\r\n"); end[2] == ' ';)
            end = strstr(end + 2, "\r\n");
        *end = '\0';
        if (!append(&m->header, at))
            return false;
        at = end + 2;
    }
    m->at = at + 2;
    m->left = strlen(m->at);
    return true;
}

static bool copy_recipients(stg_mail *m, const stg_alert_receiver_options *s)
{
    for (size_t i = 0; i < s->to_count; i++) {
        char *address;
        bool is_there;

        if (!copy_address(&address, s->to[i]))
            return false;
        is_there = append(&m->to, address);
        free(address);
        if (!is_there)
            return false;
    }
    return true;
}

static bool copy_order(stg_mail *m, const stg_mail_order *o)
{
    const stg_alert_receiver_options *s = o->receiver;

    m->text = strdup(o->text);
    m->starttls = s->starttls;
    m->timeout_ms = (long)(s->timeout / MS);
    m->is_strict = o->is_strict;
    return copy(&m->url, s->url) && copy(&m->ca_file, s->ca_file) &&
           copy(&m->user, s->user) && copy(&m->password, o->password) &&
           copy_address(&m->from, s->from) && m->text != NULL &&
           copy_recipients(m, s) && split_text(m);
}

stg_mail *stg_mailer_send(stg_mailer *m, const stg_mail_order *o,
                          stg_mail_fn *done, void *ctx)
{
    stg_mail *mail = calloc(1, sizeof *mail);

    if (mail == NULL)
        return NULL;
    mail->mailer = m;
    mail->done = done;
    mail->ctx = ctx;
    mail->rule = stg_egress_rule_hold(m->rule);
    atomic_init(&mail->is_cancelled, false);
    if (!copy_order(mail, o)) {
        free_mail(mail);
        return NULL;
    }
    stg_list_push(&m->waiting, &mail->link);
    start_next(m);
    return mail;
}

/* A mail that waits still goes through the queue and ends at once there; one
 * that runs ends within a second, when libcurl asks look_up(). */
void stg_mail_cancel(stg_mail *mail)
{
    atomic_store(&mail->is_cancelled, true);
}
