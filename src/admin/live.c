/* A stream of changes, once a second, for those who watch by HTTP: a page of the
 * console lives on it.
 *
 * A round is made once for all watchers, and only while there are some. It sends
 * the hub's status, and then the targets in events of TARGETS_MAX at most, one a
 * turn of the loop: of each target those fields that are not as they were in
 * the round before, and nothing of a target with no such field. Each target is
 * told whole once in WHOLE_EVERY rounds.
 *
 * A new watcher reads the targets by another call, between two rounds: it may see
 * a moment that no round has seen, as with a message that came and went. So in the
 * rounds after a watcher came, or targets did, each target is told whole
 * sooner, WHOLES_MAX of them a round. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/internal.h"
#include "base/text.h"
#include "host/wall.h"
#include "ingress/ask.h"

enum {
    TARGETS_MAX = 200, /* looked at in a turn: some 100 us */
    WHOLE_EVERY = 60,
    WHOLES_MAX = 500,
    READING = 3 /* rounds in which who came may still read */
};

static const stg_ns EVERY = STG_S, TURN_PAUSE = 10 * STG_MS;

/* -- what is compared -------------------------------------------------------- */

enum {
    STATE,
    STATE_SINCE,
    FAILING_SINCE,
    FAILED_AT,
    PROBE_AT,
    GATE_UNTIL,
    PAUSED,
    DISABLED,
    CATCHING_UP,
    BREAKER,
    ROUTED,
    DELIVERED,
    DEAD,
    CANCELLED,
    WAITING,
    PARKED,
    IN_FLIGHT,
    LAG,
    ATTEMPTS,
    FAILURES,
    P99,
    FIELDS
};

/* How the number of a field is printed. */
typedef enum kind { KIND_COUNT, KIND_TIME, KIND_MS, KIND_BOOL, KIND_WORD } kind;

static const struct {
    const char *name;
    kind kind;
} fields[FIELDS] = {
    [STATE] = {"state", KIND_WORD},
    [STATE_SINCE] = {"state_since", KIND_TIME},
    [FAILING_SINCE] = {"failing_since", KIND_TIME},
    [FAILED_AT] = {"last_failure_at", KIND_TIME},
    [PROBE_AT] = {"probe_at", KIND_TIME},
    [GATE_UNTIL] = {"gate_until", KIND_TIME},
    [PAUSED] = {"is_paused_by_call", KIND_BOOL},
    [DISABLED] = {"is_disabled", KIND_BOOL},
    [CATCHING_UP] = {"is_catching_up", KIND_BOOL},
    [BREAKER] = {"breaker", KIND_WORD},
    [ROUTED] = {"routed", KIND_COUNT},
    [DELIVERED] = {"delivered", KIND_COUNT},
    [DEAD] = {"dead", KIND_COUNT},
    [CANCELLED] = {"cancelled", KIND_COUNT},
    [WAITING] = {"waiting", KIND_COUNT},
    [PARKED] = {"parked", KIND_COUNT},
    [IN_FLIGHT] = {"in_flight", KIND_COUNT},
    [LAG] = {"lag_messages", KIND_COUNT},
    [ATTEMPTS] = {"attempts", KIND_COUNT},
    [FAILURES] = {"failures", KIND_COUNT},
    [P99] = {"p99_ms", KIND_MS},
};

/* The fields of a lane's target as the watchers were told them. */
typedef struct told {
    bool is_known;
    uint64_t numbers[FIELDS];
} told;

struct stg_live {
    stg_admin *admin;
    stg_list watchers;
    stg_deadline due;
    stg_ns began_at; /* the round */
    uint64_t round;
    uint64_t whole_every; /* in this round */
    uint64_t soon_until;  /* the round from which on it is WHOLE_EVERY again */
    uint64_t changes;     /* of the targets, when the round began */
    size_t at;            /* the next target of it */
    told *told;           /* by lane */
    size_t lanes;
    stg_text text; /* of the event that is being made */
};

typedef struct watcher {
    stg_link link;
    stg_live *live;
    stg_stream *stream;
} watcher;

/* All that is shown of a target, as numbers: what has changed is found by comparing
 * them with those of the last round. */
