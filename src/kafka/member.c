/* The member's thread: what was asked, what librdkafka says, what is due.
 *
 * The thread makes every call of this instance of librdkafka and is the only
 * one that changes the slots. It sleeps on its queue of commands; librdkafka's
 * queues wake it through the same condition. Each turn does what is due in a
 * fixed order: events first, so that a revoked or lost partition is not read in
 * the same turn.
 *
 * The trap: a call that blocks here delays the answer to a rebalance. Each that
 * asks brokers is bounded by a few seconds. A step whose time is not in
 * next_wake() comes up to POLL_S late: that is meant for the watch and the
 * metrics only. */
#include <stdlib.h>
#include <string.h>

#include <stagger/backoff.h>
#include <stagger/rng.h>

#include "host/process.h"
#include "kafka/member.h"

enum {
    POLL_S = 1,  /* between two looks at librdkafka's queue, or it thinks that
                    we are dead */
    LOOK_S = 1,  /* between two pictures for metrics */
    LEAVE_S = 5, /* for the last commits, and then to leave the group */
};

/* -- what the loop asks ---------------------------------------------------- */

/* Also moves a partition that is read already: the change assigns all again
 * from `next`. A revoked one stays as it is: the group waits for it. */
static void begin(stg_kafka_member *m, const stg_kafka_command *a)
{
    stg_kafka_slot *s = stg_kafka_slots_at(&m->slots, &a->tp);

    if (s == NULL || s->state == STG_KAFKA_SLOT_REVOKED)
        return;
    s->next = a->position;
    s->tag = a->tag;
    s->state = STG_KAFKA_SLOT_READING;
    stg_kafka_member_change(m);
}

/* Commits only grow. The slot is looked up with its assignment, so that a
 * commit which the loop asked for before it heard of a loss is dropped. */
static void note_commit(stg_kafka_member *m, const stg_kafka_command *a)
{
    stg_kafka_slot *s = stg_kafka_slots_at(&m->slots, &a->tp);

    if (s != NULL && a->position > s->to_commit)
        s->to_commit = a->position;
}

static void note_let_go(stg_kafka_member *m, const stg_kafka_command *a)
{
    stg_kafka_slot *s = stg_kafka_slots_at(&m->slots, &a->tp);

    if (s != NULL)
        s->share = STG_KAFKA_SLOT_LET_GO;
}

static void do_ask(stg_kafka_member *m, const stg_kafka_command *a)
{
    switch (a->kind) {
    case STG_KAFKA_COMMAND_BEGIN:
        begin(m, a);
        break;
    case STG_KAFKA_COMMAND_COMMIT:
        note_commit(m, a);
        break;
    case STG_KAFKA_COMMAND_LET_GO:
        note_let_go(m, a);
        break;
    case STG_KAFKA_COMMAND_RESUME:
        stg_kafka_member_resume(m, &a->tp);
        break;
    case STG_KAFKA_COMMAND_RENEW:
        stg_kafka_member_replace(m, &a->tp);
        break;
    case STG_KAFKA_COMMAND_COMPARE: // the catch-up reader does
        break;
    case STG_KAFKA_COMMAND_READ:
        m->bytes_max = a->bytes_max > 0 ? a->bytes_max : 1;
        break;
    }
}

/* False: it is to end. What was asked before that is done. */
static bool do_asks(stg_kafka_member *m)
{
    stg_list asks;
    stg_link *link;
    bool goes_on;

    stg_list_init(&asks);
    goes_on = stg_kafka_commands_take(&m->commands, &asks);
    while ((link = stg_list_shift(&asks)) != NULL) {
        stg_kafka_command *a = STG_HOLDER(link, stg_kafka_command, link);

        do_ask(m, a);
        free(a);
    }
    return goes_on;
}

/* -- what librdkafka says -------------------------------------------------- */

