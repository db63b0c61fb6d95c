/* Inbound webhooks as the ingress has them: each with a verifier, which goes with
 * the settings. */
#include <stdlib.h>

#include "base/refuse.h"
#include "config/loading.h"

static stg_status make_verifier(const stg_inbound_settings *o,
                                stg_verifier **verifier, stg_error *err)
{
    const char **secrets = stg_sign_secret_texts(o->secrets, o->secret_count);
    stg_status status = stg_verify_check(&o->hook.sign, err);

    if (secrets == NULL)
        return stg_hub_refuse(err, STG_IO, "out of memory");
    if (status == STG_OK && o->secret_count == 0)
        status = stg_hub_refuse(err, STG_INVALID, "no secret to verify with");
    if (status == STG_OK)
        status =
            stg_verifier_new(verifier, &o->hook.sign, secrets, o->secret_count,
                             o->hook.tolerance / STG_S, err);
    free(secrets);
    return status;
}

/* A second call makes them anew; the first ones go with the settings. */
stg_status stg_settings_make_webhooks(stg_settings *s, stg_error *err)
{
    struct stg_settings_inside *in = s->inside;
    size_t count = s->inbound_count;
    stg_webhook *all = stg_settings_keep(s, (count + 1) * sizeof *all);
    stg_verifier **grown =
        realloc(in->verifiers,
                (in->verifier_count + count + 1) * sizeof(stg_verifier *));
    stg_status status = STG_OK;

    if (grown != NULL)
        in->verifiers = grown;
    if (all == NULL || grown == NULL)
        return stg_hub_refuse(err, STG_IO, "out of memory");
    for (size_t i = 0; status == STG_OK && i < count; i++) {
        const stg_inbound_settings *o = &s->inbound[i];
        stg_verifier *verifier = NULL;

        status = make_verifier(o, &verifier, err);
        if (status != STG_OK)
            continue;
        in->verifiers[in->verifier_count++] = verifier;
        all[i] = o->hook;
        all[i].verifier = verifier;
        all[i].headers = o->keep.count > 0 ? o->keep.at : NULL;
    }
    s->webhooks = all;
    return status;
}
