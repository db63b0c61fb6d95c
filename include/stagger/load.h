/* load.h - reads a policy out of a file of named ones (policies.h). */
#ifndef STAGGER_LOAD_H
#define STAGGER_LOAD_H

#include <stagger/policies.h>

STG_DECLS_BEGIN

#define STG_FILE_MAX (1024 * 1024) /* the longest file of policies, bytes */

/* The policy called name in the file at path. Returns STG_OK; STG_NOT_FOUND if
 * the file has no such name; STG_INVALID for anything wrong in the file, with
 * its line and column in err; STG_IO if it cannot be read. */
STG_API stg_status stg_policy_load(stg_policy *policy, const char *path,
                                   const char *name, stg_error *err);

/* Reads the whole file into fresh memory, terminated, for stg_policies_next().
 * The caller frees *text with free(). */
STG_API stg_status stg_file_read(const char *path, char **text, size_t *size,
                                 stg_error *err);

STG_DECLS_END

#endif
