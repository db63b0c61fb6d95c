#include <stdlib.h>
#include <string.h>

#include "hub/http/header.h"
#include "hub/ops/ingress_headers.h"
#include "hub/ops/ingress_inside.h"

/* A request's headers, as a message has them. Spans point into libmicrohttpd's
 * memory until they are copied. */
typedef struct letterhead {
    const stg_ingress *ingress;
    const char *connection; /* the header of that name */
    stg_span content_type, key, idempotency_key, wanted;
    unsigned content_types, keys, idempotency_keys;
    size_t size; /* of the lines of those that are kept */
    char *out;   /* where they go; NULL: they are only counted */
    size_t written;
    bool is_wrong;
} letterhead;

static stg_span trim(stg_span text)
{
    while (text.size > 0 && (text.at[0] == ' ' || text.at[0] == '\t'))
        text = (stg_span){text.at + 1, text.size - 1};
    while (text.size > 0 &&
           (text.at[text.size - 1] == ' ' || text.at[text.size - 1] == '\t'))
        text.size--;
    return text;
}

static void write_bytes(char **out, const char *at, size_t size)
{
    if (size > 0)
        memcpy(*out, at, size);
    *out += size;
}

static bool is_kept(const letterhead *l, stg_span name)
{
    return stg_headers_keep((const char *const *)l->ingress->headers, name) &&
           (l->connection == NULL ||
            !stg_header_list_has(
                (stg_span){l->connection, strlen(l->connection)}, name));
}

/* Ahead of all others: see stg_header_take_hops(). */
static void keep_hops(letterhead *l, unsigned hops)
{
    static const char name[] = "Stagger-Hops: ";
    const char digit = (char)('0' + hops);
    char *at = l->out;

    if (hops == 0)
        return;
    l->size += sizeof name + 2;
    if (at == NULL)
        return;
    write_bytes(&at, name, sizeof name - 1);
    write_bytes(&at, &digit, 1);
    write_bytes(&at, "\r\n", 2);
    l->written = (size_t)(at - l->out);
}

static void keep(letterhead *l, stg_span name, stg_span value)
{
    char *at;

    l->is_wrong |= !stg_header_is_name(name) || !stg_header_is_value(value);
    l->size += name.size + value.size + 4;
    if (l->out == NULL)
        return;
    at = l->out + l->written;
    write_bytes(&at, name.at, name.size);
    write_bytes(&at, ": ", 2);
    write_bytes(&at, value.at, value.size);
    write_bytes(&at, "\r\n", 2);
    l->written = stg_header_fold(l->out, (size_t)(at - l->out), l->written);
}

static enum MHD_Result read_header(void *ctx, enum MHD_ValueKind kind,
                                   const char *key, size_t key_size,
                                   const char *value, size_t value_size)
{
    letterhead *l = ctx;
    stg_span name = {key, key_size};
    stg_span text = trim((stg_span){value, value_size});

    (void)kind;
    if (stg_header_equal(name, "Content-Type")) {
        l->content_type = text;
        l->content_types++;
    } else if (stg_header_equal(name, "Stagger-Key")) {
        l->key = text;
        l->keys++;
    } else if (stg_header_equal(name, "Idempotency-Key")) {
        l->idempotency_key = text;
        l->idempotency_keys++;
    } else if (stg_header_equal(name, "Stagger-Keep")) {
        l->wanted = text;
    } else if (is_kept(l, name)) {
        keep(l, name, text);
    }
    return MHD_YES;
}

static void read_headers(const stg_caller *c, letterhead *l)
{
    keep_hops(l, c->hops);
    MHD_get_connection_values_n(c->connection, MHD_HEADER_KIND, read_header, l);
}

/* The draft of the Idempotency-Key header has it as a quoted string, most
 * programs send it bare: both are the same key. */
static void unquote(stg_span *key)
{
    if (key->size < 3 || key->at[0] != '"' || key->at[key->size - 1] != '"' ||
        memchr(key->at, '\\', key->size) != NULL)
        return;
    *key = (stg_span){key->at + 1, key->size - 2};
}

static bool check_key(stg_caller *c, const char *name, unsigned count,
                      stg_span key)
{
    if (count == 0 || (count == 1 && stg_batch_is_key(key)))
        return true;
    return stg_problem_set(&c->problem, 400, 0,
                           "wanted one %s of 1 to %d bytes", name,
                           STG_KEY_SIZE_MAX);
}

/* A header that the producer asks to keep, and that the hub would drop, is an
 * error. */
static bool check_wanted(stg_caller *c, const letterhead *l)
{
    stg_span list = l->wanted, name;

    while (stg_header_list_take(&list, &name))
        if (!is_kept(l, name))
            return stg_problem_set(&c->problem, 400, 0,
                                   "header %.*s is not kept: the setting "
                                   "listen.headers names those that are",
                                   (int)(name.size < 80 ? name.size : 80),
                                   name.at);
    return true;
}

