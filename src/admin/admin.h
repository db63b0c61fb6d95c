/* admin.h - what those who look after the hub ask of it by HTTP:
 * docs/openapi.yaml is its contract, docs/api.md how to use it.
 *
 * Handlers read and check a request, call the hub, and print what came of it.
 * Whatever changes something is in the audit log before it is answered: a file,
 * or the hub's log where there is none. */
#ifndef STAGGER_ADMIN_ADMIN_H
#define STAGGER_ADMIN_ADMIN_H

#include "hub/hub.h"

/* For stg_hub_options. */
extern const stg_hub_calls stg_admin_calls;

#endif
