#include <stagger/outcome.h>

#include "core/codes.h"

/* A fault that many codes share is told by its code. */
static bool is_told_by_code(const stg_outcome *o)
{
    switch (o->code_kind) {
    case STG_CODE_NONE:
        return false;
    case STG_CODE_REDIS:
    case STG_CODE_AMQP:
    case STG_CODE_AMQP1:
    case STG_CODE_KAFKA:
        return o->fault != STG_FAULT_NONE;
    default:
        break;
    }
    switch (o->fault) {
    case STG_FAULT_5XX:
    case STG_FAULT_3XX:
    case STG_FAULT_4XX:
    case STG_FAULT_OVERLOAD:
    case STG_FAULT_SQL:
    case STG_FAULT_GRPC:
    case STG_FAULT_EXIT:
        return true;
    default:
        return false;
    }
}

static const stg_fault_info *about(const stg_outcome *o)
{
    return stg_fault_about(o == NULL ? STG_FAULT_ERROR : o->fault);
}

const char *stg_outcome_name(const stg_outcome *o, char text[STG_CAUSE_MAX])
{
    stg_writer w = stg_writer_on(text, STG_CAUSE_MAX);

    if (o != NULL && is_told_by_code(o))
        stg_code_write(&w, o->code_kind, o->code);
    else
        stg_write_text(&w, about(o)->name);
    return text;
}

const char *stg_outcome_cause(const stg_outcome *o, char text[STG_CAUSE_MAX])
{
    stg_writer w = stg_writer_on(text, STG_CAUSE_MAX);

    if (o != NULL && is_told_by_code(o))
        stg_code_write_cause(&w, o->code_kind, o->code);
    else
        stg_write_text(&w, about(o)->cause);
    return text;
}
