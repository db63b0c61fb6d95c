/* Prepares the parts that all targets share, and puts them in use: which addresses
 * may be connected to, the intake, alerts, and flow's own options. Only preparing
 * reads files. */
#include "hub/reload.h"

#include "base/refuse.h"

stg_status stg_reload_parts_prepare(stg_reload_parts *p, stg_hub *h,
                                    const stg_settings *s, stg_error *err)
{
    stg_status status;

    p->resolver = s->resolver;
    p->flow = stg_settings_flow(s);
    p->egress = stg_egress_rule_new(&s->egress);
    if (p->egress == NULL)
        return stg_hub_refuse(err, STG_IO, "out of memory");
    status = stg_flow_options_check(&p->flow, err);
    if (status == STG_OK)
        status = stg_intake_prepare(&h->intake, s, &p->ingress, err);
    if (status == STG_OK)
        status =
            stg_alerts_prepare(h->watch.alerts, &s->alerts, &p->alerts, err);
    return status;
}

void stg_reload_parts_use(stg_reload_parts *p, stg_hub *h)
{
    stg_client_use_egress(h->client, p->egress);
    stg_client_set_resolver(h->client, p->resolver);
    stg_ingress_use(h->intake.ingress, p->ingress);
    p->ingress = NULL;
    stg_alerts_use_egress(h->watch.alerts, p->egress);
    stg_alerts_use(h->watch.alerts, p->alerts);
    p->alerts = NULL;
    // Options that were checked are taken.
    (void)stg_flow_change(h->flow, &p->flow, stg_deadlines_now(), NULL);
}

void stg_reload_parts_drop(stg_reload_parts *p)
{
    stg_egress_rule_release(p->egress);
    stg_ingress_drop(p->ingress);
    stg_alerts_drop(p->alerts);
}
