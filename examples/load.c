/* load.c - policies as settings: from a file, by name.
 *
 *     load [FILE [NAME]]
 *
 * Prints the policy of that name, or all there are, as the library understands
 * them: with everything that was left unsaid. An error names the file, the line
 * and the column. */
#include <stdio.h>
#include <stdlib.h>

#include <stagger/stagger.h>

static void print(const char *name, const stg_policy *policy)
{
    char text[STG_POLICY_TEXT_MAX];

    stg_policy_print(policy, text);
    printf("%s: %s\n", name, text);
}

/* What most programs need: one policy, by its name. */
static stg_status print_one(const char *path, const char *name, stg_error *err)
{
    stg_policy policy;
    stg_status status = stg_policy_load(&policy, path, name, err);

    if (status == STG_OK)
        print(name, &policy);
    return status;
}

/* A walk over all of them. */
static stg_status print_all(const char *path, stg_error *err)
{
    stg_policies walk = {.source = path};
    char *content, name[STG_NAME_MAX];
    stg_policy policy;
    stg_status status = stg_file_read(path, &content, &walk.size, err);

    if (status != STG_OK)
        return status;
    walk.text = content;
    while ((status = stg_policies_next(&walk, name, &policy, err)) == STG_OK)
        print(name, &policy);
    free(content);
    return status == STG_NOT_FOUND ? STG_OK : status; // the end, or an error
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "policies.conf";
    stg_error err;
    stg_status status =
        argc > 2 ? print_one(path, argv[2], &err) : print_all(path, &err);

    if (status != STG_OK)
        fprintf(stderr, "%s\n", err.text);
    return status == STG_OK ? 0 : 1;
}
