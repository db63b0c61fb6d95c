/* The life of one key: quiet, live, told, over; key.h has the picture.
 *
 * is_on says whether the condition holds; is_live whether the alert has begun
 * and has not been ended by finish(). Between the two lies the calm: a
 * condition that comes back within `resolve-after` is the same alert, with a
 * higher count.
 *
 * A key decides by times alone: stg_alert_key_due_at() and
 * stg_alert_key_look_at() must change whenever anything they read does, and the
 * engine asks for both after each call. */
#include "alerts/key.h"

#include <stdlib.h>
#include <string.h>

stg_alert_key *stg_alert_key_new(stg_alert alert, uint32_t lane)
{
    size_t tallies = alert == STG_ALERT_DEAD ? sizeof(stg_tally) : 0;
    stg_alert_key *k = calloc(1, sizeof *k + tallies);

    if (k == NULL)
        return NULL;
    k->alert = (uint8_t)alert;
    k->lane = lane;
    return k;
}

void stg_alert_key_free(stg_alert_key *k)
{
    if (k != NULL) {
        free(k->text);
        free(k->name);
    }
    free(k);
}

/* -- it fires, and is over ------------------------------------------------- */

/* A new alert: counts begin at 0, but has_been_told and told_at stay, for
 * `interval` holds over several alerts of one key. */
static void begin(stg_alert_key *k, stg_ns now)
{
    k->is_live = true;
    k->is_told = k->has_news = false;
    k->first_at = k->last_at = now;
    k->count = k->fresh = 0;
    k->number_told = 0;
}

/* news_at is the first news that was not told, so that `group-wait` is not put
 * off by those that follow. */
static void note_news(stg_alert_key *k, stg_ns now)
{
    if (!k->has_news)
        k->news_at = now;
    k->has_news = true;
}

static void turn_off(stg_alert_key *k, stg_ns now)
{
    k->is_on = false;
    k->off_at = now;
}

/* Dead letters are over when the window has fallen below half of the threshold,
 * which is calm enough; a condition needs `resolve-after`, unless its target is
 * gone for good. */
static stg_ns calm_of(const stg_alert_key *k, const stg_alert_options *o)
{
    return k->alert == STG_ALERT_DEAD || k->name != NULL ? 0 : o->resolve_after;
}

static bool is_over(const stg_alert_key *k, const stg_alert_options *o,
                    stg_ns now)
{
    return k->is_live && !k->is_on &&
           now >= stg_ns_add(k->off_at, calm_of(k, o));
}

static void finish(stg_alert_key *k)
{
    k->is_live = k->is_told = k->has_news = false;
    k->causes = (stg_alert_causes){.others = 0};
    k->has_cause = false;
    k->heard = k->owed = 0;
    k->count = k->fresh = 0;
    free(k->text);
    k->text = NULL;
}

/* -- dead letters ---------------------------------------------------------- */

/* Letters that left the window before the key fired are no part of the alert:
 * their causes go, and it begins with the oldest that is left. */
static void pass(stg_alert_key *k, stg_ns window, stg_ns now)
{
    uint64_t passed = stg_tally_pass(k->tally, window, now);

    if (!k->is_live && passed > 0) {
        stg_alert_causes_take(&k->causes, passed);
        k->first_at = stg_tally_since(k->tally, window);
    }
}

static void fire(stg_alert_key *k, stg_ns now)
{
    stg_ns first_at = k->first_at;

    if (!k->is_live) {
        begin(k, now);
        k->first_at = stg_ns_min(first_at, now);
        k->count = k->fresh = k->tally->total;
    }
    k->is_on = true;
}

/* count and fresh of a live key grow with every letter; those of a quiet key
 * are set from the window when it fires. */
bool stg_alert_key_count(stg_alert_key *k, const stg_alert_rules *r,
                         stg_alert_cause cause, uint64_t count, stg_ns now)
{
    bool fires;

    pass(k, r->threshold->window, now);
    if (!k->is_live && k->tally->total == 0)
        k->first_at = now;
    stg_tally_add(k->tally, r->threshold->window, count, now);
    stg_alert_causes_add(&k->causes, cause, count);
    k->count += count;
    k->fresh += count;
    fires = !k->is_on && k->tally->total >= r->threshold->failures;
    if (fires)
        fire(k, now);
    k->last_at = now;
    if (k->is_live)
        note_news(k, now);
    return fires;
}

bool stg_alert_key_judge(stg_alert_key *k, const stg_alert_rules *r, stg_ns now)
{
    if (k->is_on || r->threshold->failures == 0 ||
        k->tally->total < r->threshold->failures)
        return false;
    fire(k, now);
    note_news(k, now);
    return true;
}

void stg_alert_key_take(stg_alert_key *k, const stg_alert_rules *r,
                        const stg_alert_causes *causes, uint64_t count)
{
    stg_tally_take(k->tally, count);
    if (k->is_told) // what was said was said
        return;
    stg_alert_causes_remove(&k->causes, causes);
    k->count = stg_ns_sub(k->count, count);
    k->fresh = stg_ns_sub(k->fresh, count);
    if (k->tally->total < r->threshold->failures)
        k->is_live = k->is_on = k->has_news = false;
}

/* -- conditions ------------------------------------------------------------ */

static bool is_other_text(const stg_alert_key *k, const char *text)
{
    return text != NULL && (k->text == NULL || strcmp(k->text, text) != 0);
}

/* A condition that holds is news again when its number has doubled since it was
 * told, or when its text is another. */
