/* Which causes there are: what a person wrote is one of them, or a slip. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stagger/outcome.h>

#include "base/suggest.h"
#include "cli/dead.h"
#include "core/reader.h"

enum { GRPC_CODES = 17, OWN = 2, NAMES = STG_FAULT_COUNT + GRPC_CODES + OWN };

/* Each status has a cause of its own, and their families have none. */
static bool is_family(stg_fault fault)
{
    return fault == STG_FAULT_5XX || fault == STG_FAULT_3XX ||
           fault == STG_FAULT_4XX || fault == STG_FAULT_OVERLOAD;
}

/* Those that are no number, with a NULL behind. */
static void list_names(char texts[NAMES][STG_CAUSE_MAX],
                       const char *names[NAMES + 1])
{
    size_t count = 0;

    for (int i = STG_FAULT_REFUSED; i < STG_FAULT_COUNT; i++)
        if (!is_family((stg_fault)i))
            names[count++] = stg_fault_about((stg_fault)i)->cause;
    for (uint32_t i = 0; i < GRPC_CODES; i++) {
        const stg_outcome o = {
            .fault = STG_FAULT_GRPC, .code_kind = STG_CODE_GRPC, .code = i};

        names[count] = stg_outcome_cause(&o, texts[count]);
        count++;
    }
    names[count++] = "SHED"; // range rows, and those that were cancelled
    names[count++] = "CANCELLED";
    names[count] = NULL;
}

static bool is_among(const char *cause, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(cause, *names) == 0)
            return true;
    return false;
}

static bool is_status(const char *digits)
{
    return strlen(digits) == 3 && *digits >= '1' && *digits <= '5' &&
           strspn(digits, "0123456789") == 3;
}

static bool is_code(const char *cause)
{
    static const char *const numbered[] = {"MYSQL_", "GRPC_", "EXIT_"};

    if (strncmp(cause, "HTTP_", 5) == 0)
        return is_status(cause + 5);
    if (strncmp(cause, "SQLSTATE_", 9) == 0)
        return stg_sqlstate_pack(cause + 9) != UINT32_MAX;
    for (size_t i = 0; i < sizeof numbered / sizeof *numbered; i++) {
        size_t size = strlen(numbered[i]), length = strlen(cause);

        if (strncmp(cause, numbered[i], size) == 0 && length > size)
            return strspn(cause + size, "0123456789") == length - size;
    }
    return false;
}

/* What ends with a status was meant to be one. */
static const char *status_in(const char *cause, char near[STG_CAUSE_MAX])
{
    size_t length = strlen(cause);

    if (length < 3 || !is_status(cause + length - 3) ||
        (length > 3 && stg_is_digit(cause[length - 4])))
        return NULL;
    snprintf(near, STG_CAUSE_MAX, "HTTP_%s", cause + length - 3);
    return near;
}

bool dead_check_cause(const char *cause, char near[STG_CAUSE_MAX])
{
    char texts[NAMES][STG_CAUSE_MAX], upper[STG_CAUSE_MAX] = "";
    const char *names[NAMES + 1], *found;
    size_t size = 0;

    near[0] = '\0';
    list_names(texts, names);
    if ((strlen(cause) == 1 && strchr("ABCD", *cause) != NULL) ||
        is_among(cause, names) || is_code(cause))
        return true;
    for (; size < sizeof upper - 1 && cause[size] != '\0'; size++)
        upper[size] = cause[size] == '-'
                          ? '_'
                          : (char)toupper((unsigned char)cause[size]);
    upper[size] = '\0';
    found = is_code(upper) ? upper : status_in(upper, near);
    if (found == NULL)
        found = stg_suggest(upper, names);
    if (found != NULL && found != near)
        snprintf(near, STG_CAUSE_MAX, "%s", found);
    return false;
}
