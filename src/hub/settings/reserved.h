/* reserved.h - headers that a target cannot have of its own. */
#ifndef STAGGER_HUB_SETTINGS_RESERVED_H
#define STAGGER_HUB_SETTINGS_RESERVED_H

#include "hub/parcel.h"

/* Why: "is the hub's own". NULL: it can. */
const char *stg_reserved_header(stg_span name);

#endif
