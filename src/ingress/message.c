/* Makes publications: the bytes of a checked request become messages, copied
 * where they would not last until the store's commit.
 *
 * Also the books of pending memory: stg_caller_reserve() counts bytes before
 * they are kept, for all clients and for each client, and
 * stg_ingress_release() takes them off again. */
#include <stdlib.h>
#include <string.h>

#include "host/wall.h"
#include "http/header.h"
#include "ingress/internal.h"
#include "store/parcel.h"

/* A request's headers, as a message has them. Spans point into the request until
 * they are copied. */
typedef struct letterhead {
    const char *const *rules; /* of headers that are kept */
    const stg_webhook *webhook;
    const char *id_header; /* of the idempotency key; NULL: it has none */
    const stg_request *request;
    stg_span content_type, key, idempotency_key, names, not_before, expires;
    unsigned content_types, keys, idempotency_keys, not_befores, expireses;
    stg_times times;
    size_t size; /* of the lines of those that are kept */
    char *out;   /* where they go; NULL: they are only counted */
    size_t written;
} letterhead;

static void write_bytes(char **out, const char *at, size_t size)
{
    if (size > 0)
        memcpy(*out, at, size);
    *out += size;
}

/* Headers that Connection names end at this hop (RFC 9110, section 7.6.1). */
static bool is_kept(const letterhead *l, stg_span name)
{
    return stg_headers_keep(l->rules, name) &&
           !(l->webhook != NULL && stg_webhook_drops(l->webhook, name)) &&
           !stg_request_is_hop(l->request, name);
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

/* Behind them: see store/parcel.h. They are known when all headers have been
 * counted. */
static void keep_times(letterhead *l)
{
    if (l->out != NULL)
        l->written =
            (size_t)(stg_times_put(l->out + l->written, &l->times) - l->out);
}

/* size counts both lines where one is folded into the other: it is what has to
 * be allocated at most. */
static void keep(letterhead *l, stg_span name, stg_span value)
{
    char *at;

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

/* What the hub obeys. No sender of webhooks signs such headers, so that anybody who
 * sends a request again could set them: they are dropped there. False: it is none
 * of them. */
static bool read_order(letterhead *l, stg_span name, stg_span text)
{
    if (l->webhook != NULL)
        return false;
    if (stg_header_equal(name, "Stagger-Key")) {
        l->key = text;
        l->keys++;
    } else if (stg_header_equal(name, STG_NOT_BEFORE)) {
        l->not_before = text;
        l->not_befores++;
    } else if (stg_header_equal(name, STG_EXPIRES)) {
        l->expires = text;
        l->expireses++;
    } else {
        return false;
    }
    return true;
}

static void read_header(letterhead *l, stg_span name, stg_span text)
{
    if (l->id_header != NULL && stg_header_equal(name, l->id_header)) {
        l->idempotency_key = text;
        l->idempotency_keys++;
    }
    if (stg_header_equal(name, "Content-Type")) {
        l->content_type = text;
        l->content_types++;
    } else if (stg_header_equal(name, "Stagger-Keep")) {
        l->names = text;
    } else if (!read_order(l, name, text) && is_kept(l, name)) {
        keep(l, name, text);
    }
}

static void read_headers(const stg_caller *c, letterhead *l)
{
    stg_span lines = c->in.request.parts[STG_PART_LINES], name, value;

    keep_hops(l, c->hops);
    keep_times(l);
    if (l->webhook != NULL)
        keep(l, (stg_span){STG_WEBHOOK_HEADER, sizeof STG_WEBHOOK_HEADER - 1},
             (stg_span){l->webhook->name, strlen(l->webhook->name)});
    while (stg_request_line(&lines, &name, &value))
        read_header(l, name, value);
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
    if (count == 0 || (count == 1 && stg_parcel_is_key(key)))
        return true;
    return stg_problem_set(&c->problem, 400, 0,
                           "expected one %s of 1 to %d bytes", name,
                           STG_KEY_SIZE_MAX);
}

/* A header that the producer asks to keep, and that the hub would drop, is an
 * error. */
static bool check_names(stg_caller *c, const letterhead *l)
{
    stg_span list = l->names, name;

    while (stg_header_list_take(&list, &name))
        if (!is_kept(l, name))
            return stg_problem_set(&c->problem, 400, 0,
                                   "header %.*s is not kept: the setting "
                                   "listen.headers names those that are",
                                   (int)(name.size < 80 ? name.size : 80),
                                   name.at);
    return true;
}

static bool check_times(stg_caller *c, letterhead *l)
{
    const char *expected;
    bool is_expires;

    if (l->not_befores + l->expireses == 0)
        return true;
    if (l->not_befores > 1 || l->expireses > 1)
        return stg_problem_set(&c->problem, 400, 0,
                               "expected one " STG_NOT_BEFORE
                               " and one " STG_EXPIRES);
    expected = stg_times_read_both(&l->times, l->not_before, l->expires,
                                   stg_wall_now(), &is_expires);
    l->size += STG_TIMES_ROOM;
    return expected == NULL ||
           stg_problem_set(&c->problem, 400, 0, "%s: %s",
                           is_expires ? STG_EXPIRES : STG_NOT_BEFORE, expected);
}

/* Two values for a header that stands once are refused: the hub would have to
 * choose one. */
static bool check_letterhead(stg_caller *c, letterhead *l)
{
    unquote(&l->idempotency_key);
    if (l->content_types > 1)
        return stg_problem_set(&c->problem, 400, 0,
                               "expected one Content-Type");
    return check_names(c, l) && check_key(c, "Stagger-Key", l->keys, l->key) &&
           check_key(c, l->id_header, l->idempotency_keys,
                     l->idempotency_key) &&
           check_times(c, l);
}

/* -- copies ------------------------------------------------------------------ */

static stg_span copy(char **out, stg_span text)
{
    stg_span there = {*out, text.size};

    write_bytes(out, text.at, text.size);
    return there;
}

/* `more` bytes behind it. NULL: the caller has a problem. The body changes
 * hands, with what the caller had reserved for it. */
static stg_publication *make(stg_caller *c, size_t more)
{
    stg_ingress *g = stg_ingress_of(c);
    stg_publication *p;

    if (!stg_caller_reserve(c, c->room, more))
        return NULL;
    p = malloc(sizeof *p + more);
    if (p == NULL) {
        stg_ingress_release(g, c->in.client, more);
        stg_problem_set(&c->problem, 503, 0, "no memory");
        return NULL;
    }
    p->link = (stg_link){NULL, NULL};
    p->ingress = g;
    p->caller = c;
    p->client = c->in.client;
    p->client->uses++;
    p->messages = NULL;
    p->count = 0;
    p->batch = (stg_batch){.messages = NULL};
    p->body = c->body;
    p->held = more + c->room;
    stg_caller_verified(c);
    c->body = NULL;
    c->room = 0;
    return p;
}

/* Behind the publication: what a message has but its body; and that, too, if it
 * came at once, so that this is its only copy. */
static void copy_message(stg_publication *p, const stg_caller *c, letterhead *l)
{
    stg_span body = p->body != NULL ? (stg_span){p->body, c->size} : c->lent;
    char *out = p->text;

    p->one = (stg_append){.is_same_by_key = l->webhook != NULL};
    p->one.parcel.content_type = copy(&out, l->content_type);
    p->one.parcel.key = copy(&out, l->key);
    p->one.idempotency_key = copy(&out, l->idempotency_key);
    p->one.parcel.body = p->body != NULL ? body : copy(&out, body);
    l->out = out;
    read_headers(c, l);
    p->one.parcel.headers = (stg_span){out, l->written};
    p->messages = &p->one;
    p->count = 1;
}

/* Headers are read twice: once to count and check, once to copy them to where
 * the count has made room. */
static stg_publication *make_message(stg_caller *c)
{
    const stg_webhook *w = c->webhook;
    letterhead l = {.rules = (const char *const *)stg_ingress_of(c)->headers,
                    .webhook = w,
                    .id_header = w != NULL ? stg_webhook_id_header(w)
                                           : "Idempotency-Key",
                    .request = &c->in.request};
    char key[STG_WEBHOOK_KEY_MAX];
    stg_publication *p;
    size_t size;

    if (w != NULL && w->headers != NULL)
        l.rules = w->headers;
    read_headers(c, &l);
    if (!check_letterhead(c, &l))
        return NULL;
    if (w != NULL)
        l.idempotency_key = stg_webhook_key(c, l.idempotency_key, key);
    size = l.size + l.content_type.size + l.key.size + l.idempotency_key.size;
    p = make(c, size + c->lent.size);
    if (p != NULL)
        copy_message(p, c, &l);
    return p;
}

/* The text is changed, so it is a copy if it came at once. */
static bool read_batch(stg_publication *p, stg_caller *c)
{
    const stg_ingress_options *o = &p->ingress->options;
    stg_batch_rules rules = {
        .message_max = o->message_max,
        .lines_max = o->lines_max,
        .headers = (const char *const *)p->ingress->headers,
        .now = stg_wall_now(),
    };
    char *text = p->body != NULL ? p->body : p->text, *out = p->text;
    size_t size = p->body != NULL ? c->size : c->lent.size, cost;

    if (p->body == NULL)
        (void)copy(&out, c->lent);
    cost = stg_batch_cost(text, size, &rules);
    if (!stg_caller_reserve(c, p->held, cost))
        return false;
    p->held += cost;
    if (!stg_batch_parse(&p->batch, text, size, &rules, &c->problem) ||
        !stg_caller_reserve(c, p->held, p->batch.more))
        return false;
    p->held += p->batch.more;
    p->messages = p->batch.messages;
    p->count = p->batch.count;
    return true;
}

static stg_publication *make_batch(stg_caller *c)
{
    stg_publication *p = make(c, c->lent.size);

    if (p == NULL || read_batch(p, c))
        return p;
    stg_publication_free(p);
    return NULL;
}

/* One request may always pass when nothing waits, however many it has. */
static bool fits(size_t count, uint32_t waiting, uint32_t most)
{
    return waiting == 0 || (waiting < most && count <= most - waiting);
}

/* Counted when the messages are known: a batch says how many it has only when
 * it is read. */
static bool check_count(stg_caller *c, size_t count)
{
    const stg_ingress *g = stg_ingress_of(c);

    if (fits(count, g->view.waiting, g->options.waiting_max) &&
        fits(count, c->in.client->waiting, g->options.address_waiting_max))
        return true;
    return stg_problem_set(&c->problem, 429, 0,
                           "too many messages wait for their commit");
}

stg_publication *stg_publication_new(stg_caller *c)
{
    stg_publication *p =
        stg_request_body(c) == STG_BODY_BATCH ? make_batch(c) : make_message(c);

    if (p == NULL || check_count(c, p->count))
        return p;
    stg_publication_free(p);
    return NULL;
}

/* Without an ingress it was left behind by stg_publication_leave(), which has
 * settled the books. */
void stg_publication_free(stg_publication *p)
{
    if (p->ingress != NULL) {
        stg_ingress_release(p->ingress, p->client, p->held);
        stg_origin_release(p->client);
    }
    stg_batch_free(&p->batch);
    free(p->body);
    free(p);
}

/* -- what is pending --------------------------------------------------------- */

const char *stg_caller_kind(const stg_caller *c)
{
    return c->in.client == c->in.origin ? "address" : "token";
}

/* Whether so many more bytes of a request fit into `most`, of which `used` are in
 * use, `held` by the request itself. One that is all there is may be as large as
 * it likes; of several, those above 64 KiB leave an eighth to smaller ones. */
static bool fits_in(size_t most, size_t used, size_t held, size_t bytes)
{
    if (used > held && held + bytes > STG_SMALL_MAX)
        most -= most / 8;
    return used <= most && bytes <= most - used;
}

/* Half of all is a client's share, unless it waits for nothing else. */
static bool is_in_share(const stg_ingress *g, const stg_origin *client,
                        size_t held, size_t bytes)
{
    return client->pending == held ||
           fits_in(g->options.pending_max / 2, client->pending, held, bytes);
}

bool stg_caller_reserve(stg_caller *c, size_t held, size_t bytes)
{
    stg_ingress *g = stg_ingress_of(c);
    stg_origin *client = c->in.client;

    if (!fits_in(g->options.pending_max, g->view.pending, held, bytes))
        return stg_problem_set(&c->problem, 503, 0,
                               "too many bytes wait for their commit");
    if (!is_in_share(g, client, held, bytes))
        return stg_problem_set(&c->problem, 503, 0,
                               "too many bytes of this %s wait for their "
                               "commit",
                               stg_caller_kind(c));
    g->view.pending += bytes;
    client->pending += bytes;
    return true;
}

bool stg_caller_reserve_unverified(stg_caller *c, size_t bytes)
{
    stg_ingress *g = stg_ingress_of(c);

    if (g->unverified > c->unverified &&
        !fits_in(g->options.pending_max / 8, g->unverified, c->unverified,
                 bytes))
        return stg_problem_set(&c->problem, 503, 0,
                               "too many bytes of webhooks wait for their end");
    if (!stg_caller_reserve(c, c->room, bytes))
        return false;
    g->unverified += bytes;
    c->unverified += bytes;
    return true;
}

void stg_caller_verified(stg_caller *c)
{
    stg_ingress_of(c)->unverified -= c->unverified;
    c->unverified = 0;
}

void stg_ingress_release(stg_ingress *g, stg_origin *client, size_t bytes)
{
    g->view.pending -= bytes;
    client->pending -= bytes;
}
