/* time_text.h - a time as plan shows it: exactly where that is short ("65 s",
 * "1.25 s", "2 min"), so that settings read as they were set; else rounded, as
 * stg_ns_text() does. */
#ifndef STAGGER_CLI_TIME_TEXT_H
#define STAGGER_CLI_TIME_TEXT_H

#include <stagger/ns.h>

/* Returns text, of 8 letters at most but for the longest times: "213503 d". */
const char *stg_time_text(stg_ns ns, char text[STG_NS_TEXT_MAX]);

#endif
