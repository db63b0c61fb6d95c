/* How the group gives partitions, and takes them.
 *
 * A partition that is given is not read at once: the loop has to know first
 * where. So each rebalance is acknowledged with what is there already, and what
 * has begun is assigned to librdkafka afterwards, from a position of our own.
 * It is never paused, resumed or sought: to read from elsewhere all are
 * assigned again, into a queue of their own, and what was in the old one goes
 * with it. */
#include <stdlib.h>

#include "kafka/member.h"

enum {
    GATHER_MS = 50,  /* until those that have begun are read without others */
    FLUSH_MS = 2000, /* for the last commits of what is let go */
};

/* -- reading --------------------------------------------------------------- */

void stg_kafka_member_change(stg_kafka_member *m)
{
    if (!m->must_assign)
        m->assign_at = stg_kafka_now() + GATHER_MS * STG_MS;
    m->must_assign = true;
}

static void close_records(stg_kafka_member *m)
{
    stg_kafka_pending_drop(&m->pending);
    if (m->records == NULL)
        return;
    rd_kafka_queue_cb_event_enable(m->records, NULL, NULL);
    rd_kafka_queue_destroy(m->records);
    m->records = NULL;
}

/* One queue for all of them: librdkafka's limit is one of a queue. */
static void forward(stg_kafka_member *m, const stg_kafka_slot *s)
{
    rd_kafka_queue_t *own = rd_kafka_queue_get_partition(
        m->rk, s->tp.topic, (int32_t)s->tp.partition);

    if (own == NULL)
        return;
    rd_kafka_queue_forward(own, m->records);
    rd_kafka_queue_destroy(own);
}

static void open_records(stg_kafka_member *m)
{
    close_records(m);
    m->records = rd_kafka_queue_new(m->rk);
    for (size_t i = 0; i < m->slots.count; i++)
        if (m->slots.at[i].state == STG_KAFKA_SLOT_READING)
            forward(m, &m->slots.at[i]);
    rd_kafka_queue_cb_event_enable(m->records, stg_kafka_commands_wake,
                                   &m->commands);
}

/* Slots that librdkafka reads, or that it is to read. */
static rd_kafka_topic_partition_list_t *list_of(const stg_kafka_member *m,
                                                bool is_assigned)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)m->slots.count);

    for (size_t i = 0; i < m->slots.count; i++) {
        const stg_kafka_slot *s = &m->slots.at[i];

        if (is_assigned ? s->is_assigned : s->state == STG_KAFKA_SLOT_READING)
            rd_kafka_topic_partition_list_add(list, s->tp.topic,
                                              (int32_t)s->tp.partition)
                ->offset = (int64_t)s->next;
    }
    return list;
}

static void take_error(stg_kafka_member *m, rd_kafka_error_t *error)
{
    stg_kafka_report report;

    if (error == NULL)
        return;
    report = stg_kafka_trouble_of(rd_kafka_error_code(error), NULL);
    stg_kafka_events_report(m->to_loop, &report,
                            "an assignment was not taken over: %s",
                            rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
}

static bool assign_plain(stg_kafka_member *m,
                         const rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_resp_err_t err = rd_kafka_assign(m->rk, list);
    stg_kafka_report report;

    if (err == RD_KAFKA_RESP_ERR_NO_ERROR)
        return true;
    report = stg_kafka_trouble_of(err, NULL);
    stg_kafka_events_report(m->to_loop, &report,
                            "an assignment was not taken over: %s; tried again",
                            rd_kafka_err2str(err));
    return false;
}

/* Nothing is read from here on; and that has happened on its return. */
static bool stop_all(stg_kafka_member *m)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(0);
    bool is_done = true;

    if (m->is_cooperative) {
        // Those that stay were paused, too, and a pause may lose messages.
        rd_kafka_topic_partition_list_destroy(list);
        list = list_of(m, true);
        if (list->cnt > 0)
            take_error(m, rd_kafka_incremental_unassign(m->rk, list));
    } else {
        is_done = assign_plain(m, list);
    }
    rd_kafka_topic_partition_list_destroy(list);
    for (size_t i = 0; i < m->slots.count && is_done; i++)
        m->slots.at[i].is_assigned = false;
    if (rd_kafka_assignment(m->rk, &list) == RD_KAFKA_RESP_ERR_NO_ERROR)
        rd_kafka_topic_partition_list_destroy(list);
    return is_done;
}

static bool start_all(stg_kafka_member *m)
{
    rd_kafka_topic_partition_list_t *list = list_of(m, false);
    bool is_done = true;

    if (m->is_cooperative)
        take_error(m, rd_kafka_incremental_assign(m->rk, list));
    else
        is_done = assign_plain(m, list);
    rd_kafka_topic_partition_list_destroy(list);
    for (size_t i = 0; i < m->slots.count && is_done; i++)
        m->slots.at[i].is_assigned =
            m->slots.at[i].state == STG_KAFKA_SLOT_READING;
    return is_done;
}