static bool check_letterhead(stg_caller *c, letterhead *l)
{
    unquote(&l->idempotency_key);
    if (l->content_types > 1 || !stg_header_is_value(l->content_type))
        return stg_problem_set(&c->problem, 400, 0, "wanted one Content-Type");
    if (l->is_wrong)
        return stg_problem_set(&c->problem, 400, 0,
                               "a header has control characters");
    return check_wanted(c, l) && check_key(c, "Stagger-Key", l->keys, l->key) &&
           check_key(c, "Idempotency-Key", l->idempotency_keys,
                     l->idempotency_key);
}

/* -- copies ------------------------------------------------------------------ */

static stg_span copy(char **out, stg_span text)
{
    stg_span there = {*out, text.size};

    write_bytes(out, text.at, text.size);
    return there;
}

/* All of a message but its body, in one piece of memory of its own. */
static bool copy_meta(stg_publication *p, const stg_caller *c, letterhead *l)
{
    size_t size =
        l->size + l->content_type.size + l->key.size + l->idempotency_key.size;
    stg_parcel *parcel = &p->one.parcel;
    char *out;

    if (!stg_ingress_reserve(p->ingress, size))
        return false;
    p->held += size;
    out = p->meta = malloc(size + 1);
    if (out == NULL)
        return false;
    parcel->content_type = copy(&out, l->content_type);
    parcel->key = copy(&out, l->key);
    p->one.idempotency_key = copy(&out, l->idempotency_key);
    l->out = out;
    read_headers(c, l);
    parcel->headers = (stg_span){out, l->written};
    return true;
}

static bool make_message(stg_publication *p, stg_caller *c)
{
    letterhead l = {.ingress = c->ingress,
                    .connection = stg_request_header(c, "Connection")};

    read_headers(c, &l);
    if (!check_letterhead(c, &l))
        return false;
    if (!copy_meta(p, c, &l))
        return stg_problem_set(&c->problem, 503, 0,
                               "too many bytes wait for their commit");
    p->one.parcel.body = (stg_span){c->size == 0 ? "" : p->body, c->size};
    p->messages = &p->one;
    p->count = 1;
    return true;
}

static bool make_batch(stg_publication *p, stg_caller *c)
{
    const stg_ingress_options *o = &c->ingress->options;
    stg_batch_rules rules = {
        .message_max = o->message_max,
        .lines_max = o->lines_max,
        .headers = (const char *const *)c->ingress->headers,
    };
    size_t cost = stg_batch_cost(p->body, c->size, &rules);

    if (!stg_ingress_reserve(p->ingress, cost))
        return stg_problem_set(&c->problem, 503, 0,
                               "too many bytes wait for their commit");
    p->held += cost;
    if (!stg_batch_parse(&p->batch, p->body, c->size, &rules, &c->problem))
        return false;
    p->messages = p->batch.messages;
    p->count = p->batch.count;
    return true;
}

/* One request may always pass when nothing waits, however many it has. */
static bool fits(size_t count, uint32_t waiting, uint32_t most)
{
    return waiting == 0 || (waiting < most && count <= most - waiting);
}

static bool check_count(stg_caller *c, size_t count)
{
    const stg_ingress_options *o = &c->ingress->options;

    if (fits(count, c->ingress->view.waiting, o->waiting_max) &&
        fits(count, c->origin->waiting, o->address_waiting_max))
        return true;
    return stg_problem_set(&c->problem, 429, 0,
                           "too many messages wait for their commit");
}

stg_publication *stg_publication_new(stg_caller *c)
{
    stg_publication *p = calloc(1, sizeof *p);

    if (p == NULL) {
        stg_problem_set(&c->problem, 503, 0, "no memory");
        return NULL;
    }
    p->ingress = c->ingress;
    p->caller = c;
    p->body = c->body;
    p->held = c->room;
    c->body = NULL;
    c->room = 0;
    if ((stg_request_body(c) == STG_BODY_BATCH ? make_batch(p, c)
                                               : make_message(p, c)) &&
        check_count(c, p->count))
        return p;
    stg_publication_free(p);
    return NULL;
}

void stg_publication_free(stg_publication *p)
{
    if (p->ingress != NULL)
        stg_ingress_release(p->ingress, p->held);
    stg_batch_free(&p->batch);
    free(p->meta);
    free(p->body);
    free(p);
}

/* -- what is pending --------------------------------------------------------- */

bool stg_ingress_reserve(stg_ingress *g, size_t bytes)
{
    if (bytes > g->options.pending_max - g->view.pending)
        return false;
    g->view.pending += bytes;
    return true;
}

void stg_ingress_release(stg_ingress *g, size_t bytes)
{
    g->view.pending -= bytes;
}
