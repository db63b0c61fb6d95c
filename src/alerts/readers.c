/* News, as each reader has it.
 *
 * A key has a bit for each reader that was told that it began (`heard`), and none
 * of them once it is over. A reader whose bit is not set is told of what goes on
 * as of what begins. The end is told to readers who were told (`owed`), and to those
 * that have taken their names. */
#include "alerts/key.h"

static uint32_t readers_bit(unsigned reader)
{
    return 1u << reader;
}

static void readers_add_unheard(stg_alert_engine *e, stg_alert_key *k,
                                uint32_t bit)
{
    for (; k != NULL; k = k->next)
        if (k->is_on && k->is_told && (k->heard & bit) == 0) {
            k->batch = e->batch;
            e->batch = k;
        }
}

/* Keys of targets that are gone fire no more. */
bool stg_alert_engine_gather_unheard(stg_alert_engine *e, unsigned reader)
{
    e->batch = NULL;
    readers_add_unheard(e, e->all, readers_bit(reader));
    readers_add_unheard(e, e->others, readers_bit(reader));
    for (size_t i = 0; i < e->lanes; i++)
        readers_add_unheard(e, e->by_lane[i], readers_bit(reader));
    return e->batch != NULL;
}

void stg_alert_engine_release(stg_alert_engine *e)
{
    e->batch = NULL;
}

/* Makes a beginning of what goes on, for a reader that was not told of it. */
static stg_alert_news readers_news_of(const stg_alert_engine *e,
                                      const stg_alert_key *k, bool is_heard,
                                      stg_ns now)
{
    stg_alert_phase phase = stg_alert_key_phase(k, &e->o, now);
    bool is_late =
        !is_heard && (phase == STG_ALERT_MORE || phase == STG_ALERT_STILL);

    return (stg_alert_news){.alert = (stg_alert)k->alert,
                            .lane = k->lane,
                            .name = k->name,
                            .phase = is_late ? STG_ALERT_BEGAN : phase,
                            .count = k->count,
                            .fresh = is_late ? k->count : k->fresh,
                            .causes = k->causes,
                            .first_at = k->first_at,
                            .last_at = k->last_at,
                            .ended_at = k->off_at,
                            .detail = {.has_cause = k->has_cause,
                                       .cause = k->cause,
                                       .number = k->number,
                                       .time = k->time,
                                       .text = k->text}};
}

void stg_alert_engine_each(const stg_alert_engine *e, unsigned reader,
                           stg_alert_news_fn *each, void *ctx, stg_ns now)
{
    for (const stg_alert_key *k = e->batch; k != NULL; k = k->batch) {
        bool is_heard = (k->heard & readers_bit(reader)) != 0;
        stg_alert_news news = readers_news_of(e, k, is_heard, now);

        if ((k->owed & readers_bit(reader)) != 0 ||
            news.phase != STG_ALERT_ENDED)
            each(ctx, &news);
    }
}

void stg_alert_engine_hear(stg_alert_engine *e, unsigned reader,
                           stg_alert_wants_fn *wants, void *ctx)
{
    for (stg_alert_key *k = e->batch; k != NULL; k = k->batch)
        if (wants(ctx, (stg_alert)k->alert, k->lane)) {
            k->heard |= readers_bit(reader);
            k->owed |= readers_bit(reader);
        }
}

/* -- other readers ---------------------------------------------------------- */

static void readers_map_key(stg_alert_key *k, const stg_alert_successor *from,
                            size_t count)
{
    uint32_t heard = 0, owed = 0;

    for (unsigned i = 0; i < count; i++) {
        if ((k->heard & from[i].told) != 0)
            heard |= readers_bit(i);
        if ((k->owed & (from[i].told | from[i].heirs)) != 0)
            owed |= readers_bit(i);
    }
    k->heard = heard;
    k->owed = owed;
}

static void readers_map_keys(stg_alert_key *k, const stg_alert_successor *from,
                             size_t count)
{
    for (; k != NULL; k = k->next)
        readers_map_key(k, from, count);
}

void stg_alert_engine_change_readers(
    stg_alert_engine *e, const stg_alert_successor from[STG_ALERT_READERS_MAX],
    size_t count)
{
    readers_map_keys(e->all, from, count);
    readers_map_keys(e->others, from, count);
    readers_map_keys(e->gone, from, count);
    for (size_t i = 0; i < e->lanes; i++)
        readers_map_keys(e->by_lane[i], from, count);
}