static void take_event(stg_kafka_member *m, rd_kafka_event_t *ev)
{
    switch (rd_kafka_event_type(ev)) {
    case RD_KAFKA_EVENT_REBALANCE:
        stg_kafka_member_rebalance(m, ev);
        break;
    case RD_KAFKA_EVENT_OFFSET_COMMIT:
        stg_kafka_member_committed(m, ev, stg_kafka_now());
        break;
    case RD_KAFKA_EVENT_ERROR:
        stg_kafka_member_error(m, ev);
        break;
    case RD_KAFKA_EVENT_LOG:
        stg_kafka_report_log(m->to_loop, ev);
        break;
    default:
        break;
    }
}

static void take_events(stg_kafka_member *m)
{
    rd_kafka_event_t *ev;

    while (m->rk != NULL && !m->is_failed &&
           (ev = rd_kafka_queue_poll(m->events, 0)) != NULL) {
        take_event(m, ev);
        rd_kafka_event_destroy(ev);
    }
}

/* -- an error that it cannot get over -------------------------------------- */

/* 1 s, doubled by each failure in a row up to a minute, with jitter: all
 * members of a group may fail at the same moment. An assignment sets `reopens`
 * to 0. */
static stg_ns wait_of(stg_kafka_member *m)
{
    static const stg_backoff backoff = {
        .growth = STG_EXPONENTIAL,
        .jitter = STG_JITTER_EQUAL,
        .factor = 2000,
        .base = STG_S,
        .cap = STG_MIN,
    };
    stg_ns last = 0;

    return stg_backoff_wait(&backoff, ++m->reopens, &last, &m->rng);
}

/* The loop hears that all is lost before it hears why, and before the wait:
 * from then on it stores and commits nothing of these partitions. */
static void fail(stg_kafka_member *m)
{
    char why[300] = "";

    (void)rd_kafka_fatal_error(m->rk, why, sizeof why);
    stg_kafka_member_lose(m);
    stg_kafka_events_report(
        m->to_loop, &(stg_kafka_report){.what = STG_KAFKA_REOPENED, .level = 3},
        "%s; all partitions are lost, and the group is joined anew", why);
    stg_kafka_member_shut(m);
    m->is_failed = false;
    m->reopen_at = stg_ns_add(stg_kafka_now(), wait_of(m));
}

static void reopen(stg_kafka_member *m, stg_ns now)
{
    if (m->rk == NULL && now >= m->reopen_at && !stg_kafka_member_open(m))
        m->reopen_at = stg_ns_add(now, wait_of(m));
}

/* -- a picture for metrics ------------------------------------------------- */

/* Copies what metrics show, once a second, so that a look from the loop holds
 * the lock for a copy only and never waits for librdkafka. */
static void draw(stg_kafka_member *m, stg_ns now)
{
    stg_kafka_view *seen;
    size_t count = m->slots.count;

    if (now < m->look_at)
        return;
    m->look_at = now + LOOK_S * STG_S;
    seen = stg_kafka_memory(count + 1, sizeof *seen);
    for (size_t i = 0; i < count; i++) {
        stg_kafka_slot *s = &m->slots.at[i];
        int64_t low, high;

        if (s->is_assigned &&
            rd_kafka_get_watermark_offsets(
                m->rk, s->tp.topic, (int32_t)s->tp.partition, &low, &high) ==
                RD_KAFKA_RESP_ERR_NO_ERROR &&
            high > 0 && (uint64_t)high > s->end)
            s->end = (uint64_t)high;
        seen[i] = (stg_kafka_view){s->tp, s->next, s->end, s->committed};
    }
    m->counts.is_away = m->is_away;
    uv_mutex_lock(&m->look_lock);
    free(m->seen);
    m->seen = seen;
    m->seen_count = count;
    m->seen_counts = m->counts;
    uv_mutex_unlock(&m->look_lock);
}

/* -- the thread ------------------------------------------------------------ */

static stg_ns least(stg_ns a, stg_ns b)
{
    return a < b ? a : b;
}

/* While a rebalance revokes partitions nothing is assigned or asked, and those
 * times do not count: they would be past, and the thread would not sleep. */
