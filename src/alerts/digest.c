/* A digest: the worst items of a batch, in order, and the number of those that
 * found no place.
 *
 * An item is worse by its kind (a broken store before a slow target), what
 * holds before what is over, then by its numbers. Two lists are kept this way:
 * the news of the engine while a digest is made, and the items of a digest into
 * which another one is merged.
 *
 * A digest must not point into anything: it may wait for its receiver while
 * targets and settings go. */
#include "alerts/digest.h"

#include <string.h>

#include "base/visible.h"

/* -- texts ----------------------------------------------------------------- */

void stg_digest_take_text(char *to, size_t room, const char *text)
{
    size_t left = text != NULL ? strlen(text) : 0, size = 0;

    while (left > 0) {
        size_t length = stg_utf8_length(text, left);
        bool is_bad = length == 0 || (unsigned char)*text < ' ' ||
                      *text == '\x7f' ||
                      // C1 controls: U+0080 to U+009F.
                      (length == 2 && (unsigned char)text[0] == 0xc2 &&
                       (unsigned char)text[1] < 0xa0);

        if (length == 0)
            length = 1;
        if (size + length >= room)
            break;
        if (is_bad)
            to[size++] = '?';
        else
            memcpy(to + size, text, length);
        size += is_bad ? 0 : length;
        text += length;
        left -= length;
    }
    to[size] = '\0';
}

/* -- which is worse -------------------------------------------------------- */

static int rank_of(stg_alert alert)
{
    static const int ranks[STG_ALERT_COUNT] = {
        [STG_ALERT_STORE] = 0,      [STG_ALERT_DISABLED] = 1,
        [STG_ALERT_TOKEN] = 2,      [STG_ALERT_BREAKER] = 3,
        [STG_ALERT_DEAD] = 4,       [STG_ALERT_RETENTION] = 5,
        [STG_ALERT_GONE] = 6,       [STG_ALERT_LAG] = 7,
        [STG_ALERT_CERTIFICATE] = 8};

    return ranks[alert];
}

static bool is_over(stg_alert_phase phase)
{
    return phase == STG_ALERT_ENDED || phase == STG_ALERT_WAS;
}

/* What is over comes last. */
typedef struct weight {
    int rank;
    uint64_t count;
} weight;

/* Everything that is over comes after everything that holds. */
static weight weight_of(stg_alert alert, stg_alert_phase phase, uint64_t fresh,
                        uint64_t number)
{
    return (weight){rank_of(alert) + (is_over(phase) ? STG_ALERT_COUNT : 0),
                    fresh + number};
}

static bool is_worse(weight a, weight b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.count > b.count;
}

static weight weight_of_news(const stg_alert_news *n)
{
    return weight_of(n->alert, n->phase, n->fresh, n->detail.number);
}

static weight weight_of_item(const stg_digest_item *i)
{
    return weight_of(i->alert, i->phase, i->fresh, i->number);
}

/* -- a digest is made ------------------------------------------------------ */

/* The worst so far; their texts are lent by the engine. */
typedef struct picking {
    stg_digest *digest;
    const stg_digest_source *source;
    stg_alert_news worst[STG_DIGEST_ITEMS];
    size_t count;
    size_t seen; /* that are wanted */
} picking;

/* Inserts the news in order. With no room the last one drops out, and is
 * counted in `left` by its alert. */
static void pick(void *ctx, const stg_alert_news *n)
{
    picking *p = ctx;
    stg_digest *d = p->digest;
    size_t i = p->count;

    if (n->phase != STG_ALERT_ENDED &&
        !p->source->wants(p->source->ctx, n->alert, n->lane))
        return;
    p->seen++;
    if (p->source->is_part && (p->seen <= p->source->from ||
                               p->seen > p->source->from + STG_DIGEST_ITEMS))
        return;
    if (n->alert == STG_ALERT_DEAD)
        d->dead += n->fresh;
    while (i > 0 &&
           is_worse(weight_of_news(n), weight_of_news(&p->worst[i - 1])))
        i--;
    if (p->count == STG_DIGEST_ITEMS)
        d->left[i == p->count ? n->alert : p->worst[p->count - 1].alert]++;
    if (i == STG_DIGEST_ITEMS)
        return;
    p->count += p->count < STG_DIGEST_ITEMS;
    memmove(p->worst + i + 1, p->worst + i,
            (p->count - i - 1) * sizeof *p->worst);
    p->worst[i] = *n;
}

/* The engine has the monotonic clock; people read UTC. */
static uint64_t to_utc(const stg_digest_source *s, stg_ns at)
{
    return stg_ns_sub(s->utc, stg_ns_sub(s->now, at));
}

static void describe(stg_digest_item *i, const stg_digest_source *s,
                     uint32_t lane)
{
    stg_alert_target t = {.name = NULL};

    s->describe(s->ctx, lane, &t);
    stg_digest_take_text(i->target, sizeof i->target,
                         t.name != NULL ? t.name : "?");
    i->has_lane = t.has_lane;
    i->state = t.state;
    i->waiting = t.waiting;
    i->parked = t.parked;
    i->gate_until = t.gate_until;
    i->is_replaying = t.is_replaying;
}