static bool has_state(const stg_kafka_member *m, stg_kafka_slot_state state)
{
    for (size_t i = 0; i < m->slots.count; i++)
        if (m->slots.at[i].state == state)
            return true;
    return false;
}

/* Each assignment throws away what was read ahead, so that partitions which
 * begin within GATHER_MS share one. Nothing is waited for when all have
 * begun. */
static bool is_gathered(const stg_kafka_member *m, stg_ns now)
{
    return now >= m->assign_at || (!has_state(m, STG_KAFKA_SLOT_NEW) &&
                                   !has_state(m, STG_KAFKA_SLOT_GIVEN));
}

void stg_kafka_member_assign(stg_kafka_member *m, stg_ns now)
{
    bool is_done;

    if (!m->must_assign || m->revocation != STG_KAFKA_REVOKES_NOTHING ||
        m->rk == NULL || !is_gathered(m, now))
        return;
    // A lost assignment is told of next, and is not to be covered up.
    is_done = !rd_kafka_assignment_lost(m->rk) && stop_all(m);
    if (is_done) {
        open_records(m);
        is_done = start_all(m);
    }
    m->must_assign = !is_done;
    if (!is_done)
        m->assign_at = now + STG_S;
}

/* -- telling the loop ------------------------------------------------------ */

/* The loop is told only of what it knows: a slot that is OURS was never
 * assigned to it. */
static void add_place(stg_kafka_event *n, const stg_kafka_slot *s)
{
    if (s->share != STG_KAFKA_SLOT_OURS)
        n->places[n->count++] = s->tp;
}

static stg_kafka_event *new_note(const stg_kafka_member *m,
                                 stg_kafka_event_kind kind)
{
    stg_kafka_event *n = stg_kafka_event_new(kind);

    n->places = stg_kafka_memory(m->slots.count + 1, sizeof *n->places);
    return n;
}

static void send_note(stg_kafka_member *m, stg_kafka_event *n)
{
    if (n->count > 0)
        stg_kafka_events_send(m->to_loop, n);
    else
        stg_kafka_event_free(n);
}

/* Slots of a state, or all of them (is_all), without a commit. */
static void lose(stg_kafka_member *m, bool is_all)
{
    stg_kafka_event *n = new_note(m, STG_KAFKA_EVENT_LOST);

    for (size_t i = m->slots.count; i-- > 0;) {
        stg_kafka_slot *s = &m->slots.at[i];

        if (!is_all && s->state != STG_KAFKA_SLOT_REVOKED)
            continue;
        add_place(n, s);
        stg_kafka_slots_remove(&m->slots, s);
    }
    send_note(m, n);
}

void stg_kafka_member_lose(stg_kafka_member *m)
{
    lose(m, true);
    m->revocation = STG_KAFKA_REVOKES_NOTHING;
    m->must_assign = false;
}

void stg_kafka_member_renew(stg_kafka_member *m, stg_kafka_slot *slot)
{
    stg_kafka_event *n = new_note(m, STG_KAFKA_EVENT_LOST);
    stg_topic_partition place = slot->tp;
    bool is_assigned = slot->is_assigned;

    add_place(n, slot);
    place.assignment = ++m->assignments;
    *slot = (stg_kafka_slot){.tp = place, .is_assigned = is_assigned};
    send_note(m, n);
    stg_kafka_member_change(m);
}

void stg_kafka_member_suspect(stg_kafka_member *m, stg_kafka_slot *slot,
                              const char *why)
{
    slot->state = STG_KAFKA_SLOT_SUSPECT;
    stg_kafka_member_change(m);
    stg_kafka_events_report(
        m->to_loop,
        &(stg_kafka_report){.what = STG_KAFKA_SUSPECT,
                            .tp = slot->tp,
                            .position = slot->next,
                            .level = 6},
        "%s/%u: %s: whether it is the same topic is looked at", slot->tp.topic,
        (unsigned)slot->tp.partition, why);
}

/* The loop's verdict may be late: the slot may be revoked or assigned anew by
 * then, and its verdict is ignored. */
static stg_kafka_slot *find_suspect(const stg_kafka_member *m,
                                    const stg_topic_partition *p)
{
    stg_kafka_slot *s = stg_kafka_slots_at(&m->slots, p);

    return s != NULL && s->state == STG_KAFKA_SLOT_SUSPECT ? s : NULL;
}

