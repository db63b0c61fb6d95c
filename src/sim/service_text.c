#include "sim/service.h"

#include "core/writer.h"

/* Each reader sets all fields of its setting, so that an earlier value leaves
 * nothing. Ranges are those of stg_sim_service_check(). */

enum { STANDS_MS = 100 }; // as in Maurer's "Fail at Scale"

static bool read_span(stg_reader *r, stg_ns *span)
{
    return stg_read_duration(r, span) && *span >= STG_US && *span <= STG_DAY;
}

bool stg_service_read_order(stg_reader *r, stg_sim_service_options *o)
{
    o->stands_after = 0;
    if (stg_read_text(r, "adaptive-lifo")) {
        o->order = STG_SIM_ORDER_ADAPTIVE;
        o->stands_after = STANDS_MS * STG_MS;
        return !stg_read_text(r, ":") || read_span(r, &o->stands_after);
    }
    o->order =
        stg_read_text(r, "lifo") ? STG_SIM_ORDER_LIFO : STG_SIM_ORDER_FIFO;
    return o->order == STG_SIM_ORDER_LIFO || stg_read_text(r, "fifo");
}

bool stg_service_read_shed(stg_reader *r, stg_sim_service_options *o)
{
    o->shed_target = o->shed_interval = 0;
    o->shed = STG_SIM_SHED_NONE;
    if (stg_read_text(r, "none"))
        return true;
    o->shed =
        stg_read_text(r, "codel:") ? STG_SIM_SHED_CODEL : STG_SIM_SHED_WAIT;
    if (o->shed == STG_SIM_SHED_WAIT && !stg_read_text(r, "wait:"))
        return false;
    if (!read_span(r, &o->shed_target))
        return false;
    if (!stg_read_text(r, ":"))
        return o->shed == STG_SIM_SHED_WAIT;
    return read_span(r, &o->shed_interval);
}

bool stg_service_read_limit(stg_reader *r, stg_sim_service_options *o)
{
    o->limit = 0;
    return stg_read_text(r, "none") ||
           (stg_read_text(r, "aimd:") && read_span(r, &o->limit));
}

/* -- printing --------------------------------------------------------------- */

const char *stg_service_print_order(const stg_sim_service_options *o,
                                    char text[STG_SERVICE_TEXT_MAX])
{
    static const char *const orders[] = {"fifo", "lifo", "adaptive-lifo:"};
    stg_writer w = stg_writer_on(text, STG_SERVICE_TEXT_MAX);

    stg_write_text(&w, orders[o->order]);
    if (o->order == STG_SIM_ORDER_ADAPTIVE)
        stg_write_duration(&w, o->stands_after);
    return text;
}

const char *stg_service_print_shed(const stg_sim_service_options *o,
                                   char text[STG_SERVICE_TEXT_MAX])
{
    static const char *const kinds[] = {"none", "wait:", "codel:"};
    stg_writer w = stg_writer_on(text, STG_SERVICE_TEXT_MAX);

    stg_write_text(&w, kinds[o->shed]);
    if (o->shed != STG_SIM_SHED_NONE)
        stg_write_duration(&w, o->shed_target);
    if (o->shed_interval != 0) {
        stg_write_char(&w, ':');
        stg_write_duration(&w, o->shed_interval);
    }
    return text;
}

const char *stg_service_print_limit(const stg_sim_service_options *o,
                                    char text[STG_SERVICE_TEXT_MAX])
{
    stg_writer w = stg_writer_on(text, STG_SERVICE_TEXT_MAX);

    stg_write_text(&w, o->limit == 0 ? "none" : "aimd:");
    if (o->limit != 0)
        stg_write_duration(&w, o->limit);
    return text;
}
