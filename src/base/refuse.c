#include "base/refuse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

stg_status stg_hub_refuse(stg_error *err, stg_status status, const char *format,
                          ...)
{
    va_list arguments;

    if (err == NULL)
        return status;
    err->line = err->column = 0;
    va_start(arguments, format);
    vsnprintf(err->text, sizeof err->text, format, arguments);
    va_end(arguments);
    return status;
}

stg_status stg_hub_file_status(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EACCES:
    case EPERM:
        return STG_INVALID;
    default:
        return STG_IO;
    }
}
