/* confirm.h - a question that a person answers before something is changed. */
#ifndef STAGGER_CLI_CONFIRM_H
#define STAGGER_CLI_CONFIRM_H

#include <stdbool.h>

/* Whether there is one to ask: standard input and error are a terminal. */
bool stg_confirm_can(void);

/* Asks "question [y/N] " on standard error. True for y or yes alone. */
bool stg_confirm(const char *question);

#endif
