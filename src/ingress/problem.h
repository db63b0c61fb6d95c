/* problem.h - why a request was refused, as a problem document (RFC 9457).
 *
 *     {"type":"about:blank","title":"Conflict","status":409,"line":3,
 *      "detail":"line 3: the key came with another body before"} */
#ifndef STAGGER_INGRESS_PROBLEM_H
#define STAGGER_INGRESS_PROBLEM_H

#include <stddef.h>

#define STG_PROBLEM_TEXT_MAX 768

typedef struct stg_problem {
    int status;       /* 400 to 599; 0: there is none */
    size_t line;      /* of a batch, from 1; 0: of none */
    char detail[256]; /* printable ASCII */
} stg_problem;

/* Writes the problem. Bytes that are not printable ASCII become '?'. Returns
 * false, for `return stg_problem_set(...)`. */
__attribute__((format(printf, 4, 5))) _Bool
stg_problem_set(stg_problem *p, int status, size_t line, const char *format,
                ...);

/* Writes the document and returns its size, below STG_PROBLEM_TEXT_MAX. */
size_t stg_problem_print(const stg_problem *p, char text[STG_PROBLEM_TEXT_MAX]);

#endif
