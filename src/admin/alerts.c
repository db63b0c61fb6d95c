/* POST /v1/alerts/test */
#include "admin/internal.h"

static json_t *result_of(const stg_alert_result *r)
{
    return json_pack("{s:o,s:s,s:b,s:o}", "name", stg_json_text(r->name),
                     "type", stg_alert_type_name(r->type), "is_told",
                     (int)r->is_sent, "detail", stg_json_text(r->detail));
}

static void tried(void *ctx, const stg_alert_result *results, size_t count)
{
    stg_change_call *c = ctx;
    json_t *sinks = json_array();

    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(sinks, result_of(&results[i]));
    stg_change_done(c, 200, json_pack("{s:o}", "sinks", sinks), true);
}

void stg_admin_test_alerts(void *admin, stg_ask *ask)
{
    stg_admin *a = admin;
    const char *sink = stg_ask_option(ask, "sink");
    stg_change_call *c = stg_change_begin(
        a, ask, "alerts-test", json_pack("{s:o}", "sink", stg_json_text(sink)));
    stg_status status;

    if (c == NULL)
        return;
    if (a->hub->is_stopping) { // they may be gone
        stg_change_refuse(c, 503, "the hub is stopping");
        return;
    }
    status = stg_alerts_try(a->hub->watch.alerts, sink, tried, c);
    if (status == STG_NOT_FOUND && sink != NULL)
        stg_change_refuse(c, 404, "no sink of the settings has this name");
    else if (status == STG_NOT_FOUND)
        stg_change_refuse(c, 409, "the settings have no sink to try");
    else if (status == STG_INVALID)
        stg_change_refuse(c, 409, "another test is under way");
    else if (status != STG_OK)
        stg_change_refuse(c, 503, "no memory");
}
