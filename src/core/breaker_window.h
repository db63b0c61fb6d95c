/* breaker_window.h - the calls that a breaker by share has seen lately: how many
 * of them failed, and how many were slow. Private. */
#ifndef STAGGER_CORE_BREAKER_WINDOW_H
#define STAGGER_CORE_BREAKER_WINDOW_H

#include <stagger/breaker.h>

typedef struct stg_breaker_ending {
    bool is_failure;
    bool is_slow;
} stg_breaker_ending;

/* Counts a call that ended at now. Returns whether it is a failure, and their
 * share is reached, or slow, and theirs is: in the window, or in as much of it
 * as is later than closed_at (0: all of it). */
bool stg_breaker_window_add(stg_breaker *b, stg_breaker_ending call,
                            stg_ns closed_at, stg_ns now);

/* What old has seen counts on in b, as far as both count the same. While no
 * other thread uses either. */
void stg_breaker_window_keep(stg_breaker *b, const stg_breaker *old);

#endif
