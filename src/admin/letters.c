/* Dead letters and messages to look at: a page of letters, one letter with its
 * body, and what became of a message at each target.
 *
 * The store answers later, on the loop. The columns of a letter are the store's
 * table (store/letter.h), so that a new column appears here without a change.
 *
 * A cursor of letters is the number of the last one shown, so that letters that
 * come or go meanwhile move nothing; a cursor of a message's targets is how
 * many were shown. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/internal.h"
#include "store/letter.h"
#include "store/parcel.h"

/* -- a letter ----------------------------------------------------------------
 * */

/* Bytes that are not UTF-8 get another name, NAME_base64. */
static void add_column(json_t *json, const stg_letter *l, stg_letter_column c)
{
    const char *name = stg_letter_name(c);
    stg_letter_value v = stg_letter_get(l, c);

    if (v.is_null)
        json_object_set_new(json, name, json_null());
    else if (v.is_number)
        json_object_set_new(json, name, stg_json_count(v.number));
    else if (stg_letter_is_bytes(c))
        stg_json_add_bytes(json, name, v.span);
    else
        json_object_set_new(json, name, stg_json_span(v.span.at, v.span.size));
}

static json_t *print_columns(const stg_letter *l, stg_letter_column end)
{
    json_t *json = json_object();

    for (stg_letter_column c = 0; c < end; c++)
        add_column(json, l, c);
    return json;
}

json_t *stg_admin_print_letter(const stg_letter *l)
{
    return print_columns(l, STG_LETTER_LIGHT_COLUMNS);
}

/* -- a page ------------------------------------------------------------------
 * */

static json_t *print_next(uint64_t next)
{
    char text[24];

    if (next == 0)
        return json_null();
    snprintf(text, sizeof text, "%" PRIu64, next);
    return json_string(text);
}

static void answer_letters(void *ctx, const stg_letter *letters, size_t count,
                           uint64_t next)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, stg_admin_print_letter(&letters[i]));
    stg_ask_answer_json(
        ctx, 200,
        json_pack("{s:o,s:o}", "dead_letters", list, "next", print_next(next)));
}

/* A whole number from 1 that a signed 64-bit column can hold; 0: it is none. */
static uint64_t read_number(const char *text)
{
    uint64_t number = 0;

    for (const char *at = text; *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || number > INT64_MAX / 10 - 1)
            return 0;
        number = number * 10 + (uint64_t)(*at - '0');
    }
    return number;
}

/* ?cursor=; false: it was wrong, and the request is answered. */
static bool read_cursor(stg_ask *ask, uint64_t *after)
{
    const char *text = stg_ask_option(ask, "cursor");

    *after = text == NULL ? 0 : read_number(text);
    if (text == NULL || *after > 0)
        return true;
    stg_ask_refuse(ask, 400, "?cursor: expected `next` of another page");
    return false;
}

static bool check_store(const stg_admin *a, stg_ask *ask)
{
    if (a->hub->store != NULL && !a->hub->is_broken)
        return true;
    stg_ask_refuse(ask, 503, "the store is closed");
    return false;
}

/* A choice that nothing can match (a target that never was) is an empty page, without
 * a look into the store. */
void stg_admin_letters(void *admin, stg_ask *ask)
{
    const stg_admin *a = admin;
    stg_choice choice;
    uint64_t after;
    uint32_t limit;

    if (!check_store(a, ask) || !stg_choice_read_query(&choice, a, ask) ||
        !read_cursor(ask, &after))
        return;
    limit = stg_admin_limit(ask);
    if (limit == 0)
        return;
    if (choice.is_impossible)
        answer_letters(ask, NULL, 0, 0);
    else
        stg_store_letters(a->hub->store, &choice.filter, after, limit, true,
                          answer_letters, ask);
}

static void answer_letter(void *ctx, const stg_letter *letter)
{
    if (letter == NULL)
        stg_ask_refuse(ctx, 404, "there is no dead letter of this number");
    else
        stg_ask_answer_json(ctx, 200,
                            print_columns(letter, STG_LETTER_COLUMNS));
}

void stg_admin_letter(void *admin, stg_ask *ask)
{
    const stg_admin *a = admin;
    uint64_t id = read_number(stg_ask_word(ask, 0));

    if (id == 0)
        stg_ask_refuse(ask, 400, "expected the number of a dead letter");
    else if (check_store(a, ask))
        stg_store_letter(a->hub->store, id, answer_letter, ask);
}

/* -- a message ---------------------------------------------------------------
 * */

/* "TOPIC.PARTITION.OFFSET", and perhaps an epoch: whether there is such a topic
 * is the store's to say. */
static bool is_id_of_topic(const char *id)
{
    const char *last = strrchr(id, '.');

    return last != NULL && last != id && last[1] != '\0' &&
           strlen(id) < STG_MESSAGE_ID_MAX &&
           strspn(last + 1, "0123456789abcdef") == strlen(last + 1);
}

bool stg_admin_is_id(const char *id)
{
    uint64_t epoch, position;

    return stg_id_parse(id, strlen(id), &epoch, &position) ||
           is_id_of_topic(id);
}

typedef struct page {
    const stg_admin *admin;
    stg_ask *ask;
    size_t from, limit;
} page;

