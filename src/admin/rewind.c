/* A target gets messages of the log again: rewind, its progress and its end; and
 * resend, for one message.
 *
 * A rewind is answered 202 when it is stored: from then on it goes on by itself,
 * over restarts. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "admin/internal.h"
#include "host/wall.h"
#include "hub/control.h"
#include "store/rewinds.h"

/* -- a rewind -------------------------------------------------------------- */

/* "earliest", a time, a message's id, or a position of the queue. */
static bool read_start(const stg_hub *h, const char *to,
                       stg_rewind_start *start)
{
    char *end;

    start->partition = STG_NO_PARTITION;
    if (strcmp(to, "earliest") == 0)
        return true;
    if (stg_instant_read(to, &start->since))
        return start->since >= STG_MS;
    if (stg_store_find_id(h->store, to, &start->partition, &start->position))
        return true;
    if (*to < '0' || *to > '9')
        return false;
    start->partition = 0;
    start->position = strtoull(to, &end, 10);
    return *end == '\0';
}

/* Answers with a status for what the store said, and with what to do. */
static void rewound(void *ctx, stg_rewound how, uint64_t number)
{
    stg_change_call *c = ctx;

    switch (how) {
    case STG_REWOUND:
        stg_change_done(
            c, 202, json_pack("{s:o}", "number", stg_json_count(number)), true);
        return;
    case STG_REWOUND_RUNNING:
        stg_change_refuse(c, 409,
                          "a rewind of this target is under way; wait for its "
                          "end, or cancel it");
        return;
    case STG_REWOUND_NOTHING:
        stg_change_refuse(c, 409,
                          "this target does not read the partition of that "
                          "position");
        return;
    case STG_REWOUND_NO_ROOM:
        stg_change_refuse(c, 503, "the store is full; nothing has changed");
        return;
    }
}

static stg_change_call *begin_call(stg_admin *a, stg_ask *ask,
                                   const char *action, const char *target,
                                   uint32_t *lane)
{
    stg_change_call *c = stg_change_begin(
        a, ask, action, json_pack("{s:o}", "target", stg_json_text(target)));
    stg_status status;
    stg_error err;

    if (c == NULL)
        return NULL;
    status = stg_hub_find_sent(a->hub, target, lane, &err);
    if (status == STG_OK)
        return c;
    stg_change_refuse(c, stg_admin_status_for(status), "%s", err.text);
    return NULL;
}

/* The value of the one member that the body, an object, is to have; NULL: it has
 * another form. *json: given, what the value is of. */
static const char *read_body(const stg_ask *ask, const char *name,
                             json_t **json)
{
    stg_span body = stg_ask_body(ask);

    *json = json_loadb(body.size == 0 ? "" : body.at, body.size,
                       JSON_REJECT_DUPLICATES, NULL);
    return json_object_size(*json) == 1
               ? json_string_value(json_object_get(*json, name))
               : NULL;
}

void stg_admin_rewind(void *admin, stg_ask *ask)
{
    stg_admin *a = admin;
    json_t *json;
    const char *to = read_body(ask, "to", &json);
    stg_rewind_start start = {.lane = 0};
    stg_change_call *c =
        begin_call(a, ask, "rewind", stg_ask_word(ask, 0), &start.lane);

    if (c != NULL && to != NULL)
        stg_change_tell(c, "to %.80s", to);
    if (c != NULL && (to == NULL || !read_start(a->hub, to, &start)))
        stg_change_refuse(c, 400,
                          "expected {\"to\": ...} with a time in UTC (like "
                          "2026-03-01T12:00:00Z), `earliest`, a message's id, "
                          "or a position of the queue");
    else if (c != NULL)
        stg_store_rewind(a->hub->store, &start, rewound, c);
    json_decref(json);
}

/* -- its end --------------------------------------------------------------- */

static void cancelled(void *ctx, bool is_known, bool is_full)
{
    stg_change_call *c = ctx;

    if (is_full)
        stg_change_refuse(c, 503, "the store is full; nothing has changed");
    else if (!is_known)
        stg_change_refuse(c, 404, "no rewind of this target is under way");
    else
        stg_change_done(c, 200, json_pack("{s:b}", "is_cancelled", 1), false);
}

