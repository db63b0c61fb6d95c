/* duration.h - times for people, short and exact where they can be. */
#ifndef STAGGER_PLAN_DURATION_H
#define STAGGER_PLAN_DURATION_H

#include <stagger/ns.h>
#include <stagger/text.h>

/* Stands for a blank at which no line is broken. */
#define STG_HELD '\037'

/* Returns text, of 8 letters at most but for the longest times: "213503 d". */
const char *stg_time_text(stg_ns ns, char text[STG_NS_TEXT_MAX]);

#endif