/* Whether a delivery waits for its Stagger-Not-Before: it was neither tried nor
 * replayed. */
static bool is_scheduled(const stg_delivery_status *f)
{
    return f->attempts == 0 && f->replay == 0 && f->cause == NULL;
}

static const char *state_of(const stg_delivery_status *f)
{
    switch (f->kind) {
    case STG_DELIVERY_STATUS_WAITING:
        return "waiting";
    case STG_DELIVERY_STATUS_PARKED:
        return is_scheduled(f) ? "scheduled" : "parked";
    case STG_DELIVERY_STATUS_LETTER:
        return f->state;
    case STG_DELIVERY_STATUS_DELIVERED:
        return "delivered";
    case STG_DELIVERY_STATUS_BEFORE:
        return "before";
    case STG_DELIVERY_STATUS_UNKNOWN:
        break;
    }
    return "unknown";
}

/* The receipts of a lane. Lanes are asked for as they rise, and so do the receipts:
 * *at goes on behind those of this one. */
static json_t *print_receipts(const stg_message_status *m, uint32_t lane,
                              size_t *at)
{
    json_t *list = json_array();

    for (; *at < m->receipt_count && m->receipts[*at].lane <= lane; ++*at) {
        const stg_receipt *r = &m->receipts[*at];
        stg_outcome o = {
            .fault = r->fault, .code_kind = r->code_kind, .code = r->code};

        if (r->lane == lane)
            json_array_append_new(
                list, stg_admin_print_attempt(
                          r->at, r->took, r->number, &o,
                          r->code_kind == STG_CODE_STATUS ? (int)r->code : 0));
    }
    return list;
}

static json_t *print_delivery(const stg_message_status *m,
                              const stg_delivery_status *f, size_t *receipt)
{
    bool has_row = f->kind == STG_DELIVERY_STATUS_PARKED ||
                   f->kind == STG_DELIVERY_STATUS_LETTER;

    return json_pack(
        "{s:o,s:b,s:o,s:o,s:o,s:o,s:o,s:b,s:o}", "target",
        stg_json_text(f->target), "is_forgotten", (int)f->is_forgotten, "state",
        stg_json_text(state_of(f)), "attempts",
        has_row ? stg_json_count(f->attempts) : json_null(), "cause",
        stg_json_text(f->cause), "due_at", stg_json_time(f->due_at),
        "dead_letter", f->letter == 0 ? json_null() : stg_json_count(f->letter),
        "is_range", (int)f->is_range, "receipts",
        print_receipts(m, f->lane, receipt));
}

/* Receipts that are there count, whatever the settings say by now. One that is not
 * may have been there: its time or its room is over. */
static json_t *print_kept(const stg_hub *h, const stg_message_status *m)
{
    bool is_kept = m->receipt_count > 0 ||
                   stg_hub_receipts_has(h, m->partition, m->position);

    return json_pack("{s:s,s:o}", "state",
                     is_kept                ? "kept"
                     : !h->receipts.is_kept ? "off"
                                            : "not-sampled",
                     "since", stg_json_time(m->receipts_since));
}

static json_t *print_message(const stg_message_status *m, const page *p)
{
    size_t end = m->count - p->from > p->limit ? p->from + p->limit : m->count;
    json_t *list = json_array();
    size_t receipt = 0;

    for (size_t i = p->from; i < end; i++)
        json_array_append_new(list,
                              print_delivery(m, &m->deliveries[i], &receipt));
    return json_pack(
        "{s:s,s:o,s:b,s:o,s:o,s:o,s:o,s:o,s:o}", "id", m->id, "position",
        stg_json_count(m->position), "is_kept", (int)m->is_kept, "accepted_at",
        m->is_kept ? stg_json_time(m->accepted_at) : json_null(), "size",
        m->is_kept ? stg_json_count(m->size) : json_null(), "key",
        stg_json_text(m->is_kept ? m->key : NULL), "targets", list, "next",
        print_next(end < m->count ? end : 0), "receipts",
        print_kept(p->admin->hub, m));
}

static void answer_message(void *ctx, const stg_message_status *m)
{
    page *p = ctx;

    if (!m->is_known)
        stg_ask_refuse(p->ask, 404, "no message of this id is known");
    else if (p->from > m->count)
        stg_ask_refuse(p->ask, 400, "?cursor: there are not so many targets");
    else
        stg_ask_answer_json(p->ask, 200, print_message(m, p));
    free(p);
}

/* A message's deliveries come in pages: `from` is how many were shown before. */
void stg_admin_message(void *admin, stg_ask *ask)
{
    const stg_admin *a = admin;
    const char *id = stg_ask_word(ask, 0);
    uint64_t from;
    uint32_t limit;
    page *p;

    if (!stg_admin_is_id(id)) {
        stg_ask_refuse(ask, 400, "expected the id of a message");
        return;
    }
    if (!check_store(a, ask) || !read_cursor(ask, &from))
        return;
    limit = stg_admin_limit(ask);
    if (limit == 0)
        return;
    p = malloc(sizeof *p);
    if (p == NULL) {
        stg_ask_refuse(ask, 503, "no memory");
        return;
    }
    *p = (page){a, ask, (size_t)from, limit};
    stg_store_message(a->hub->store, id, answer_message, p);
}