void stg_kafka_member_resume(stg_kafka_member *m, const stg_topic_partition *p)
{
    stg_kafka_slot *s = find_suspect(m, p);

    if (s == NULL)
        return;
    s->state = STG_KAFKA_SLOT_READING;
    stg_kafka_member_change(m);
}

void stg_kafka_member_replace(stg_kafka_member *m, const stg_topic_partition *p)
{
    stg_kafka_slot *s = find_suspect(m, p);

    if (s == NULL)
        return;
    stg_kafka_events_report(
        m->to_loop,
        &(stg_kafka_report){.what = STG_KAFKA_RENEWED,
                            .tp = s->tp,
                            .position = s->next,
                            .level = 4},
        "%s/%u: another record is where one was read before: the topic was "
        "made again, and is read from its begin",
        s->tp.topic, (unsigned)s->tp.partition);
    stg_kafka_member_renew(m, s);
}

/* -- given ----------------------------------------------------------------- */

/* The group is told that its word was heard. What is read already goes on. */
static void acknowledge(stg_kafka_member *m)
{
    rd_kafka_topic_partition_list_t *none =
        rd_kafka_topic_partition_list_new(0);

    if (m->is_cooperative) {
        take_error(m, rd_kafka_incremental_assign(m->rk, none));
    } else {
        (void)assign_plain(m, none);
        for (size_t i = 0; i < m->slots.count; i++)
            m->slots.at[i].is_assigned = false;
    }
    rd_kafka_topic_partition_list_destroy(none);
}

static void take_given(stg_kafka_member *m,
                       const rd_kafka_topic_partition_list_t *list)
{
    uint64_t assignment = ++m->assignments;

    if (!m->is_cooperative)
        stg_kafka_member_lose(m); // none are left, by the rules
    for (int i = 0; i < list->cnt; i++) {
        const char *topic = stg_kafka_topic(m->topics, list->elems[i].topic);

        if (topic == NULL)
            continue;
        if (m->has_listed)
            stg_kafka_known_note(m, topic);
        stg_kafka_slots_add(&m->slots, topic,
                            (uint32_t)list->elems[i].partition, assignment);
    }
    acknowledge(m);
    stg_kafka_member_renew_commits(m);
    if (has_state(m, STG_KAFKA_SLOT_READING))
        stg_kafka_member_change(m);
    m->ask_at = 0;
    m->watch_at = 0;
    m->reopens = 0;
}

/* -- taken ----------------------------------------------------------------- */

static rd_kafka_topic_partition_list_t *list_revoked(const stg_kafka_member *m)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)m->slots.count);

    for (size_t i = 0; i < m->slots.count; i++) {
        const stg_kafka_slot *s = &m->slots.at[i];

        if (s->state == STG_KAFKA_SLOT_REVOKED && s->is_assigned)
            rd_kafka_topic_partition_list_add(list, s->tp.topic,
                                              (int32_t)s->tp.partition);
    }
    return list;
}

/* librdkafka goes on with the rebalance. */
static void unassign(stg_kafka_member *m)
{
    rd_kafka_topic_partition_list_t *list;

    if (!m->is_cooperative) {
        (void)assign_plain(m, NULL);
        close_records(m);
        return;
    }
    list = list_revoked(m);
    take_error(m, rd_kafka_incremental_unassign(m->rk, list));
    rd_kafka_topic_partition_list_destroy(list);
}

static void drop_revoked(stg_kafka_member *m)
{
    for (size_t i = m->slots.count; i-- > 0;)
        if (m->slots.at[i].state == STG_KAFKA_SLOT_REVOKED)
            stg_kafka_slots_remove(&m->slots, &m->slots.at[i]);
}

/* librdkafka is answered first, then the slots go: the list of what is
 * unassigned is made of them. What stays is assigned again. */
static void finish(stg_kafka_member *m, bool is_lost)
{
    unassign(m);
    if (is_lost)
        lose(m, false);
    else
        drop_revoked(m);
    m->revocation = STG_KAFKA_REVOKES_NOTHING;
    if (m->slots.count > 0)
        stg_kafka_member_change(m);
}

/* Only slots that the loop has and has not let go of yet. */
static bool is_waited_for(const stg_kafka_member *m)
{
    for (size_t i = 0; i < m->slots.count; i++) {
        const stg_kafka_slot *s = &m->slots.at[i];

        if (s->state == STG_KAFKA_SLOT_REVOKED &&
            s->share == STG_KAFKA_SLOT_SHARED)
            return true;
    }
    return false;
}

/* Two steps, each with a limit: the loop lets go of all that is revoked
 * (o->hold), then its last commits are confirmed (FLUSH_MS). After the limits
 * the group gets the partitions all the same: what was not committed is read
 * again by the next owner. A lost assignment ends it at once. */