static bool is_worse(const stg_alert_key *k, const stg_alert_detail *d)
{
    return (k->number_told > 0 && d->number / 2 >= k->number_told) ||
           is_other_text(k, d->text);
}

static void take_detail(stg_alert_key *k, const stg_alert_detail *d)
{
    char *text = is_other_text(k, d->text) ? strdup(d->text) : NULL;

    if (text != NULL) {
        free(k->text);
        k->text = text;
    }
    k->number = d->number;
    k->time = d->time;
    if (d->has_cause) {
        k->has_cause = true;
        k->cause = d->cause;
    }
}

/* Raising what holds already updates its details and is no news, unless it is
 * worse. */
void stg_alert_key_raise(stg_alert_key *k, const stg_alert_detail *detail,
                         stg_ns now)
{
    bool is_news = !k->is_on || is_worse(k, detail);

    if (!k->is_live)
        begin(k, now);
    if (!k->is_on) {
        k->count++;
        k->fresh++;
        k->last_at = now;
    }
    k->is_on = true;
    take_detail(k, detail);
    if (is_news)
        note_news(k, now);
}

void stg_alert_key_clear(stg_alert_key *k, stg_ns now)
{
    if (k->is_on)
        turn_off(k, now);
}

void stg_alert_key_leave(stg_alert_key *k, stg_ns now)
{
    if (k->alert == STG_ALERT_DEAD)
        *k->tally = (stg_tally){.total = 0};
    stg_alert_key_clear(k, now);
}

/* -- time ------------------------------------------------------------------ */

void stg_alert_key_look(stg_alert_key *k, const stg_alert_rules *r, stg_ns now)
{
    if (k->alert == STG_ALERT_DEAD) {
        pass(k, r->threshold->window, now);
        if (k->is_on && 2 * k->tally->total < r->threshold->failures)
            turn_off(k, now);
    }
    // Nobody is told that it is over.
    if (is_over(k, r->o, now) && k->is_told && !k->has_news &&
        !r->o->send_resolved)
        finish(k);
}

/* What holds for weeks is no news every few hours. */
static stg_ns remind_after(const stg_alert_key *k, const stg_alert_options *o)
{
    return k->alert == STG_ALERT_CERTIFICATE
               ? stg_ns_max(o->repeat_interval, STG_DAY)
               : o->repeat_interval;
}

/* When the key may be told again: `interval` after the last time. Ends are not
 * bound by it. */
static stg_ns free_at(const stg_alert_key *k, const stg_alert_options *o)
{
    return k->has_been_told ? stg_ns_add(k->told_at, o->interval) : 0;
}

/* News waits for free_at(), and what goes on for `repeat-interval`. An end
 * comes after its calm, if its beginning was told and `send-resolved` says
 * so. */
stg_ns stg_alert_key_due_at(const stg_alert_key *k, const stg_alert_options *o)
{
    stg_ns at = STG_NEVER;

    if (!k->is_live)
        return STG_NEVER;
    if (k->has_news)
        at = stg_ns_max(k->news_at, free_at(k, o));
    else if (k->is_on)
        at = stg_ns_add(k->told_at, remind_after(k, o));
    if (!k->is_on && k->is_told && o->send_resolved)
        at = stg_ns_min(at, stg_ns_add(k->off_at, calm_of(k, o)));
    return at;
}

stg_ns stg_alert_key_look_at(const stg_alert_key *k, const stg_alert_rules *r)
{
    stg_ns at = STG_NEVER;

    if (k->alert == STG_ALERT_DEAD)
        at = stg_tally_next(k->tally, r->threshold->window);
    if (!k->is_live)
        return at != STG_NEVER ? at : free_at(k, r->o);
    if (!k->is_on && k->is_told && !k->has_news && !r->o->send_resolved)
        at = stg_ns_min(at, stg_ns_add(k->off_at, calm_of(k, r->o)));
    return at;
}

/* A quiet key is kept while `interval` runs, for it has told_at, by which an
 * alert that flaps is bounded. A target that is gone has no other alert. */
bool stg_alert_key_is_idle(const stg_alert_key *k, const stg_alert_options *o,
                           stg_ns now)
{
    if (k->is_live || (k->name == NULL && now < free_at(k, o)))
        return false;
    return k->alert != STG_ALERT_DEAD || k->tally->total == 0;
}

/* -- told ------------------------------------------------------------------ */

/* An alert that began and ended before it was told is told once, as
 * STG_ALERT_WAS. */
stg_alert_phase stg_alert_key_phase(const stg_alert_key *k,
                                    const stg_alert_options *o, stg_ns now)
{
    if (is_over(k, o, now) && (o->send_resolved || !k->is_told))
        return k->is_told ? STG_ALERT_ENDED : STG_ALERT_WAS;
    if (!k->is_told)
        return STG_ALERT_BEGAN;
    return k->has_news ? STG_ALERT_MORE : STG_ALERT_STILL;
}

void stg_alert_key_settle(stg_alert_key *k, const stg_alert_options *o,
                          stg_ns now)
{
    stg_alert_phase phase = stg_alert_key_phase(k, o, now);

    if (phase != STG_ALERT_ENDED) {
        k->has_been_told = true;
        k->told_at = now;
    }
    if (phase == STG_ALERT_ENDED || phase == STG_ALERT_WAS) {
        finish(k);
        return;
    }
    k->is_told = true;
    k->has_news = false;
    k->fresh = 0;
    k->number_told = k->number;
}
