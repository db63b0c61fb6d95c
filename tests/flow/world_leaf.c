/* The leaves of a world, and what they see. */
#include <stdlib.h>

#include "flow/state.h"

#include "tests/flow/world_inside.h"

void world_leaf_is(world *w, uint32_t l, world_leaf *leaf)
{
    w->lanes[l].leaf = leaf;
}

void world_dials(world *w, uint32_t l, bool is_dialing)
{
    w->lanes[l].is_dialing = is_dialing;
}

static world_answer say(world *w, uint32_t l, uint64_t position,
                        uint64_t attempt)
{
    (void)position;
    (void)attempt;
    return w->lanes[l].said;
}

void world_leaf_says(world *w, uint32_t l, stg_outcome outcome, stg_ns took)
{
    w->lanes[l].said =
        (world_answer){outcome, took, outcome.fault == STG_FAULT_NONE};
    w->lanes[l].leaf = say;
}

/* -- a script -------------------------------------------------------------- */

static const struct {
    const char *name;
    stg_fault fault;
} faults[] = {
    {"refused", STG_FAULT_REFUSED},
    {"timeout", STG_FAULT_TIMEOUT},
    {"connect-timeout", STG_FAULT_CONNECT_TIMEOUT},
    {"reset", STG_FAULT_RESET},
    {"protocol", STG_FAULT_PROTOCOL},
    {"dns", STG_FAULT_DNS},
};

static stg_outcome read_answer(const char *text)
{
    const char *plus = strchr(text, '+');

    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (strcmp(text, faults[i].name) == 0)
            return stg_failed(faults[i].fault);
    return stg_answered_after(
        atoi(text), plus == NULL ? 0 : (stg_ns)atoi(plus + 1) * STG_S);
}

static world_answer answer_script(world *w, uint32_t number, uint64_t position,
                                  uint64_t attempt)
{
    lane *l = &w->lanes[number];
    const char *text = l->script[l->script_at];
    world_answer a = {.took = 10 * STG_MS};

    (void)position;
    (void)attempt;
    if (l->script_at + 1 < l->script_count)
        l->script_at++;
    if (strcmp(text, "hang") == 0) {
        a.outcome = stg_failed(STG_FAULT_TIMEOUT);
        a.took = STG_NEVER;
        return a;
    }
    a.outcome = read_answer(text);
    a.is_processed = a.outcome.fault == STG_FAULT_NONE;
    return a;
}

void world_script(world *w, uint32_t number, const char *answers)
{
    lane *l = &w->lanes[number];
    char *copy = strdup(answers), *save = NULL;

    for (uint32_t s = 0; s < l->script_count; s++)
        free(l->script[s]);
    l->script_count = l->script_at = 0;
    for (char *word = strtok_r(copy, " ", &save); word != NULL;
         word = strtok_r(NULL, " ", &save)) {
        CHECK(l->script_count < SCRIPT_MAX);
        l->script[l->script_count++] = strdup(word);
    }
    l->leaf = answer_script;
    free(copy);
}

/* -- an attempt ------------------------------------------------------------ */

/* Some of it, so that its order has holes. */
static bool has_shed(world *w, uint32_t number)
{
    const stg_lane *own = world_lane_of(w, number);

    for (uint32_t i = 0; i < w->flow->partition_count; i++)
        if (stg_lane_place(own, w->flow->partitions[i])->range.count > 0)
            w->lanes[number].has_shed = true;
    return w->lanes[number].has_shed;
}

/* I18: those that come before it have ended. */
static void check_turn(world *w, uint32_t number, uint64_t i)
{
    const lane *l = &w->lanes[number];
    const logged *m = &w->log[i];
    stg_order order = world_lane_of(w, number)->o.order; // that holds now

    if (order == STG_ORDER_NONE || has_shed(w, number) || l->replays > 0)
        return;
    for (uint64_t before = 0; before < i; before++) {
        const logged *other = &w->log[before];

        if (other->partition != m->partition ||
            other->position < l->cursors[m->partition].begin ||
            !world_is_wanted(l, m->partition, other->position) ||
            l->receipts[before].is_over)
            continue;
        if (order == STG_ORDER_STRICT || (m->key != 0 && m->key == other->key))
            harness_fail(__FILE__, __LINE__,
                         "seed %ju: lane %u position %ju starts before %ju "
                         "has ended",
                         (uintmax_t)w->seed, number, (uintmax_t)m->position,
                         (uintmax_t)other->position);
    }
}

