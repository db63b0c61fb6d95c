/* url.h - the URL of a store in PostgreSQL: what of it may be shown.
 *
 * libpq reads it, and says which of its parts are secret. */
#ifndef STAGGER_STORE_POSTGRES_URL_H
#define STAGGER_STORE_POSTGRES_URL_H

#include <stdbool.h>

#include <stagger/status.h>

/* "postgres://hub@db.example:5432/stagger": without its options and whatever
 * may be a secret; "postgres" for what libpq cannot read. Of malloc(); NULL: no
 * memory. */
char *stg_pg_url_name(const char *url);

/* Whether a part of it is a secret: a password, however it is written. False for
 * what libpq cannot read. */
bool stg_pg_url_has_secret(const char *url);

/* STG_INVALID with words, in which nothing of the URL is that may be a secret. */
stg_status stg_pg_url_check(const char *url, stg_error *err);

/* The file that the password is to be in, by the URL, the environment, or where
 * it is in one's home. Of malloc(); NULL: none, or no memory. */
char *stg_pg_url_passfile(const char *url);

#endif
