/* Which messages a target takes: by the topic of their partition, by their headers,
 * and by what the hub's verdicts say of their bodies.
 *
 * Flow asks for each message and lane, so that what never changes is noted: the
 * topic of a partition, and whether the target's patterns have numbers among the
 * verdicts. */
#include <stdlib.h>
#include <string.h>

#include "config/targets.h"
#include "hub/hub_internal.h"

/* A partition's topic never changes: what its name was compared with is noted.
 * */
static bool is_of_topics(stg_target *t, uint32_t partition)
{
    enum { UNKNOWN, NO, YES };
    uint32_t room = partition + 64;
    uint8_t *wider;
    bool is_of;

    if (partition < t->known_count && t->topics_known[partition] != UNKNOWN)
        return t->topics_known[partition] == YES;
    is_of = stg_hub_source_is_of(t->hub, partition, &t->settings->topics);
    if (partition >= t->known_count) {
        wider = realloc(t->topics_known, room);
        if (wider == NULL)
            return is_of;
        memset(wider + t->known_count, UNKNOWN, room - t->known_count);
        t->topics_known = wider;
        t->known_count = room;
    }
    t->topics_known[partition] = is_of ? YES : NO;
    return is_of;
}

/* number: of a pattern; 0 is none. */
static bool says_yes(const stg_target *t, uint32_t number, const stg_message *m,
                     const stg_parcel *p)
{
    return number == 0 ||
           stg_verdicts_ask(t->hub->verdicts, number,
                            &(stg_asked){.partition = m->partition,
                                         .position = m->position,
                                         .body = p->body});
}

/* A target with topics of its own, or with a pattern of bodies: ctx is the target,
 * for the store knows which topic a partition is of, and the hub what the patterns
 * say. A message that cannot be unpacked is accepted, as stg_match_accepts(). */
static bool accepts(void *ctx, const stg_message *m)
{
    const stg_target *t = ctx;
    stg_parcel p;

    if (t->settings->topics.count > 0 && !is_of_topics(ctx, m->partition))
        return false;
    if (m->true_size > 0 || !t->has_verdicts)
        return stg_match_accepts((void *)(uintptr_t)t->settings, m);
    if (t->settings->match_count == 0 ||
        !stg_parcel_unpack(&p, m->bytes, m->size))
        return true;
    return stg_match_wants_headers(t->settings, &p) &&
           says_yes(t, t->filter, m, &p) &&
           (t->event_filter == 0 ||
            !stg_cloud_event_is_structured(p.content_type) ||
            says_yes(t, t->event_filter, m, &p));
}

/* What the log has lost of another topic is not the target's. */
static bool follows_topic(void *ctx, uint32_t partition)
{
    stg_target *t = ctx;

    return t->settings == NULL || is_of_topics(t, partition);
}

static void renumber(stg_verdicts *v, uint32_t *number, stg_pattern *p)
{
    uint32_t old = *number;

    *number = p != NULL ? stg_verdicts_add(v, p) : 0;
    stg_verdicts_remove(v, old);
}

void stg_hub_filter(const stg_hub *h, stg_target *t)
{
    const stg_target_settings *s = t->settings;
    stg_pattern *body = s != NULL ? stg_match_body(s) : NULL;
    stg_pattern *event = s != NULL ? stg_match_event(s) : NULL;

    renumber(h->verdicts, &t->filter, body);
    renumber(h->verdicts, &t->event_filter, event);
    // Without memory for a number its bodies are parsed for it alone.
    t->has_verdicts = (t->filter > 0) == (body != NULL) &&
                      (t->event_filter > 0) == (event != NULL);
}

void stg_hub_filter_lane(stg_target *t, stg_lane_options *l)
{
    bool has_topics = t->settings->topics.count > 0;

    if (!has_topics && t->filter == 0 && t->event_filter == 0)
        return;
    l->accepts = accepts;
    l->follows = has_topics ? follows_topic : NULL;
    l->ctx = t;
}
