/* cloud_event.h - CloudEvents 1.0: a message in binary mode (attributes in headers
 * ce-*, data in the body) and in structured mode (all of it in a body of
 * application/cloudevents+json) are the same event.
 *
 * Data goes from one to the other byte by byte: JSON is not printed anew, text
 * stands in a string, all else in Base64. Values are percent-encoded in headers.
 *
 * Sources: CloudEvents 1.0.2, "HTTP Protocol Binding" (3.1, 3.2) and "JSON Event
 * Format" (2, 3). */
#ifndef STAGGER_INGRESS_CLOUD_EVENT_H
#define STAGGER_INGRESS_CLOUD_EVENT_H

#include "store/parcel.h"

/* How a target gets events. */
typedef enum stg_cloud_events {
    STG_CLOUD_EVENTS_AS_IS,
    STG_CLOUD_EVENTS_BINARY,
    STG_CLOUD_EVENTS_STRUCTURED,
} stg_cloud_events;

/* application/cloudevents+json, whatever its parameters. */
bool stg_cloud_event_is_structured(stg_span content_type);

/* Whether it is a header of an attribute: ce-*, or with '_', as gateways and Kafka
 * have it. */
bool stg_cloud_event_is_header(stg_span name);

/* Makes a message that is an event of the other mode one of this mode; one that is
 * none, or of this mode already, or that the other mode cannot have, stays as it
 * is. *memory: what *p points into then, to be freed; NULL: nothing. False: there is
 * no memory. */
bool stg_cloud_event_convert(stg_cloud_events mode, stg_parcel *p,
                             char **memory);

#endif
