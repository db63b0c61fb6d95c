/* What strangers and their settings send to the ingress. The first byte says
 * what the others are:
 *
 *     b  a batch                  j  JSON
 *     i  an id                    a  an address to listen on
 *     t  a file of tokens         h  a rule of headers, and a name
 *     r  requests on a connection
 *
 * With FUZZ_KIND=r, or another one, every input is of that kind, whatever its
 * first byte: as many requests are tried then as there are runs. */
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "fuzz/fuzz.h"
#include "http/header.h"
#include "ingress/internal.h"
#include "store/parcel.h"

/* A copy of its own size, for the sanitizer to see, and with a '\0' for what
 * wants one. */
static char *copy_of(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    HOLDS(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

static char *bytes_of(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size > 0 ? size : 1);

    HOLDS(bytes != NULL);
    if (size > 0)
        memcpy(bytes, data, size);
    return bytes;
}

/* -- messages ---------------------------------------------------------------- */

static bool is_inside(stg_span part, const char *text, size_t size)
{
    return part.at >= text && part.at + part.size <= text + size;
}

/* Whole lines, each a header that is kept. */
static void check_headers(stg_span lines, const char *const *rules)
{
    while (lines.size > 0) {
        const char *end = memchr(lines.at, '\n', lines.size);
        const char *colon = memchr(lines.at, ':', lines.size);
        stg_span name, value;

        HOLDS(end != NULL && end[-1] == '\r' && colon != NULL && colon < end);
        name = (stg_span){lines.at, (size_t)(colon - lines.at)};
        value = (stg_span){colon + 2, (size_t)(end - 1 - colon - 2)};
        HOLDS(colon[1] == ' ');
        HOLDS(stg_header_is_name(name) && stg_headers_keep(rules, name));
        HOLDS(stg_header_is_value(value));
        lines.size -= (size_t)(end + 1 - lines.at);
        lines.at = end + 1;
    }
}

static void check_message(const stg_append *m, const char *const *rules,
                          size_t message_max)
{
    const stg_parcel *p = &m->parcel;
    stg_span lines = p->headers;

    HOLDS(p->body.size <= message_max);
    HOLDS(p->key.size == 0 || stg_parcel_is_key(p->key));
    HOLDS(m->idempotency_key.size == 0 ||
          stg_parcel_is_key(m->idempotency_key));
    HOLDS(stg_header_is_value(p->content_type));
    // That line is the ingress's own, and stands first.
    HOLDS(stg_header_take_hops(&lines) < STG_HOPS_MAX);
    check_headers(lines, rules);
}

/* -- what needs no connection ------------------------------------------------ */

static void check_problem(const stg_problem *why)
{
    char text[STG_PROBLEM_TEXT_MAX];
    size_t size = stg_problem_print(why, text);
    stg_scan s = stg_scan_of((stg_span){text, size});
    stg_span value;

    HOLDS(why->status >= 400 && why->status < 600);
    HOLDS(stg_scan_value(&s, &value) && stg_scan_end(&s));
}

static void try_batch(const uint8_t *data, size_t size)
{
    enum { MESSAGE_MAX = 200, LINES_MAX = 20 };
    stg_batch_rules rules = {MESSAGE_MAX, LINES_MAX, stg_headers_default,
                             STG_DAY};
    char *text = bytes_of(data, size);
    size_t cost = stg_batch_cost(text, size, &rules);
    stg_batch b = {0};
    stg_problem why = {0};

    if (stg_batch_parse(&b, text, size, &rules, &why)) {
        HOLDS(b.count > 0 && b.count <= LINES_MAX);
        HOLDS(cost == b.count * (sizeof(stg_append) + sizeof(size_t)));
        for (size_t i = 0; i < b.count; i++) {
            HOLDS(is_inside(b.messages[i].parcel.body, text, size));
            HOLDS(b.lines[i] > (i > 0 ? b.lines[i - 1] : 0));
            check_message(&b.messages[i], stg_headers_default, MESSAGE_MAX);
        }
        stg_batch_free(&b);
    } else {
        HOLDS(b.messages == NULL);
        check_problem(&why);
    }
    free(text);
}

static void try_json(const uint8_t *data, size_t size)
{
    char *text = bytes_of(data, size), *out = malloc(size + 1);
    stg_scan s = stg_scan_of((stg_span){text, size}), again;
    stg_span value, second;

    HOLDS(out != NULL);
    if (stg_scan_value(&s, &value)) {
        HOLDS(s.wrong == NULL && is_inside(value, text, size));
        HOLDS(value.size > 0);
        again = stg_scan_of(value);
        HOLDS(stg_scan_value(&again, &second) && stg_scan_end(&again));
        HOLDS(second.at == value.at && second.size == value.size);
        if (value.at[0] == '"')
            HOLDS(stg_scan_text(value, out) <= value.size - 2);
    } else {
        HOLDS(s.wrong != NULL && s.at >= text && s.at <= text + size);
    }
    free(out);
    free(text);
}

static void try_id(const uint8_t *data, size_t size)
{
    char *text = bytes_of(data, size), again[STG_ID_TEXT_MAX];
    uint64_t epoch, position;

    if (stg_id_parse(text, size, &epoch, &position)) {
        stg_id_print(epoch, position, again);
        HOLDS(strlen(again) == size && memcmp(again, text, size) == 0);
    }
    free(text);
}

static void try_address(const uint8_t *data, size_t size)
{
    char *text = copy_of(data, size), again[STG_ADDRESS_TEXT_MAX];
    stg_listen_address a, b;
    stg_error err;

    if (stg_address_parse(&a, text, &err) == STG_OK) {
        stg_address_print(&a, again);
        HOLDS(stg_address_parse(&b, again, &err) == STG_OK);
        HOLDS(memcmp(&a, &b, sizeof a) == 0);
        HOLDS(stg_address_is_loopback(&a) == stg_address_is_loopback(&b));
    } else {
        HOLDS(err.text[0] != '\0');
    }
    free(text);
}

/* 64 digits, small or large ones. */
static bool has_hash(const char *file, size_t size, const char *hash)
{
    for (size_t i = 0; i + 64 <= size; i++)
        if (strncasecmp(file + i, hash, 64) == 0)
            return true;
    return false;
}

/* A file, and behind a zero byte the value of an Authorization header. */
static void try_tokens(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size == 0 ? NULL : memchr(data, '\0', size);
    size_t file_size = zero == NULL ? size : (size_t)(zero - data);
    char *file = bytes_of(data, file_size);
    char *value = copy_of(zero == NULL ? data : zero + 1,
                          zero == NULL ? 0 : size - file_size - 1);
    stg_tokens *t;
    stg_error err;

    if (stg_tokens_parse(&t, (stg_span){file, file_size}, "f", &err) ==
        STG_OK) {
        // Who is let in has a token whose hash is in the file.
        const stg_token *found = stg_tokens_find(t, value);

        if (found != NULL) {
            char line[STG_TOKEN_LINE_MAX], *token = value + 7;

            token += strspn(token, " \t\r");
            token[strcspn(token, " \t\r")] = '\0';
            HOLDS(stg_token_print(token, found->roles, found->name, line));
            HOLDS(has_hash(file, file_size, strchr(line, ':') + 1));
            HOLDS(found->roles != 0);
        }
        HOLDS(stg_tokens_find(t, "") == NULL);
        stg_tokens_free(t);
    } else {
        HOLDS(strncmp(err.text, "token file f", 12) == 0);
    }
    free(value);
    free(file);
}

static void try_headers(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size == 0 ? NULL : memchr(data, '\0', size);
    size_t rule_size = zero == NULL ? size : (size_t)(zero - data);
    char *rule = copy_of(data, rule_size);
    char *name = bytes_of(zero == NULL ? data : zero + 1,
                          zero == NULL ? 0 : size - rule_size - 1);
    stg_span span = {name, zero == NULL ? 0 : size - rule_size - 1};
    const char *const rules[] = {rule, NULL};

    if (stg_headers_check(rules, NULL) == STG_OK &&
        stg_headers_keep(rules, span)) {
        HOLDS(!stg_header_equal(span, "Cookie"));
        HOLDS(!stg_header_equal(span, "Authorization"));
        HOLDS(!stg_header_equal(span, "Content-Length"));
    }
    (void)stg_header_is_value(span);
    (void)stg_header_list_has((stg_span){rule, rule_size}, span);
    free(name);
    free(rule);
}

/* -- a connection ------------------------------------------------------------ */

static uv_loop_t loop;
static stg_ingress *ingress;
static unsigned appends;

/* Answers in turn with all that a store may. */
static void append(void *ctx, const char *topic, const stg_append *messages,
                   size_t count, stg_append_fn *done, void *done_ctx)
{
    static stg_append_answer answers[64];
    stg_appended how =
        (stg_appended)(appends++ % (STG_APPEND_UNACKNOWLEDGED + 1));

    (void)ctx;
    HOLDS(topic == NULL || strlen(topic) < sizeof ingress->path);
    HOLDS(count > 0 && count <= 64);
    for (size_t i = 0; i < count; i++) {
        check_message(&messages[i], stg_headers_default,
                      ingress->options.message_max);
        answers[i] =
            (stg_append_answer){.position = appends, .is_repeat = i % 2 == 0};
    }
    done(done_ctx, how, how == STG_APPENDED ? answers : NULL, count - 1);
}

static void open_ingress(void)
{
    stg_ingress_options o = stg_ingress_options_default();

    if (ingress != NULL)
        return;
    HOLDS(uv_loop_init(&loop) == 0);
    o.listen = "127.0.0.1:0";
    o.append = append;
    o.message_max = 100;
    o.batch_max = 1000;
    o.pending_max = 6000;
    o.lines_max = 64;
    HOLDS(stg_ingress_open(&ingress, &loop, &o, NULL) == STG_OK);
}

/* Everything that comes back is an answer of HTTP, or there is nothing. */
static void check_answers(int fd)
{
    static char text[1 << 20];
    size_t size = 0;
    ssize_t n;

    while ((n = recv(fd, text + size, sizeof text - size, MSG_DONTWAIT)) > 0)
        size += (size_t)n;
    HOLDS(size == 0 || (size > 9 && memcmp(text, "HTTP/1.", 7) == 0));
}

static void try_requests(const uint8_t *data, size_t size)
{
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int ends[2];

    open_ingress();
    HOLDS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0);
    appends = size > 0 ? data[0] : 0;
    HOLDS(size == 0 || send(ends[0], data, size, MSG_NOSIGNAL) >= 0);
    HOLDS(stg_httpd_adopt(&ingress->server, ends[1], (struct sockaddr *)&from));
    for (int i = 0; i < 10; i++)
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    HOLDS(shutdown(ends[0], SHUT_WR) == 0 || errno == ENOTCONN);
    for (int i = 0; ingress->server.count > 0; i++) {
        HOLDS(i < 100000);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
    }
    check_answers(ends[0]);
    close(ends[0]);
    HOLDS(ingress->view.pending == 0 && ingress->view.waiting == 0);
    HOLDS(ingress->server.busy == 0 &&
          stg_list_is_empty(&ingress->server.connections) &&
          stg_list_is_empty(&ingress->publications));
}

static char kind_of(const uint8_t *data)
{
    const char *only = getenv("FUZZ_KIND");

    return only != NULL ? only[0] : (char)data[0];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        char kind;
        void (*try)(const uint8_t *data, size_t size);
    } kinds[] = {
        {'b', try_batch},    {'j', try_json},   {'i', try_id},
        {'a', try_address},  {'t', try_tokens}, {'h', try_headers},
        {'r', try_requests},
    };

    for (size_t i = 0; size > 0 && i < sizeof kinds / sizeof kinds[0]; i++)
        if (kind_of(data) == kinds[i].kind)
            kinds[i].try(data + 1, size - 1);
    return 0;
}
