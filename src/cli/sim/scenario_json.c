/* The result of `stagger sim delivery FILE` for programs: its course, what was asked,
 * and what alerts would have told. */
#include "cli/sim/delivery.h"

static double ms(stg_ns ns)
{
    return (double)ns / 1e6;
}

static void put_name(stg_text_buffer *p, const char *name)
{
    stg_text_buffer_form(p, ",\"%s\":", name);
}

static void put_text(stg_text_buffer *p, const char *name, const char *text)
{
    put_name(p, name);
    stg_text_buffer_put_json(p, text);
}

static void put_count(stg_text_buffer *p, const char *name, uint64_t count)
{
    put_name(p, name);
    stg_text_buffer_put_count(p, count);
}

static void put_number(stg_text_buffer *p, const char *name, double number)
{
    put_name(p, name);
    stg_text_buffer_put_number(p, number, 15);
}

/* The first member of the object number i of a list. */
static void begin(stg_text_buffer *p, size_t i, const char *name)
{
    stg_text_buffer_form(p, i == 0 ? "\n  {\"%s\":" : ",\n  {\"%s\":", name);
}

static void put_series(const stg_world_scenario_found *f, stg_text_buffer *p)
{
    const stg_world_scenario_result *r = &f->result;
    size_t targets = f->scenario->target_count;

    stg_text_buffer_put(p, ",\n  \"series\": [");
    for (size_t i = 0; i < r->interval_count * targets; i++) {
        const stg_world_scenario_interval *v = &r->intervals[i];

        begin(p, i, "target");
        stg_text_buffer_put_json(p, f->scenario->targets[i % targets].name);
        put_number(p, "at_ms", ms((i / targets + 1) * r->interval));
        put_count(p, "attempts", v->starts);
        put_count(p, "delivered", v->delivered);
        put_count(p, "dead", v->dead);
        put_count(p, "waiting", v->waiting);
        put_number(p, "delay_max_ms", ms(v->slowest));
        stg_text_buffer_put(p, "}");
    }
    stg_text_buffer_put(p, "\n]");
}

static void put_faults(const stg_world_scenario *s, stg_text_buffer *p)
{
    stg_text_buffer_put(p, ",\n  \"faults\": [");
    for (size_t i = 0; i < s->fault_count; i++) {
        const stg_world_scenario_fault *f = &s->faults[i];

        begin(p, i, "target");
        stg_text_buffer_put_json(p, f->target);
        put_text(p, "answer", f->answer);
        put_number(p, "from_ms", ms(f->from));
        put_number(p, "to_ms", ms(stg_world_scenario_end(s, f)));
        put_number(p, "share", f->share / 100.0);
        stg_text_buffer_put(p, "}");
    }
    stg_text_buffer_put(p, "]");
}

static void put_alerts(const stg_world_scenario_found *f, stg_text_buffer *p)
{
    stg_text_buffer_put(p, ",\n  \"alerts\": [");
    for (size_t i = 0; i < f->alert_count; i++) {
        const stg_world_scenario_alert *a = &f->alerts[i];

        begin(p, i, "at_ms");
        stg_text_buffer_put_number(p, ms(a->at), 15);
        if (a->target[0] == '\0')
            stg_text_buffer_put(p, ",\"target\":null");
        else
            put_text(p, "target", a->target);
        put_text(p, "text", a->text);
        stg_text_buffer_put(p, "}");
    }
    stg_text_buffer_put(p, "],\n  \"alerts_left_out\": ");
    stg_text_buffer_put_count(p, f->alerts_cut);
}

void stg_world_scenario_put_json(const stg_world_scenario_found *f,
                                 stg_text_buffer *p)
{
    const stg_world_scenario *s = f->scenario;

    put_series(f, p);
    stg_text_buffer_put(p, ",\n  \"rate\": ");
    stg_text_buffer_put_number(p, s->rate / 1000.0, 15);
    stg_text_buffer_put(p, ",\n  \"for_ms\": ");
    stg_text_buffer_put_number(p, ms(s->load), 15);
    stg_text_buffer_put(p, ",\n  \"size\": ");
    stg_text_buffer_put_count(p, s->size);
    stg_text_buffer_put(p, ",\n  \"latency_ms\": ");
    stg_text_buffer_put_number(p, ms(s->latency), 15);
    put_faults(s, p);
    put_alerts(f, p);
}
