/* rule.h - which rule of a policy decides about an outcome. Private. */
#ifndef STAGGER_CORE_RULE_H
#define STAGGER_CORE_RULE_H

#include <stagger/policy.h>

/* A name that policies may write: not "ok", and not one that stands for an HTTP
 * status or a gRPC code, which have families. */
bool stg_fault_has_name(stg_fault fault);

bool stg_rule_same_link(const stg_rule *a, const stg_rule *b);
bool stg_rule_is_limited(const stg_rule *r);

/* Checks one rule by itself. */
stg_status stg_rule_check(const stg_rule *r, stg_error *err);

/* Writes the link as policies do: "503", "sqlstate:40P01", "5xx", "any". */
struct stg_writer;
void stg_rule_write(struct stg_writer *w, const stg_rule *r);

/* "3xx", "4xx", "5xx", "grpc"; "" for none. */
const char *stg_family_name(stg_family family);

#endif
