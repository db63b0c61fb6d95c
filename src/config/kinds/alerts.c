/* What is alerted about, and from how many dead letters on. */
#include <string.h>

#include "base/suggest.h"
#include "config/kinds/kinds.h"
#include "config/loading.h"

/* -- thresholds ------------------------------------------------------------ */

static bool read_threshold(const stg_setting *s, const char *text, void *base,
                           stg_value_flaw *flaw)
{
    stg_alert_threshold read;

    if (stg_alert_threshold_read(text, &read, NULL) != STG_OK)
        return stg_kind_refuse(flaw, text, "is not a threshold");
    memcpy((char *)base + s->at, &read, sizeof read);
    return true;
}

/* Field by field: there may be anything between them. */
static bool same_threshold(const stg_setting *s, const void *a, const void *b)
{
    stg_alert_threshold x, y;

    memcpy(&x, (const char *)a + s->at, sizeof x);
    memcpy(&y, (const char *)b + s->at, sizeof y);
    return x.failures == y.failures && x.window == y.window;
}

const stg_kind stg_kind_threshold = {
    .expected = "`N failures in TIME`, like 10 failures in 5m, or off",
    .read = read_threshold,
    .equal = same_threshold,
};

/* -- sets of alerts -------------------------------------------------------- */

static const char *suggest_alert(const char *word)
{
    stg_suggestion s = stg_suggestion_begin(word, strlen(word));

    for (int i = 0; i < STG_ALERT_COUNT; i++)
        stg_suggestion_try(&s, stg_alert_name((stg_alert)i));
    return s.name;
}

/* 0 for a mistake, which was complained of: it adds no bit. */
static uint32_t read_alert(stg_loading *l, const stg_setting *s,
                           const stg_yaml_node *n)
{
    char expected[STG_EXPECTED_MAX];
    const char *near;
    stg_alert a;

    if (stg_load_text(l, s, n) == NULL)
        return 0;
    if (stg_alert_find(n->text, &a) == STG_OK)
        return STG_ALERT_BIT(a);
    near = suggest_alert(n->text);
    stg_complain(
        l->c, n->place, "`%s`: `%.40s` is not an alert; expected %s%s%s%s",
        s->path, n->text, stg_setting_expected(s, expected),
        near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return 0;
}

/* The list replaces the default, which is all alerts. */
static void load_alerts(stg_loading *l, const stg_setting *s,
                        const stg_yaml_node *n, void *base)
{
    uint32_t bits = 0;

    if (n->kind != STG_NODE_LIST || n->count == 0) {
        stg_load_refuse_kind(l, s, n);
        return;
    }
    for (size_t i = 0; i < n->count; i++)
        bits |= read_alert(l, s, n->at[i]);
    memcpy((char *)base + s->at, &bits, sizeof bits);
}

static json_t *schema_of_alerts(const stg_setting *s)
{
    json_t *array = json_array();

    (void)s;
    for (int i = 0; i < STG_ALERT_COUNT; i++)
        json_array_append_new(array, json_string(stg_alert_name((stg_alert)i)));
    return stg_schema_list(json_pack("{so}", "enum", array));
}

const stg_kind stg_kind_alerts = {
    .expected =
        "a list of dead-letters, breaker, gone, disabled, token, store, lag, "
        "certificate, retention",
    .load = load_alerts,
    .schema = schema_of_alerts,
};
