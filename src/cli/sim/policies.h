/* policies.h - the policies of a simulation, side by side: presets, texts,
 * or NAME=text, where NAME is what tables and charts call it. */
#ifndef STAGGER_CLI_SIM_POLICIES_H
#define STAGGER_CLI_SIM_POLICIES_H

#include <stagger/text.h>

enum { STG_SIM_POLICIES_MAX = 32, STG_SIM_NAME_MAX = 41 };

typedef struct stg_sim_policy {
    char name[STG_SIM_NAME_MAX]; /* for people; cut where it is a long text */
    char text[STG_POLICY_TEXT_MAX]; /* canonical */
    stg_policy policy;
} stg_sim_policy;

typedef struct stg_sim_policies {
    size_t count;
    stg_sim_policy at[STG_SIM_POLICIES_MAX];
} stg_sim_policies;

/* Adds the one that word says. Returns 0, or complains in the name of who and
 * returns an exit code. */
int stg_sim_policies_add(stg_sim_policies *p, const char *who,
                         const char *word);

#endif
