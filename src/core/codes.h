/* codes.h - the codes of other protocols: their names, what they are read as,
 * and how policies and records write them. Private. */
#ifndef STAGGER_CORE_CODES_H
#define STAGGER_CORE_CODES_H

#include <stagger/fault.h>

#include "core/reader.h"
#include "core/writer.h"

typedef struct stg_code_row {
    const char *name; /* as the protocol spells it; NULL: a number only */
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

#endif
