#include <stagger/outcome.h>

#include "core/writer.h"

static const char *const grpc_causes[] = {
    "GRPC_OK",
    "GRPC_CANCELLED",
    "GRPC_UNKNOWN",
    "GRPC_INVALID_ARGUMENT",
    "GRPC_DEADLINE_EXCEEDED",
    "GRPC_NOT_FOUND",
    "GRPC_ALREADY_EXISTS",
    "GRPC_PERMISSION_DENIED",
    "GRPC_RESOURCE_EXHAUSTED",
    "GRPC_FAILED_PRECONDITION",
    "GRPC_ABORTED",
    "GRPC_OUT_OF_RANGE",
    "GRPC_UNIMPLEMENTED",
    "GRPC_INTERNAL",
    "GRPC_UNAVAILABLE",
    "GRPC_DATA_LOSS",
    "GRPC_UNAUTHENTICATED",
};

enum { GRPC_CODES = sizeof grpc_causes / sizeof grpc_causes[0] };

/* A fault that many codes share is told by its code. */
static bool is_told_by_code(const stg_outcome *o)
{
    switch (o->fault) {
    case STG_FAULT_5XX:
    case STG_FAULT_3XX:
    case STG_FAULT_4XX:
    case STG_FAULT_OVERLOAD:
    case STG_FAULT_SQL:
    case STG_FAULT_GRPC:
    case STG_FAULT_EXIT:
        return o->code_kind != STG_CODE_NONE;
    default:
        return false;
    }
}

static void write_code(stg_writer *w, const stg_outcome *o)
{
    char sqlstate[6];

    if (o->code_kind != STG_CODE_SQLSTATE) {
        stg_write_number(w, o->code);
        return;
    }
    stg_sqlstate_unpack(o->code, sqlstate);
    stg_write_text(w, sqlstate);
}

const char *stg_outcome_name(const stg_outcome *o, char text[STG_CAUSE_MAX])
{
    static const char *const prefixes[] = {
        [STG_CODE_SQLSTATE] = "sqlstate:",
        [STG_CODE_MYSQL] = "mysql:",
        [STG_CODE_GRPC] = "grpc:",
        [STG_CODE_EXIT] = "exit ",
    };
    stg_writer w = stg_writer_on(text, STG_CAUSE_MAX);
    unsigned kind = (unsigned)o->code_kind;

    if (!is_told_by_code(o)) {
        stg_write_text(&w, stg_fault_about(o->fault)->name);
        return text;
    }
    if (kind <= STG_CODE_EXIT && prefixes[kind] != NULL)
        stg_write_text(&w, prefixes[kind]);
    write_code(&w, o);
    return text;
}

const char *stg_outcome_cause(const stg_outcome *o, char text[STG_CAUSE_MAX])
{
    static const char *const prefixes[] = {
        [STG_CODE_STATUS] = "HTTP_", [STG_CODE_SQLSTATE] = "SQLSTATE_",
        [STG_CODE_MYSQL] = "MYSQL_", [STG_CODE_GRPC] = "GRPC_",
        [STG_CODE_EXIT] = "EXIT_",
    };
    stg_writer w = stg_writer_on(text, STG_CAUSE_MAX);
    unsigned kind = (unsigned)o->code_kind;

    if (!is_told_by_code(o)) {
        stg_write_text(&w, stg_fault_about(o->fault)->cause);
        return text;
    }
    if (kind == STG_CODE_GRPC && o->code < GRPC_CODES) {
        stg_write_text(&w, grpc_causes[o->code]);
        return text;
    }
    if (kind <= STG_CODE_EXIT && prefixes[kind] != NULL)
        stg_write_text(&w, prefixes[kind]);
    write_code(&w, o);
    return text;
}
