/* uplink.h - is it our own network that fails, or the targets'?
 *
 * Pure. A name server, a network or a proxy of ours that is away makes all
 * dials fail alike, which is no fault of the targets: nothing of it is counted.
 * The uplink is down when all dials of the last 2 s ended so (dns-temporary,
 * ENETUNREACH, ENETDOWN, no-ports), to three lanes or more (or to all, where
 * there are fewer), and none otherwise.
 *
 * The first dial that ends so may be the first of many, or the one of a target
 * with an address that cannot be reached. So its lane is a suspect: it waits,
 * uncounted, until another lane's dial connects, which makes such faults of it
 * its own; until the uplink is down; or for 2 s, after which they are its own,
 * too, for nothing speaks for the uplink.
 *
 * While the uplink is down, the lanes that have met it wait, by turns one of
 * them dials once a second, and the first dial that ends otherwise ends it.
 * Lanes whose connections work do not notice. */
#ifndef STAGGER_FLOW_UPLINK_H
#define STAGGER_FLOW_UPLINK_H

#include <stdbool.h>

#include <stagger/outcome.h>

#include "base/list.h"

typedef struct stg_uplink {
    stg_list lanes; /* suspects; while it is down, those that wait for it: the
                       one that dialed last is the last */
    uint32_t count; /* of lanes */
    stg_ns reached_at; /* the last dial that ended otherwise; 0: none */
    stg_ns down_at;    /* is_down: since then */
    stg_ns suspect_at; /* and the first dial that failed so */
    stg_ns probe_at;   /* is_down: when the next one may dial */
    bool is_down;
    bool may_probe; /* is_down: one of the lanes may dial now */
} stg_uplink;

/* Of a lane. */
typedef struct stg_uplink_mark {
    stg_link link;   /* uplink.lanes */
    stg_ns since_at; /* in the list: since then */
    bool is_own;     /* such faults are the target's own */
} stg_uplink_mark;

#endif