/* The lane of a trouble of the store counts down from STG_ALERT_LANE_OF(0). */
static void fill(stg_digest_item *i, const stg_alert_news *n,
                 const stg_digest_source *s)
{
    *i = (stg_digest_item){.alert = n->alert,
                           .phase = n->phase,
                           .count = n->count,
                           .fresh = n->fresh,
                           .causes = n->causes,
                           .first_at = to_utc(s, n->first_at),
                           .last_at = to_utc(s, n->last_at),
                           .has_cause = n->detail.has_cause,
                           .cause = n->detail.cause,
                           .number = n->detail.number,
                           .time = n->detail.time};
    stg_alert_causes_sort(&i->causes);
    if (is_over(n->phase))
        i->ended_at = to_utc(s, n->ended_at);
    i->is_gone = n->name != NULL;
    stg_digest_take_text(i->text, sizeof i->text, n->detail.text);
    if (n->alert == STG_ALERT_STORE)
        i->trouble = (stg_alert_trouble)(STG_ALERT_LANE_OF(0) - n->lane);
    if (n->name != NULL)
        stg_digest_take_text(i->target, sizeof i->target, n->name);
    else if (stg_alert_is_lane(n->lane))
        describe(i, s, n->lane);
}

static void fill_shares(stg_digest *d, const stg_alert_engine *e,
                        const stg_digest_source *s)
{
    stg_alert_share shares[STG_DIGEST_SHARES];

    d->share_count = stg_alert_engine_shares(e, shares, STG_DIGEST_SHARES);
    for (size_t i = 0; i < d->share_count; i++) {
        stg_alert_target t = {.name = NULL};

        s->describe(s->ctx, shares[i].lane, &t);
        stg_digest_take_text(d->shares[i].target, sizeof d->shares[i].target,
                             t.name != NULL ? t.name : "?");
        d->shares[i].count = shares[i].count;
    }
}

bool stg_digest_make(stg_digest *d, const stg_alert_engine *e,
                     const stg_digest_source *source)
{
    picking p = {.digest = d, .source = source};
    bool is_of_all = false;

    *d = (stg_digest){.at = source->utc};
    stg_alert_engine_each(e, source->reader, pick, &p, source->now);
    for (size_t i = 0; i < p.count; i++) {
        fill(&d->items[i], &p.worst[i], source);
        is_of_all = is_of_all || p.worst[i].lane == STG_ALERT_NO_LANE;
    }
    d->item_count = p.count;
    if (is_of_all)
        fill_shares(d, e, source);
    return d->item_count > 0;
}

void stg_digest_make_test(stg_digest *d, uint64_t utc)
{
    *d = (stg_digest){.is_test = true, .at = utc};
}

uint64_t stg_digest_total(const stg_digest *d)
{
    uint64_t total = d->item_count;

    for (size_t i = 0; i < STG_ALERT_COUNT; i++)
        total += d->left[i];
    return total;
}

/* -- two into one ---------------------------------------------------------- */

bool stg_digest_item_is_same(const stg_digest_item *a, const stg_digest_item *b)
{
    return a->alert == b->alert && a->trouble == b->trouble &&
           strcmp(a->target, b->target) == 0;
}

static stg_digest_item *find(stg_digest *d, const stg_digest_item *like)
{
    for (size_t i = 0; i < d->item_count; i++)
        if (stg_digest_item_is_same(&d->items[i], like))
            return &d->items[i];
    return NULL;
}

/* i is newer, so that its state and phase hold; counts of what is still untold
 * are added. */
void stg_digest_merge_item(stg_digest_item *i, const stg_digest_item *older)
{
    bool was_told = older->phase == STG_ALERT_MORE ||
                    older->phase == STG_ALERT_STILL ||
                    older->phase == STG_ALERT_ENDED;

    // It is another time that it fired.
    if (is_over(older->phase)) {
        i->count += older->count;
        stg_alert_causes_merge(&i->causes, &older->causes);
        stg_alert_causes_sort(&i->causes);
    }
    i->fresh += older->fresh;
    if (older->first_at < i->first_at)
        i->first_at = older->first_at;
    // Its reader has not heard of it yet.
    if (!was_told)
        i->phase = is_over(i->phase) ? STG_ALERT_WAS : STG_ALERT_BEGAN;
}

static void add_item(stg_digest *d, const stg_digest_item *item)
{
    size_t i = d->item_count;

    while (i > 0 &&
           is_worse(weight_of_item(item), weight_of_item(&d->items[i - 1])))
        i--;
    if (d->item_count == STG_DIGEST_ITEMS)
        d->left[i == d->item_count ? item->alert
                                   : d->items[d->item_count - 1].alert]++;
    if (i == STG_DIGEST_ITEMS)
        return;
    d->item_count += d->item_count < STG_DIGEST_ITEMS;
    memmove(d->items + i + 1, d->items + i,
            (d->item_count - i - 1) * sizeof *d->items);
    d->items[i] = *item;
}

/* d is the newer one. Its shares hold, if it has any. */
void stg_digest_merge(stg_digest *d, const stg_digest *older)
{
    for (size_t i = 0; i < older->item_count; i++) {
        stg_digest_item *same = find(d, &older->items[i]);

        if (same != NULL)
            stg_digest_merge_item(same, &older->items[i]);
        else
            add_item(d, &older->items[i]);
    }
    for (size_t i = 0; i < STG_ALERT_COUNT; i++)
        d->left[i] += older->left[i];
    if (d->share_count == 0) {
        memcpy(d->shares, older->shares, sizeof d->shares);
        d->share_count = older->share_count;
    }
    d->dead += older->dead;
    d->unkept += older->unkept;
    d->merged += older->merged + 1;
}
