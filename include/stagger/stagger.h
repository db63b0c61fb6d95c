/* stagger.h - all of libstagger but socket.h, uv.h, curl.h and pq.h: retries
 * that do not trample. */
#ifndef STAGGER_STAGGER_H
#define STAGGER_STAGGER_H

#include <stagger/call.h>
#include <stagger/delay.h>
#include <stagger/key.h>
#include <stagger/load.h>
#include <stagger/loop.h>
#include <stagger/text.h>

#define STG_VERSION "0.1.0"

#endif
