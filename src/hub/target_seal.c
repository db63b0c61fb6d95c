/* The settings of targets that calls have added, as the store keeps them:
 * encrypted, where the hub has a key, and otherwise as they are, without secrets
 * in them (src/admin/targets.c refuses those). What a start finds that is not
 * encrypted with the first key is written again with it, so that an older key can
 * be taken out of the file. */
#include <stdlib.h>
#include <string.h>

#include "base/refuse.h"
#include "config/load.h"
#include "host/files.h"
#include "hub/control.h"
#include "hub/hub_internal.h"
#include "store/seal.h"
#include "store/target_rows.h"

static const char credential[] = "stagger-secrets-key";

stg_status stg_target_keys_open(stg_hub *h, stg_error *err)
{
    const char *path = h->fixed->secrets_key;
    char *given = path == NULL ? stg_secret_credential(credential) : NULL;
    stg_status status = STG_OK;

    path = given != NULL ? given : path;
    if (path != NULL)
        status = stg_seal_keys_load(&h->keys, path, err);
    free(given);
    return status;
}

void stg_target_keys_check(const stg_hub *h, const stg_settings *next,
                           stg_diagnostics *c)
{
    const char *path = h->fixed->secrets_key;
    stg_seal_keys *keys;

    // A file that cannot be read is a mistake, which was told.
    if (path == NULL || h->keys == NULL ||
        stg_seal_keys_load(&keys, path, NULL) != STG_OK)
        return;
    if (!stg_seal_keys_equal(keys, h->keys))
        stg_warn(c, stg_settings_place(next, "secrets.key"),
                 "`secrets.key`: the content of %.200s has changed, and takes "
                 "effect at a restart",
                 path);
    stg_seal_keys_free(keys);
}

bool stg_hub_has_secrets_key(const stg_hub *h)
{
    return h->keys != NULL;
}

char *stg_target_seal(const stg_hub *h, const char *name, const char *text)
{
    return h->keys == NULL ? strdup(text) : stg_seal_put(h->keys, name, text);
}

stg_status stg_target_unseal(const stg_hub *h, const stg_target_row *row,
                             char **text, stg_error *err)
{
    if (stg_seal_is(row->settings))
        return stg_seal_take(h->keys, row->name, row->settings, text, err);
    *text = strdup(row->settings);
    return *text == NULL ? stg_target_refuse_memory(err) : STG_OK;
}

/* -- another key ----------------------------------------------------------- */

/* A row that has changed meanwhile has the first key already. */
static void rewritten(void *ctx, stg_target_write how, uint64_t version)
{
    stg_hub *h = ctx;

    (void)version;
    h->rekeyed += how == STG_TARGET_WRITTEN;
    if (--h->rekeying > 0)
        return;
    STG_LOG(h->log, STG_LOG_INFO, "secrets-encrypted",
            stg_field_number("targets", h->rekeyed),
            stg_field_text("key", stg_seal_key(h->keys)));
}

void stg_target_rekey(stg_hub *h, const stg_target_row *row, const char *text)
{
    char *sealed;

    if (h->keys == NULL || stg_seal_is_current(h->keys, row->settings))
        return;
    sealed = stg_seal_put(h->keys, row->name, text);
    if (sealed == NULL)
        return; // the next start does it
    h->rekeying++;
    stg_store_rewrite_target(h->store, row->name, sealed, row->version,
                             rewritten, h);
    free(sealed);
}
