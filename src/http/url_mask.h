/* url_mask.h - what may be shown of a target's URL, and stored: values of its
 * query may be secrets. */
#ifndef STAGGER_HTTP_URL_MASK_H
#define STAGGER_HTTP_URL_MASK_H

/* "https://a/b?token=x&flag" as "https://a/b?token=***&***": what follows a name
 * and =, a part of the query that has no =, a password, and a fragment are not
 * there. Anything may be given, also what is no URL. Of malloc(); NULL: no
 * memory. */
char *stg_url_mask(const char *url);

#endif
