/* The result of `stagger sim delivery FILE` for programs: its course, what was asked,
 * and what alerts would have told. */
#include "cli/sim/delivery.h"

static double ms(stg_ns ns)
{
    return (double)ns / 1e6;
}

static void put_series(const stg_world_scenario_found *f, stg_text_buffer *p)
{
    const stg_world_scenario_result *r = &f->result;
    size_t targets = f->scenario->target_count;

    stg_text_buffer_put(p, ",\n  \"series\": [");
    for (size_t i = 0; i < r->interval_count * targets; i++) {
        const stg_world_scenario_interval *v = &r->intervals[i];

        stg_text_buffer_put(p,
                            i == 0 ? "\n  {\"target\":" : ",\n  {\"target\":");
        stg_text_buffer_put_json(p, f->scenario->targets[i % targets].name);
        stg_text_buffer_put(p, ",\"at_ms\":");
        stg_text_buffer_put_number(p, ms((i / targets + 1) * r->interval), 15);
        stg_text_buffer_put(p, ",\"attempts\":");
        stg_text_buffer_put_count(p, v->starts);
        stg_text_buffer_put(p, ",\"delivered\":");
        stg_text_buffer_put_count(p, v->delivered);
        stg_text_buffer_put(p, ",\"dead\":");
        stg_text_buffer_put_count(p, v->dead);
        stg_text_buffer_put(p, ",\"waiting\":");
        stg_text_buffer_put_count(p, v->waiting);
        stg_text_buffer_put(p, ",\"delay_max_ms\":");
        stg_text_buffer_put_number(p, ms(v->slowest), 15);
        stg_text_buffer_put(p, "}");
    }
    stg_text_buffer_put(p, "\n]");
}

static void put_faults(const stg_world_scenario *s, stg_text_buffer *p)
{
    stg_text_buffer_put(p, ",\n  \"faults\": [");
    for (size_t i = 0; i < s->fault_count; i++) {
        const stg_world_scenario_fault *f = &s->faults[i];

        stg_text_buffer_put(p,
                            i == 0 ? "\n  {\"target\":" : ",\n  {\"target\":");
        stg_text_buffer_put_json(p, f->target);
        stg_text_buffer_put(p, ",\"answer\":");
        stg_text_buffer_put_json(p, f->answer);
        stg_text_buffer_put(p, ",\"from_ms\":");
        stg_text_buffer_put_number(p, ms(f->from), 15);
        stg_text_buffer_put(p, ",\"to_ms\":");
        stg_text_buffer_put_number(p, ms(stg_world_scenario_end(s, f)), 15);
        stg_text_buffer_put(p, ",\"share\":");
        stg_text_buffer_put_number(p, f->share / 100.0, 15);
        stg_text_buffer_put(p, "}");
    }
    stg_text_buffer_put(p, "]");
}

static void put_alerts(const stg_world_scenario_found *f, stg_text_buffer *p)
{
    stg_text_buffer_put(p, ",\n  \"alerts\": [");
    for (size_t i = 0; i < f->alert_count; i++) {
        const stg_world_scenario_alert *a = &f->alerts[i];

        stg_text_buffer_put(p, i == 0 ? "\n  {\"at_ms\":" : ",\n  {\"at_ms\":");
        stg_text_buffer_put_number(p, ms(a->at), 15);
        stg_text_buffer_put(p, ",\"target\":");
        if (a->target[0] == '\0')
            stg_text_buffer_put(p, "null");
        else
            stg_text_buffer_put_json(p, a->target);
        stg_text_buffer_put(p, ",\"text\":");
        stg_text_buffer_put_json(p, a->text);
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
