/* Roles of tokens as words. */
#include <stdio.h>
#include <string.h>

#include "ingress/token.h"

static const struct {
    const char *name;
    unsigned role;
} roles[] = {{"publish", STG_ROLE_PUBLISH},
             {"view", STG_ROLE_VIEW},
             {"operate", STG_ROLE_OPERATE}};

enum { ROLES = sizeof roles / sizeof *roles };

static unsigned find_role(stg_span name)
{
    for (size_t i = 0; i < ROLES; i++)
        if (name.size == strlen(roles[i].name) &&
            memcmp(name.at, roles[i].name, name.size) == 0)
            return roles[i].role;
    return 0;
}

unsigned stg_roles_parse(stg_span text)
{
    unsigned all = 0;

    for (;;) {
        const char *comma =
            text.size == 0 ? NULL : memchr(text.at, ',', text.size);
        size_t size = comma == NULL ? text.size : (size_t)(comma - text.at);
        unsigned role = find_role((stg_span){text.at, size});

        if (role == 0)
            return 0;
        all |= role;
        if (comma == NULL)
            return all;
        text = (stg_span){comma + 1, text.size - size - 1};
    }
}

const char *stg_roles_print(unsigned all, char text[STG_ROLES_TEXT_MAX])
{
    char *out = text;

    *out = '\0';
    for (size_t i = 0; i < ROLES; i++)
        if ((all & roles[i].role) != 0)
            out += sprintf(out, "%s%s", out == text ? "" : ",", roles[i].name);
    return text;
}
