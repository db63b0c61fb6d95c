#include "ingress/problem.h"

#include <stdarg.h>
#include <stdio.h>

#include "http/response.h"

_Bool stg_problem_set(stg_problem *p, int status, size_t line,
                      const char *format, ...)
{
    va_list arguments;

    p->status = status;
    p->line = line;
    va_start(arguments, format);
    vsnprintf(p->detail, sizeof p->detail, format, arguments);
    va_end(arguments);
    for (char *c = p->detail; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return 0;
}

/* As inside a JSON string: of printable ASCII only two need help. */
static void escape(const char *text, char *out)
{
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            *out++ = '\\';
        *out++ = *text;
    }
    *out = '\0';
}

size_t stg_problem_print(const stg_problem *p, char text[STG_PROBLEM_TEXT_MAX])
{
    char detail[2 * sizeof p->detail], line[40] = "";

    if (p->line > 0)
        snprintf(line, sizeof line, "\"line\":%zu,", p->line);
    escape(p->detail, detail);
    return (size_t)snprintf(text, STG_PROBLEM_TEXT_MAX,
                            "{\"type\":\"about:blank\",\"title\":\"%s\","
                            "\"status\":%d,%s\"detail\":\"%s\"}\n",
                            stg_response_reason(p->status), p->status, line,
                            detail);
}
