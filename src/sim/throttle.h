/* throttle.h - a client that refuses its own requests while its service does.
 *
 * Over the last two minutes, refuse the next attempt with the probability
 *
 *     max(0, (requests - K * accepts) / (requests + 1))
 *
 * so that about K requests go out for each one that the service accepts.
 * Requests are all that the client wanted, those that it refused itself
 * included. Source: "Handling Overload", chapter 21 of Beyer et al., "Site
 * Reliability Engineering", 2016. Of the simulator alone: core has none. */
#ifndef STAGGER_SIM_THROTTLE_H
#define STAGGER_SIM_THROTTLE_H

#include <stdbool.h>

#include <stagger/ns.h>
#include <stagger/rng.h>

#define STG_THROTTLE_SLICES 12 /* of 10 s */

typedef struct stg_sim_throttle {
    uint64_t slice; /* the newest, from 0 */
    uint32_t requests[STG_THROTTLE_SLICES];
    uint32_t accepts[STG_THROTTLE_SLICES];
} stg_sim_throttle;

/* Whether an attempt may go out now. A zeroed throttle has seen nothing. k is in
 * thousandths, 1000 to 100000. Draws once, unless nothing is to be refused. */
bool stg_sim_throttle_pass(stg_sim_throttle *t, uint32_t k, stg_ns now,
                           stg_rng *rng);

/* The service took one. */
void stg_sim_throttle_accept(stg_sim_throttle *t, stg_ns now);

#endif
