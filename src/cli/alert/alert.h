/* alert.h - what the files of `stagger alert` share. */
#ifndef STAGGER_CLI_ALERT_ALERT_H
#define STAGGER_CLI_ALERT_ALERT_H

#include <stdbool.h>

/* A line of the answer: whether a receiver accepted the test message. */
void stg_alert_print(const char *name, const char *type, bool is_sent,
                     const char *detail);

/* Sends from here, as the settings file says; receiver: its name, or NULL for
 * all. Returns the exit code. */
int stg_alert_send(const char *who, const char *file, const char *receiver);

#endif