void stg_admin_cancel_rewind(void *admin, stg_ask *ask)
{
    stg_admin *a = admin;
    uint32_t lane;
    stg_change_call *c =
        begin_call(a, ask, "rewind-cancel", stg_ask_word(ask, 0), &lane);

    if (c != NULL)
        stg_store_cancel_rewind(a->hub->store, lane, cancelled, c);
}

/* -- its progress ---------------------------------------------------------- */

/* messages and passed are null until each partition knows its range. */
static json_t *print_view(const stg_rewind_view *v)
{
    bool is_known = v->begun == v->partitions;

    return json_pack(
        "{s:o,s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "number",
        stg_json_count(v->number), "state",
        v->is_running     ? "running"
        : v->is_cancelled ? "cancelled"
                          : "done",
        "since", stg_json_time(v->since), "messages",
        is_known ? stg_json_count(v->messages) : json_null(), "passed",
        is_known ? stg_json_count(v->passed) : json_null(), "sent",
        stg_json_count(v->sent), "started_at", stg_json_time(v->began_at),
        "ended_at", stg_json_time(v->ended_at));
}

static void answer_views(void *ctx, const stg_rewind_view *all, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, print_view(&all[i]));
    stg_ask_answer_json(ctx, 200, json_pack("{s:o}", "rewinds", list));
}

void stg_admin_rewinds(void *admin, stg_ask *ask)
{
    const stg_hub *h = ((stg_admin *)admin)->hub;
    const stg_target *t = stg_targets_named(&h->targets, stg_ask_word(ask, 0));

    if (h->store == NULL || h->is_broken)
        stg_ask_refuse(ask, 503, "the store is closed");
    else if (t == NULL)
        stg_admin_refuse_name(admin, ask, stg_ask_word(ask, 0));
    else
        stg_store_rewinds(h->store, t->lane, answer_views, ask);
}

/* -- one message ----------------------------------------------------------- */

/* The same of one message. */
static void resent(void *ctx, stg_resent how)
{
    static const char *const results[] = {[STG_RESENT] = "due",
                                          [STG_RESENT_WAITS] = "waits",
                                          [STG_RESENT_ELSEWHERE] = "asked"};
    stg_change_call *c = ctx;

    switch (how) {
    case STG_RESENT:
    case STG_RESENT_WAITS:
    case STG_RESENT_ELSEWHERE:
        stg_change_done(c, 202, json_pack("{s:s}", "result", results[how]),
                        true);
        return;
    case STG_RESENT_GONE:
        stg_change_refuse(c, 409,
                          "the log does not have this message any more, or the "
                          "target does not want it; `store.keep` says how long "
                          "the queue keeps what is delivered");
        return;
    case STG_RESENT_AWAY:
        stg_change_refuse(c, 503,
                          "the log of this message cannot be read now; nothing "
                          "has changed");
        return;
    case STG_RESENT_NO_ROOM:
        stg_change_refuse(c, 503,
                          "the store is full, or the hub stops; nothing has "
                          "changed");
        return;
    }
}

void stg_admin_resend(void *admin, stg_ask *ask)
{
    stg_admin *a = admin;
    const char *id = stg_ask_word(ask, 0);
    json_t *json;
    const char *target = read_body(ask, "target", &json);
    uint32_t lane, partition;
    uint64_t position;
    stg_change_call *c = NULL;

    if (target == NULL)
        stg_ask_refuse(ask, 400,
                       "expected {\"target\": ...} with the name of a target");
    else
        c = begin_call(a, ask, "resend", target, &lane);
    json_decref(json);
    if (c == NULL)
        return;
    stg_change_tell(c, "message %.80s", id);
    if (!stg_admin_is_id(id))
        stg_change_refuse(c, 400, "expected the id of a message");
    else if (!stg_store_find_id(a->hub->store, id, &partition, &position))
        stg_change_refuse(c, 404, "this hub has no message of this id");
    else
        stg_store_resend(a->hub->store, lane, partition, position, resent, c);
}