static bool look(const stg_hub *h, size_t i, uint64_t numbers[FIELDS])
{
    stg_target *t = h->targets.all[i];
    stg_target_view v;

    if (stg_hub_look_target(h, i, &v) != STG_OK)
        return false;
    numbers[STATE] =
        stg_target_note_state(t, v.lane.state, stg_deadlines_now());
    numbers[STATE_SINCE] = t->state_since;
    numbers[FAILING_SINCE] = t->failing_since;
    numbers[FAILED_AT] = v.failed_at;
    numbers[PROBE_AT] = v.lane.probe_at;
    numbers[GATE_UNTIL] = v.lane.gate_until;
    numbers[PAUSED] = t->pause != STG_PAUSE_NONE;
    numbers[DISABLED] = t->pause == STG_PAUSE_DISABLED;
    numbers[CATCHING_UP] = v.lane.is_catching_up;
    numbers[BREAKER] = v.lane.breaker;
    numbers[ROUTED] = v.lane.routed;
    numbers[DELIVERED] = v.lane.delivered;
    numbers[DEAD] = v.lane.dead;
    numbers[CANCELLED] = v.lane.cancelled;
    numbers[WAITING] = v.lane.waiting;
    numbers[PARKED] = v.lane.parked;
    numbers[IN_FLIGHT] = v.lane.in_flight;
    numbers[LAG] = v.lane.lag;
    numbers[ATTEMPTS] = v.attempts;
    numbers[FAILURES] = v.failures;
    numbers[P99] = v.p99;
    return true;
}

/* -- an event ---------------------------------------------------------------- */

static void put_quoted(stg_text *text, const char *word)
{
    stg_text_put(text, "\"");
    stg_text_put(text, word);
    stg_text_put(text, "\"");
}

static void put_milliseconds(stg_text *text, stg_ns time)
{
    char number[40];

    snprintf(number, sizeof number, "%" PRIu64 ".%03u", time / STG_MS,
             (unsigned)(time % STG_MS / STG_US));
    stg_text_put(text, number);
}

static void put_value(stg_text *text, unsigned field, uint64_t number)
{
    char time[STG_UTC_TEXT_MAX];
    kind how = fields[field].kind;

    if (number == 0 && (how == KIND_TIME || how == KIND_MS))
        stg_text_put(text, "null");
    else if (how == KIND_TIME)
        put_quoted(text, stg_utc_text(stg_admin_wall_of(number), time));
    else if (how == KIND_MS)
        put_milliseconds(text, number);
    else if (how == KIND_BOOL)
        stg_text_put(text, number != 0 ? "true" : "false");
    else if (field == STATE)
        put_quoted(text, stg_target_state_name((unsigned)number));
    else if (field == BREAKER)
        put_quoted(text, stg_admin_breaker_name((stg_breaker_state)number));
    else
        stg_text_put_number(text, number);
}

/* A target's name and cause need no escapes: neither has a quote, a backslash or
 * a control character. */
static void put_target(stg_live *l, const stg_target *t, told *before,
                       const uint64_t numbers[FIELDS], bool is_whole)
{
    stg_text *text = &l->text;
    char cause[STG_CAUSE_MAX];

    stg_text_put(text,
                 text->size == 0 ? "{\"targets\":[{\"name\":" : ",{\"name\":");
    put_quoted(text, t->name);
    for (unsigned i = 0; i < FIELDS; i++) {
        if (!is_whole && numbers[i] == before->numbers[i])
            continue;
        stg_text_put(text, ",\"");
        stg_text_put(text, fields[i].name);
        stg_text_put(text, "\":");
        put_value(text, i, numbers[i]);
    }
    if (numbers[FAILED_AT] > 0 &&
        (is_whole || numbers[FAILED_AT] != before->numbers[FAILED_AT])) {
        stg_text_put(text, ",\"last_cause\":");
        put_quoted(text, stg_outcome_cause(&t->last, cause));
    }
    stg_text_put(text, "}");
}

static void tell_target(stg_live *l, size_t i)
{
    const stg_hub *h = l->admin->hub;
    const stg_target *t = h->targets.all[i];
    bool is_whole = (l->round + i) % l->whole_every == 0;
    uint64_t numbers[FIELDS];
    told *before;

    if (t->lane >= l->lanes || !look(h, i, numbers))
        return;
    before = &l->told[t->lane];
    if (before->is_known &&
        (is_whole || memcmp(numbers, before->numbers, sizeof numbers) != 0))
        put_target(l, t, before, numbers, is_whole);
    before->is_known = true;
    memcpy(before->numbers, numbers, sizeof numbers);
}

static void send_all(stg_live *l, stg_span data)
{
    for (stg_link *at = stg_list_first(&l->watchers); at != NULL;
         at = stg_list_next(&l->watchers, at))
        stg_stream_send(STG_HOLDER(at, watcher, link)->stream, data);
}