void stg_kafka_member_let_go(stg_kafka_member *m, stg_ns now)
{
    if (m->revocation == STG_KAFKA_REVOKES_NOTHING || m->rk == NULL)
        return;
    if (rd_kafka_assignment_lost(m->rk)) {
        finish(m, true);
        return;
    }
    if (m->revocation == STG_KAFKA_REVOKES &&
        (!is_waited_for(m) || now >= m->let_go_at)) {
        m->revocation = STG_KAFKA_REVOKES_FLUSHED;
        m->let_go_at = now + FLUSH_MS * STG_MS;
        m->commit_at = 0;
    }
    if (m->revocation == STG_KAFKA_REVOKES_FLUSHED &&
        (!stg_kafka_member_owes(m, true) || now >= m->let_go_at))
        finish(m, false);
}

/* librdkafka may report a loss as a revocation: then nothing can be committed
 * any more, and the loop hears LOST instead of REVOKED. */
static void take_revoked(stg_kafka_member *m,
                         const rd_kafka_topic_partition_list_t *list)
{
    bool is_lost = rd_kafka_assignment_lost(m->rk);
    stg_kafka_event *n = new_note(m, STG_KAFKA_EVENT_REVOKED);

    for (int i = 0; i < list->cnt; i++) {
        stg_kafka_slot *s =
            stg_kafka_slots_find(&m->slots, list->elems[i].topic,
                                 (uint32_t)list->elems[i].partition);

        if (s == NULL)
            continue;
        s->state = STG_KAFKA_SLOT_REVOKED;
        if (!is_lost)
            add_place(n, s);
    }
    m->revocation = STG_KAFKA_REVOKES;
    m->let_go_at = stg_kafka_now() + m->o->hold;
    send_note(m, n);
    if (is_lost)
        finish(m, true);
}

void stg_kafka_member_rebalance(stg_kafka_member *m, rd_kafka_event_t *ev)
{
    const rd_kafka_topic_partition_list_t *list =
        rd_kafka_event_topic_partition_list(ev);

    m->counts.rebalances++;
    switch (rd_kafka_event_error(ev)) {
    case RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS:
        take_given(m, list);
        break;
    case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS:
        take_revoked(m, list);
        break;
    default:
        // A rebalance that failed: in step again, with nothing.
        stg_kafka_member_lose(m);
        (void)assign_plain(m, NULL);
        close_records(m);
        break;
    }
}

/* -- open, close ----------------------------------------------------------- */

static stg_status subscribe(stg_kafka_member *m)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(1);
    rd_kafka_resp_err_t err;

    for (size_t i = 0; m->o->topics[i] != NULL; i++)
        rd_kafka_topic_partition_list_add(list, m->o->topics[i],
                                          RD_KAFKA_PARTITION_UA);
    err = rd_kafka_subscribe(m->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    return err == RD_KAFKA_RESP_ERR_NO_ERROR ? STG_OK : STG_IO;
}

bool stg_kafka_member_open(stg_kafka_member *m)
{
    // Of three brokers' answers, none is more than half of the limit.
    stg_kafka_sizes sizes = {.queue_max = m->o->queue_max,
                             .answer_max = m->o->queue_max / 2,
                             .piece_max = 1 << 20};
    stg_error err;
    rd_kafka_conf_t *conf = stg_kafka_conf(m->o, &sizes, &err);

    stg_kafka_report report =
        stg_kafka_trouble_of(RD_KAFKA_RESP_ERR__INVALID_ARG, NULL);

    m->is_cooperative = conf != NULL && stg_kafka_is_cooperative(conf);
    m->rk = conf == NULL ? NULL : stg_kafka_consumer(conf, &err);
    if (m->rk == NULL) {
        stg_kafka_events_report(m->to_loop, &report,
                                "the group cannot be joined: %s; tried again",
                                err.text);
        return false;
    }
    m->events = rd_kafka_queue_get_consumer(m->rk);
    rd_kafka_queue_cb_event_enable(m->events, stg_kafka_commands_wake,
                                   &m->commands);
    stg_kafka_watch_begin(m);
    if (subscribe(m) == STG_OK)
        return true;
    stg_kafka_member_shut(m);
    return false;
}

void stg_kafka_member_shut(stg_kafka_member *m)
{
    close_records(m);
    stg_kafka_watch_end(m);
    if (m->events != NULL) {
        rd_kafka_queue_cb_event_enable(m->events, NULL, NULL);
        rd_kafka_queue_destroy(m->events);
    }
    if (m->rk != NULL)
        stg_kafka_destroy(m->rk);
    m->events = NULL;
    m->rk = NULL;
    m->is_committing = false;
}
