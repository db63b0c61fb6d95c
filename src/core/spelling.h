/* spelling.h - a fault in any spelling. Private.
 *
 * Policies, filters and simulations read faults by this one parser, so that a
 * word from a log, a record, a manual or another policy means the same
 * everywhere: 503, HTTP_503, refused, CONNECTION_REFUSED, ECONNREFUSED, 40001,
 * UNAVAILABLE, redis:LOADING. Letters of either case, and '_' as '-'. */
#ifndef STAGGER_CORE_SPELLING_H
#define STAGGER_CORE_SPELLING_H

#include <stagger/policy.h>

#include "core/reader.h"

/* Reads the whole word as the link of a rule; retries_max is 0. False: it is no
 * fault. A code may be out of range, which stg_rule_check() tells.
 *
 *   a number                three digits are a status, four MySQL's
 *   an SQLSTATE             five digits or letters, the first or the third of
 *                           them a digit, so that no five-letter word is one
 *   a code with its kind    HTTP_503, sqlstate:40001, mysql:1213, grpc:14,
 *                           GRPC_UNAVAILABLE, curl:28, redis:LOADING, amqp:320,
 *                           amqp:connection:forced, kafka:7, kafka:_TRANSPORT
 *   a name or a cause       refused, CONNECTION_REFUSED, 5xx, HTTP_5XX, grpc
 *   a category              connect, or its letter: A connect, B server,
 *                           C request, D overload
 *   any
 *   a name of a code        ECONNREFUSED, EAI_AGAIN, UNAVAILABLE, LOADING,
 *                           NOT_LEADER_OR_FOLLOWER
 *
 * "cancelled" is the fault: gRPC's code is grpc:cancelled. */
bool stg_spelling_read(stg_reader word, stg_rule *rule);

/* An outcome that the link is about: of a code or a name this very one. Of a
 * family, a category or any it is one without a fault: there are many. */
stg_outcome stg_spelling_outcome(const stg_rule *rule);

/* The i-th word that is read, without codes that are numbers; NULL behind the
 * last one. For suggestions. Static. */
const char *stg_spelling_word(size_t i);

#endif
