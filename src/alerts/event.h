/* event.h - alerts for services that want a request for each of them: PagerDuty,
 * Opsgenie, and what a template makes.
 *
 * An event is a digest of one alert. Its key is the same for as long as the
 * alert lives, and in what its service makes of it: with the first event of a
 * key something opens there, with each further one it is changed, and with the
 * event of the end (stg_event_is_resolved()) it closes. What began and ended
 * before it was told is two events, one after the other.
 *
 * Of each key one event waits, the newest, with what the older ones had to say:
 * as digests are merged. */
#ifndef STAGGER_ALERTS_EVENT_H
#define STAGGER_ALERTS_EVENT_H

#include "alerts/digest.h"
#include "base/list.h"

enum {
    STG_EVENTS_MAX = 1000,   /* that wait for a receiver */
    STG_EVENT_KEY_MAX = 200, /* PagerDuty takes 255 bytes, Opsgenie 512 */
};

typedef struct stg_events {
    stg_list all;
    size_t count;
    stg_ns again_at; /* when those that were put off are taken again */
} stg_events;

void stg_events_init(stg_events *e);
void stg_events_clear(stg_events *e);

/* Each alert of d, or its test, waits; d is newer than what does. Returns how
 * many do not: there is no memory or no room. */
size_t stg_events_add(stg_events *e, const stg_digest *d);

/* One that was taken and could not be sent waits until again_at. False: no
 * memory. */
bool stg_events_put_off(stg_events *e, const stg_digest *d);

/* One that was taken has begun, as it was sent, and has ended. False: no
 * memory. */
bool stg_events_add_end(stg_events *e, const stg_digest *d);

/* The next one, to be freed. NULL: none before again_at, or no memory. */
stg_digest *stg_events_take(stg_events *e, stg_ns now);

/* -- as services take them --------------------------------------------------- */

/* "stagger/HUB/ALERT/TARGET". */
void stg_event_key(const stg_digest *d, char key[STG_EVENT_KEY_MAX]);
bool stg_event_is_resolved(const stg_digest *d);
/* Whether it is over, though nobody has heard of it. */
bool stg_event_was(const stg_digest *d);

/* How bad it is, for services that ask. */
typedef enum stg_alert_severity {
    STG_SEVERITY_CRITICAL,
    STG_SEVERITY_ERROR,
    STG_SEVERITY_WARNING,
    STG_SEVERITY_INFO, /* a test */
} stg_alert_severity;

stg_alert_severity stg_event_severity(const stg_digest *d);
const char *stg_severity_name(stg_alert_severity severity);

/* The bodies of requests, JSON; to be freed, NULL: no memory. */
char *stg_payload_pagerduty(const stg_digest *d, const char *routing_key);
char *stg_payload_opsgenie(const stg_digest *d);

/* Where that goes, below the URL of the service; to be freed. */
char *stg_opsgenie_url(const stg_digest *d, const char *service);

/* `body` with the fields of d in place of {field}: see docs/alerts.md. is_json:
 * texts are escaped, as they are between quotes. To be freed; NULL: no memory. */
char *stg_alert_template_print(const stg_digest *d, const char *body,
                               bool is_json);

/* Whether each {word} in body is a field, and is_json: whether it makes JSON. */
stg_status stg_alert_template_check(const char *body, bool is_json,
                                    stg_error *err);

#endif
