/* place.h - a hub in a folder of its own, on a loop that the test turns, and a
 * listener that the test can answer at or leave silent. */
#ifndef TESTS_HUB_PLACE_H
#define TESTS_HUB_PLACE_H

#include "hub/control.h"

typedef struct place {
    uv_loop_t loop;
    char folder[64], path[96]; /* path: of the settings */
    int listener, port;        /* on 127.0.0.1 */
    stg_hub *hub;
    bool has_ended;
} place;

/* The folder, the listener and the loop; the test then writes p->path. */
void place_begin(place *p);

/* Opens the hub with these settings. */
void place_start(place *p);

/* Stops the hub, turns the loop until nothing is open there, and removes the
 * folder. */
void place_end(place *p);

#endif
