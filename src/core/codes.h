/* codes.h - faults, and the codes of other protocols: their rows and names, what
 * they are read as, and how policies and records write them. Private. */
#ifndef STAGGER_CORE_CODES_H
#define STAGGER_CORE_CODES_H

#include <stagger/fault.h>
#include <stagger/policy.h>

#include "core/reader.h"
#include "core/writer.h"

/* stg_fault_about(), for those who ask in every decision. fault.c. */
extern const stg_fault_info stg_faults[STG_FAULT_COUNT];

static inline const stg_fault_info *stg_fault_row(stg_fault fault)
{
    return &stg_faults[(unsigned)fault < STG_FAULT_COUNT ? fault
                                                         : STG_FAULT_ERROR];
}

static inline stg_category stg_fault_category(stg_fault fault)
{
    return stg_fault_row(fault)->category;
}

/* -- codes */

typedef struct stg_code_row {
    const char *name; /* spelled as in the protocol; NULL: only a number */
    int32_t code;     /* as an outcome has it */
    stg_fault fault;
} stg_code_row;

/* The i-th code of a kind that has a table (gRPC, Redis, AMQP, Kafka), or NULL
 * behind the last one. kind may be anything. */
const stg_code_row *stg_code_at(stg_code_kind kind, size_t i);

/* The row of a code, or NULL. */
const stg_code_row *stg_code_about(stg_code_kind kind, uint32_t code);

/* "grpc", "redis", "amqp": what stands before a code of this kind and a sign.
 * "": a kind that has no such word. Static. */
const char *stg_code_prefix(stg_code_kind kind);

/* As policies write it: "503", "sqlstate:40P01", "redis:LOADING", "kafka:-195".
 * A kind without a prefix is written as its number. */
void stg_code_write(stg_writer *w, stg_code_kind kind, uint32_t code);

/* As records write it: "HTTP_503", "GRPC_UNAVAILABLE", "REDIS_LOADING". */
void stg_code_write_cause(stg_writer *w, stg_code_kind kind, uint32_t code);

/* The fault of an errno or a resolver's code by its name, like ECONNREFUSED or
 * EAI_AGAIN, in any case. False: there is none. classify.c. */
bool stg_errno_named(const stg_reader *name, stg_fault *fault);

/* The i-th such name, or NULL behind the last one. */
const char *stg_errno_name_at(size_t i);

/* -- a fault in any spelling
 *
 * Policies, filters and simulations read faults by this one parser, so that a
 * word from a log, a record, a manual or another policy means the same
 * everywhere: 503, HTTP_503, refused, CONNECTION_REFUSED, ECONNREFUSED, 40001,
 * UNAVAILABLE, redis:LOADING. Letters of either case, and '_' as '-'. */

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
