/* uplink.h - is it our own network that fails, or the targets'?
 *
 * Pure. A name server, a network or a proxy of ours that is away makes all
 * dials fail alike, which is no fault of the targets: nothing of it is counted.
 * Lanes that go through a proxy have that for their uplink, those of one proxy the
 * same; all others have the one of this machine.
 *
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
 * Lanes whose connections work do not notice.
 *
 * Of a proxy, one lane is enough where the fault is `proxy`: nobody else can have
 * caused it, and no lane has it for its own. A connect-timeout, where the proxy has
 * said nothing, may be the target's: there the rule above decides. */
#ifndef STAGGER_FLOW_UPLINK_H
#define STAGGER_FLOW_UPLINK_H

#include <stdbool.h>

#include <stagger/outcome.h>

#include "base/list.h"

typedef struct stg_uplink {
    stg_link link;  /* flow.proxies; of this machine's: in no list */
    stg_link down;  /* flow.uplinks_down */
    uint64_t proxy; /* its number; 0: this machine's */
    uint32_t users; /* lanes */
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
    stg_uplink *of;
    stg_link link;   /* uplink.lanes */
    stg_ns since_at; /* in the list: since then */
    bool is_sure;    /* in the list: by a fault that is the proxy's */
    bool is_own;     /* such faults are the target's own */
} stg_uplink_mark;

#endif