static void send_targets(stg_live *l)
{
    if (l->text.size > 0)
        stg_text_put(&l->text, "]}");
    if (l->text.size > 0 && !l->text.is_short)
        send_all(l, (stg_span){l->text.at, l->text.size});
    stg_text_clear(&l->text);
}

/* -- the rounds -------------------------------------------------------------- */

/* False: there is no memory, and this round tells of no targets. */
static bool make_room(stg_live *l)
{
    size_t lanes = l->admin->hub->targets.lanes;
    told *wider;

    if (lanes <= l->lanes)
        return true;
    wider = realloc(l->told, lanes * sizeof *wider);
    if (wider == NULL)
        return false;
    memset(wider + l->lanes, 0, (lanes - l->lanes) * sizeof *wider);
    l->told = wider;
    l->lanes = lanes;
    return true;
}

/* So many rounds it takes to tell WHOLES_MAX targets a round. */
static uint64_t find_soon(const stg_live *l)
{
    return l->admin->hub->targets.count / WHOLES_MAX + 1;
}

static void tell_whole_soon(stg_live *l)
{
    l->soon_until = l->round + 1 + READING + find_soon(l);
}

/* The status first, then targets, some a turn of the loop. Whoever has just come soon
 * gets all targets whole, and not only what has changed. */
static void begin_round(stg_live *l, stg_ns now)
{
    json_t *json = json_pack("{s:o,s:o}", "status",
                             stg_admin_print_status(l->admin), "target_changes",
                             stg_json_count(l->admin->hub->targets.changes));
    char *text = json == NULL
                     ? NULL
                     : json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(15));

    l->began_at = now;
    l->round++;
    if (l->changes != l->admin->hub->targets.changes)
        tell_whole_soon(l);
    l->whole_every = l->round < l->soon_until ? find_soon(l) : WHOLE_EVERY;
    l->changes = l->admin->hub->targets.changes;
    if (text != NULL)
        send_all(l, (stg_span){text, strlen(text)});
    free(text);
    json_decref(json);
    l->at = make_room(l) ? 0 : l->admin->hub->targets.count;
}

/* A target that went may have moved the others: the rest of the round is left
 * out, and the next one has it. */
static void pass(stg_deadline *d)
{
    stg_live *l = STG_HEAP_HOLDER(d, stg_live, due);
    const stg_hub *h = l->admin->hub;
    stg_ns now = stg_deadlines_now();
    size_t end;

    if (l->at == 0)
        begin_round(l, now);
    if (l->changes != h->targets.changes)
        l->at = h->targets.count;
    for (end = l->at + TARGETS_MAX; l->at < end && l->at < h->targets.count;
         l->at++)
        tell_target(l, l->at);
    send_targets(l);
    if (l->at < h->targets.count) {
        stg_deadline_set(&l->admin->hub->deadlines, d,
                         stg_ns_add(now, TURN_PAUSE));
        return;
    }
    l->at = 0;
    stg_deadline_set(&l->admin->hub->deadlines, d,
                     stg_ns_max(now, stg_ns_add(l->began_at, EVERY)));
}

/* -- who watches ------------------------------------------------------------- */

static void leave(void *ctx)
{
    watcher *w = ctx;
    stg_live *l = w->live;

    stg_list_remove(&w->link);
    free(w);
    if (!stg_list_is_empty(&l->watchers))
        return;
    stg_deadline_clear(&l->admin->hub->deadlines, &l->due);
    stg_text_free(&l->text);
    free(l->told);
    l->told = NULL;
    l->lanes = l->at = 0;
}

/* The rounds begin with the first watcher, and end when the last one has left. */
void stg_admin_live(void *admin, stg_ask *ask)
{
    stg_admin *a = admin;
    watcher *w = a->live == NULL ? NULL : calloc(1, sizeof *w);

    if (w == NULL) {
        stg_ask_refuse(ask, 503, "no memory");
        return;
    }
    w->live = a->live;
    w->stream = stg_ask_stream(ask, leave, w);
    if (w->stream == NULL) {
        free(w);
        return;
    }
    stg_list_push(&a->live->watchers, &w->link);
    tell_whole_soon(a->live);
    if (stg_deadline_at(&a->live->due) == STG_NEVER)
        stg_deadline_set(&a->hub->deadlines, &a->live->due,
                         stg_deadlines_now());
}

stg_live *stg_live_new(stg_admin *a)
{
    stg_live *l = calloc(1, sizeof *l);

    if (l == NULL)
        return NULL;
    l->admin = a;
    l->due.passed = pass;
    stg_list_init(&l->watchers);
    return l;
}
