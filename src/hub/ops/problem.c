#include "hub/ops/problem.h"

#include <stdarg.h>
#include <stdio.h>

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

/* Source: RFC 9110, section 15; 429 and 431 from RFC 6585, 508 from
 * RFC 5842. */
const char *stg_problem_title(int status)
{
    static const struct {
        int status;
        const char *title;
    } titles[] = {
        {200, "OK"},
        {202, "Accepted"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {411, "Length Required"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {508, "Loop Detected"},
    };

    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        if (titles[i].status == status)
            return titles[i].title;
    return "Error";
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
                            stg_problem_title(p->status), p->status, line,
                            detail);
}
