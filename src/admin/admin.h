/* admin.h - what those who look after the hub ask of it by HTTP:
 * docs/openapi.yaml is its contract, docs/api.md how to use it.
 *
 * Handlers read and check a request, call the hub, and print what came of it.
 * Whatever changes something is in the audit log before it is answered. */
#ifndef STAGGER_ADMIN_ADMIN_H
#define STAGGER_ADMIN_ADMIN_H

#include "hub/hub.h"
#include "ingress/ingress.h"

typedef struct stg_admin stg_admin;

/* audit: a file for what was changed; NULL: it is logged only. Returns STG_IO
 * with words if it cannot be written. */
stg_status stg_admin_open(stg_admin **admin, stg_hub *h, const char *audit,
                          stg_error *err);

/* Answers at g, which goes first. */
void stg_admin_serve(stg_admin *a, stg_ingress *g);

/* A change that did not come by HTTP, to the audit log: "reload" of "SIGHUP".
 * detail may be NULL. */
void stg_admin_note(stg_admin *a, const char *action, const char *who,
                    bool is_done, const char *detail);

/* closed is called when its lines are written, perhaps at once. The ingress and
 * the store are closed. */
void stg_admin_close(stg_admin *a, void (*closed)(void *ctx), void *ctx);
void stg_admin_free(stg_admin *a); /* NULL is none */

#endif