static void check_start(world *w, const stg_action *a)
{
    const stg_message *m = a->start.message;
    lane *l = &w->lanes[a->lane];
    uint64_t i = world_index(w, m->partition, m->position);
    const world_receipt *r = &l->receipts[i];
    unsigned char expected[12];

    // I11
    world_write_bytes(expected, m->partition, m->position);
    CHECK(m->size == w->log[i].size &&
          memcmp(m->bytes, expected, sizeof expected) == 0);
    CHECK_U64(m->key, w->log[i].key);
    // I7
    CHECK(!l->was_removed && !l->is_removing && !l->o.is_paused);
    CHECK(world_is_wanted(l, m->partition, m->position));
    // I4 Never early.
    if (w->now < r->not_before)
        harness_fail(__FILE__, __LINE__,
                     "seed %ju: lane %u position %ju starts %ju ns early",
                     (uintmax_t)w->seed, a->lane, (uintmax_t)m->position,
                     (uintmax_t)(r->not_before - w->now));
    CHECK(a->start.timeout > 0);
    CHECK_U64(a->start.replay, r->replays);
    CHECK(a->start.attempt > a->start.is_retry);
    CHECK_U64(m->created_at, w->log[i].created_at);
    CHECK_U64(w->log[i].true_size, 0);
    if (w->is_merged)
        world_check_here(w, a);
    check_turn(w, a->lane, i);
}

void world_begin_attempt(world *w, const stg_action *a)
{
    const stg_message *m = a->start.message;
    lane *l = &w->lanes[a->lane];
    world_receipt *r = world_receipt_at(w, a->lane, m->partition, m->position);
    world_answer answer;
    event *e;

    check_start(w, a);
    answer = l->leaf(w, a->lane, m->position, a->start.attempt);
    if (answer.took > a->start.timeout) {
        bool is_unsent = answer.outcome.unsent;

        answer.took = a->start.timeout;
        answer.outcome =
            stg_failed(is_unsent ? STG_FAULT_CANCELLED : STG_FAULT_TIMEOUT);
        answer.outcome.unsent = is_unsent;
    }
    r->started_at = w->now;
    r->attempts++;
    l->starts++;
    l->in_flight++;
    if (l->in_flight > l->peak)
        l->peak = l->in_flight;
    e = world_post(w, ENDED, answer.took);
    e->delivery = a->start.delivery;
    e->replay = a->start.replay;
    e->lane = a->lane;
    e->partition = m->partition;
    e->position = m->position;
    e->answer = answer;
    stg_delivery_attach(a->start.delivery, e);
}

void world_cancel_attempt(world *w, const stg_action *a)
{
    event *e = a->cancel.attempt;
    bool is_unsent = e->answer.outcome.unsent;

    // The leaf may have taken it, and nobody will know.
    e->at = w->now;
    e->answer.outcome = stg_failed(STG_FAULT_CANCELLED);
    e->answer.outcome.unsent = is_unsent;
}

void world_count_processed(world *w, const event *e)
{
    world_receipt *r = world_receipt_at(w, e->lane, e->partition, e->position);

    r->processed += e->answer.is_processed;
    if (e->answer.outcome.fault != STG_FAULT_NONE)
        r->unknown += e->answer.is_processed;
}

/* Nothing of it counts. */
static bool is_put_back(const stg_verdict *v)
{
    return v->decision.next == STG_WAIT &&
           (v->decision.why == STG_WHY_CIRCUIT_OPEN ||
            v->decision.why == STG_WHY_GATE);
}

static void note_end(world *w, const event *e, const stg_verdict *v)
{
    char name[STG_CAUSE_MAX];
    const char *cause = e->answer.outcome.fault == STG_FAULT_NONE
                            ? "200"
                            : stg_outcome_name(&e->answer.outcome, name);
    uintmax_t position = e->position, attempts = v->attempts;

    if (!w->is_traced)
        return;
    if (is_put_back(v))
        world_note(w, "%u:%ju %s  put back", e->lane, position, cause);
    else if (v->decision.next == STG_WAIT)
        world_note(w, "%u:%ju #%ju %s  wait %ju ms (%s)", e->lane, position,
                   attempts, cause,
                   (uintmax_t)((v->decision.due_at - w->now) / STG_MS),
                   stg_why_name(v->decision.why));
    else
        world_note(w, "%u:%ju #%ju %s  %s", e->lane, position, attempts, cause,
                   v->decision.next == STG_DONE
                       ? "done"
                       : stg_why_name(v->decision.why));
}

void world_end_attempt(world *w, event *e)
{
    world_receipt *r = world_receipt_at(w, e->lane, e->partition, e->position);
    stg_end ended = {.outcome = e->answer.outcome,
                     .detail = "as told",
                     .answer = "answer",
                     .answer_size = 6,
                     .dialed_at = w->lanes[e->lane].is_dialing ? w->now : 0};
    stg_verdict v;

    w->lanes[e->lane].in_flight--;
    world_count_processed(w, e);
    r->ended_at = w->now;
    v = stg_flow_ended(w->flow, e->delivery, &ended, w->now);
    note_end(w, e, &v);
    if (v.decision.next != STG_WAIT)
        r->is_over = true;
    else if (is_put_back(&v))
        r->attempts--;
    else
        r->not_before = v.decision.due_at;
}
