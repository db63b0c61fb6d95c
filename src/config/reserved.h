/* reserved.h - headers that a target cannot have of its own, and properties of
 * librdkafka that are the hub's. */
#ifndef STAGGER_CONFIG_RESERVED_H
#define STAGGER_CONFIG_RESERVED_H

#include "store/parcel.h"

/* Why: "is the hub's own". NULL: it can. */
const char *stg_reserved_header(stg_span name);

/* Why, with what to do: "is the hub's own; wanted ...". NULL: it can be set. */
const char *stg_reserved_property(const char *name);

#endif
