/* secret.h - a secret out of its file: the URL of a webhook, a password. */
#ifndef STAGGER_ALERTS_SECRET_H
#define STAGGER_ALERTS_SECRET_H

#include <stagger/status.h>

enum { STG_SECRET_MAX = 4096 };

/* The file's text without blanks and ends of lines around it, to be given to
 * stg_secret_free(). Returns STG_IO or STG_INVALID with words that name the file
 * and never what is in it: it cannot be read, is empty, longer than
 * STG_SECRET_MAX, of several lines, or has control bytes. */
stg_status stg_secret_read(const char *path, char **secret, stg_error *err);

/* Wipes it first. NULL is none. */
void stg_secret_free(char *secret);

#endif
