/* What is settled is told to the group: by explicit lists, one at a time, of
 * what is ours and not lost.
 *
 * Of each slot committed <= sent <= to_commit: confirmed by a broker, on its
 * way, asked for by the loop. A failure sets `sent` back to `committed`, and
 * the next list has the slot again.
 *
 * The trap: a commit of an older generation of the group is refused each time
 * it is tried. Such a slot is outdated: it is left out until a rebalance, or
 * for OUTDATED_S where none comes, and nobody waits for its commit. */
#include "kafka/member.h"

enum {
    AGAIN_MS = 1000, /* after a commit that failed */
    OUTDATED_S = 10, /* for a rebalance to follow, if it is to come */
};

static bool is_due(const stg_kafka_slot *s)
{
    return s->to_commit > s->sent && !s->is_outdated;
}

static bool has_due(const stg_kafka_member *m)
{
    for (size_t i = 0; i < m->slots.count; i++)
        if (is_due(&m->slots.at[i]))
            return true;
    return false;
}

bool stg_kafka_member_owes(const stg_kafka_member *m, bool of_revoked)
{
    for (size_t i = 0; i < m->slots.count; i++) {
        const stg_kafka_slot *s = &m->slots.at[i];

        if (s->to_commit > s->committed && !s->is_outdated &&
            (!of_revoked || s->state == STG_KAFKA_SLOT_REVOKED))
            return true;
    }
    return false;
}

/* What is in the list counts as sent from here on; a call that fails takes that
 * back. */
static rd_kafka_topic_partition_list_t *list_due(stg_kafka_member *m)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)m->slots.count);

    for (size_t i = 0; i < m->slots.count; i++) {
        stg_kafka_slot *s = &m->slots.at[i];

        if (!is_due(s))
            continue;
        rd_kafka_topic_partition_list_add(list, s->tp.topic,
                                          (int32_t)s->tp.partition)
            ->offset = (int64_t)s->to_commit;
        s->sent = s->to_commit;
    }
    return list;
}

void stg_kafka_member_renew_commits(stg_kafka_member *m)
{
    for (size_t i = 0; i < m->slots.count; i++)
        m->slots.at[i].is_outdated = false;
    m->outdated_at = 0;
}

/* At most one list is under way: the answers need no order then, and `sent` is
 * that list's. What is settled meanwhile goes into the next one. */
void stg_kafka_member_commit(stg_kafka_member *m, stg_ns now)
{
    rd_kafka_topic_partition_list_t *list;

    if (m->outdated_at > 0 && now >= m->outdated_at)
        stg_kafka_member_renew_commits(m);
    if (m->rk == NULL || m->is_committing || now < m->commit_at ||
        !has_due(m) || rd_kafka_assignment_lost(m->rk))
        return;
    list = list_due(m);
    m->is_committing =
        rd_kafka_commit_queue(m->rk, list, m->events, NULL, NULL) ==
        RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_topic_partition_list_destroy(list);
    m->commit_at = stg_ns_add(now, m->o->commit_every);
    m->counts.commits++;
    if (m->is_committing)
        return;
    for (size_t i = 0; i < m->slots.count; i++)
        m->slots.at[i].sent = m->slots.at[i].committed;
    m->counts.commit_failures++;
    m->commit_at = stg_ns_add(now, AGAIN_MS * STG_MS);
}

/* The group has other members now, or another generation: what this one commits
 * is refused until it has joined again. */
static bool is_of_the_past(rd_kafka_resp_err_t err)
{
    return err == RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION ||
           err == RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID ||
           err == RD_KAFKA_RESP_ERR_FENCED_INSTANCE_ID;
}

static void tell_failure(stg_kafka_member *m, const char *topic,
                         uint32_t partition, rd_kafka_resp_err_t err)
{
    stg_kafka_report report = stg_kafka_trouble_of(err, topic);

    stg_kafka_events_report(
        m->to_loop, &report, "%s/%u: its offset could not be committed: %s; %s",
        topic, (unsigned)partition, rd_kafka_err2str(err),
        is_of_the_past(err)
            ? "given up until the group has given the partition again"
            : "tried again while the partition is ours");
}

/* The group moves on, and says so when it is ready: that is no trouble. */
static bool is_quiet(rd_kafka_resp_err_t err)
{
    return err == RD_KAFKA_RESP_ERR_REBALANCE_IN_PROGRESS ||
           err == RD_KAFKA_RESP_ERR__DESTROY;
}

/* An answer may come late, for a slot that was assigned anew meanwhile: its
 * `sent` is lower then, and the offset is not taken for its own. Only the first
 * failure of a list is reported. */
static void take_result(stg_kafka_member *m,
                        const rd_kafka_topic_partition_t *p,
                        rd_kafka_resp_err_t err, bool *is_told)
{
    stg_kafka_slot *s =
        stg_kafka_slots_find(&m->slots, p->topic, (uint32_t)p->partition);

    if (s == NULL || p->offset < 0)
        return;
    if (err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        if ((uint64_t)p->offset > s->committed &&
            (uint64_t)p->offset <= s->sent)
            s->committed = (uint64_t)p->offset;
        return;
    }
    if (s->sent > s->committed)
        s->sent = s->committed;
    s->is_outdated = is_of_the_past(err);
    if (s->is_outdated)
        m->outdated_at = stg_kafka_now() + OUTDATED_S * STG_S;
    if (!*is_told && !is_quiet(err))
        tell_failure(m, s->tp.topic, s->tp.partition, err);
    *is_told = true;
}

void stg_kafka_member_committed(stg_kafka_member *m, rd_kafka_event_t *ev,
                                stg_ns now)
{
    const rd_kafka_topic_partition_list_t *list =
        rd_kafka_event_topic_partition_list(ev);
    rd_kafka_resp_err_t all = rd_kafka_event_error(ev);
    bool is_told = false;

    m->is_committing = false;
    for (int i = 0; list != NULL && i < list->cnt; i++) {
        rd_kafka_resp_err_t err = list->elems[i].err;

        take_result(m, &list->elems[i], err != 0 ? err : all, &is_told);
    }
    if (all == 0 && !is_told)
        return;
    m->counts.commit_failures++;
    // Commits of revoked partitions are waited for, and not for long.
    m->commit_at = stg_ns_add(
        now, is_quiet(all) || m->revocation == STG_KAFKA_REVOKES_FLUSHED
                 ? 100 * STG_MS
                 : AGAIN_MS * STG_MS);
}