static stg_ns next_wake(const stg_kafka_member *m, stg_ns now)
{
    stg_ns at = stg_ns_add(now, POLL_S * STG_S);

    if (m->rk == NULL)
        at = least(at, m->reopen_at);
    if (m->must_assign && m->revocation == STG_KAFKA_REVOKES_NOTHING)
        at = least(at, m->assign_at);
    if (m->ask_at > 0 && m->revocation == STG_KAFKA_REVOKES_NOTHING)
        at = least(at, m->ask_at);
    if (m->revocation != STG_KAFKA_REVOKES_NOTHING)
        at = least(at, m->let_go_at);
    if (stg_kafka_member_owes(m, false) && !m->is_committing)
        at = least(at, m->commit_at);
    return at;
}

static void turn(stg_kafka_member *m)
{
    stg_ns now;

    take_events(m);
    if (m->is_failed)
        fail(m);
    now = stg_kafka_now();
    reopen(m, now);
    stg_kafka_member_ask(m, now);
    stg_kafka_member_assign(m, now);
    stg_kafka_member_take(m);
    now = stg_kafka_now();
    stg_kafka_member_commit(m, now);
    stg_kafka_member_let_go(m, now);
    stg_kafka_member_watch(m, now);
    draw(m, now);
}

/* Tells the group what is settled by now. */
static void flush(stg_kafka_member *m)
{
    stg_ns until = stg_kafka_now() + LEAVE_S * STG_S;

    m->commit_at = 0;
    while (m->rk != NULL && !m->is_failed && stg_kafka_now() < until &&
           stg_kafka_member_owes(m, false) &&
           !rd_kafka_assignment_lost(m->rk)) {
        stg_kafka_member_commit(m, stg_kafka_now());
        stg_kafka_commands_wait(&m->commands, stg_kafka_now() + 100 * STG_MS);
        (void)do_asks(m);
        take_events(m);
    }
}

/* So that the others have its partitions at once, and not when its session has
 * timed out. */
static void leave(stg_kafka_member *m)
{
    stg_ns until = stg_kafka_now() + LEAVE_S * STG_S;
    rd_kafka_queue_t *queue;
    rd_kafka_error_t *error;
    rd_kafka_event_t *ev;

    if (m->rk == NULL)
        return;
    rd_kafka_queue_cb_event_enable(m->events, NULL, NULL);
    rd_kafka_queue_destroy(m->events);
    m->events = NULL;
    queue = rd_kafka_queue_new(m->rk);
    error = rd_kafka_consumer_close_queue(m->rk, queue);
    while (error == NULL && !rd_kafka_consumer_closed(m->rk) &&
           stg_kafka_now() < until) {
        ev = rd_kafka_queue_poll(queue, 100);
        if (rd_kafka_event_type(ev) == RD_KAFKA_EVENT_REBALANCE)
            (void)rd_kafka_assign(m->rk, NULL);
        rd_kafka_event_destroy(ev);
    }
    rd_kafka_error_destroy(error);
    rd_kafka_queue_destroy(queue);
}

void stg_kafka_member_run(void *member)
{
    stg_kafka_member *m = member;

    stg_thread_name("kafka-member");
    if (!stg_kafka_member_open(m))
        m->reopen_at = stg_kafka_now() + STG_S;
    while (do_asks(m)) {
        turn(m);
        stg_kafka_commands_wait(&m->commands, next_wake(m, stg_kafka_now()));
    }
    flush(m);
    leave(m);
    stg_kafka_member_shut(m);
    stg_kafka_events_send(m->to_loop,
                          stg_kafka_event_new(STG_KAFKA_EVENT_ENDED));
}

bool stg_kafka_member_init(stg_kafka_member *m)
{
    if (!stg_kafka_commands_init(&m->commands))
        return false;
    if (uv_mutex_init(&m->look_lock) != 0) {
        stg_kafka_commands_free(&m->commands);
        return false;
    }
    stg_kafka_known_init(m);
    m->rng = stg_rng_seed(m->o->seed);
    return true;
}

void stg_kafka_member_free(stg_kafka_member *m)
{
    stg_kafka_slots_free(&m->slots);
    free(m->known);
    free(m->seen);
    uv_mutex_destroy(&m->look_lock);
    stg_kafka_commands_free(&m->commands);
}
