/* sign_layout.h - what a scheme of signatures looks like: data, that sign.c and
 * verify.c read. Private to them. */
#ifndef STAGGER_HTTP_SIGN_LAYOUT_H
#define STAGGER_HTTP_SIGN_LAYOUT_H

#include "http/sign.h"
#include "http/sign_key.h"

typedef struct stg_sign_layout {
    const char *id_header, *time_header; /* NULL: there is none */
    const char *header;
    const char *signs; /* with {id}, {timestamp}, {body} */
    const char *time;  /* goes before the time in the value; NULL: the value has
                          no time */
    const char *prefix;      /* of each signature of an HMAC */
    const char *pair_prefix; /* and of each of Ed25519; NULL: there are none */
    const char *separator;   /* between two; NULL: there is one alone */
    stg_sign_algorithm algorithm;
    stg_sign_encoding encoding;
    stg_pair rsa;    /* of messages: what a key of RSA is to sign by */
    bool is_message; /* RFC 9421 (sign_message.c): uses header and rsa only */
} stg_sign_layout;

/* The layout of STG_SIGN_CUSTOM has the options' texts. */
stg_sign_layout stg_sign_layout_of(const stg_sign_options *o);

/* As stg_sign_check(). is_ours: requests are the hub's own, so that their headers
 * have to be ones that it may say. */
stg_status stg_sign_layout_check(const stg_sign_options *o, bool is_ours,
                                 stg_error *err);

/* A secret as the layout has them. The key is to be closed in any case. */
stg_status stg_sign_layout_key(const stg_sign_layout *l, stg_sign_key *k,
                               const char *secret, stg_error *err);

/* What is signed, in pieces that are lent. */
enum { STG_SIGN_PIECES_MAX = 16 };

typedef struct stg_sign_pieces {
    stg_span at[STG_SIGN_PIECES_MAX];
    size_t count;
} stg_sign_pieces;

/* False: it has more than there is room for. */
bool stg_sign_pieces_make(stg_sign_pieces *p, const char *signs, stg_span id,
                          stg_span time, stg_span body);

#endif
